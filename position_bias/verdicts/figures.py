"""The scorecard as a figure: how many claims of each paper have which verdict, by what they speak of."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.typing import ColorType as Colour

from position_bias.verdicts.pages import KIND_NAMES, VERDICT_HEADINGS
from position_bias.verdicts.registry import KINDS, WHOSE
from position_bias.verdicts.rule import ERRATUM, FAILS, HOLDS, MIXED, MOSTLY, NO_EFFECT, UNDECIDED, UNTESTABLE
from position_card.drawing.looks import AMBER, INDIGO, TAN, VERMILION, VIOLET, legend
from position_card.drawing.style import PAGE, SMALLEST

_, SECONDARY = WHOSE
BAR, HEADING_SPACE = 0.75, 0.3  # lines: the height of a bar, and what is left free above a heading
LINE = 0.165  # inches
PAPERS = {
    "structural": "Herasimchyk et al. 2026",
    "emergence": "Wu et al. 2025",
    "layernorm": "Kim et al. 2026",
    "postnorm": "Zsamboki et al. 2025",
}


COLOURS: dict[str, Colour] = {  # of verdicts, in their order: each is lighter than the one before
    HOLDS: INDIGO,
    MOSTLY: VIOLET,
    FAILS: VERMILION,
    MIXED: TAN,
    ERRATUM: AMBER,
    NO_EFFECT: "0.795",
    UNDECIDED: "0.898",
    UNTESTABLE: "white",
}


def counts(table: pd.DataFrame) -> Figure:
    """Draw a bar for each kind of claim of each paper, whose parts count the verdicts.

    `table` is a scorecard, as `scorecard.scorecard` returns it. Claims that are not counted (column doubted) are left
    out.
    """
    claims = table[~table["doubted"].astype(bool)]
    total = claims["verdict"].value_counts().reindex(list(COLOURS), fill_value=0)
    lines: list[tuple[str, pd.Series | None]] = []  # a heading, which has no bar, and the kinds of claims below it
    for paper, of_paper in claims.groupby("paper", sort=False):
        lines.append((_heading(str(paper), of_paper), None))
        for kind in KINDS:
            if len(of_kind := of_paper.loc[of_paper["kind"] == kind, "verdict"]):
                lines.append((f"{KIND_NAMES[kind]}: {len(of_kind)}", of_kind.value_counts()))
    papers = claims["paper"].nunique()
    label = f"Of {len(claims)} claims of {papers} papers {total[HOLDS]} hold, {total[MOSTLY]} mostly hold, "
    label += f"{total[FAILS]} fail and {total[UNDECIDED]} are undecided"
    places = np.arange(len(lines)) + HEADING_SPACE * np.cumsum([count is None for _, count in lines])
    figure, axes = plt.subplots(figsize=(PAGE, LINE * places[-1] + 0.4), label=label)
    axes.set_yticks(places, [name for name, _ in lines])
    axes.tick_params(axis="y", length=0)
    for place, (_, count), name in zip(places, lines, axes.get_yticklabels(), strict=True):
        if count is None:
            name.set_fontweight("bold")
        else:
            _bar(axes, place, count)
    axes.set(ylim=(places[-1] + 0.5, places[0] - 0.5), xlabel="number of claims")
    entries = [
        Patch(label=VERDICT_HEADINGS[word], **_filled(colour)) for word, colour in COLOURS.items() if total[word]
    ]
    settings = (
        f"n = {len(claims)} claims. {claims['settled'].sum()} are decided at the scale that they are about. "
        "Our additions, and claims that are not counted, are not shown."
    )
    legend(figure, entries, settings=settings)
    return figure


def _heading(paper: str, claims: pd.DataFrame) -> str:
    """What a paper is called, and whether it is known from what others write of it."""
    origin = ", from secondary sources" if (claims["whose"] == SECONDARY).all() else ""
    return f"{PAPERS.get(paper, paper)}{origin}"


def _bar(axes: Axes, place: float, count: pd.Series) -> None:
    """One bar, with the number of claims written on each of its parts."""
    start = 0
    for word, colour in COLOURS.items():
        if number := int(count.get(word, 0)):
            axes.barh(place, number, BAR, start, **_filled(colour))
            text_style: dict[str, Any] = {
                "color": "white" if word in (HOLDS, MOSTLY, FAILS) else "black",
                "fontsize": SMALLEST,
            }
            axes.text(start + number / 2, place, f"{number}", ha="center", va="center_baseline", **text_style)
            start += number


def _filled(colour: Colour) -> dict[str, Any]:
    """How matplotlib draws a part of a bar; a white one has an edge that shows."""
    return {"facecolor": colour, "edgecolor": "0.4" if colour == "white" else "white", "linewidth": 0.5}
