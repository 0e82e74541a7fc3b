"""Recall of pretrained decoders by place, beside influence by gradients and by replacement.

Our addition to Herasimchyk et al. 2026. Values are over their mean in the middle half of the prompt.
"""

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.language_models.names import shown_name
from position_bias.verdicts.registry import PRETRAINED
from position_card.drawing.intervals import error_bars
from position_card.drawing.looks import BLACK, GREEN, ORANGE, REFERENCE, Look, legend
from position_card.drawing.panels import log_ticks, panels
from position_card.drawing.shown import draws
from position_card.drawing.style import COLUMN, PAGE

MEASURES = {
    "gradient": Look("influence by gradients", ORANGE),
    "replacement": Look("influence by replacement", BLACK, "o", ""),
    "recall": Look("recall", GREEN),
}
ALL_PLACES = 20  # from so many places on, a measure is a line with a band, and else marks with bars


def recall(profiles: pd.DataFrame) -> Figure:
    """Draw a row for each measure and a column for each decoder; every value is over its mean in the middle half.

    `profiles` have the columns `recall.PROFILES`. Bands and bars are bootstrap intervals, of influence over documents
    and of recall over contexts.
    """
    models = {model: shown_name(model) for model in profiles["model"]}
    rows = {name: f"{look.name.replace(' by ', chr(10) + 'by ')},\nover the middle" for name, look in MEASURES.items()}
    label = "Influence and recall at each place of the prompt, in pretrained decoders"
    size, width = 0.5 + 1.5 * len(MEASURES), COLUMN if len(models) == 1 else PAGE
    figure, grid = panels(label, size, models, rows, x="place in the prompt", width=width, sharex=True)
    for (measure, model), axes in grid.items():
        curves = profiles[(profiles["measure"] == measure) & (profiles["model"] == model)]
        _curves(axes, [curve for _, curve in curves.groupby("n")], MEASURES[measure])
        axes.set(xticks=[0, 0.5, 1], xticklabels=["first", "middle", "last"])
    legend(figure)
    draws(figure, models, PRETRAINED)
    return figure


def _curves(axes: Axes, curves: Iterable[pd.DataFrame], look: Look) -> None:
    """The profile of a measure at each length of the prompt, the longest drawn thickest."""
    axes.axhline(1, color=REFERENCE, linestyle=":", linewidth=0.7)
    for place, curve in enumerate(curves):
        known = curve[curve["value"] > 0]
        if len(curve) >= ALL_PLACES:
            axes.plot(known["place"], known["value"], color=look.colour, linewidth=0.7 + 0.5 * place)
            low = known["low"].clip(lower=known["value"].min() / 2)
            axes.fill_between(known["place"], low, known["high"], color=look.colour, alpha=0.2, linewidth=0)
        else:
            rows = known.rename(columns={"value": "measured"})
            error_bars(axes, rows["place"], rows, look.colour, fmt=look.marker or "o", markersize=3.5)
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
