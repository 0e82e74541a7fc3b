"""The figure of a position card: a row a model, with lambda, influence beside what rollouts predict, and attention."""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from position_bias.drawing.layers import layer_axis
from position_bias.drawing.looks import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    REFERENCE,
    VARIANTS,
    Look,
    legend,
    present,
    shades,
)
from position_bias.drawing.style import PAGE

LAMBDAS = {
    "frobenius": Look("lambda by Frobenius norms (Eq. 1)", BLUE, ""),
    "token": Look("mean of its tokens' ratios", ORANGE, "", "--"),
    "backward": Look("of the backward pass (no prediction)", REFERENCE, "", ":"),
}
CURVES = {  # in the order of the legend, and but for (c) and (d) from back to front; lines differ without colours too
    "d": Look("measured influence", VARIANTS["d"].colour, "", width=1.6),
    "a": Look("(a) attention only", VARIANTS["a"].colour, "", "--", width=0.9),
    "b": Look("(b) residual-aware", VARIANTS["b"].colour, "", width=2.0),
    "c": Look("(c) with content", VARIANTS["c"].colour, "", ":"),
    "content-free": Look("without content", BLUE, "", width=0.9),
    "toeplitz": Look("mean logit by distance", ORANGE, "", "--", width=0.9),
    "rotary": Look("mean query and key", GREEN, "", ":"),
    "measured": Look("mean attention", PINK, "", width=0.6),
    "half": Look("null: lambda = 1/2", REFERENCE, "", "-.", width=0.8),
    "uniform": Look("null: uniform", REFERENCE, "", width=0.6),
}
ESTIMATOR = "frobenius"  # of the lambda that the rollouts are drawn with


@dataclass(frozen=True)
class Tables:
    """What the card of one model shows, at one length."""

    layers: pd.DataFrame  # estimator, layer from 1 on, value, low, high
    profiles: pd.DataFrame  # estimator, variant, position from 0 on, value, low, high
    attention: pd.DataFrame  # layer from 1 on, distance from 0 on, value: the mean weight


def longest(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table with a column n that are about the longest prompts."""
    return table[table["n"] == table["n"].max()]


def card(models: Mapping[str, Tables]) -> Figure:
    """Lambda by layer, influence by position with its interval beside rollouts and nulls, mean attention by distance.

    A row a model, by its name. Bands are bootstrap intervals over prompts; rollouts are drawn with lambda of Eq. 1. The
    weight that tokens give themselves, at distance 0, has no place on a logarithmic axis and is not drawn.
    """
    figure, rows = plt.subplots(
        len(models), 3, figsize=(PAGE, 0.55 + 1.9 * len(models)), squeeze=False, width_ratios=[1, 1.7, 1]
    )
    figure.set_label(f"Position card of {', '.join(models)}")
    for row, (name, tables) in zip(rows, models.items(), strict=True):
        _lambda(row[0], tables.layers)
        _influence(row[1], tables.profiles)
        _attention(row[2], tables.attention)
        row[0].set_ylabel(f"{name}\nresidual mixing $\\lambda$" if len(models) > 1 else r"residual mixing $\lambda$")
    shown = present(
        (variant for tables in models.values() for variant in set(tables.profiles["variant"]) - {"last"}), CURVES
    )
    kinds = present((kind for tables in models.values() for kind in set(tables.layers["estimator"])), LAMBDAS)
    legend(figure, [look.entry() for look in kinds.values()], "upper center")
    legend(figure, [look.entry() for look in shown.values()], "lower center")
    return figure


def _lambda(axes: Axes, layers: pd.DataFrame) -> None:
    for estimator, look in present(layers["estimator"], LAMBDAS).items():
        rows = layers[layers["estimator"] == estimator]
        axes.fill_between(rows["layer"], rows["low"], rows["high"], color=look.colour, alpha=0.2, linewidth=0)
        mark = "." if len(rows) == 1 else None  # a line of one point does not show
        axes.plot(rows["layer"], rows["value"], look.line, color=look.colour, marker=mark)
    axes.set_ylim(0, 1.05 * layers["high"].max())
    layer_axis(axes, layers["layer"])


def _influence(axes: Axes, profiles: pd.DataFrame) -> None:
    shown = profiles[profiles["estimator"].isin([ESTIMATOR, "none"]) & (profiles["variant"] != "last")]
    for variant, look in present(shown["variant"], CURVES).items():
        rows = shown[shown["variant"] == variant]
        position = rows["position"]
        if variant not in ("half", "uniform", "a"):
            axes.fill_between(position, rows["low"], rows["high"], color=look.colour, alpha=0.2, linewidth=0)
        front = {"d": 3.0, "c": 2.5}.get(variant, 2.0)
        axes.plot(position, rows["value"], look.line, color=look.colour, linewidth=look.width, zorder=front)
    axes.set_title(f"{int(shown['position'].max()) + 1} tokens")
    measured = shown[shown["variant"].isin(["d", "uniform"])]
    axes.set_yscale("log")
    axes.set_ylim(measured["low"].min() / 5, 3 * measured["high"].max())  # rollouts may lie far from any measurement
    axes.set_xlabel("token position")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_ylabel("share of influence")


def _attention(axes: Axes, attention: pd.DataFrame) -> None:
    beyond = attention[(attention["distance"] > 0) & (attention["value"] > 0)]
    layers = sorted(beyond["layer"].unique())
    colours = shades(layers)
    for layer in layers:
        rows = beyond[beyond["layer"] == layer]
        label = f"layer {layer}" if layer in (layers[0], layers[-1]) else None
        axes.plot(rows["distance"], rows["value"], color=colours[layer], linewidth=0.6, label=label)
    mean = attention[attention["distance"] > 0].groupby("distance")["value"].mean()
    axes.plot(mean.index, np.where(mean > 0, mean, np.nan), color=BLACK, label="mean")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("distance (tokens)")
    axes.set_ylabel("mean attention")
    axes.legend(handlelength=1.2, loc="lower left")
