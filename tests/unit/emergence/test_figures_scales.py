"""Networks that are drawn at both scales: which they are, and that every number stands where it belongs."""

import itertools

import numpy as np
import pandas as pd
import pytest

from position_bias.emergence import figures_scales
from position_bias.emergence.figures_attention import ROUNDED
from position_bias.emergence.figures_scales import NETWORK
from position_bias.statistics import mean_and_interval
from tests.unit.drawing_checks import assert_drawn, assert_legible

pytestmark = pytest.mark.usefixtures("styled")

PAIRS = ("first-middle", "first-last", "middle-last")
NETWORKS = (
    ("gaussian", "plain", "none", "causal", "none", False, 2),
    ("gaussian", "plain", "none", "causal", "rope", False, 4),
    ("fixed", "last", "last", "causal", "none", True, 2),
    ("gaussian", "window", "none", "window5", "none", False, 2),
    ("fixed", "plain", "none", "causal", "decay", False, 2),
    ("fixed", "plain", "none", "causal", "rope", False, 2),
)
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


def table(seeds, networks=NETWORKS, **columns):
    rows = [
        (*network, seed, *levels)
        for network, seed, levels in itertools.product(networks, range(seeds), itertools.product(*columns.values()))
    ]
    return pd.DataFrame(rows, columns=[*NETWORK, "seed", *columns])


def gaps(seeds, networks=NETWORKS):
    found = table(seeds, networks, pair=PAIRS)
    return found.assign(gap=np.random.default_rng(seeds).uniform(-0.3, 0.3, len(found)))


def sinks(seeds):
    found = table(seeds, NETWORKS, state=("trained", "untrained", "uniform"), token=range(1, 18))
    return found.assign(tau=0.2, value=np.random.default_rng(seeds).uniform(0, 1, len(found)))


def test_networks_that_only_one_scale_has_are_left_out():
    both = figures_scales.at_both(gaps(3, NETWORKS[:3]), gaps(5, NETWORKS[1:]))
    assert set(both[NETWORK].itertuples(index=False, name=None)) == set(NETWORKS[1:3])
    assert both.groupby("scale")["seed"].nunique().to_dict() == {"short": 3, "long": 5}


def test_gaps_have_a_line_a_network_with_means_intervals_and_seeds():
    both = figures_scales.at_both(gaps(3), gaps(5))
    figure = figures_scales.gaps(both, 0.95)
    assert_legible(figure)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [text for text, _ in LINES]
    for axes, pair in zip(figure.axes, PAIRS, strict=True):
        of_pair = both[both["pair"] == pair]
        by_network = of_pair.groupby(["scale", *NETWORK])["gap"]
        assert_drawn(axes, of_pair["gap"], *(mean_and_interval(values, 0.95) for _, values in by_network), along=0)
        for means, scale in zip(axes.lines[1:4:2], ("short", "long"), strict=True):
            shown = dict(zip(np.round(means.get_ydata()), means.get_xdata(), strict=True))
            assert shown == pytest.approx(
                {
                    line: by_network.mean()[scale, *NETWORKS[index]]
                    for line, (_, index) in enumerate(LINES)
                    if index is not None
                }
            )


def test_sinks_have_a_panel_a_network_with_both_scales_and_the_null():
    both = figures_scales.at_both(sinks(3), sinks(5))
    figure = figures_scales.sinks_at_both(both, 0.95)
    assert_legible(figure)
    for axes, network in zip(figure.axes, NETWORKS, strict=True):
        mine = both[(both[NETWORK] == list(network)).all(axis=1)]
        trained = mine[mine["state"] == "trained"].groupby(["scale", "token"])["value"]
        uniform = mine[mine["state"] == "uniform"].groupby("token")["value"].mean()
        for line, expected in zip(
            axes.lines, (*(trained.mean()[name] for name in ("short", "long")), uniform), strict=True
        ):
            np.testing.assert_allclose(line.get_ydata(), expected)
        assert axes.get_ylim()[1] >= max(line.get_ydata().max() for line in axes.lines)
        assert [text.get_text() for text in axes.texts] == (
            [ROUNDED.replace("\n", " ")] if "window5" in network else []
        )
