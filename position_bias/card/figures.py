"""The figure of a position card: a row a model, with lambda, influence beside what rollouts predict, and attention."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from position_bias.drawing.looks import Look, present
from position_bias.drawing.style import COLOURS, PAGE, REFERENCE

_PALETTE = sns.color_palette("colorblind")

LAMBDAS = {
    "frobenius": Look("lambda by Frobenius norms (Eq. 1)", _PALETTE[0], "-"),
    "token": Look("mean of its tokens' ratios", _PALETTE[1], "--"),
    "backward": Look("of the backward pass (no prediction)", REFERENCE, ":"),
}
CURVES = {  # in the order of the legend; the marker is a style of line here, so that curves differ without colours too
    "d": Look("measured influence", COLOURS["d"], "-", 1.6),
    "a": Look("(a) attention only", COLOURS["a"], "--", 0.9),
    "b": Look("(b) residual-aware", COLOURS["b"], "-", 0.9),
    "c": Look("(c) with content", COLOURS["c"], ":", 1.2),
    "content-free": Look("without content", COLOURS["b"], "-", 0.9),
    "toeplitz": Look("mean logit by distance", _PALETTE[1], "--", 0.9),
    "rotary": Look("mean query and key", COLOURS["c"], ":", 1.2),
    "measured": Look("mean attention", _PALETTE[4], "-", 0.6),
    "half": Look("null: lambda = 1/2", REFERENCE, "-.", 0.8),
    "uniform": Look("null: uniform", REFERENCE, "-", 0.6),
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
    for row, (name, tables) in zip(rows, models.items(), strict=True):
        _lambda(row[0], tables.layers)
        _influence(row[1], tables.profiles)
        _attention(row[2], tables.attention)
        row[0].set_ylabel(f"{name}\nresidual mixing $\\lambda$" if len(models) > 1 else r"residual mixing $\lambda$")
    shown = present(
        (variant for tables in models.values() for variant in set(tables.profiles["variant"]) - {"last"}), CURVES
    )
    kinds = present((kind for tables in models.values() for kind in set(tables.layers["estimator"])), LAMBDAS)
    _legend(figure, kinds, "outside upper left")
    _legend(figure, shown, "outside lower center")
    _settle(figure)
    return figure


def _lambda(axes: Axes, layers: pd.DataFrame) -> None:
    for estimator, look in present(layers["estimator"], LAMBDAS).items():
        rows = layers[layers["estimator"] == estimator]
        axes.fill_between(rows["layer"], rows["low"], rows["high"], color=look.colour, alpha=0.2, linewidth=0)
        mark = "." if len(rows) == 1 else None  # a line of one point does not show
        axes.plot(rows["layer"], rows["value"], look.marker, color=look.colour, marker=mark)
    axes.set_ylim(0, 1.05 * layers["high"].max())
    axes.set_xlabel("layer")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _influence(axes: Axes, profiles: pd.DataFrame) -> None:
    shown = profiles[profiles["estimator"].isin([ESTIMATOR, "none"]) & (profiles["variant"] != "last")]
    for variant, look in reversed(present(shown["variant"], CURVES).items()):
        rows = shown[shown["variant"] == variant]
        position = rows["position"] + 1
        if variant not in ("half", "uniform", "a"):
            axes.fill_between(position, rows["low"], rows["high"], color=look.colour, alpha=0.2, linewidth=0)
        axes.plot(position, rows["value"], look.marker, color=look.colour, linewidth=look.width)
    measured = shown[shown["variant"].isin(["d", "uniform"])]
    axes.set_yscale("log")
    axes.set_ylim(measured["low"].min() / 5, 3 * measured["high"].max())  # rollouts may lie far from any measurement
    axes.set_xlabel("token position")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_ylabel("share of influence")


def _attention(axes: Axes, attention: pd.DataFrame) -> None:
    beyond = attention[(attention["distance"] > 0) & (attention["value"] > 0)]
    layers = sorted(beyond["layer"].unique())
    colours = dict(zip(layers, sns.color_palette("viridis", len(layers)), strict=True))
    for layer in layers:
        rows = beyond[beyond["layer"] == layer]
        label = f"layer {layer}" if layer in (layers[0], layers[-1]) else None
        axes.plot(rows["distance"], rows["value"], color=colours[layer], linewidth=0.6, label=label)
    mean = attention[attention["distance"] > 0].groupby("distance")["value"].mean()
    axes.plot(mean.index, np.where(mean > 0, mean, np.nan), color="black", label="mean")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("distance")
    axes.set_ylabel("mean attention")
    axes.legend(handlelength=1.2, loc="lower left")


def _legend(figure: Figure, looks: Mapping[str, Look], where: Any) -> None:
    styles: list[Any] = [look.marker for look in looks.values()]
    handles = [
        Line2D([], [], color=look.colour, linestyle=style, linewidth=look.width, label=look.name)
        for look, style in zip(looks.values(), styles, strict=True)
    ]
    ncols = len(handles) if len(handles) <= 5 else 4  # five columns of long names do not fit the page
    figure.legend(handles=handles, loc=where, ncols=ncols, handlelength=1.8)


def _settle(figure: Figure) -> None:
    """Lay the panels out now, to a millionth of the figure: the last bits of the layout differ from run to run."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(tuple(np.round(axes.get_position().bounds, 6)))
