"""Panels of a figure, by the names of what they show, and the rows of a table that each curve in them shows."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.drawing.looks import Look, present
from position_bias.drawing.style import PAGE


def panels(
    label: str,
    height: float,
    titles: Mapping[Any, str],
    rows: Mapping[Any, str] | None = None,
    *,
    x: str | Mapping[Any, str] = "",
    y: str | Mapping[Any, str] = "",
    width: float = PAGE,
    **layout: Any,
) -> tuple[Figure, dict[Any, Axes]]:
    """Make a figure with a panel for each name in `titles`; with `rows`, one for each pair of a row and a title.

    `x` labels the axes below the last row, and `y` that of the first column; both take labels of columns by name. Texts
    of `rows` stand above the labels of the first column. `layout` is what else `plt.subplots` takes.
    """
    texts = {"": ""} if rows is None else rows
    figure, grid = plt.subplots(len(texts), len(titles), figsize=(width, height), squeeze=False, label=label, **layout)
    below = x if isinstance(x, Mapping) else dict.fromkeys(titles, x)
    beside = y if isinstance(y, Mapping) else dict(zip(titles, [y], strict=False))
    for text, row in zip(texts.values(), grid, strict=True):
        for name, axes in zip(titles, row, strict=True):
            axes.set_ylabel(beside.get(name, ""))
        row[0].set_ylabel("\n".join(filter(None, (text, row[0].get_ylabel()))))
    for name, above, last in zip(titles, grid[0], grid[-1], strict=True):
        above.set_title(titles[name])
        last.set_xlabel(below.get(name, ""))
    names = titles if rows is None else product(rows, titles)
    return figure, dict(zip(names, grid.flat, strict=True))


def curves(table: pd.DataFrame, column: str, looks: Mapping[Any, Look]) -> Iterator[tuple[Any, Look, pd.DataFrame]]:
    """Yield each name that occurs in a column, its look and its rows, in the order of `looks`."""
    for name, look in present(table[column], looks).items():
        yield name, look, table[table[column] == name]
