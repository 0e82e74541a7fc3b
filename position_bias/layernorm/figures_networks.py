"""Figures of Kim et al. 2026 on decoders with weights: random, trained from scratch, language models, retrieval.

Tables have one row per number, in columns `quantity` and `value`; head 0 is a whole layer, layer 0 a whole network.
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
from position_bias.drawing.intervals import band, counted, from_to, marks_by, over_seeds
from position_bias.drawing.layers import layer_axis
from position_bias.drawing.looks import (
    NORMS,
    PAIRS,
    REFERENCE,
    Look,
    legend,
    model_looks,
    present,
    side_by_side,
)
from position_bias.drawing.panels import curves, panels
from position_bias.drawing.style import PAGE
from position_bias.emergence import gaps
from position_bias.emergence.figures import networks
from position_bias.layernorm.figures import DIRECTION, heatmap, less_mean_of_row, residual_name
from position_bias.layernorm.pretrained import OF_HUB, UNTRAINED, recency_of_models
from position_bias.running.artifacts import TensorFile

UNIFORM = 0.5  # mean relative position of attention that is
APART = 0.15  # layers, between the marks of two norms
EARLY = 2  # the layer of a language model that is shown beside its last: the first that attention has written for
BLOCKS = 64  # of a heatmap, at most, along each side
SHARE_WITHIN = 0.98  # of a heatmap, in the range of its colours
# Where no order is preferred:
NO_ORDER: dict[str, Any] = {"color": REFERENCE, "linewidth": 0.7, "linestyle": ":", "zorder": 0}
RECENCY, POSITION = f"recency\n{DIRECTION}", f"relative position\n{DIRECTION}"

RANDOM = {
    "none": NORMS["none"],
    "rms": NORMS["pre"]._replace(name="RMSNorm"),
    "layer": NORMS["pre-layer"]._replace(name="LayerNorm"),
}
TRAINED = {
    "none": NORMS["none"],
    "pre-rms": NORMS["pre"]._replace(name="pre-RMSNorm"),
    "pre-layer": NORMS["pre-layer"],
    "post-layer": NORMS["post"]._replace(name="post-LayerNorm"),
}
RETRIEVAL = {
    "residual": NORMS["none"],
    "pre-norm": NORMS["pre-layer"],
    "post-norm": NORMS["post"]._replace(name="post-LayerNorm"),
}


def random_weights(table: pd.DataFrame, level: float) -> Figure:
    """Decoders with random weights, by residual: Gram matrices, scores of heads, and where attention lies.

    `table` is `simulation.random_weights`. Means over seeds have t-intervals; of scores, every head and seed is a dash,
    for their sign is random.
    """
    looks = present(table["norm"], RANDOM)
    rows = {residual: residual_name(residual) for residual in sorted(table["residual"].unique())}
    titles = {"gram": "Gram matrix", "score": "scores of every head", "position": "attention"}
    labels = {"gram": RECENCY, "score": RECENCY, "position": POSITION}
    label = "Decoders with random weights: recency of Gram matrices, scores and attention by layer"
    height = 0.4 + 1.55 * len(rows)
    figure, grid = panels(label, height, titles, rows, y=labels, sharex=True, sharey="col")
    for (residual, quantity), axes in grid.items():
        shown = table[(table["residual"] == residual) & (table["quantity"] == quantity)]
        if quantity == "score":
            for norm, look, aside in side_by_side(looks, APART):
                heads = shown[shown["norm"] == norm]
                axes.plot(heads["layer"] + aside, heads["value"], "_", color=look.colour, markersize=4, alpha=0.6)
        else:
            marks_by(axes, shown, "layer", level, "norm", looks, APART, linewidth=0.6)
        axes.axhline(UNIFORM if quantity == "position" else 0, **NO_ORDER)
    for axes in [*grid.values()][-len(titles) :]:
        layer_axis(axes, table["layer"])
    legend(figure, [look.entry(linewidth=0.6) for look in looks.values()], settings=counted(table))
    return figure


def trained(table: pd.DataFrame, level: float) -> Figure:
    """Small decoders before and after training, by norm: attention, Gram matrices, and the loss reached.

    `table` joins `training.train` of all networks. Marks are means over seeds with t-intervals, dots are seeds.
    """
    looks = present(table["norm"], TRAINED)
    label = "Small decoders before and after training: attention, Gram matrices and loss by norm"
    figure, mosaic = plt.subplot_mosaic(
        [["untrained position", "trained position", "loss"], ["untrained gram", "trained gram", "loss"]],
        width_ratios=[1, 1, 0.8],
        figsize=(PAGE, 3.3),
        label=label,
    )
    for quantity, y, reference in (
        ("position", "attention, " + POSITION, UNIFORM),
        ("gram", "Gram matrix, " + RECENCY, 0),
    ):
        for state in ("untrained", "trained"):
            axes = mosaic[f"{state} {quantity}"]
            shown = table[(table["quantity"] == quantity) & (table["state"] == state)]
            marks_by(axes, shown, "layer", level, "norm", looks, APART, seeds_aside=0.07, linewidth=0.6)
            axes.axhline(reference, **NO_ORDER)
            layer_axis(axes, shown["layer"])
            if quantity == "position":
                axes.set(title=state, xlabel="")
        before, after = mosaic[f"untrained {quantity}"], mosaic[f"trained {quantity}"]
        after.sharey(before)
        after.tick_params(labelleft=False)
        before.autoscale(axis="y")
        before.set_ylabel(y)
    _losses(mosaic["loss"], table[(table["quantity"] == "loss") & (table["state"] == "trained")], level, looks)
    even = Line2D([], [], label="no order preferred", **NO_ORDER)
    legend(figure, [*(look.entry(linewidth=0.6) for look in looks.values()), even], settings=counted(table))
    return figure


def pretrained(grams: list[TensorFile], level: float) -> Figure:
    """Draw `recency_and_cosines` of the Grams of language models, of each model those of its last seed and step."""
    cosines = {file.labels["model"]: file.read("gram")["gram"] for file in grams}
    return recency_and_cosines(recency_of_models(grams), cosines, level)


def recency_and_cosines(recency: pd.DataFrame, grams: Mapping[str, Array], level: float) -> Figure:
    """Language models: recency of the cosines that attention reads by layer, and those of one model as heatmaps.

    `recency` is `pretrained.recency_of_models`, trained (solid) and untrained (dashed). Lines are seeds, bands
    t-intervals over documents. `grams` are mean cosines [layers, n, n] by model; the heatmaps are those of the first
    model: of an early layer and of the last, below the diagonal, less the mean of the row, in blocks.
    """
    looks = model_looks(recency["model"])
    shown, of_shown = next(iter(grams.items()))
    label = "Recency of the inputs of attention in language models by layer, with maps of one model"
    figure = plt.figure(figsize=(PAGE, 3.6), label=label)
    of_lines, of_maps = figure.subfigures(2, 1, squeeze=False).flat
    lines = of_lines.subplots(1, len(looks), sharey=True, squeeze=False)[0]
    maps = of_maps.subplots(1, 2)
    for axes, (model, look) in zip(lines, looks.items(), strict=True):
        of_model = recency[recency["model"] == model]
        for (state, _), of_prompts in of_model.groupby(["state", "seed"]):
            of_documents = of_prompts.groupby(["document", "layer"])["value"].mean().reset_index()
            drawn = look._replace(line="--" if state == UNTRAINED else "-", width=1.0)
            band(axes, of_documents.rename(columns={"document": "seed"}), "layer", level, drawn)
        axes.set_title(model)
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        layer_axis(axes, of_model["layer"])
    lines[0].set_ylabel(RECENCY)
    for axes, layer in zip(maps, (min(EARLY, len(of_shown)), len(of_shown)), strict=True):
        _cosines(axes, of_shown[layer - 1])
        axes.set_title(f"{shown}, layer {layer}")
    seeds = counted(recency[recency["state"] != OF_HUB], "seed").replace("seed", "training seed")
    handles = [Line2D([], [], color=REFERENCE, label="trained")]
    if (recency["state"] == UNTRAINED).any():  # models of the hub have none
        handles.append(Line2D([], [], color=REFERENCE, linestyle="--", label="untrained"))
    numbers = (from_to(recency.groupby("model")[unit].nunique(), unit) for unit in ("prompt", "document"))
    legend(figure, handles, settings=f"{len(of_shown[0])} tokens, {' of '.join(numbers)}, {seeds}")
    return figure


def emergence(tests: pd.DataFrame, level: float) -> Figure:
    """Does a norm change the bias that retrieval networks learn? Gaps of every pair at the end, and one along training.

    `tests` joins the tables of training of the studies in `RETRIEVAL`, of which those without encoding are drawn, one
    network each. Above 0 the earlier of two equal items is preferred. Marks and lines are means over seeds with
    t-intervals, dots are seeds.
    """
    table = gaps.curves(tests[tests["encoding"] == "none"])
    (vocabulary,), (depth,) = table["vocabulary"].unique(), table["depth"].unique()
    looks = present(table["study"], RETRIEVAL)
    titles = {"ends": "at the end of training", "along": "first vs. last, along training"}
    label = "Accuracy gaps of retrieval networks with and without norms, at the end and along training"
    y = "accuracy gap\n← bias to later | to earlier →"
    figure, row = panels(label, 2.0, titles, x={"along": "iteration"}, y=y, sharey=True)
    ends, along = row.values()
    final = table.groupby("study")["iteration"].transform("max")
    last = table[table["quantity"].isin(PAIRS) & (table["iteration"] == final)]
    last = last.assign(place=last["quantity"].map(list(PAIRS).index))
    marks_by(ends, last, "place", level, "study", looks, APART, seeds_aside=0.06, linestyle="")
    for _, look, curve in curves(table[table["quantity"] == "first-last"], "study", looks):
        band(along, curve, "iteration", level, look, every=curve["iteration"].max() // 4)
    for axes in row.values():
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
    ends.set_xticks(range(len(PAIRS)), [look.name for look in PAIRS.values()])
    along.set_xlim(0, table["iteration"].max())
    along.xaxis.set_major_locator(MaxNLocator(4))
    along.xaxis.set_major_formatter(EngFormatter(sep=""))
    alike = f"causal mask, no encoding; {networks(vocabulary, 'none', True)}; {depth} layers"
    legend(figure, [look.entry() for look in looks.values()], settings=f"{alike}; {counted(table)}")
    return figure


def _losses(axes: Axes, table: pd.DataFrame, level: float, looks: Mapping[str, Look]) -> None:
    """Loss that every norm reached."""
    for row, (norm, look) in enumerate(looks.items()):
        losses = table.loc[table["norm"] == norm, ["seed", "value"]].assign(row=row)
        means = over_seeds(losses, "row", level)
        axes.hlines(means["row"], means["low"], means["high"], color=look.colour, linewidth=0.9)
        axes.plot(means["mean"], means["row"], look.marker, color=look.colour, markersize=3.5)
        axes.plot(losses["value"], losses["row"] + 0.2, "o", color=look.colour, markersize=2, alpha=0.6)
    axes.set(title="loss reached", xlabel="held-out loss (nats a token)", yticks=[], ylim=(len(looks) - 0.5, -0.5))
    axes.xaxis.set_major_locator(MaxNLocator(4))


def _cosines(axes: Axes, gram: Array) -> None:
    """A heatmap of the part that the mask lets through, in blocks, with a colour bar of its own."""
    n = len(gram)
    shown = blocks(less_mean_of_row(gram), -(-n // BLOCKS))
    image = heatmap(axes, shown, float(np.nanquantile(np.abs(shown), SHARE_WITHIN)), n)
    axes.set_xlabel("key", labelpad=-4)
    axes.set_ylabel("query", labelpad=-8)
    bar = axes.figure.colorbar(image, ax=axes, aspect=14, fraction=0.08, pad=0.04, extend="both")
    bar.set_label("cosine less mean of row")
    bar.locator = MaxNLocator(4)
    bar.update_ticks()


def blocks(values: Array, size: int) -> Array:
    """Means of blocks of size x size of a square matrix, without NaN; NaN where a block has nothing else."""
    rest = -len(values) % size
    padded = np.ma.masked_invalid(np.pad(values, (0, rest), constant_values=np.nan))
    parts = padded.reshape(len(padded) // size, size, -1, size)
    return np.ma.filled(parts.mean(axis=(1, 3)), np.nan)
