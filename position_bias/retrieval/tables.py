"""The table of predictors: how each does over the networks of a study without bias, with intervals over seeds."""

from collections.abc import Sequence

import pandas as pd

from position_bias.retrieval.agreement import (
    OBSERVED,
    PREDICTORS,
    WIRINGS,
    agreement,
    crossings,
    over_networks,
    shallowest,
)
from position_bias.statistics import mean_and_interval

SLOPE = "slope"
STATISTICS = {  # column of `agreement` -> what readers are told
    "spearman": "rank correlation",
    "wasserstein": "distance",
    "right": "right sign",
    SLOPE: "slope where the gap changes sign",
}
NO_ORDER = "uniform"  # the predictor that has neither order nor sign
KEYS = ["study", "networks", "predictor", "kind"]


def predictors(profiles: pd.DataFrame, level: float) -> pd.DataFrame:
    """Mean of each statistic over the networks of a study, with Student's interval over seeds.

    Columns KEYS, statistic, value, low, high, n. `slope` is that of the decay mask at which the gap changes sign, among
    the networks of the fewest layers; it is given of what is observed, too, and `n` leaves out seeds whose gap does not
    change sign.
    """
    found, rows = agreement(profiles), []
    for study in (study for study in WIRINGS if study in set(found["study"])):
        own = found[found["study"] == study]
        few = dict(list(shallowest(own).groupby("predictor")))
        slopes = {predictor: crossings(rows_of, "gap") for predictor, rows_of in few.items()}
        by_seed = {name: over_networks(own, name) for name in STATISTICS if name != SLOPE}
        by_seed[SLOPE] = pd.DataFrame({**slopes, OBSERVED: crossings(few[NO_ORDER], "observed")})
        networks = len(own[["depth", "network"]].drop_duplicates())
        for predictor, kind in {OBSERVED: "observed", **PREDICTORS}.items():
            for name, values in by_seed.items():
                if predictor in values and (predictor != NO_ORDER or name == "wasserstein"):
                    known = values[predictor].dropna().to_numpy(float)
                    interval = map(float, mean_and_interval(known, level))
                    rows.append((study, networks, predictor, kind, name, *interval, len(known)))
    return pd.DataFrame(rows, columns=[*KEYS, "statistic", "value", "low", "high", "n"])


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """One row a study and predictor, one column a statistic: `value [low, high]`."""
    numbers = zip(table["value"], table["low"], table["high"], strict=True)
    cells = table.assign(cell=[_cell(*of_row) for of_row in numbers]).set_index([*KEYS, "statistic"])["cell"]
    by_statistic = cells.unstack(fill_value="", sort=False).reindex(columns=list(STATISTICS), fill_value="")
    return by_statistic.rename(columns=STATISTICS).rename_axis(columns=None).reset_index()


def _cell(value: float, low: float, high: float) -> str:
    if pd.isna(value):
        return "-"  # the gap of no seed changes sign
    return f"{value:.3f}" if pd.isna(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def evidence(profiles: pd.DataFrame, runs: pd.DataFrame, studies: Sequence[str], scale: str) -> dict[str, pd.DataFrame]:
    """What is kept of long trainings: the profiles of these studies, STUDY/depthLAYERS, and what made them."""
    of_study = profiles["study"] + "/depth" + profiles["depth"].astype(str)
    kept = profiles.round({"value": 5})[of_study.isin(studies)]
    return {"profiles": kept.assign(scale=scale), "runs": runs.assign(scale=scale)}
