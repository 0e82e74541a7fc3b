"""The judge of all wings: what predictions make of statistics, as rows of tables of checks.

A statistic is a table, units down and networks across. A prediction speaks of one network, or of one less another; the
judge takes that column, estimates it with an interval, and writes the row. Keys tell rows apart; words are made here
and are never read again. A verdict is computed from artifacts and never typed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr

from position_bias.verdicts.registry import Prediction
from position_bias.verdicts.rule import LEAST_SEEDS, UNTESTABLE, Word, word_of_interval
from position_card.core.runtime import InputError
from position_card.rollout.statistics import Array, mean_and_interval, percentile_interval, t_quantile

PREDICTION = ("relation", "bound", "margin")  # the columns of a prediction

# The schema of every table of checks.
COLUMNS = (
    "claim",  # id in published/claims.csv of the claim that the row speaks of; empty where it speaks of none
    "paper",
    "item",  # figure, table, section or proposition
    "quantity",
    *PREDICTION,
    "measured",
    "low",
    "high",
    "n",  # observations behind the interval: documents, seeds, layers or comparisons
    "scale",
    "verdict",
    "identity",  # true where networks of any weights have this value, so that the row supports no claim
    "known",  # true where low and high are known numbers and no interval: nothing was sampled
    "left_out",  # seeds without a value: they diverged in training, or the quantity is not defined for them
    "seen_before",  # seeds behind the interval whose results we knew before the rules of verdicts were fixed
    "source",  # who predicts it, and where
    "of",  # what was trained or measured for it, as figures that draw it say (drawing.shown); else its item
)
# What tells rows apart: rows of two trainings that are alike in all of these are of the same quantity.
KEYS = (
    "statistic",  # its name in published/predictions.csv
    "network",
    "other",  # network that is subtracted, or ""
    "setting",  # what else tells it apart
    "model",  # whose it is, where it is of a language model: its seeds and data sets are not further models
)

ENOUGH = 30  # resamples of fewer spread too little for plain percentiles
GIVEN = ("value", "low", "high")  # what stands in place of units where an interval was taken before
ESTIMATE = -1  # the unit, among replicates, that is no resample: all prompts as they are


class Estimate(NamedTuple):
    """A number with its interval, and what is behind it."""

    measured: float
    low: float
    high: float
    n: int  # units behind the interval
    left_out: int = 0  # units without a value
    known: bool = False  # low and high are known numbers, such as the least and largest of all layers, or one number


Estimator = Callable[[pd.Series, Prediction, float], Estimate]  # of the units' values; the float is the level


def student(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """The mean over independent units with Student's interval; units without a value are left out."""
    present = values.dropna().to_numpy(float)
    mean, low, high = map(float, mean_and_interval(present, level))
    return Estimate(mean, low, high, len(present), len(values) - len(present))


def resampled_interval(resamples: npt.ArrayLike, n: int, level: float) -> tuple[Array, Array]:
    """Percentiles over resamples of n units, `[R, ...]` -> two of `[...]`.

    Resamples of few units spread less than samples do, and normal quantiles are too small for them. Where n is
    below ENOUGH, percentiles are therefore taken as far out as Student's interval lies: the expanded percentile
    interval (Hesterberg 2015, What teachers should know about the bootstrap, Section 5). It is the same on every scale,
    as percentiles are. `resamples` has the R resamples first; `level` is that of the interval.
    """
    if 1 < n < ENOUGH:
        tail = float(ndtr(-np.sqrt(n / (n - 1)) * t_quantile((1 + level) / 2, n - 1)))
        level = 1 - 2 * tail
    return percentile_interval(resamples, level)


def percentiles(n: int) -> Estimator:
    """The interval of resamples of `n` documents or contexts; the unit ESTIMATE is the value itself."""

    def estimate(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
        low, high = map(float, resampled_interval(values[values.index != ESTIMATE], n, level))
        return Estimate(float(values.loc[ESTIMATE]), low, high, n)

    return estimate


def given(n: int, *, known: bool = False) -> Estimator:
    """What was estimated before, over `n` units: the values are those of GIVEN; see `Estimate` on what is `known`."""

    def estimate(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
        value, low, high = (float(values.loc[name]) for name in GIVEN)
        return Estimate(value, low, high, n, known=known)

    return estimate


def published(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """A number that was published, or follows from published ones without sampling: it is known, and has no width."""
    (value,) = map(float, values)
    return Estimate(value, value, value, 1, known=True)


def worst(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """Of numbers that are worked out, one a unit, the one that keeps least to the prediction; it has no width.

    Raises ValueError where one is not finite: as a row without verdict it would not be missed among others.
    """
    if not np.isfinite(values).all():
        raise ValueError(f"{values.name}: {values[~np.isfinite(values)].iloc[0]} is no number that can be judged")
    low, high = float(values.min()), float(values.max())
    farthest = max(low, high, key=lambda value: abs(value - prediction.bound))
    value = {"<": high, ">": low, "=": farthest}[prediction.relation]
    return Estimate(value, value, value, len(values))


def worst_among(n: int) -> Estimator:
    """As `worst`, of numbers that are each the worst among `n`."""
    return lambda values, prediction, level: worst(values, prediction, level)._replace(n=n)


@dataclass(frozen=True)
class Statistic:
    """A quantity of networks: `table` has units down and networks across, NaN where a unit has no value.

    A network that it has no column of gets no row; a column without any value gets one that cannot be tested. Where a
    difference was taken before, its column is named (network, other), with "" for the other of a network alone.
    """

    name: str  # as published/predictions.csv calls it
    table: pd.DataFrame
    setting: Mapping[str, object] = field(default_factory=dict)  # what else tells it from others of this name
    estimate: Estimator = student
    item: str = ""  # in place of that of the prediction, where it depends on the setting
    numbers: Mapping[str, Any] = field(default_factory=dict)  # bound and margin, likewise
    speaks: bool = True  # of the claims of its predictions; not where the setting is none that they are about
    identity: bool = False  # networks of any weights have this value
    testable: bool = True
    # what the words fill in besides the setting, and by the names of networks what they call these; no key
    wording: Mapping[str, object] = field(default_factory=dict)
    # what columns were trained or measured on: names of each, or one name that stands before that of each column
    of: Mapping[str, Sequence[str]] | str = ""
    # network -> whether each of its units was seen before; a unit that is none of its own does not count as left out
    seen: Mapping[str, pd.Series] = field(default_factory=dict)


def judge(
    statistics: Iterable[Statistic], predictions: Mapping[str, list[Prediction]], level: float = np.nan
) -> Iterator[dict[str, object]]:
    """The row of each prediction of each statistic, in the schema of COLUMNS.

    Without `level` no estimator may need one. Raises InputError where nothing is predicted of a statistic.
    """
    for statistic in statistics:
        if statistic.name not in predictions:
            raise InputError(f"published/predictions.csv predicts nothing of the statistic {statistic.name!r}")
        for prediction in predictions[statistic.name]:
            values = _values(statistic.table, prediction.network, prediction.other)
            if values is not None:
                yield _row(statistic, prediction, values, level)


def by_itself(prediction: Prediction, low: float, high: float) -> Word:
    """What an interval says alone; a quantity that is not defined at this scale has one of NaN."""
    return word_of_interval(prediction.relation, prediction.bound, prediction.margin, low, high)


def _values(table: pd.DataFrame, network: str, other: str) -> pd.Series | None:
    """A network less the other one, unit by unit; None where the table has no column of one of them."""
    if (network, other) in table:
        return table[network, other]
    if not {network, other} - {""} <= set(table):
        return None
    return table[network] - table[other] if other else table[network]


def _values_of_new_units(values: pd.Series, units: Sequence[pd.Series]) -> tuple[pd.Series, int]:
    """The values of units that nobody had seen, where these are enough; else of all, and how many had been seen."""
    marks = [of_network.reindex(values.index, fill_value=False) for of_network in units]
    seen_values = np.logical_or.reduce(marks) & values.notna()
    of_unit = values.index.get_level_values(-1)
    of_seen_units = of_unit.isin(of_unit[seen_values])
    enough = of_unit[values.notna() & ~of_seen_units].nunique() >= LEAST_SEEDS
    return (values[~of_seen_units], 0) if enough else (values, int(seen_values.sum()))


def _row(statistic: Statistic, prediction: Prediction, values: pd.Series, level: float) -> dict[str, object]:
    network, other = prediction.network, prediction.other
    units = [statistic.seen[name] for name in (network, other) if name in statistic.seen]
    for marks in units:
        values = values[values.index.isin(marks.index)]
    values, seen_count = _values_of_new_units(values, units)
    prediction = replace(prediction, **statistic.numbers)
    estimate = statistic.estimate(values.rename(f"{statistic.name}, {network}"), prediction, level)
    names = {"network": statistic.wording.get(network, network), "other": statistic.wording.get(other, other)}
    item = statistic.item or prediction.item
    fields = {**statistic.wording, **statistic.setting, **names}
    return {
        "claim": prediction.claim if statistic.speaks else "",
        "item": item,
        "quantity": prediction.words.format(**fields),
        "relation": prediction.relation,
        "bound": float(prediction.bound),
        "margin": float(prediction.margin),
        "measured": estimate.measured,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "verdict": by_itself(prediction, estimate.low, estimate.high) if statistic.testable else UNTESTABLE,
        "identity": statistic.identity,
        "known": estimate.known,
        "left_out": estimate.left_out,
        "seen_before": estimate.n if prediction.seen else min(seen_count, estimate.n),
        "source": prediction.source,
        "of": "; ".join(_networks_behind(statistic, [name for name in (network, other) if name]) or [item]),
        "statistic": statistic.name,
        "network": network,
        "other": other,
        "setting": "; ".join(f"{name} = {value}" for name, value in statistic.setting.items()),
        "model": str(statistic.setting.get("model", "")),
    }


def _networks_behind(statistic: Statistic, columns: Sequence[str]) -> list[str]:
    """What was trained or measured for some columns of a statistic, each once; nothing where it was worked out."""
    if isinstance(statistic.of, str):
        model = [str(statistic.setting["model"])] if "model" in statistic.setting else []
        return [f"{statistic.of}/{name}" for name in columns] if statistic.of else model
    return [*dict.fromkeys(name for column in columns for name in statistic.of.get(column, ()))]


def table(paper: str, scale: str, rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """Make rows of the judge on one paper a table in the common schema, with their keys."""
    complete = [{"paper": paper, "scale": scale, **row} for row in rows]
    return pd.DataFrame(complete, columns=[*COLUMNS, *KEYS])


def keys(rows: pd.DataFrame) -> pd.Series:
    """What tells the quantities of rows apart, as one text for each."""
    cells = rows[list(KEYS)].astype(object).fillna("")
    return pd.Series(["\n".join(row) for row in cells.itertuples(index=False, name=None)], index=rows.index)


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A table of checks for people: without the keys and what they are of, which its sentences say."""
    return table.drop(columns=[*KEYS, "of"], errors="ignore")


def drop_untestable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a measurement: what a long run leaves out is not reported as missing a second time."""
    return table[table["verdict"] != UNTESTABLE]
