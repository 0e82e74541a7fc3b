import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import FancyArrowPatch

from position_bias.attention import causal_mask, prefix_mask, sliding_window_mask
from position_bias.emergence import figures_attention, theory
from position_bias.running import artifacts
from position_bias.running.artifacts import TensorFile
from position_bias.statistics import mean_and_interval
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved

pytestmark = pytest.mark.usefixtures("styled")

N, TAUS = 17, (0.15, 0.2, 0.25, 0.3)
WINDOWS = ("window5", "window9", "window13")


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


def test_maps_of_the_network_without_encoding_have_a_row_a_kind_and_a_column_a_layer(tmp_path):
    members, layers = [{"encoding": "rope"}, {"encoding": "none"}], 2
    weights = np.random.default_rng(0).uniform(size=(2, len(members), layers, N, N)) * causal_mask(N)
    weights /= weights.sum(-1, keepdims=True)
    labels = {"vocabulary": "fixed", "residual": False, "members": members}
    artifacts.write_tensors(tmp_path / "maps.safetensors", {"mean": weights[0], "example": weights[1]}, **labels)
    figure, kinds = figures_attention.maps(TensorFile(str(tmp_path / "maps.safetensors"))), weights[:, 1]
    panels = np.reshape([axes for axes in figure.axes if axes.images], (2, layers))
    for axes, weights in zip(panels.flat, itertools.chain(*kinds), strict=True):
        shown = axes.images[0].get_array()
        np.testing.assert_array_equal(np.ma.getmaskarray(shown), ~causal_mask(N))
        for query in range(N):  # twice the weight of uniform attention is 1
            expected = np.log2(weights[query, : query + 1] * (query + 1))
            np.testing.assert_allclose(shown[query, : query + 1], np.maximum(expected, -6))
    assert len({axes.images[0].get_clim() for axes in panels.flat}) == 1
    assert sum(panels[0, 0].images[0].get_clim()) == 0
    assert_legible(figure)


def table(masks, taus=TAUS, seeds=3):
    """Tables of sinks by seed, each mask with higher values than the one before.

    Those of another encoding and of fresh directions are not shown.
    """
    states = {"trained": range(seeds), "untrained": range(seeds), "uniform": [0]}
    keys = [(*of, seed) for of in itertools.product(masks, states, taus, range(1, N + 1)) for seed in states[of[1]]]
    shown = pd.DataFrame(keys, columns=["mask", "state", "tau", "token", "seed"])
    shown = shown.assign(
        value=np.random.default_rng(1).uniform(0.1, 0.9, len(shown)) * (1 + shown["mask"].map(masks.index)) / 3,
        encoding="none",
        omega="training",
    )
    others = [shown.assign(**{name: other, "value": 7.0}) for name, other in (("encoding", "rope"), ("omega", "fresh"))]
    return pd.concat([shown, *others]).assign(vocabulary="fixed", study="plain", bias="none", residual=False, depth=2)


@pytest.mark.parametrize(("masks", "taus", "seeds"), [(("causal",), (0.2,), 1), (WINDOWS, TAUS, 3)])
def test_sinks_have_a_column_a_mask_and_a_row_a_threshold_the_main_one_first(masks, taus, seeds):
    sinks = table(masks, taus, seeds)
    figure = figures_attention.sinks_of_networks(sinks, 0.95, 0.2)
    sinks = sinks[(sinks["encoding"] == "none") & (sinks["omega"] == "training")]
    order = [0.2, *(tau for tau in taus if tau != 0.2)]
    for axes, (tau, mask) in zip(figure.axes, itertools.product(order, masks), strict=True):
        shown = sinks[(sinks["mask"] == mask) & (sinks["tau"] == tau)]
        means = shown.groupby(["state", "token"])["value"].mean()
        intervals = [
            mean_and_interval(values, 0.95)[1:]
            for _, values in shown[shown["state"] == "trained"].groupby("token")["value"]
        ]
        assert_drawn(axes, means, np.ravel(intervals))
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(list(means["trained"]))
        assert axes.get_ylim()[1] >= means["trained"].max()
        for line, state in zip(axes.lines, ("untrained", "uniform"), strict=True):
            np.testing.assert_array_equal(line.get_xdata(), np.arange(1, N + 1))
            np.testing.assert_allclose(line.get_ydata(), means[state])
    assert_legible(figure)


def test_a_panel_that_rounding_decides_says_so_and_is_pale():
    figure = figures_attention.sinks_of_networks(table(("window5", "window9"), (0.2, 0.3)), 0.95, 0.2)
    panels = np.reshape(figure.axes, (2, 2))
    told = [[figures_attention.ROUNDED in [text.get_text() for text in axes.texts] for axes in row] for row in panels]
    assert told == [[True, False], [False, False]]
    assert panels[0, 0].patches[0].get_alpha() < panels[0, 1].patches[0].get_alpha()


# Theorems


def tables(tokens, layers, draws, far):
    """Convergence, profiles of either encoding, and peaks."""
    convergence = theory.convergence(tokens, layers, draws, 0)
    return convergence, theory.decay_profiles(far), theory.rope_profiles(far), theory.decay_peaks(far)


def test_the_theorems_are_drawn_as_their_tables_have_them(tmp_path):
    convergence, decay, rope, peaks = given = tables(16, 80, 3, 300)
    figure = figures_attention.theorems(*given)
    masks, *profiles, dots = figure.axes
    shown = convergence[convergence["mask"].isin(figures_attention.SHOWN)]
    shown = shown[shown["layers"] <= figures_attention.LAYERS_SHOWN]
    assert_drawn(masks, shown[["value", "bound", "low", "high"]])
    for axes, table, critical in zip(profiles, (decay, rope), (["critical"], ["critical", "printed"]), strict=True):
        near = table[table["distance"] <= 2 * table["peak"].max()]
        assert_drawn(axes, near["value"])  # on which the critical points stand
        ends = near.groupby("depth")[critical].first()
        places = ends[ends.round().le(near["distance"].max())]
        assert_drawn(axes, near["distance"], places, along=0)
    assert_drawn(dots, peaks[["critical", "peak"]])
    assert_saved(figure, tmp_path)
