"""Statements on theory are estimated where they are simulated, and judged elsewhere.

So an edited prediction simulates nothing again. A formula has a number for each setting, which is computed and has no
width; a claim about a mean over sequences has Student's interval for each setting. What speaks most against a
prediction is judged.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from position_bias.verdicts.judge import Estimate, Statistic, worst
from position_bias.verdicts.predictions import Predicted

NUMBERS = ["measured", "low", "high", "n"]  # of an estimate
BOUND = ["bound", "margin"]  # of a prediction, where they depend on how much was simulated
COLUMNS = ["statistic", "setting", "network", "other", *NUMBERS, *BOUND]


def statistic(
    name: str, setting: Mapping[str, object], networks: Mapping[Any, Sequence[Estimate]], **numbers: float
) -> Statistic:
    """Estimates of networks, or of one less another (network, other), one for each of some settings.

    `numbers` are a bound and margin of this sampling.
    """
    columns = {network: pd.DataFrame(estimates)[NUMBERS].stack() for network, estimates in networks.items()}
    return Statistic(name, pd.DataFrame(columns), setting, least_favourable, numbers=numbers)


def least_favourable(values: pd.Series, predicted: Predicted, level: float) -> Estimate:
    """The estimate that speaks most against the prediction; the units of `values` are settings, each with NUMBERS.

    Raises ValueError where one is not finite: as a row without verdict it would not be missed among others.
    """
    measured = worst(values.xs("measured", level=1), predicted, level).measured
    estimates = values.unstack()
    chosen = estimates[estimates["measured"] == measured].iloc[0]
    return Estimate(measured, float(chosen["low"]), float(chosen["high"]), int(chosen["n"]))


def table(statistics: Iterable[Statistic]) -> pd.DataFrame:
    """Return a row for each estimate of each network, in COLUMNS."""
    frames = []
    for found in statistics:
        for network, values in found.table.items():
            one, other = network if isinstance(network, tuple) else (network, "")
            told = {"statistic": found.name, "setting": json.dumps(found.setting), "network": one, "other": other}
            numbers = {name: found.numbers.get(name, float("nan")) for name in BOUND}
            frames.append(values.unstack()[NUMBERS].assign(**told, **numbers))
    return pd.concat(frames, ignore_index=True)[COLUMNS]


def statistics(table: pd.DataFrame) -> Iterator[Statistic]:
    """Yield the statistics of a `table`, in its order."""
    for _, rows in table.groupby(["statistic", "setting", *BOUND], sort=False, dropna=False):
        first = rows.iloc[0]
        networks = {
            network: [Estimate(*numbers) for numbers in of_network[NUMBERS].itertuples(index=False)]
            for network, of_network in rows.groupby(["network", "other"], sort=False)
        }
        numbers = {name: first[name] for name in BOUND if pd.notna(first[name])}
        yield statistic(first["statistic"], json.loads(first["setting"]), networks, **numbers)
