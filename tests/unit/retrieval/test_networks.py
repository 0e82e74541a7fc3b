"""Names of networks, and training through that of `emergence`."""

import numpy as np
import pytest
import torch

from position_bias.emergence import network as networks_of_emergence
from position_bias.emergence import sequences, studies, training
from position_bias.emergence.task import Task
from position_bias.retrieval import inside, networks, observations, profiles
from position_bias.retrieval.agreement import OBSERVED, PREDICTORS
from position_bias.running.checkpoint import Place
from position_bias.small_networks.ensemble import Recipe

TASK = Task(items=4, burstiness=2, classes=32, labels=8, width=16)
SETTING = training.Setting(Recipe(6, 1e-2, 0.0), 4, 0.0, 4, 4, 6)


def place(folder):
    return Place(folder, 100, "cpu")


@pytest.mark.parametrize(
    ("name", "encoding", "slope"),
    [
        ("none", "none", 0),
        ("sin", "sin", 0),
        ("rope", "rope", 0),
        ("decay-0.05", "decay", 0.05),
        ("decay-2", "decay", 2),
    ],
)
def test_a_name_says_the_encoding_and_the_slope(name, encoding, slope):
    assert networks.named(name) == networks.Named(name, encoding, slope)
    assert networks.named(name).network == studies.Network("causal", encoding)


@pytest.mark.parametrize("name", ["decay", "decay-", "decay--1", "none-0.1", "alibi", "decay-0.1 ", "decay-inf"])
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match="is not a network; write none, sin, rope or decay-SLOPE"):
        networks.named(name)


def test_every_network_trains_with_its_slope_as_emergence_trains_it(tmp_path):
    of = ["decay-0.4", "none", "rope", "decay-0.1"]
    members, weights = networks.train(TASK, "residual", of, 2, [0, 1], SETTING, place(tmp_path))
    assert {(member.named.name, member.seed) for member in members} == {(name, seed) for name in of for seed in (0, 1)}
    assert networks.of_labels([member.labels() for member in members]) == members
    for slope in (0.1, 0.4):
        alone = training.train(
            TASK,
            studies.study("residual", ["causal/decay"]),
            2,
            [0, 1],
            training.Setting(Recipe(6, 1e-2, 0.0), 4, slope, 4, 4, 6),
            place(tmp_path / f"alone{slope}"),
        )
        rows = [place for place, member in enumerate(members) if member.named.slope == slope]
        for name, value in alone.weights.items():
            torch.testing.assert_close(weights[name][rows], value, rtol=0, atol=0)
    one, other = (
        next(place for place, member in enumerate(members) if member.named.name == name)
        for name in ("decay-0.1", "none")
    )
    assert not torch.equal(weights["v0"][one], weights["v0"][other])


def test_profiles_of_every_network_and_seed_are_complete_and_do_not_depend_on_the_others(tmp_path):
    of = ["none", "decay-0.4", "rope", "sin"]
    members, weights = networks.train(TASK, "plain", of, 2, [0, 1], SETTING, place(tmp_path))
    table = profiles.table(TASK, members, weights, 2, False, 5)
    by_position = {*PREDICTORS, OBSERVED, "accuracy", "bursty"}
    counts = table.groupby(["network", "seed", "quantity"]).size().unstack()
    assert len(counts) == 8
    assert counts[sorted(by_position)].eq(4).all(axis=None)
    assert counts[["lambda", "initial lambda"]].eq(2).all(axis=None)
    assert set(table["quantity"]) == by_position | {"lambda", "initial lambda"}
    assert table["value"].notna().all()
    for name, slope in (("decay-0.4", 0.4), ("none", 0.0)):
        one = table[(table["network"] == name) & (table["seed"] == 0)]
        profile = {quantity: rows.sort_values("position")["value"] for quantity, rows in one.groupby("quantity")}
        expected = np.exp(slope * np.arange(1, 9, 2))  # at distances 7, 5, 3 and 1 from the query
        np.testing.assert_allclose(profile["single"], expected / expected.sum(), atol=1e-12)
        own = [place for place, member in enumerate(members) if member.named.name == name and member.seed == 0]
        stack = networks_of_emergence.stack(TASK, [members[own[0]].named.network], 2, False, slope, "cpu")
        world = sequences.world(TASK, [0], "cpu")
        parts = [part.unmatched() for part in observations.distinct(TASK, world, [0], 5, "inside")]
        (found,) = inside.measured({key: value[own] for key, value in weights.items()}, stack, parts)
        row = (found.attention[1] @ found.attention[0])[-1, 1::2]
        np.testing.assert_allclose(profile["measured"], row / row.sum(), atol=1e-6)
    last = [place for place, member in enumerate(members) if member.named.name == "sin" and member.seed == 1]
    alone = profiles.table(
        TASK, [members[last[0]]], {name: value[last] for name, value in weights.items()}, 2, False, 5
    )
    together = table[(table["network"] == "sin") & (table["seed"] == 1)]
    pairs = alone.merge(together, on=["network", "encoding", "slope", "seed", "quantity", "position"])
    assert len(pairs) == len(alone) == len(together)
    assert (pairs["value_x"] - pairs["value_y"]).abs().max() < 0.05 + 1e-6  # one answer in twenty may tip
