"""The studies together: which networks a configuration trains, and what it may not hold."""

from collections import Counter
from copy import deepcopy
from itertools import product
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from position_bias.emergence import studies
from position_bias.emergence.network import mask
from position_bias.emergence.studies import Network
from position_bias.emergence.task import for_vocabulary

ROOT = Path(__file__).parents[2]
STUDIES = ("plain", "residual", "ends", "first", "middle", "last", "window", "prefix")
PAPER_NUMBERS = {  # Sections 5.1, 5.2, K.1-K.4, and the depths on the axes of Figures 4 and 5
    "plain": (["none", "decay", "rope"], [2, 4, 6]),
    "residual": (["none", "decay", "rope"], [2, 4, 6, 8, 10]),
    "ends": ([], [2]),
    "first": ([], [2]),
    "middle": ([], [2]),
    "last": ([], [2]),
    "window": ([5, 9, 13], [2]),
    "prefix": ([2, 4, 6], [2]),
}


def overlaid(*names):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    for name in names:
        update_config(config, yaml.safe_load((ROOT / f"config/{name}.yaml").read_text()))
    return config


def paper_configurations():
    """(study, mask, encoding, residual, bias, depth) of one vocabulary at the paper's scale."""
    for name, (variants, depths) in PAPER_NUMBERS.items():
        study = studies.study(name, variants)
        for network, depth in product(study.networks, depths):
            yield name, network.mask_name, network.encoding, study.residual, study.bias_name, depth


def test_the_paper_trains_54_networks_a_vocabulary_of_each_seed():
    configurations = list(paper_configurations())
    assert len(set(configurations)) == len(configurations) == 54
    counted = Counter(name for name, *_ in configurations)
    assert counted == {"plain": 9, "residual": 15, **dict.fromkeys(("ends", "first", "middle", "last"), 6)} | {
        "window": 3,
        "prefix": 3,
    }


def test_the_paper_configuration_asks_for_just_those():
    emergence = overlaid("paper")["emergence"]
    for vocabulary in ("gaussian", "fixed"):
        for study in ("plain", "residual"):
            assert emergence["depths"][vocabulary][study] == PAPER_NUMBERS[study][1]
    assert sorted(emergence["encodings"]) == sorted(PAPER_NUMBERS["plain"][0])
    assert (emergence["windows"], emergence["prefixes"]) == (PAPER_NUMBERS["window"][0], PAPER_NUMBERS["prefix"][0])


def test_only_data_without_bias_is_learned_without_residual_connections():
    """Section 5.1 drops them as a theoretical probe; 5.2 trains with them; K.4 is on what is free of bias."""
    wired = {(name, residual, bias) for name, *_, residual, bias, _ in paper_configurations()}
    assert wired == {
        ("plain", False, "none"),
        ("residual", True, "none"),
        ("ends", True, "ends"),
        ("first", True, "first"),
        ("middle", True, "middle"),
        ("last", True, "last"),
        ("window", False, "none"),
        ("prefix", False, "none"),
    }


def test_sinusoids_are_for_biased_data_and_the_decay_mask_for_unbiased():
    by_encoding = {}
    for name, _, encoding, *_ in paper_configurations():
        by_encoding.setdefault(encoding, set()).add(name)
    biased = {"ends", "first", "middle", "last"}
    assert by_encoding == {
        "none": set(STUDIES),
        "rope": {"plain", "residual"} | biased,
        "sin": biased,
        "decay": {"plain", "residual"},
    }


def test_windows_and_prefixes_have_no_encoding_and_the_names_of_their_reach():
    names = [mask_name for name, mask_name, *_ in paper_configurations() if name in ("window", "prefix")]
    assert names == ["window5", "window9", "window13", "prefix2", "prefix4", "prefix6"]


def test_a_reach_is_for_windows_and_prefixes_alone():
    assert studies.study("plain", [5, 9]).networks == ()
    assert studies.study("ends", [5]).networks == studies.study("ends").networks


@pytest.mark.parametrize("name", STUDIES)
def test_a_network_of_a_study_is_named_once_by_its_mask_and_encoding(name):
    networks = studies.study(name, PAPER_NUMBERS[name][0]).networks
    assert len({(network.mask_name, network.encoding) for network in networks}) == len(networks) > 0


def test_the_order_of_a_configuration_does_not_change_which_networks_there_are():
    one, other = (studies.study("plain", variants) for variants in (["rope", "none"], ["none", "rope"]))
    assert one == other


@pytest.mark.parametrize(("name", "placement"), [("pre-norm", "pre"), ("post-norm", "post")])
def test_studies_with_norms_are_of_a_causal_mask_alone_on_unbiased_data(name, placement):
    """They differ from a network of `residual`, the one without encoding, in where they normalise."""
    study = studies.study(name, ["none", "decay", "rope", 5])
    assert study.placement == placement
    assert (study.bias_name, study.residual) == ("none", True)
    assert study.networks == (Network("causal", "none"),)
    assert set(study.networks) < set(studies.study("residual", ["none", "rope"]).networks)


@pytest.mark.parametrize("name", STUDIES)
def test_studies_of_the_paper_do_without_norms(name):
    assert studies.study(name, PAPER_NUMBERS[name][0]).placement == "none"


@pytest.mark.parametrize("name", ["", "Plain", "fig3", "causal"])
def test_there_is_no_other_study(name):
    with pytest.raises(KeyError):
        studies.study(name, ["none"])


# Faults


@pytest.mark.parametrize("overlays", [(), ("paper",), ("test",), ("evidence",), ("paper", "evidence")], ids=str)
def test_what_is_shipped_has_no_faults(overlays):
    assert list(studies.faults(overlaid(*overlays))) == []


@pytest.mark.parametrize("kind", ["window", "prefix"])
@pytest.mark.parametrize("items", [4, 8])
def test_a_reach_is_a_fault_just_where_it_is_more_than_the_sequence(kind, items):
    config = overlaid()
    key = {"window": "windows", "prefix": "prefixes"}[kind]
    config["emergence"]["windows"] = config["emergence"]["prefixes"] = [1]
    config["emergence"]["task"] |= {"items": items, "burstiness": items // 2}
    tokens = 2 * items + 1
    config["emergence"][key] = [tokens]
    assert list(studies.faults(config)) == []
    mask(for_vocabulary("gaussian", config["emergence"]["task"]), Network(kind, "none", tokens))  # fits its task
    config["emergence"][key] = [1, tokens + 1, tokens + 2]
    assert list(studies.faults(config)) == [
        f"emergence.{key} = {reach} is more than a sequence's tokens; give at most {tokens}"
        for reach in (tokens + 1, tokens + 2)
    ]


def test_faults_are_all_named_in_the_order_of_the_configuration():
    config = overlaid()
    config["emergence"] |= {"windows": [18], "prefixes": [19], "encodings": ["decay"]}
    config["emergence"]["sinks"]["threshold"] = 0.4
    config["emergence"]["testing"] |= {"sequences_along": 7, "sequences": 1}
    assert [fault.split()[0] for fault in studies.faults(config)] == [
        "emergence.windows",
        "emergence.prefixes",
        "emergence.testing.sequences_along",
        "emergence.testing.sequences",
        "emergence.encodings",
        "emergence.sinks.threshold",
    ]


@pytest.mark.parametrize("key", ["sequences_along", "sequences"])
@pytest.mark.parametrize("items", [4, 8])
def test_fewer_test_sequences_than_items_are_a_fault_since_each_asks_for_one(key, items):
    config = overlaid()
    config["emergence"]["task"] |= {"items": items, "burstiness": items // 2}
    config["emergence"] |= {"windows": [1], "prefixes": [1]}
    config["emergence"]["testing"][key] = items
    assert list(studies.faults(config)) == []
    config["emergence"]["testing"][key] = items - 1
    assert list(studies.faults(config)) == [
        f"emergence.testing.{key} = {items - 1} leaves positions without a test; give {items} or more"
    ]


def test_a_task_that_does_not_fit_is_the_only_fault_since_the_others_depend_on_it():
    config = overlaid()
    config["emergence"]["task"]["burstiness"] = 5
    config["emergence"]["windows"] = [1000]
    (fault,) = studies.faults(config)
    assert fault.startswith("emergence.task.burstiness = 5 does not divide items = 8")


def test_faults_leave_the_configuration_as_it_is():
    config = overlaid("test")
    before = deepcopy(config)
    list(studies.faults(config))
    assert config == before
