"""What the text of Herasimchyk et al. 2026 says of its own printed distances (Appendix C.3).

Nothing here was measured by us. The text at hand has lost the columns of (a) in Tables 3 and 4, and we read the six
numbers of a row as (b) and (c) on the three data sets. Statistics were chosen after the tables had been typed. A
distance is printed to .01, and intervals reach as far as this rounding allows.
"""

from collections.abc import Iterator

import pandas as pd

from position_bias.structural.checks import PRINTED
from position_bias.verdicts.verdict import Prediction, exact_row, row, table

LARGER = ("mpt-30b", "bloom-176b")  # the larger models that Appendix C.3 names
MORE, CLOSER = Prediction(">", 0), Prediction("<", 0, PRINTED)
READING = "Appendix C.3, against the printed tables as we read them"


def checks(printed: pd.DataFrame, scale: str) -> pd.DataFrame:
    """Verdicts in the schema of `verdict.COLUMNS`; `printed` has the columns table, dataset, model, variant, value."""
    short, long = (_cells(printed[printed["table"] == name]) for name in ("table3", "table4"))
    return table("structural", scale, [*_content(short), *_size(short), *_longer(long)])


def _cells(printed: pd.DataFrame) -> pd.DataFrame:
    """Distances of (b) and (c) to measured influence: models and data sets down."""
    return printed.pivot(index=["model", "dataset"], columns="variant", values="value")[["b", "c"]]


def _share(cells: pd.DataFrame, one: str, other: str) -> float:
    """The share of cells where `one` is printed closer, less that where `other` is."""
    return float((cells[one] < cells[other]).mean() - (cells[other] < cells[one]).mean())


def _content(cells: pd.DataFrame) -> Iterator[dict[str, object]]:
    """At 256 tokens content refines the fit, in larger models above all."""
    claim, item = "structural-printed-content", "Table 3, printed"
    name = "share of cells where (c) is closer, less that where (b) is"
    larger = cells.index.get_level_values("model").isin(LARGER)
    advantage = _share(cells[larger], "c", "b") - _share(cells[~larger], "c", "b")
    yield exact_row(claim, item, f"{name}; {len(cells)} cells", MORE, _share(cells, "c", "b"), READING)
    yield exact_row(claim, item, f"{name}; larger models - the others", MORE, advantage, READING)


def _size(cells: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Agreement is particularly pronounced for larger models."""
    larger = cells.index.get_level_values("model").isin(LARGER)
    for variant in ("b", "c"):
        less = float(cells.loc[larger, variant].mean() - cells.loc[~larger, variant].mean())
        quantity = f"mean printed distance of ({variant}), larger models - the others; interval of rounding"
        interval = less - 2 * PRINTED, less + 2 * PRINTED
        claim, item = "structural-printed-size", "Table 3, printed"
        yield row(claim, item, quantity, CLOSER, less, interval, len(cells), READING)


def _longer(cells: pd.DataFrame) -> Iterator[dict[str, object]]:
    """At the longer length (b) is the closest on most models and data sets; the column of (a) is lost."""
    quantity = f"share of cells where (b) is closer, less that where (c) is; {len(cells)} cells"
    claim, item = "structural-printed-long", "Table 4, printed"
    yield exact_row(claim, item, quantity, MORE, _share(cells, "b", "c"), READING)
