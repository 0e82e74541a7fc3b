"""The scorecard as pictures: every claim of every paper with its verdict, on one page; and a page for each paper."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from position_bias.drawing.looks import REFERENCE, legend, wrapped
from position_bias.drawing.looks import VERDICTS as LOOKS
from position_bias.drawing.style import PAGE
from position_bias.verdicts.pages import as_stated, headings
from position_bias.verdicts.scorecard import VERDICTS

LINE = 0.125  # inches from one line to the next
COLUMNS = 4  # of the overview, at most
HEADING = 1.5  # lines of the name of a paper
LEGEND = 0.55  # inches that it takes
MARK, TEXT = 0.05, 0.14  # inches from the left of a column
NUMBERS = 0.6  # inches that the numbers of rows take at the right of a column
APART = 0.1  # inches between two columns
COUNTED = VERDICTS[:3]  # rows that hold, fail and are open
STATED = 6.0  # inches of a column with the whole statements
TOLD = (
    "filled: settled; hollow: seen at a smaller scale than the claim is about; "
    "numbers: comparisons that hold/fail/are not separable"
)


def overview(table: pd.DataFrame) -> Figure:
    """Papers in four columns, and a line for each claim, by the place in the paper where the claim stands.

    `table` is a scorecard. A mark is filled where the verdict is settled, and hollow where it is seen at a smaller
    scale than the claim is about. The numbers are of the rows of checks that hold, fail and are not separable.
    """
    papers = {str(paper): claims for paper, claims in table.groupby("paper", sort=False)}
    width = PAGE / min(COLUMNS, len(papers)) - APART
    lines = {paper: list(_lines(claims, claims["item"], width)) for paper, claims in papers.items()}
    columns: list[dict[str, Lines]] = [{} for _ in range(min(COLUMNS, len(papers)))]
    for paper in papers:  # below the shortest column, the first of them where they are alike
        min(columns, key=_height)[_heading(paper, papers[paper])] = lines[paper]
    return _drawn(columns, width, "The claims of every paper, by their place in it, each with its verdict")


def of_paper(table: pd.DataFrame, paper: str) -> Figure:
    """The claims of one paper in full, and their verdicts as in `overview`: the paper's own, those of others, and ours.

    `table` is a scorecard.
    """
    claims = table[table["paper"] == paper]
    told = claims["item"] + ": " + as_stated(claims)
    label = f"The claims of {paper}, each with its verdict"
    return _drawn([{_heading(paper, claims): list(_lines(claims, told, STATED))}], STATED, label)


Lines = list[tuple[str, Mapping[str, Any] | None]]  # what stands in each, and the claim whose mark stands beside it


def _lines(claims: pd.DataFrame, told: pd.Series, width: float) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """What stands below the name of a paper: headings, and claims wrapped to the width of their column."""
    for heading, below in claims.groupby(headings(claims), sort=False):
        for words in wrapped(str(heading), width):
            yield words, None
        for claim, text in zip(below.to_dict("records"), told[below.index], strict=True):
            first, *others = wrapped(text, width - TEXT - NUMBERS)
            yield first, {str(name): value for name, value in claim.items()}
            yield from ((f"\N{EM SPACE}{words}", {}) for words in others)


def _heading(paper: str, claims: pd.DataFrame) -> str:
    counted = claims[~claims["doubted"].astype(bool)]
    return f"{paper}: {int(counted['settled'].astype(bool).sum())} of {len(counted)} settled"


def _height(column: Mapping[str, Lines]) -> float:
    """Lines that the papers of a column take."""
    return sum(HEADING + len(lines) for lines in column.values())


def _drawn(columns: Sequence[Mapping[str, Lines]], width: float, label: str) -> Figure:
    """Columns of `width` inches, of papers one below the other."""
    height = max(map(_height, columns))
    figure, row = plt.subplots(
        1, len(columns), figsize=(PAGE, LINE * height + LEGEND), squeeze=False, label=label, gridspec_kw={"wspace": 0}
    )
    for axes, column in zip(row[0], columns, strict=True):
        axes.set_axis_off()
        axes.set(xlim=(0, PAGE / len(columns)), ylim=(height, 0))
        top = 0.0
        for heading, lines in column.items():
            axes.text(0, top + HEADING / 2, heading, fontweight="bold", va="center_baseline")
            top += HEADING
            for words, claim in lines:
                _line(axes, top + 0.5, words, claim, width)
                top += 1
    legend(figure, [_mark(verdict, settled=True) for verdict in LOOKS], title=TOLD)
    return figure


def _line(axes: Axes, at: float, words: str, claim: Mapping[str, Any] | None, width: float) -> None:
    """A heading, where there is no claim; else words, and beside those of a new claim its mark and numbers of rows."""
    if claim is None:
        axes.text(0, at, words, fontstyle="italic", va="center_baseline")
        return
    axes.text(TEXT, at, words, va="center_baseline")
    if claim:
        mark = _mark(claim["verdict"], bool(claim["settled"]))
        mark.set_data([MARK], [at])
        axes.add_line(mark)
        rows = "/".join(str(claim[f"rows: {verdict}"]) for verdict in COUNTED)
        axes.text(width, at, rows, va="center_baseline", ha="right", color=REFERENCE)


def _mark(verdict: str, settled: bool) -> Line2D:
    """The mark of a verdict: filled where it is settled, its outline alone where it is not."""
    look = LOOKS[verdict]
    mark: dict[str, Any] = {"markeredgecolor": "0.3", "markeredgewidth": 0.5}
    if not settled:
        mark = {"markeredgecolor": look.colour, "markeredgewidth": 0.9, "markerfacecolor": "white"}
    return look.entry(linestyle="", markersize=4.5, **mark)
