"""The scorecard as pictures: every claim with its verdict on one page, and a page with the statements of each paper."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from position_bias.drawing.legibility import SMALLEST, TYPE
from position_bias.drawing.looks import REFERENCE, legend, present, wrapped
from position_bias.drawing.looks import VERDICTS as LOOKS
from position_bias.drawing.style import PAGE, TALLEST
from position_bias.verdicts.claim import KINDS, OURS
from position_bias.verdicts.pages import HEADINGS, KIND_NAMES, NOT_COUNTED, as_stated, headings
from position_bias.verdicts.rule import UNTESTABLE, WORDS

LINE = 0.125  # inches from one line to the next, at most
LEGEND = 0.75  # inches that it takes
APART = 0.05  # inches between columns
MARK, TEXT = 0.04, 0.11  # inches from the left of a column
VERDICT, SCALE = 1.36, 0.9  # inches from the right of a column at which these begin; the effect ends there
SIDES = {">": 1, "<": -1}
SCALES = {"test": "toy", "laptop": "default", "longer": "longer", "pretrained": "pretrained", "paper": "paper's"}
TOLD = (
    "Each line: what is claimed, the verdict, the training whose rows give it, and the measured effect beside what it "
    "has to exceed. Filled: at the scale that the claim is about; hollow: at a smaller one."
)


class Line(NamedTuple):
    """What stands in a line: a heading, a claim, or the rest of its words."""

    words: str
    claim: Mapping[str, Any] | None = None
    heading: bool = False


def overview(table: pd.DataFrame) -> Figure:
    """What papers claim, in two columns: by paper and kind, secondary sources last, and by verdict.

    `table` is a scorecard. Claims that we add stand on the pages of single papers.
    """
    lines = [line for block in _blocks(table[table["whose"] != OURS]) for line in block]
    half = (len(lines) + 1) // 2
    label = "What the papers claim, with its verdict, the scale that gives it, and the effect beside its bound"
    return _drawn([lines[:half], lines[half:]], label)


def of_paper(table: pd.DataFrame, paper: str) -> Figure:
    """The claims of one paper as in `overview`, with all that they state. `table` is a scorecard."""
    claims = table[table["paper"] == paper]
    told = claims["item"] + ": " + as_stated(claims)
    lines = [line for block in _blocks(claims.assign(title=told)) for line in block]
    return _drawn([lines], f"The claims of {paper}, each with its verdict")


def _blocks(table: pd.DataFrame) -> Iterator[list[Line]]:
    """A heading and the claims below it, those of one verdict together, in the order of WORDS."""
    order = {whose: place for place, whose in enumerate((*HEADINGS.values(), NOT_COUNTED))}
    rank = {word: place for place, word in enumerate(WORDS)}
    ordered = table.assign(
        heading=headings(table),
        whose_place=headings(table).map(order),
        paper_place=table["paper"].map({paper: place for place, paper in enumerate(table["paper"].unique())}),
        kind_place=table["kind"].map(KINDS.index),
        verdict_place=[rank.get(verdict, 1) for verdict in table["verdict"]],
    ).sort_values(["whose_place", "paper_place", "kind_place", "verdict_place"], kind="stable")
    for (heading, paper, kind), claims in ordered.groupby(["heading", "paper", "kind"], sort=False):
        told = "" if heading == HEADINGS["paper"] else f", {str(heading).removeprefix('claims ')}"
        rows = claims.to_dict("records")
        yield [
            Line(f"{paper}: {KIND_NAMES[str(kind)]}{told}", heading=True),
            *(Line(str(row["title"]), {str(name): value for name, value in row.items()}) for row in rows),
        ]


def effect(claim: Mapping[str, Any]) -> str:
    """The effect of the row that decides beside what it has to exceed; of what is worked out, how many rows hold."""
    if claim["verdict"] == UNTESTABLE:
        return ""
    if claim["form"] == "exact":
        held, rows = claim["rows: holds"], sum(claim[f"rows: {word}"] for word in WORDS)
        return f"{held} of {rows} rows"
    bound, margin, measured = (claim[name] for name in ("bound", "margin", "measured"))
    if claim["relation"] in SIDES:
        return f"{_short(measured)} {claim['relation']} {_short(bound + SIDES[claim['relation']] * margin)}"
    sign = {"=": "=", "!=": "\u2260"}[claim["relation"]]
    return f"{_short(measured)} {sign} {_short(bound) if bound else ''}\u00b1{_short(margin)}"


def _short(number: float) -> str:
    """Two digits at most, without the zero before the point."""
    digits = f"{number:.0e}" if 0 < abs(number) < 1e-3 else f"{number:.2g}" if abs(number) < 10 else f"{number:.0f}"
    return digits.replace("0.", ".", 1) if abs(number) < 1 else digits


def _drawn(columns: Sequence[Sequence[Line]], label: str) -> Figure:
    """Columns of lines, as high as a page at most."""
    width = PAGE / len(columns)
    room = width - APART - TEXT - VERDICT - 0.04
    wide = [[part for line in column for part in _parts(line, room)] for column in columns]
    height = max(map(len, wide))
    inches = min(LINE * height, TALLEST - LEGEND)
    figure, row = plt.subplots(
        1, len(columns), figsize=(PAGE, inches + LEGEND), squeeze=False, label=label, gridspec_kw={"wspace": 0}
    )
    for axes, lines in zip(row[0], wide, strict=True):
        axes.set_axis_off()
        axes.set(xlim=(0, width), ylim=(height, 0))
        for place, line in enumerate(lines):
            _write(axes, place + 0.5, line, width - APART)
    words = {str(line.claim["verdict"]) for column in columns for line in column if line.claim}
    legend(figure, [_mark(verdict, settled=True) for verdict in present(words, LOOKS)], title=TOLD)
    return figure


def _parts(line: Line, inches: float) -> Iterator[Line]:
    """The line, and its further words below it where it is too long."""
    first, *others = wrapped(line.words, inches * TYPE / SMALLEST if line.claim else PAGE)
    yield line._replace(words=first)
    yield from (Line(f"\N{EM SPACE}{words}") for words in others)


def _write(axes: Axes, at: float, line: Line, right: float) -> None:
    small: dict[str, Any] = {"va": "center_baseline", "fontsize": SMALLEST}
    axes.text(0 if line.heading else TEXT, at, line.words, fontweight="bold" if line.heading else "normal", **small)
    if line.claim:
        mark = _mark(line.claim["verdict"], bool(line.claim["settled"]))
        mark.set_data([MARK], [at])
        axes.add_line(mark)
        untestable = line.claim["verdict"] == UNTESTABLE
        axes.text(right - VERDICT, at, line.claim["verdict"].removesuffix(" here"), **small)
        scale = "" if untestable or line.claim["needs"] == "nothing" else SCALES[line.claim["scale"]]
        axes.text(right - SCALE, at, scale, color=REFERENCE, **small)
        axes.text(right, at, effect(line.claim), ha="right", **small)


def _mark(verdict: str, settled: bool) -> Line2D:
    """The mark of a verdict: filled where it is settled, its outline alone where it is not."""
    look = LOOKS[verdict]
    mark: dict[str, Any] = {"markeredgecolor": "0.3", "markeredgewidth": 0.4}
    if not settled:
        mark = {"markeredgecolor": look.colour, "markeredgewidth": 0.8, "markerfacecolor": "white"}
    return look.entry(linestyle="", markersize=3.8, **mark)
