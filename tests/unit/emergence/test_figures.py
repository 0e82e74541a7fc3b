"""What figures of emergence say besides their data: which tokens are centres, which network stands on which line."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

from position_bias.emergence import figures, figures_attention
from position_bias.emergence.figures_attention import ROUNDING_NOTE
from position_card.drawing import style
from position_card.drawing.shown import drawn_in, names_in
from position_card.rollout.attention import causal_mask, prefix_mask, sliding_window_mask
from tests.drawn import assert_saved
from tests.figures.emergence import both, sinks

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
    assert "not run: no five seeds for 100,000 iterations" in told


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
