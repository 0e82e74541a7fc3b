"""Means over seeds with Student's interval: a line in its band, or marks with bars. One seed has no interval.

Tables have one row per number, with columns seed and value; `at` names the column of the horizontal axis. What one seed
has several numbers of at one place, such as one for each head, is averaged before seeds are.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.typing import ColorType
from numpy.typing import NDArray

from position_card.drawing.looks import Look, side_by_side
from position_card.rollout.statistics import group_means


def by_seed(table: pd.DataFrame, at: str) -> pd.DataFrame:
    """One value for each seed and place: columns `at`, seed and value."""
    return table.groupby([at, "seed"], sort=True)["value"].mean().reset_index()


def over_seeds(table: pd.DataFrame, at: str, level: float) -> pd.DataFrame:
    """Return the mean over seeds at each place, with Student's interval: columns `at`, mean, low, high, n."""
    return group_means(by_seed(table, at), [at], "value", level)


def count_label(table: pd.DataFrame, column: str = "seed") -> str:
    """Say how many seeds, or other things that a column names, a table has: "5 seeds"."""
    return from_to([table[column].nunique()], column)


def from_to(numbers: Iterable[int], unit: str = "") -> str:
    """Write the least and the greatest of numbers of seeds, or of other things: "3 to 5 seeds"."""
    distinct = set(numbers)
    low, high = min(distinct), max(distinct)
    span = f"{low}" if low == high else f"{low} to {high}"
    return f"{span} {unit}{'' if span == '1' else 's'}" if unit else span


def band(axes: Axes, table: pd.DataFrame, at: str, level: float, look: Look, mark_every: int = 0, **line: Any) -> None:
    """Draw a line through the means, in the band of their intervals, with a mark at each place that `mark_every`
    divides.

    `line` is what else it looks like. Marks tell lines apart in print without colours.
    """
    means = over_seeds(table, at, level)
    if means["low"].notna().any():
        axes.fill_between(means[at], means["low"], means["high"], color=look.colour, alpha=0.2, linewidth=0)
    axes.plot(
        means[at],
        means["mean"],
        **line_with_marks(look, np.flatnonzero(means[at] % mark_every == 0) if mark_every else []),
        **line,
    )


def line_with_marks(look: Look, places: Sequence[int] | NDArray[np.intp]) -> dict[str, Any]:
    """Return how matplotlib draws a line with its mark at some of its points, counted from 0."""
    return {
        "color": look.colour,
        "linestyle": look.line,
        "linewidth": look.width,
        "marker": look.marker,
        "markevery": [int(place) for place in places],
        "markersize": 3,
        "markerfacecolor": look.inside,
    }


def marks(axes: Axes, table: pd.DataFrame, at: str, level: float, look: Look, aside: float, **mark: Any) -> None:
    """Draw means as marks with bars, moved by `aside` from their places; `mark` is how else marks and line look."""
    means = over_seeds(table, at, level)
    places = means[at] + aside
    bars = means["low"].notna().to_numpy()
    axes.vlines(places[bars], means["low"][bars], means["high"][bars], color=look.colour, linewidth=0.9, zorder=3)
    style = {"color": look.colour, "marker": look.marker, "markerfacecolor": look.inside, "linestyle": "", **mark}
    axes.plot(places, means["mean"], **{"markersize": 3.5, "zorder": 4, **style})


def dots(axes: Axes, table: pd.DataFrame, at: str, colour: ColorType, aside: float) -> None:
    """Draw every seed as a small mark, moved by `aside` from its place."""
    seeds = by_seed(table, at)
    axes.plot(seeds[at] + aside, seeds["value"], "o", color=colour, markersize=2, markeredgewidth=0, alpha=0.6)


def marks_by(
    axes: Axes,
    table: pd.DataFrame,
    at: str,
    level: float,
    column: str,
    looks: Mapping[str, Look],
    step: float,
    seeds_aside: float | None = None,
    **mark: Any,
) -> None:
    """Draw the `marks` of each name in a column, names side by side, joined by the line of their look.

    `table` has the columns seed, value, `at` (the horizontal axis) and `column`, whose names are the keys of `looks`.
    Marks of two neighbouring names stand `step` apart, in units of the axis. Intervals are of this `level`. Every seed
    is a dot that stands `seeds_aside` from the mark of its mean, if that is given. `mark` is how else marks and lines
    look, for matplotlib; it goes before the look.
    """
    for name, look, aside in side_by_side(looks, step):
        rows = table[table[column] == name]
        marks(axes, rows, at, level, look, aside, **{"linestyle": look.line, "linewidth": look.width, **mark})
        if seeds_aside is not None:
            dots(axes, rows, at, look.colour, aside + seeds_aside)


def error_bars(axes: Axes, at: pd.Series, table: pd.DataFrame, colour: ColorType, **mark: Any) -> None:
    """Draw marks at `measured` with bars from `low` to `high`, of a table that has such columns."""
    below_and_above = np.abs(table[["low", "high"]].to_numpy().T - table["measured"].to_numpy())
    look = {"fmt": "o", "markersize": 2.4, "elinewidth": 0.8, "zorder": 3, **mark}
    axes.errorbar(at, table["measured"], below_and_above, color=colour, **look)


def marks_across(
    axes: Axes, places: Sequence[float] | pd.Series, table: pd.DataFrame, value: str, look: Look, **mark: Any
) -> None:
    """Draw marks at the column `value` of a table, whose rows lie at `places`, with bars from `low` to `high`."""
    style = {"color": look.colour, "marker": look.marker, "markerfacecolor": look.inside, "markersize": 4, **mark}
    axes.hlines(places, table["low"], table["high"], color=look.colour, linewidth=1.2, alpha=mark.get("alpha"))
    axes.plot(table[value], places, linestyle="", **style)
