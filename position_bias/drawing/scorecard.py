"""The scorecard as a picture: every claim of every paper on one page, with its verdict and how settled it is."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from position_bias.drawing.looks import Look, legend
from position_bias.drawing.style import PAGE
from position_bias.verdicts.scorecard import HEADINGS, VERDICTS, as_stated

LINE = 0.145  # inches a claim
LOOKS = {
    "holds": Look("holds", "#0173b2", "o"),
    "fails": Look("fails", "#d55e00", "X"),
    "not separable": Look("not separable", "#949494", "s"),
    "not testable here": Look("no data at any scale", "white", "D"),
}
COUNTED = VERDICTS[:3]  # rows that hold, fail and are open


def scorecard(table: pd.DataFrame) -> Figure:
    """A panel a paper, two in a row, in it the paper's own claims apart from those of others and those that we add.

    `table` is a scorecard. A mark is filled where the verdict is settled, and hollow where it is seen at a smaller
    scale than the claim is about. The numbers are of the rows of checks that hold, fail and are not separable.
    """
    papers = {str(paper): rows for paper, rows in table.groupby("paper", sort=False)}
    names = list(papers)
    pairs = [names[i : i + 2] for i in range(0, len(names), 2)]
    heights = [max(_lines(papers[name]) for name in pair) + 1.5 for pair in pairs]
    figure, grid = plt.subplots(
        len(pairs), 2, figsize=(1.9 * PAGE, LINE * sum(heights) + 0.35), height_ratios=heights, squeeze=False
    )
    for row, pair, height in zip(grid, pairs, heights, strict=True):
        for axes in row:
            axes.set_axis_off()
        for axes, name in zip(row, pair, strict=False):
            _claims(axes, papers[name], height)
            settled = int(papers[name]["settled"].astype(bool).sum())
            axes.set_title(f"{name}: {settled} of {len(papers[name])} settled", loc="left", fontweight="bold")
    legend(figure, [*(_mark(verdict, True) for verdict in LOOKS), _smaller_scale()])
    return figure


def _lines(claims: pd.DataFrame) -> int:
    """Lines of a panel: one a claim, and a heading for each kind of claim."""
    return len(claims) + claims["whose"].nunique()


def _claims(axes: Axes, claims: pd.DataFrame, height: float) -> None:
    """Headings and a line a claim, from the top down."""
    axes.set(xlim=(0, 1), ylim=(height - 1, -0.7))
    line = 0
    for whose, of_whose in claims.groupby("whose", sort=False):
        axes.text(0, line, HEADINGS[str(whose)], fontsize=6.5, fontstyle="italic", va="center", color="0.3")
        for claim, statement in zip(of_whose.to_dict("records"), as_stated(of_whose), strict=True):
            line += 1
            mark = _mark(claim["verdict"], bool(claim["settled"]))
            mark.set_data([0.015], [line])
            axes.add_line(mark)
            axes.text(0.04, line, statement, fontsize=6.5, va="center")
            rows = "/".join(str(claim[f"rows: {verdict}"]) for verdict in COUNTED)
            axes.text(0.865, line, rows, fontsize=6, va="center", ha="right", color="0.3")
            axes.text(1, line, claim["item"], fontsize=6, va="center", ha="right", color="0.45")
        line += 1


def _mark(verdict: str, settled: bool) -> Line2D:
    """The mark of a verdict: filled where it is settled, its outline alone where it is not."""
    look = LOOKS[verdict]
    edge = "0.3" if settled else "0.6" if look.colour == "white" else look.colour
    face = look.colour if settled else "white"
    return Line2D(
        [],
        [],
        marker=look.marker,
        linestyle="none",
        markersize=5,
        markerfacecolor=face,
        markeredgecolor=edge,
        markeredgewidth=0.5 if settled else 0.9,
        label=look.name,
    )


def _smaller_scale() -> Line2D:
    hollow = _mark("not separable", False)
    hollow.set(label="hollow: seen at a smaller scale; numbers: rows that hold/fail/are not separable")
    return hollow
