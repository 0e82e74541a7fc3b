"""The judge of all wings: what predictions make of statistics.

A statistic is a table, units down and networks across. A prediction speaks of one network, or of one less another; the
judge takes that column, estimates it with an interval, and writes the row. Keys tell rows apart; words are made here
and are never read again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from position_bias.running.runtime import InputError
from position_bias.statistics import mean_and_interval, percentile_interval
from position_bias.verdicts.predictions import Predicted
from position_bias.verdicts.verdict import Prediction, row

ESTIMATE = -1  # the unit, among replicates, that is no resample: all prompts as they are


class Estimate(NamedTuple):
    """A number with its interval, and what is behind it."""

    measured: float
    low: float
    high: float
    n: int  # units behind the interval
    left_out: int = 0  # units without a value


Estimator = Callable[[pd.Series, Prediction, float], Estimate]  # of the units' values; the float is the level


def student(values: pd.Series, prediction: Prediction, level: float, chosen_from: int = 1) -> Estimate:
    """The mean over independent units with Student's interval; units without a value are left out.

    The interval of one that was chosen as the most extreme of several is widened (Bonferroni).
    """
    found = values.dropna().to_numpy(float)
    mean, low, high = map(float, mean_and_interval(found, 1 - (1 - level) / chosen_from))
    return Estimate(mean, low, high, len(found), len(values) - len(found))


def size_of_mean(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """As `student`, of the size of the mean, whatever its sign."""
    found = student(values, prediction, level)
    least, largest = sorted((abs(found.low), abs(found.high)))
    low = 0.0 if found.low < 0 < found.high else least
    return found._replace(measured=abs(found.measured), low=low, high=largest)


def percentiles(n: int) -> Estimator:
    """Percentiles over bootstrap replicates of `n` prompts; the unit ESTIMATE is the value itself."""

    def estimate(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
        low, high = map(float, percentile_interval(values[values.index != ESTIMATE], level))
        return Estimate(float(values.loc[ESTIMATE]), low, high, n)

    return estimate


def worst(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """Of numbers that are worked out, one a unit, the one that keeps least to the prediction; it has no width."""
    low, high = float(values.min()), float(values.max())
    farthest = max(low, high, key=lambda value: abs(value - prediction.bound))
    found = {"<": high, ">": low, "=": farthest}[prediction.relation]
    return Estimate(found, found, found, len(values))


@dataclass(frozen=True)
class Statistic:
    """A quantity of networks: `table` has units down and networks across, NaN where a unit has no value.

    A network that it has no column of gets no row; a column without any value gets one that cannot be tested.
    """

    name: str  # as published/predictions.csv calls it
    table: pd.DataFrame
    setting: Mapping[str, object] = field(default_factory=dict)  # what else tells it from others of this name
    estimate: Estimator = student
    item: str = ""  # in place of that of the prediction, where it depends on the setting
    speaks: bool = True  # of the claims of its predictions; not where the setting is none that they are about
    identity: bool = False  # networks of any weights have this value
    testable: bool = True
    seen: Mapping[str, pd.Series] = field(default_factory=dict)  # network -> which of its units were seen before
    called: Mapping[str, str] = field(default_factory=dict)  # what else words may name; no key


def judge(
    statistics: Iterable[Statistic], predictions: Mapping[str, list[Predicted]], level: float
) -> Iterator[dict[str, object]]:
    """The row of each prediction of each statistic, in the schema of `verdict.COLUMNS`.

    Raises InputError where nothing is predicted of a statistic.
    """
    for statistic in statistics:
        if statistic.name not in predictions:
            raise InputError(f"published/predictions.csv predicts nothing of the statistic {statistic.name!r}")
        for predicted in predictions[statistic.name]:
            if {predicted.network, predicted.other} - {""} <= set(statistic.table):
                yield _row(statistic, predicted, level)


def _row(statistic: Statistic, predicted: Predicted, level: float) -> dict[str, object]:
    network, other = predicted.network, predicted.other
    values = statistic.table[network]
    if other:
        values = values - statistic.table[other]
    found = statistic.estimate(values, predicted.prediction, level)
    words = predicted.words.format(network=network, other=other, **statistic.setting, **statistic.called)
    judged = row(
        predicted.claim if statistic.speaks else "",
        statistic.item or predicted.item,
        words,
        predicted.prediction,
        found.measured,
        (found.low, found.high),
        found.n,
        predicted.source,
        testable=statistic.testable,
        identity=statistic.identity,
        left_out=found.left_out,
    )
    seen = [
        statistic.seen[name].reindex(values.index, fill_value=False)
        for name in (network, other)
        if name in statistic.seen
    ]
    before = int((values.notna() & np.logical_or.reduce(seen)).sum()) if seen else 0
    setting = "; ".join(f"{name} = {value}" for name, value in statistic.setting.items())
    keys = {"statistic": statistic.name, "network": network, "other": other, "setting": setting}
    return {**judged, **keys, "seen_before": before}
