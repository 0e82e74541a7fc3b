"""The scorecard as pictures: every claim with its verdict on one page, and a page with the statements of each paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from position_bias.drawing.looks import REFERENCE, legend, present, width, wrapped
from position_bias.drawing.looks import VERDICTS as LOOKS
from position_bias.drawing.panels import panels
from position_bias.drawing.style import PAGE, SMALLEST, TALLEST
from position_bias.verdicts.claim import KINDS, OURS, SEED
from position_bias.verdicts.pages import COUNTED, HEADINGS, KIND_NAMES, NOT_COUNTED, as_stated, headings
from position_bias.verdicts.rule import (
    FAILS,
    HOLDS,
    LEAST_SEEDS,
    NO_EFFECT,
    UNDECIDED,
    UNTESTABLE,
    WORDS,
    word_of_interval,
)

LINE, ABOVE = 0.125, 0.4  # inches from one line to the next, at most; lines that are left free above a heading
LEGEND = 1.2  # inches that title, marks and explanation take at most
APART, AFTER, GAP = 0.06, 0.06, 0.05  # inches between columns of claims, after words, and between what stands beside
MARK, TEXT = 0.04, 0.1  # inches from the left of a column
THIN = "\N{THIN SPACE}"
SIDES = {">": 1, "<": -1}
SCALES = {"test": "toy", "laptop": "default", "longer": "longer", "pretrained": "small", "paper": "paper's"}
PAPERS = {
    "structural": "Herasimchyk 2026",
    "emergence": "Wu 2025",
    "layernorm": "Kim 2026",
    "postnorm": "Zsamboki 2025",
}
TOLD = (
    "Beside each claim: its verdict, the scale that gives it, and "
    "the measured effect with what it has to exceed. A row is one comparison; it decides nothing where it was not run "
    f"(missing), has fewer than {LEAST_SEEDS} seeds, or was seen before its prediction. Filled: at the scale that the "
    "claim is about; hollow: at a smaller one. Scales, in grey: our short default training, a longer one, small "
    "pretrained decoders, and the paper's own."
)


class Line(NamedTuple):
    """What stands in a line: a heading, a claim, or the rest of its words."""

    words: str
    heading: bool = False
    claim: Mapping[str, Any] | None = None
    places: tuple[float, float] = (0.0, 0.0)  # where its verdict and its scale begin
    found: str = ""  # what ends at the right


def overview(table: pd.DataFrame) -> Figure:
    """What papers claim, in two columns: by paper and kind, secondary sources last, and by verdict.

    `table` is a scorecard. Claims that we add stand on the pages of single papers.
    """
    return _drawn(table[table["whose"] != OURS], "What papers on position bias in transformers claim", columns=2)


def of_paper(table: pd.DataFrame, paper: str) -> Figure:
    """The claims of one paper as in `overview`, with all that they state. `table` is a scorecard."""
    claims = table[table["paper"] == paper]
    told = claims["item"] + ": " + as_stated(claims)
    return _drawn(claims.assign(title=told), f"What {PAPERS.get(paper, paper)} claims", columns=1)


def _drawn(table: pd.DataFrame, claimed: str, columns: int) -> Figure:
    """Claims in columns of lines, as high as a page at most."""
    right = PAGE / columns - APART
    lines = [line for heading, claims in _blocks(table) for line in _lines(heading, claims, right)]
    parts = _in_columns(lines, columns)
    bottoms = [np.cumsum([1 + ABOVE * line.heading for line in column]) for column in parts]
    most = max(bottom[-1] for bottom in bottoms)
    label = f"{claimed}. {_counts(table[~table['doubted'].astype(bool)])}"
    layout: Any = {"layout": ConstrainedLayoutEngine(w_pad=0), "gridspec_kw": {"wspace": 0}}
    figure, row = panels(label, min(LINE * most, TALLEST - LEGEND), dict.fromkeys(range(columns), ""), **layout)
    for axes, column, bottom in zip(row.values(), parts, bottoms, strict=True):
        axes.set_axis_off()
        axes.set(xlim=(0, right + APART), ylim=(most, 0))
        for line, place in zip(column, bottom - 0.5, strict=True):
            _write(axes, place, line, right)
    marks = [_mark(word, settled=True) for word in present(table["verdict"], LOOKS)]
    legend(figure, marks, settings=TOLD)
    return figure


def _counts(table: pd.DataFrame) -> str:
    """How many claims of each kind have which verdict."""
    told = {kind: table.loc[table["kind"] == kind, "verdict"].value_counts() for kind in KINDS}
    kinds = (
        f"{KIND_NAMES[kind]}: {', '.join(f'{count[word]} {words}' for word, words in COUNTED.items() if word in count)}"
        for kind, count in told.items()
        if len(count)
    )
    return f"Verdicts on {'; '.join(kinds)}."


def _blocks(table: pd.DataFrame) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A heading and the claims below it, those of one verdict together, in the order of WORDS."""
    rank = {word: place for place, word in enumerate(WORDS)}
    ordered = table.assign(
        heading=headings(table),
        paper=pd.Categorical(table["paper"], table["paper"].unique()),
        kind=pd.Categorical(table["kind"], KINDS),
        rank=[rank.get(verdict, 1) for verdict in table["verdict"]],
    ).sort_values("rank", kind="stable")
    for (heading, paper, kind), claims in ordered.groupby(["heading", "paper", "kind"], observed=True):
        told = {HEADINGS["paper"]: "", HEADINGS[OURS]: ", our additions", NOT_COUNTED: ", not counted"}
        rows = [{str(name): value for name, value in row.items()} for row in claims.to_dict("records")]
        named = f"{paper} ({PAPERS[paper]})" if paper in PAPERS else str(paper)
        yield f"{named}: {KIND_NAMES[str(kind)]}{told.get(str(heading), ', secondary source')}", rows


def _lines(heading: str, claims: Sequence[Mapping[str, Any]], right: float) -> Iterator[Line]:
    """The lines of claims, whose verdicts, scales and effects take no more room than the widest of them needs."""
    yield Line(heading, heading=True)
    found = [left_open(claim) if claim["verdict"] == UNDECIDED else effect(claim) for claim in claims]
    scales, verdicts = _widest(map(_scale, claims)), _widest(map(_verdict, claims))
    inline = right - _widest(found) - scales - verdicts > right / 2  # what is undecided has else a line of its own
    beside = found if inline else [effect(claim) if claim["verdict"] != UNDECIDED else "" for claim in claims]
    scale_place = right - _widest(beside) - scales
    place = min(scale_place - _widest(_verdict(each) for each in claims if effect(each)), right - verdicts)
    for claim, text, shown in zip(claims, found, beside, strict=True):
        first, *rest = wrapped(str(claim["title"]), place - TEXT - AFTER, SMALLEST)
        yield Line(first, claim=claim, places=(place, scale_place), found=shown)
        later = "" if text == shown else text
        if later and (not rest or TEXT + width(f"\N{EM SPACE}{rest[-1]}{later}", SMALLEST) + GAP > right):
            rest.append("")
        yield from (Line(f"\N{EM SPACE}{words}") for words in rest[:-1])
        yield from (Line(f"\N{EM SPACE}{words}" if words else "", found=later) for words in rest[-1:])


def _widest(texts: Iterable[str]) -> float:
    """Inches that the widest of some texts takes, with the gap beside it; 0 where all are empty."""
    return max((width(text, SMALLEST) + GAP for text in texts if text), default=0.0)


def _in_columns(lines: Sequence[Line], columns: int) -> list[list[Line]]:
    """Lines in columns of about one length; where a kind of claims is cut, its heading stands above the rest again."""
    length = -(-len(lines) // columns)
    parts = [list(lines[start : start + length]) for start in range(0, len(lines), length)]
    for before, after in pairwise(parts):
        while not (after[0].heading or after[0].claim):
            before.append(after.pop(0))  # the rest of a claim
        if before[-1].heading:
            after.insert(0, before.pop())
        if not after[0].heading:
            heading = next(line for line in reversed(before) if line.heading)
            after.insert(0, heading._replace(words=f"{heading.words}, continued"))
    return parts


def _write(axes: Axes, place: float, line: Line, right: float) -> None:
    """Write a line at this height."""
    small: dict[str, Any] = {"va": "center_baseline", "fontsize": SMALLEST}
    axes.text(0 if line.heading else TEXT, place, line.words, fontweight="bold" if line.heading else "normal", **small)
    if line.claim:
        mark = _mark(line.claim["verdict"], bool(line.claim["settled"]))
        mark.set_data([MARK], [place])
        axes.add_line(mark)
        verdict, scale = line.places
        axes.text(verdict, place, _verdict(line.claim), **small)
        axes.text(scale, place, _scale(line.claim), color=REFERENCE, **small)
    if line.found:
        axes.text(right, place, line.found, ha="right", **small)


def _mark(verdict: str, settled: bool) -> Line2D:
    """The mark of a verdict: filled where it is settled, its outline alone where it is not."""
    look = LOOKS[verdict]
    mark: dict[str, Any] = {"markeredgecolor": "0.3", "markeredgewidth": 0.4}
    if not settled:
        mark = {"markeredgecolor": look.colour, "markeredgewidth": 0.8, "markerfacecolor": "white"}
    return look.entry(linestyle="", markersize=3.8, **mark)


def _verdict(claim: Mapping[str, Any]) -> str:
    return str(claim["verdict"]).removesuffix(" here")


def _scale(claim: Mapping[str, Any]) -> str:
    """What the training is called whose rows give a verdict; nothing where any would."""
    return "" if claim["verdict"] == UNTESTABLE or claim["needs"] == "nothing" else SCALES[claim["scale"]]


def left_open(claim: Mapping[str, Any]) -> str:
    """Why a claim is undecided, where the interval of its effect alone does not show it, and this effect."""
    missing, rows = claim[f"rows: {UNTESTABLE}"], sum(claim[f"rows: {word}"] for word in WORDS)
    why = [f"{claim['n']} seeds"] if claim["unit"] == SEED and claim["n"] < LEAST_SEEDS else []
    why += [f"{missing} of {rows} rows missing"] if missing else []
    why += ["seen before"] if claim["seen_before"] else []
    numbers = [claim[name] for name in ("bound", "margin", "low", "high")]
    if not why and word_of_interval(claim["relation"], *numbers) != UNDECIDED:
        opened, held = claim[f"rows: {UNDECIDED}"], claim[f"rows: {HOLDS}"]
        why = [f"{opened} of {rows} rows open" if opened else f"only {held} of {rows} rows hold"]
    return ": ".join([*filter(None, [", ".join(why)]), effect(claim)])


def effect(claim: Mapping[str, Any]) -> str:
    """The effect of the row that decides beside what it has to exceed; of what is worked out, how many rows hold.

    Of what is undecided, it has its interval.
    """
    if claim["verdict"] == UNTESTABLE:
        return ""
    if claim["form"] == "exact" and claim["verdict"] != UNDECIDED:
        held, rows = claim["rows: holds"], sum(claim[f"rows: {word}"] for word in WORDS)
        return f"{held} of {rows} rows"
    bound, margin = claim["bound"], claim["margin"]
    measured = _short(claim["measured"])
    if claim["verdict"] == UNDECIDED:
        measured += f" [{_short(claim['low'])}, {_short(claim['high'])}]"
    measured += " not" if claim["verdict"] in (FAILS, NO_EFFECT) else ""
    if claim["relation"] in SIDES:
        return f"{measured}{THIN}{claim['relation']}{THIN}{_short(bound + SIDES[claim['relation']] * margin)}"
    sign = {"=": "=", "!=": "\u2260"}[claim["relation"]]
    return f"{measured}{THIN}{sign}{THIN}{_short(bound) if bound else ''}\u00b1{_short(margin)}"


def _short(number: float) -> str:
    """Two digits at most, without zeros that say nothing."""
    if 0 < abs(number) < 1e-3:
        return f"{number:.0e}".replace("e-0", "e-")
    digits = f"{number:.2g}" if abs(number) < 10 else f"{number:.0f}"
    return digits.replace("0.", ".", 1) if abs(number) < 1 else digits
