"""Figures of Wu et al. 2025 on accuracy gaps: what depth, encoding, mask and training data do to the bias.

A gap is [a, b] - [b, a]: how often the label of the item at a is retrieved while b holds a copy of the item, less the
reverse. Tables are tidy and hold one study: no two rows that would share a bar or a point.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import EngFormatter
from matplotlib.typing import ColorType as Colour
from numpy.typing import ArrayLike

from position_bias.emergence import gaps as accuracy_gaps
from position_bias.emergence.task import RetrievalTask, for_vocabulary
from position_card.drawing.intervals import from_to, marked
from position_card.drawing.looks import ENCODINGS, MASKS, PAIRS, REFERENCE, Look, depth_look, legend, side_by_side
from position_card.drawing.panels import curves, panels
from position_card.drawing.style import PAGE

PARAMETERS = {"window": "w", "prefix": "K"}  # of families of masks
BIASES = {
    "none": "any item",
    "first": "the first item",
    "middle": "the middle item",
    "last": "the last item",
    "ends": "the first or last item",
}
WIRING = {False: "without residual", True: "with residual"}
VOCABULARIES = {"gaussian": "Gaussian vocabulary", "fixed": "fixed vocabulary", "isotropic": "isotropic vocabulary"}
OF_TRAINING = ", tested with the common direction of training"

GAP = r"accuracy gap $[a, b] - [b, a]$"
DIRECTION = "← bias to later | to earlier →"  # on an axis that runs upward
BRIEF_DIRECTION = "← later | earlier →"
ACCURACY = "accuracy"
LEARNING = {  # rows of panels: what the axis says, the quantities in it with their line styles
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


def mask_look(mask: str) -> Look:
    """The look of a mask such as `causal` or `window5`, and what it is called in a figure."""
    family = mask.rstrip("0123456789")
    size = mask.removeprefix(family)
    look = MASKS[family]
    return look._replace(name=f"{look.name}, ${PARAMETERS[family]} = {size}$") if size else look


def networks(vocabulary: str, omega: str, *residual: bool) -> str:
    """What networks are trained and tested on, and how they are wired; no word of the wiring where there are both."""
    wiring = f"; {'with' if residual[0] else 'without'} residual connections" if len(residual) == 1 else ""
    return VOCABULARIES[vocabulary] + (OF_TRAINING if omega == "training" else "") + wiring


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
    for depth, _, of_depth in curves(table, "depth", _depth_looks(table)):
        layers.setdefault(from_to(of_depth["seeds"], "seed"), []).append(depth)
    return [f"{seeds} of {_listed(depths)} layers" for seeds, depths in layers.items()]


# The figures. `tests` joins the tables of training of the networks that a figure shows; `task` is the configuration's.


def fig2(tests: pd.DataFrame, level: float) -> Figure:
    """Figure 2: gap of each pair without bias in the training data, with a bar for each depth.

    The upper row has no residual connections, the lower one has, as far as such networks are trained. Each encoding has
    a column. Error bars are t-intervals over seeds; dots are the seeds.
    """
    gaps, per_seed = accuracy_gaps.at_end(tests, level)
    rows = {residual: title for residual, title in WIRING.items() if (gaps["residual"] == residual).any()}
    label = "Accuracy gaps by depth, for each pair of positions and each positional encoding"
    size, y = 0.6 + 1.35 * len(rows), f"{GAP}\n{DIRECTION}"
    figure, grid = panels(label, size, _encodings(gaps), rows, y=y, sharex=True, sharey=True)
    for (residual, encoding), axes in grid.items():
        shown, seeds = (table[table["residual"] == residual] for table in (gaps, per_seed))
        _grouped_bars(axes, _of(shown, encoding), _of(seeds, encoding), "depth", _depth_looks(shown))
    layers = [Patch(color=look.colour, label=look.name) for look in _depth_looks(gaps).values()]
    legend(figure, layers, settings=setting(gaps))
    return figure


def by_depth(tests: pd.DataFrame, level: float, task: Mapping[str, Any]) -> Figure:
    """Figures 4, 5, 9 and 10: what depth does without bias in the training data, by encoding.

    The upper row has the gap of each pair against depth: mean, t-interval and every seed. The lower row has the
    accuracy by position of the answer, with a line and its t-interval for each depth. Beside it stand chance among all
    labels and chance among those of the sequence.
    """
    gaps, per_seed = accuracy_gaps.at_end(tests, level)
    accuracy = accuracy_gaps.accuracies(tests, level)
    label = "Accuracy gaps by depth, and accuracy by position of the answer, for each encoding"
    rows = {"gap": f"{GAP}\n{DIRECTION}", ACCURACY: ACCURACY}
    figure, grid = panels(label, 4.0, _encodings(gaps), rows, x="position of the answer (item)", sharey="row")
    for encoding in _encodings(gaps):
        _gaps_by_depth(grid["gap", encoding], _of(gaps, encoding), _of(per_seed, encoding))
        axes = grid[ACCURACY, encoding]
        for _, look, curve in curves(_of(accuracy, encoding), "depth", _depth_looks(accuracy)):
            _curve(axes, curve["answer"], curve, "accuracy", look)
        axes.set_xticks(sorted(accuracy["answer"].unique()))
    below = [axes for (row, _), axes in grid.items() if row == ACCURACY]
    guesses = for_vocabulary("gaussian", task)  # chance is that of any vocabulary
    _from_the_lowest(below[0], accuracy, guesses.copying_chance)
    references = _reference_lines(below, guesses)
    pairs = [look._replace(name=_inline(pair)).entry() for pair, look in PAIRS.items()]
    legend(figure, pairs, [*_depth_lines(accuracy), *references], setting(gaps))
    return figure


def by_bias(tests: pd.DataFrame, level: float, task: Mapping[str, Any]) -> Figure:
    """Figures 3, 6a-c and 11a-d: gap of each pair after training with one positional bias, by mask.

    Each encoding has a panel. Error bars are t-intervals over seeds; dots are the seeds. A dotted line has the largest
    gap that is possible, where bars come near it.
    """
    gaps, per_seed = accuracy_gaps.at_end(tests, level)
    looks = {mask: mask_look(mask) for mask in ("none", "causal") if (gaps["mask"] == mask).any()}
    (bias,) = gaps["bias"].unique()
    label = f"Accuracy gaps after training on queries for {BIASES[bias]}, by mask and encoding"
    figure, row = panels(label, 2.1, _encodings(gaps), y=f"{GAP}\n{DIRECTION}", sharey=True)
    for encoding, axes in row.items():
        _grouped_bars(axes, _of(gaps, encoding), _of(per_seed, encoding), "mask", looks)
    ceilings = _ceilings(figure.axes, for_vocabulary("gaussian", task).largest_gap)
    masks = [Patch(facecolor=look.colour, label=look.name) for look in looks.values()]
    legend(figure, [*masks, *ceilings], settings=setting(gaps))
    return figure


def along_training(tests: pd.DataFrame, level: float, task: Mapping[str, Any]) -> Figure:
    """What is learnt when (ours): loss, accuracy and gaps against iterations, by encoding.

    Each depth has a colour. Bands are t-intervals over seeds. Dashed is the share of answers that are some label of the
    sequence.
    """
    learning = accuracy_gaps.learning(tests, level)
    encodings, rows = _encodings(learning), {name: name for name in LEARNING}
    label = "Loss, accuracy and accuracy gaps during training, for each number of layers"
    figure, grid = panels(label, 0.4 + 1.2 * len(rows), encodings, rows, sharex=True, sharey="row")
    for (row, encoding), axes in grid.items():
        _learning(axes, _of(learning, encoding), LEARNING[row])
    in_context = Look("answers that are a label of the sequence", "black", "", "--").entry()
    accuracies = [axes for (row, _), axes in grid.items() if row == ACCURACY]
    references = _reference_lines(accuracies, for_vocabulary("gaussian", task))
    for encoding in encodings:
        _iterations(grid[list(rows)[-1], encoding], learning["iteration"].max())
    _share_limits([axes for (row, _), axes in grid.items() if "gap" in row])
    legend(figure, _depth_lines(learning), [in_context, *references], setting(learning))
    return figure


def long_and_short_training(
    long: pd.DataFrame, older: pd.DataFrame, tests: pd.DataFrame, level: float, last: int
) -> Figure:
    """What is left of the bias after long training (our addition): gaps against iterations, by depth.

    `long` is a table in evidence/, and `older` another with depths that it lacks. Thin lines are seeds, bold ones their
    means. The right panel has the first-last gap over the `last` tests (shaded), mean with t-interval beside every
    seed, and as diamonds that of the short training. Fewer than three seeds have no interval.
    """
    both = pd.concat([long, older[~older["depth"].isin(long["depth"])]])
    gaps = both[both["quantity"].isin(PAIRS)].rename(columns={"quantity": "pair", "value": "gap"})
    summary, _ = accuracy_gaps.at_end(tests, level)
    short = summary[summary["encoding"] == "none"]
    label = "Accuracy gaps during long training and at its end, beside those after short training"
    figure = plt.figure(figsize=(PAGE, 2.7), label=label)
    mosaic = figure.subplot_mosaic(LONG_TRAINING, width_ratios=[1.5, 1, 1])
    for pair in PAIRS:
        _long_curves(mosaic[pair], gaps[gaps["pair"] == pair])
        _iterations(mosaic[pair], gaps["iteration"].max())
        mosaic[pair].set_title(_inline(pair))
    first, final = np.unique(gaps["iteration"])[-last:][[0, -1]]
    mosaic["first-last"].axvspan(first, final, color="0.9", linewidth=0, zorder=0)
    ends = accuracy_gaps.lasting(gaps[gaps["pair"] == "first-last"], last, level)
    _ends(mosaic["end"], *ends, short[short["pair"] == "first-last"])
    _share_limits(list(mosaic.values()))
    mosaic["first-last"].set_ylabel(f"{GAP}\n{DIRECTION}")
    mosaic["first-middle"].set_xlabel("")
    seeds = gaps.groupby("depth")["seed"].nunique().rename("seeds").reset_index()
    told = f"{', '.join(_seeds_by_depth(seeds))} (thin; bold: their mean; shaded: the last {last} tests)"
    told = f"{_of_all(short)}; {told}; short training: {', '.join(_seeds_by_depth(short))}"
    marks = [LONG._replace(name=f"{final:,} iterations"), SHORT]
    legend(figure, [*_depth_lines(gaps, short), *(look.entry(linestyle="") for look in marks)], settings=told)
    return figure


def _encodings(table: pd.DataFrame) -> dict[str, str]:
    """The encodings that occur, in the order of figures, and what a panel calls them."""
    return {encoding: title for encoding, title in ENCODINGS.items() if (table["encoding"] == encoding).any()}


def _grouped_bars(axes: Axes, gaps: pd.DataFrame, per_seed: pd.DataFrame, by: str, looks: Mapping[Any, Look]) -> None:
    """A group of bars for each pair, a bar for each value of column `by` that has a look."""
    width = 0.8 / len(looks)
    for index, (value, look) in enumerate(looks.items()):
        offset = (index - (len(looks) - 1) / 2) * width
        shown = gaps[gaps[by] == value].set_index("pair").reindex(list(PAIRS))
        at = np.arange(len(PAIRS)) + offset
        axes.bar(at, shown["gap"], 0.9 * width, color=look.colour)
        seeds = per_seed[per_seed[by] == value]
        beside = np.array([list(PAIRS).index(pair) for pair in seeds["pair"]]) + offset + 0.12 * width
        _dots(axes, beside, seeds, "0.15", 0.6 * width)
        _intervals(axes, at - 0.3 * width, shown, "black", halo=True)  # where no dot lies under it
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(PAIRS)), [look.name for look in PAIRS.values()])
    axes.tick_params(axis="x", length=0)
    axes.spines["bottom"].set_visible(False)


def _gaps_by_depth(axes: Axes, gaps: pd.DataFrame, per_seed: pd.DataFrame) -> None:
    depths = list(_depth_looks(gaps))
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


def _learning(axes: Axes, table: pd.DataFrame, styles: Mapping[str, str]) -> None:
    """The quantities of a panel against iterations, a line a depth."""
    for quantity, style in styles.items():
        shown = table[table["quantity"] == quantity].sort_values("iteration")
        for _, look, curve in curves(shown, "depth", _depth_looks(shown)):
            _curve(axes, curve["iteration"], curve, "value", look._replace(line=style))


def _long_curves(axes: Axes, table: pd.DataFrame) -> None:
    """Gap of one pair against iterations, seeds thin and their mean bold."""
    looks = _depth_looks(table)
    for _, look, gaps in curves(table, "depth", looks):
        by_seed = gaps.pivot(index="iteration", columns="seed", values="gap")
        axes.plot(by_seed.index, by_seed, color=look.colour, linewidth=0.4, alpha=0.5)
    for _, look, gaps in curves(table, "depth", looks):
        mean = gaps.groupby("iteration")["gap"].mean()
        axes.plot(mean.index, mean, **marked(look._replace(width=1.4), _few(len(mean))))


def _ends(axes: Axes, ends: pd.DataFrame, by_seed: pd.DataFrame, short: pd.DataFrame) -> None:
    """Gap of every seed over the last tests, and its mean, beside that of the short training, against depth."""
    looks = _depth_looks(ends, short)
    for index, (depth, look) in enumerate(looks.items()):
        seeds, of_long, of_short = (table[table["depth"] == depth] for table in (by_seed, ends, short))
        if len(seeds):
            _mean_and_interval(axes, index - 0.15, of_long, LONG._replace(colour=look.colour))
            _dots(axes, np.full(len(seeds), index), seeds, look.colour, 0.1)
        _mean_and_interval(axes, index + 0.2, of_short, SHORT._replace(colour=look.colour))
    axes.set_xticks(range(len(looks)), [str(depth) for depth in looks])
    axes.set_xlim(-0.5, len(looks) - 0.5)
    axes.set_xlabel("depth (layers)")
    axes.set_title("first vs. last, at the end")


def _mean_and_interval(axes: Axes, at: float, summary: pd.DataFrame, look: Look) -> None:
    x = np.full(len(summary), at)
    _intervals(axes, x, summary, look.colour)
    axes.plot(x, summary["gap"], look.marker, color=look.colour, markerfacecolor=look.inside, markersize=4, zorder=5)


def _curve(axes: Axes, at: ArrayLike, table: pd.DataFrame, value: str, look: Look) -> None:
    """A line with a few marks and its band, which one seed does not have."""
    if table["low"].notna().any():
        edge: dict[str, Any] = {"linewidth": 0.4, "edgecolor": look.colour}  # tells bands apart that lie on each other
        axes.fill_between(at, table["low"], table["high"], facecolor=to_rgba(look.colour, 0.12), **edge)
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
    """A dot for each seed, in the order of the seeds from side to side of `spread`."""
    rank = per_seed["seed"].rank(method="dense").to_numpy()
    aside = (rank - (rank.max(initial=1) + 1) / 2) / rank.max(initial=1) * spread
    looks: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.2}
    axes.scatter(np.asarray(at) + aside, per_seed["gap"], s=4, alpha=0.75, zorder=3, **looks)


def _reference_lines(row: Sequence[Axes], task: RetrievalTask) -> list[Line2D]:
    """Accuracies of guessing, in each panel of a row; what to put into the legend."""
    bottom = row[0].get_ylim()[0]
    beyond = " (below the axis)" if task.chance < bottom else ""
    guesses = [
        (task.chance, Look(f"chance, {task.chance:.3f}{beyond}", REFERENCE, "", ":", width=0.7)),
        (task.copying_chance, Look(f"in-context chance, {task.copying_chance:.3f}", REFERENCE, "", "-.", width=0.7)),
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


def _ceilings(row: Sequence[Axes], largest: float) -> list[Line2D]:
    """Lines at the largest gap in either direction, where a bar comes near it; what to put into the legend."""
    heights = [bar.get_height() for axes in row for bar in axes.patches if isinstance(bar, Rectangle)]
    shown = [sign * largest for sign in (-1, 1) if any(sign * height > NEAR * largest for height in heights)]
    for axes in row:
        for level in shown:
            axes.axhline(level, color="black", linestyle=":", linewidth=0.9, zorder=0)
    return [Look(f"largest expected gap, {largest:.3f}", "black", "", ":", width=0.9).entry()] if shown else []


def _iterations(axes: Axes, last: int) -> None:
    """An axis of square roots: the gaps appear early and change for long."""
    axes.set_xscale("function", functions=(lambda values: np.sign(values) * np.sqrt(np.abs(values)), np.square))
    axes.set_xticks(last * np.array([0, 0.1, 0.25, 0.5, 1]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, last)
    axes.set_xlabel("iteration (square-root scale)")


def _share_limits(shown: Sequence[Axes]) -> None:
    """The same limits for all panels of gaps, and a line at no gap."""
    bounds = [bound for axes in shown for bound in axes.get_ylim()]
    for axes in shown:
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        axes.set_ylim(min(bounds), max(bounds))


def _of(table: pd.DataFrame, encoding: str) -> pd.DataFrame:
    return table[table["encoding"] == encoding]


def _depth_looks(*tables: pd.DataFrame) -> dict[int, Look]:
    """The looks of the depths that occur, the least first."""
    return {depth: depth_look(depth) for depth in sorted({int(depth) for table in tables for depth in table["depth"]})}


def _depth_lines(*tables: pd.DataFrame) -> list[Line2D]:
    return [look.entry(markersize=3) for look in _depth_looks(*tables).values()]


def _listed(numbers: list[int]) -> str:
    """Numbers as in a sentence: 2, 4 and 6."""
    first = ", ".join(map(str, numbers[:-1]))
    return f"{first} and {numbers[-1]}" if first else f"{numbers[-1]}"


def _inline(pair: str) -> str:
    return PAIRS[pair].name.replace("\n", " ")
