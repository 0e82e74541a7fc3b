"""Figures of Kim et al. 2026 on decoders with weights: random, trained from scratch, language models, retrieval.

Tables have a row a number, in columns `quantity` and `value`; head 0 is a whole layer, layer 0 a whole network.
"""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator

from position_bias.attention import Array
from position_bias.drawing.intervals import band, dots, marks
from position_bias.drawing.looks import NO_NORM, POST, PRE, PRE_LAYER, Look, legend, present, side_by_side
from position_bias.drawing.style import PAGE, REFERENCE, colours_of
from position_bias.layernorm.figures import DIRECTION, layer_axis, residual_name
from position_bias.layernorm.pretrained import UNTRAINED

UNIFORM = 0.5  # mean relative position of attention that is
APART = 0.15  # layers, between the marks of two norms
PAIRS = {"first-middle": "first vs.\nmiddle", "first-last": "first vs.\nlast", "middle-last": "middle vs.\nlast"}
EARLY = 2  # the layer of a language model that is shown beside its last: the first that attention has written for
RECENCY, POSITION = f"recency\n{DIRECTION}", f"relative position\n{DIRECTION}"

RANDOM = {
    "none": Look("no norm", NO_NORM, "o"),
    "rms": Look("RMSNorm", PRE, "s"),
    "layer": Look("LayerNorm", PRE_LAYER, "D"),
}
TRAINED = {
    "none": Look("no norm", NO_NORM, "o"),
    "pre-rms": Look("pre-RMSNorm", PRE, "s"),
    "pre-layer": Look("pre-LayerNorm", PRE_LAYER, "D"),
    "post-layer": Look("post-LayerNorm", POST, "^"),
}
RETRIEVAL = {
    "residual": Look("no norm", NO_NORM, "o"),
    "pre-norm": Look("pre-LayerNorm", PRE_LAYER, "D"),
    "post-norm": Look("post-LayerNorm", POST, "^"),
}


def random_weights(table: pd.DataFrame, level: float) -> Figure:
    """Decoders with random weights, a row a residual: Gram matrices, scores of heads, and where attention lies.

    `table` is `simulation.random_weights`. Means over seeds have t-intervals; of scores, every head and seed is a dash,
    for their sign is random.
    """
    residuals = sorted(table["residual"].unique())
    looks = present(table["norm"], RANDOM)
    figure, rows = plt.subplots(
        len(residuals), 3, figsize=(PAGE, 0.7 + 1.55 * len(residuals)), sharex=True, sharey="col", squeeze=False
    )
    for row, residual in zip(rows, residuals, strict=True):
        of_row = table[table["residual"] == residual]
        for norm, look, aside in side_by_side(looks, APART):
            of_norm = of_row[of_row["norm"] == norm]
            gram, score, position = (of_norm[of_norm["quantity"] == name] for name in ("gram", "score", "position"))
            _joined_marks(row[0], gram, level, look, aside)
            row[1].plot(score["layer"] + aside, score["value"], "_", color=look.colour, markersize=4, alpha=0.6)
            _joined_marks(row[2], position, level, look, aside)
        for axes, label in zip(row, (f"{residual_name(residual)}\n{RECENCY}", RECENCY, POSITION), strict=True):
            axes.set_ylabel(label)
        for axes, reference in zip(row, (0, 0, UNIFORM), strict=True):
            _reference(axes, reference)
    for axes, title in zip(rows[0], ("Gram matrix", "scores of every head", "attention"), strict=True):
        axes.set_title(title)
    for axes in rows[-1]:
        layer_axis(axes, table["layer"])
    legend(figure, [look.mark() for look in looks.values()])
    return figure


def trained(table: pd.DataFrame, level: float) -> Figure:
    """Small decoders before and after training, a colour a norm: attention, Gram matrices, and the loss reached.

    `table` joins `training.train` of all networks. Marks are means over seeds with t-intervals, dots are seeds.
    """
    looks = present(table["norm"], TRAINED)
    figure = plt.figure(figsize=(PAGE, 3.6))
    panels = figure.subplot_mosaic(
        [["untrained position", "trained position", "loss"], ["untrained gram", "trained gram", "loss"]],
        width_ratios=[1, 1, 0.75],
    )
    for quantity, label, reference in (
        ("position", "attention, " + POSITION, UNIFORM),
        ("gram", "Gram matrix, " + RECENCY, 0),
    ):
        pair = [panels[f"{state} {quantity}"] for state in ("untrained", "trained")]
        for axes, state in zip(pair, ("untrained", "trained"), strict=True):
            shown = table[(table["quantity"] == quantity) & (table["state"] == state)]
            for norm, look, aside in side_by_side(looks, APART):
                of_norm = shown[shown["norm"] == norm]
                _joined_marks(axes, of_norm, level, look, aside)
                dots(axes, of_norm, "layer", look.colour, aside + 0.07)
            _reference(axes, reference)
            layer_axis(axes, shown["layer"])
        pair[1].sharey(pair[0])
        pair[1].tick_params(labelleft=False)
        pair[0].autoscale(axis="y")
        pair[0].set_ylabel(label)
    for state in ("untrained", "trained"):
        panels[f"{state} position"].set_title(state)
        panels[f"{state} position"].set_xlabel("")
    panels["untrained position"].text(
        0.03, 0.97, "dotted: uniform", transform=panels["untrained position"].transAxes, fontsize=7, va="top"
    )
    _losses(panels["loss"], table[(table["quantity"] == "loss") & (table["state"] == "trained")], level, looks)
    legend(figure, [look.mark() for look in looks.values()])
    return figure


def pretrained(recency: pd.DataFrame, grams: Mapping[str, Array], level: float, shown: str | None = None) -> Figure:
    """Language models: recency of the cosines that attention reads by layer, and those of one model as heatmaps.

    `recency` is `pretrained.recency_table` of each, trained (solid) and untrained (dashed). Lines are seeds, bands
    t-intervals over prompts. `grams` are mean cosines [layers, n, n] by model; the heatmaps are those of `shown`, or of
    the first model: of an early layer and of the last, below the diagonal.
    """
    colours = colours_of(recency["model"])
    shown = next(iter(grams)) if shown is None else shown
    figure, row = plt.subplots(
        1, len(colours) + 2, figsize=(PAGE, 2), width_ratios=[1] * len(colours) + [1.2] * 2, squeeze=False
    )
    lines, maps = row[0][: len(colours)], row[0][len(colours) :]
    for axes, (model, colour) in zip(lines, colours.items(), strict=True):
        of_model = recency[recency["model"] == model]
        for (state, _), of_prompts in of_model.groupby(["state", "seed"]):
            style = "--" if state == UNTRAINED else "-"
            over_prompts = of_prompts.drop(columns="seed").rename(columns={"prompt": "seed"})
            band(axes, over_prompts, "layer", level, colour, linestyle=style, linewidth=1)
        axes.set_title(model)
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        axes.sharey(lines[0])
        axes.tick_params(labelleft=axes is lines[0])
        layer_axis(axes, of_model["layer"])
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    lines[0].autoscale(axis="y")
    lines[0].set_ylabel(RECENCY)
    early = min(EARLY, len(grams[shown]))
    for axes, layer in zip(maps, (early, len(grams[shown])), strict=True):
        _cosines(axes, grams[shown][layer - 1])
        axes.set_title(f"{shown}, layer {layer}")
    states: dict[str, Any] = {"trained": "-", "untrained": "--"}
    handles = [Line2D([], [], color=REFERENCE, linestyle=style, label=name) for name, style in states.items()]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure


def emergence(gaps: pd.DataFrame, level: float) -> Figure:
    """Does a norm change the bias that retrieval networks learn? Gaps of every pair at the end, and one along training.

    `gaps` is `emergence.gaps.curves` of the studies in `RETRIEVAL`, one network each. Above 0 the earlier of two equal
    items is preferred. Marks and lines are means over seeds with t-intervals, dots are seeds.
    """
    looks = present(gaps["study"], RETRIEVAL)
    figure, (ends, along) = plt.subplots(1, 2, figsize=(PAGE, 2.3), sharey=True)
    for study, look, aside in side_by_side(looks, APART):
        of_study = gaps[gaps["study"] == study]
        last = of_study[of_study["iteration"] == of_study["iteration"].max()]
        last = last[last["quantity"].isin(PAIRS)]
        last = last.assign(place=last["quantity"].map(list(PAIRS).index))
        marks(ends, last, "place", level, look.colour, aside, marker=look.marker, linestyle="")
        dots(ends, last, "place", look.colour, aside + 0.06)
        first_last = of_study[of_study["quantity"] == "first-last"]
        band(along, first_last, "iteration", level, look.colour)
    for axes in (ends, along):
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
    ends.set_xticks(range(len(PAIRS)), list(PAIRS.values()))
    ends.set_title("at the end of training")
    ends.set_ylabel("accuracy gap\n← bias to later | to earlier →")
    along.set_title("first vs. last, along training")
    along.set_xlim(0, gaps["iteration"].max())
    along.xaxis.set_major_formatter(EngFormatter(sep=""))
    along.set_xlabel("iteration")
    legend(figure, [look.mark() for look in looks.values()])
    return figure


def _joined_marks(axes: Axes, table: pd.DataFrame, level: float, look: Look, aside: float) -> None:
    """Means of each layer with intervals, and a thin line through them."""
    marks(axes, table, "layer", level, look.colour, aside, marker=look.marker, linestyle="-", linewidth=0.6)


def _losses(axes: Axes, table: pd.DataFrame, level: float, looks: Mapping[str, Look]) -> None:
    """Loss that every norm reached."""
    for norm, look, aside in side_by_side(looks, APART):
        of_norm = table[table["norm"] == norm]
        marks(axes, of_norm, "layer", level, look.colour, aside, marker=look.marker, linestyle="")
        dots(axes, of_norm, "layer", look.colour, aside + 0.05)
    axes.set_xticks([])
    axes.set_xlabel("norms as above")
    axes.set_title("trained")
    axes.set_ylabel("held-out loss (nats a token)")


def _cosines(axes: Axes, gram: Array) -> None:
    """A heatmap with a colour bar of its own."""
    n = len(gram)
    earlier = np.where(np.tri(n, k=-1, dtype=bool), gram, np.nan)
    image = axes.imshow(earlier, cmap="cividis", extent=(0.5, n + 0.5, n + 0.5, 0.5))
    axes.set_xticks([1, n])
    axes.set_yticks([1, n])
    axes.set_xlabel("key", labelpad=-4)
    axes.set_ylabel("query", labelpad=-8)
    bar = axes.figure.colorbar(image, ax=axes, aspect=14, fraction=0.08, pad=0.04)
    bar.set_label("mean cosine")
    bar.locator = MaxNLocator(4)
    bar.update_ticks()


def _reference(axes: Axes, value: float) -> None:
    """A line where no order is preferred."""
    axes.axhline(value, color=REFERENCE, linewidth=0.7, linestyle=":", zorder=0)
