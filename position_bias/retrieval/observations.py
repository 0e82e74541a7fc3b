"""What networks do at each position: which label they name without a match, and how often they find one that matches.

In the tests every item of a sequence is of a novel class of its own, and has a label of its own, so that an answer
tells its position. That is unlike the sequences of training, which show classes several times; `bursty` ones do, too.

Axes: E members, one a seed, M sequences, n items, T tokens, d coordinates, L labels.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from position_bias.attention import Array
from position_bias.emergence import sequences
from position_bias.emergence.network import Stack, Weights, classify, encoded, project
from position_bias.emergence.sequences import Novel, World
from position_bias.emergence.task import Task
from position_bias.small_networks.ensemble import generators

PART = 250  # sequences that pass through the networks at once, at most

Answer = Callable[[Tensor], Tensor]  # tokens [E, M, T, d] -> logits of the labels [E, M, L]


@dataclass(frozen=True)
class Sequences:
    """Test sequences of several seeds, free of position bias."""

    drawn: Novel
    strangers: Tensor  # [E, M, d] queries of classes that no item has

    def unmatched(self) -> Tensor:
        """The tokens `[E, M, T, d]` with a query that no item matches."""
        tokens, _ = sequences.plain_set(self.drawn)
        tokens[:, :, -1] = self.strangers
        return tokens


def distinct(task: Task, world: World, seeds: Sequence[int], count: int, purpose: str) -> Iterator[Sequences]:
    """Draw `count` sequences a position, in parts; every item has a class and a label of its own.

    Another `purpose` gives others. The task has as many labels and classes as items.
    """
    for part, size in _parts(task, count):
        drawn, strangers = _drawn(replace(task, burstiness=1), world, seeds, size, (purpose, part))
        orders = [
            torch.rand(size, task.labels, generator=generator)
            for generator in generators(seeds, purpose, "labels", part)
        ]
        labels = torch.stack(orders).argsort(-1)[..., : task.items]
        yield Sequences(replace(drawn, labels=labels), strangers)


def bursty(task: Task, world: World, seeds: Sequence[int], count: int, purpose: str) -> Iterator[Sequences]:
    """Draw sequences as `distinct` does, with classes shown as often as in training, each with its label."""
    for part, size in _parts(task, count):
        yield Sequences(*_drawn(task, world, seeds, size, (purpose, part)))


def named(answer: Answer, test: Sequences) -> Tensor:
    """How often the answer without a match is the label of each item, `[E, n]`."""
    return (answer(test.unmatched()).argmax(-1)[..., None] == test.drawn.labels).double().mean(1)


def found(answer: Answer, test: Sequences) -> Tensor:
    """Accuracy at each position, where the query is a fresh draw of the class of the item there, `[E, n]`."""
    tokens, labels = sequences.plain_set(test.drawn)
    right = (answer(tokens).argmax(-1) == labels).double()
    n = test.drawn.labels.shape[-1]
    return torch.stack([right[:, position::n].mean(1) for position in range(n)], -1)


def above_floor(shares: Array, labels: int) -> Array:
    """Shares `[..., n]` of labels without a match, less what a label has that is not in the sequence.

    Where the sequence shows every label, there is none to compare with, and nothing is taken off.
    """
    n = shares.shape[-1]
    floor = (1 - shares.sum(-1, keepdims=True)) / max(labels - n, 1)
    return shares - floor * (labels > n)


def of_positions(hits: Array, task: Task) -> Array:
    """The share of each position `[..., n]` behind how often its label is named, where several items have each label.

    Let r be the probability that two items have the same label and S the share of all positions, with guesses even over
    L labels. Then hits_j = p_j + r (S - p_j) + (1 - S) / L, which is linear in p.
    """
    n, same, guess = task.items, 1 - task.largest_gap, task.chance
    whole = (hits.sum(-1, keepdims=True) - n * guess) / (1 + same * (n - 1) - n * guess)
    return (hits - same * whole - guess * (1 - whole)) / (1 - same)


def frozen(weights: Weights, stack: Stack, attention: Tensor) -> Answer:
    """The networks with the given attention `[E, depth, T, T]` in every sequence, and all else as it is."""

    def answer(tokens: Tensor) -> Tensor:
        x = encoded(stack, tokens)
        for layer in range(stack.depth):
            read = attention[:, layer, None] @ project(x, weights[f"v{layer}"])
            x = x + read if stack.residual else read
        return classify(weights, x[:, :, -1])

    return answer


def _parts(task: Task, count: int) -> Iterator[tuple[int, int]]:
    """Number and size of each part of `count` sequences a position: each has as many for every position."""
    most = max(1, PART // task.items)
    for part, start in enumerate(range(0, count, most)):
        yield part, min(most, count - start) * task.items


def _drawn(task: Task, world: World, seeds: Sequence[int], size: int, part: object) -> tuple[Novel, Tensor]:
    """Sequences of novel classes, and as many queries of others."""
    drawn = sequences.novel(task, world, seeds, size, ("retrieval", part))
    return drawn, sequences.novel(task, world, seeds, size, ("retrieval", part, "query")).queries[:, :, 0]
