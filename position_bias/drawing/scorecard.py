"""The scorecard as a picture: every claim of every paper with its verdict and how settled it is, on one page."""

from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from position_bias.drawing.looks import REFERENCE, legend, wrapped
from position_bias.drawing.looks import VERDICTS as LOOKS
from position_bias.drawing.style import PAGE
from position_bias.verdicts.scorecard import HEADINGS, VERDICTS, as_stated

LABEL = "The claims of every paper, each with its verdict"
LINE = 0.111  # inches from one line to the next
APART = 0.2  # lines between two claims
HEADING = 2.0  # lines of the name of a paper
MARK, TEXT, WIDTH, ROWS = 0.05, 0.14, 2.65, 3.3  # inches from the left of a column, and those that text may take
COUNTED = VERDICTS[:3]  # rows that hold, fail and are open
TOLD = (
    "filled: settled; hollow: seen at a smaller scale than the claim is about; "
    "numbers: rows of checks that hold/fail/are not separable"
)


def scorecard(table: pd.DataFrame) -> Figure:
    """Papers in two columns, in each the paper's own claims apart from those of others and those that we add.

    `table` is a scorecard. A mark is filled where the verdict is settled, and hollow where it is seen at a smaller
    scale than the claim is about. The numbers are of the rows of checks that hold, fail and are not separable.
    """
    told = [f"{item}: {statement}" for item, statement in zip(table["item"], as_stated(table), strict=True)]
    table = table.assign(lines=pd.Series([wrapped(text, WIDTH) for text in told], index=table.index))
    papers = {str(paper): claims for paper, claims in table.groupby("paper", sort=False)}
    heights = {paper: _height(claims) for paper, claims in papers.items()}
    columns = _balanced(heights)
    height = max(sum(heights[paper] for paper in column) for column in columns)
    figure, row = plt.subplots(1, 2, figsize=(PAGE, LINE * height + 0.6), label=LABEL)
    for axes, column in zip(row, columns, strict=True):
        axes.set_axis_off()
        axes.set_visible(bool(column))
        axes.set(xlim=(0, PAGE / 2), ylim=(height, 0))
        top = 0.0
        for paper in column:
            settled = int(papers[paper]["settled"].astype(bool).sum())
            heading = f"{paper}: {settled} of {len(papers[paper])} settled"
            axes.text(0, top + HEADING / 2, heading, fontweight="bold", va="center_baseline")
            _claims(axes, papers[paper], top + HEADING)
            top += heights[paper]
    legend(figure, [_mark(verdict, settled=True) for verdict in LOOKS], title=TOLD)
    return figure


def _height(claims: pd.DataFrame) -> float:
    """Lines that a paper takes: its name, a heading for each kind of claim, and the claims."""
    return float(HEADING + claims["whose"].nunique() + (claims["lines"].map(len) + APART).sum())


def _balanced(heights: dict[str, float]) -> list[list[str]]:
    """The names in two columns whose heights differ least; a column keeps the order of the papers."""
    splits = [
        [[name for name, side in zip(heights, sides, strict=True) if side == column] for column in (0, 1)]
        for sides in product((0, 1), repeat=len(heights))
    ]
    return min(splits, key=lambda columns: max(sum(heights[name] for name in column) for column in columns))


def _claims(axes: Axes, claims: pd.DataFrame, line: float) -> None:
    """Headings, and one claim below the other, from a line down."""
    for whose, of_whose in claims.groupby("whose", sort=False):
        axes.text(0, line, HEADINGS[str(whose)], fontstyle="italic", va="center_baseline")
        line += 1
        for claim in of_whose.to_dict("records"):
            mark = _mark(claim["verdict"], bool(claim["settled"]))
            mark.set_data([MARK], [line])
            axes.add_line(mark)
            rows = "/".join(str(claim[f"rows: {verdict}"]) for verdict in COUNTED)
            axes.text(ROWS, line, rows, va="center_baseline", ha="right", color=REFERENCE)
            for below, words in enumerate(claim["lines"]):
                axes.text(TEXT, line + below, words, va="center_baseline")
            line += len(claim["lines"]) + APART


def _mark(verdict: str, settled: bool) -> Line2D:
    """The mark of a verdict: filled where it is settled, its outline alone where it is not."""
    look = LOOKS[verdict]
    mark: dict[str, Any] = {"markeredgecolor": "0.3", "markeredgewidth": 0.5}
    if not settled:
        mark = {"markeredgecolor": look.colour, "markeredgewidth": 0.9, "markerfacecolor": "white"}
    return look.entry(linestyle="", markersize=4.5, **mark)
