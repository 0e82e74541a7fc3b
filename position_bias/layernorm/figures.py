"""Figures of Kim et al. 2026: theory over Monte Carlo of decoders without parameters, then decoders with weights.

Tables of the former are those of `layernorm.simulation`. Those of decoders with weights, random, trained from scratch,
language models and retrieval, have one row per number, in columns `quantity` and `value`; head 0 is a whole layer,
layer 0 a whole network.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator

from position_bias.emergence import accuracy_gaps
from position_bias.emergence.figures import networks
from position_bias.language_models.names import shown_name
from position_bias.layernorm.checks import AT_STEP_0, DECODERS, OF_HUB, RANDOM_WEIGHTS, recency_of_models
from position_bias.verdicts.registry import PRETRAINED
from position_card.core.artifacts import TensorFile, Tensors
from position_card.drawing.intervals import (
    band,
    count_label,
    error_bars,
    from_to,
    line_with_marks,
    marks_by,
    over_seeds,
)
from position_card.drawing.looks import (
    BLACK,
    BLUE,
    NORMS,
    ORANGE,
    PAIRS,
    REFERENCE,
    SKY,
    VERMILION,
    Look,
    legend,
    model_looks,
    present,
    shades,
    side_by_side,
)
from position_card.drawing.panels import curves, layer_axis, panels
from position_card.drawing.shown import draws
from position_card.drawing.style import COLUMN, PAGE
from position_card.rollout.attention import Array

DEPTH = {
    "none": NORMS["none"]._replace(name="no norm (over mean size)", width=1.0),
    "pre": NORMS["pre"]._replace(name="pre-norm", width=1.0),
    "post": NORMS["post"]._replace(name="post-norm", width=1.0),
}
PROFILES = {  # of embeddings by position: a colour for each, a mark for where it goes, dashes where it is of length
    "alike": Look("embeddings alike", BLACK, "o", width=1.0),
    "anisotropy rises": Look("anisotropy rises", VERMILION, "^", width=1.0),
    "anisotropy falls": Look("anisotropy falls", ORANGE, "v", width=1.0),
    "length rises": Look("length rises", BLUE, "^", "--", width=1.0),
    "length falls": Look("length falls", SKY, "v", "--", width=1.0),
}
MAP_NAMES = {"none": "without norm", "rms": "with RMSNorm", "layer": "with LayerNorm"}
CLOSED_FORM_NAMES = {"none": "no norm", "rms": "with norm"}
SHADE_MARKS = ("o", "s", "^", "D", "v")  # of curves in shades, for print without colours
DIRECTION = "← early | recent →"  # on an axis that runs upward
OPEN: dict[str, Any] = {"markersize": 4, "markerfacecolor": "none", "markeredgewidth": 0.8}  # marks that may coincide
KEYS_APART = 4  # between two Monte Carlo points along the keys
UNIFORM = 0.5  # mean relative position of attention that is
MARK_DISTANCE = 0.15  # layers, between the marks of two norms
# Where no order is preferred:
NO_ORDER: dict[str, Any] = {"color": REFERENCE, "linewidth": 0.7, "linestyle": ":", "zorder": 0}
RECENCY, POSITION = f"recency\n{DIRECTION}", f"relative position\n{DIRECTION}"
RANDOM = {
    "none": NORMS["none"],
    "rms": NORMS["pre"]._replace(name="RMSNorm"),
    "layer": NORMS["pre-layer"]._replace(name="LayerNorm"),
}
DECODER_LOOKS = {
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


def scores(maps: Tensors, alphas: Sequence[float] = (0, 0.4, 0.8), norms: Sequence[str] = ("none", "layer")) -> Figure:
    """Which keys score higher: mean scores of the last query by key, norm (rows), layer (columns) and anisotropy.

    `maps` are `simulation.score_maps`, named norm/anisotropy. Curves are scores less their mean over the earlier keys.
    Panels of a norm share a scale, since scores without norm grow with depth.
    """
    layers = len(next(iter(maps.values())))
    looks = _shaded_looks(pd.Series(alphas), r"\alpha")
    titles = {layer: f"layer {layer + 1}" for layer in range(layers)}
    preferences = []
    for norm in norms:
        curves_of_norm = [scores_of_last_query(maps[f"{norm}/{alpha:g}"][-1]) for alpha in alphas]
        preferences.append(f"{_preferred(curves_of_norm)} {MAP_NAMES[norm]}")
    label = f"Keys that score higher in the last layer: {', '.join(preferences)}"
    rows = {norm: MAP_NAMES[norm] for norm in norms}
    figure, grid = panels(label, 0.5 + 1.35 * len(norms), titles, rows, x="key", sharex=True, sharey="row")
    for (norm, layer), axes in grid.items():
        axes.axhline(0, **NO_ORDER)
        for place, (alpha, look) in enumerate(looks.items()):
            curve = scores_of_last_query(maps[f"{norm}/{alpha:g}"][layer])
            keys, style = np.arange(1, len(curve) + 1), look._replace(marker=SHADE_MARKS[place % len(SHADE_MARKS)])
            axes.plot(keys, curve, **line_with_marks(style, range(place, len(keys), len(keys) // 3 + 1)))
        axes.set_xticks([1, len(curve)])
        axes.yaxis.set_major_locator(MaxNLocator(4))
    figure.supylabel("score less mean of earlier keys")
    figure.align_ylabels()
    marks = zip(looks.values(), SHADE_MARKS * len(looks), strict=False)
    legend(figure, [look._replace(marker=marker).entry() for look, marker in marks])
    draws(figure, ["Layer 2, norm", "Depth"])
    return figure


def scores_of_last_query(scores: Array) -> Array:
    """Return the scores [n, n] of the last query with the keys before it, less their mean: [n - 1]."""
    earlier = scores[-1, :-1]
    return np.asarray(earlier - earlier.mean())


def _preferred(curves: Sequence[Array]) -> str:
    """Say which keys score higher in all of these curves of scores by key."""
    higher_last = [bool(curve[-1] > curve[0]) for curve in curves]
    return "recent ones" if all(higher_last) else "either end's" if any(higher_last) else "early ones"


def closed_form(table: pd.DataFrame) -> Figure:
    """Layer-2 scores of the last token with each key: the closed form (lines) over Monte Carlo (points with intervals).

    `table` is `simulation.closed_form_rows`. Each norm and residual has a panel, each anisotropy a colour.
    """
    titles = {
        (norm, residual): rf"{name}, $\rho = {residual:g}$"
        for norm, name in CLOSED_FORM_NAMES.items()
        for residual in sorted(table["residual"].unique())
    }
    looks = _shaded_looks(table["anisotropy"], r"\alpha")
    label = "Layer-2 scores of the last token by position of the key: closed form and simulation"
    x, y = "position of the key $j$", "layer-2 score of\nthe last token"
    figure, row = panels(label, 1.8, titles, x=x, y=y, sharex=True)
    for (norm, residual), axes in row.items():
        of_panel = table[(table["norm"] == norm) & (table["residual"] == residual)]
        for _, look, curve in curves(of_panel, "anisotropy", looks):
            _theory_over_points(axes, curve, "position", look._replace(width=1), step=KEYS_APART)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5))
    legend(figure, [*(look.entry() for look in looks.values()), *_theory_and_points("closed form")])
    draws(figure, ["Layer 2", "Layer 2, norm"])
    return figure


def anisotropy(table: pd.DataFrame) -> Figure:
    """Recency of layer-2 scores with norm against anisotropy, by residual.

    `table` is `simulation.anisotropy_curves`: lines are the closed form at this width, dotted ones its limit, points
    Monte Carlo with intervals.
    """
    looks = _shaded_looks(table["residual"], r"\rho")
    label = "Recency of layer-2 scores with a norm, by anisotropy and residual strength"
    figure, axes = plt.subplots(figsize=(COLUMN, 2.7), label=label)
    for _, look, curve in curves(table, "residual", looks):
        axes.plot(curve["anisotropy"], curve["limit"], ":", color=look.colour, linewidth=1)
        _theory_over_points(axes, curve, "anisotropy", look, markersize=3)
    x = r"anisotropy $\alpha$ (expected cosine of two embeddings)"
    axes.set(xlabel=x, ylabel="recency of layer-2 scores (cosine)")
    axes.set_ylim(bottom=0)
    infinite = Line2D([], [], color=REFERENCE, linestyle=":", label="at infinite width")
    handles = [*(look.entry() for look in looks.values()), *_theory_and_points("closed form"), infinite]
    axes.legend(handles=handles, loc="upper right")
    legend(figure)
    draws(figure, ["Anisotropy", "Independent embeddings", "Removing residuals"])
    return figure


def depth(table: pd.DataFrame) -> Figure:
    """Recency of the scores of each layer, by residual: the recursion (lines) over Monte Carlo (points).

    `table` is `simulation.depth_curves`. Without norm recency is relative to the mean size of the scores.
    """
    titles = {residual: residual_name(residual) for residual in sorted(table["residual"].unique())}
    label = "Recency of scores by layer and placement of the norm: recursion and simulation"
    figure = _recursion(table, label, 1.9, ("residual", titles), ("norm", DEPTH))
    draws(figure, ["Depth"])
    return figure


def moments(table: pd.DataFrame) -> Figure:
    """Draw recency of the scores of each layer by the moments of embeddings and by mask: the recursion and simulation.

    `table` is `simulation.moments_curves`.
    """
    titles = {"causal": "causal mask", "full": "full mask"}
    label = "Recency of scores by layer and statistics of embeddings: recursion and simulation"
    figure = _recursion(table, label, 2.1, ("mask", titles), ("profile", PROFILES))
    draws(figure, ["Moments by position", "Full mask"])
    return figure


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
        of_panel = table[(table["residual"] == residual) & (table["quantity"] == quantity)]
        if quantity == "score":
            for norm, look, offset in side_by_side(looks, MARK_DISTANCE):
                heads = of_panel[of_panel["norm"] == norm]
                axes.plot(heads["layer"] + offset, heads["value"], "_", color=look.colour, markersize=4, alpha=0.6)
        else:
            marks_by(axes, of_panel, "layer", level, "norm", looks, MARK_DISTANCE, linewidth=0.6)
        axes.axhline(UNIFORM if quantity == "position" else 0, **NO_ORDER)
    for axes in [*grid.values()][-len(titles) :]:
        layer_axis(axes, table["layer"])
    legend(figure, [look.entry(linewidth=0.6) for look in looks.values()], settings=count_label(table))
    draws(figure, [f"{RANDOM_WEIGHTS}/{norm}" for norm in looks])
    return figure


def trained_decoders(table: pd.DataFrame, level: float) -> Figure:
    """Small decoders before and after training, by norm: attention, Gram matrices, and the loss reached.

    `table` joins `training.train` of all networks. Marks are means over seeds with t-intervals, dots are seeds.
    """
    looks = present(table["norm"], DECODER_LOOKS)
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
            of_panel = table[(table["quantity"] == quantity) & (table["state"] == state)]
            marks_by(axes, of_panel, "layer", level, "norm", looks, MARK_DISTANCE, seeds_aside=0.07, linewidth=0.6)
            axes.axhline(reference, **NO_ORDER)
            layer_axis(axes, of_panel["layer"])
            if quantity == "position":
                axes.set(title=state, xlabel="")
        left_panel, right_panel = mosaic[f"untrained {quantity}"], mosaic[f"trained {quantity}"]
        right_panel.sharey(left_panel)
        right_panel.tick_params(labelleft=False)
        left_panel.autoscale(axis="y")
        left_panel.set_ylabel(y)
    _losses(mosaic["loss"], table[(table["quantity"] == "loss") & (table["state"] == "trained")], level, looks)
    even = Line2D([], [], label="no order preferred", **NO_ORDER)
    legend(figure, [*(look.entry(linewidth=0.6) for look in looks.values()), even], settings=count_label(table))
    draws(figure, [f"{DECODERS}/{norm}" for norm in looks])
    return figure


def pretrained(grams: list[TensorFile], level: float) -> Figure:
    """Draw `recency_by_layer` of the Grams of language models."""
    (tokens,) = {file.read("gram")["gram"].shape[-1] for file in grams}
    return recency_by_layer(recency_of_models(grams), tokens, level)


def recency_by_layer(recency: pd.DataFrame, tokens: int, level: float) -> Figure:
    """Language models: recency of the cosines that attention reads in prompts of so many `tokens`, by layer.

    `recency` is `checks.recency_of_models`, trained (solid) and untrained (dashed). Lines are seeds, bands
    t-intervals over documents.
    """
    looks = model_looks(recency["model"])
    label = "Recency of the inputs of attention in language models, by layer"
    titles = {model: shown_name(model) for model in looks}
    figure, row = panels(label, 1.9, titles, y=RECENCY, sharey=True)
    for model, look in looks.items():
        axes, of_model = row[model], recency[recency["model"] == model]
        for (state, _), of_prompts in of_model.groupby(["state", "seed"]):
            of_documents = of_prompts.groupby(["document", "layer"])["value"].mean().reset_index()
            of_state = look._replace(line="--" if state == AT_STEP_0 else "-", width=1.0)
            band(axes, of_documents.rename(columns={"document": "seed"}), "layer", level, of_state)
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        layer_axis(axes, of_model["layer"])
    seeds = count_label(recency[recency["state"] != OF_HUB], "seed").replace("seed", "training seed")
    handles = [Line2D([], [], color=REFERENCE, label="trained")]
    if (recency["state"] == AT_STEP_0).any():  # models of the hub have none
        handles.append(Line2D([], [], color=REFERENCE, linestyle="--", label="untrained"))
    numbers = (from_to(recency.groupby("model")[unit].nunique(), unit) for unit in ("prompt", "document"))
    legend(figure, handles, settings=f"{tokens} tokens, {' of '.join(numbers)}, {seeds}")
    for model, state in recency[["model", "state"]].drop_duplicates().itertuples(index=False):
        draws(figure, [model], PRETRAINED if state == OF_HUB else "")
    return figure


def emergence(tests: pd.DataFrame, level: float) -> Figure:
    """Does a norm change the bias that retrieval networks learn? Gaps of every pair at the end, and one along training.

    `tests` joins the tables of training of the studies in `RETRIEVAL`, of which those without encoding are drawn, one
    network each. Above 0 the earlier of two equal items is preferred. Marks and lines are means over seeds with
    t-intervals, dots are seeds.
    """
    table = accuracy_gaps.curves(tests[tests["encoding"] == "none"])
    (vocabulary,), (depth,) = table["vocabulary"].unique(), table["depth"].unique()
    looks = present(table["study"], RETRIEVAL)
    titles = {"ends": "at the end of training", "along": "first vs. last, along training"}
    label = "Accuracy gaps of retrieval networks with and without norms, at the end and along training"
    y = "accuracy gap\n← bias to later | to earlier →"
    figure, row = panels(label, 2.0, titles, x={"along": "iteration"}, y=y, sharey=True)
    ends, course = row.values()
    final = table.groupby("study")["iteration"].transform("max")
    last = table[table["quantity"].isin(PAIRS) & (table["iteration"] == final)]
    last = last.assign(place=last["quantity"].map(list(PAIRS).index))
    marks_by(ends, last, "place", level, "study", looks, MARK_DISTANCE, seeds_aside=0.06, linestyle="")
    for _, look, curve in curves(table[table["quantity"] == "first-last"], "study", looks):
        band(course, curve, "iteration", level, look, mark_every=curve["iteration"].max() // 4)
    for axes in row.values():
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
    ends.set_xticks(range(len(PAIRS)), [look.name for look in PAIRS.values()])
    course.set_xlim(0, table["iteration"].max())
    course.xaxis.set_major_locator(MaxNLocator(4))
    course.xaxis.set_major_formatter(EngFormatter(sep=""))
    alike = f"causal mask, no encoding; {networks(vocabulary, 'none', True)}; {depth} layers"
    legend(figure, [look.entry() for look in looks.values()], settings=f"{alike}; {count_label(table)}")
    draws(figure, accuracy_gaps.network_names(table))
    return figure


def residual_name(residual: float) -> str:
    """What networks with x <- rho x + attention are called in a title."""
    names = {0.0: "without residual", 1.0: "with residual"}
    return rf"{names.get(residual, 'residual')} ($\rho = {residual:g}$)"


def _recursion(
    table: pd.DataFrame,
    label: str,
    height: float,
    panel_titles: tuple[str, dict[Any, str]],
    curve_looks: tuple[str, dict[str, Look]],
) -> Figure:
    """Recency by layer, a panel for each value of a column, a look for each value of another."""
    (column, titles), (curve_column, looks) = panel_titles, curve_looks
    figure, row = panels(label, height, titles, y=f"recency of scores\n{DIRECTION}", sharey=True)
    for name, axes in row.items():
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        for _, look, curve in curves(table[table[column] == name], curve_column, looks):
            _theory_over_points(axes, curve, "layer", look, fmt=look.marker, **OPEN)
        layer_axis(axes, table["layer"])
    entries = [look.entry(**OPEN) for look in present(table[curve_column], looks).values()]
    legend(figure, [*entries, *_theory_and_points("recursion", **OPEN)])
    return figure


def _shaded_looks(values: pd.Series, symbol: str) -> dict[float, Look]:
    """Return the looks of the values of a number that has this symbol, in shades, without marks."""
    return {value: Look(f"${symbol} = {value:g}$", colour, "") for value, colour in shades(values).items()}


def _theory_over_points(axes: Axes, curve: pd.DataFrame, at: str, look: Look, step: int = 1, **mark: Any) -> None:
    """Draw a line of what theory predicts, over every `step`-th point of Monte Carlo with its interval."""
    axes.plot(curve[at], curve["predicted"], look.line, color=look.colour, linewidth=look.width)
    points = curve.dropna(subset="measured").iloc[::step]
    error_bars(axes, points[at], points, look.colour, **mark)


def _theory_and_points(theory: str, **mark: Any) -> list[Line2D]:
    look: dict[str, Any] = {"marker": "o", "markersize": 2.4, **mark}
    return [
        Line2D([], [], color=REFERENCE, label=theory),
        Line2D([], [], color=REFERENCE, linestyle="", label="Monte Carlo", **look),
    ]


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
