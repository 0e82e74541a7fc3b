"""What decides claims on language models that the default run does not train: every row of theirs, by model.

Tables are those of checks. Models are language models of longer training, pretrained ones and those of the paper.
"""

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
from position_card.drawing.style import PAGE

ABREAST = 3  # panels in a row
SERIES = (  # comparisons of a claim: their looks, and the marks in a text
    (Look("", BLACK, "o"), "\N{BLACK CIRCLE}"),
    (Look("", VERMILION, "s", filled=False), "\N{WHITE SQUARE}"),
    (Look("", BLUE, "^"), "\N{BLACK UP-POINTING TRIANGLE}"),
    (Look("", GREEN, "D", filled=False), "\N{WHITE DIAMOND}"),
)
SERIES_OF = ["statistic", "network", "other"]
LINE = 0.13  # inches that a line of text takes, or a model


def decisive(
    checks: pd.DataFrame, titles: Mapping[str, str], scales: Sequence[str], label: str, level: float
) -> Figure:
    """Draw the rows of claims at some scales, a panel a claim and a line a model, with the bound that is predicted.

    `titles` has the claims and what stands above their panels; one without a row has no panel. Bars are the intervals
    of the table at this level, over documents or contexts; a mark without a bar is a known number. `label` is the title
    of the figure. Raises ValueError where no claim has a row.
    """
    selection = checks[checks["claim"].isin(titles) & checks["scale"].isin(scales) & checks["measured"].notna()]
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
    settings = (
        "bars: 95 % intervals over documents or contexts; dotted: what is predicted, above (>), below (<) or at (=) it"
    )
    legend(figure, settings=settings)
    for scale, of_scale in selection.groupby("scale"):
        draws(figure, of_scale["model"].unique(), str(scale))
    return figure


def _series(rows: pd.DataFrame) -> dict[tuple[str, str, str], list[str]]:
    """The comparisons of a claim, and the lines of text that say what each is."""
    text_of_series: dict[tuple[str, str, str], list[str]] = {}
    for statistic, network, other in rows[SERIES_OF].fillna("").drop_duplicates().itertuples(index=False, name=None):
        _, mark = SERIES[len(text_of_series) % len(SERIES)]
        (relation,) = rows.loc[
            (rows[SERIES_OF].fillna("") == [statistic, network, other]).all(axis=1), "relation"
        ].unique()
        less = f" less {other}" if other else ""
        text = f"{mark} {statistic.partition(': ')[2] or statistic}, {network}{less} ({relation})"
        text_of_series[statistic, network, other] = balanced(text, PAGE / ABREAST - 0.5)
    return text_of_series


def _panel(axes: Axes, rows: pd.DataFrame, models: Sequence[str], series: Sequence[tuple[str, str, str]]) -> None:
    for place, key in enumerate(series):
        look, _ = SERIES[place % len(SERIES)]
        of_series = rows[(rows[SERIES_OF].fillna("") == list(key)).all(axis=1)]
        aside = (place - (len(series) - 1) / 2) * 0.7 / len(series)
        within = of_series.groupby("model").cumcount() - (of_series.groupby("model")["model"].transform("size") - 1) / 2
        at = np.array([models.index(model) for model in of_series["model"]]) + aside + 0.07 * within.to_numpy()
        axes.hlines(at, of_series["low"], of_series["high"], color=look.colour, linewidth=0.8)
        mark_style: dict[str, Any] = {
            "color": look.colour,
            "markerfacecolor": look.inside,
            "markersize": 2.5,
            "markeredgewidth": 0.6,
        }
        axes.plot(of_series["measured"], at, look.marker, **mark_style)
    for bound in rows["bound"].unique():
        axes.axvline(bound, color=REFERENCE, linestyle=":", linewidth=0.8, zorder=0)
    axes.locator_params(axis="x", nbins=4)
