"""The studies together: which networks a configuration trains."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from position_bias.emergence import studies
from position_bias.emergence.studies import Network
from tests.unit.conftest import overlaid

ROOT = Path(__file__).parents[3]
DECAY = 0.3  # slope of a decay mask
BIASED = ["none/none", "none/sin", "none/rope", "causal/none", "causal/sin", "causal/rope"]
PLAIN, ALONE = ["causal/none", "causal/decay", "causal/rope"], ["causal/none"]
WINDOWS, PREFIXES = ([f"{mask}/none" for mask in masks] for masks in (
    ("window5", "window9", "window13"), ("prefix2", "prefix4", "prefix6")
))  # fmt: skip
EITHER = ("none", "causal")
PAPER = {  # Sections 5.1, 5.2, K.1-K.4, the depths on the axes of Figures 4 and 5, and our studies:
    # networks, depths, where training data has the answer, residual connections, norms, masks that are compared
    "plain": (PLAIN, [2, 4, 6], (), False, "none", ("causal",)),
    "residual": (PLAIN, [2, 4, 6, 8, 10], (), True, "none", ("causal",)),
    "ends": (BIASED, [2], ("first", "last"), True, "none", EITHER),
    **{name: (BIASED, [2], (name,), True, "none", EITHER) for name in ("first", "middle", "last")},
    "window": (WINDOWS, [2], (), False, "none", ("window",)),
    "prefix": (PREFIXES, [2], (), False, "none", ("prefix",)),
    "residual-window": (WINDOWS, [2], (), True, "none", ("window",)),
    "residual-prefix": (PREFIXES, [2], (), True, "none", ("prefix",)),
    "pre-norm": (ALONE, [2], (), True, "pre", ("causal",)),
    "post-norm": (ALONE, [2], (), True, "post", ("causal",)),
}


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("overlays", [(), ("paper",), ("test",)], ids=str)
def test_every_scale_trains_the_networks_of_the_paper_on_its_data(name, overlays):
    """Section 5.1 drops residual connections as a theoretical probe; 5.2 trains with them; K.4 is without bias."""
    emergence = overlaid([*overlays])["emergence"]
    networks, depths, *wired = PAPER[name]
    assert sorted(emergence["networks"][name]) == sorted(networks)
    study = studies.study(name, networks, DECAY)
    assert [study.bias, study.residual, study.placement, study.masks] == wired
    assert [named(network) for network in study.networks] == list(networks)
    for vocabulary in ("gaussian", "fixed") if overlays == ("paper",) else ():
        assert emergence["depths"][vocabulary].get(name, [2]) == depths


# Names of networks

NETWORKS = st.one_of(
    st.builds(Network, st.sampled_from(["none", "causal"]), st.sampled_from(["none", "sin", "rope"])),
    st.builds(Network, st.sampled_from(["window", "prefix"]), st.just("rope"), st.integers(min_value=1)),
    st.builds(Network, st.just("causal"), st.just("decay"), st.just(0), st.integers(1, 9999).map(lambda x: x / 1000)),
)


def named(network):
    return f"{network.mask_name}/{network.encoding}"


@given(NETWORKS)
def test_every_network_is_found_again_by_its_name_and_the_slope_of_decay_masks(network):
    assert studies.network(named(network), network.slope or DECAY) == network


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("causal/decay", DECAY),
        ("window5/decay", DECAY),
        ("prefix2/decay", DECAY),
        ("causal/none", 0),
        ("causal/rope", 0),
    ],
)
def test_decay_masks_alone_have_a_slope(name, slope):
    assert studies.network(name, DECAY).slope == slope


NO_NAMES = [  # a reach is for windows and prefixes, which need one; no name has a slope
    "", "/", "causal", "causal/", "/none", "rope", "causal/alibi", "diagonal/none", "Causal/none", "causal / none",
    " causal/none", "causal/none\n", "causal/none/none", "causal-none", "causal5/none", "causal0/none", "none3/rope",
    "window/none", "prefix/none", "window0/none", "window05/none", "prefix-2/none", "window2.0/none", "5window/none",
    "window5", "window5,prefix2/none", "causal/none-0.1", "causal/rope-1", "causal/decay-", "causal/decay--1",
    "causal/decay-0.1", "causal/decay-0", "decay-0.1", "causal/decay ",
]  # fmt: skip


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_of_a_network_is_refused_in_one_line(name):
    with pytest.raises(ValueError, match="is not a network") as error:
        studies.network(name, DECAY)
    assert str(error.value) == f"{name!r} is not a network; write MASK/ENCODING, as in causal/rope or window5/none"


@pytest.mark.parametrize(
    ("mask", "tau", "expected"),
    [
        ("window5", 0.2, True),
        ("window5", 0.4, False),
        ("window9", 0.2, False),
        ("window10", 0.1, True),
        ("causal", 0.2, False),
        ("prefix5", 0.2, False),
        ("none", 1.0, False),
    ],
)
def test_rounding_decides_where_a_full_window_has_the_weight_of_the_threshold(mask, tau, expected):
    assert studies.rounding_decides(mask, tau) is expected
