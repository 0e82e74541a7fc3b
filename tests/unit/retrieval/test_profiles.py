"""Profiles of networks that are trained as `emergence` trains them."""

import numpy as np

from position_bias.emergence import network as networks
from position_bias.emergence import sequences, studies, training
from position_bias.emergence.task import Task
from position_bias.retrieval import inside, observations, profiles
from position_bias.retrieval.agreement import OBSERVED, PREDICTORS
from position_bias.running.checkpoint import Place
from position_bias.small_networks.ensemble import Recipe

TASK = Task(items=4, burstiness=2, classes=32, labels=8, width=16)
SETTING = training.Setting(Recipe(6, 1e-2, 0.0), batch=4, sequences=4, sequences_along=4, observe_every=6)


def test_profiles_of_every_network_and_seed_are_complete_and_do_not_depend_on_the_others(tmp_path):
    names = ["causal/none", "causal/decay-0.4", "causal/decay-0.1", "causal/rope", "causal/sin"]
    study = studies.study("plain", names, 0)
    outcome = training.train(TASK, study, 2, [0, 1], SETTING, Place(tmp_path, 100, "cpu"))
    members, weights = outcome.members, outcome.weights
    table = profiles.table(TASK, members, weights, 2, False, 5)
    by_position = {*PREDICTORS, OBSERVED, "accuracy", "bursty"}
    counts = table.groupby(["network", "seed", "quantity"]).size().unstack()
    assert len(counts) == 10
    assert counts[sorted(by_position)].eq(4).all(axis=None)
    assert counts[["lambda", "initial lambda"]].eq(2).all(axis=None)
    assert set(table["quantity"]) == by_position | {"lambda", "initial lambda"}
    assert table["value"].notna().all()
    for name, slope in (("decay-0.4", 0.4), ("decay-0.1", 0.1), ("none", 0.0)):
        one = table[(table["network"] == name) & (table["seed"] == 0)]
        profile = {quantity: rows.sort_values("position")["value"] for quantity, rows in one.groupby("quantity")}
        expected = np.exp(slope * np.arange(1, 9, 2))  # at distances 7, 5, 3 and 1 from the query
        np.testing.assert_allclose(profile["single"], expected / expected.sum(), atol=1e-12)
        own = [
            place for place, member in enumerate(members) if member.network.encoding_name == name and member.seed == 0
        ]
        stack = networks.stack(TASK, [members[own[0]].network], 2, False, "cpu")
        world = sequences.world(TASK, [0], "cpu")
        parts = [part.unmatched() for part in observations.distinct(TASK, world, [0], 5, "inside")]
        (found,) = inside.measured({key: value[own] for key, value in weights.items()}, stack, parts)
        row = (found.attention[1] @ found.attention[0])[-1, 1::2]
        np.testing.assert_allclose(profile["measured"], row / row.sum(), atol=1e-6)
    last = [place for place, member in enumerate(members) if member.network.encoding == "sin" and member.seed == 1]
    alone = profiles.table(
        TASK, [members[last[0]]], {name: value[last] for name, value in weights.items()}, 2, False, 5
    )
    together = table[(table["network"] == "sin") & (table["seed"] == 1)]
    pairs = alone.merge(together, on=["network", "encoding", "slope", "seed", "quantity", "position"])
    assert len(pairs) == len(alone) == len(together)
    assert (pairs["value_x"] - pairs["value_y"]).abs().max() < 0.05 + 1e-6  # one answer in twenty may tip
