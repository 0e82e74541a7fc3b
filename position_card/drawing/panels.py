"""Panels of a figure, by the names of what they show, the rows of a table that each curve in them shows, and axes.

Axes of layers and logarithmic ones have their ticks by one rule in every figure.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import ceil, floor, log10
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from position_card.drawing.looks import Look, present
from position_card.drawing.style import PAGE

LAYERS_WITH_TICKS = 7  # layers that all have a tick
PARTS = 4  # of an axis of layers between ticks, about
ENOUGH = 3  # labels of a logarithmic axis
OF_A_DECADE = [1], [1, 3], [1, 2, 5]  # places of labels, from the fewest on


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
    y_labels = y if isinstance(y, Mapping) else dict(zip(titles, [y], strict=False))
    for text, row in zip(texts.values(), grid, strict=True):
        for name, axes in zip(titles, row, strict=True):
            axes.set_ylabel(y_labels.get(name, ""))
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


def layer_axis(axes: Axes, layers: Iterable[int]) -> None:
    """Let an axis go from layer 1 to the last of `layers`, both with a tick; a few more between."""
    last = max(layers)
    axes.set_xlim(0.5, last + 0.5)
    axes.set_xticks(range(1, last + 1) if last <= LAYERS_WITH_TICKS else [1, *_multiples(last)])
    axes.set_xlabel("layer")


def _multiples(last: int) -> list[int]:
    """Return multiples of the step that divides `last` into about four parts, or numbers counted back from a prime."""
    steps = [step for step in range(2, last) if last % step == 0]
    if steps:
        step = min(steps, key=lambda step: abs(last / step - PARTS))
        return list(range(step, last + 1, step))
    step = round(last / PARTS)
    return sorted(range(last, step, -step))


def log_ticks(axis: Axis) -> None:
    """Label a logarithmic axis, whose limits are set, so that labels keep apart and there are at least two of them.

    Powers of ten, or else the fewest places of every decade that give three labels; within a small part of a decade,
    two round numbers.
    """
    axis.set_minor_formatter(NullFormatter())
    low, high = sorted(axis.get_view_interval())
    powers = 10.0 ** np.arange(floor(log10(low)), ceil(log10(high)) + 1)
    for places in OF_A_DECADE:
        ticks = np.outer(powers, places).ravel()
        inside = ticks[(low <= ticks) & (ticks <= high)]
        if len(inside) >= ENOUGH:
            break
    else:
        ticks = np.asarray(MaxNLocator(5).tick_values(low, high))
        inside = ticks[(low <= ticks) & (ticks <= high)][[0, -1]]
    if len(places) > 1:
        axis.set_ticks(inside, [f"{tick:g}" for tick in inside])
