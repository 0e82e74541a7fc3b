import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from position_bias.emergence import figures
from position_bias.statistics import mean_and_interval
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved, curves

pytestmark = pytest.mark.usefixtures("styled")

ENCODINGS = ("none", "rope", "decay")
PAIRS = ("first-middle", "first-last", "middle-last")
CHANCE, IN_CONTEXT = 1 / 32, 0.516


def runs(rng, names, values, seeds, **levels):
    """A row a seed for every combination of `levels` and of `values`, in columns of these two `names`."""
    settings = {
        "vocabulary": ["gaussian"], "omega": ["none"], "study": ["plain"], "bias": ["none"], "mask": ["causal"],
        "encoding": ENCODINGS, "residual": [False], "depth": [2], **levels, names[0]: values, "seed": range(seeds),
    }  # fmt: skip
    table = pd.DataFrame(itertools.product(*settings.values()), columns=list(settings))
    return table.assign(**{names[1]: rng.uniform(0.3, 0.6, len(table))})


def summary(per_seed, value):
    """Mean and t-interval over seeds."""
    keys = [column for column in per_seed if column not in ("seed", value)]
    groups = {key: part[value].to_numpy() for key, part in per_seed.groupby(keys)}
    rows = [(*key, *map(float, mean_and_interval(values, 0.95)), len(values)) for key, values in groups.items()]
    return pd.DataFrame(rows, columns=[*keys, value, "low", "high", "seeds"])


def gaps(seeds=3, **levels):
    per_seed = runs(np.random.default_rng(0), ("pair", "gap"), PAIRS, seeds, **levels)
    return summary(per_seed, "gap"), per_seed


def of(table, **keys):
    """The rows with these values."""
    return table[np.all([table[name] == value for name, value in keys.items()], axis=0)]


def assert_gaps(axes, table, per_seed):
    """A panel has every mean with its interval, and every seed."""
    assert_drawn(axes, table[["gap", "low", "high"]], per_seed["gap"])


def bars(axes):
    """Heights by colour and pair."""
    return {
        (to_rgb(bar.get_facecolor()), PAIRS[round(bar.get_x() + bar.get_width() / 2)]): bar.get_height()
        for bar in axes.patches
    }


def levels(axes):
    """Heights of the lines that cross the whole panel."""
    return [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]


@pytest.mark.parametrize(("seeds", "plain_depths"), [(1, (2,)), (3, (2, 4, 6))])
def test_overview_has_a_row_a_residual_a_column_an_encoding_and_a_bar_a_depth(seeds, plain_depths):
    tables = gaps(seeds, depth=plain_depths), gaps(seeds, depth=(2, 4, 6, 8, 10), residual=[True])
    (plain, residual), per_seed = (tables[0][0], tables[1][0]), pd.concat([table for _, table in tables])
    figure = figures.depth_overview(plain, residual, per_seed)
    assert [axes.get_title() for axes in figure.axes[:3]] == ["no encoding", "RoPE", "decay mask"]
    for row, (table, of_row) in zip(np.reshape(figure.axes, (2, 3)), tables, strict=True):
        for axes, encoding in zip(row, ENCODINGS, strict=True):
            shown = of(table, encoding=encoding)
            assert_gaps(axes, shown, of(of_row, encoding=encoding))
            assert bars(axes) == {
                (to_rgb(figures.depth_colour(row.depth)), row.pair): row.gap for row in shown.itertuples()
            }
    assert_legible(figure)
    for axes in figures.depth_overview(plain, residual).axes:  # without seeds
        assert not [it for it in axes.collections if not isinstance(it, LineCollection) and len(it.get_offsets())]


def test_no_seed_lies_under_an_interval():
    plain, per_seed = gaps(6, depth=(2, 4, 6))
    for axes in figures.depth_overview(plain, plain.assign(residual=True), per_seed).axes[:3]:
        lines = [it for it in axes.collections if isinstance(it, LineCollection)]
        places = {x for it in axes.collections if it not in lines for x, _ in it.get_offsets()}
        ends = {x for it in lines for segment in it.get_segments() for x, _ in segment}
        assert min(abs(x - end) for x in places for end in ends) > 0.02


@pytest.mark.parametrize(("seeds", "depths"), [(1, (2, 3, 4)), (3, (2,)), (3, (2, 4, 6, 8, 10))])
def test_depth_has_gaps_above_and_accuracies_below(seeds, depths):
    table, per_seed = gaps(seeds, depth=depths)
    per_answer = runs(np.random.default_rng(1), ("answer", "accuracy"), range(1, 9), seeds, depth=depths)
    accuracy = summary(per_answer, "accuracy")
    figure = figures.depth(table, per_seed, accuracy, CHANCE, IN_CONTEXT)
    for encoding, top, bottom in zip(ENCODINGS, *np.reshape(figure.axes, (2, 3)), strict=True):
        shown = of(table, encoding=encoding)
        assert_gaps(top, shown, of(per_seed, encoding=encoding))
        for pair, look in figures.PAIRS.items():
            (line,) = curves(top, look.colour)
            np.testing.assert_array_equal(line, of(shown, pair=pair)["gap"])
        assert_drawn(bottom, of(accuracy, encoding=encoding)[["accuracy", "low", "high"]])
        for depth in depths:
            (line,) = curves(bottom, figures.depth_colour(depth))
            np.testing.assert_array_equal(line, of(accuracy, encoding=encoding, depth=depth)["accuracy"])
        assert levels(bottom) == [CHANCE, IN_CONTEXT]
    assert_legible(figure)


@pytest.mark.parametrize(("bias", "seeds"), [("ends", 1), ("middle", 8)])
def test_training_with_bias_has_a_panel_an_encoding_and_a_bar_a_mask(bias, seeds):
    encodings = ("rope", "none", "sin")  # the figure has its own order
    table, per_seed = gaps(seeds, encoding=encodings, mask=["causal", "none"], bias=[bias], residual=[True])
    figure = figures.trained_with_bias(table, per_seed, largest=9)
    for axes, encoding in zip(figure.axes, ("none", "sin", "rope"), strict=True):
        shown = of(table, encoding=encoding)
        assert_gaps(axes, shown, of(per_seed, encoding=encoding))
        assert bars(axes) == {
            (to_rgb(figures.mask_look(row.mask).colour), row.pair): row.gap for row in shown.itertuples()
        }
    assert_legible(figure)


def test_bars_near_the_largest_gap_that_is_possible_have_its_line():
    table, per_seed = gaps(encoding=["none"], mask=["causal"], bias=["first"])
    high = table.assign(gap=0.5, low=0.4, high=0.6)
    assert levels(figures.trained_with_bias(high, per_seed, largest=0.554).axes[0]) == [0, 0.554]
    both = high.assign(gap=np.where(high["pair"] == "first-last", -0.5, 0.5))
    assert levels(figures.trained_with_bias(both, per_seed, largest=0.554).axes[0]) == [0, -0.554, 0.554]


def test_a_figure_says_what_its_networks_have_in_common():
    table, _ = gaps(depth=(2, 4, 6), vocabulary=["fixed"], residual=[True])
    told = figures.setting(table.assign(omega="training", seeds=table["depth"].map({2: 5, 4: 3, 6: 3})))
    assert told == (
        "fixed vocabulary, tested with the common direction of training; with residual connections; "
        "5 seeds of 2 layers; 3 seeds of 4 and 6 layers"
    )


def test_learning_curves_have_a_row_a_quantity_and_a_column_an_encoding(tmp_path):
    rows_of = [["loss"], ["accuracy", "in_context"], *([pair] for pair in PAIRS)]
    quantities = [name for names in rows_of for name in names]
    rng, along = np.random.default_rng(2), {"iteration": [0, 100, 1000, 2000], "depth": [2, 4]}
    table = summary(runs(rng, ("quantity", "value"), quantities, 3, **along), "value")
    figure = figures.learning_curves(table, CHANCE, IN_CONTEXT)
    for row, names in zip(np.reshape(figure.axes, (5, 3)), rows_of, strict=True):
        for axes, encoding in zip(row, ENCODINGS, strict=True):
            shown = table[table["quantity"].isin(names) & (table["encoding"] == encoding)]
            if "accuracy" in names:  # no share lies outside
                shown = shown.assign(low=shown["low"].clip(lower=0), high=shown["high"].clip(upper=1))
            assert_drawn(axes, shown[["value", "low", "high"]])
            for depth, (name, style) in itertools.product((2, 4), zip(names, ("-", "--"), strict=False)):
                (line,) = curves(axes, figures.depth_colour(depth), style)
                np.testing.assert_array_equal(line, of(shown, quantity=name, depth=depth)["value"])
    assert [levels(axes) for axes in figure.axes[::3]] == [[], [CHANCE, IN_CONTEXT], [0], [0], [0]]
    assert_saved(figure, tmp_path)


@pytest.mark.parametrize(("depths", "seeds"), [((2, 4), 3), ((6,), 1)])
def test_long_training_has_seeds_and_means_and_what_is_left_at_the_end(depths, seeds):
    keys = itertools.product(depths, range(seeds), (0, 500, 1000, 2000, 4000), PAIRS)
    table = pd.DataFrame(keys, columns=["depth", "seed", "iteration", "pair"])
    table = table.assign(gap=np.random.default_rng(3).uniform(0, 0.2, len(table)))
    short, _ = gaps(depth=(2, 3), encoding=["none"])
    figure = figures.long_training(table, short, last=2)
    panels = {axes.get_title().replace(" vs. ", "-"): axes for axes in figure.axes}
    for pair in PAIRS:
        of_pair = of(table, pair=pair)
        assert_drawn(panels[pair], of_pair["gap"], of_pair.groupby(["depth", "iteration"])["gap"].mean())
    late = table[(table["pair"] == "first-last") & (table["iteration"] >= 2000)]
    by_seed = late.groupby(["depth", "seed"])["gap"].mean()
    ends = [mean_and_interval(values, 0.95) for _, values in by_seed.groupby("depth") if seeds >= figures.FEWEST]
    of_short = of(short, pair="first-last")[["gap", "low", "high"]]
    assert_drawn(panels["first-last, at the end"], by_seed, by_seed.groupby("depth").mean(), np.ravel(ends), of_short)
    (shade,) = panels["first-last"].patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (2000, 4000)
    assert_legible(figure)
    told = figures.long_training(table).legends[0].get_title().get_text()
    assert "(thin; bold: their mean; shaded: the last 5 tests)" in told.replace("\n", " ")
