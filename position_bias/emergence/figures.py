"""Figures of Wu et al. 2025 on accuracy gaps: what depth, encoding, mask and training data do to the bias.

A gap is [a, b] - [b, a]: how often the label of the item at a is retrieved while b holds a copy of the item, less the
reverse. Tables are tidy and hold one study: no two rows that would share a bar or a point.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import EngFormatter
from matplotlib.typing import ColorType as Colour
from numpy.typing import ArrayLike

from position_bias.emergence import accuracy_gaps
from position_bias.emergence.accuracy_gaps import AS_RELEASED, Trainings
from position_bias.emergence.runs import PRINTED_DEPTHS, STUDIES
from position_bias.emergence.task import RetrievalTask, for_vocabulary
from position_card.core.wording import enumeration
from position_card.drawing.intervals import from_to, line_with_marks
from position_card.drawing.looks import (
    ENCODINGS,
    MASKS,
    PAIRS,
    REFERENCE,
    Look,
    depth_look,
    legend,
    shades,
    side_by_side,
)
from position_card.drawing.panels import curves, panels
from position_card.drawing.shown import draws
from position_card.drawing.style import PAGE, SMALLEST, TYPE

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
LEARNT = "first-last"  # the pair whose gap is shown along training
LONG_TRAINING: Any = [["first-last", "first-middle", "end"], ["first-last", "middle-last", "end"]]
MARKS = 4  # of a line, about
ASIDE = 0.2  # positions of the answer, between the marks of two depths
STEP_ASIDE = 0.008  # of an axis of iterations, between the marks of two depths
PAPER = "paper"  # the scale of the tables in evidence/emergence/
SETTINGS = {"printed": "as printed", "released": "as in the released code"}
DIFFERENCES = (
    "Released code: coordinates of tokens have standard deviation 1/64 in place of 1/8, the middle is item 5 in place "
    "of 4, training takes 50,000 iterations in place of 100,000"
)
NO_LONG_RUN = "no\nlong\nrun"  # in the place of a network that was not trained for long
PALE = 0.7  # share of white in the colour of what shorter training left
NEAR_LARGEST = 0.6  # of the largest gap that is possible: from there on its line is shown
LONG, SHORT = Look("", "black"), Look("short training", "black", "D", filled=False)  # means at the end of a training


def mask_look(mask: str) -> Look:
    """The look of a mask such as `causal` or `window5`, and what it is called in a figure."""
    family = mask.rstrip("0123456789")
    size = mask.removeprefix(family)
    look = MASKS[family]
    return look._replace(name=f"{look.name}, ${PARAMETERS[family]} = {size}$") if size else look


def networks(vocabulary: str, omega: str, *residual: bool) -> str:
    """Return in words what networks are trained and tested on, and how they are wired.

    `vocabulary` is a key of VOCABULARIES, `omega` the common direction in tests. Without a word of the wiring where
    both values of `residual` occur.
    """
    wiring = f"; {'with' if residual[0] else 'without'} residual connections" if len(residual) == 1 else ""
    return VOCABULARIES[vocabulary] + (OF_TRAINING if omega == "training" else "") + wiring


def setting(table: pd.DataFrame) -> str:
    """What the networks of a summary have in common, and the seeds by number of layers.

    Columns vocabulary, omega, residual, depth and seeds.
    """
    return "; ".join([_of_all(table), *seeds_by_depth(table)])


def _of_all(table: pd.DataFrame) -> str:
    """Return in words what all networks of a summary have in common."""
    (vocabulary,), (omega,) = table["vocabulary"].unique(), table["omega"].unique()
    return networks(vocabulary, omega, *map(bool, table["residual"].unique()))


def seeds_by_depth(table: pd.DataFrame) -> list[str]:
    """How many seeds networks have, for each number of layers; columns depth and seeds."""
    layers: dict[str, list[int]] = {}
    for depth, _, of_depth in curves(table, "depth", _depth_looks(table)):
        layers.setdefault(from_to(of_depth["seeds"], "seed"), []).append(depth)
    return [f"{seeds} of {enumeration([*map(str, depths)])} layers" for seeds, depths in layers.items()]


@dataclass(frozen=True)
class Gaps:
    """Accuracy gaps of trained networks, after the longest training and behind it after the shorter one, if any."""

    trainings: Trainings  # tables of `accuracy_gaps.curves`, each at one scale
    longest: pd.DataFrame  # `accuracy_gaps.at_end`: summary
    seeds: pd.DataFrame  # and by seed
    shorter: pd.DataFrame  # summary
    level: float

    @classmethod
    def from_trainings(cls, trainings: Trainings, level: float) -> "Gaps":
        """Take the gaps at the end of both trainings from tables of `accuracy_gaps.curves`, intervals of `level`."""
        longest, seeds = accuracy_gaps.at_end(trainings.longest, level)
        shorter, _ = accuracy_gaps.at_end(trainings.shorter, level)
        return cls(trainings, longest, seeds, shorter, level)

    def select(self, **keys: object) -> "Gaps":
        """Return the gaps of the networks that have these values in columns."""
        names = ("longest", "seeds", "shorter")
        parts = {name: getattr(self, name).loc[lambda table: _has(table, keys)] for name in names}
        return replace(self, **parts)

    @property
    def summaries(self) -> pd.DataFrame:
        """Join the summaries of both trainings."""
        return pd.concat([self.longest, self.shorter], ignore_index=True)

    @property
    def names(self) -> dict[str, list[str]]:
        """Return the names of the networks that are drawn, by the scale of their training; "" is that of this run."""
        tables = zip(self.trainings, (self.longest, self.shorter), strict=True)
        return {
            scale: accuracy_gaps.network_names(summary)
            for curves, summary in tables
            for scale in curves["scale"].unique()
        }

    @property
    def settings(self) -> str:
        """Return in words what the networks have in common, and the iterations and the seeds of both trainings."""
        parts = [
            _of_all(self.summaries),
            f"{_iterations_of(self.trainings.longest)}: {', '.join(seeds_by_depth(self.longest))}",
        ]
        if len(self.shorter):
            parts.append(f"{self._pale}: {', '.join(seeds_by_depth(self.shorter))}")
        return "; ".join([*parts, f"{100 * self.level:g} % t-intervals over seeds"])

    @property
    def _pale(self) -> str:
        return f"pale: {_iterations_of(self.trainings.shorter)}"

    @property
    def pale_entry(self) -> list[Patch]:
        """For a legend: a pale bar, where there is one."""
        return [Patch(facecolor=pale("black"), edgecolor="black", linewidth=0.4, label=self._pale)] * bool(
            len(self.shorter)
        )

    @property
    def pale_line(self) -> list[Line2D]:
        """For a legend: a pale line, where there is one."""
        return [pale_look(Look(self._pale, "black")).entry()] if len(self.shorter) else []


def pale(colour: Colour) -> Colour:
    """Return the colour mixed with white, for what shorter training left."""
    red, green, blue = (PALE + (1 - PALE) * part for part in to_rgb(colour))
    return red, green, blue


def pale_look(look: Look) -> Look:
    """Return the look of a line of what shorter training left: pale, thin, with open marks."""
    return look._replace(colour=pale(look.colour), filled=False, width=0.9)


def _has(table: pd.DataFrame, keys: Mapping[str, object]) -> pd.Series:
    """Return which rows of a table have these values in columns."""
    return (table[list(keys)] == list(keys.values())).all(axis=1)


def _studies(table: pd.DataFrame) -> list[tuple[str, bool]]:
    """Each study and whether its networks have residual connections."""
    return list(table[["study", "residual"]].drop_duplicates().itertuples(index=False, name=None))


def _iterations_of(curves: pd.DataFrame) -> str:
    """Say how long the networks of a table with the column iteration were trained."""
    return f"{curves['iteration'].max():,} iterations"


def _depths(study: str, table: pd.DataFrame) -> list[int]:
    """The depths that the paper shows of a study, and those of a table."""
    return sorted({*PRINTED_DEPTHS[study], *map(int, table["depth"])})


# The figures. `tests` joins the tables of training of this run that a figure shows; `evidence` are tables of
# `accuracy_gaps.curves` that evidence/ keeps of longer training. `task` is the configuration's.


def fig2(tests: pd.DataFrame, evidence: list[pd.DataFrame], level: float) -> Figure:
    """Figure 2: gap of each pair without bias in the training data, with a bar for each depth.

    The upper row has no residual connections, the lower one has, as far as such networks are trained. Each encoding has
    a column. Error bars are t-intervals over seeds; dots are the seeds. Behind each bar stands a pale one of shorter
    training; a depth of the paper that was not trained for long has an empty place.
    """
    gaps = Gaps.from_trainings(Trainings.from_tables(accuracy_gaps.curves(tests), evidence), level)
    summaries = gaps.summaries
    rows = {residual: title for residual, title in WIRING.items() if (summaries["residual"] == residual).any()}
    content = "Accuracy gaps by depth, for each pair of positions and each positional encoding"
    places = {
        bool(is_wired): _depths(study, summaries[summaries["study"] == study])
        for study, is_wired in _studies(summaries)
    }
    size, y = 0.6 + 1.35 * len(rows), f"{GAP}\n{DIRECTION}"
    label = _finding_on_depth(gaps, content)
    figure, grid = panels(label, size, _encodings(summaries), rows, y=y, sharex=True, sharey="row")
    for (residual, encoding), axes in grid.items():
        of_panel = gaps.select(residual=residual, encoding=encoding)
        looks = {depth: depth_look(depth) for depth in places[residual]}
        _grouped_bars(axes, of_panel, "depth", looks)
    left_out = _left_out(grid.values(), gaps)
    every_look = [depth_look(depth) for depth in sorted(summaries["depth"].unique())]
    layers = [Patch(color=look.colour, label=look.name) for look in every_look]
    legend(figure, [*layers, *gaps.pale_entry], settings=gaps.settings + left_out)
    for scale, names in gaps.names.items():
        draws(figure, names, scale)
    return figure


def by_depth(
    tests: pd.DataFrame,
    evidence: list[pd.DataFrame],
    evidence_accuracy: list[pd.DataFrame],
    level: float,
    task: Mapping[str, Any],
) -> Figure:
    """Figures 4, 5, 9 and 10: what depth does without bias in the training data, by encoding.

    The upper row has the gap of each pair against depth: mean, t-interval and every seed. The lower row has the
    accuracy by position of the answer, with marks and t-intervals for each depth. Beside it stand chance among all
    labels and chance among those of the sequence. Shorter training is pale, without seeds and intervals; a depth of the
    paper that was not trained for long says so. `evidence_accuracy` has the tables of `by_position` beside `evidence`.
    """
    gaps = Gaps.from_trainings(Trainings.from_tables(accuracy_gaps.curves(tests), evidence), level)
    by_answer = Trainings.from_tables(accuracy_gaps.by_position(tests), evidence_accuracy)
    accuracy, short_accuracy = (accuracy_gaps.accuracies(table, level) for table in by_answer)
    summaries = gaps.summaries
    label = _finding_on_depth(gaps, "Accuracy gaps by depth, and accuracy by position of the answer, for each encoding")
    rows = {"gap": f"{GAP}\n{DIRECTION}", ACCURACY: ACCURACY}
    figure, grid = panels(label, 4.0, _encodings(summaries), rows, x="position of the answer (item)", sharey="row")
    depths = _depths(summaries["study"].iloc[0], summaries)
    for encoding in _encodings(summaries):
        _gaps_by_depth(grid["gap", encoding], gaps.select(encoding=encoding), depths)
        axes = grid[ACCURACY, encoding]
        for depth, look, aside in side_by_side(_depth_looks(accuracy, short_accuracy), ASIDE):
            short, long = (_of_encoding(table, encoding) for table in (short_accuracy, accuracy))
            short, long = short[short["depth"] == depth], long[long["depth"] == depth]
            _points(axes, short["answer"] + aside, short.assign(low=np.nan), "accuracy", pale_look(look))
            _points(axes, long["answer"] + aside, long, "accuracy", look)
        axes.set_xticks(sorted(accuracy["answer"].unique()))
    left_out = _left_out([axes for (row, _), axes in grid.items() if row == "gap"], gaps)
    lower_row = [axes for (row, _), axes in grid.items() if row == ACCURACY]
    guesses = for_vocabulary("gaussian", task)  # chance is that of any vocabulary
    _from_the_lowest(lower_row[0], pd.concat([accuracy, short_accuracy]), guesses.copying_chance)
    references = _reference_lines(lower_row, guesses)
    pairs = [look._replace(name=_inline(pair)).entry() for pair, look in PAIRS.items()]
    lines = [*_depth_lines(accuracy, short_accuracy), *references]
    legend(figure, [*pairs, *gaps.pale_line], lines, gaps.settings + left_out)
    for scale, names in gaps.names.items():
        draws(figure, names, scale)
    return figure


def by_bias(tests: pd.DataFrame, evidence: list[pd.DataFrame], level: float, task: Mapping[str, Any]) -> Figure:
    """Figures 3, 6a-c and 11a-d, and by window (ours): gap of each pair after training with one bias, by mask.

    Each encoding has a panel. Error bars are t-intervals over seeds; dots are the seeds. Behind each bar stands a pale
    one of the shorter training; what was not trained for long has an empty place. A dotted line has the largest gap
    that is possible, where bars come near it.
    """
    gaps = Gaps.from_trainings(Trainings.from_tables(accuracy_gaps.curves(tests), evidence), level)
    summaries = gaps.summaries
    looks = _mask_looks(summaries["mask"])
    encodings = _encodings(summaries)
    figure, row = panels(_finding_on_bias(gaps), 2.1, encodings, y=f"{GAP}\n{DIRECTION}", sharey=True)
    for encoding, axes in row.items():
        _grouped_bars(axes, gaps.select(encoding=encoding), "mask", looks)
    left_out = _left_out(row.values(), gaps)
    ceilings = _ceilings(figure.axes, for_vocabulary("gaussian", task).largest_gap)
    masks = [Patch(facecolor=look.colour, label=look.name) for look in looks.values()]
    legend(figure, [*masks, *gaps.pale_entry, *ceilings], settings=gaps.settings + left_out)
    for scale, names in gaps.names.items():
        draws(figure, names, scale)
    return figure


def printed_and_released(printed: list[pd.DataFrame], released: list[pd.DataFrame], level: float) -> Figure:
    """Figures 2 and 4 in two columns (ours): gap of each pair by depth as printed, and in the settings of the code.

    Both are tables of `accuracy_gaps.curves` that evidence/ keeps, of networks with a causal mask and without residual
    connections; each encoding has a row. What the settings differ in stands below.
    """
    columns = {"printed": printed, "released": released}
    gaps = {
        name: Gaps.from_trainings(Trainings.from_tables(pd.concat(of_setting), []), level)
        for name, of_setting in columns.items()
    }
    gaps = {name: of_setting.select(study="plain", vocabulary="gaussian") for name, of_setting in gaps.items()}
    encodings = _encodings(pd.concat([of_setting.longest for of_setting in gaps.values()]))
    label = _finding_on_settings(gaps["printed"].longest, gaps["released"].longest)
    titles = {
        name: f"{SETTINGS[name]}: {_iterations_of(of_setting.trainings.longest)}" for name, of_setting in gaps.items()
    }
    figure, grid = panels(label, 1.4 * len(encodings), titles, encodings, sharey="row", sharex=True)
    for (encoding, name), axes in grid.items():
        _gaps_by_depth(axes, gaps[name].select(encoding=encoding), list(PRINTED_DEPTHS["plain"]))
        axes.set_xlabel("depth (layers)" if encoding == list(encodings)[-1] else "")
    figure.supylabel(f"{GAP}  ({BRIEF_DIRECTION})", fontsize=TYPE)
    _left_out([axes for (_, name), axes in grid.items() if name == "printed"], gaps["printed"])
    seeds = [f"{SETTINGS[name]}: {', '.join(seeds_by_depth(of_setting.longest))}" for name, of_setting in gaps.items()]
    settings = f"{'; '.join(seeds)}; {100 * level:g} % t-intervals over seeds. {DIFFERENCES}"
    legend(figure, [look._replace(name=_inline(pair)).entry() for pair, look in PAIRS.items()], settings=settings)
    draws(figure, accuracy_gaps.network_names(gaps["printed"].longest), PAPER)
    as_released = [f"{name}{AS_RELEASED}" for name in accuracy_gaps.network_names(gaps["released"].longest)]
    draws(figure, as_released, PAPER)
    return figure


def along_training(tests: pd.DataFrame, level: float) -> Figure:
    """When networks prefer the first item to the last (ours): their gap against iterations, by encoding.

    Each depth has a colour and a mark; those of one test stand side by side. Bars are t-intervals over seeds.
    """
    learning = accuracy_gaps.learning(tests, LEARNT, level)
    figure, row = panels(
        _finding_on_learning(learning), 2.2, _encodings(learning), y=f"{GAP}\n{DIRECTION}", sharey=True
    )
    last = learning["iteration"].max()
    for encoding, axes in row.items():
        of_encoding = _of_encoding(learning, encoding)
        for depth, look, aside in side_by_side(_depth_looks(of_encoding), STEP_ASIDE):
            curve = of_encoding[of_encoding["depth"] == depth].sort_values("iteration")
            places = (np.sqrt(curve["iteration"]) + (STEP_ASIDE + aside) * np.sqrt(last)) ** 2
            _points(axes, places, curve, "gap", look)
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        _iterations(axes, last)
        axes.set_xlim(0, (1 + 4 * STEP_ASIDE) ** 2 * last)  # with all marks of the last test
    settings = f"{setting(learning)}; {100 * level:g} % t-intervals over seeds"
    legend(figure, _depth_lines(learning), settings=settings)
    return figure


def long_and_short_training(
    long: pd.DataFrame, older: pd.DataFrame, tests: pd.DataFrame, level: float, last: int
) -> Figure:
    """What is left of the bias after long training (our addition): gaps against iterations, by depth.

    `long` is a table in evidence/, and `older` another with depths that it lacks. Thin lines are seeds, bold ones their
    means. The right panel has the first-last gap over the `last` tests (shaded), mean with t-interval beside every
    seed, and as diamonds that of the short training. Fewer than three seeds have no interval.
    """
    tables = pd.concat([long, older[~older["depth"].isin(long["depth"])]])
    gaps = tables[tables["quantity"].isin(PAIRS)].rename(columns={"quantity": "pair", "value": "gap"})
    summary, _ = accuracy_gaps.at_end(accuracy_gaps.curves(accuracy_gaps.with_training_omega(tests)), level)
    short = summary[summary["encoding"] == "none"]
    first, final = np.unique(gaps["iteration"])[-last:][[0, -1]]
    ends, by_seed = accuracy_gaps.gaps_over_last_tests(gaps[gaps["pair"] == LEARNT], last, level)
    short_ends = short[short["pair"] == LEARNT]
    label = _finding_on_length(ends, short_ends, int(final), int(tests["iteration"].max()))
    figure = plt.figure(figsize=(PAGE, 2.7), label=label)
    mosaic = figure.subplot_mosaic(LONG_TRAINING, width_ratios=[1.5, 1, 1])
    for pair in PAIRS:
        _long_curves(mosaic[pair], gaps[gaps["pair"] == pair])
        _iterations(mosaic[pair], gaps["iteration"].max())
        mosaic[pair].set_title(_inline(pair))
    mosaic["first-last"].axvspan(first, final, color="0.9", linewidth=0, zorder=0)
    _ends(mosaic["end"], ends, by_seed, short_ends)
    _share_limits(list(mosaic.values()))
    mosaic["first-last"].set_ylabel(f"{GAP}\n{DIRECTION}")
    mosaic["first-middle"].set_xlabel("")
    seeds = gaps.groupby("depth")["seed"].nunique().rename("seeds").reset_index()
    settings = f"{', '.join(seeds_by_depth(seeds))} (thin; bold: their mean; shaded: the last {last} tests)"
    settings = f"{_of_all(short)}; {settings}; short training: {', '.join(seeds_by_depth(short))}"
    marks = [LONG._replace(name=f"{final:,} iterations"), SHORT]
    draws(figure, accuracy_gaps.network_names(long), PAPER)
    draws(figure, accuracy_gaps.network_names(short))
    legend(figure, [*_depth_lines(gaps, short), *(look.entry(linestyle="") for look in marks)], settings=settings)
    return figure


def _finding_on_depth(gaps: Gaps, content: str) -> str:
    """In how many networks more layers move the bias towards the first item, and towards the last, after all training.

    Of networks of a single depth, which of the two items they prefer. A change is that of the same seeds from the
    least to the greatest depth. Returns `content` where no network has an interval.
    """
    of_ends = gaps.seeds[gaps.seeds["pair"] == LEARNT]
    by_depth = of_ends.pivot(index=["residual", "encoding", "seed"], columns="depth", values="gap")
    shallow, deep = by_depth.columns.min(), by_depth.columns.max()
    gap = by_depth[deep] - by_depth[shallow] if deep > shallow else by_depth[deep]
    keys = ["residual", "encoding"]
    means = accuracy_gaps.summary(gap.rename("gap").dropna().reset_index(), keys, "gap", gaps.level)
    means = means.dropna(subset="low")
    if means.empty:
        return content
    start = f"From {shallow} to {deep} layers the bias moves" if deep > shallow else f"With {deep} layers the bias is"
    first, last = means[means["low"] > 0], means[means["high"] < 0]
    towards_first = f"towards the first item in {len(first)} of {len(means)} networks{_names_of_few(first, means)}"
    return f"{start} {towards_first}, towards the last in {len(last)}{_names_of_few(last, means)}"


def _names_of_few(networks: pd.DataFrame, means: pd.DataFrame) -> str:
    """What some of the networks of `means` are called, in brackets; nothing of none of them, and of all."""
    if len(networks) in (0, len(means)):
        return ""
    with_wiring = means["residual"].nunique() > 1
    names = [
        ENCODINGS[encoding] + (f" {WIRING[residual]}" if with_wiring else "")
        for residual, encoding in zip(networks["residual"], networks["encoding"], strict=True)
    ]
    return f" ({', '.join(names)})"


def _finding_on_bias(gaps: Gaps) -> str:
    """Under how many masks networks prefer what they were asked for in training to what they were not, by encoding.

    Of networks that were asked for any item, under how many they prefer the first one to the last. Of each network
    after its longest training; without intervals, what the figure shows.
    """
    (bias,), (study,) = gaps.summaries["bias"].unique(), gaps.summaries["study"].unique()
    positions = STUDIES[study].bias
    signs = {pair: (pair.split("-")[0] in positions) - (pair.split("-")[1] in positions) for pair in PAIRS}
    signs = {pair: sign for pair, sign in signs.items() if sign} or {LEARNT: 1}
    means = gaps.summaries.drop_duplicates(["encoding", "mask", "pair"])  # the longest training stands first
    means = means[means["pair"].isin(signs)].dropna(subset="low")
    if means.empty:
        return f"Accuracy gaps after training on queries for {BIASES[bias]}"
    prefers = np.where(means["pair"].map(signs) > 0, means["low"] > 0, means["high"] < 0)
    by_network = means.assign(prefers=prefers).groupby(["encoding", "mask"])["prefers"].all().reset_index()
    counts: list[str] = []
    for encoding, name in (encodings := _encodings(means)).items():
        of_encoding = _of_encoding(by_network, encoding)["prefers"]
        count = f"{of_encoding.sum()} of {len(of_encoding)}" + ("" if counts else " masks")
        counts.append(f"{count} ({name})" if len(encodings) > 1 else count)
    preference = "what they were asked for" if positions else "the first item to the last"
    return f"Trained on queries for {BIASES[bias]}, networks prefer {preference} under {', '.join(counts)}"


def _finding_on_settings(printed: pd.DataFrame, released: pd.DataFrame) -> str:
    """In how many networks of both summaries the bias of the first and the last item goes the same way.

    That is where both intervals lie on the same side of 0. Without networks in both, what the figure shows.
    """
    of_each = [_sides(of_setting[of_setting["pair"] == LEARNT]) for of_setting in (printed, released)]
    sides = pd.concat(of_each, axis="columns", join="inner", keys=SETTINGS).dropna()
    if sides.empty:
        return "Accuracy gaps by depth as the paper prints its settings, and as its released code has them"
    alike = (sides["printed"] == sides["released"]) & (sides["printed"] != 0)
    depths = enumeration([*map(str, sorted(sides.index.unique("depth")))])
    return (
        f"As printed and as in the released code, the bias of {_inline(LEARNT)} goes the same way "
        f"in {alike.sum()} of {len(sides)} networks of {depths} layers"
    )


def _finding_on_learning(learning: pd.DataFrame) -> str:
    """How many networks have at the first test of training the bias that they have at the last.

    That is where both intervals lie on the same side of 0; a bias at the last test is one whose interval does. Without
    one, what the figure shows.
    """
    first, last = learning.loc[learning["iteration"] > 0, "iteration"].agg(["min", "max"])
    at_first, at_last = (_sides(learning[learning["iteration"] == iteration]) for iteration in (first, last))
    ended = at_last[at_last.abs() == 1]
    if ended.empty or first == last:
        return f"Gap of {_inline(LEARNT)} while networks learn, for each number of layers"
    count = (at_first.reindex(ended.index) == ended).sum()
    return (
        f"After {first:,} of {last:,} iterations, {count} of {len(ended)} networks already have the bias "
        f"of {_inline(LEARNT)} that they end with"
    )


def _sides(summary: pd.DataFrame) -> pd.Series:
    """Whether intervals of a gap lie above 0 or below, as 1 and -1, or 0; NaN without an interval: by network."""
    low, high = (summary.set_index(["encoding", "depth"])[end] for end in ("low", "high"))
    return ((low > 0).astype(float) - (high < 0)).where(low.notna())


def _finding_on_length(long: pd.DataFrame, short: pd.DataFrame, iterations: int, short_iterations: int) -> str:
    """With how many layers longer training lowers or raises the gap of the first and the last item: intervals part.

    Summaries with the columns depth, low and high. Where both trainings have no depth with an interval, or are equally
    long, what the figure shows.
    """
    long_ends, short_ends = (table.set_index("depth")[["low", "high"]].dropna() for table in (long, short))
    depths = long_ends.index.intersection(short_ends.index).sort_values()
    if not len(depths) or iterations <= short_iterations:
        return "Accuracy gaps during long training and at its end, beside those after short training"
    falls = long_ends.loc[depths, "high"] < short_ends.loc[depths, "low"]
    rises = long_ends.loc[depths, "low"] > short_ends.loc[depths, "high"]
    changes = {"falls": falls, "rises": rises, "does not change separably": ~(falls | rises)}
    parts = [
        f"{verb} with {enumeration([*map(str, depths[rows])])} layers" for verb, rows in changes.items() if rows.any()
    ]
    start = f"From {short_iterations:,} to {iterations:,} iterations the bias towards the first item"
    return f"{start} {enumeration(parts)}"


def _mask_looks(masks: pd.Series) -> dict[str, Look]:
    """The looks of the masks that occur; those of one family, which differ in their reach, have shades."""
    looks = {mask: mask_look(mask) for mask in sorted({*masks}, key=lambda mask: (mask != "none", len(mask), mask))}
    if len({look.colour for look in looks.values()}) < len(looks):
        colours = shades(range(len(looks)))
        return {mask: look._replace(colour=colours[place]) for place, (mask, look) in enumerate(looks.items())}
    return looks


def _encodings(table: pd.DataFrame) -> dict[str, str]:
    """The encodings that occur, in the order of figures, and what a panel calls them."""
    return {encoding: title for encoding, title in ENCODINGS.items() if (table["encoding"] == encoding).any()}


def _grouped_bars(axes: Axes, gaps: Gaps, column: str, looks: Mapping[Any, Look]) -> None:
    """Draw a group of bars for each pair, a bar for each value of `column` that has a look; wider pale bars behind."""
    width = 0.8 / len(looks)
    share = 0.9 if gaps.trainings.shorter.empty else 0.6
    places = {value: (index - (len(looks) - 1) / 2) * width for index, value in enumerate(looks)}
    for value, look in looks.items():
        of_value, at = gaps.select(**{column: value}), np.arange(len(PAIRS)) + places[value]
        if len(of_value.shorter):
            short = of_value.shorter.set_index("pair").reindex(list(PAIRS))
            edge: dict[str, Any] = {"edgecolor": look.colour, "linewidth": 0.4}
            axes.bar(at, short["gap"], 0.96 * width, color=pale(look.colour), **edge)
            if of_value.longest.empty:  # then it is what verdicts are about
                _intervals(axes, at, short, "black", halo=True)
        if len(of_value.longest):
            means = of_value.longest.set_index("pair").reindex(list(PAIRS))
            axes.bar(at, means["gap"], share * width, color=look.colour)
            at_seeds = np.array([list(PAIRS).index(pair) for pair in of_value.seeds["pair"]]) + places[value]
            _dots(axes, at_seeds + 0.13 * share * width, of_value.seeds, "0.15", 0.66 * share * width)
            _intervals(axes, at - 0.33 * share * width, means, "black", halo=True)  # where no dot lies under it
    for run, values in groupby(looks, lambda value: gaps.select(**{column: value}).longest.empty):
        if run and len(gaps.summaries):
            middle = np.mean([places[value] for value in values])
            _say_no_long_run(axes, np.arange(len(PAIRS)) + middle)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(PAIRS)), [look.name for look in PAIRS.values()])
    axes.set_xlim(-0.5, len(PAIRS) - 0.5)
    axes.tick_params(axis="x", length=0)
    axes.spines["bottom"].set_visible(False)


def _say_no_long_run(axes: Axes, at: ArrayLike) -> None:
    """Say at the top of a panel that nothing was trained for long at these places."""
    for place in np.atleast_1d(at):
        axes.text(
            place,
            1,
            NO_LONG_RUN,
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="top",
            size=SMALLEST,
            color="0.35",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            zorder=3,
        )


def _left_out(row: Iterable[Axes], gaps: Gaps) -> str:
    """Leave room in the panels that say NO_LONG_RUN, and return what this means; "" without such a panel."""
    with_note = [axes for axes in row if any(text.get_text() == NO_LONG_RUN for text in axes.texts)]
    for low, high, axes in [(*axes.get_ylim(), axes) for axes in with_note]:
        axes.set_ylim(low, high + 0.3 * (high - low))
    return f"; no long run: no five seeds for {_iterations_of(gaps.trainings.longest)}" if with_note else ""


def _gaps_by_depth(axes: Axes, gaps: Gaps, depths: Sequence[int]) -> None:
    """Draw the gap of each pair against depth: seeds, means with intervals, and pale the shorter training."""
    unit = min(np.diff(depths), default=1)
    for pair, look, offset in side_by_side(PAIRS, 0.11):
        of_pair = gaps.select(pair=pair)
        short, means = (table.sort_values("depth") for table in (of_pair.shorter, of_pair.longest))
        at, seeds = means["depth"] + offset * unit, of_pair.seeds
        mark: dict[str, Any] = {"linestyle": "-", "markersize": 3.5}
        axes.plot(
            short["depth"] + offset * unit, short["gap"], **line_with_marks(pale_look(look), range(len(short))) | mark
        )
        _dots(axes, seeds["depth"] + (offset + 0.05) * unit, seeds, look.colour)  # beside the interval
        axes.plot(at, means["gap"], look.marker, color=look.colour, linewidth=0.9, zorder=3, **mark)
        _intervals(axes, at, means, look.colour)
    _say_no_long_run(axes, [depth for depth in depths if depth not in {*gaps.longest["depth"]}])
    axes.axhline(0, color="black", linewidth=0.6, zorder=0)
    axes.set_xticks(depths)
    axes.set_xlim(depths[0] - 0.5 * unit, depths[-1] + 0.5 * unit)
    axes.set_xlabel("depth (layers)")


def _long_curves(axes: Axes, table: pd.DataFrame) -> None:
    """Gap of one pair against iterations, seeds thin and their mean bold."""
    looks = _depth_looks(table)
    for _, look, gaps in curves(table, "depth", looks):
        by_seed = gaps.pivot(index="iteration", columns="seed", values="gap")
        axes.plot(by_seed.index, by_seed, color=look.colour, linewidth=0.4, alpha=0.5)
    for _, look, gaps in curves(table, "depth", looks):
        mean = gaps.groupby("iteration")["gap"].mean()
        axes.plot(mean.index, mean, **line_with_marks(look._replace(width=1.4), _mark_places(len(mean))))


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


def _points(axes: Axes, at: ArrayLike, table: pd.DataFrame, value: str, look: Look) -> None:
    """A thin line with a mark at each point, and bars, which one seed does not have."""
    _intervals(axes, at, table, look.colour)
    axes.plot(at, table[value], **line_with_marks(look._replace(width=0.7), range(len(table))))


def _mark_places(points: int) -> list[int]:
    """Return the places of about MARKS marks on a line of so many points, evenly from its end."""
    return [*range(points - 1, -1, -max(1, points // MARKS))]


def _intervals(axes: Axes, at: ArrayLike, table: pd.DataFrame, colour: Colour, halo: bool = False) -> None:
    """Error bars from low to high, where there are any; a halo sets them off from dark bars."""
    with_interval = table["low"].notna().to_numpy()
    bars = axes.vlines(
        np.asarray(at)[with_interval], table["low"][with_interval], table["high"][with_interval], color=colour, zorder=4
    )
    bars.set_linewidth(0.8)
    if halo:
        bars.set_path_effects([Stroke(linewidth=1.8, foreground="white"), Normal()])


def _dots(axes: Axes, at: ArrayLike, per_seed: pd.DataFrame, colour: Colour, spread: float = 0.0) -> None:
    """A dot for each seed, in the order of the seeds from side to side of `spread`."""
    rank = per_seed["seed"].rank(method="dense").to_numpy()
    offset = (rank - (rank.max(initial=1) + 1) / 2) / rank.max(initial=1) * spread
    looks: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.2}
    axes.scatter(np.asarray(at) + offset, per_seed["gap"], s=4, alpha=0.75, zorder=3, **looks)


def _reference_lines(row: Sequence[Axes], task: RetrievalTask) -> list[Line2D]:
    """Draw the accuracies of guessing in each panel of a row, and return the entries of the legend."""
    bottom = row[0].get_ylim()[0]
    remark = " (below the axis)" if task.chance < bottom else ""
    guesses = [
        (task.chance, Look(f"chance, {task.chance:.3f}{remark}", REFERENCE, "", ":", width=0.7)),
        (task.copying_chance, Look(f"in-context chance, {task.copying_chance:.3f}", REFERENCE, "", "-.", width=0.7)),
    ]
    for axes in row:
        for level, look in guesses:
            axes.axhline(level, color=look.colour, linestyle=look.line, linewidth=look.width, zorder=0)
        axes.set_ylim(bottom=bottom)
    return [look.entry() for _, look in guesses]


def _from_the_lowest(axes: Axes, accuracy: pd.DataFrame, in_context: float) -> None:
    """An axis that begins below the lowest accuracy, and leaves out the guess among all labels where that is far."""
    lowest = accuracy[["accuracy", "low"]].min().min()
    axes.set_ylim(bottom=max(0.0, lowest - 0.15 * (max(accuracy["accuracy"].max(), in_context) - lowest)))


def _ceilings(row: Sequence[Axes], largest: float) -> list[Line2D]:
    """Lines at the largest gap in either direction, where a bar comes near it; what to put into the legend."""
    heights = [bar.get_height() for axes in row for bar in axes.patches if isinstance(bar, Rectangle)]
    levels = [sign * largest for sign in (-1, 1) if any(sign * height > NEAR_LARGEST * largest for height in heights)]
    for axes in row:
        for level in levels:
            axes.axhline(level, color="black", linestyle=":", linewidth=0.9, zorder=0)
    return [Look(f"largest expected gap, {largest:.3f}", "black", "", ":", width=0.9).entry()] if levels else []


def _iterations(axes: Axes, last: int) -> None:
    """An axis of square roots: the gaps appear early and change for long."""
    axes.set_xscale("function", functions=(lambda values: np.sign(values) * np.sqrt(np.abs(values)), np.square))
    axes.set_xticks(last * np.array([0, 0.1, 0.25, 0.5, 1]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, last)
    axes.set_xlabel("iteration (square-root scale)")


def _share_limits(row: Sequence[Axes]) -> None:
    """The same limits for all panels of gaps, and a line at no gap."""
    bounds = [bound for axes in row for bound in axes.get_ylim()]
    for axes in row:
        axes.axhline(0, color="black", linewidth=0.6, zorder=0)
        axes.set_ylim(min(bounds), max(bounds))


def _of_encoding(table: pd.DataFrame, encoding: str) -> pd.DataFrame:
    """Return the rows of one positional encoding."""
    return table[table["encoding"] == encoding]


def _depth_looks(*tables: pd.DataFrame) -> dict[int, Look]:
    """The looks of the depths that occur, the least first."""
    return {depth: depth_look(depth) for depth in sorted({int(depth) for table in tables for depth in table["depth"]})}


def _depth_lines(*tables: pd.DataFrame) -> list[Line2D]:
    return [look.entry(markersize=3) for look in _depth_looks(*tables).values()]


def _inline(pair: str) -> str:
    return PAIRS[pair].name.replace("\n", " ")
