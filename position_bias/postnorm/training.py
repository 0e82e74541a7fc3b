"""Decoders under every scheme of norms are trained on short sequences of a task and tested on longer ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from position_bias.postnorm import languages, tasks
from position_bias.postnorm.languages import Language
from position_bias.postnorm.lengths import BINS, bin_of
from position_bias.postnorm.schemes import SCHEMES
from position_bias.postnorm.tasks import Sequences, Task
from position_bias.postnorm.trials import Trial
from position_bias.running.checkpoint import Place
from position_bias.small_networks import decoder, ensemble
from position_bias.small_networks.decoder import Architecture, Seen
from position_bias.small_networks.ensemble import Parameters, Recipe, Trained

QUANTITIES = ("tvd", "legal_tvd", "leak", "gap", "largest_weight")
DRAWN = 2048  # training sequences of a seed that are drawn at once
PART = 64  # test sequences of a seed that pass through the networks at once
LENGTHS_A_BIN = 4  # at which words are told from near misses


@dataclass(frozen=True)
class Setting:
    """What networks of a task are trained on and tested with."""

    length: int  # of training sequences
    batch: int
    longest: int  # of test sequences
    sequences: int  # test sequences of a seed


@dataclass(frozen=True)
class Networks:
    """Networks of one scheme and size, one from each seed, with the task that they learn."""

    task: Task
    architecture: Architecture
    setting: Setting
    seeds: Sequence[int]
    device: str


@dataclass(frozen=True)
class Outcome:
    """What became of the networks of a trial."""

    trial: Trial
    networks: Networks
    initial: Parameters
    trained: Trained
    finite: list[int]  # the seeds whose networks did not diverge
    tests: pd.DataFrame  # seed, length, quantity, value, of these seeds


def networks(trial: Trial, device: str) -> Networks:
    """Return the networks of a trial."""
    task, (placement, final) = tasks.task(trial.task), SCHEMES[trial.scheme]
    architecture = Architecture(
        task.size, task.size, placement=placement, final_norm=final, valued=task.valued, **trial.size
    )
    return Networks(task, architecture, Setting(**trial.setting), trial.seeds, device)


def train(trial: Trial, place: Place) -> Outcome:
    """Train the networks of a trial, all at once, and test them.

    Targets are single legal outputs, drawn uniformly. What a seed draws does not depend on the scheme, so that schemes
    compare in pairs. A killed call resumes from `place`.
    """
    built = networks(trial, place.device)
    initial = decoder.initial(built.architecture, trial.seeds, place.device)
    batches, recipe = Batches(built), Recipe(**trial.recipe)

    def draw(iteration: int) -> tuple[Tensor, ...]:
        sequences, targets = batches(iteration)
        return sequences.tokens, targets, *([] if sequences.values is None else [sequences.values])

    def loss(weights: Mapping[str, Tensor], tokens: Tensor, targets: Tensor, values: Tensor | None = None) -> Tensor:
        logits = decoder.logits(weights, built.architecture, tokens, values)
        return ensemble.mean_cross_entropy(logits, targets)

    trained = ensemble.train(
        initial,
        draw,
        loss,
        recipe,
        lambda weights, _iteration: weights["readout"].flatten(1).sum(1),  # no tests on the way; NaN where diverged
        observe_every=recipe.iterations,
        checkpoint_every=recipe.iterations if trial.to_the_end else place.checkpoint_every,
        folder=place.folder,
        settings=[trial.task, trial.scheme, trial.size, trial.setting, trial.seeds],
        description=f"{trial.task}, {trial.scheme}, width {trial.size['width']}",
        kappa=trial.kappa,
    )
    finite = [seed for index, seed in enumerate(trial.seeds) if index not in trained.diverged]
    tests = evaluate(trained.parameters, built)
    return Outcome(trial, built, initial, trained, finite, tests[tests["seed"].isin(finite)])


class Batches:
    """Training batches: `batches(iteration)` gives sequences and targets `[S, M, T]`, whichever were drawn before."""

    def __init__(self, networks: Networks) -> None:
        self.networks, self.batch = networks, networks.setting.batch
        self.in_block = max(1, DRAWN // self.batch)  # iterations that are drawn for at once
        self.block = lru_cache(maxsize=1)(self._block)

    def __call__(self, iteration: int) -> tuple[Sequences, Tensor]:
        block, place = divmod(iteration - 1, self.in_block)
        drawn, targets = self.block(block)
        part = slice(place * self.batch, (place + 1) * self.batch)
        return drawn.on(self.networks.device, part), targets[:, part]

    def _block(self, block: int) -> tuple[Sequences, Tensor]:
        task, seeds, device = self.networks.task, self.networks.seeds, self.networks.device
        count, length = self.in_block * self.batch, self.networks.setting.length
        drawn = task.sequences(seeds, ("batches", block), count, length).on(device)
        generators = ensemble.generators(seeds, "targets", block)
        uniform = torch.stack([torch.rand(drawn.legal.shape[1:3], generator=generator) for generator in generators])
        return drawn, tasks.draw_targets(drawn.legal, uniform.to(device))


@torch.no_grad()
def evaluate(weights: Mapping[str, Tensor], networks: Networks) -> pd.DataFrame:
    """How networks do at every length up to the longest: a row a number, with seed, length, quantity and value.

    Means over test sequences of: `tvd`, the total variation distance to the uniform distribution over legal outputs;
    `leak`, the mass on others; `legal_tvd`, the distance among legal outputs alone; `largest_weight` of a row of
    attention, over heads and layers; and `gap`, the mean logit of legal outputs less that of others. Languages have no
    gap, since all outputs may be legal; instead, at some lengths of each bin, `auc`: words told from near misses.
    """
    setting, seeds, language = networks.setting, networks.seeds, networks.task.language
    drawn = networks.task.sequences(seeds, "tests", setting.sequences, setting.longest)
    skipped = drawn.tokens.shape[-1] - setting.longest  # begin tokens
    total = torch.zeros(len(QUANTITIES), len(seeds), setting.longest)
    for start in range(0, setting.sequences, PART):
        part = drawn.on(networks.device, slice(start, start + PART))
        total += judge(weights, networks.architecture, part).sum(2)[..., skipped:].cpu()
    means = (total / setting.sequences).numpy()
    rows: list[dict[str, object]] = [
        {"seed": seed, "length": length, "quantity": quantity, "value": float(means[row, member, length - 1])}
        for row, quantity in enumerate(QUANTITIES)
        if not (language and quantity == "gap")
        for member, seed in enumerate(seeds)
        for length in range(1, setting.longest + 1)
    ]
    if language:
        rows += _classified(weights, networks, language)
    return pd.DataFrame(rows)


def judge(weights: Mapping[str, Tensor], network: Architecture, sequences: Sequences) -> Tensor:
    """The QUANTITIES of every sequence and position, `[quantities, S, M, T]`."""
    seen: list[Seen] = []
    logits = decoder.logits(weights, network, sequences.tokens, sequences.values, seen.append)
    legal = sequences.legal
    count = legal.sum(-1)
    p = logits.softmax(-1)
    target = legal / count[..., None]
    among = logits.masked_fill(~legal, -torch.inf).softmax(-1)
    gap = (logits * legal).sum(-1) / count - (logits * ~legal).sum(-1) / (legal.shape[-1] - count).clamp(min=1)
    largest = torch.stack([layer.weights.amax(-1).mean(2) for layer in seen]).mean(0)
    return torch.stack(
        [
            (p - target).abs().sum(-1) / 2,
            (among - target).abs().sum(-1) / 2,
            (p * ~legal).sum(-1),
            gap,
            largest,
        ]
    )


def _classified(weights: Mapping[str, Tensor], networks: Networks, language: Language) -> list[dict[str, object]]:
    """ROC AUC of the least probability that a network gives to a token or the end, words against near misses."""
    rows, seeds, setting = [], networks.seeds, networks.setting
    for length in _lengths_to_classify(language, setting):
        of_kind = tasks.words(language, seeds, "tests", setting.sequences, length)
        scores = (least_probability(weights, networks.architecture, tokens.to(networks.device)) for tokens in of_kind)
        rows += [
            {"seed": seed, "length": length, "quantity": "auc", "value": area_under_curve(*of_seed)}
            for seed, *of_seed in zip(seeds, *scores, strict=True)
        ]
    return rows


def area_under_curve(above: Tensor, below: Tensor) -> float:
    """ROC AUC: how often one of `above` [m] exceeds one of `below` [n], where ties count half; NaN without either."""
    difference = above[:, None] - below
    return float(((difference > 0).double() + (difference == 0) / 2).mean())


def _lengths_to_classify(language: Language, setting: Setting) -> list[int]:
    """Lengths spread over each bin at which there are words and near misses."""
    lengths = [n for n in range(2, setting.longest + 1) if languages.has_near_misses(language, n)]
    of_bin = {name: [n for n in lengths if bin_of(n, setting.length) == name] for name in BINS}
    chosen: set[int] = set()
    for inside in of_bin.values():
        places = np.linspace(0, len(inside) - 1, min(LENGTHS_A_BIN, len(inside)))
        chosen |= {inside[round(place)] for place in places}
    return sorted(chosen)


def least_probability(weights: Mapping[str, Tensor], network: Architecture, tokens: Tensor) -> Tensor:
    """Of what follows each token, and of the end at last: log probability `[S, M]`, the lowest; tokens `[S, M, T]`."""
    log_p = decoder.logits(weights, network, tokens).log_softmax(-1)
    end = torch.full_like(tokens[..., :1], network.outputs - 1)
    following = torch.cat([tokens[..., 1:], end], -1)
    return log_p.gather(-1, following[..., None])[..., 0].amin(-1)
