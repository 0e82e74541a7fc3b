"""The table of predictors: how each does over the networks of a study without bias, with intervals over seeds."""

from collections.abc import Iterator, Sequence

import pandas as pd

from position_bias.retrieval.agreement import (
    OBSERVED,
    PREDICTORS,
    WIRINGS,
    agreement,
    crossings,
    of_wiring,
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
COLUMNS = ["study", "networks", "predictor", "kind", "statistic", "value", "low", "high", "n"]


def predictors(profiles: pd.DataFrame, level: float) -> pd.DataFrame:
    """Mean of each statistic over the networks of a study, with Student's interval over seeds, columns COLUMNS.

    `slope` is that of the decay mask at which the gap changes sign, among the networks of the fewest layers; it is
    given of what is observed, too, and `n` leaves out seeds whose gap does not change sign.
    """
    found = agreement(profiles)
    return pd.DataFrame([row for study in WIRINGS for row in _of_study(found, study, level)], columns=COLUMNS)


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """One row a study and predictor, one column a statistic: `value [low, high]`."""
    cells = table.assign(
        cell=[_cell(*numbers) for numbers in zip(table["value"], table["low"], table["high"], strict=True)]
    )
    keys = ["study", "networks", "predictor", "kind"]
    rows = []
    for key, own in cells.groupby(keys, sort=False):
        by_statistic = own.set_index("statistic")["cell"].to_dict()
        shown = {told: by_statistic.get(name, "") for name, told in STATISTICS.items()}
        rows.append({**dict(zip(keys, key, strict=True)), **shown})
    return pd.DataFrame(rows)


def _of_study(found: pd.DataFrame, study: str, level: float) -> Iterator[dict[str, object]]:
    own = of_wiring(found, study)
    if own.empty:
        return
    label: dict[str, object] = {"study": study, "networks": len(own[["depth", "network"]].drop_duplicates())}
    few = shallowest(own)
    seen = crossings(few[few["predictor"] == NO_ORDER], "observed")
    yield {**label, "predictor": OBSERVED, "kind": "observed", **_number(SLOPE, seen, level)}
    means = {name: over_networks(own, name) for name in STATISTICS if name != SLOPE}
    for predictor, kind in PREDICTORS.items():
        of_predictor = {**label, "predictor": predictor, "kind": kind}
        for name, by_seed in means.items():
            if predictor != NO_ORDER or name == "wasserstein":
                yield {**of_predictor, **_number(name, by_seed[predictor], level)}
        if predictor != NO_ORDER:
            slopes = crossings(few[few["predictor"] == predictor], "gap")
            yield {**of_predictor, **_number(SLOPE, slopes, level)}


def _number(name: str, by_seed: pd.Series, level: float) -> dict[str, object]:
    values = by_seed.dropna().to_numpy(float)
    value, low, high = map(float, mean_and_interval(values, level))
    return {"statistic": name, "value": value, "low": low, "high": high, "n": len(values)}


def _cell(value: float, low: float, high: float) -> str:
    if pd.isna(value):
        return "-"  # the gap of no seed changes sign
    return f"{value:.3f}" if pd.isna(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def evidence(profiles: pd.DataFrame, runs: pd.DataFrame, studies: Sequence[str], scale: str) -> dict[str, pd.DataFrame]:
    """What is kept of long trainings: the profiles of these studies, STUDY/depthLAYERS, and what made them."""
    of_study = profiles["study"] + "/depth" + profiles["depth"].astype(str)
    kept = profiles.round({"value": 5})[of_study.isin(studies)]
    return {"profiles": kept.assign(scale=scale), "runs": runs.assign(scale=scale)}
