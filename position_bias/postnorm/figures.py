"""Figures of Zsamboki et al. 2025 on the Set Complement Task: laws of the logit gap, with and without norms.

Tables of tests have one row per number: scheme, seed, length (s, the tokens present), quantity, value and trained (the
length of training sequences); tasks are named set-complement-V.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from position_bias.attention import Array
from position_bias.drawing.intervals import band, by_seed, counted, dots, marks
from position_bias.drawing.looks import NORMS, REFERENCE, legend, present, side_by_side
from position_bias.drawing.panels import curves, panels
from position_bias.drawing.style import COLUMN
from position_bias.postnorm import theory
from position_bias.postnorm.schemes import SCHEMES
from position_bias.postnorm.trials import vocabulary

TVD = "total variation distance"
PRESENT = "tokens present $s$"
MARKS = 6  # of a line, about, along the lengths
LOOKS = {scheme: NORMS[scheme] for scheme in SCHEMES}
LAWS: dict[str, tuple[str, str, Any]] = {  # of the gap: the scheme that it is fitted to, its name and line
    theory.DISPERSED: ("none", r"$g = C/s$", "--"),
    theory.NORMALISED: ("peri", r"$g = C/\sqrt{s(v-s)}$", "-."),
}


def set_complement(tests: pd.DataFrame, level: float) -> Figure:
    """Distance to the target against the tokens present, by vocabulary; trained lengths are shaded.

    Above it is among all tokens, below among the legal ones alone. Lines are means over seeds with bands of
    t-intervals. Over those above stand the laws of the gap, each with the constant that fits one scheme at trained
    lengths. Dotted is a guess, s/v.
    """
    tasks = _by_vocabulary(tests)
    schemes = present(tests["scheme"], LOOKS)
    laws = {law: fitted for law, fitted in LAWS.items() if fitted[0] in schemes}
    titles = {v: f"$v = {v}$, trained up to $s = {of_task['trained'].iloc[0]}$" for v, of_task in tasks.items()}
    rows = {"tvd": TVD, "legal_tvd": "the same among\nlegal tokens alone"}
    label = "Total variation distance by the number of tokens present, for each placement of norms"
    figure, grid = panels(label, 3.6, titles, rows, x=PRESENT, sharex="col", sharey="row", height_ratios=(3, 2))
    for (quantity, v), axes in grid.items():
        _by_length(axes, tasks[v][tasks[v]["quantity"] == quantity], v, level)
    for v, of_task in tasks.items():
        axes = grid["tvd", v]
        for law, (scheme, _, style) in laws.items():
            axes.plot(*_law_of(of_task, scheme, law, v), style, color=REFERENCE, linewidth=1, zorder=3)
        s = np.arange(1, v)
        axes.plot(s, s / v, ":", color=REFERENCE, linewidth=0.8, zorder=0)
        axes.set_ylim(0, 1)
        grid["legal_tvd", v].set_ylim(bottom=0)
    figure.align_ylabels()
    fits = [
        Line2D([], [], color=REFERENCE, linestyle=style, label=f"{name}, fitted to {LOOKS[scheme].name}")
        for scheme, name, style in laws.values()
    ]
    fits.append(Line2D([], [], color=REFERENCE, linestyle=":", label="guess"))
    legend(figure, [look.entry() for look in schemes.values()], fits, counted(tests))
    return figure


def resharpening(tests: pd.DataFrame, level: float) -> Figure:
    """Which law the gap g follows, by vocabulary: flat in the first column is C/s, in the second C/sqrt(s(v-s)).

    The third column is attention: the largest weight of a row times s, 1 where attention is uniform. Means over seeds
    with bands of t-intervals; trained lengths are shaded.
    """
    tasks = _by_vocabulary(tests)
    titles = {
        theory.DISPERSED: r"flat if $g = C/s$",
        theory.NORMALISED: r"flat if $g = C/\sqrt{s(v-s)}$",
        "attention": "attention",
    }
    labels = {
        theory.DISPERSED: r"$g \cdot s$",
        theory.NORMALISED: r"$g \cdot \sqrt{s(v-s)}$",
        "attention": r"largest weight $\cdot\, s$",
    }
    rows = {v: f"$v = {v}$" for v in tasks}
    label = "The logit gap scaled by each law, and the largest attention weight, by tokens present"
    height = 0.4 + 1.45 * len(tasks)
    figure, grid = panels(label, height, titles, rows, x=PRESENT, y=labels, sharex="row")
    for (v, name), axes in grid.items():
        shown = tasks[v][tasks[v]["quantity"] == ("largest_weight" if name == "attention" else "gap")]
        s = shown["length"]
        factor = np.sqrt(s * (v - s)) if name == theory.NORMALISED else s
        _by_length(axes, shown.assign(value=shown["value"] * factor), v, level)
        if name == "attention":
            axes.axhline(1, color=REFERENCE, linewidth=0.7, linestyle=":", zorder=0)
        else:
            axes.set_ylim(bottom=0)
    figure.align_ylabels()
    legend(figure, [look.entry() for look in present(tests["scheme"], LOOKS).values()], settings=counted(tests))
    return figure


def dimension(table: pd.DataFrame, level: float) -> Figure:
    """Distance beyond trained lengths against the width d: every seed a dot, the best of them a line.

    Marks are means over seeds with t-intervals. From d = v - 1 on, embeddings can form a simplex.
    """
    (v,) = _by_vocabulary(table)
    beyond = table[(table["quantity"] == "tvd") & (table["length"] > table["trained"])]
    schemes = present(table["scheme"], LOOKS)
    label = "Total variation distance beyond the trained lengths, by width of the network"
    figure, axes = plt.subplots(figsize=(COLUMN, 2.3), label=label)
    for scheme, look, aside in side_by_side(schemes, 0.16):
        of_scheme = beyond[beyond["scheme"] == scheme]
        best = by_seed(of_scheme, "width").groupby("width")["value"].min()
        axes.plot(best.index + aside, best, color=look.colour, linewidth=1)
        marks(axes, of_scheme, "width", level, look, aside, markersize=3)
        dots(axes, of_scheme, "width", look.colour, aside + 0.25)  # beside the interval
    axes.axvline(v - 1, color=REFERENCE, linewidth=0.8, linestyle=":", zorder=0)
    axes.annotate(f" $v - 1 = {v - 1}$", (v - 1, 1), xycoords=("data", "axes fraction"), color=REFERENCE, va="top")
    axes.set(xlabel="width $d$", ylabel=f"{TVD}\nbeyond trained lengths", xticks=sorted(table["width"].unique()))
    best_line = Line2D([], [], color=REFERENCE, label="best seed")
    legend(figure, [*(look.entry(linestyle="") for look in schemes.values()), best_line], settings=counted(table))
    return figure


def _law_of(tests: pd.DataFrame, scheme: str, law: str, v: int) -> tuple[Array, Array]:
    """Tokens present, and the distance that a law gives, whose constant is fitted to a scheme at trained lengths.

    The constant is the mean of the gaps over those that the law has with the constant 1.
    """
    chosen = (tests["scheme"] == scheme) & (tests["quantity"] == "gap") & (tests["length"] <= tests["trained"])
    gaps = tests[chosen]
    constant = float(np.mean(gaps["value"].to_numpy() / theory.law_gap(law, gaps["length"], v, 1.0)))
    s = np.linspace(1, v - 1, 100)
    return s, theory.total_variation(s, v, constant * theory.law_gap(law, s, v, 1.0))


def _by_vocabulary(tests: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Tests of each Set Complement Task, by v, the smallest first."""
    return dict(list(tests.groupby(tests["task"].map(vocabulary))))


def _by_length(axes: Axes, table: pd.DataFrame, v: int, level: float) -> None:
    """A quantity of one task against the tokens present, by scheme; trained lengths are shaded."""
    for _, look, curve in curves(table, "scheme", LOOKS):
        band(axes, curve, "length", level, look, every=max(1, v // MARKS))
    axes.axvspan(1, table["trained"].iloc[0], color="0.92", linewidth=0, zorder=-1)
    axes.set_xlim(1, v - 1)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
