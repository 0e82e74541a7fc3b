"""The figure of a position card: lambda, influence beside what rollouts predict, and attention, in a row per model.

Of one model alone, panels below show its loss by position and what it recalls, where these were measured.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from position_card.drawing.intervals import error_bars
from position_card.drawing.looks import (
    BLACK,
    BLUE,
    GREEN,
    INDIGO,
    OLIVE,
    PINK,
    REFERENCE,
    TEAL,
    VARIANTS,
    Look,
    balanced,
    legend,
    present,
    shades,
)
from position_card.drawing.panels import layer_axis, log_ticks
from position_card.drawing.style import PAGE
from position_card.rollout.parts import ends_over_middle, is_able, middle_half

MIXINGS = {  # estimators of residual mixing, by marks, and by colours that no rollout has
    "frobenius": Look(r"$\lambda$, whole prompt", INDIGO, "o", width=1.0),
    "token": Look(r"$\lambda$, mean over tokens", TEAL, "s", width=1.0, filled=False),
    "backward": Look(r"$\lambda$ from gradients (for comparison)", OLIVE, "^", width=1.0, filled=False),
}
CURVES = {  # in the order of the legend; profile.csv has the other rollouts and baselines
    "influence": Look("measured by gradients", VARIANTS["d"].colour, "", width=2.0),
    "b": Look("residual-aware rollout (b)", BLUE, "", width=1.4),
    "mean-query-key": Look("rollout of mean query and key", BLUE, "", "--"),
    "mean-attention": Look("rollout of mean attention", PINK, "", width=0.8),
    "uniform": Look("uniform", REFERENCE, "", width=0.6),
}
REPLACED = Look("measured by replacement, with the same middle", BLACK, "D", "")
SINK = 2.0  # times as much as before: then the mean attention to the farthest token is named
UNIFORM: dict[str, Any] = {"color": "0.65", "linestyle": "--", "linewidth": 1.2, "zorder": 3}  # in front
MIDDLE: dict[str, Any] = {"color": "0.94", "linewidth": 0, "zorder": 0}  # the half that the ends are compared with
MEAN: dict[str, Any] = {"color": BLACK, "linestyle": "-", "linewidth": 1.2}
ABOVE: dict[str, Any] = {"handlelength": 1.8, "loc": "lower center", "bbox_to_anchor": (0.4, 1.0)}  # a panel's legend
MEASURED = "influence"  # the variant of `profiles` that was measured
TIMES = "\N{MULTIPLICATION SIGN}"
ESTIMATOR = "frobenius"  # of the lambda that the rollouts are drawn with
PANELS = (1.0, 1.6, 1.1)  # how wide they are, relative to each other
ROW, RECALL_ROW = 1.95, 1.6  # inches: the height of a model's panels, and of recall below them
ROOM = 0.75  # of the width of a panel and its share of the margins, for a title
Tables = Mapping[str, pd.DataFrame]  # those of the card of one model, by name


def card(models: Mapping[str, Tables], text: str) -> Figure:
    """Draw residual mixing by layer, influence by position with rollouts, and mean attention by distance, on a text.

    Each model has a row, by its name, of the longest prompts; panels of a column share the scale of their ordinates.
    Bands are bootstrap intervals of the tables; rollouts are drawn with residual mixing by Eq. 1. What replacing
    tokens changes has its mean in the middle half where influence has it. The weight that tokens give themselves, at
    distance 0, has no place on a logarithmic axis and is not drawn.
    """
    models = {
        name: {kind: table[table["n"] == table["n"].max()] for kind, table in tables.items()}
        for name, tables in models.items()
    }
    alone = next(iter(models.values())) if len(models) == 1 else {}
    lower = [(draw, alone[name], width) for name, draw, width in LOWER if name in alone]
    height = 1.0 + ROW * len(models)
    whole = Figure(figsize=(PAGE, height + RECALL_ROW * bool(lower)))
    FigureCanvasAgg(whole)  # in no window, since a notebook may have others open
    figure: Figure | SubFigure = whole
    if lower:
        figure, below = whole.subfigures(2, 1, squeeze=False, height_ratios=(height, RECALL_ROW)).flat
        panels = below.subplots(1, len(lower), squeeze=False, width_ratios=[width for *_, width in lower])
        for axes, (draw, table, _) in zip(panels.flat, lower, strict=True):
            draw(axes, table)
    rows = figure.subplots(len(models), 3, squeeze=False, sharey="col", width_ratios=PANELS)
    whole.set_label(f"Position card of {', '.join(models)}, on {text}")
    for row, (name, tables) in zip(rows, models.items(), strict=True):
        _lambda(row[0], tables["layers"])
        _influence(row[1], tables, name)
        _attention(row[2], tables["distances"])
        for axes in row:
            axes.tick_params(labelleft=True)
    _limits(rows, models)
    rows[0, 2].legend(
        *zip(*_attention_entries(models), strict=True),
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        **ABOVE,
    )
    variants = {variant for tables in models.values() for variant in tables["profile"]["variant"]}
    looks = list(present(variants & {*CURVES}, CURVES).values())
    looks[1:1] = [REPLACED] * any("replacement" in tables for tables in models.values())
    kinds = present((kind for tables in models.values() for kind in set(tables["layers"]["estimator"])), MIXINGS)
    rows[0, 0].legend(handles=[look.entry() for look in kinds.values()], **ABOVE)
    legend(figure, below=[look.entry() for look in looks])
    return whole


def _lambda(axes: Axes, layers: pd.DataFrame) -> None:
    for estimator, look in present(layers["estimator"], MIXINGS).items():
        rows = layers[layers["estimator"] == estimator]
        axes.fill_between(rows["layer"], rows["low"], rows["high"], color=look.colour, alpha=0.2, linewidth=0)
        axes.plot(
            rows["layer"],
            rows["value"],
            look.line,
            color=look.colour,
            linewidth=look.width,
            marker=look.marker,
            markersize=3,
            markerfacecolor=look.colour if look.filled else "none",
        )
    axes.set_ylabel(r"$\lambda$ = |a| / (|x| + |a|)")
    layer_axis(axes, layers["layer"])


def _influence(axes: Axes, tables: Tables, name: str) -> None:
    profiles = _shown(tables["profile"])
    for variant, look in present(profiles["variant"], CURVES).items():
        rows = profiles[profiles["variant"] == variant]
        position = rows["position"]
        if variant != "uniform":
            axes.fill_between(position, rows["low"], rows["high"], color=look.colour, alpha=0.2, linewidth=0)
        front = 1.5 if variant == MEASURED else 2.0
        axes.plot(position, rows["value"], look.line, color=look.colour, linewidth=look.width, zorder=front)
    n, prompts = int(profiles["position"].max()) + 1, int(profiles["prompts"].max())
    of_middle = middle_half(n)
    axes.axvspan(of_middle.start - 0.5, of_middle.stop - 0.5, **MIDDLE)
    influence = profiles[profiles["variant"] == MEASURED].set_index("position")["value"].to_numpy()
    _ends(axes, influence)
    if "replacement" in tables:
        rows = tables["replacement"].rename(columns={"value": "measured"})
        inside = rows["position"].between(of_middle.start, of_middle.stop - 1)
        scale = influence[of_middle].mean() / rows.loc[inside, "measured"].mean()
        rows[["measured", "low", "high"]] *= scale
        error_bars(axes, rows["position"], rows, REPLACED.colour, fmt=REPLACED.marker, markersize=3, zorder=3)
    width = ROOM * PAGE * PANELS[1] / sum(PANELS)
    axes.set_title("\n".join(balanced(f"{name}: {prompts} prompts of {n} tokens", width)))
    axes.set_yscale("log")
    axes.set_xlabel("token position")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_ylabel("share of influence")


def _ends(axes: Axes, influence: NDArray[np.float64]) -> None:
    """Mark the first and the last token, with their influence over the mean of the middle half, and that mean."""
    of_middle, last = middle_half(len(influence)), len(influence) - 1
    mean = influence[of_middle].mean()
    axes.hlines(mean, of_middle.start, of_middle.stop - 1, color=BLACK, linewidth=0.8, zorder=3)
    axes.plot([0, last], influence[[0, last]], "o", color=CURVES[MEASURED].colour, markersize=3.5, zorder=1.5)
    below_all = influence[: of_middle.start].min()  # of the line near the first token
    for place, height, aside, (side, edge) in (
        (0, below_all, (3, -5), ("left", "top")),
        (last, influence[last], (-5, 3), ("right", "bottom")),
    ):
        annotation = axes.annotate(
            f"{TIMES}{influence[place] / mean:.3g}",
            (place, height),
            xytext=aside,
            textcoords="offset points",
            ha=side,
            va=edge,
            color=CURVES[MEASURED].colour,
            zorder=4,
        )
        annotation.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5})


def _shown(profiles: pd.DataFrame) -> pd.DataFrame:
    return profiles[profiles["estimator"].isin([ESTIMATOR, "none"]) & profiles["variant"].isin(CURVES)]


def _attention(axes: Axes, attention: pd.DataFrame) -> None:
    beyond = attention[(attention["distance"] > 0) & (attention["value"] > 0)]
    layers = sorted(beyond["layer"].unique())
    colours = shades(layers)
    uniform = uniform_attention(int(attention["distance"].max()) + 1)
    axes.plot(np.arange(1, len(uniform)), uniform[1:], **UNIFORM)
    for layer in layers:
        rows = beyond[beyond["layer"] == layer]
        axes.plot(rows["distance"], rows["value"], color=colours[layer], linewidth=0.6)
    if len(layers) > 1:
        mean = attention[attention["distance"] > 0].groupby("distance")["value"].mean()
        axes.plot(mean.index, np.where(mean > 0, mean, np.nan), **MEAN)
        _sink(axes, mean)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("distance (tokens)")
    axes.set_ylabel("mean attention")


def _sink(axes: Axes, mean: pd.Series) -> None:
    """Name the right end, where only the first token is so far behind, if attention there is much above the middle."""
    if mean.iloc[-1] > SINK * mean.iloc[len(mean) // 2]:
        place = (mean.index[-1], mean.iloc[-1])
        axes.annotate("sink: first token", place, (-4, 6), textcoords="offset points", ha="right", va="bottom")


def _recall(axes: Axes, recall: pd.DataFrame) -> None:
    """Draw the probability of the right word by place, with its means at both ends and in the middle half."""
    place = recall["place"].to_numpy()
    axes.fill_between(place, recall["probability low"], recall["probability high"], color=GREEN, alpha=0.2, linewidth=0)
    axes.plot(place, recall["probability"], color=GREEN, label="probability of the right word")
    axes.plot(place, recall["accuracy"], "o", color=BLACK, markersize=2.5, label="accuracy")
    axes.plot(place, recall["prior"], color=REFERENCE, linewidth=0.8, linestyle="-.", label="prior")
    of_middle = place[middle_half(len(place))]
    axes.axvspan(of_middle[0] - 0.5, of_middle[-1] + 0.5, **MIDDLE)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("place of the passage (tokens)")
    axes.set_ylabel("share, or probability")
    _eighths(axes, recall)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _eighths(axes: Axes, recall: pd.DataFrame) -> None:
    """Above both ends, what their eighths have over the middle half, where the accuracy lets places be compared."""
    if not is_able(recall["accuracy"].mean()):
        return
    above = (recall["probability"] - recall["prior"]).to_numpy()
    for over, side in zip(ends_over_middle(above[None]).values(), ("left", "right"), strict=True):
        place = float(side == "right")
        style: dict[str, Any] = {"ha": side, "va": "bottom", "color": GREEN}
        axes.text(place, 1.0, f"{TIMES}{over[0]:.3g}", transform=axes.transAxes, **style)


def _attention_entries(models: Mapping[str, Tables]) -> list[tuple[Any, str]]:
    """Handles and names of the lines of attention, those of layers in three of their shades."""
    deepest = max(int(tables["distances"]["layer"].max()) for tables in models.values())
    same = all(int(tables["distances"]["layer"].max()) == deepest for tables in models.values())
    label = f"layers 1 to {deepest}" if same else "first to last layer"
    few = tuple(Line2D([], [], color=colour, linewidth=0.9) for colour in shades(range(3)).values())
    of_layers = (few, f"{label}, light to dark") if deepest > 1 else (few[1], "layer 1")
    mean = [(Line2D([], [], **MEAN), "mean of layers")] if deepest > 1 else []
    return [of_layers, *mean, (Line2D([], [], **UNIFORM), "uniform attention")]


def _limits(rows: Any, models: Mapping[str, Tables]) -> None:
    """One scale for each column. Rollouts may lie far from any measurement: influence has the room."""
    top = max(tables["layers"]["high"].max() for tables in models.values())
    rows[0, 0].set_ylim(0, 1.08 * top)
    profiles = pd.concat([_shown(tables["profile"]) for tables in models.values()])
    reference = profiles[profiles["variant"].isin([MEASURED, "uniform"])]
    rows[0, 1].set_ylim(reference["low"].min() / 5, 3 * reference["high"].max())
    for axes in rows[:, 1:].flat:
        log_ticks(axes.yaxis)
    for axes in rows[:, 2]:
        log_ticks(axes.xaxis)


def _loss(axes: Axes, loss: pd.DataFrame) -> None:
    """Draw the loss of each position."""
    position = loss["position"]
    axes.fill_between(position, loss["low"], loss["high"], color=INDIGO, alpha=0.2, linewidth=0)
    axes.plot(position, loss["value"], color=INDIGO, linewidth=1.0)
    axes.set_ylim(0, 1.05 * loss["high"].max())
    axes.set_xlabel("token position")
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylabel("loss (nats)")


# Panels below those of a model that stands alone: the table of each, and how wide it is.
LOWER: tuple[tuple[str, Callable[[Axes, pd.DataFrame], None], float], ...] = (
    ("loss", _loss, 1.0),
    ("recall", _recall, 1.9),
)


def uniform_attention(n: int) -> NDArray[np.float64]:
    """Return the mean weight [n] at each distance of tokens that attend to themselves and all earlier ones alike.

    The mean of 1 / (i + 1) over the queries i >= d: (H_n - H_d) / (n - d), with harmonic numbers H. It falls with
    distance, because only late tokens have others far behind them.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    return (harmonic[n] - harmonic[:n]) / np.arange(n, 0, -1)
