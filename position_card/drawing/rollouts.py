"""Influence of every token position, measured and rolled out: a share of one, beside the uniform profile."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType

from position_card.drawing.looks import REFERENCE, Look
from position_card.drawing.panels import log_ticks
from position_card.drawing.style import SMALLEST

SHARE = "share of influence"
UNIFORM: dict[str, Any] = {"color": REFERENCE, "linestyle": ":", "linewidth": 0.7, "zorder": 0}
MARKS = 5  # of a line, about
INSET = (0.34, 0.57, 0.46, 0.4)  # of a panel: left, bottom, width, height


def uniform(axes: Axes, n: int) -> None:
    """Draw the uniform profile of `n` positions, dotted, with ticks at the first, the middle and the last of them."""
    axes.axhline(1 / n, **UNIFORM)
    axes.set_xticks([0, n // 2, n - 1])


def linear(axes: Axes, parts: int = 3) -> None:
    """Let an axis of shares begin at 0, with ticks at the ends of a few parts."""
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(parts))


def inset(axes: Axes) -> Axes:
    """Return a small panel for the same profiles on a linear scale, where high ends leave room in a panel."""
    small = axes.inset_axes(INSET)
    small.set_xticks([])
    small.tick_params(labelsize=SMALLEST, pad=1, length=2)
    small.text(0.5, 0.5, "linear", transform=small.transAxes, ha="center", va="center", fontsize=SMALLEST)
    return small


def logarithmic(axes: Axes, lowest: float, highest: float | None = None) -> None:
    """Make an axis of shares logarithmic, between these limits."""
    axes.set_yscale("log")
    axes.set_ylim(lowest, highest)
    log_ticks(axes.yaxis)


def line(axes: Axes, profile: pd.DataFrame, colour: ColorType, width: float, dashes: Any = "-") -> None:
    """Draw a profile, with the columns position and value, as a line."""
    axes.plot(profile["position"], profile["value"], color=colour, linewidth=width, linestyle=dashes)


def band(axes: Axes, profile: pd.DataFrame, colour: ColorType) -> None:
    """Draw the intervals of a profile as a band."""
    axes.fill_between(profile["position"], profile["low"], profile["high"], color=colour, alpha=0.25, linewidth=0)


def few_marks(axes: Axes, profile: pd.DataFrame, look: Look, place: int) -> None:
    """Some marks on a profile, which those of another place do not hide."""
    n = len(profile)
    rows = profile.iloc[place * n // 20 :: max(1, n // MARKS)]
    axes.plot(rows["position"], rows["value"], **only_marks(look))


def only_marks(look: Look) -> dict[str, Any]:
    """Return how matplotlib draws the small marks of a look without a line."""
    return {
        "color": look.colour,
        "linestyle": "",
        "marker": look.marker,
        "markerfacecolor": look.inside,
        "markersize": 2.5,
    }


def entries(uniform: str = "uniform") -> list[Line2D]:
    """Return lines of measured, predicted and uniform influence, for a legend."""
    return [
        Line2D([], [], color=REFERENCE, label="measured (d)"),
        Line2D([], [], color=REFERENCE, linestyle="--", linewidth=0.9, label="predicted (b)"),
        uniform_entry(uniform),
    ]


def uniform_entry(label: str = "uniform") -> Line2D:
    """Return the line of the uniform profile, for a legend."""
    return Line2D([], [], label=label, **UNIFORM)
