"""One profile over positions for each prediction and observation, by network and seed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from position_bias.attention import Array
from position_bias.emergence import folded, sequences, training
from position_bias.emergence import network as networks
from position_bias.emergence.studies import Network
from position_bias.emergence.task import Task, for_vocabulary
from position_bias.emergence.training import Member
from position_bias.retrieval import observations
from position_bias.retrieval.inside import measured
from position_bias.retrieval.predictions import predicted
from position_bias.running.artifacts import TensorFile
from position_bias.small_networks.ensemble import Parameters


def of_trainings(weights: list[TensorFile], task: Mapping[str, Any], drawn: int) -> pd.DataFrame:
    """The `table` of the networks of each training, and of which; tests have `drawn` sequences a position."""
    of_task, tables = for_vocabulary("gaussian", task), []
    for file in weights:
        labels = file.labels
        members = training.named(labels["members"])
        values = {name: torch.from_numpy(array) for name, array in file.read().items()}
        found = table(of_task, members, values, labels["depth"], labels["residual"], drawn)
        tables.append(found.assign(**{name: labels[name] for name in ("study", "residual", "depth")}))
    return pd.concat(tables, ignore_index=True)


def table(
    task: Task, members: Sequence[Member], weights: Parameters, depth: int, residual: bool, count: int
) -> pd.DataFrame:
    """Return the profiles of trained networks, of `weights` [members, ...]; tests have `count` sequences a position.

    Columns network, encoding, slope, seed, quantity, position (of the item, from 1), value. Quantities are the
    predictors of `agreement.PREDICTORS`, `share` and `bursty` (of labels named without a match, above the floor),
    `accuracy`, and `lambda` and `initial lambda`, whose positions are layers.
    """
    frames: list[pd.DataFrame] = []
    for network in dict.fromkeys(member.network for member in members):
        places = [place for place, member in enumerate(members) if member.network == network]
        own = {name: value[places] for name, value in weights.items()}
        seeds = [members[place].seed for place in places]
        labels = {"network": network.encoding_name, "encoding": network.encoding, "slope": network.slope}
        for seed, profiles in zip(seeds, _of_network(task, network, seeds, own, depth, residual, count), strict=True):
            for quantity, values in profiles.items():
                rows = {"quantity": quantity, "position": np.arange(1, len(values) + 1), "value": values}
                frames.append(pd.DataFrame({**labels, "seed": seed, **rows}))
    return pd.concat(frames, ignore_index=True)


@torch.no_grad()
def _of_network(
    task: Task, network: Network, seeds: Sequence[int], weights: Parameters, depth: int, residual: bool, count: int
) -> list[dict[str, Array]]:
    """The profiles of one network, of each of its seeds."""
    stack = networks.stack(task, [network] * len(seeds), depth, residual, "cpu")
    world = sequences.world(task, seeds, "cpu")
    # other sequences than those of the observations that are predicted
    parts = [test.unmatched() for test in observations.distinct(task, world, seeds, count, "inside")]
    untrained = networks.initial(task, depth, seeds, "cpu")
    initial, trained = (measured(parameters, stack, parts) for parameters in (untrained, weights))
    attention = torch.from_numpy(np.stack([network.attention for network in trained])).float()

    def answer(tokens: torch.Tensor) -> torch.Tensor:
        return folded.label_logits(weights, stack, tokens)

    frozen = observations.frozen(weights, stack, attention)
    sums = {name: np.zeros((len(seeds), task.items)) for name in ("share", "accuracy", "frozen", "bursty")}
    for test in observations.distinct(task, world, seeds, count, "tests"):
        size = test.strangers.shape[1]
        sums["share"] += size * observations.named(answer, test).numpy()
        sums["frozen"] += size * observations.named(frozen, test).numpy()
        sums["accuracy"] += size * observations.found(answer, test).numpy()
    for test in observations.bursty(task, world, seeds, count, "bursty"):
        sums["bursty"] += test.strangers.shape[1] * observations.named(answer, test).numpy()
    means = {name: value / (count * task.items) for name, value in sums.items()}
    means |= {name: observations.above_floor(means[name], task.labels) for name in ("share", "frozen")}
    means["bursty"] = observations.of_positions(means["bursty"], task)
    logits = networks.attention_logits(task, network)
    return [
        {
            **predicted(logits, residual, initial[index], trained[index]),
            **{name: value[index] for name, value in means.items()},
            "lambda": trained[index].mixing,
            "initial lambda": initial[index].mixing,
        }
        for index in range(len(seeds))
    ]
