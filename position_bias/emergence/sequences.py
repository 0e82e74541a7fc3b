"""This module draws sequences of the retrieval task for several seeds; what a seed draws depends on it alone.

Axes: S seeds, M sequences, n items, T = 2n + 1 tokens, d coordinates. Positions of items are counted from 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from position_bias.emergence.task import PAIRS, Omega, RetrievalTask
from position_card.core import runtime


@dataclass(frozen=True)
class World:
    """What is drawn once a seed, before training."""

    items: Tensor  # [S, K, d] class means, already mixed and scaled
    label_of: Tensor  # [S, K] the label of a class
    labels: Tensor  # [S, L, d] the tokens of the labels
    common: Tensor  # [S, d] the common direction of a fixed vocabulary


def world(task: RetrievalTask, seeds: Sequence[int], device: str) -> World:
    """Draw the classes, the labels and the common direction of every seed."""
    items, label_of, labels, common = [], [], [], []
    for seed in seeds:
        generator = _generator(device, seed, "world")
        items.append(_normal(task, (task.classes, task.width), generator))
        labels.append(_normal(task, (task.labels, task.width), generator))
        common.append(_normal(task, (task.width,), generator))
        label_of.append(torch.randint(task.labels, (task.classes,), generator=generator, device=device))
    directions = torch.stack(common)
    means = _class_vectors(task, torch.stack(items), directions[:, None])
    return World(means, torch.stack(label_of), torch.stack(labels), directions)


class RetrievalBatches:
    """Training batches of the seeds: `batches(iteration)` gives tokens `[S, M, T, d]` and labels to predict `[S, M]`.

    The query is of the class of the item at one of the positions `bias`, counted from 1 and drawn at random; of any
    item where it is empty.
    """

    def __init__(
        self, task: RetrievalTask, world: World, seeds: Sequence[int], bias: Sequence[int], batch: int
    ) -> None:
        self.task, self.world, self.seeds, self.batch = task, world, list(seeds), batch
        device = world.items.device
        self.answers = torch.tensor(list(bias) or range(1, task.items + 1), device=device) - 1
        # one table of class means, then labels, so that one lookup makes the tokens
        self.table = torch.cat([world.items, world.labels], dim=1).flatten(0, 1)
        self.rows = torch.arange(len(self.seeds), device=device)[:, None, None] * (task.classes + task.labels)

    def __call__(self, iteration: int) -> tuple[Tensor, Tensor]:
        """The batch of an iteration, whichever were drawn before."""
        return self.assemble(*self.draw(iteration))

    def draw(self, iteration: int) -> tuple[Tensor, ...]:
        """Return the random numbers of a batch, float32: uniform ones `[S, M, C + n + 1]` for classes, slots, answer.

        With a Gaussian vocabulary Gaussian ones `[S, M, n + 1, d]` follow, the noise of the items and of the query.
        """
        task, device = self.task, str(self.table.device)
        S, M, n = len(self.seeds), self.batch, task.items
        generators = [_generator(device, seed, "batch", iteration) for seed in self.seeds]
        draws = [torch.empty(S, M, task.classes_shown + n + 1, device=device)]
        if task.vocabulary == "gaussian":
            draws.append(torch.empty(S, M, n + 1, task.width, device=device))
        for index, generator in enumerate(generators):
            draws[0][index].uniform_(generator=generator)
            for noise in draws[1:]:
                noise[index].normal_(generator=generator)
        return tuple(draws)

    def assemble(self, uniform: Tensor, *noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the batch that the numbers of `draw` make: tokens `[S, M, T, d]` and labels to predict `[S, M]`."""
        task = self.task
        S, M, C = len(self.seeds), self.batch, task.classes_shown
        classes = _distinct(uniform[..., :C], task.classes)
        slots = _arrangement(task, uniform[..., C:-1])
        answer = (uniform[..., -1:] * len(self.answers)).long().clamp_(max=len(self.answers) - 1)
        slots = torch.cat([slots, slots.gather(-1, self.answers[answer])], -1)
        of_item = classes.gather(-1, slots)  # [S, M, n + 1], the query last
        labels = self.world.label_of.gather(-1, of_item.flatten(1)).view_as(of_item)
        index = torch.empty(S, M, task.tokens, dtype=torch.int64, device=uniform.device)
        index[..., 0::2] = of_item
        index[..., 1::2] = labels[..., :-1] + task.classes
        tokens = functional.embedding(index + self.rows, self.table)
        for of_copy in noise:
            tokens[:, :, 0::2].add_(of_copy, alpha=_noise_scale(task))
        return tokens, labels[..., -1]


@dataclass(frozen=True)
class Novel:
    """Sequences of classes that training did not show; those of all test sets share every draw."""

    items: Tensor  # [S, M, n, d]
    queries: Tensor  # [S, M, n, d] a query of the class of each item
    labels: Tensor  # [S, M, n] of the items
    tokens_of: Tensor  # [S, L, d] the tokens of the labels


def novel(
    task: RetrievalTask, world: World, seeds: Sequence[int], sequences: int, part: object = 0, omega: Omega = "training"
) -> Novel:
    """Draw `sequences` of novel classes with labels that training knows; another `part` gives others.

    All draws but that of the common direction are the same for every `omega` (see `RetrievalTask.omegas`).
    """
    device = str(world.items.device)
    shape = (sequences, task.classes_shown)
    parts: list[tuple[Tensor, ...]] = []
    for seed in seeds:
        generator = _generator(device, seed, "novel", part)
        parts.append(
            (
                _normal(task, (*shape, task.width), generator),
                torch.randint(task.labels, shape, generator=generator, device=device),
                torch.rand((sequences, task.items), generator=generator, device=device),
                _normal(task, (sequences, task.items + 1, task.width), generator),
            )
        )
    means, labels_of, order, noise = map(torch.stack, zip(*parts, strict=True))
    slots = _arrangement(task, order)
    common = world.common[:, None, None]
    if omega == "fresh":
        generators = [_generator(device, seed, "fresh omega", part) for seed in seeds]
        common = torch.stack([_normal(task, (sequences, 1, task.width), generator) for generator in generators])
    vectors = _class_vectors(task, means, common)
    items = vectors.gather(2, slots[..., None].expand(-1, -1, -1, task.width))
    queries = items
    if task.vocabulary == "gaussian":
        scale = _noise_scale(task) / task.spread
        items, queries = items + scale * noise[:, :, :-1], items + scale * noise[:, :, -1:]
    return Novel(items, queries, labels_of.gather(-1, slots), world.labels)


def pair_set(novel: Novel, answer: int, twin: int) -> tuple[Tensor, Tensor]:
    """The set [a, b]: tokens `[S, M, T, d]` and answers `[S, M]`.

    The item at b is a copy of that at a and keeps its own label; the query is of the class at a, the answer a's label.
    """
    items = novel.items.clone()
    items[:, :, twin - 1] = items[:, :, answer - 1]
    return _interleave(items, novel.queries[:, :, answer - 1], novel), novel.labels[:, :, answer - 1]


def plain_set(novel: Novel) -> tuple[Tensor, Tensor]:
    """Return tokens and answers as `pair_set` does, without copies or bias: sequence m asks for item m mod n."""
    answers = torch.arange(novel.labels.shape[1], device=novel.labels.device) % novel.labels.shape[2]
    rows = torch.arange(len(answers), device=novel.labels.device)
    return _interleave(novel.items, novel.queries[:, rows, answers], novel), novel.labels[:, rows, answers]


def test_sets(task: RetrievalTask) -> list[tuple[int, int]]:
    """Return the pair sets of the evaluation as (answer, twin), counted from 1: [a, b] and [b, a] for each pair."""
    pairs = [(task.position(a), task.position(b)) for a, b in PAIRS]
    return [order for a, b in pairs for order in ((a, b), (b, a))]


def _generator(device: str, *parts: object) -> torch.Generator:
    return torch.Generator(device).manual_seed(runtime.seed(*parts))


def _normal(task: RetrievalTask, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device) * task.spread


def _class_vectors(task: RetrievalTask, means: Tensor, common: Tensor) -> Tensor:
    """Return the vectors of classes of these `means` [S, K, d], same shape.

    They are (mu + a omega) / sqrt(1 + a^2) with anisotropy a and the `common` direction omega (App. L), or, in a
    Gaussian vocabulary, mu / sqrt(1 + eps^2), to which each item adds its noise (App. J).
    """
    if task.vocabulary == "gaussian":
        return means / math.sqrt(1 + task.noise**2)
    return (means + task.anisotropy * common) / math.sqrt(1 + task.anisotropy**2)


def _noise_scale(task: RetrievalTask) -> float:
    """Standard deviation of a coordinate of an item around its class's mean."""
    return task.noise * task.spread / math.sqrt(1 + task.noise**2)


def _distinct(uniform: Tensor, classes: int) -> Tensor:
    """Different classes for each sequence from uniform numbers `[..., C]`: the c-th is one of those not yet taken."""
    draws: list[Tensor] = []
    for c, number in enumerate(uniform.unbind(-1)):
        rank = (number * (classes - c)).long().clamp_(max=classes - c - 1)
        for earlier in torch.stack(draws, -1).sort(-1).values.unbind(-1) if draws else ():
            rank = rank + (rank >= earlier)
        draws.append(rank)
    return torch.stack(draws, -1)


def _arrangement(task: RetrievalTask, uniform: Tensor) -> Tensor:
    """Which of the sequence's classes stands at each position `[..., n]`: every class B times, in random order."""
    return uniform.argsort(-1) % task.classes_shown


def _interleave(items: Tensor, query: Tensor, novel: Novel) -> Tensor:
    S, M, n, d = items.shape
    tokens = items.new_empty(S, M, 2 * n + 1, d)
    tokens[:, :, 0:-1:2] = items
    rows = torch.arange(S, device=items.device)[:, None, None]
    tokens[:, :, 1::2] = novel.tokens_of[rows, novel.labels]
    tokens[:, :, -1] = query
    return tokens
