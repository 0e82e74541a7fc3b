"""Figures of Wu et al. 2025 on accuracy gaps: what depth, encoding, mask and training data do to the bias.

A gap is [a, b] - [b, a]: how often the label of the item at a is retrieved while b holds a copy of the item, less the
reverse. Tables are tidy and hold one study: no two rows that would share a bar or a point.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import EngFormatter
from matplotlib.typing import ColorType as Colour
from numpy.typing import ArrayLike, NDArray

from position_bias.drawing.intervals import from_to, marked
from position_bias.drawing.looks import (
    ENCODINGS,
    MASKS,
    PAIRS,
    REFERENCE,
    Look,
    depth_colour,
    depth_look,
    legend,
    side_by_side,
)
from position_bias.drawing.style import PAGE
from position_bias.emergence import gaps as accuracy_gaps
from position_bias.emergence.task import for_vocabulary

PARAMETERS = {"window": "w", "prefix": "K"}  # of families of masks
BIASES = {
    "none": "any item",
    "first": "the first item",
    "middle": "the middle item",
    "last": "the last item",
    "ends": "the first or last item",
}
VOCABULARIES = {"gaussian": "Gaussian vocabulary", "fixed": "fixed vocabulary", "isotropic": "isotropic vocabulary"}
OMEGAS = {
    "training": ", tested with the common direction of training",
    "fresh": ", tested with fresh common directions",
}

GAP = r"accuracy gap $[a, b] - [b, a]$"
DIRECTION = "← bias to later | to earlier →"  # on an axis that runs upward
BRIEF_DIRECTION = "← later | earlier →"
ACCURACY = "accuracy"
SHARES = (ACCURACY, "in_context")  # quantities that are between 0 and 1, as are their means
CONFIGURATION = ["vocabulary", "study", "bias", "mask", "encoding", "residual"]
LEARNING = {  # a row of panels each: what its axis says, the quantities in it with their line styles
    "loss (nats)": {"loss": "-"},
    ACCURACY: {"accuracy": "-", "in_context": "--"},
    f"first vs. middle gap\n{BRIEF_DIRECTION}": {"first-middle": "-"},
    f"first vs. last gap\n{BRIEF_DIRECTION}": {"first-last": "-"},
    f"middle vs. last gap\n{BRIEF_DIRECTION}": {"middle-last": "-"},
}
LONG_TRAINING: Any = [["first-last", "first-middle", "end"], ["first-last", "middle-last", "end"]]
MARKS = 4  # of a line, about
NEAR = 0.6  # of the largest gap that is possible: from there on its line is shown
LONG, SHORT = Look("", "black"), Look("short training", "black", "D", filled=False)  # means at the end of a training
FEWEST = 3  # seeds that have an interval of use: of two, Student's is 13 times their standard error


def mask_look(mask: str) -> Look:
    """The look of a mask such as `causal` or `window5`, and what it is called in a figure."""
    family = mask.rstrip("0123456789")
    size = mask.removeprefix(family)
    look = MASKS[family]
    return look._replace(name=f"{look.name}, ${PARAMETERS[family]} = {size}$") if size else look


def networks(vocabulary: str, omega: str, *residual: bool) -> str:
    """What networks are trained and tested on, and how they are wired; no word of the wiring where there are both."""
    wiring = f"; {'with' if residual[0] else 'without'} residual connections" if len(residual) == 1 else ""
    return VOCABULARIES[vocabulary] + OMEGAS.get(omega, "") + wiring


def setting(table: pd.DataFrame) -> str:
    """What the networks of a summary have in common, and the seeds by number of layers.

    Columns vocabulary, omega, residual, depth and seeds.
    """
    return "; ".join([_of_all(table), *_seeds_by_depth(table)])


def _of_all(table: pd.DataFrame) -> str:
    (vocabulary,), (omega,) = table["vocabulary"].unique(), table["omega"].unique()
    return networks(vocabulary, omega, *map(bool, table["residual"].unique()))


def _seeds_by_depth(table: pd.DataFrame) -> list[str]:
    """How many seeds networks have, for each number of layers; columns depth and seeds."""
    layers: dict[str, list[int]] = {}
    for depth, of_depth in _by_depth(table):
        layers.setdefault(from_to(of_depth["seeds"], "seed"), []).append(depth)
    return [f"{seeds} of {_listed(depths)} layers" for seeds, depths in layers.items()]


def fig2(tests: pd.DataFrame, level: float) -> Figure:
    """Draw `depth_overview` of the networks without bias; `tests` joins the tables of their training, as below."""
    by_seed, summary = _of_networks(tests, level)
    without, with_residual = (summary[summary["residual"] == residual] for residual in (False, True))
    return depth_overview(without, with_residual, by_seed)


def by_depth(tests: pd.DataFrame, level: float, task: Mapping[str, Any]) -> Figure:
    """Draw `depth` of the networks of a study, with what chance has in the `task` of the configuration."""
    by_seed, summary = _of_networks(tests, level)
    accuracy = accuracy_gaps.by_position(accuracy_gaps.of_training_omega(tests))
    over_seeds = accuracy_gaps.summary(accuracy, [*accuracy_gaps.CONFIGURATION, "answer"], "accuracy", level)
    alike = for_vocabulary("gaussian", task)  # chance is that of any vocabulary
    return depth(summary, by_seed, over_seeds, alike.chance, alike.copying_chance)


def by_bias(tests: pd.DataFrame, level: float, task: Mapping[str, Any]) -> Figure:
    """Draw `trained_with_bias` of the networks of a study, with the largest gap that the `task` allows."""
    by_seed, summary = _of_networks(tests, level)
    return trained_with_bias(summary, by_seed, for_vocabulary("gaussian", task).largest_gap)


def along_training(tests: pd.DataFrame, level: float, task: Mapping[str, Any]) -> Figure:
    """Draw `learning_curves` of the networks of a study, with what chance has in the `task`."""
    curves = accuracy_gaps.curves(accuracy_gaps.of_training_omega(tests))
    over_seeds = accuracy_gaps.summary(curves, [*accuracy_gaps.CONFIGURATION, "iteration", "quantity"], "value", level)
    alike = for_vocabulary("gaussian", task)
    return learning_curves(over_seeds, alike.chance, alike.copying_chance)


def long_and_short_training(
    long: pd.DataFrame, older: pd.DataFrame, tests: pd.DataFrame, level: float, last: int
) -> Figure:
    """Draw `long_training` of tables in evidence/, `older` at depths that the other lacks, beside a short training."""
    kept = pd.concat([long, older[~older["depth"].isin(long["depth"])]])
    of_pairs = kept[kept["quantity"].isin(accuracy_gaps.PAIR_NAMES)].rename(
        columns={"quantity": "pair", "value": "gap"}
    )
    _, summary = _of_networks(tests, level)
    return long_training(of_pairs, summary[summary["encoding"] == "none"], last, level)


def _of_networks(tests: pd.DataFrame, level: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The gaps of trained networks by seed, and their means over seeds with intervals."""
    by_seed = accuracy_gaps.final_gaps(accuracy_gaps.curves(accuracy_gaps.of_training_omega(tests)))
    return by_seed, accuracy_gaps.summary(by_seed, [*accuracy_gaps.CONFIGURATION, "pair"], "gap", level)


def depth_overview(
    plain_gaps: pd.DataFrame, residual_gaps: pd.DataFrame, per_seed: pd.DataFrame | None = None
) -> Figure:
    """Figure 2: gap of each pair without bias in the training data, a bar a depth.

    Above without residual connections, below with; a column an encoding. Error bars are t-intervals over seeds; dots
    are the seeds of `per_seed`, a table of both rows.
    """
    tables = {"without residual": plain_gaps, "with residual": residual_gaps}
    every = pd.concat(tables.values())
    label = "Accuracy gaps of every pair of positions, a bar for each depth and a column for each encoding"
    figure, columns = _by_encoding(every, 2, 4, label, sharex=True, sharey=True)
    for place, (title, gaps) in enumerate(tables.items()):
        colours = {depth: depth_colour(depth) for depth in _depths(gaps)}
        seeds = gaps.iloc[:0].assign(seed=0) if per_seed is None else per_seed[per_seed["residual"] == bool(place)]
        for encoding, column in columns.items():
            _grouped_bars(column[place], _of(gaps, encoding), _of(seeds, encoding), "depth", colours)
        columns[next(iter(columns))][place].set_ylabel(f"{title}\n{GAP}\n{DIRECTION}")
    layers = [Patch(color=depth_colour(d), label=depth_look(d).name) for d in _depths(*tables.values())]
    legend(figure, layers, title=setting(every))
    return figure


def depth(
    gaps: pd.DataFrame, per_seed: pd.DataFrame, accuracy: pd.DataFrame, chance: float, in_context: float
) -> Figure:
    """Figures 4, 5, 9 and 10: what depth does without bias in the training data, a column an encoding.

    Above, the gap of each pair against depth: mean, t-interval and every seed. Below, the accuracy by position of the
    answer, a line a depth with its t-interval, beside `chance` among all labels and among those of the sequence.
    """
    label = "Accuracy gaps against depth, and accuracy by position of the answer, a column for each encoding"
    figure, columns = _by_encoding(gaps, 2, 4.7, label, sharey="row")
    for encoding, (top, bottom) in columns.items():
        _gaps_by_depth(top, _of(gaps, encoding), _of(per_seed, encoding))
        for layers, by_answer in _by_depth(_of(accuracy, encoding).sort_values("answer")):
            _curve(bottom, by_answer["answer"], by_answer, "accuracy", depth_look(layers))
        bottom.set_xticks(sorted(accuracy["answer"].unique()))
        bottom.set_xlabel("position of the answer (item)")
    above, below = zip(*columns.values(), strict=True)
    _from_the_lowest(below[0], accuracy, in_context)
    references = _reference_lines(below, chance, in_context)
    above[0].set_ylabel(f"{GAP}\n{DIRECTION}")
    below[0].set_ylabel(ACCURACY)
    pairs = [look._replace(name=_inline(pair)).entry() for pair, look in PAIRS.items()]
    legend(figure, pairs, title=setting(gaps))
    legend(figure, [*_depth_lines(accuracy), *references], "lower center")
    return figure


def trained_with_bias(gaps: pd.DataFrame, per_seed: pd.DataFrame, largest: float) -> Figure:
    """Figures 3, 6a-c and 11a-d: gap of each pair after training with one positional bias, a bar a mask.

    A panel an encoding; error bars are t-intervals over seeds, dots are the seeds. A dotted line has the `largest` gap
    that is possible, where bars come near it.
    """
    looks = {mask: mask_look(mask) for mask in _present(gaps["mask"], ("none", "causal"))}
    colours = {mask: look.colour for mask, look in looks.items()}
    label = "Accuracy gaps after training with a positional bias, a bar for each mask and a panel for each encoding"
    figure, columns = _by_encoding(gaps, 1, 2.7, label, sharey=True)
    for encoding, (axes,) in columns.items():
        _grouped_bars(axes, _of(gaps, encoding), _of(per_seed, encoding), "mask", colours)
    figure.axes[0].set_ylabel(f"{GAP}\n{DIRECTION}")
    ceilings = _ceilings(figure.axes, largest, f"largest expected gap, {largest:.3f}")
    (bias,) = gaps["bias"].unique()
    masks = [Patch(facecolor=look.colour, label=look.name) for look in looks.values()]
    legend(figure, [*masks, *ceilings], title=f"trained on queries for {BIASES[bias]}; {setting(gaps)}")
    return figure


def learning_curves(curves: pd.DataFrame, chance: float | None = None, in_context: float | None = None) -> Figure:
    """What is learnt when (ours): loss, accuracy and gaps against iterations, a column a configuration.

    One colour a depth, with t-intervals over seeds; dashed, the share of answers that are some label of the sequence.
    Accuracies of guessing are drawn where they are given.
    """
    rows_shown = {label: styles for label, styles in LEARNING.items() if curves["quantity"].isin(styles).any()}
    columns = _configurations(curves)
    label = "Loss, accuracy and accuracy gaps while networks train, a column for each configuration"
    height = 1.1 + 1.2 * len(rows_shown)
    figure, rows = _columns(columns, len(rows_shown), height, label, sharex=True, sharey="row")
    for (label, styles), row in zip(rows_shown.items(), rows, strict=True):
        for axes, of_column in zip(row, columns.values(), strict=True):
            _learning(axes, of_column, styles)
        row[0].set_ylabel(label)
    notes: list[Line2D] = []
    if (curves["quantity"] == "in_context").any():
        notes.append(Look("answers that are a label of the sequence", "black", "", "--").entry())
    if ACCURACY in rows_shown and chance is not None and in_context is not None:
        notes += _reference_lines(rows[list(rows_shown).index(ACCURACY)], chance, in_context)
    for axes in rows[-1]:
        _iterations(axes, curves["iteration"].max())
    _share_limits(axes for label, row in zip(rows_shown, rows, strict=True) if "gap" in label for axes in row)
    legend(figure, _depth_lines(curves), title=setting(curves))
    if notes:
        legend(figure, notes, "lower center")
    return figure


def long_training(
    curves: pd.DataFrame, laptop: pd.DataFrame | None = None, last: int = 5, level: float = 0.95
) -> Figure:
    """What is left of the bias after long training (our addition): gaps against iterations, one colour a depth.

    `curves` has a gap a row, by depth, seed, iteration and pair: thin lines are seeds, bold ones their means. The right
    panel has the first-last gap over the `last` checkpoints (shaded), mean with t-interval beside every seed; and, as
    diamonds, that of `laptop`, a summary by depth and pair, where it is given. Fewer than three seeds have no interval.
    """
    label = "Accuracy gaps over a long training, a line for each seed, and at its end, a colour for each depth"
    figure = plt.figure(figsize=(PAGE, 3.2), label=label)
    panels = figure.subplot_mosaic(LONG_TRAINING, width_ratios=[1.5, 1, 1])
    for pair in PAIRS:
        _long_curves(panels[pair], curves[curves["pair"] == pair])
        _iterations(panels[pair], curves["iteration"].max())
        panels[pair].set_title(_inline(pair))
    late = curves[curves["iteration"].isin(np.unique(curves["iteration"])[-last:])]
    panels["first-last"].axvspan(late["iteration"].min(), late["iteration"].max(), color="0.9", linewidth=0, zorder=0)
    _ends(panels["end"], late[late["pair"] == "first-last"], laptop, level)
    _share_limits(panels.values())
    panels["first-last"].set_ylabel(f"{GAP}\n{DIRECTION}")
    panels["first-middle"].set_xlabel("")
    marks = [LONG._replace(name=f"{late['iteration'].max():,} iterations").entry(linestyle="")]
    seeds = curves.groupby("depth")["seed"].nunique().rename("seeds").reset_index()
    told = f"{', '.join(_seeds_by_depth(seeds))} (thin; bold: their mean; shaded: the last {last} tests)"
    if laptop is not None:
        marks.append(SHORT.entry(linestyle=""))
        told = f"{_of_all(laptop)}; {told}; short training: {', '.join(_seeds_by_depth(laptop))}"
    depths = _depth_lines(curves) if laptop is None else _depth_lines(curves, laptop)
    legend(figure, [*depths, *marks], title=told)
    return figure


def _columns(
    titles: Collection[str], rows: int, height: float, label: str, **shared: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure with a column of panels below each title."""
    figure, grid = plt.subplots(rows, len(titles), figsize=(PAGE, height), squeeze=False, label=label, **shared)
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title)
    return figure, grid


def _by_encoding(
    table: pd.DataFrame, rows: int, height: float, label: str, **shared: Any
) -> tuple[Figure, dict[str, NDArray[Any]]]:
    """A figure with a column of panels for each encoding of `table`."""
    encodings = _present(table["encoding"], ENCODINGS)
    figure, grid = _columns([ENCODINGS[encoding] for encoding in encodings], rows, height, label, **shared)
    return figure, dict(zip(encodings, grid.T, strict=True))


def _grouped_bars(axes: Axes, gaps: pd.DataFrame, per_seed: pd.DataFrame, by: str, looks: Mapping[Any, Colour]) -> None:
    """A group of bars for each pair, a bar for each value of column `by` that has a look."""
    width = 0.8 / len(looks)
    for index, (value, colour) in enumerate(looks.items()):
        offset = (index - (len(looks) - 1) / 2) * width
        shown = gaps[gaps[by] == value].set_index("pair").reindex(list(PAIRS))
        at = np.arange(len(PAIRS)) + offset
        axes.bar(at, shown["gap"], 0.9 * width, color=colour)
        seeds = per_seed[per_seed[by] == value]
        beside = np.array([list(PAIRS).index(pair) for pair in seeds["pair"]]) + offset + 0.12 * width
        _dots(axes, beside, seeds, "0.15", 0.6 * width)
        _intervals(axes, at - 0.3 * width, shown, "black", halo=True)  # where no dot lies under it
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(PAIRS)), [look.name for look in PAIRS.values()])
    axes.tick_params(axis="x", length=0)
    axes.spines["bottom"].set_visible(False)


def _gaps_by_depth(axes: Axes, gaps: pd.DataFrame, per_seed: pd.DataFrame) -> None:
    depths = _depths(gaps)
    apart = min(np.diff(depths), default=1)
    for pair, look, offset in side_by_side(PAIRS, 0.11):
        shown = gaps[gaps["pair"] == pair].sort_values("depth")
        seeds = per_seed[per_seed["pair"] == pair]
        at = shown["depth"] + offset * apart
        _dots(axes, seeds["depth"] + (offset + 0.05) * apart, seeds, look.colour)  # beside the interval
        joined: dict[str, Any] = {"linestyle": "-", "markersize": 3.5, "linewidth": 0.9, "zorder": 3}
        axes.plot(at, shown["gap"], look.marker, color=look.colour, **joined)
        _intervals(axes, at, shown, look.colour)
    axes.axhline(0, color="black", linewidth=0.6, zorder=0)
    axes.set_xticks(depths)
    axes.set_xlim(depths[0] - 0.5 * apart, depths[-1] + 0.5 * apart)
    axes.set_xlabel("depth (layers)")


def _learning(axes: Axes, curves: pd.DataFrame, styles: Mapping[str, str]) -> None:
    """The quantities of a panel against iterations, a line a depth."""
    for quantity, style in styles.items():
        for depth, curve in _by_depth(curves[curves["quantity"] == quantity]):
            ordered = curve.sort_values("iteration")
            if quantity in SHARES:
                ordered = ordered.assign(low=ordered["low"].clip(lower=0), high=ordered["high"].clip(upper=1))
            _curve(axes, ordered["iteration"], ordered, "value", depth_look(depth)._replace(line=style))


def _long_curves(axes: Axes, curves: pd.DataFrame) -> None:
    """Gap of one pair against iterations, seeds thin and their mean bold."""
    for depth, of_depth in _by_depth(curves):
        by_seed = of_depth.pivot(index="iteration", columns="seed", values="gap")
        axes.plot(by_seed.index, by_seed, color=depth_colour(depth), linewidth=0.4, alpha=0.5)
    for depth, of_depth in _by_depth(curves):
        mean = of_depth.groupby("iteration")["gap"].mean()
        axes.plot(mean.index, mean, **marked(depth_look(depth)._replace(width=1.4), _few(len(mean))))


def _ends(axes: Axes, late: pd.DataFrame, laptop: pd.DataFrame | None, level: float) -> None:
    """Gap of every seed over the last checkpoints, and its mean, beside the laptop's, against depth."""
    by_seed = late.groupby(["depth", "seed"])["gap"].mean().reset_index()
    ends = accuracy_gaps.summary(by_seed, ["depth"], "gap", level)
    ends.loc[ends["seeds"] < FEWEST, ["low", "high"]] = np.nan
    depths = _depths(late) if laptop is None else _depths(late, laptop)
    for index, depth in enumerate(depths):
        seeds, colour = by_seed[by_seed["depth"] == depth], depth_colour(depth)
        if len(seeds):
            _mean_and_interval(axes, index - 0.15, ends[ends["depth"] == depth], LONG._replace(colour=colour))
            _dots(axes, np.full(len(seeds), index), seeds, colour, 0.1)
        if laptop is not None:
            of_laptop = laptop[(laptop["depth"] == depth) & (laptop["pair"] == "first-last")]
            _mean_and_interval(axes, index + 0.2, of_laptop, SHORT._replace(colour=colour))
    axes.set_xticks(range(len(depths)), [str(depth) for depth in depths])
    axes.set_xlim(-0.5, len(depths) - 0.5)
    axes.set_xlabel("depth (layers)")
    axes.set_title("first vs. last, at the end")


def _mean_and_interval(axes: Axes, at: float, summary: pd.DataFrame, look: Look) -> None:
    x = np.full(len(summary), at)
    _intervals(axes, x, summary, look.colour)
    axes.plot(x, summary["gap"], look.marker, color=look.colour, markerfacecolor=look.inside, markersize=4, zorder=5)


def _curve(axes: Axes, at: ArrayLike, table: pd.DataFrame, value: str, look: Look) -> None:
    """A line with a few marks and its band, which one seed does not have."""
    if table["low"].notna().any():
        axes.fill_between(at, table["low"], table["high"], color=look.colour, alpha=0.2, linewidth=0)
    axes.plot(at, table[value], **marked(look, _few(len(table))))


def _few(points: int) -> list[int]:
    """Places of marks on a line of so many points."""
    return [*range(points - 1, -1, -max(1, points // MARKS))]


def _intervals(axes: Axes, at: ArrayLike, table: pd.DataFrame, colour: Colour, halo: bool = False) -> None:
    """Error bars from low to high, where there are any; a halo sets them off from dark bars."""
    known = table["low"].notna().to_numpy()
    bars = axes.vlines(np.asarray(at)[known], table["low"][known], table["high"][known], color=colour, zorder=4)
    bars.set_linewidth(0.8)
    if halo:
        bars.set_path_effects([Stroke(linewidth=1.8, foreground="white"), Normal()])


def _dots(axes: Axes, at: ArrayLike, per_seed: pd.DataFrame, colour: Colour, spread: float = 0.0) -> None:
    """A dot a seed, in the order of the seeds from side to side of `spread`."""
    rank = per_seed["seed"].rank(method="dense").to_numpy()
    aside = (rank - (rank.max(initial=1) + 1) / 2) / rank.max(initial=1) * spread
    looks: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.2}
    axes.scatter(np.asarray(at) + aside, per_seed["gap"], s=4, alpha=0.75, zorder=3, **looks)


def _reference_lines(row: Sequence[Axes], chance: float, in_context: float) -> list[Line2D]:
    """Accuracies of guessing, in each panel of a row; what to put into the legend."""
    bottom = row[0].get_ylim()[0]
    beyond = " (below the axis)" if chance < bottom else ""
    guesses = [
        (chance, Look(f"chance, {chance:.3f}{beyond}", REFERENCE, "", ":", width=0.7)),
        (in_context, Look(f"in-context chance, {in_context:.3f}", REFERENCE, "", "-.", width=0.7)),
    ]
    for axes in row:
        for level, look in guesses:
            axes.axhline(level, color=look.colour, linestyle=look.line, linewidth=look.width, zorder=0)
        axes.set_ylim(bottom=bottom)
    return [look.entry() for _, look in guesses]


def _from_the_lowest(axes: Axes, accuracy: pd.DataFrame, in_context: float) -> None:
    """An axis that begins below the lowest accuracy, and leaves out the guess among all labels where that is far."""
    known = accuracy[["accuracy", "low"]].min().min()
    axes.set_ylim(bottom=max(0.0, known - 0.15 * (max(accuracy["accuracy"].max(), in_context) - known)))


def _ceilings(panels: Sequence[Axes], largest: float, name: str) -> list[Line2D]:
    """Lines at the largest gap in either direction, where a bar comes near it; what to put into the legend."""
    heights = [bar.get_height() for axes in panels for bar in axes.patches if isinstance(bar, Rectangle)]
    shown = [sign * largest for sign in (-1, 1) if any(sign * height > NEAR * largest for height in heights)]
    for axes in panels:
        for level in shown:
            axes.axhline(level, color="black", linestyle=":", linewidth=0.9, zorder=0)
    return [Look(name, "black", "", ":", width=0.9).entry()] if shown else []


def _iterations(axes: Axes, last: int) -> None:
    """An axis of square roots: the gaps appear early and change for long."""
    axes.set_xscale("function", functions=(_signed_root, np.square))
    axes.set_xticks(last * np.array([0, 0.1, 0.25, 0.5, 1]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, last)
    axes.set_xlabel("iteration (square-root scale)")


def _share_limits(panels: Iterable[Axes]) -> None:
    """The same limits for all panels of gaps, and a line at no gap."""
    shown = list(panels)
    bounds = [bound for axes in shown for bound in axes.get_ylim()]
    for axes in shown:
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        axes.set_ylim(min(bounds), max(bounds))


def _configurations(curves: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Parts of `curves` by configuration, named by what differs between them, at least by encoding."""
    varied = [name for name in CONFIGURATION if name == "encoding" or curves[name].nunique() > 1]
    curves = curves.sort_values("encoding", key=lambda names: names.map(list(ENCODINGS).index), kind="stable")
    words: dict[str, Callable[[Any], str]] = {
        "encoding": ENCODINGS.__getitem__,
        "mask": lambda mask: mask_look(mask).name,
        "residual": {True: "residual", False: "no residual"}.__getitem__,
        "bias": lambda bias: f"queries for {BIASES[bias]}",
    }
    return {
        ", ".join(words.get(name, str)(value) for name, value in zip(varied, values, strict=True)): part
        for values, part in curves.groupby(varied, sort=False)
    }


def _of(table: pd.DataFrame, encoding: str) -> pd.DataFrame:
    return table[table["encoding"] == encoding]


def _by_depth(table: pd.DataFrame) -> list[tuple[int, pd.DataFrame]]:
    return [(depth, table[table["depth"] == depth]) for depth in _depths(table)]


def _present(values: Iterable[str], order: Iterable[str]) -> list[str]:
    """The values that occur, in this order; one outside it is a mistake."""
    found, known = set(values), list(order)
    return sorted(found, key=known.index)


def _depths(*tables: pd.DataFrame) -> list[int]:
    return sorted({int(depth) for table in tables for depth in table["depth"]})


def _depth_lines(*tables: pd.DataFrame) -> list[Line2D]:
    return [depth_look(depth).entry(markersize=3) for depth in _depths(*tables)]


def _signed_root(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sign(values) * np.sqrt(np.abs(values))


def _listed(numbers: list[int]) -> str:
    """Numbers as in a sentence: 2, 4 and 6."""
    first = ", ".join(map(str, numbers[:-1]))
    return f"{first} and {numbers[-1]}" if first else f"{numbers[-1]}"


def _inline(pair: str) -> str:
    return PAIRS[pair].name.replace("\n", " ")
