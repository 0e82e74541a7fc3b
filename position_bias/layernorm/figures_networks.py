"""Figures of Kim et al. 2026 on decoders with weights: random, trained from scratch, language models, retrieval.

Tables have a row a number, in columns `quantity` and `value`; head 0 is a whole layer, layer 0 a whole network.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator

from position_bias.attention import Array
from position_bias.drawing.intervals import band, counted, dots, marks, over_seeds
from position_bias.drawing.layers import layer_axis
from position_bias.drawing.looks import (
    DIVERGING,
    NORMS,
    PAIRS,
    REFERENCE,
    Look,
    legend,
    model_looks,
    present,
    side_by_side,
)
from position_bias.drawing.style import PAGE, TALLEST
from position_bias.emergence import gaps
from position_bias.emergence.figures import networks
from position_bias.layernorm.figures import DIRECTION, residual_name
from position_bias.layernorm.pretrained import UNTRAINED, recency_of_models
from position_bias.running.artifacts import TensorFile

UNIFORM = 0.5  # mean relative position of attention that is
APART = 0.15  # layers, between the marks of two norms
EARLY = 2  # the layer of a language model that is shown beside its last: the first that attention has written for
BLOCKS = 64  # of a heatmap, at most, along each side
SHARE_WITHIN = 0.98  # of a heatmap, in the range of its colours
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
    """Decoders with random weights, a row a residual: Gram matrices, scores of heads, and where attention lies.

    `table` is `simulation.random_weights`. Means over seeds have t-intervals; of scores, every head and seed is a dash,
    for their sign is random.
    """
    residuals = sorted(table["residual"].unique())
    looks = present(table["norm"], RANDOM)
    figure, rows = plt.subplots(
        len(residuals),
        3,
        figsize=(PAGE, min(0.9 + 1.55 * len(residuals), TALLEST)),
        sharex=True,
        sharey="col",
        squeeze=False,
        label="Decoders with random weights: recency of Gram matrices and scores, and where attention lies, by layer",
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
    legend(figure, [look.entry(linewidth=0.6) for look in looks.values()], title=counted(table))
    return figure


def trained(table: pd.DataFrame, level: float) -> Figure:
    """Small decoders before and after training, a colour a norm: attention, Gram matrices, and the loss reached.

    `table` joins `training.train` of all networks. Marks are means over seeds with t-intervals, dots are seeds.
    """
    looks = present(table["norm"], TRAINED)
    label = "Small decoders before and after training: where attention lies, recency of Gram matrices, and the loss"
    figure = plt.figure(figsize=(PAGE, 3.7), label=label)
    panels = figure.subplot_mosaic(
        [["untrained position", "trained position", "loss"], ["untrained gram", "trained gram", "loss"]],
        width_ratios=[1, 1, 0.8],
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
    _losses(panels["loss"], table[(table["quantity"] == "loss") & (table["state"] == "trained")], level, looks)
    even = Line2D([], [], color=REFERENCE, linewidth=0.7, linestyle=":", label="no order preferred")
    legend(figure, [*(look.entry(linewidth=0.6) for look in looks.values()), even], title=counted(table))
    return figure


def pretrained(grams: list[TensorFile], level: float) -> Figure:
    """Draw `recency_and_cosines` of the Grams of language models, of each model those of its last seed and step."""
    cosines = {file.labels["model"]: file.read("mean")["mean"] for file in grams}
    return recency_and_cosines(recency_of_models(grams), cosines, level)


def recency_and_cosines(
    recency: pd.DataFrame, grams: Mapping[str, Array], level: float, shown: str | None = None
) -> Figure:
    """Language models: recency of the cosines that attention reads by layer, and those of one model as heatmaps.

    `recency` is `pretrained.recency_table` of each, trained (solid) and untrained (dashed). Lines are seeds, bands
    t-intervals over prompts. `grams` are mean cosines [layers, n, n] by model; the heatmaps are those of `shown`, or of
    the first model: of an early layer and of the last, below the diagonal, less the mean of the row, in blocks.
    """
    looks = model_looks(recency["model"])
    shown = next(iter(grams)) if shown is None else shown
    label = "Recency of the inputs of attention in language models by layer, and their mean cosines as heatmaps"
    figure = plt.figure(figsize=(PAGE, 4), label=label)
    of_lines, of_maps = figure.subfigures(2, 1, squeeze=False).flat
    lines = of_lines.subplots(1, len(looks), sharey=True, squeeze=False)[0]
    maps = of_maps.subplots(1, 2)
    for axes, (model, look) in zip(lines, looks.items(), strict=True):
        of_model = recency[recency["model"] == model]
        for (state, _), of_prompts in of_model.groupby(["state", "seed"]):
            over_prompts = of_prompts.drop(columns="seed").rename(columns={"prompt": "seed"})
            drawn = look._replace(line="--" if state == UNTRAINED else "-", width=1.0)
            band(axes, over_prompts, "layer", level, drawn)
        axes.set_title(model)
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        layer_axis(axes, of_model["layer"])
    lines[0].set_ylabel(RECENCY)
    early = min(EARLY, len(grams[shown]))
    for axes, layer in zip(maps, (early, len(grams[shown])), strict=True):
        _cosines(axes, grams[shown][layer - 1])
        axes.set_title(f"{shown}, layer {layer}")
    seeds = counted(recency, "seed").replace("seed", "training seed")
    handles = [Line2D([], [], color=REFERENCE, label="trained")]
    if (recency["state"] == UNTRAINED).any():  # models of the hub have none
        handles.append(Line2D([], [], color=REFERENCE, linestyle="--", label="untrained"))
    legend(figure, handles, title=f"{len(grams[shown][0])} tokens, {counted(recency, 'prompt')}, {seeds}")
    return figure


def emergence(tests: pd.DataFrame, level: float) -> Figure:
    """Draw `gaps_by_norm` of networks without encoding; `tests` joins the tables of their training."""
    curves = gaps.curves(tests[tests["encoding"] == "none"])
    (vocabulary,), (depth,) = curves["vocabulary"].unique(), curves["depth"].unique()
    alike = f"causal mask, no encoding; {networks(vocabulary, 'none', True)}; {depth} layers"
    return gaps_by_norm(curves, level, alike)


def gaps_by_norm(curves: pd.DataFrame, level: float, alike: str = "") -> Figure:
    """Does a norm change the bias that retrieval networks learn? Gaps of every pair at the end, and one along training.

    `curves` are those of `emergence.gaps`, of the studies in `RETRIEVAL`, one network each. Above 0 the earlier of two
    equal items is preferred. Marks and lines are means over seeds with t-intervals, dots are seeds. `alike` says what
    all of them have in common.
    """
    looks = present(curves["study"], RETRIEVAL)
    figure, (ends, along) = plt.subplots(
        1,
        2,
        figsize=(PAGE, 2.5),
        sharey=True,
        label="Accuracy gaps of retrieval networks by norm, for every pair at the end of training, and one along it",
    )
    for study, look, aside in side_by_side(looks, APART):
        of_study = curves[curves["study"] == study]
        last = of_study[of_study["iteration"] == of_study["iteration"].max()]
        last = last[last["quantity"].isin(PAIRS)]
        last = last.assign(place=last["quantity"].map(list(PAIRS).index))
        marks(ends, last, "place", level, look, aside)
        dots(ends, last, "place", look.colour, aside + 0.06)
        first_last = of_study[of_study["quantity"] == "first-last"]
        step = sorted(first_last["iteration"].unique())[-1] // 4
        band(along, first_last, "iteration", level, look, every=step)
    for axes in (ends, along):
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
    ends.set_xticks(range(len(PAIRS)), [look.name for look in PAIRS.values()])
    ends.set_title("at the end of training")
    ends.set_ylabel("accuracy gap\n← bias to later | to earlier →")
    along.set_title("first vs. last, along training")
    along.set_xlim(0, curves["iteration"].max())
    along.xaxis.set_major_locator(MaxNLocator(4))
    along.xaxis.set_major_formatter(EngFormatter(sep=""))
    along.set_xlabel("iteration")
    legend(figure, [look.entry() for look in looks.values()], title="; ".join(filter(None, (alike, counted(curves)))))
    return figure


def _joined_marks(axes: Axes, table: pd.DataFrame, level: float, look: Look, aside: float) -> None:
    """Means of each layer with intervals, and a thin line through them."""
    marks(axes, table, "layer", level, look, aside, linestyle="-", linewidth=0.6)


def _losses(axes: Axes, table: pd.DataFrame, level: float, looks: Mapping[str, Look]) -> None:
    """Loss that every norm reached, a row a norm."""
    for row, (norm, look) in enumerate(looks.items()):
        losses = table.loc[table["norm"] == norm, ["seed", "value"]].assign(row=row)
        means = over_seeds(losses, "row", level)
        axes.hlines(means["row"], means["low"], means["high"], color=look.colour, linewidth=0.9)
        axes.plot(means["mean"], means["row"], look.marker, color=look.colour, markersize=3.5)
        axes.plot(losses["value"], losses["row"] + 0.2, "o", color=look.colour, markersize=2, alpha=0.6)
    axes.set_yticks([])
    axes.set_ylim(len(looks) - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.set_title("loss reached")
    axes.set_xlabel("held-out loss (nats a token)")


def _cosines(axes: Axes, gram: Array) -> None:
    """A heatmap of the part that the mask lets through, in blocks, with a colour bar of its own."""
    n = len(gram)
    earlier = np.tri(n, k=-1, dtype=bool)
    means = (gram * earlier).sum(1) / np.maximum(earlier.sum(1), 1)
    shown = blocks(np.where(earlier, gram - means[:, None], np.nan), -(-n // BLOCKS))
    limit = float(np.nanquantile(np.abs(shown), SHARE_WITHIN))
    image = axes.imshow(shown, cmap=DIVERGING, vmin=-limit, vmax=limit, extent=(0.5, n + 0.5, n + 0.5, 0.5))
    axes.set_xticks([1, n])
    axes.set_yticks([1, n])
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


def _reference(axes: Axes, value: float) -> None:
    """A line where no order is preferred."""
    axes.axhline(value, color=REFERENCE, linewidth=0.7, linestyle=":", zorder=0)
