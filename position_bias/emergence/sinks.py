"""This module counts attention sinks (App. K.4): tokens with more than a threshold of a later one's attention."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import torch

from position_bias.emergence import networks, sequences
from position_bias.emergence.accuracy_gaps import LATER
from position_bias.emergence.task import Omega, RetrievalTask
from position_bias.emergence.training import Member
from position_bias.small_networks.ensemble import Parameters
from position_card.rollout import attention
from position_card.rollout.attention import Array

LEAST_TOKENS = (
    5  # tokens: a query that reads fewer has a weight above 1/LEAST_TOKENS on one of them, whatever it attends to
)
PART = 250  # sequences whose attention is in memory at once, at most


def sink_metric(maps: Array, mask: attention.Mask, thresholds: Sequence[float], least: int = 1) -> Array:
    """Attention Sink_j of K.4 for maps `[..., layers, T, T]`: `[..., thresholds, T]`, a mean over layers.

    The share, of the queries that `mask` lets read token j, of those whose weight on it exceeds the threshold. Only
    queries are counted that read at least so many tokens; NaN where none of them reads token j.
    """
    queries = mask.sum(axis=1) >= least
    counts = np.stack([(maps[..., queries, :] > threshold).sum(axis=-2) for threshold in thresholds], axis=-2)
    readers = mask[queries].sum(axis=0)
    return (counts / np.where(readers > 0, readers, np.nan)).mean(axis=-3)


def uniform_attention(mask: attention.Mask) -> Array:
    """Return the null, `[T, T]`: each query spreads its attention evenly over the tokens that it may read."""
    return mask / mask.sum(axis=1, keepdims=True)


def measure_sinks(
    task: RetrievalTask,
    members: Sequence[Member],
    weights: Parameters,
    depth: int,
    residual: bool,
    count: int,
    thresholds: Sequence[float],
) -> tuple[pd.DataFrame, Array, Array]:
    """Measure the sinks of every member, trained and untrained, and of uniform attention under its mask.

    Over `count` sequences free of position bias, in float64, with each common direction of `task.omegas`. Returns the
    table (mask, encoding, omega, seed, state, tau, token, value; the null has seed 0), and of the trained members, with
    the first of these directions, the mean attention map and that of one sequence, each `[members, layers, T, T]`. Each
    state has the metric once more, named with LATER, of the tokens that such queries read.
    """
    rows: list[pd.DataFrame] = []
    means, examples = [], []
    for index, member in enumerate(members):
        stack = networks.stack(task, [member.network], depth, residual, "cpu", torch.float64)
        mask = networks.mask(task, member.network)
        final = {name: value[index : index + 1] for name, value in weights.items()}
        initial = networks.initial(task, depth, [member.seed], "cpu")
        for omega, (state, parameters) in product(task.omegas, {"trained": final, "untrained": initial}.items()):
            metric, mean, example = _over_sequences(
                task, member.seed, parameters, stack, mask, count, thresholds, omega
            )
            rows.append(_rows(member, state, metric, thresholds).assign(omega=omega))
            if state == "trained" and omega == task.omegas[0]:
                means.append(mean)
                examples.append(example)
    for member in {m.network: m for m in reversed(members)}.values():
        mask = networks.mask(task, member.network)
        null = _both_metrics(uniform_attention(mask)[None], mask, thresholds)
        for omega in task.omegas:
            rows.append(_rows(member, "uniform", null, thresholds).assign(seed=0, omega=omega))
    return pd.concat(rows, ignore_index=True), np.stack(means), np.stack(examples)


@torch.no_grad()
def _over_sequences(
    task: RetrievalTask,
    seed: int,
    parameters: Parameters,
    stack: networks.NetworkStack,
    mask: attention.Mask,
    count: int,
    thresholds: Sequence[float],
    omega: Omega,
) -> tuple[Array, Array, Array]:
    """Both metrics `[2, thresholds, T]`, the mean map and the first sequence's `[layers, T, T]`."""
    world = sequences.world(task, [seed], "cpu")
    weights = {name: value.double() for name, value in parameters.items()}
    metrics, totals, examples = [], [], []
    part = max(1, PART // task.items) * task.items  # as many for every answer position
    for start in range(0, count, part):
        batch = sequences.novel(task, world, [seed], min(part, count - start), ("sinks", start), omega)
        tokens, _ = sequences.plain_set(batch)
        _, of_members = networks.represent(weights, stack, tokens.double())
        maps = of_members[0].transpose(0, 1).numpy()  # [S, layers, T, T]
        metrics.append(_both_metrics(maps, mask, thresholds).sum(axis=1))
        totals.append(maps.sum(axis=0))
        examples.append(maps[0])
    return np.sum(metrics, axis=0) / count, np.sum(totals, axis=0) / count, examples[0]


def _both_metrics(maps: Array, mask: attention.Mask, thresholds: Sequence[float]) -> Array:
    """Return the metric of all queries and that of later ones, `[2, ..., thresholds, T]`."""
    return np.stack([sink_metric(maps, mask, thresholds, least) for least in (1, LEAST_TOKENS)])


def _rows(member: Member, state: str, metrics: Array, thresholds: Sequence[float]) -> pd.DataFrame:
    threshold, token = np.meshgrid(thresholds, np.arange(1, metrics.shape[-1] + 1), indexing="ij")
    rows = [
        pd.DataFrame({"tau": threshold.ravel(), "token": token.ravel(), "value": metric.ravel(), "state": name})
        for name, metric in zip((state, state + LATER), metrics, strict=True)
    ]
    return pd.concat(rows).dropna(subset="value").assign(**member.labels())
