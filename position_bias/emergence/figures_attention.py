"""Figures of Wu et al. 2025 on attention: masks, maps, sinks, and where it goes without learning."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType as Colour

from position_bias.emergence import accuracy_gaps
from position_bias.emergence.figures import mask_look, networks, pale, seeds_by_depth, setting
from position_bias.emergence.runs import rounding_decides
from position_card.core.artifacts import TensorFile
from position_card.drawing.looks import (
    CENTRE,
    DIVERGING,
    HIDDEN_KEYS,
    MASKS,
    REFERENCE,
    Look,
    depth_colour,
    legend,
    shades,
)
from position_card.drawing.panels import panels
from position_card.drawing.shown import draws
from position_card.drawing.style import COLUMN, PAGE, TYPE
from position_card.rollout.attention import Mask, causal_mask, prefix_mask, sliding_window_mask

NODE = 13.0  # diameter in points
OUTLINE: dict[str, Any] = {"markeredgecolor": "black", "markeredgewidth": 0.6}  # of a node
ARC = 0.5  # height of an edge over half its length
WEIGHT = "attention weight \N{MULTIPLICATION SIGN} readable tokens (1: uniform)"
MINUS = "\N{MINUS SIGN}"
LESS: dict[str, Any] = {"marker": "_", "s": 8, "linewidth": 0.5, "color": "black"}  # in keys of little attention
DOUBLINGS = 3  # above and below uniform attention, that colours of maps span
EDGE = "0.25"
ROUNDING_NOTE = "rounding decides:\n$1/w = \\tau$"  # in a panel of a threshold and a window to match
BASELINES: dict[str, tuple[str, dict[str, Any]]] = {  # states beside the trained one: what they are, their looks
    "untrained": ("untrained", {"marker": "o", "markersize": 3, "color": "white", "markeredgecolor": "black"}),
    "uniform": ("exactly uniform attention", {"marker": "_", "markersize": 5, "color": "black"}),
}
MOST_NAMED = 3  # tokens that a title names as the most frequent sink
LAYERS_SHOWN, LEAST_SHOWN = 60, 1e-10  # of the convergence with depth
MASK_LINES = {  # masks: line, weight at which the name stands beside the curve, and on which side of it
    "prefix 4": ("-", 3e-10, "left"),
    "causal": ("-", 3e-10, "left"),
    "window 4": ("-", 6e-9, "right"),
    "window 2": ("--", 1e-3, "left"),
}
LABEL_DISTANCE = 1.5  # layers, between a curve and its name
CRITICAL = {"critical": "o", "printed": "v"}  # columns of critical points: their marks


def masks_and_graphs() -> Figure:
    """Figure 1: three masks of five tokens, below, as graphs above, with an edge from each token to those that read it.

    Self-loops are left out of the graphs. Centre nodes, in yellow, are those that every token reads,
    directly or through others.
    """
    masks = {"causal": causal_mask(5), "window2": sliding_window_mask(5, 2), "prefix2": prefix_mask(5, 2)}
    label = "Three attention masks as graphs and as matrices, with their centre nodes"
    titles, rows = {name: mask_look(name).name for name in masks}, {"graph": "", "matrix": "reading token (query)"}
    figure, grid = panels(label, 3.2, titles, rows, x="token read (key)", height_ratios=[1, 2.2])
    for name, mask in masks.items():
        _graph(grid["graph", name], mask)
        _matrix(grid["matrix", name], mask, name)
    node = Look("centre node: every token reads it, directly or through others", CENTRE)
    legend(figure, [node.entry(linestyle="", markersize=7, **OUTLINE)])
    return figure


def maps(maps: TensorFile, iterations: int, sequences: int) -> Figure:
    """Figures 7 and 12: attention under the causal mask alone, with a column for each layer.

    Above the mean over sequences, below one of them. Rows of a map are queries. Colours are weights times the number of
    tokens that the query may read, so that uniform attention is white in every row, on a scale of powers of two; less
    than half of it has a minus sign, for print without colours. The file has maps of other networks, too; the first one
    without positional encoding is drawn. It was trained for so many `iterations`, and the mean is over `sequences`.
    """
    labels, tensors = maps.labels, maps.read("mean", "example")
    index = next(index for index, member in enumerate(labels["members"]) if member["encoding"] == "none")
    kinds = {"mean over sequences": tensors["mean"][index], "one sequence": tensors["example"][index]}
    layers, n = tensors["mean"].shape[1:3]
    side = (PAGE - 1.6) / max(layers, 2)
    readable = np.where(causal_mask(n), np.arange(1, n + 1)[:, None], np.nan)
    maxima = np.nanmax(tensors["mean"][index] * readable, axis=(1, 2))
    by_layer = [f"{maximum:.2g} times in layer {layer}" for layer, maximum in enumerate(maxima, start=1)]
    label = f"Mean attention under a causal mask against uniform attention: at most {', '.join(by_layer)}"
    titles = {layer: f"layer {layer + 1}" for layer in range(layers)}
    rows = {kind: f"{kind}\nreading token (query)" for kind in kinds}
    figure, grid = panels(
        label, 2 * side + 0.4, titles, rows, x="token read (key)", sharex=True, sharey=True, layout="compressed"
    )
    colours = DIVERGING.with_extremes(bad=HIDDEN_KEYS)
    names, step = token_names(n), ceil(n * 1.3 * TYPE / 72 / side)
    for (kind, layer), axes in grid.items():
        doublings = np.log2(np.maximum(kinds[kind][layer] * readable, 2.0 ** (-2 * DOUBLINGS)))
        image = axes.imshow(doublings, cmap=colours, vmin=-DOUBLINGS, vmax=DOUBLINGS, interpolation="none")
        rows_below, keys_below = np.nonzero(doublings < -1)
        axes.scatter(keys_below, rows_below, **LESS)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=1.5, width=0.4, pad=1)
        axes.set_xticks(range(0, n, step), names[::step])
        axes.set_yticks(range(0, n, step), names[::step])
    bar = figure.colorbar(image, ax=list(grid.values()), aspect=35, fraction=0.04, shrink=0.92, extend="both")
    ticks = range(-DOUBLINGS, DOUBLINGS + 1)
    bar.set_ticks(list(ticks), labels=[f"{2.0**power:g}" for power in ticks])
    bar.set_label(f"{WEIGHT}; {MINUS}: below 0.5")
    bar.outline.set_linewidth(0.4)
    omega = "training" if labels["vocabulary"] == "fixed" else "none"  # the first of the task's
    seed = labels["members"][index]["seed"]
    settings = [networks(labels["vocabulary"], omega, labels["residual"]), f"{iterations:,} iterations"]
    legend(figure, settings="; ".join([*settings, f"seed {seed} alone", f"mean over n = {sequences:,} sequences"]))
    return figure


def token_names(n: int) -> list[str]:
    """Names of the tokens of a sequence of items and labels that ends with the query: x1 y1 .. xq."""
    return [f"${'xy'[index % 2]}_{index // 2 + 1}$" for index in range(n - 1)] + ["$x_q$"]


def token_axis(axes: Axes, n: int) -> None:
    """Name the tokens 1 to n below the horizontal axis: items, and one line lower the labels that stand between."""
    items, names = np.arange(1, n + 1, 2), token_names(n)
    axes.set_xticks(items, names[::2])
    axes.set_xticks(items[:-1] + 1, names[1::2], minor=True)
    axes.tick_params(axis="x", which="minor", pad=3.5 + 1.2 * TYPE)


def sinks_of_networks(
    sinks: pd.DataFrame,
    evidence: list[pd.DataFrame],
    evidence_runs: list[pd.DataFrame],
    level: float,
    threshold: float,
    iterations: int,
) -> Figure:
    """Figures 8a-c and 13a-c: share of the queries whose weight on a token exceeds a threshold, by mask.

    Of the networks without positional encoding in `sinks`, which joins their tables, after so many `iterations`;
    `evidence` are the tables of longer training in evidence/, and `evidence_runs` say how long that was. Bars are
    trained networks, with t-intervals over seeds, and pale ones to their left those of the shorter training. Untrained
    ones and exactly uniform attention show what is mere normalisation. A panel is pale where the weights of a full
    window are the threshold but for rounding. The small panels have the other thresholds of the table.
    """
    of_trainings = accuracy_gaps.Trainings.from_tables(
        sinks[sinks["encoding"] == "none"], [t[t["encoding"] == "none"] for t in evidence]
    )
    keys = [*accuracy_gaps.CONFIGURATION, "state", "tau", "token"]
    metric, shorter = (accuracy_gaps.summary(table, keys, "value", level) for table in of_trainings)
    shorter = shorter[shorter["state"] == "trained"]
    looks = {mask: mask_look(mask) for mask in pd.concat([shorter, metric])["mask"].unique()}
    other_thresholds = [value for value in sorted(metric["tau"].unique()) if not np.isclose(value, threshold)]
    rows = {threshold: f"attention sink, $\\tau = {threshold:g}$\n(share of queries)"}
    rows |= {value: rf"$\tau = {value:g}$" for value in other_thresholds}
    figure, grid = panels(
        _finding_on_sinks(metric, looks, threshold),
        1.9 + 0.7 * len(other_thresholds),
        {mask: look.name for mask, look in looks.items()},
        rows,
        x="token read (key)",
        width=COLUMN if len(looks) == 1 else PAGE,
        sharex=True,
        sharey="row",
        height_ratios=[2.2] + [1] * len(other_thresholds),
    )
    for (tau, mask), axes in grid.items():
        of_panel, of_shorter = (
            table[(table["mask"] == mask) & np.isclose(table["tau"], tau)] for table in (metric, shorter)
        )
        by_rounding = rounding_decides(mask, tau)
        _sink_panel(axes, of_panel, of_shorter, looks[mask].colour, 0.4 if by_rounding else 1)
        if by_rounding:
            axes.text(1, 1, ROUNDING_NOTE, transform=axes.transAxes, ha="right", va="top")
    for axes in grid.values():  # once all are drawn: the panels of a row share their limits
        axes.set_ylim(bottom=0)
    colours = {look.colour for look in looks.values()}
    colour = colours.pop() if len(colours) == 1 else REFERENCE
    longest = max([iterations, *(table["iterations"].max() for table in evidence_runs if len(shorter))])
    entries = [Patch(color=colour, label=f"trained, {longest:,} iterations")]
    if len(shorter):
        edge: dict[str, Any] = {"edgecolor": colour, "linewidth": 0.4}
        entries.append(Patch(facecolor=pale(colour), label=f"pale: {iterations:,} iterations", **edge))
    baselines = [Line2D([], [], linestyle="", label=label, **look) for label, look in BASELINES.values()]
    settings = f"{setting(metric[metric['state'] == 'trained'])}; {100 * level:g} % t-intervals over seeds"
    settings += f"; pale: {', '.join(seeds_by_depth(shorter))}" if len(shorter) else ""
    legend(figure, [*entries, *baselines], settings=settings)
    for table in of_trainings:
        for scale, of_scale in table.groupby("scale"):
            draws(figure, accuracy_gaps.network_names(of_scale), str(scale))
    return figure


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
    draws(figure, [f"Theorem {number}" for number in ("4.1", "4.2", "4.3", "4.5", "4.7")])
    return figure


def _finding_on_sinks(metric: pd.DataFrame, looks: Mapping[str, Look], threshold: float) -> str:
    """Which token is most often a sink after training, by mask, with those whose intervals overlap with its own.

    `metric` has the means over seeds. Masks for which rounding decides are left out, and the query, which it alone
    reads.
    """
    at_threshold = metric[np.isclose(metric["tau"], threshold) & (metric["state"] == "trained")]
    names = token_names(int(metric["token"].max()))
    masks_by_sink: dict[str, list[str]] = {}
    for mask, look in looks.items():
        if not rounding_decides(mask, threshold):
            means = at_threshold[(at_threshold["mask"] == mask) & (at_threshold["token"] < len(names))]
            leader = means.nlargest(1, "value").iloc[0]
            tokens = means.loc[(means["token"] == leader["token"]) | (means["high"] >= leader["low"]), "token"]
            sink = " or ".join(names[token - 1] for token in tokens) if len(tokens) <= MOST_NAMED else "no single token"
            masks_by_sink.setdefault(sink, []).append(look.name.rpartition(", ")[2].replace("$", ""))
    if not masks_by_sink:
        return "How often each token is an attention sink, in trained and untrained networks"
    sinks = [f"{sink} ({', '.join(masks)})" for sink, masks in masks_by_sink.items()]
    return f"Besides the query, the most frequent attention sink after training is {'; '.join(sinks)}"


def _sink_panel(axes: Axes, sinks: pd.DataFrame, shorter: pd.DataFrame, colour: Colour, strength: float) -> None:
    """Bars of the trained networks with their intervals, and marks of the baselines.

    Those of less training stand beside them, pale and to the left.
    """
    width, aside = (0.42, 0.22) if len(shorter) else (0.8, 0.0)
    axes.bar(shorter["token"] - aside, shorter["value"], width, color=pale(colour), edgecolor=colour, linewidth=0.4)
    after_training = sinks[sinks["state"] == "trained"]
    axes.bar(after_training["token"] + aside, after_training["value"], width, color=colour, alpha=strength)
    with_interval = after_training.dropna(subset=["low", "high"])
    at = with_interval["token"] + (aside or -0.2)  # beside the marks
    axes.vlines(at, with_interval["low"], with_interval["high"], color="black", linewidth=0.7)
    for state, (_, looks) in BASELINES.items():
        baseline = sinks[sinks["state"] == state]
        axes.plot(baseline["token"], baseline["value"], linestyle="", clip_on=False, **looks)
    n = int(sinks["token"].max())
    token_axis(axes, n)
    axes.set_xlim(0.3, n + 0.7)


def _graph(axes: Axes, mask: Mask) -> None:
    """Tokens on a line; edges to later tokens run above it, to earlier ones below."""
    n = len(mask)
    centre = np.flatnonzero(np.linalg.matrix_power(mask, n).all(axis=0))  # what all read, directly or through others
    edges = np.argwhere(mask & ~np.eye(n, dtype=np.bool_))
    backward = max(0, *(edges[:, 1] - edges[:, 0]))  # length of the longest
    looks: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 6, "shrinkA": NODE / 2, "shrinkB": NODE / 2}
    looks |= {"connectionstyle": f"arc3,rad={-ARC}", "linewidth": 0.7, "color": EDGE}
    for query, key in edges:
        axes.add_patch(FancyArrowPatch((key, 0), (query, 0), **looks))
    for token in range(n):
        fill = CENTRE if token in centre else "white"
        axes.plot(token, 0, "o", markersize=NODE, color=fill, zorder=3, **OUTLINE)
        axes.text(token, 0, str(token + 1), ha="center", va="center_baseline", zorder=4)
    axes.set(
        xlim=(-0.5, n - 0.5), ylim=(-0.35 - ARC * backward / 2, 0.1 + ARC * (n - 1) / 2), aspect="equal", anchor="N"
    )
    axes.set_axis_off()


def _matrix(axes: Axes, mask: Mask, name: str) -> None:
    """Draw a mask, bool `[n, n]`, coloured where the token of the row reads that of the column; `name` gives it."""
    n = len(mask)
    colours = ListedColormap(["white", mask_look(name).colour])
    axes.pcolormesh(mask, cmap=colours, vmin=0, vmax=1, edgecolor="0.7", linewidth=0.5)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.set_xticks(np.arange(n) + 0.5, [str(token + 1) for token in range(n)])
    axes.set_yticks(np.arange(n) + 0.5, [str(token + 1) for token in range(n)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _convergence(axes: Axes, table: pd.DataFrame) -> None:
    """Mass beyond the centre nodes: uniform attention, its bound (dotted), and random attention (shaded)."""
    curves_shown = table[table["layers"] <= LAYERS_SHOWN]
    for mask, (style, weight, side) in MASK_LINES.items():
        colour = MASKS[mask.split()[0]].colour
        curve = curves_shown[curves_shown["mask"] == mask]
        axes.fill_between(curve["layers"], curve["low"], curve["high"], color=colour, alpha=0.25, linewidth=0)
        axes.plot(curve["layers"], curve["value"], style, color=colour, label=mask)
        axes.plot(curve["layers"], curve["bound"], ":", color=colour, linewidth=0.9)
        end = curve["layers"][curve["value"] >= weight].max()
        is_left = side == "left"
        place = end - LABEL_DISTANCE if is_left else end + 1.5 * LABEL_DISTANCE
        axes.text(place, weight, mask, color=colour, ha="right" if is_left else "left", va="center")
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
