"""Figures of Kim et al. 2026 on decoders without parameters: theory over Monte Carlo.

Tables are those of `layernorm.tables`.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from position_bias.attention import Array
from position_bias.drawing.intervals import error_bars
from position_bias.drawing.layers import layer_axis
from position_bias.drawing.looks import (
    BLACK,
    BLUE,
    DIVERGING,
    NORMS,
    ORANGE,
    REFERENCE,
    SKY,
    VERMILION,
    Look,
    legend,
    present,
    shades,
)
from position_bias.drawing.panels import curves, panels
from position_bias.drawing.style import COLUMN, PAGE
from position_bias.running.artifacts import Tensors

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
MAP_NAMES = {"none": "without norm", "rms": "RMSNorm", "layer": "LayerNorm"}
CLOSED_FORM_NAMES = {"none": "no norm", "rms": "with norm"}
MAPS = (0.075, 0.915)  # of the page from left to right, that score maps take
SHARE_WITHIN = 0.95  # of the scores of a map, in the range of its colours
DIRECTION = "← early | recent →"  # on an axis that runs upward
OPEN: dict[str, Any] = {"markersize": 4, "markerfacecolor": "none", "markeredgewidth": 0.8}  # marks that may coincide
KEYS_APART = 4  # between two Monte Carlo points along the keys


def scores(maps: Tensors, alphas: Sequence[float] = (0, 0.4, 0.8), norms: Sequence[str] = ("none", "layer")) -> Figure:
    """Which keys of a row score higher: mean scores by norm, layer (columns) and anisotropy (rows).

    `maps` are `tables.score_maps`, named norm/anisotropy. Colours are scores less the mean of their row over earlier
    tokens. Every map has a scale of its own, in its upper triangle, since scores without norm grow with depth.
    """
    layers = len(next(iter(maps.values())))
    panels_height = 0.76 + 0.78 * len(alphas)
    label = "Mean attention scores less the mean of their row, by norm, layer and anisotropy"
    figure = plt.figure(figsize=(PAGE, panels_height), layout="none", label=label)  # other layouts shift maps apart
    legend(figure)
    height = figure.get_figheight()
    share = (MAPS[1] - MAPS[0]) / len(norms)
    margin, top = 0.38 / height, (panels_height - 0.38) / height
    for left, norm in zip(MAPS[0] + share * np.arange(len(norms)), norms, strict=True):
        right = left + 0.96 * share
        grid = figure.add_gridspec(
            len(alphas), layers, left=left, right=right, bottom=margin, top=top, wspace=0.2, hspace=0.3
        )
        rows = grid.subplots(sharex=True, sharey=True, squeeze=False)
        for row, alpha in zip(rows, alphas, strict=True):
            for axes, of_layer in zip(row, maps[f"{norm}/{alpha:g}"], strict=True):
                image = _map(axes, of_layer)
            row[0].tick_params(labelleft=norm == norms[0])
            row[0].set_ylabel(rf"$\alpha = {alpha:g}$" + "\nquery" if norm == norms[0] else "", labelpad=-2)
        for layer, axes in enumerate(rows[0], start=1):
            axes.set_title(f"layer {layer}", pad=3)
        middle = (left + right) / 2
        figure.text(middle, (panels_height - 0.05) / height, MAP_NAMES[norm], ha="center", va="top")
        figure.text(middle, 0.04 / height, "key", ha="center", va="bottom")
    bar = figure.colorbar(image, cax=figure.add_axes((0.92, margin, 0.014, top - margin)), extend="both")
    bar.set_ticks([-1, 0, 1], labels=["\N{MINUS SIGN}", "0", "+"])
    bar.set_label("score less mean of row", labelpad=3)
    return figure


def closed_form(table: pd.DataFrame) -> Figure:
    """Layer-2 scores of the last token with each key: the closed form (lines) over Monte Carlo (points with intervals).

    `table` is `tables.closed_form_rows`. Each norm and residual has a panel, each anisotropy a colour.
    """
    titles = {
        (norm, residual): rf"{name}, $\rho = {residual:g}$"
        for norm, name in CLOSED_FORM_NAMES.items()
        for residual in sorted(table["residual"].unique())
    }
    looks = _shaded(table["anisotropy"], r"\alpha")
    label = "Layer-2 scores of the last token by position of the key: closed form and simulation"
    x, y = "position of the key $j$", "layer-2 score of\nthe last token"
    figure, row = panels(label, 1.8, titles, x=x, y=y, sharex=True)
    for (norm, residual), axes in row.items():
        of_panel = table[(table["norm"] == norm) & (table["residual"] == residual)]
        for _, look, curve in curves(of_panel, "anisotropy", looks):
            _theory_over_points(axes, curve, "position", look._replace(width=1), every=KEYS_APART)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5))
    legend(figure, [*(look.entry() for look in looks.values()), *_theory_and_points("closed form")])
    return figure


def anisotropy(table: pd.DataFrame) -> Figure:
    """Recency of layer-2 scores with norm against anisotropy, by residual.

    `table` is `tables.anisotropy_curves`: lines are the closed form at this width, dotted ones its limit, points Monte
    Carlo with intervals.
    """
    looks = _shaded(table["residual"], r"\rho")
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
    return figure


def depth(table: pd.DataFrame) -> Figure:
    """Recency of the scores of each layer, by residual: the recursion (lines) over Monte Carlo (points).

    `table` is `tables.depth_curves`. Without norm recency is relative to the mean size of the scores.
    """
    titles = {residual: residual_name(residual) for residual in sorted(table["residual"].unique())}
    label = "Recency of scores by layer and placement of the norm: recursion and simulation"
    return _recursion(table, label, 1.9, ("residual", titles), ("norm", DEPTH))


def moments(table: pd.DataFrame) -> Figure:
    """Recency of the scores of each layer by the moments of embeddings and by mask: the recursion over Monte Carlo.

    `table` is `tables.moments_curves`.
    """
    titles = {"causal": "causal mask", "full": "full mask"}
    label = "Recency of scores by layer and statistics of embeddings: recursion and simulation"
    return _recursion(table, label, 2.1, ("mask", titles), ("profile", PROFILES))


def residual_name(residual: float) -> str:
    """What networks with x <- rho x + attention are called in a title."""
    names = {0.0: "without residual", 1.0: "with residual"}
    return rf"{names.get(residual, 'residual')} ($\rho = {residual:g}$)"


def less_mean_of_row(scores: Array) -> Array:
    """Scores below the diagonal less the mean of their row; NaN elsewhere."""
    earlier = np.tri(len(scores), k=-1, dtype=bool)
    means = (scores * earlier).sum(1) / np.maximum(earlier.sum(1), 1)
    return np.where(earlier, scores - means[:, None], np.nan)


def heatmap(axes: Axes, values: Array, limit: float, n: int) -> AxesImage:
    """Draw values of n queries and keys, in colours from -limit to limit."""
    image = axes.imshow(values, cmap=DIVERGING, vmin=-limit, vmax=limit, extent=(0.5, n + 0.5, n + 0.5, 0.5))
    axes.set_xticks([1, n])
    axes.set_yticks([1, n])
    return image


def _map(axes: Axes, scores: Array) -> AxesImage:
    """Scores less the mean of their row, on a scale that few of them exceed."""
    deviations = less_mean_of_row(scores)
    size = np.nanquantile(np.abs(deviations), SHARE_WITHIN)
    axes.text(0.97, 0.95, f"±{float(f'{size:.1g}'):g}", transform=axes.transAxes, ha="right", va="top")
    return heatmap(axes, deviations / size, 1, len(scores))


def _recursion(
    table: pd.DataFrame,
    label: str,
    height: float,
    across: tuple[str, dict[Any, str]],
    compared: tuple[str, dict[str, Look]],
) -> Figure:
    """Recency by layer, a panel for each value of a column, a look for each value of another."""
    (column, titles), (other, looks) = across, compared
    figure, row = panels(label, height, titles, y=f"recency of scores\n{DIRECTION}", sharey=True)
    for name, axes in row.items():
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        for _, look, curve in curves(table[table[column] == name], other, looks):
            _theory_over_points(axes, curve, "layer", look, fmt=look.marker, **OPEN)
        layer_axis(axes, table["layer"])
    entries = [look.entry(**OPEN) for look in present(table[other], looks).values()]
    legend(figure, [*entries, *_theory_and_points("recursion", **OPEN)])
    return figure


def _shaded(values: pd.Series, symbol: str) -> dict[float, Look]:
    """Looks of the values of a number, which has this symbol, without marks."""
    return {value: Look(f"${symbol} = {value:g}$", colour, "") for value, colour in shades(values).items()}


def _theory_over_points(axes: Axes, curve: pd.DataFrame, at: str, look: Look, every: int = 1, **mark: Any) -> None:
    """A line of what theory predicts, over points of Monte Carlo with intervals, one of `every`."""
    axes.plot(curve[at], curve["predicted"], look.line, color=look.colour, linewidth=look.width)
    points = curve.dropna(subset="measured").iloc[::every]
    error_bars(axes, points[at], points, look.colour, **mark)


def _theory_and_points(theory: str, **mark: Any) -> list[Line2D]:
    look: dict[str, Any] = {"marker": "o", "markersize": 2.4, **mark}
    return [
        Line2D([], [], color=REFERENCE, label=theory),
        Line2D([], [], color=REFERENCE, linestyle="", label="Monte Carlo", **look),
    ]
