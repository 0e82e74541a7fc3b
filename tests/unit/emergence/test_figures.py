"""What figures of emergence say besides their data: which tokens are centres, which network stands on which line."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import FancyArrowPatch

from position_bias.emergence import accuracy_gaps, figures, figures_attention
from position_bias.emergence.figures_attention import ROUNDING_NOTE
from position_card.drawing import style
from position_card.drawing.shown import drawn_in, names_in
from position_card.rollout.attention import causal_mask, prefix_mask, sliding_window_mask
from tests.drawn import assert_saved
from tests.figures.emergence import both, maps, sinks, sinks_of_networks, trained

pytestmark = pytest.mark.usefixtures("styled")


def test_fig1_has_each_mask_below_its_graph(tmp_path):
    figure = figures_attention.masks_and_graphs()
    masks = [causal_mask(5), sliding_window_mask(5, 2), prefix_mask(5, 2)]
    centres = [[0], [0], [0, 1]]
    for graph, matrix, mask, centre in zip(*np.reshape(figure.axes, (2, 3)), masks, centres, strict=True):
        np.testing.assert_array_equal(matrix.collections[0].get_array(), mask)
        assert matrix.yaxis_inverted()
        edges = np.eye(5, dtype=bool)
        for arrow in graph.patches:
            assert isinstance(arrow, FancyArrowPatch)
            (read, _), (reader, _) = arrow._posA_posB
            edges[reader, read] = True
        np.testing.assert_array_equal(edges, mask)
        yellow = [line.get_xdata()[0] for line in graph.lines if line.get_color() == figures_attention.CENTRE]
        assert yellow == centre
    assert_saved(figure, tmp_path)


def test_a_panel_that_rounding_decides_says_so_and_is_pale():
    given, _ = sinks(("window5", "window9"), (0.2, 0.3))
    panels = np.reshape(figures_attention.sinks_of_networks(given, [], [], 0.95, 0.2, 2000).axes, (2, 2))
    told = [[ROUNDING_NOTE in [text.get_text() for text in axes.texts] for axes in row] for row in panels]
    assert told == [[True, False], [False, False]]
    assert panels[0, 0].patches[0].get_alpha() < panels[0, 1].patches[0].get_alpha()


def test_a_place_without_long_training_says_so():
    own, (kept,) = both(study=["ends"], bias=["ends"], mask=["causal", "none"], encoding=["none", "rope"])
    kept = kept[(kept["mask"] == "causal") & (kept["encoding"] == "none")]
    figure = figures.by_bias(own, [kept], 0.95, {})
    said = [[round(text.get_position()[0], 1) for text in axes.texts] for axes in figure.axes]
    assert said == [[-0.2, 0.8, 1.8], [0, 1, 2]]  # no mask; both masks
    told = figure.legends[-1].get_title().get_text().replace("\n", " ")
    assert "no long run: no five seeds for 100,000 iterations" in told


def test_a_figure_and_its_file_say_which_networks_it_draws_at_which_scale(tmp_path):
    own, (kept,) = both(study=["ends"], bias=["ends"], mask=["causal", "none"], encoding=["none"])
    figure = figures.by_bias(own, [kept[kept["mask"] == "none"]], 0.95, {})
    assert names_in(figure, "short") == [
        "paper: gaussian/ends/none/none/depth2",
        "short: gaussian/ends/causal/none/depth2",
        "short: gaussian/ends/none/none/depth2",
    ]
    style.save(figure, tmp_path / "figure.png", run_scale="short")
    assert drawn_in(tmp_path / "figure.png") == {*names_in(figure, "short")}


def preferring(pairs, **levels):
    """A table of training in which each pair of positions has this gap in each network, the same for every seed."""
    tests = trained(4, **levels)
    for (a, b), gap in pairs.items():
        for (answer, twin), right in (((a, b), 0.5), ((b, a), 0.5 - gap)):
            tests.loc[(tests["answer"] == answer) & (tests["twin"] == twin), "value"] = right
    return tests


def test_a_title_says_where_depth_moves_the_bias():
    shallow = preferring({(1, 4): 0.1}, depth=[2])
    deeper = [
        preferring({(1, 4): gap}, depth=[4], encoding=[encoding])
        for encoding, gap in (("none", 0.05), ("rope", 0.1), ("decay", 0.3))
    ]
    title = figures.by_depth(pd.concat([shallow, *deeper]), [], [], 0.95, {}).get_label()
    assert title == (
        "From 2 to 4 layers the bias moves towards the first item in 1 of 3 networks (decay mask), "
        "towards the last in 1 (no encoding)"
    )
    assert figures.fig2(shallow, [], 0.95).get_label() == (
        "With 2 layers the bias is towards the first item in 3 of 3 networks, towards the last in 0"
    )


def test_a_title_says_under_how_many_masks_a_bias_is_learnt():
    of_ends = {"study": ["ends"], "bias": ["ends"], "residual": [True]}
    lost = preferring({(1, 2): 0.2, (2, 4): -0.2}, mask=["causal", "none"], encoding=["rope"], **of_ends)
    primacy = preferring({(1, 2): 0.2, (2, 4): 0.2}, mask=["causal", "none"], encoding=["none"], **of_ends)
    assert figures.by_bias(pd.concat([primacy, lost]), [], 0.95, {}).get_label() == (
        "Trained on queries for the first or last item, networks prefer what they were asked for "
        "under 0 of 2 masks (no encoding), 2 of 2 (RoPE)"
    )


def test_a_title_says_where_the_released_code_goes_the_same_way():
    def curves(depth, **gaps):
        trained = [preferring({(1, 4): gap}, depth=[depth], encoding=[name]) for name, gap in gaps.items()]
        return accuracy_gaps.curves(pd.concat(trained)).assign(scale="paper")

    printed = [curves(2, none=0.1, rope=0.1, decay=-0.3), curves(4, none=0.1, rope=0.1, decay=0.1)]
    title = figures.printed_and_released(printed, [curves(2, none=0.2, rope=-0.1, decay=-0.1)], 0.95).get_label()
    assert title == (
        "As printed and as in the released code, the bias of first vs. last goes the same way "
        "in 2 of 3 networks of 2 layers"
    )
    title = figures.printed_and_released(printed, [curves(6, none=0.2, rope=0.1, decay=0.1)], 0.95).get_label()
    assert "networks of" not in title


def test_a_title_says_which_biases_the_first_test_has():
    def tests(none, rope, decay, iteration):
        of_each = {"none": none, "rope": rope, "decay": decay}
        found = [preferring({(1, 4): gap}, encoding=[name]) for name, gap in of_each.items()]
        return pd.concat(found).assign(iteration=iteration)

    start, last = tests(0.3, 0.3, 0.3, 0), tests(0.1, -0.1, 0, 1000)
    title = figures.along_training(pd.concat([start, tests(0.2, 0.1, 0.1, 100), last]), 0.95).get_label()
    assert title == (
        "After 100 of 1,000 iterations, 1 of 2 networks already have the bias of first vs. last that they end with"
    )
    assert "already" not in figures.along_training(pd.concat([start, last]), 0.95).get_label()


def test_a_title_says_where_longer_training_changes_the_bias():
    def tests(iteration, **gaps):
        of_depths = [preferring({(1, 4): gap}, depth=[int(name[1:])], encoding=["none"]) for name, gap in gaps.items()]
        return pd.concat(of_depths).assign(iteration=iteration)

    kept = accuracy_gaps.curves(tests(4000, d2=0.1, d4=0.2, d6=0.1, d8=0.3))
    short = tests(2000, d2=0.2, d4=0.1, d6=0.1)
    title = figures.long_and_short_training(kept, kept, short, 0.95, last=1).get_label()
    assert title == (
        "From 2,000 to 4,000 iterations the bias towards the first item falls with 2 layers, rises with 4 layers "
        "and does not change separably with 6 layers"
    )
    same = figures.long_and_short_training(kept, kept, short.assign(iteration=4000), 0.95, last=1).get_label()
    assert "From" not in same


def test_a_title_names_the_most_frequent_sinks():
    given, _ = sinks(("window9", "window13"), (0.2,))
    values = {2: 0.9, 4: 0.9, 6: 0.5}  # y1 and y2 alike
    given["value"] = given["token"].map(values).fillna(0.1).where(given["state"] == "trained", 0.95)
    given.loc[(given["mask"] == "window13") & (given["token"] == 4), "value"] = 0.2
    given.loc[(given["token"] == 17) & (given["state"] == "trained"), "value"] = 0.99  # which the query alone reads
    title = figures_attention.sinks_of_networks(given, [], [], 0.95, 0.2, 2000).get_label()
    assert title == (
        "Besides the query, the most frequent attention sink after training is $y_1$ or $y_2$ (w = 9); $y_1$ (w = 13)"
    )


def test_no_bar_of_sinks_hides_another():
    figure, _ = sinks_of_networks(("window9", "window13"), longer=True)
    for axes in figure.axes:
        bars = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
        assert len(bars) == 2 * 17
        assert all(end <= start for (_, end), (start, _) in pairwise(bars))


def test_a_map_says_iterations_seed_and_sequences():
    figure, _ = maps()
    told = figure.legends[-1].get_title().get_text().replace("\n", " ")
    assert told.endswith("2,000 iterations; seed 3 alone; mean over n = 500 sequences")
