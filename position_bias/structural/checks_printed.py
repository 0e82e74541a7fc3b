"""What the text of Herasimchyk et al. 2026 says of its own printed distances (Appendix C.3).

Nothing here was measured by us. The text at hand has lost the columns of (a) in Tables 3 and 4, and we read the six
numbers of a row as (b) and (c) on the three data sets. Statistics were chosen after the tables had been typed. A
distance is printed to .01, and intervals reach as far as this rounding allows. Networks are the variants (b) and (c),
and units cells of a table: models and data sets.
"""

from collections.abc import Iterator, Mapping

import pandas as pd

from position_bias.structural.checks import PRINTED
from position_bias.verdicts.judge import Estimate, Statistic, judge, table
from position_bias.verdicts.registry import Predicted

LARGER = ("mpt-30b", "bloom-176b")  # the larger models that Appendix C.3 names


def checks(printed: pd.DataFrame, predictions: Mapping[str, list[Predicted]], scale: str) -> pd.DataFrame:
    """Verdicts in the schema of `judge.COLUMNS`; `printed` has the columns table, dataset, model, variant, value."""
    return table("structural", scale, judge(statistics(printed), predictions))


def statistics(printed: pd.DataFrame) -> Iterator[Statistic]:
    """Distances as printed, at 256 tokens (Table 3) and at the longer length (Table 4)."""
    short, long = (
        printed[printed["table"] == name].pivot(index=["model", "dataset"], columns="variant", values="value")
        for name in ("table3", "table4")
    )
    yield Statistic("printed: closer", short, {"cells": len(short)}, more_often_closer)
    yield Statistic("printed: closer in larger models", short, estimate=more_often_closer_in_larger)
    yield Statistic("printed: distance in larger models", short, estimate=distance_in_larger)
    first = printed[printed["table"] == "table2"].pivot(index=["model", "dataset"], columns="variant", values="value")
    yield Statistic("printed: gain in larger models", first, estimate=distance_in_larger)
    yield Statistic("printed: closer at the longer length", long, {"cells": len(long)}, more_often_closer)


def more_often_closer(cells: pd.Series, predicted: Predicted, level: float) -> Estimate:
    """The share of cells with a difference of distances below 0, less that above; a count, which has no width."""
    return _counted(_closer(cells))


def more_often_closer_in_larger(cells: pd.Series, predicted: Predicted, level: float) -> Estimate:
    """As `more_often_closer`, in larger models less in the others."""
    larger = _larger(cells)
    return _counted(_closer(cells[larger]) - _closer(cells[~larger]))


def distance_in_larger(cells: pd.Series, predicted: Predicted, level: float) -> Estimate:
    """The mean over cells of larger models less that over the others; both may be off by their rounding."""
    larger = _larger(cells)
    less = float(cells[larger].mean() - cells[~larger].mean())
    rounding = 2 * PRINTED * (2 if predicted.relation == ">" else 1)  # a difference is rounded twice
    return Estimate(less, less - rounding, less + rounding, len(cells), known=True)


def _closer(cells: pd.Series) -> float:
    return float((cells < 0).mean() - (cells > 0).mean())


def _larger(cells: pd.Series) -> pd.Series:
    return pd.Series(cells.index.get_level_values("model").isin(LARGER), cells.index)


def _counted(share: float) -> Estimate:
    return Estimate(share, share, share, 1)
