"""What decides claims on language models that the default run does not train: every row of theirs, by model.

Tables are those of checks. Models are language models of longer training, pretrained ones and those of the paper.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.language_models.names import shown_name
from position_card.drawing.looks import BLACK, BLUE, GREEN, REFERENCE, VERMILION, Look, balanced, legend
from position_card.drawing.shown import draws
from position_card.drawing.style import PAGE, SMALLEST

ABREAST = 3  # panels in a row
SERIES = (  # comparisons of a claim: their looks, and the marks in a text
    (Look("", BLACK, "o"), "\N{BLACK CIRCLE}"),
    (Look("", VERMILION, "s", filled=False), "\N{WHITE SQUARE}"),
    (Look("", BLUE, "^"), "\N{BLACK UP-POINTING TRIANGLE}"),
    (Look("", GREEN, "D", filled=False), "\N{WHITE DIAMOND}"),
)
COMPARISON = "comparison"  # what a row compares, in the words of its quantity, without the model and its text
OVER_LAYERS = "range over layers"  # in the quantity of what has no interval
NOT_MEASURED = "not measured"
OF_NOTE: Mapping[str, Any] = {"size": SMALLEST, "color": "0.35", "backgroundcolor": "white"}
LINE = 0.13  # inches that a line of text takes, or a model


def decisive(
    checks: pd.DataFrame, titles: Mapping[str, str], scales: Sequence[str], label: str, level: float
) -> Figure:
    """Draw the rows of claims at some scales, a panel a claim and a line a model, with the bound that is predicted.

    A line of a model that has no row says so. `titles` has the claims and what stands above their panels; one without a
    row has no panel. Bars are the intervals of the table at this level, over documents or contexts, or ranges over
    layers; a mark without a bar is a known number. `label` is the title of the figure. Raises ValueError where no claim
    has a row.
    """
    selection = checks[checks["claim"].isin(titles) & checks["scale"].isin(scales) & checks["measured"].notna()]
    selection = selection.assign(**{COMPARISON: [_comparison(row) for row in selection.to_dict("records")]})
    claims = [claim for claim in titles if (selection["claim"] == claim).any()]
    if not claims:
        raise ValueError("no claim has a row at these scales")
    models = list(dict.fromkeys(selection["model"]))
    labels = {claim: _series(selection[selection["claim"] == claim]) for claim in claims}
    lines = max(len(text) for series in labels.values() for text in series.values()) + 2
    rows = -(-len(claims) // ABREAST)
    above = max(len(balanced(titles[claim], PAGE / ABREAST - 0.5)) for claim in claims)
    size = (PAGE, 0.3 + rows * (0.3 + LINE * (1.5 * len(models) + lines + above)))
    figure, grid = plt.subplots(rows, ABREAST, figsize=size, sharey=True, squeeze=False, label=label)
    for axes, claim in zip(grid.flat, claims, strict=False):
        of_claim = selection[selection["claim"] == claim]
        _panel(axes, of_claim, models, list(labels[claim]))
        axes.set_title("\n".join(balanced(titles[claim], PAGE / ABREAST - 0.5)))
        axes.set_xlabel("\n".join(line for text in labels[claim].values() for line in text))
    for axes in grid.flat[len(claims) :]:
        axes.remove()
    grid[0, 0].set_ylim(len(models) - 0.5, -0.5)
    grid[0, 0].set_yticks(range(len(models)), [shown_name(model) for model in models])
    ranges = ", or ranges over layers" if selection["quantity"].str.contains(OVER_LAYERS).any() else ""
    bars = f"bars: {100 * level:g} % intervals over documents or contexts{ranges}"
    legend(figure, settings=f"{bars}; dotted: what is predicted, above (>), below (<) or at (=) it")
    for scale, of_scale in selection.groupby("scale"):
        draws(figure, of_scale["model"].unique(), str(scale))
    return figure


def _comparison(row: Mapping[Any, Any]) -> str:
    """What a row compares, and the relation that is predicted; of its model and its lambda nothing is said."""
    comparison = re.sub(rf" of {re.escape(row['model'])}\b.*|, lambda by .*", "", row["quantity"].partition(";")[0])
    return f"{comparison} ({row['relation']})"


def _series(rows: pd.DataFrame) -> dict[str, list[str]]:
    """The comparisons of a claim, and the lines of text that say what each is."""
    marks = [mark for _, mark in SERIES]
    return {
        comparison: balanced(f"{marks[place % len(marks)]} {comparison}", PAGE / ABREAST - 0.5)
        for place, comparison in enumerate(rows[COMPARISON].unique())
    }


def _panel(axes: Axes, rows: pd.DataFrame, models: Sequence[str], series: Sequence[str]) -> None:
    for place, comparison in enumerate(series):
        look, _ = SERIES[place % len(SERIES)]
        of_series = rows[rows[COMPARISON] == comparison]
        aside = (place - (len(series) - 1) / 2) * 0.7 / len(series)
        within = of_series.groupby("model").cumcount() - (of_series.groupby("model")["model"].transform("size") - 1) / 2
        at = np.array([models.index(model) for model in of_series["model"]]) + aside + 0.07 * within.to_numpy()
        axes.hlines(at, of_series["low"], of_series["high"], color=look.colour, linewidth=0.8)
        style: dict[str, Any] = {
            "color": look.colour,
            "markerfacecolor": look.inside,
            "markersize": 2.5,
            "markeredgewidth": 0.6,
        }
        axes.plot(of_series["measured"], at, look.marker, **style)
    for bound in rows["bound"].unique():
        axes.axvline(bound, color=REFERENCE, linestyle=":", linewidth=0.8, zorder=0)
    for line, model in enumerate(models):
        if model not in set(rows["model"]):
            axes.text(
                0.98, line, NOT_MEASURED, transform=axes.get_yaxis_transform(), ha="right", va="center", **OF_NOTE
            )
    axes.locator_params(axis="x", nbins=4)
