"""What is drawn of tables of training whose numbers are random: gaps, accuracies and curves are worked out beside."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.emergence import figures, gaps
from position_bias.emergence.task import Task
from position_bias.statistics import mean_and_interval
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved, curves

pytestmark = pytest.mark.usefixtures("styled")

PAIRS = {"first-middle": (1, 2), "first-last": (1, 4), "middle-last": (2, 4)}
NUMBERS = [
    ("loss", 0, 0),
    *(("accuracy", *of) for a, b in PAIRS.values() for of in ((a, b), (b, a))),
    *((quantity, answer, 0) for quantity in ("accuracy", "in_context") for answer in range(1, 5)),
]
LEVEL, TASK, CHANCES = 0.95, {}, [Task().chance, Task().copying_chance]


def trained(seeds=3, iterations=(2000,), **levels):
    """A table of training of networks that differ in `levels`, with random numbers."""
    settings = {
        "vocabulary": ["gaussian"], "omega": ["none"], "study": ["plain"], "bias": ["none"], "mask": ["causal"],
        "encoding": ["none", "rope", "decay"], "residual": [False], "depth": [2], **levels,
        "seed": range(seeds), "iteration": iterations, "number": NUMBERS,
    }  # fmt: skip
    table = pd.DataFrame(itertools.product(*settings.values()), columns=list(settings))
    table[["quantity", "answer", "twin"]] = pd.DataFrame(table.pop("number").tolist())
    return table.assign(value=np.random.default_rng(len(table)).uniform(0.3, 0.6, len(table)))


def of(table, **keys):
    """The rows with these values."""
    return table[np.all([table[name] == value for name, value in keys.items()], axis=0)]


def over_seeds(by_seed, value):
    """Mean and Student's interval of every group of seeds, in columns `value`, low and high."""
    keys = [name for name in by_seed if name not in ("seed", value)]
    rows = [(*key, *map(float, mean_and_interval(of_key, LEVEL))) for key, of_key in by_seed.groupby(keys)[value]]
    return pd.DataFrame(rows, columns=[*keys, value, "low", "high"])


def gaps_of(table):
    """The gap of every pair by seed, from the last test."""
    last = of(table, iteration=table["iteration"].max(), quantity="accuracy")
    keys = [*gaps.CONFIGURATION, "seed"]
    right = last.set_index([*keys, "answer", "twin"])["value"].unstack(["answer", "twin"])
    parts = [
        (right[pair] - right[pair[::-1]]).rename("gap").reset_index().assign(pair=name) for name, pair in PAIRS.items()
    ]
    return pd.concat(parts)


def assert_gaps(axes, by_seed):
    """A panel has every mean with its interval, and every seed."""
    assert_drawn(axes, over_seeds(by_seed, "gap")[["gap", "low", "high"]], by_seed["gap"])


def assert_bars(axes, by_seed, column, colour):
    """Every bar has its colour, and stands with its pair."""
    drawn = {
        (to_rgb(bar.get_facecolor()), list(PAIRS)[round(bar.get_x() + bar.get_width() / 2)]): bar.get_height()
        for bar in axes.patches
    }
    means = by_seed.groupby([column, "pair"])["gap"].mean()
    assert drawn == pytest.approx({(to_rgb(colour(value)), pair): mean for (value, pair), mean in means.items()})


def levels(axes):
    """Heights of the lines that cross the whole panel."""
    return [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]


def depth_colour(depth):
    return figures.depth_look(depth).colour


@pytest.mark.parametrize(("seeds", "depths"), [(1, {False: (2,), True: (2, 3)}), (3, {True: (2, 10)})])
def test_fig2_has_a_row_a_wiring_a_column_an_encoding_and_a_bar_a_depth(seeds, depths):
    table = pd.concat([trained(seeds, residual=[residual], depth=of_wiring) for residual, of_wiring in depths.items()])
    figure, by_seed = figures.fig2(table, LEVEL), gaps_of(table)
    panels = itertools.product(depths, ("none", "rope", "decay"))
    for axes, (residual, encoding) in zip(figure.axes, panels, strict=True):
        shown = of(by_seed, residual=residual, encoding=encoding)
        assert_gaps(axes, shown)
        assert_bars(axes, shown, "depth", depth_colour)
    assert_legible(figure)


def test_by_depth_has_gaps_above_and_accuracies_below():
    depths = (2, 4, 10)
    table = trained(depth=depths)
    figure, by_seed = figures.by_depth(table, LEVEL, TASK), gaps_of(table)
    answers = of(table, quantity="accuracy", twin=0)[[*gaps.CONFIGURATION, "seed", "answer", "value"]]
    for encoding, top, bottom in zip(("none", "rope", "decay"), *np.reshape(figure.axes, (2, 3)), strict=True):
        shown, accuracy = of(by_seed, encoding=encoding), of(over_seeds(answers, "value"), encoding=encoding)
        assert_gaps(top, shown)
        for pair, look in figures.PAIRS.items():
            (line,) = curves(top, look.colour)
            np.testing.assert_allclose(line, of(shown, pair=pair).groupby("depth")["gap"].mean())
        assert_drawn(bottom, accuracy[["value", "low", "high"]])
        for depth in depths:
            (line,) = curves(bottom, depth_colour(depth))
            np.testing.assert_allclose(line, of(accuracy, depth=depth)["value"])
        assert levels(bottom) == CHANCES
    assert_legible(figure)


def test_by_bias_has_a_panel_an_encoding_and_a_bar_a_mask(tmp_path):
    encodings = ("rope", "none", "sin")  # the figure has its own order
    table = trained(5, encoding=encodings, mask=["causal", "none"], bias=["ends"], residual=[True])
    figure = figures.by_bias(table, LEVEL, TASK)
    for axes, encoding in zip(figure.axes, ("none", "sin", "rope"), strict=True):
        shown = of(gaps_of(table), encoding=encoding)
        assert_gaps(axes, shown)
        assert_bars(axes, shown, "mask", lambda mask: figures.mask_look(mask).colour)
    assert_saved(figure, tmp_path)


@pytest.mark.parametrize(
    ("sizes", "shown"), [((0.3, 0.3, 0.3), []), ((0.5, 0.5, 0.5), [1]), ((0.5, -0.5, 0.5), [-1, 1])]
)
def test_bars_near_the_largest_gap_that_is_possible_have_its_line(sizes, shown):
    table = trained(encoding=["none"], bias=["first"])
    for size, (a, b) in zip(sizes, PAIRS.values(), strict=True):
        for answer, twin, accuracy in ((a, b, 0.4 + size), (b, a, 0.4)):
            table.loc[(table["answer"] == answer) & (table["twin"] == twin), "value"] = accuracy
    found = levels(figures.by_bias(table, LEVEL, TASK).axes[0])
    assert found == pytest.approx([0, *(sign * 4 / 7 * 31 / 32 for sign in shown)])


def test_along_training_has_a_row_a_quantity_and_a_column_an_encoding():
    table = trained(iterations=[0, 100, 1000, 2000], depth=[2, 4])
    figure = figures.along_training(table, LEVEL, TASK)
    means = over_seeds(gaps.curves(table), "value")
    rows = [("loss",), ("accuracy", "in_context"), *((pair,) for pair in PAIRS)]
    for axes, (names, encoding) in zip(figure.axes, itertools.product(rows, ("none", "rope", "decay")), strict=True):
        shown = means[means["quantity"].isin(names) & (means["encoding"] == encoding)]
        if "accuracy" in names:  # no share lies outside
            shown = shown.assign(low=shown["low"].clip(lower=0), high=shown["high"].clip(upper=1))
        assert_drawn(axes, shown[["value", "low", "high"]])
        for depth, (name, style) in itertools.product((2, 4), zip(names, ("-", "--"), strict=False)):
            (line,) = curves(axes, depth_colour(depth), style)
            np.testing.assert_allclose(line, of(shown, quantity=name, depth=depth)["value"])
    assert [levels(axes) for axes in figure.axes[::3]] == [[], CHANCES, [0], [0], [0]]
    assert_legible(figure)


@pytest.mark.parametrize(("depths", "seeds"), [((2, 4), 3), ((6,), 1)])
def test_long_training_has_seeds_and_means_and_what_is_left_at_the_end(depths, seeds):
    keys = itertools.product((*depths, 5), range(seeds), (0, 500, 1000, 2000, 4000), PAIRS)
    both = pd.DataFrame(keys, columns=["depth", "seed", "iteration", "quantity"])
    both = both.assign(value=np.random.default_rng(3).uniform(0, 0.2, len(both)))
    short = trained(depth=(2, 3), encoding=["none", "rope"])
    long, older = of(both, depth=depths[0]), both  # whose first depth is not shown
    older = older.assign(value=older["value"].where(older["depth"] != depths[0], 99.0))
    figure = figures.long_and_short_training(long, older, short, LEVEL, last=2)
    panels = {axes.get_title().replace(" vs. ", "-"): axes for axes in figure.axes}
    for pair in PAIRS:
        of_pair = of(both, quantity=pair)
        assert_drawn(panels[pair], of_pair["value"], of_pair.groupby(["depth", "iteration"])["value"].mean())
    late = both[(both["quantity"] == "first-last") & (both["iteration"] >= 2000)]
    by_seed = late.groupby(["depth", "seed"])["value"].mean()
    ends = [mean_and_interval(values, LEVEL) for _, values in by_seed.groupby("depth") if seeds >= figures.FEWEST]
    at_end = over_seeds(of(gaps_of(short), encoding="none", pair="first-last"), "gap")[["gap", "low", "high"]]
    assert_drawn(panels["first-last, at the end"], by_seed, by_seed.groupby("depth").mean(), np.ravel(ends), at_end)
    (shade,) = panels["first-last"].patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (2000, 4000)
    assert_legible(figure)
