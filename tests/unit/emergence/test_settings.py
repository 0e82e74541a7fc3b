"""What a configuration may not ask of `emergence`."""

from copy import deepcopy
from itertools import product
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from position_bias.emergence import settings
from position_bias.emergence.network import mask
from position_bias.emergence.studies import Network
from position_bias.emergence.task import for_vocabulary

ROOT = Path(__file__).parents[3]
ENCODINGS = ("none", "sin", "rope", "decay")
MASKS = {  # that a study compares
    **dict.fromkeys(("plain", "residual", "pre-norm", "post-norm"), ("causal",)),
    **dict.fromkeys(("ends", "first", "middle", "last"), ("none", "causal")),
    "window": ("window",),
    "prefix": ("prefix",),
}


def overlaid(*names):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    for name in names:
        update_config(config, yaml.safe_load((ROOT / f"config/{name}.yaml").read_text()))
    return config


def test_what_is_shipped_has_no_faults(shipped):
    assert list(settings.faults(shipped)) == []


@pytest.mark.parametrize("kind", ["window", "prefix"])
@pytest.mark.parametrize("items", [4, 8])
def test_a_reach_is_a_fault_just_where_it_is_more_than_the_sequence(kind, items):
    config = overlaid()
    config["emergence"]["networks"] |= {"window": ["window1/none"], "prefix": ["prefix1/none"]}
    config["emergence"]["task"] |= {"items": items, "burstiness": items // 2}
    tokens = 2 * items + 1
    config["emergence"]["networks"][kind] = [f"{kind}{tokens}/none"]
    assert list(settings.faults(config)) == []
    mask(for_vocabulary("gaussian", config["emergence"]["task"]), Network(kind, "none", tokens))  # fits its task
    beyond = [f"{kind}{tokens + 1}/none", f"{kind}{tokens + 2}/rope"]
    config["emergence"]["networks"][kind] = [f"{kind}1/none", *beyond]
    assert list(settings.faults(config)) == [
        f"emergence.networks.{kind} = {name} reaches over more than a sequence's tokens; give at most {tokens}"
        for name in beyond
    ]


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_a_fault_just_where_the_study_does_not_compare_it(name):
    """Every mask, with every encoding; one that reaches too far is named for its mask alone."""
    masks = {"none": "none", "causal": "causal", "window": "window17", "prefix": "prefix2"}
    config = overlaid()
    for (kind, written), encoding in product(masks.items(), ENCODINGS):
        one = f"{written}/{encoding}"
        config["emergence"]["networks"][name] = [one]
        expected = [
            f"emergence.networks.{name} = {one} has a mask that this study does not compare; "
            f"use {' or '.join(MASKS[name])}"
        ]
        assert list(settings.faults(config)) == ([] if kind in MASKS[name] else expected)
    if name not in ("window", "prefix"):
        config["emergence"]["networks"][name] = ["window18/none"]
        (fault,) = settings.faults(config)
        assert "does not compare" in fault


@pytest.mark.parametrize("name", MASKS)
def test_a_study_may_train_no_network_or_none_without_encoding(name):
    config = overlaid()
    config["emergence"]["networks"][name] = []
    assert list(settings.faults(config)) == []
    mask = {"window": "window5", "prefix": "prefix2"}.get(name, "causal")
    config["emergence"]["networks"][name] = [f"{mask}/rope", f"{mask}/decay"]
    assert list(settings.faults(config)) == []


def test_evidence_is_kept_of_studies_that_are_trained():
    config = overlaid()
    config["evidence"]["emergence"] = ["gaussian/plain/depth2", "fixed/post-norm/depth2", "isotropic/plain/depth2"]
    assert list(settings.faults(config)) == []
    config["emergence"]["networks"] |= {"plain": [], "pre-norm": []}
    config["evidence"]["emergence"] += ["gaussian/ends/depth2", "gaussian/fig3/depth2"]
    assert list(settings.faults(config)) == [
        f"evidence.emergence = {kept} is of no study that is trained; use one of residual, ends, first, middle, last, "
        "window, prefix, post-norm"
        for kept in ("gaussian/plain/depth2", "isotropic/plain/depth2", "gaussian/fig3/depth2")
    ]


def test_faults_are_all_named_in_the_order_of_the_configuration():
    config = overlaid()
    config["emergence"]["networks"] |= {
        "prefix": ["prefix19/none"],
        "window": ["window18/none", "causal/none"],
        "plain": ["window5/none"],
    }
    config["emergence"]["sinks"]["threshold"] = 0.4
    config["emergence"]["testing"] |= {"sequences_along": 7, "sequences": 1}
    config["evidence"]["emergence"] = ["gaussian/fig3/depth2"]
    assert [" ".join(fault.split()[:3]) for fault in settings.faults(config)] == [
        "emergence.networks.plain = window5/none",
        "emergence.networks.window = window18/none",
        "emergence.networks.window = causal/none",
        "emergence.networks.prefix = prefix19/none",
        "emergence.testing.sequences_along = 7",
        "emergence.testing.sequences = 1",
        "evidence.emergence = gaussian/fig3/depth2",
        "emergence.sinks.threshold = 0.4",
    ]


@pytest.mark.parametrize("key", ["sequences_along", "sequences"])
@pytest.mark.parametrize("items", [4, 8])
def test_fewer_test_sequences_than_items_are_a_fault_since_each_asks_for_one(key, items):
    config = overlaid()
    config["emergence"]["task"] |= {"items": items, "burstiness": items // 2}
    config["emergence"]["networks"] |= {"window": ["window1/none"], "prefix": ["prefix1/none"]}
    config["emergence"]["testing"][key] = items
    assert list(settings.faults(config)) == []
    config["emergence"]["testing"][key] = items - 1
    assert list(settings.faults(config)) == [
        f"emergence.testing.{key} = {items - 1} leaves positions without a test; give {items} or more"
    ]


def test_a_task_that_does_not_fit_is_the_only_fault_since_the_others_depend_on_it():
    config = overlaid()
    config["emergence"]["task"]["burstiness"] = 5
    config["emergence"]["networks"]["window"] = ["window1000/none"]
    (fault,) = settings.faults(config)
    assert fault.startswith("emergence.task.burstiness = 5 does not divide items = 8")


def test_faults_leave_the_configuration_as_it_is():
    config = overlaid("test")
    before = deepcopy(config)
    list(settings.faults(config))
    assert config == before
