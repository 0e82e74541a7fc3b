"""The figure of the theorems of Wu et al. 2025: convergence under masks, and where relative positions put the peak."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from position_bias.drawing.looks import MASKS, REFERENCE, depth_colour, legend, shades
from position_bias.drawing.panels import panels

LAYERS_SHOWN, LEAST_SHOWN = 60, 1e-10
SHOWN = {  # masks: line, weight at which the name stands beside the curve, and on which side of it
    "prefix 4": ("-", 3e-10, "left"),
    "causal": ("-", 3e-10, "left"),
    "window 4": ("-", 6e-9, "right"),
    "window 2": ("--", 1e-3, "left"),
}
GAP = 1.5  # layers, between a curve and its name
CRITICAL = {"critical": "o", "printed": "v"}  # columns of critical points: their marks


def theorems(convergence: pd.DataFrame, decay: pd.DataFrame, rope: pd.DataFrame, peaks: pd.DataFrame) -> Figure:
    """Theorems 4.1-4.3, 4.5 and 4.7 in four panels.

    The tables are those of `emergence.theory`: `convergence`, `decay_profiles`, `rope_profiles` and `decay_peaks`.
    """
    label = "Convergence with depth under masks, and where positional encodings put the peak"
    titles = {"masks": "4.1-4.3: masks", "decay": "4.5: decay mask", "rope": "4.7: RoPE", "peaks": "4.5: peaks"}
    figure, row = panels(label, 2.3, titles, width_ratios=(1.5, 1, 1, 0.9))
    _convergence(row["masks"], convergence)
    _profiles(row["decay"], decay, {"critical": r"$t / (e^m - 1)$"})
    row["decay"].set_ylabel("weight from the last token")
    _profiles(row["rope"], rope, {"critical": "$L$, corrected", "printed": "$L$, printed"})
    _peaks(row["peaks"], peaks)
    legend(figure)
    return figure


def _convergence(axes: Axes, table: pd.DataFrame) -> None:
    """Mass beyond the centre nodes: uniform attention, its bound (dotted), and random attention (shaded)."""
    shown = table[table["layers"] <= LAYERS_SHOWN]
    for mask, (style, weight, side) in SHOWN.items():
        colour = MASKS[mask.split()[0]].colour
        curve = shown[shown["mask"] == mask]
        axes.fill_between(curve["layers"], curve["low"], curve["high"], color=colour, alpha=0.25, linewidth=0)
        axes.plot(curve["layers"], curve["value"], style, color=colour, label=mask)
        axes.plot(curve["layers"], curve["bound"], ":", color=colour, linewidth=0.9)
        beside = curve["layers"][curve["value"] >= weight].max()
        left = side == "left"
        place = beside - GAP if left else beside + 1.5 * GAP
        axes.text(place, weight, mask, color=colour, ha="right" if left else "left", va="center")
    axes.text(LAYERS_SHOWN, 3, "dotted: bounds", color=REFERENCE, ha="right", va="bottom")
    axes.set_yscale("log")
    axes.set_ylim(LEAST_SHOWN, 30)
    axes.set_xlim(0, LAYERS_SHOWN)
    axes.set_xlabel("layers")
    axes.set_ylabel("mass beyond the centre nodes")


def _profiles(axes: Axes, table: pd.DataFrame, critical: dict[str, str]) -> None:
    """Last row of P over distance for each depth, marked where a critical point is; `critical` names the columns."""
    furthest = 2 * table["peak"].max()
    for depth, curve in table[table["distance"] <= furthest].groupby("depth", sort=False):
        colour = depth_colour(depth)
        axes.plot(curve["distance"], curve["value"], color=colour)
        at = curve.set_index("distance")["value"]
        axes.text(at.idxmax() + furthest / 40, at.max(), f"$t$ = {depth}", color=colour, va="bottom")
        for column in critical:
            point = curve[column].iloc[0]
            if round(point) in at.index:
                axes.plot(point, at[round(point)], CRITICAL[column], color=colour, markersize=3.5, clip_on=False)
    for column, name in critical.items():
        axes.plot([], [], CRITICAL[column], color=REFERENCE, markersize=3.5, label=name)
    axes.set_xlabel("distance $x$ (tokens)")
    axes.set_xlim(0, furthest)
    axes.set_ylim(0, (1.05 + 0.13 * len(critical)) * table["value"].max())  # room for the legend
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.legend(loc="upper right", handletextpad=0.1, borderaxespad=0)


def _peaks(axes: Axes, table: pd.DataFrame) -> None:
    """Where the peak is, against depth: dots measured, lines t / (e^m - 1)."""
    deepest = table["depth"].max()
    for decay, colour in shades(table["decay"]).items():
        curve = table[table["decay"] == decay]
        axes.plot(curve["depth"], curve["critical"], color=colour, linewidth=0.9)
        axes.plot(curve["depth"], curve["peak"], "o", color=colour, markersize=2.5)
        last = curve["critical"].iloc[-1]
        axes.text(1.05 * deepest, last, f"$m$ = {decay:.2g}", color=colour, va="center")
    axes.set_xlabel("depth $t$")
    axes.set_xlim(0, 1.6 * deepest)
    axes.set_xticks(range(0, deepest + 1, 2))
    axes.set_ylabel("distance of the peak")
    axes.set_ylim(0)
