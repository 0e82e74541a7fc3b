"""The scorecard as a picture: every claim of every paper on one page, with its verdict."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.drawing.looks import Look, legend
from position_bias.drawing.style import PAGE
from position_bias.verdicts.scorecard import as_stated

LINE = 0.145  # inches a claim
LOOKS = {
    "holds": Look("holds", "#0173b2", "o"),
    "fails": Look("fails", "#d55e00", "X"),
    "not separable": Look("not separable", "#949494", "s"),
    "not testable here": Look("not testable here", "white", "o"),
}


def scorecard(table: pd.DataFrame) -> Figure:
    """A panel a paper, two in a row. `table` has columns paper, item, statement, whose and verdict, a row a claim."""
    papers = {str(paper): rows for paper, rows in table.groupby("paper", sort=False)}
    names = list(papers)
    pairs = [names[i : i + 2] for i in range(0, len(names), 2)]
    heights = [max(len(papers[name]) for name in pair) + 1.5 for pair in pairs]
    figure, grid = plt.subplots(
        len(pairs), 2, figsize=(1.8 * PAGE, LINE * sum(heights) + 0.35), height_ratios=heights, squeeze=False
    )
    for row, pair, height in zip(grid, pairs, heights, strict=True):
        for axes in row:
            axes.set_axis_off()
        for axes, name in zip(row, pair, strict=False):
            _claims(axes, papers[name], height)
            held = int((papers[name]["verdict"] == "holds").sum())
            axes.set_title(f"{name}: {held} of {len(papers[name])} hold", loc="left", fontweight="bold")
    marks = [look.mark(linestyle="none", markeredgecolor="0.3", markeredgewidth=0.5) for look in LOOKS.values()]
    legend(figure, marks)
    return figure


def _claims(axes: Axes, claims: pd.DataFrame, height: float) -> None:
    """A line a claim, from the top down."""
    axes.set(xlim=(0, 1), ylim=(height - 1, -0.7))
    lines = zip(claims["item"], as_stated(claims), claims["verdict"], strict=True)
    for line, (item, statement, verdict) in enumerate(lines):
        look = LOOKS[verdict]
        axes.plot(0.015, line, look.marker, color=look.colour, markersize=5, markeredgecolor="0.3", markeredgewidth=0.5)
        axes.text(0.045, line, statement, fontsize=6.5, va="center")
        axes.text(1, line, item, fontsize=5.5, va="center", ha="right", color="0.45")
