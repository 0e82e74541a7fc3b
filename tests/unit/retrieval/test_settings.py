"""What a configuration may not ask of `retrieval`."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from position_bias.retrieval import settings

DEFAULT = yaml.safe_load((Path(__file__).parents[3] / "config.yaml").read_text())
KEY = "retrieval.networks.plain/depth2"


def test_what_is_shipped_has_no_faults(shipped):
    assert list(settings.faults(shipped)) == []


@pytest.mark.parametrize("name", ["labels", "classes"])
def test_items_need_labels_and_classes_of_their_own(name):
    config = deepcopy(DEFAULT)
    config["emergence"]["task"][name] = 8
    assert list(settings.faults(config)) == []
    config["emergence"]["task"][name] = 7
    line = f"emergence.task.{name} = 7 leaves items of the tests of retrieval without their own; give at least 8"
    assert list(settings.faults(config)) == [line]


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["decay-0.1", "decay-0.10"], f"{KEY} has the slope 0.1 twice; name each once"),
        (["none", "decay-0"], f"{KEY} has a slope of 0, which is the causal mask alone; write none in its place"),
    ],
)
def test_no_network_is_trained_twice(names, line):
    config = deepcopy(DEFAULT)
    config["retrieval"]["networks"]["plain/depth2"] = names
    assert list(settings.faults(config)) == [line]


def test_what_is_kept_is_trained():
    config = deepcopy(DEFAULT)
    config["evidence"]["retrieval"] = ["plain/depth2", "last/depth3"]
    (line,) = settings.faults(config)
    assert line.startswith("evidence.retrieval = last/depth3 is not trained; use some of plain/depth2, ")
