"""Figures of Zsamboki et al. 2025 on the Set Complement Task: laws of the logit gap, with and without norms.

Tables of tests have a row a number: scheme, seed, length (s, the tokens present), quantity, value and trained (the
length of training sequences); tasks are named set-complement-V.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from position_bias.attention import Array
from position_bias.drawing.intervals import band, by_seed, counted, dots, marks
from position_bias.drawing.looks import NORMS, REFERENCE, legend, present, side_by_side
from position_bias.drawing.style import COLUMN, PAGE, TALLEST
from position_bias.postnorm import theory
from position_bias.postnorm.settings import SCHEMES

TVD = "total variation distance"
PRESENT = "tokens present $s$"
MARKS = 6  # of a line, about, along the lengths

LOOKS = {scheme: NORMS[scheme] for scheme in SCHEMES}
LAWS: dict[str, tuple[str, str, Any]] = {  # of the gap: the scheme that it is fitted to, its name and line
    theory.DISPERSED: ("none", r"$g = C/s$", "--"),
    theory.NORMALISED: ("peri", r"$g = C/\sqrt{s(v-s)}$", "-."),
}


def set_complement(tests: pd.DataFrame, level: float) -> Figure:
    """Distance to the target against the tokens present, a column a vocabulary; trained lengths are shaded.

    Above it is among all tokens, below among the legal ones alone. Lines are means over seeds with bands of
    t-intervals. Over those above stand the laws of the gap, each with the constant that fits one scheme at trained
    lengths. Dotted is a guess, s/v.
    """
    tasks = _by_vocabulary(tests)
    schemes = present(tests["scheme"], LOOKS)
    figure, grid = plt.subplots(
        2,
        len(tasks),
        figsize=(PAGE, 4.3),
        sharex="col",
        sharey="row",
        height_ratios=(3, 2),
        squeeze=False,
        label="Total variation distance against the tokens present by placement of norms, a column for each vocabulary",
    )
    row = list(grid[0])
    for axes, below, (v, of_task) in zip(row, grid[1], tasks.items(), strict=True):
        for scheme, look in schemes.items():
            band(axes, _of(of_task, scheme, "tvd"), "length", level, look, every=max(1, v // MARKS))
            band(below, _of(of_task, scheme, "legal_tvd"), "length", level, look, every=max(1, v // MARKS))
        for law, (scheme, _, style) in LAWS.items():
            if scheme in schemes:
                axes.plot(*_law_of(of_task, scheme, law, v), style, color=REFERENCE, linewidth=1, zorder=3)
        _shade_trained(axes, of_task)
        _shade_trained(below, of_task)
        axes.set_title(f"$v = {v}$, trained up to $s = {of_task['trained'].iloc[0]}$")
        s = np.arange(1, v)
        axes.plot(s, s / v, ":", color=REFERENCE, linewidth=0.8, zorder=0)
        axes.set_xlim(1, v - 1)
        axes.set_ylim(0, 1)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        below.set_xlabel(PRESENT)
    row[0].set_ylabel(TVD)
    grid[1, 0].set_ylim(bottom=0)
    grid[1, 0].set_ylabel("the same among\nlegal tokens alone")
    figure.align_ylabels()
    fits = [
        Line2D([], [], color=REFERENCE, linestyle=style, label=f"{name}, fitted to {LOOKS[scheme].name}")
        for scheme, name, style in LAWS.values()
        if scheme in schemes
    ]
    legend(figure, [look.entry() for look in schemes.values()], title=counted(tests))
    legend(figure, [*fits, Line2D([], [], color=REFERENCE, linestyle=":", label="guess")], "lower center")
    return figure


def resharpening(tests: pd.DataFrame, level: float) -> Figure:
    """Which law the gap g follows, a row a vocabulary: flat in the first column is C/s, in the second C/sqrt(s(v-s)).

    The third column is attention: the largest weight of a row times s, 1 where attention is uniform. Means over seeds
    with bands of t-intervals; trained lengths are shaded.
    """
    tasks = _by_vocabulary(tests)
    schemes = present(tests["scheme"], LOOKS)
    labels = {"gap": r"$g \cdot s$", "law": r"$g \cdot \sqrt{s(v-s)}$", "largest_weight": r"largest weight $\cdot\, s$"}
    figure, rows = plt.subplots(
        len(tasks),
        len(labels),
        figsize=(PAGE, min(0.9 + 1.45 * len(tasks), TALLEST)),
        sharex="row",
        squeeze=False,
        label="The logit gap over what each law says of it, and the largest attention weight, by the tokens present",
    )
    for row, (v, of_task) in zip(rows, tasks.items(), strict=True):
        for scheme, look in schemes.items():
            gap, weight = (_of(of_task, scheme, quantity) for quantity in ("gap", "largest_weight"))
            root = np.sqrt(gap["length"] * (v - gap["length"]))
            scaled = (
                gap.assign(value=gap["value"] * gap["length"]),
                gap.assign(value=gap["value"] * root),
                weight.assign(value=weight["value"] * weight["length"]),
            )
            for axes, shown in zip(row, scaled, strict=True):
                band(axes, shown, "length", level, look, every=max(1, v // MARKS))
        for axes, label in zip(row, labels.values(), strict=True):
            _shade_trained(axes, of_task)
            axes.set_ylabel(label)
            axes.set_xlim(1, v - 1)
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        row[0].set_ylim(bottom=0)
        row[1].set_ylim(bottom=0)
        row[2].axhline(1, color=REFERENCE, linewidth=0.7, linestyle=":", zorder=0)
        row[0].set_ylabel(f"$v = {v}$\n{labels['gap']}")
    for axes, title in zip(rows[0], (r"flat if $g = C/s$", r"flat if $g = C/\sqrt{s(v-s)}$", "attention"), strict=True):
        axes.set_title(title)
    for axes in rows[-1]:
        axes.set_xlabel(PRESENT)
    figure.align_ylabels()
    legend(figure, [look.entry() for look in schemes.values()], title=counted(tests))
    return figure


def dimension(table: pd.DataFrame, level: float) -> Figure:
    """Distance beyond trained lengths against the width d: every seed a dot, the best of them a line.

    Marks are means over seeds with t-intervals. From d = v - 1 on, embeddings can form a simplex.
    """
    (v,) = _by_vocabulary(table)
    beyond = table[(table["quantity"] == "tvd") & (table["length"] > table["trained"])]
    schemes = present(table["scheme"], LOOKS)
    figure, axes = plt.subplots(
        figsize=(COLUMN, 2.7), label="Total variation distance beyond trained lengths against the width of the network"
    )
    for scheme, look, aside in side_by_side(schemes, 0.16):
        of_scheme = beyond[beyond["scheme"] == scheme]
        best = by_seed(of_scheme, "width").groupby("width")["value"].min()
        axes.plot(best.index + aside, best, color=look.colour, linewidth=1)
        marks(axes, of_scheme, "width", level, look, aside, markersize=3)
        dots(axes, of_scheme, "width", look.colour, aside + 0.25)  # beside the interval
    axes.axvline(v - 1, color=REFERENCE, linewidth=0.8, linestyle=":", zorder=0)
    axes.annotate(f" $v - 1 = {v - 1}$", (v - 1, 1), xycoords=("data", "axes fraction"), color=REFERENCE, va="top")
    axes.set_xlabel("width $d$")
    axes.set_ylabel(f"{TVD}\nbeyond trained lengths")
    axes.set_xticks(sorted(table["width"].unique()))
    best_line = Line2D([], [], color=REFERENCE, label="best seed")
    legend(figure, [*(look.entry(linestyle="") for look in schemes.values()), best_line], title=counted(table))
    return figure


def fitted_constant(law: str, lengths: npt.ArrayLike, gaps: npt.ArrayLike, v: int) -> float:
    """C of a law of the gap that is proportional to C: the mean of measured gaps over those that C = 1 gives."""
    return float(np.mean(np.asarray(gaps) / theory.law_gap(law, lengths, v, 1.0)))


def _law_of(tests: pd.DataFrame, scheme: str, law: str, v: int) -> tuple[Array, Array]:
    """Tokens present, and the distance that a law gives with the constant of a scheme's gaps at trained lengths."""
    gaps = _of(tests, scheme, "gap")
    trained = gaps[gaps["length"] <= gaps["trained"]]
    constant = fitted_constant(law, trained["length"], trained["value"], v)
    s = np.linspace(1, v - 1, 100)
    return s, theory.total_variation(s, v, constant * theory.law_gap(law, s, v, 1.0))


def _by_vocabulary(tests: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Tests of each task set-complement-V, by V."""
    sizes = {int(str(task).rpartition("-")[2]): task for task in tests["task"].unique()}
    return {v: tests[tests["task"] == sizes[v]] for v in sorted(sizes)}


def _of(tests: pd.DataFrame, scheme: str, quantity: str) -> pd.DataFrame:
    return tests[(tests["scheme"] == scheme) & (tests["quantity"] == quantity)]


def _shade_trained(axes: Axes, tests: pd.DataFrame) -> None:
    axes.axvspan(1, tests["trained"].iloc[0], color="0.92", linewidth=0, zorder=-1)
