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
INTERVAL = ("value", "low", "high")  # what stands in place of units where an interval was taken before
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
    """Estimate the mean over independent units with Student's interval of `level`; units without a value are left out.

    `values` has one number for each unit, in the units of the statistic. The prediction is not looked at.
    """
    present = values.dropna().to_numpy(float)
    mean, low, high = map(float, mean_and_interval(present, level))
    return Estimate(mean, low, high, len(present), len(values) - len(present))


def resampled_interval(resamples: npt.ArrayLike, n: int, level: float) -> tuple[Array, Array]:
    """Return the ends of the interval of `level` from resamples of `n` units, `[R, ...]` -> two of `[...]`, float64.

    Resamples of few units spread less than samples do, and normal quantiles are too small for them. Where n is below
    ENOUGH, percentiles are therefore taken as far out as Student's interval lies: the expanded percentile interval
    (Hesterberg 2015, What teachers should know about the bootstrap, Section 5). It is the same on every scale, as
    percentiles are. Otherwise they are plain percentiles.
    """
    if 1 < n < ENOUGH:
        tail = float(ndtr(-np.sqrt(n / (n - 1)) * t_quantile((1 + level) / 2, n - 1)))
        level = 1 - 2 * tail
    return percentile_interval(resamples, level)


def percentiles(n: int) -> Estimator:
    """Make the estimator that takes its interval from resamples of `n` documents or contexts (`resampled_interval`).

    The values that it is given have one number for each resample; at the index ESTIMATE stands the value itself.
    """

    def estimate(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
        low, high = map(float, resampled_interval(values[values.index != ESTIMATE], n, level))
        return Estimate(float(values.loc[ESTIMATE]), low, high, n)

    return estimate


def own_interval(n: int, *, known: bool = False) -> Estimator:
    """Make the estimator that takes a value with its own interval, which were estimated before over `n` units.

    The values that it is given are the value and the ends of its interval, by the names of INTERVAL. `known` says that
    these ends are known numbers, as in `Estimate`.
    """

    def estimate(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
        value, low, high = (float(values.loc[name]) for name in INTERVAL)
        return Estimate(value, low, high, n, known=known)

    return estimate


def published(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """Return a number that was published, or follows from published ones without sampling.

    It is known, and its interval has no width. `values` has this one number; raises ValueError where it has more.
    """
    (value,) = map(float, values)
    return Estimate(value, value, value, 1, known=True)


def worst(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """Return the one of the numbers that speaks most against the prediction, without an interval.

    `values` has one computed number for each unit, such as a draw or a setting. Against `<` speaks the largest of them,
    against `>` the smallest, against `=` the one that is farthest from the bound. Raises ValueError where a number is
    not finite: as a row without verdict it would not be missed among others. Raises KeyError for the relation `!=`.
    """
    if not np.isfinite(values).all():
        raise ValueError(f"{values.name}: {values[~np.isfinite(values)].iloc[0]} is no number that can be judged")
    low, high = float(values.min()), float(values.max())
    farthest = max(low, high, key=lambda value: abs(value - prediction.bound))
    value = {"<": high, ">": low, "=": farthest}[prediction.relation]
    return Estimate(value, value, value, len(values))


def worst_among(n: int) -> Estimator:
    """Make the estimator that does as `worst`, of numbers that are each the worst among `n`; it counts n."""
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
    networks_behind: Mapping[str, Sequence[str]] | str = ""
    # network -> whether each of its units was seen before; a unit that is none of its own does not count as left out
    seen_units: Mapping[str, pd.Series] = field(default_factory=dict)


def judge(
    statistics: Iterable[Statistic], predictions: Mapping[str, list[Prediction]], level: float = np.nan
) -> Iterator[dict[str, object]]:
    """Yield the row of each prediction of each statistic, in the schema of COLUMNS and KEYS without paper and scale.

    `predictions` has those of a wing by the name of their statistic (`registry.predictions`); `level` is that of the
    intervals. Without `level` no estimator may need one. A prediction on a network that the table of its statistic
    lacks has no row. Raises InputError where nothing is predicted of a statistic.
    """
    for statistic in statistics:
        if statistic.name not in predictions:
            raise InputError(f"published/predictions.csv predicts nothing of the statistic {statistic.name!r}")
        for prediction in predictions[statistic.name]:
            values = _values(statistic.table, prediction.network, prediction.other)
            if values is not None:
                yield _row(statistic, prediction, values, level)


def by_itself(prediction: Prediction, low: float, high: float) -> Word:
    """Return the word that an interval says by itself about a prediction; of an interval of NaN it is UNTESTABLE."""
    return word_of_interval(prediction.relation, prediction.bound, prediction.margin, low, high)


def _values(table: pd.DataFrame, network: str, other: str) -> pd.Series | None:
    """Return the values of a network less those of the other one, by unit; None where the table lacks one of them."""
    if (network, other) in table:
        return table[network, other]
    if not {network, other} - {""} <= set(table):
        return None
    return table[network] - table[other] if other else table[network]


def _values_of_new_units(values: pd.Series, units: Sequence[pd.Series]) -> tuple[pd.Series, int]:
    """Return the values of the units that nobody had seen, and 0, where there are at least LEAST_SEEDS of them.

    Otherwise return all values, and how many of them had been seen. `units` says of each network that is compared, unit
    by unit, whether its result was known before the prediction was written. The unit is the last level of the index.
    """
    if not units:
        return values, 0
    marks = [of_network.reindex(values.index, fill_value=False) for of_network in units]
    seen_values = np.logical_or.reduce(marks) & values.notna()
    of_unit = values.index.get_level_values(-1)
    of_seen_units = of_unit.isin(of_unit[seen_values])
    enough = of_unit[values.notna() & ~of_seen_units].nunique() >= LEAST_SEEDS
    return (values[~of_seen_units], 0) if enough else (values, int(seen_values.sum()))


def _row(statistic: Statistic, prediction: Prediction, values: pd.Series, level: float) -> dict[str, object]:
    """Return the row of one prediction of a statistic, as `judge` yields it, from the `values` of its units."""
    network, other = prediction.network, prediction.other
    units = [statistic.seen_units[name] for name in (network, other) if name in statistic.seen_units]
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
    if isinstance(statistic.networks_behind, str):
        model = [str(statistic.setting["model"])] if "model" in statistic.setting else []
        return [f"{statistic.networks_behind}/{name}" for name in columns] if statistic.networks_behind else model
    return [*dict.fromkeys(name for column in columns for name in statistic.networks_behind.get(column, ()))]


def table(paper: str, scale: str, rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """Return rows of the judge as a table of checks, with this paper and scale: columns COLUMNS and KEYS."""
    complete = [{"paper": paper, "scale": scale, **row} for row in rows]
    return pd.DataFrame(complete, columns=[*COLUMNS, *KEYS])


def keys(rows: pd.DataFrame) -> pd.Series:
    """Return a text for each row that is the same for rows of the same quantity: their cells in KEYS, a line each."""
    cells = rows[list(KEYS)].astype(object).fillna("")
    return pd.Series(["\n".join(row) for row in cells.itertuples(index=False, name=None)], index=rows.index)


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of checks as people read it, without KEYS and without the column `of`."""
    return table.drop(columns=[*KEYS, "of"], errors="ignore")


def drop_untestable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of checks that have a measurement.

    It is for long runs: what such a run leaves out is not reported as missing a second time.
    """
    return table[table["verdict"] != UNTESTABLE]
