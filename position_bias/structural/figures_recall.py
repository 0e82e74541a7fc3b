"""Recall of pretrained decoders by place.

Our addition to Herasimchyk et al. 2026. Values are over their mean in the middle half of the context.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.language_models.names import shown_name
from position_bias.verdicts.registry import PRETRAINED
from position_card.drawing.intervals import error_bars, from_to
from position_card.drawing.looks import MEASURES, REFERENCE, Look, legend, side_by_side
from position_card.drawing.panels import panels
from position_card.drawing.shown import draws
from position_card.drawing.style import COLUMN, PAGE

MARKS = "os^Dv"  # of lengths of a context, the shortest first
ASIDE = 0.2  # eighths between the marks of two lengths
MIDDLE = (2.5, 6.5)  # eighths from where to where the middle half goes
TOO_LITTLE = "recalls too little"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last")


def recall(profiles: pd.DataFrame) -> Figure:
    """Draw recall in each eighth of the context over its middle half: a panel a decoder, a mark a length of context.

    `profiles` have the columns `recall.PROFILES`. Bars are bootstrap intervals over contexts. The middle half is
    shaded. The title says of which decoders places cannot be compared, since they recall too little.
    """
    models = {model: shown_name(model) for model in profiles["model"]}
    looks = {
        n: Look(f"{n} tokens", MEASURES["recall"].colour, MARKS[place % len(MARKS)], "", filled=place % 2 == 1)
        for place, n in enumerate(sorted(profiles["n"].unique()))
    }
    width = COLUMN if len(models) == 1 else PAGE
    label, y = _finding(profiles), "probability of the right word\nover the middle half"
    figure, row = panels(label, 2.1, models, x="eighth of the context", y=y, width=width, sharey=True)
    for model, axes in row.items():
        _by_length(axes, profiles[profiles["model"] == model], looks)
    entries = [look.entry() for look in looks.values()]
    legend(figure, entries, settings=f"{from_to(profiles['contexts'], 'context')} of each length")
    draws(figure, models, PRETRAINED)
    return figure


def _by_length(axes: Axes, profiles: pd.DataFrame, looks: dict[int, Look]) -> None:
    """The marks of one decoder, those of its lengths side by side."""
    axes.axvspan(*MIDDLE, color="0.94", linewidth=0, zorder=0)
    axes.axhline(1, color=REFERENCE, linestyle=":", linewidth=0.7)
    for n, look, aside in side_by_side(looks, ASIDE):
        rows = profiles[profiles["n"] == n].rename(columns={"value": "measured"})
        style = {"fmt": look.marker, "markersize": 3.5, "markerfacecolor": look.inside}
        error_bars(axes, rows["eighth"] + aside, rows, look.colour, **style)
    axes.set(xlim=(0.5, 8.5), xticks=range(1, 9), xticklabels=["first", *map(str, range(2, 8)), "last"])
    axes.tick_params(axis="x", length=0)


def _finding(profiles: pd.DataFrame) -> str:
    """Which eighth of its longest contexts each decoder recalls best."""
    sentences = []
    for model in map(str, profiles["model"].unique()):
        rows = profiles[profiles["model"] == model]
        longest = rows[rows["n"] == rows["n"].max()].set_index("eighth")
        if not longest["able"].all():
            sentences.append(f"{shown_name(model)} {TOO_LITTLE}")
            continue
        best = int(longest["value"].idxmax())
        value, low, high = longest.loc[best, ["value", "low", "high"]]
        times = f"{value:.1f} [{low:.1f}, {high:.1f}] times the middle"
        sentences.append(f"{shown_name(model)} recalls the {ORDINALS[best - 1]} eighth best: {times}")
    return "; ".join(sentences)
