"""All networks and seeds of one study at one depth train together, and are tested as they learn."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from position_bias.emergence import networks, runs, sequences
from position_bias.emergence.runs import Network, Study
from position_bias.emergence.task import RetrievalTask
from position_bias.small_networks import ensemble
from position_bias.small_networks.ensemble import Parameters, Recipe, TrainingResult
from position_card.core.checkpoint import Place
from position_card.core.runtime import InputError

PARTS = {"cpu": 125, "cuda": 2500}  # test sequences that are read at once: what fits a CPU's cache, or fills a GPU
MEASURES = ("accuracy", "in_context")  # share of right answers; share of answers that are a label of the context


@dataclass(frozen=True)
class Member:
    """One network trained from one seed."""

    network: Network
    seed: int

    def labels(self) -> dict[str, Any]:
        """Return what the columns of tables say of it."""
        return {"mask": self.network.mask_name, "encoding": self.network.encoding, "seed": self.seed}


def member_labels(members: Sequence[Member]) -> list[dict[str, Any]]:
    """Return what a file of weights says of its members: their labels, and slopes of the decay mask."""
    return [{**member.labels(), "slope": member.network.slope} for member in members]


def members_from_labels(labels: Sequence[Mapping[str, Any]]) -> list[Member]:
    """Return the members of which `member_labels` says this."""
    return [
        Member(runs.network(f"{label['mask']}/{label['encoding']}", label["slope"]), label["seed"]) for label in labels
    ]


@dataclass(frozen=True)
class StudySetting:
    """How the members of a study train and how they are tested."""

    recipe: Recipe
    batch: int  # sequences an iteration
    sequences: int  # of each test set, at the end
    sequences_along: int  # and on the way
    observe_every: int  # iterations between two tests


@dataclass(frozen=True)
class StudyOutcome:
    """What became of the members. Those that diverged have no weights, and no tests from then on."""

    members: list[Member]
    weights: Parameters  # [members, ...]
    curves: pd.DataFrame  # a row a number: mask, encoding, seed, iteration, omega, quantity, answer, twin, value


def train(
    task: RetrievalTask,
    study: Study,
    depth: int,
    seeds: Sequence[int],
    setting: StudySetting,
    place: Place,
) -> StudyOutcome:
    """Train every network of `study` from every seed, in stacks.

    Members of one seed see the same classes, batches and test sets, and start from the same weights, so that networks
    compare in pairs; every test draws new sets, so that their noise averages out over tests. What becomes of a member
    does not depend on its stack. A killed call resumes from `place`. Raises InputError where no member stays finite.
    """
    largest = 10 if place.device == "cpu" else 256  # members that a CPU's cache holds, or that fill a GPU
    parts = {
        place.apart(f"stack{index}"): stack_members
        for index, stack_members in enumerate(stacks(study.networks, seeds, largest))
    }
    for stale in {*place.folder.glob("stack*")} - {part.folder for part in parts}:  # of a run with more members
        shutil.rmtree(stale)
    outcomes = [_train_stack(task, study, depth, members, setting, part) for part, members in parts.items()]
    if not any(outcome.members for outcome in outcomes):
        raise InputError(
            f"every network of {depth} layers diverged at a learning rate of {setting.recipe.learning_rate:g}; "
            "lower emergence.training.learning_rate"
        )
    return StudyOutcome(
        members=[member for outcome in outcomes for member in outcome.members],
        weights={name: torch.cat([outcome.weights[name] for outcome in outcomes]) for name in outcomes[0].weights},
        curves=pd.concat([outcome.curves for outcome in outcomes], ignore_index=True),
    )


def stacks(study_networks: Sequence[Network], seeds: Sequence[int], largest: int) -> list[list[Member]]:
    """Put the members in stacks of at most `largest`, with RoPE apart from without, those of a seed side by side.

    Stacks of a kind are about equally large: what an iteration costs beside arithmetic, it costs once a stack.
    """
    members = [Member(network, seed) for seed, network in product(seeds, study_networks)]
    kinds = [[m for m in members if (m.network.encoding == "rope") == rotary] for rotary in (False, True)]
    return [
        [kind[index] for index in part]
        for kind in kinds
        if kind
        for part in np.array_split(range(len(kind)), -(-len(kind) // largest))
    ]


def evaluate(
    answer: Callable[[Tensor], Tensor],
    task: RetrievalTask,
    world: sequences.World,
    seeds: Sequence[int],
    rows: Tensor,
    count: int,
    draw: int,
) -> Tensor:
    """Accuracy and share of in-context answers `[E, omegas, sets, 2]`: on `sequences.test_sets`, then by position.

    `answer` maps tokens `[S, M, T, d]` of the S seeds to label logits `[E, M, L]`; `rows` [E] says whose tokens a
    member gets. Each pair set has `count` sequences; as many without copies are shared by the answer positions. Novel
    classes have each common direction of `task.omegas` in turn. Another `draw` gives others.
    """
    pairs = sequences.test_sets(task)
    hits = torch.zeros(len(rows), len(task.omegas), len(pairs) + task.items, 2, device=rows.device)
    totals = torch.zeros(len(task.omegas), len(pairs) + task.items, 1, device=rows.device)
    at_once = max(PARTS[rows.device.type], task.items)  # so that the first part has every answer position
    for part, (place, omega) in product(range(-(-count // at_once)), enumerate(task.omegas)):
        batch = sequences.novel(task, world, seeds, min(at_once, count - part * at_once), (draw, part), omega)
        in_context = batch.labels[rows]
        for index, (position, twin) in enumerate(pairs):
            tokens, labels = sequences.pair_set(batch, position, twin)
            right = _judge(answer(tokens), labels[rows], in_context)
            hits[:, place, index] += right.sum(1)
            totals[place, index] += right.shape[1]
        tokens, labels = sequences.plain_set(batch)
        right = _judge(answer(tokens), labels[rows], in_context)
        for position in range(task.items):
            of_position = right[:, position :: task.items]
            hits[:, place, len(pairs) + position] += of_position.sum(1)
            totals[place, len(pairs) + position] += of_position.shape[1]
    return hits / totals


def _judge(logits: Tensor, labels: Tensor, in_context: Tensor) -> Tensor:
    """Whether each answer is right, and whether it is a label of the context, `[E, M, 2]`."""
    answers = logits.argmax(-1)
    return torch.stack([answers == labels, (answers[..., None] == in_context).any(-1)], -1).float()


def _train_stack(
    task: RetrievalTask,
    study: Study,
    depth: int,
    members: list[Member],
    setting: StudySetting,
    place: Place,
) -> StudyOutcome:
    draw, loss, observe = _batches_and_tests(task, study, depth, members, setting, place.device)
    names = dict.fromkeys(f"{member.network.mask_name}/{member.network.encoding}" for member in members)
    seeds = {member.seed for member in members}
    result = ensemble.train(
        networks.initial(task, depth, [member.seed for member in members], place.device, study.placement),
        draw,
        loss,
        setting.recipe,
        observe,
        observe_every=setting.observe_every,
        checkpoint_every=place.checkpoint_every,
        folder=place.folder,
        settings=[study.bias, study.residual, study.placement, asdict(task), asdict(setting), *map(asdict, members)],
        description=f"depth {depth}, {', '.join(names)}, seeds {', '.join(map(str, sorted(seeds)))}",
    )
    finite = [index for index in range(len(members)) if index not in result.divergences]
    return StudyOutcome(
        members=[members[index] for index in finite],
        weights={name: value[finite].cpu() for name, value in result.parameters.items()},
        curves=pd.DataFrame(_rows(task, members, result)),
    )


def _batches_and_tests(
    task: RetrievalTask, study: Study, depth: int, members: list[Member], setting: StudySetting, device: str
) -> tuple[ensemble.Draw, ensemble.Loss, ensemble.Observe]:
    """The draws of an iteration; the losses of the members on the batch made of them; what `evaluate` finds."""
    seeds = sorted({member.seed for member in members})
    rows = torch.tensor([seeds.index(member.seed) for member in members], device=device)
    one_each = rows.tolist() == list(range(len(seeds)))
    world = sequences.world(task, seeds, device)
    batches = sequences.RetrievalBatches(
        task, world, seeds, [task.position(name) for name in study.bias], setting.batch
    )
    of_members = [member.network for member in members]
    stack = networks.stack(task, of_members, depth, study.residual, device, placement=study.placement)

    def loss(weights: Mapping[str, Tensor], *batch: Tensor) -> Tensor:
        tokens, targets = batches.assemble(*batch)
        if not one_each:
            tokens, targets = tokens.index_select(0, rows), targets.index_select(0, rows)
        return ensemble.mean_cross_entropy(networks.label_logits(weights, stack, tokens), targets)

    def observe(weights: Mapping[str, Tensor], iteration: int) -> Tensor:
        def answer(tokens: Tensor) -> Tensor:
            return networks.label_logits(weights, stack, tokens.index_select(0, rows))

        count = setting.sequences if iteration == setting.recipe.iterations else setting.sequences_along
        return evaluate(answer, task, world, seeds, rows, count, draw=iteration)

    return batches.draw, loss, observe


def _rows(task: RetrievalTask, members: list[Member], result: TrainingResult) -> Iterator[dict[str, Any]]:
    """The curves of every member as long as it is finite; the loss is the mean since the test before."""
    pairs = sequences.test_sets(task)
    sets = [*pairs, *((position, 0) for position in range(1, task.items + 1))]
    for index, member in enumerate(members):
        divergence = result.divergences.get(index, np.inf)
        for place, iteration in enumerate(result.observed_at):
            if iteration >= divergence:
                break
            at = {**member.labels(), "iteration": iteration}
            values = result.observations[place, index].ravel().tolist()
            numbers = [*zip(product(task.omegas, sets, MEASURES), values, strict=True)]
            if place:
                window = result.losses[result.observed_at[place - 1] : iteration, index]
                loss = float(window.mean(dtype=np.float64))
                numbers.insert(0, ((task.omegas[0], (0, 0), "loss"), loss))
            for (omega, (answer, twin), quantity), value in numbers:
                yield {**at, "omega": omega, "quantity": quantity, "answer": answer, "twin": twin, "value": value}
