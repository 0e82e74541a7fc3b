"""Figures of Zsamboki et al. 2025: laws of the logit gap, widths, averaged weights, languages and stability.

Tables of tests have one row per number: task, scheme, seed, length, quantity, value and trained (the length of training
sequences). The length of a sequence of the Set Complement Task, set-complement-V, is s, the tokens present.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from position_bias.postnorm import theory
from position_bias.postnorm.runs import LANGUAGE, MINIMAL, SCHEMES, part_of, vocabulary
from position_card.drawing.intervals import band, by_seed, count_label, dots, line_with_marks, marks, marks_across
from position_card.drawing.looks import NORMS, REFERENCE, Look, legend, present, side_by_side
from position_card.drawing.panels import curves, log_ticks, panels
from position_card.drawing.shown import draws
from position_card.drawing.style import COLUMN
from position_card.rollout.statistics import group_means

TVD = "total variation distance"
PRESENT = "tokens present $s$"
MARKS = 6  # of a line, about
LOOKS = {scheme: NORMS[scheme] for scheme in SCHEMES}
LAWS: dict[str, tuple[str, str, Any]] = {  # of the gap: the scheme that it is fitted to, its name and line
    theory.DISPERSED: ("none", r"$g = C/s$", "--"),
    theory.NORMALISED: ("peri", r"$g = C/\sqrt{s(v-s)}$", "-."),
}
RATES = {  # of learning, under one scheme, whose colour both have: whether it decays
    False: NORMS["peri"]._replace(name="constant rate", marker="o"),
    True: NORMS["peri"]._replace(name="decaying rate", marker="s", filled=False),
}
TASK_NAMES = {"complement": "$v = {}$", "maximum": "maximum of {}", "dyck": "Dyck({}, {})", "tomita": "Tomita {}"}
GAINS = {"tvd": "total variation distance", "auc": "ROC AUC"}


def set_complement(tests: pd.DataFrame, level: float) -> Figure:
    """Distance to the target against the tokens present, by vocabulary; trained lengths are shaded.

    Above it is among all tokens, below among the legal ones alone. Lines are means over seeds with bands of
    t-intervals. Over those above stand the laws of the gap, each with the constant that fits one scheme at trained
    lengths. Dotted is a guess, s/v.
    """
    tasks = _by_vocabulary(tests)
    schemes = present(tests["scheme"], LOOKS)
    laws = {law: law_look for law, law_look in LAWS.items() if law_look[0] in schemes}
    titles = {v: f"$v = {v}$, trained up to $s = {of_task['trained'].iloc[0]}$" for v, of_task in tasks.items()}
    rows = {"tvd": TVD, "legal_tvd": "the same among\nlegal tokens alone"}
    label = "Total variation distance by the number of tokens present, for each placement of norms"
    figure, grid = panels(label, 3.6, titles, rows, x=PRESENT, sharex="col", sharey="row", height_ratios=(3, 2))
    for (quantity, v), axes in grid.items():
        _by_length(axes, tasks[v][tasks[v]["quantity"] == quantity], v, level)
    for v, of_task in tasks.items():
        axes = grid["tvd", v]
        for law, (scheme, _, style) in laws.items():
            fine = np.linspace(1, v - 1, 100)
            gap = fitted_constant(of_task, scheme, law, v) * theory.law_gap(law, fine, v, 1.0)
            axes.plot(fine, theory.total_variation(fine, v, gap), style, color=REFERENCE, linewidth=1, zorder=3)
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
    legend(figure, [look.entry() for look in schemes.values()], fits, count_label(tests))
    draws(figure, _names(tests, "task", "scheme"))
    return figure


def resharpening(tests: pd.DataFrame, level: float) -> Figure:
    """Draw which law the gap g follows, a row for each vocabulary v, against the number s of tokens present.

    The first column has g s, which is flat where g = C/s; the second g sqrt(s(v-s)), which is flat where g is
    C/sqrt(s(v-s)). The third column has the largest attention weight of a row times s, 1 where attention is uniform.
    Lines are means over seeds with bands of t-intervals; trained lengths are shaded.
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
        of_panel = tasks[v][tasks[v]["quantity"] == ("largest_weight" if name == "attention" else "gap")]
        s = of_panel["length"]
        factor = np.sqrt(s * (v - s)) if name == theory.NORMALISED else s
        _by_length(axes, of_panel.assign(value=of_panel["value"] * factor), v, level)
        if name == "attention":
            axes.axhline(1, color=REFERENCE, linewidth=0.7, linestyle=":", zorder=0)
        else:
            axes.set_ylim(bottom=0)
    figure.align_ylabels()
    legend(figure, [look.entry() for look in present(tests["scheme"], LOOKS).values()], settings=count_label(tests))
    draws(figure, _names(tests, "task", "scheme"))
    return figure


def construction(table: pd.DataFrame) -> Figure:
    """Distance of the networks that are built by hand against the tokens present: laws as lines, networks as marks.

    `table` is that of `construction.distances`, whose sequences differ by less than a mark.
    """
    label = "Networks that are built by hand follow both laws of the gap"
    figure, axes = plt.subplots(figsize=(COLUMN, 2.3), label=label)
    for scheme, look, rows in curves(table, "scheme", LOOKS):
        _, law, style = next(law_look for law_look in LAWS.values() if law_look[0] == scheme)
        axes.plot(rows["length"], rows["predicted"], style, color=look.colour, label=f"{law}, predicted")
        mark: dict[str, Any] = {"color": look.colour, "markerfacecolor": look.inside, "markersize": 3, "linestyle": ""}
        axes.plot(rows["length"], rows["measured"], marker=look.marker, label=f"{look.name}, built", **mark)
    (v,) = table["v"].unique()
    axes.set(xlabel=PRESENT, ylabel=TVD, xlim=(0, v), ylim=(0, None))
    legend(figure, axes.get_lines(), settings=f"{v} different tokens")
    return figure


def dimension(table: pd.DataFrame, level: float) -> Figure:
    """Distance beyond trained lengths against the width d: every seed a dot, the best of them a line.

    Marks are means over seeds with t-intervals. From d = v - 1 on, embeddings can form a simplex.
    """
    (v,) = _by_vocabulary(table)
    longer = table[(table["quantity"] == "tvd") & (table["length"] > table["trained"])]
    schemes = present(table["scheme"], LOOKS)
    label = "Total variation distance beyond the trained lengths, by width of the network"
    figure, axes = plt.subplots(figsize=(COLUMN, 2.3), label=label)
    for scheme, look, offset in side_by_side(schemes, 0.16):
        of_scheme = longer[longer["scheme"] == scheme]
        best = by_seed(of_scheme, "width").groupby("width")["value"].min()
        axes.plot(best.index + offset, best, color=look.colour, linewidth=1)
        marks(axes, of_scheme, "width", level, look, offset, markersize=3)
        dots(axes, of_scheme, "width", look.colour, offset + 0.25)  # beside the interval
    axes.axvline(v - 1, color=REFERENCE, linewidth=0.8, linestyle=":", zorder=0)
    axes.annotate(f" $v - 1 = {v - 1}$", (v - 1, 1), xycoords=("data", "axes fraction"), color=REFERENCE, va="top")
    axes.set(xlabel="width $d$", ylabel=f"{TVD}\nbeyond trained lengths", xticks=sorted(table["width"].unique()))
    best_line = Line2D([], [], color=REFERENCE, label="best seed")
    legend(figure, [*(look.entry(linestyle="") for look in schemes.values()), best_line], settings=count_label(table))
    draws(figure, _names(longer.assign(width=longer["width"].map("d{}".format)), "task", "scheme", "width"))
    return figure


def bema(table: pd.DataFrame, level: float) -> Figure:
    """What averages of the weights do at the trained length, by task: distance among the legal outputs.

    Where one output is legal, that is nothing, and the distance is among all. `table` is of
    `training.averages`. Marks are means over seeds with t-intervals, dots are seeds.
    """
    shown_of = table["task"].map(part_of).map({MINIMAL: "legal_tvd", LANGUAGE: "tvd"})
    at_trained = table[(table["quantity"] == shown_of) & (table["length"] == table["trained"])]
    etas = sorted(table.loc[table["weights"] == "bema", "eta"].unique())
    kinds = {("raw", 0.0): "raw", ("ema", 0.0): "EMA"}
    kinds |= {("bema", eta): f"BEMA\n$\\eta\\!=\\!{eta:g}$" for eta in etas}
    places = [list(kinds).index(kind) for kind in zip(at_trained["weights"], at_trained["eta"], strict=True)]
    at_trained = at_trained.assign(place=places)
    tasks = sorted(table["task"].unique(), key=lambda task: (part_of(task) != MINIMAL, int(task.rpartition("-")[2])))
    lengths = at_trained.groupby("task")["trained"].first()
    outputs = {MINIMAL: "legal tokens alone", LANGUAGE: "all tokens"}
    titles = {task: f"{_task_name(task)}, $L = {lengths[task]}$\n{outputs[part_of(task)]}" for task in tasks}
    label = "Total variation distance of raw and averaged weights, by learning-rate schedule"
    y = f"{TVD}\nat the trained length $L$"
    figure, row = panels(label, 2.2, titles, x="weights", y=y, sharey=True)
    for task, axes in row.items():
        for _, of_kind in at_trained[at_trained["task"] == task].groupby("place"):
            for decay, look, of_rate in curves(of_kind, "decay", RATES):
                offset = 0.36 * decay - 0.26
                marks(axes, of_rate, "place", level, look, offset)
                dots(axes, of_rate, "place", look.colour, offset + 0.14)
        axes.set_xticks(range(len(kinds)), list(kinds.values()))
        axes.set_xlim(-0.6, len(kinds) - 0.4)
    axes.set_ylim(bottom=0)
    legend(figure, [look.entry(linestyle="") for look in RATES.values()], settings=f"peri; {count_label(at_trained)}")
    draws(figure, _names(at_trained.assign(of="averages"), "task", "of", "weights"))
    return figure


def formal_languages(tests: pd.DataFrame, level: float) -> Figure:
    """Maximum Retrieval and formal languages beyond the trained length L: what placements gain over the first, pre.

    On the left the distance to the target, on the right the ROC AUC of words against near misses, which retrieval has
    not. A line for each task; marks are means over lengths beyond L, then over seeds, less those of pre-norm in the
    same seed, with t-intervals. Differences are signed so that right of 0 is better.
    """
    schemes = present(tests["scheme"], LOOKS)
    base, *rest = schemes
    gains = gains_over(tests, base, level)
    tasks = {str(task): _task_name(str(task)) for task in tests["task"].unique()}
    better = {quantity: f"{(rows['low'] > 0).sum()} of {len(rows)}" for quantity, rows in gains.groupby("quantity")}
    quantities = {quantity: name for quantity, name in GAINS.items() if quantity in better}
    counts = [f"in {better[quantity]} comparisons of {name}" for quantity, name in quantities.items()]
    label = f"Beyond the trained length others beat {schemes[base].name}-norm {' and '.join(counts)}"
    x = {
        quantity: f"{name}, gain over {schemes[base].name}\n← worse | better →" for quantity, name in quantities.items()
    }
    figure, row = panels(label, 0.8 + 0.32 * len(tasks), dict.fromkeys(quantities, ""), x=x, sharey=True)
    looks = {scheme: schemes[scheme] for scheme in rest}
    for quantity, axes in row.items():
        for scheme, look, aside in side_by_side(looks, 0.22):
            rows = gains[(gains["scheme"] == scheme) & (gains["quantity"] == quantity)]
            marks_across(axes, [list(tasks).index(task) + aside for task in rows["task"]], rows, "mean", look)
        axes.axvline(0, color=REFERENCE, linewidth=0.7, zorder=0)
        axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.set_yticks(range(len(tasks)), list(tasks.values()))
    settings = (
        f"lengths beyond L, the trained one; {count_label(tests)}; bars: {100 * level:g} % t-intervals over seeds"
    )
    legend(figure, [look.entry(linestyle="") for look in looks.values()], settings=settings)
    draws(figure, _names(tests, "task", "scheme"))
    return figure


def gains_over(tests: pd.DataFrame, base: str, level: float) -> pd.DataFrame:
    """Return what each other scheme gains over `base` in the same seeds, beyond the trained length.

    Columns task, scheme, quantity, mean, low, high, n: of "tvd" how much smaller it is, of "auc" how much larger, with
    intervals of `level` over seeds.
    """
    beyond = tests[(tests["length"] > tests["trained"]) & tests["quantity"].isin(GAINS)]
    by_scheme = beyond.pivot_table(index=["task", "quantity", "seed"], columns="scheme", values="value", sort=False)
    sign = np.where(by_scheme.index.get_level_values("quantity") == "tvd", -1, 1)
    gains = by_scheme.drop(columns=base).sub(by_scheme[base], axis=0).mul(sign, axis=0)
    rows = gains.melt(ignore_index=False, value_name="gain").reset_index()
    return group_means(rows, ["task", "scheme", "quantity"], "gain", level)


def stability(table: pd.DataFrame) -> Figure:
    """Training without warmup by scheme and depth: gradient norm and loss along it, and the highest gradient.

    `table` is of `training.stretches`, one an iteration. Lines are medians over seeds in the range of seeds, at the
    middle learning rate. On the right is a mark for each learning rate, crossed at the top where some seed had a loss
    or gradient that is not finite.
    """
    depths, rates = sorted(table["layers"].unique()), sorted(table["learning_rate"].unique())
    middle = rates[len(rates) // 2]
    schemes = present(table["scheme"], LOOKS)
    titles = {"gradient_norm": f"learning rate {middle:g}", "loss": f"learning rate {middle:g}", "highest": "whole run"}
    x = {"gradient_norm": "iteration, log scale", "loss": "iteration, log scale", "highest": "learning rate"}
    y = {"gradient_norm": "gradient norm", "loss": "loss (nats)", "highest": "highest gradient norm"}
    rows = {layers: f"{layers} layer{'s' if layers > 1 else ''}" for layers in depths}
    label = "Gradient norm and loss in training without warmup, by placement of norms and depth"
    figure, grid = panels(label, 0.4 + 1.6 * len(depths), titles, rows, x=x, y=y, sharex="col")
    for (layers, quantity), axes in grid.items():
        of_depth = table[table["layers"] == layers]
        if quantity == "highest":
            _highest_gradients(axes, of_depth, rates, schemes)
            continue
        for _, look, runs in curves(of_depth[of_depth["learning_rate"] == middle], "scheme", schemes):
            _median_and_range(axes, runs, quantity, look)
        _suited_scale(axes)
    for quantity in ("gradient_norm", "loss"):
        axes = grid[depths[-1], quantity]
        axes.set_xscale("log")
        axes.set_xlim(1, table["iteration"].max())
        axes.xaxis.set_major_formatter("{x:g}")
    figure.align_ylabels()
    ranges = Patch(color=REFERENCE, alpha=0.3, linewidth=0, label="range of seeds")
    cross = Line2D([], [], label="not finite in some seed", **_cross(Look("", REFERENCE)))
    legend(
        figure, [*(look.entry(linewidth=0.9) for look in schemes.values()), ranges, cross], settings=count_label(table)
    )
    layers = table["layers"].map("{} layers".format)
    draws(figure, _names(table.assign(of="stability", layers=layers), "of", "layers", "scheme"))
    return figure


def fitted_constant(tests: pd.DataFrame, scheme: str, law: str, v: int) -> float:
    """The constant of a law of the gap that fits a scheme at trained lengths.

    It is the mean of the gaps over those that the law has with the constant 1.
    """
    is_gap = (tests["scheme"] == scheme) & (tests["quantity"] == "gap") & (tests["length"] <= tests["trained"])
    gaps = tests[is_gap]
    return float(np.mean(gaps["value"].to_numpy() / theory.law_gap(law, gaps["length"], v, 1.0)))


def along_training(curves: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """A quantity by iteration: median, low and high over seeds, as far as all of them are finite.

    `curves` has a row for each seed and iteration of one scheme.
    """
    values = curves.pivot(index="iteration", columns="seed", values=quantity).replace([np.inf, -np.inf], np.nan)
    finite = values.dropna()
    return pd.DataFrame({"median": finite.median(axis=1), "low": finite.min(axis=1), "high": finite.max(axis=1)})


def highest_gradients(runs: pd.DataFrame) -> pd.Series:
    """The highest gradient norm of each seed of one training whose losses and gradients are all finite."""
    finite = np.isfinite(runs["loss"]) & np.isfinite(runs["gradient_norm"])
    return runs.groupby("seed")["gradient_norm"].max()[finite.groupby(runs["seed"]).all()]


def _names(table: pd.DataFrame, *parts: str) -> list[str]:
    """What checks call the networks of a table, by columns."""
    return ["/".join(row) for row in table[[*parts]].drop_duplicates().itertuples(index=False, name=None)]


def _by_vocabulary(tests: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Tests of each Set Complement Task, by v, the smallest first."""
    return dict(list(tests.groupby(tests["task"].map(vocabulary))))


def _by_length(axes: Axes, table: pd.DataFrame, v: int, level: float) -> None:
    """A quantity of one task against the tokens present, by scheme; trained lengths are shaded."""
    for _, look, curve in curves(table, "scheme", LOOKS):
        band(axes, curve, "length", level, look, mark_every=max(1, v // MARKS))
    axes.axvspan(1, table["trained"].iloc[0], color="0.92", linewidth=0, zorder=-1)
    axes.set_xlim(1, v - 1)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _median_and_range(axes: Axes, table: pd.DataFrame, quantity: str, look: Look) -> None:
    """Median over seeds against iterations, in the range of seeds, as far as all of them are finite."""
    finite = along_training(table, quantity)
    if finite.empty:
        axes.plot(table["iteration"].min(), 0.96, transform=axes.get_xaxis_transform(), **_cross(look))
        return
    axes.fill_between(finite.index, finite["low"], finite["high"], color=look.colour, alpha=0.15, linewidth=0)
    places = np.unique(np.searchsorted(finite.index, np.geomspace(1, max(finite.index, default=1), MARKS)))
    mark_places = [place for place in places if place < len(finite)]
    axes.plot(finite.index, finite["median"], **line_with_marks(look._replace(width=0.9), mark_places))


def _highest_gradients(axes: Axes, table: pd.DataFrame, rates: list[float], schemes: dict[str, Look]) -> None:
    """Highest gradient norm of a run against the learning rate: median over seeds that stayed finite, and their range.

    A cross stands where a seed did not.
    """
    for scheme, look, decades in side_by_side(schemes, 0.09):
        of_scheme = table[table["scheme"] == scheme]
        for rate in rates:
            runs, at = of_scheme[of_scheme["learning_rate"] == rate], rate * 10**decades
            highest = highest_gradients(runs)
            if len(highest):
                axes.plot([at] * 2, [highest.min(), highest.max()], color=look.colour, linewidth=0.9)
                axes.plot(at, highest.median(), look.marker, color=look.colour, markersize=3.5)
            if len(highest) < runs["seed"].nunique():
                axes.plot(at, 0.96, transform=axes.get_xaxis_transform(), **_cross(look))
    axes.set_xscale("log")
    _suited_scale(axes)
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.12, y=0.2)


def _cross(look: Look) -> dict[str, Any]:
    """The mark at the top of a panel of what is not finite."""
    return {"linestyle": "", "marker": "x", "markersize": 4, "color": look.colour}


def _suited_scale(axes: Axes) -> None:
    """A linear axis for values within a decade, else a logarithmic one with ticks enough."""
    low, high = axes.dataLim.intervaly
    if not 0 < 10 * low < high:
        return
    axes.set_yscale("log")
    if high < 100 * low:
        log_ticks(axes.yaxis)
    else:
        axes.yaxis.set_major_locator(LogLocator(numticks=6))


def _task_name(task: str) -> str:
    """What a task such as `dyck-2-3` is called."""
    family, *parameters = task.removeprefix("set-").split("-")
    return TASK_NAMES[family].format(*parameters)
