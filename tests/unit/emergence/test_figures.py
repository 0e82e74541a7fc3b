import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from position_bias.emergence import figures
from position_bias.statistics import mean_and_interval
from tests.unit.drawing_checks import assert_legible, assert_saved_alike

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
    return table.assign(**{names[1]: rng.uniform(-0.2, 0.3, len(table))})


def summary(per_seed, value):
    """Mean and t-interval over seeds."""
    keys = [column for column in per_seed if column not in ("seed", value)]
    groups = {key: part[value].to_numpy() for key, part in per_seed.groupby(keys)}
    rows = [(*key, *map(float, mean_and_interval(values, 0.95)), len(values)) for key, values in groups.items()]
    return pd.DataFrame(rows, columns=[*keys, value, "low", "high", "seeds"])


def gaps(seeds=3, **levels):
    per_seed = runs(np.random.default_rng(0), ("pair", "gap"), PAIRS, seeds, **levels)
    return summary(per_seed, "gap"), per_seed


def accuracies(seeds=3, **levels):
    rng = np.random.default_rng(1)
    return summary(runs(rng, ("answer", "accuracy"), range(1, 9), seeds, **levels), "accuracy")


def curves(seeds=3, quantities=("loss", "accuracy", "in_context", *PAIRS), **levels):
    rng, levels = np.random.default_rng(2), {"iteration": [0, 100, 1000, 2000]} | levels
    return summary(runs(rng, ("quantity", "value"), quantities, seeds, **levels), "value")


def long_curves(depths=(2, 4), seeds=3, iterations=(0, 500, 1000, 2000, 4000)):
    table = pd.DataFrame(
        itertools.product(depths, range(seeds), iterations, PAIRS), columns=["depth", "seed", "iteration", "pair"]
    )
    return table.assign(gap=np.random.default_rng(3).uniform(0, 0.2, len(table)))


def bars(axes):
    """Heights by colour and pair."""
    found = {}
    for bar in axes.patches:
        pair = PAIRS[round(bar.get_x() + bar.get_width() / 2)]
        found[to_rgb(bar.get_facecolor()), pair] = bar.get_height()
    return found


def intervals(axes):
    """Ends of all error bars, sorted."""
    segments = [ends for it in axes.collections if isinstance(it, LineCollection) for ends in it.get_segments()]
    return np.array(sorted((low, high) for (_, low), (_, high) in segments)).reshape(-1, 2)


def dots(axes):
    return sorted(y for it in axes.collections if not isinstance(it, LineCollection) for _, y in it.get_offsets())


def levels(axes):
    """Heights of the lines that cross the whole panel."""
    return [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]


def drawn(axes):
    """Values of the lines of data by colour and style."""
    shown = [line for line in axes.lines if list(line.get_xdata()) != [0, 1]]
    return {(to_rgb(line.get_color()), line.get_linestyle()): np.array(line.get_ydata()) for line in shown}


def assert_bars(axes, table, per_seed, by, colour):
    """Every bar, interval and seed of `table` is there, and nothing else."""
    expected = {(to_rgb(colour(row[by])), row["pair"]): row["gap"] for _, row in table.iterrows()}
    assert bars(axes) == pytest.approx(expected)
    known = table.dropna(subset="low")
    np.testing.assert_allclose(
        intervals(axes), sorted(zip(known["low"], known["high"], strict=True)) or np.empty((0, 2))
    )
    assert dots(axes) == pytest.approx(sorted(per_seed["gap"]))


@pytest.mark.parametrize("plain_depths", [(2,), (2, 4, 6)])
@pytest.mark.parametrize("seeds", [1, 3])
def test_overview_has_a_row_a_residual_a_column_an_encoding_and_a_bar_a_depth(plain_depths, seeds):
    residual_depths = (2, 4, 6, 8, 10)
    plain, plain_seeds = gaps(seeds, depth=plain_depths)
    residual, residual_seeds = gaps(seeds, depth=residual_depths, residual=[True])
    figure = figures.depth_overview(plain, residual, pd.concat([plain_seeds, residual_seeds]))
    rows = np.reshape(figure.axes, (2, 3))
    assert [axes.get_title() for axes in rows[0]] == ["no encoding", "RoPE", "decay mask"]
    for row, table, per_seed in zip(rows, (plain, residual), (plain_seeds, residual_seeds), strict=True):
        for axes, encoding in zip(row, ENCODINGS, strict=True):
            of_encoding = table[table["encoding"] == encoding], per_seed[per_seed["encoding"] == encoding]
            assert_bars(axes, *of_encoding, "depth", figures.depth_colour)
            assert levels(axes) == [0]
    assert_legible(figure)


@pytest.mark.parametrize("seeds", [3, 4, 5, 6])
def test_no_seed_lies_under_an_interval(seeds):
    plain, per_seed = gaps(seeds, depth=(2, 4, 6))
    for axes in figures.depth_overview(plain, plain.assign(residual=True), per_seed).axes[:3]:
        lines = [it for it in axes.collections if isinstance(it, LineCollection)]
        bars = {x for it in lines for ends in it.get_segments() for x, _ in ends}
        places = {x for it in axes.collections if it not in lines for x, _ in it.get_offsets()}
        assert min(abs(x - bar) for x in places for bar in bars) > 0.02


def test_overview_without_seeds_has_no_dots():
    plain, _ = gaps(depth=(2, 4))
    for axes in figures.depth_overview(plain, plain.assign(residual=True)).axes:
        assert dots(axes) == []
        assert len(intervals(axes)) == 6


@pytest.mark.parametrize("depths", [(2,), (2, 4), (2, 3, 4), (2, 4, 6, 8, 10)])
@pytest.mark.parametrize("seeds", [1, 3])
def test_depth_has_gaps_above_and_accuracies_below(depths, seeds):
    table, per_seed = gaps(seeds, depth=depths)
    accuracy = accuracies(seeds, depth=depths)
    figure = figures.depth(table, per_seed, accuracy, CHANCE, IN_CONTEXT)
    above, below = np.reshape(figure.axes, (2, 3))
    for encoding, top, bottom in zip(ENCODINGS, above, below, strict=True):
        shown = table[table["encoding"] == encoding]
        for pair, look in figures.PAIRS.items():
            np.testing.assert_array_equal(drawn(top)[to_rgb(look.colour), "-"], shown[shown["pair"] == pair]["gap"])
        known = shown.dropna(subset="low")
        assert len(known) == (0 if seeds == 1 else 3 * len(depths))
        np.testing.assert_allclose(
            intervals(top), np.reshape(sorted(known[["low", "high"]].to_numpy().tolist()), (-1, 2))
        )
        assert dots(top) == pytest.approx(sorted(per_seed[per_seed["encoding"] == encoding]["gap"]))
        for depth in depths:
            of_depth = accuracy[(accuracy["encoding"] == encoding) & (accuracy["depth"] == depth)]
            line = drawn(bottom)[to_rgb(figures.depth_colour(depth)), "-"]
            np.testing.assert_array_equal(line, of_depth["accuracy"])
        assert levels(bottom) == [CHANCE, IN_CONTEXT]
    assert_legible(figure)


@pytest.mark.parametrize(("bias", "words"), [("ends", "the first or last item"), ("middle", "the middle item")])
@pytest.mark.parametrize("seeds", [1, 8])
def test_training_with_bias_has_a_panel_an_encoding_and_a_bar_a_mask(bias, words, seeds):
    encodings = ("rope", "none", "sin")  # the figure has its own order
    table, per_seed = gaps(seeds, encoding=encodings, mask=["causal", "none"], bias=[bias], residual=[True])
    figure = figures.trained_with_bias(table, per_seed, largest=0.554)
    assert [axes.get_title() for axes in figure.axes] == ["no encoding", "sinusoidal", "RoPE"]
    for axes, encoding in zip(figure.axes, ("none", "sin", "rope"), strict=True):
        of_encoding = table[table["encoding"] == encoding], per_seed[per_seed["encoding"] == encoding]
        assert_bars(axes, *of_encoding, "mask", lambda mask: figures.mask_look(mask).colour)
        assert levels(axes) == [0]
    assert_legible(figure)


def test_bars_near_the_largest_gap_that_is_possible_have_its_line():
    table, per_seed = gaps(encoding=["none"], mask=["causal"], bias=["first"])
    high = table.assign(gap=0.5, low=0.4, high=0.6)
    figure = figures.trained_with_bias(high, per_seed, largest=0.554)
    assert levels(figure.axes[0]) == [0, 0.554]
    both = high.assign(gap=np.where(high["pair"] == "first-last", -0.5, 0.5))
    assert levels(figures.trained_with_bias(both, per_seed, largest=0.554).axes[0]) == [0, -0.554, 0.554]


def test_a_figure_says_what_its_networks_have_in_common():
    table, _ = gaps(depth=(2, 4, 6), vocabulary=["fixed"], residual=[True])
    told = figures.setting(table.assign(omega="training", seeds=table["depth"].map({2: 5, 4: 3, 6: 3})))
    assert told == (
        "fixed vocabulary, tested with the common direction of training; with residual connections; "
        "5 seeds of 2 layers; 3 seeds of 4 and 6 layers"
    )


@pytest.mark.parametrize("seeds", [1, 3])
def test_learning_curves_have_a_row_a_quantity_and_a_column_an_encoding(seeds):
    table = curves(seeds, depth=[2, 4])
    figure = figures.learning_curves(table, CHANCE, IN_CONTEXT)
    rows = np.reshape(figure.axes, (5, 3))
    shown = [{"loss": "-"}, {"accuracy": "-", "in_context": "--"}, *({pair: "-"} for pair in PAIRS)]
    for row, styles in zip(rows, shown, strict=True):
        for axes, encoding in zip(row, ("none", "rope", "decay"), strict=True):  # as in every figure
            assert len(drawn(axes)) == 2 * len(styles)
            for (quantity, line), depth in itertools.product(styles.items(), (2, 4)):
                chosen = (table["quantity"] == quantity) & (table["depth"] == depth) & (table["encoding"] == encoding)
                values = drawn(axes)[to_rgb(figures.depth_colour(depth)), line]
                np.testing.assert_array_equal(values, table[chosen]["value"])
            if "accuracy" in styles and seeds > 1:
                bands = [path.vertices[:, 1] for band in axes.collections for path in band.get_paths()]
                assert np.min(np.concatenate(bands)) >= 0  # no accuracy is below it
    assert [levels(row[0]) for row in rows] == [[], [CHANCE, IN_CONTEXT], [0], [0], [0]]
    assert len({axes.get_ylim() for axes in rows[2:].flat}) == 1
    assert [axes.get_title() for axes in rows[0]] == ["no encoding", "RoPE", "decay mask"]
    assert rows[-1][0].get_xlim() == (0, 2000)
    assert_legible(figure)


@pytest.mark.parametrize(("depths", "seeds"), [((2, 4), 3), ((2,), 2), ((6,), 1)])
def test_long_training_has_seeds_and_means_and_what_is_left_at_the_end(depths, seeds):
    table = long_curves(depths, seeds)
    laptop, _ = gaps(depth=(2, 3), encoding=["none"])
    figure = figures.long_training(table, laptop, last=2)
    panels = {axes.get_title().replace(" vs. ", "-"): axes for axes in figure.axes}
    for pair in PAIRS:
        lines = [line for line in panels[pair].lines if len(line.get_xdata()) > 2]
        thin = [line.get_ydata() for line in lines if line.get_linewidth() < 1]
        bold = [line.get_ydata() for line in lines if line.get_linewidth() > 1]
        of_pair = table[table["pair"] == pair]
        expected = [part["gap"] for _, part in of_pair.groupby(["depth", "seed"])]
        np.testing.assert_allclose(thin, expected)
        np.testing.assert_allclose(bold, np.reshape(expected, (len(depths), seeds, -1)).mean(1))
    late = table[(table["pair"] == "first-last") & (table["iteration"] >= 2000)]
    by_seed = late.groupby(["depth", "seed"])["gap"].mean()
    end = panels["first-last, at the end"]
    assert dots(end) == pytest.approx(sorted(by_seed))
    of_laptop = laptop[laptop["pair"] == "first-last"]
    means = [*by_seed.groupby("depth").mean(), *of_laptop["gap"]]
    marks = [value for line in end.lines if line.get_marker() in "oD" for value in line.get_ydata()]
    assert sorted(marks) == pytest.approx(sorted(means))
    ends = [
        mean_and_interval(values, 0.95)[1:] for _, values in by_seed.groupby("depth") if len(values) >= figures.FEWEST
    ]
    np.testing.assert_allclose(intervals(end), sorted([*ends, *zip(of_laptop["low"], of_laptop["high"], strict=True)]))
    (shade,) = panels["first-last"].patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (2000, 4000)
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert_legible(figure)


def test_long_training_stands_without_a_laptop():
    figure = figures.long_training(long_curves())
    told = figure.legends[0].get_title().get_text().replace("\n", " ")
    assert told == "3 seeds of 2 and 4 layers (thin; bold: their mean; shaded: the last 5 tests)"


def test_the_figure_is_legible_in_all_formats_and_the_same_in_two_runs(tmp_path):
    assert_saved_alike(lambda: figures.learning_curves(curves(depth=[2, 4]), CHANCE, IN_CONTEXT), tmp_path)
