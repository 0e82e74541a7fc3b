"""What a configuration may not ask of `emergence`; all its faults are listed in running/test_configuration.py."""

from itertools import product

import pytest

from position_bias.emergence import settings
from position_bias.emergence.network import mask
from position_bias.emergence.studies import Network
from position_bias.emergence.task import for_vocabulary
from tests.unit.conftest import overlaid

MASKS = {  # that a study compares
    **dict.fromkeys(("plain", "residual", "pre-norm", "post-norm"), ("causal",)),
    **dict.fromkeys(("ends", "first", "middle", "last"), ("none", "causal")),
    "window": ("window",),
    "prefix": ("prefix",),
}


@pytest.mark.parametrize("kind", ["window", "prefix"])
@pytest.mark.parametrize("items", [4, 8])
def test_reaches_and_numbers_of_tests_are_faults_just_beyond_what_the_task_gives(kind, items):
    config = overlaid([])
    networks, testing = (config["emergence"][part] for part in ("networks", "testing"))
    networks |= {"window": ["window1/none"], "prefix": ["prefix1/none"]}
    config["emergence"]["task"] |= {"items": items, "burstiness": items // 2}
    tokens = 2 * items + 1
    networks[kind] = [f"{kind}{tokens}/none"]
    testing |= {"sequences_along": items, "sequences": items}
    assert list(settings.faults(config)) == []
    mask(for_vocabulary("gaussian", config["emergence"]["task"]), Network(kind, "none", tokens))  # fits its task
    beyond = [f"{kind}{tokens + 1}/none", f"{kind}{tokens + 2}/rope"]
    networks[kind] = [f"{kind}1/none", *beyond]
    testing |= {"sequences_along": items - 1, "sequences": items - 1}
    assert list(settings.faults(config)) == [
        *(
            f"emergence.networks.{kind} = {name} reaches over more than a sequence's tokens; give at most {tokens}"
            for name in beyond
        ),
        *(
            f"emergence.testing.{key} = {items - 1} leaves positions without a test; give {items} or more"
            for key in ("sequences_along", "sequences")
        ),
    ]


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_a_fault_just_where_the_study_does_not_compare_it(name):
    """Every mask, with every encoding; a study may also train no network."""
    masks = {"none": "none", "causal": "causal", "window": "window17", "prefix": "prefix2"}
    config = overlaid([])
    for (kind, written), encoding in product(masks.items(), ("none", "sin", "rope", "decay")):
        one = f"{written}/{encoding}"
        config["emergence"]["networks"][name] = [one]
        said = f"has a mask that this study does not compare; use {' or '.join(MASKS[name])}"
        expected = [] if kind in MASKS[name] else [f"emergence.networks.{name} = {one} {said}"]
        assert list(settings.faults(config)) == expected
    config["emergence"]["networks"][name] = []
    assert list(settings.faults(config)) == []
