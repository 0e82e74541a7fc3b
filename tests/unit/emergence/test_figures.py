"""What figures of emergence say besides their data: which tokens are centres, which network stands on which line."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

from position_bias.emergence import figures_attention, figures_scales, gaps
from position_bias.emergence.figures_attention import ROUNDED
from position_bias.emergence.figures_scales import NETWORK
from position_card.rollout.attention import causal_mask, prefix_mask, sliding_window_mask
from tests.drawn import assert_saved
from tests.figures.emergence import NAMES, NETWORKS, at_both, of, sinks, table

pytestmark = pytest.mark.usefixtures("styled")

LINES = (  # of the figure of gaps, and the networks on them
    ("without residual connections", None),
    ("causal mask, 2 layers", 0),
    ("causal mask, RoPE, 4 layers", 1),
    ("sliding window, $w = 5$, 2 layers", 3),
    ("causal mask, decay mask, 2 layers, fixed vocabulary", 4),
    ("causal mask, RoPE, 2 layers, fixed vocabulary", 5),
    ("trained on the last item", None),
    ("causal mask, 2 layers, fixed vocabulary", 2),
)


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
    panels = np.reshape(figures_attention.sinks_of_networks(given, 0.95, 0.2).axes, (2, 2))
    told = [[ROUNDED in [text.get_text() for text in axes.texts] for axes in row] for row in panels]
    assert told == [[True, False], [False, False]]
    assert panels[0, 0].patches[0].get_alpha() < panels[0, 1].patches[0].get_alpha()
    both = at_both("value", state=("trained", "uniform"), token=range(1, 18)).assign(tau=0.2)
    said = [[text.get_text() for text in axes.texts] for axes in figures_scales.sinks_at_both(both, 0.95).axes]
    assert said == [[ROUNDED.replace("\n", " ")] if "window5" in network else [] for network in NETWORKS]


def test_networks_that_only_one_scale_has_are_left_out():
    short, long = (table("gap", network=networks, seed=(0, 1)) for networks in (NETWORKS[:3], NETWORKS[1:]))
    for found in (short, long):
        found[NETWORK] = found.pop("network").tolist()
    both = figures_scales.at_both(short, long)
    assert set(both[NETWORK].itertuples(index=False, name=None)) == set(NETWORKS[1:3])
    assert set(both["scale"]) == {"short", "long"}


def test_each_network_has_its_line_of_gaps_at_both_scales():
    both = at_both("gap", pair=NAMES)
    figure = figures_scales.gaps(both, 0.95)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [text for text, _ in LINES]
    for axes, pair in zip(figure.axes, NAMES, strict=True):
        for line, scale in zip(axes.lines[1:4:2], ("short", "long"), strict=True):
            means = gaps.summary(of(both, pair=pair, scale=scale), NETWORK, "gap", 0.95).set_index(NETWORK)["gap"]
            on_lines = {place: means[NETWORKS[index]] for place, (_, index) in enumerate(LINES) if index is not None}
            assert dict(zip(np.round(line.get_ydata()), line.get_xdata(), strict=True)) == pytest.approx(on_lines)
