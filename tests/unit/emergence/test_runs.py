"""The studies together: which networks a configuration trains; and which of them train in one run."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from position_bias.emergence import runs
from position_bias.emergence.runs import Network, Run
from tests.configurations import overlaid
from tests.refusals import refused

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
    study = runs.study(name, networks, DECAY)
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
    assert runs.network(named(network), network.slope or DECAY) == network


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
    assert runs.network(name, DECAY).slope == slope


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
        runs.network(name, DECAY)
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
    assert runs.rounding_decides(mask, tau) is expected


# Runs

EMERGENCE = yaml.safe_load((Path(__file__).parents[3] / "config.yaml").read_text())["emergence"]
OF_PLAIN, OF_PREFIX, OF_ENDS = ("gaussian", "plain"), ("fixed", "prefix"), ("gaussian", "ends")


@pytest.fixture
def emergence():
    return deepcopy(EMERGENCE)


def test_a_study_has_a_run_for_each_of_its_depths_and_a_shallow_one_without_any(emergence):
    assert runs.runs(emergence, OF_PREFIX, OF_PLAIN) == [
        Run(*OF_PREFIX, 2),
        *(Run(*OF_PLAIN, depth) for depth in (2, 4, 6)),
    ]
    assert str(Run(*OF_PLAIN, 4)) == "gaussian/plain/depth4"
    emergence["networks"]["plain"] = []
    assert runs.runs(emergence, OF_PLAIN) == []


def test_figures_of_a_mask_alone_show_the_shallow_run_of_a_study_that_trains_it(emergence):
    assert runs.with_mask_alone(emergence, OF_PLAIN) == [Run(*OF_PLAIN, 2)]
    emergence["depths"]["gaussian"]["plain"] = [4]
    assert runs.with_mask_alone(emergence, OF_PLAIN) == []
    emergence["networks"]["prefix"] = ["prefix2/rope"]
    assert runs.with_mask_alone(emergence, OF_PREFIX) == []


@pytest.mark.parametrize(
    ("study", "depth", "seeds", "iterations"),
    [("ends", 2, 6, 2500), ("plain", 2, 5, 2000), ("plain", 4, 3, 2000), ("last", 2, 5, 1000)],
)
def test_seeds_and_iterations_are_those_of_the_kind_of_study(emergence, study, depth, seeds, iterations):
    assert runs.seeds(emergence, study, depth) == list(range(seeds))
    emergence["seeds"]["first"] = 7
    assert runs.seeds(emergence, study, depth) == list(range(7, 7 + seeds))
    assert runs.training(emergence, study) == {**emergence["training"], "iterations": iterations}


HEADER = "vocabulary,study,depth,networks,coordinates"


def test_a_group_is_kept_of_the_studies_that_it_has_in_the_settings_that_are_asked_for(tmp_path):
    groups = {
        "ends": ["gaussian,ends,2,causal/rope,paper", "gaussian,plain,4,causal/none,paper", ""],
        "others": ["fixed,ends,2,causal/rope,paper"],
        "released": ["gaussian,plain,2,causal/none,released"],
    }
    for name, rows in groups.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "runs.csv").write_text("\n".join([HEADER, *rows]))
    tables = [str(tmp_path / name / "runs.csv") for name in groups]
    of_plain, of_ends = ("gaussian", "plain"), ("gaussian", "ends")
    assert runs.kept_groups(tables, of_plain) == runs.kept_groups(tables, of_ends) == [str(tmp_path / "ends")]
    assert runs.kept_groups(tables, of_plain, settings="released") == [str(tmp_path / "released")]
    assert runs.kept_groups(tables, ("fixed", "plain")) == []


TABLE = f"{HEADER}\ngaussian,ends,2,causal/none,paper\n"


@pytest.mark.parametrize(
    "written",
    [
        b"",
        bytes(80),
        TABLE.replace("study", "studies").encode(),
        TABLE.replace("2", "two").encode(),
        TABLE.replace("2", "\0").encode(),
        TABLE.replace(",causal/none,paper", "").encode(),
        TABLE.encode() + b"\xff",
        TABLE.encode() + b'"' + 200_000 * b"x",
        None,
    ],
)
def test_what_is_no_table_of_runs_ends_in_one_line_that_names_it(tmp_path, written):
    path = tmp_path / "runs.csv"
    path.mkdir() if written is None else path.write_bytes(written)
    with refused(path):
        runs.kept_groups([str(path)], ("gaussian", "ends"))
