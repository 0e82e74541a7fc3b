"""Brackets nested deeper than those of training, at the length of training.

The network of every position or word is told apart by one thing alone, whether it is deeper; so attention is over as
many tokens as in training, and what a norm after attention does about length does not come in.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from torch import Tensor

from position_bias.postnorm import tasks, training
from position_bias.postnorm.tasks import Formal, Nested, Sequences
from position_bias.small_networks.decoder import Architecture

WORDS = 4  # times as many words as sequences, since few are deep


@torch.no_grad()
def by_depth(
    weights: Mapping[str, Tensor],
    network: Architecture,
    task: Nested,
    seeds: Sequence[int],
    sequences: int,
    device: str,
) -> pd.DataFrame:
    """How networks do up to the depth of `task` and deeper: a row a number, with seed, deeper, quantity and value.

    `tvd` is the mean total variation distance to the uniform distribution over legal outputs, over the positions of
    prefixes at which as many brackets are open. `auc` is the ROC AUC of words against near misses, of the words whose
    greatest depth is in question; missing where none is.
    """
    length = task.longest
    prefixes = Formal(task.unbounded).sequences(seeds, "depths", sequences, length)
    seen = Sequences(prefixes.tokens.to(device), None, prefixes.legal.to(device))
    distances = training.judge(weights, network, seen)[training.QUANTITIES.index("tvd")].cpu()
    members, misses = tasks.words(task.unbounded, seeds, "depths", WORDS * sequences, length)
    scores = [training.least_probability(weights, network, tokens.to(device)).cpu() for tokens in (members, misses)]
    positions, of_words = task.depths(prefixes.tokens), task.depths(members).amax(-1)
    begun = torch.arange(length + 1) > 0  # the begin token says nothing of depth
    rows: list[dict[str, object]] = []
    for deeper in (False, True):
        chosen, of_depth = (positions > task.depth) == deeper, (of_words > task.depth) == deeper
        for member, seed in enumerate(seeds):
            tvd = float(distances[member][chosen[member] & begun].mean())
            words, others = (of_kind[member][of_depth[member]] for of_kind in scores)
            auc = training.area_under_curve(words, others)
            rows += [
                {"seed": seed, "deeper": deeper, "quantity": name, "value": value}
                for name, value in (("tvd", tvd), ("auc", auc))
            ]
    return pd.DataFrame(rows)
