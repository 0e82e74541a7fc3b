"""Decoders under every scheme of norms are trained on short sequences of a task and tested on longer ones."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from position_bias.postnorm import languages, tasks
from position_bias.postnorm.lengths import BINS, bin_of
from position_bias.postnorm.schemes import SCHEMES
from position_bias.postnorm.tasks import Formal, Sequences, Task
from position_bias.running.checkpoint import Place
from position_bias.running.runtime import InputError
from position_bias.small_networks import decoder, ensemble
from position_bias.small_networks.averaging import Averaging
from position_bias.small_networks.decoder import Architecture, Seen
from position_bias.small_networks.ensemble import Parameters, Recipe, Trained
from position_bias.small_networks.size import Size

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
class Outcome:
    """What became of the networks of one scheme."""

    architecture: Architecture
    initial: Parameters
    trained: Trained
    tests: pd.DataFrame  # seed, length, quantity, value; none of members that diverged


def architecture(task: Task, scheme: str, size: Size) -> Architecture:
    """Return the network of a scheme for a task. Raises ValueError for an unknown scheme."""
    if scheme not in SCHEMES:
        raise ValueError(f"scheme = {scheme!r} is not known; use one of {', '.join(SCHEMES)}")
    placement, final = SCHEMES[scheme]
    return Architecture(
        inputs=task.inputs,
        outputs=task.outputs,
        width=size.width,
        placement=placement,
        layers=size.layers,
        heads=size.heads,
        hidden=size.hidden,
        final_norm=final,
        valued=task.valued,
    )


def train(
    task: Task,
    scheme: str,
    size: Size,
    setting: Setting,
    recipe: Recipe,
    seeds: Sequence[int],
    place: Place,
    averaging: Averaging | None = None,
) -> Outcome:
    """Train a network of `scheme` from every seed, all at once, and test it.

    Targets are single legal outputs, drawn uniformly. What a seed draws does not depend on the scheme, so that schemes
    compare in pairs. A killed call resumes from `place`.
    """
    network = architecture(task, scheme, size)
    initial = decoder.initial(network, seeds, place.device)
    batches = Batches(task, seeds, setting, place.device)

    def loss(weights: Mapping[str, Tensor], iteration: int) -> Tensor:
        sequences, targets = batches(iteration)
        logits = decoder.logits(weights, network, sequences.tokens, sequences.values)
        return ensemble.mean_cross_entropy(logits, targets)

    trained = ensemble.train(
        initial,
        loss,
        recipe,
        lambda weights, _iteration: weights["readout"].flatten(1).sum(1),  # no tests on the way; NaN where diverged
        observe_every=recipe.iterations,
        checkpoint_every=place.checkpoint_every,
        folder=place.folder,
        settings=[task.name, scheme, asdict(size), asdict(setting), list(seeds)],
        description=f"{task.name}, {scheme}, width {size.width}",
        averaging=averaging,
    )
    tests = evaluate(trained.parameters, network, task, setting, seeds, place.device)
    finite = [seed for index, seed in enumerate(seeds) if index not in trained.diverged]
    return Outcome(network, initial, trained, tests[tests["seed"].isin(finite)])


class Batches:
    """Training batches: `batches(iteration)` gives sequences and targets `[S, M, T]`, whichever were drawn before."""

    def __init__(self, task: Task, seeds: Sequence[int], setting: Setting, device: str) -> None:
        self.task, self.seeds, self.setting, self.device = task, list(seeds), setting, device
        self.in_block = max(1, DRAWN // setting.batch)  # iterations that are drawn for at once
        self.block = lru_cache(maxsize=1)(self._block)

    def __call__(self, iteration: int) -> tuple[Sequences, Tensor]:
        block, place = divmod(iteration - 1, self.in_block)
        drawn, targets = self.block(block)
        part = slice(place * self.setting.batch, (place + 1) * self.setting.batch)
        return _part(drawn, part), targets[:, part]

    def _block(self, block: int) -> tuple[Sequences, Tensor]:
        count = self.in_block * self.setting.batch
        drawn = self.task.sequences(self.seeds, ("batches", block), count, self.setting.length)
        generators = ensemble.generators(self.seeds, "targets", block)
        uniform = torch.stack([torch.rand(drawn.legal.shape[1:3], generator=generator) for generator in generators])
        return _to(drawn, self.device), tasks.draw_targets(drawn.legal, uniform).to(self.device)


@torch.no_grad()
def evaluate(
    weights: Mapping[str, Tensor],
    network: Architecture,
    task: Task,
    setting: Setting,
    seeds: Sequence[int],
    device: str,
) -> pd.DataFrame:
    """How networks do at every length up to `setting.longest`: a row a number, with seed, length, quantity and value.

    Means over test sequences of: `tvd`, the total variation distance to the uniform distribution over legal outputs;
    `leak`, the mass on others; `legal_tvd`, the distance among legal outputs alone; `largest_weight` of a row of
    attention, over heads and layers; and `gap`, the mean logit of legal outputs less that of others. Languages have no
    gap, since all outputs may be legal; instead, at some lengths of each bin, `auc`: words told from near misses.
    """
    drawn = task.sequences(seeds, "tests", setting.sequences, setting.longest)
    skipped = drawn.tokens.shape[-1] - setting.longest  # begin tokens
    total = torch.zeros(len(QUANTITIES), len(seeds), setting.longest)
    for start in range(0, setting.sequences, PART):
        part = _to(_part(drawn, slice(start, start + PART)), device)
        total += judge(weights, network, part).sum(2)[..., skipped:].cpu()
    means = (total / setting.sequences).numpy()
    language = task if isinstance(task, Formal) else None
    rows: list[dict[str, object]] = [
        {"seed": seed, "length": length, "quantity": quantity, "value": float(means[row, member, length - 1])}
        for row, quantity in enumerate(QUANTITIES)
        if not (language and quantity == "gap")
        for member, seed in enumerate(seeds)
        for length in range(1, setting.longest + 1)
    ]
    if language:
        rows += _classified(weights, network, language, setting, seeds, device)
    return pd.DataFrame(rows)


def judge(weights: Mapping[str, Tensor], network: Architecture, sequences: Sequences) -> Tensor:
    """The QUANTITIES of every sequence and position, `[quantities, S, M, T]`."""
    seen: list[Seen] = []
    x = decoder.embed(weights, network, sequences.tokens, sequences.values)
    x = decoder.residual_stream(weights, network, x, seen.append)
    logits = decoder.read_out(weights, x)
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


def _classified(
    weights: Mapping[str, Tensor],
    network: Architecture,
    task: Formal,
    setting: Setting,
    seeds: Sequence[int],
    device: str,
) -> list[dict[str, object]]:
    """ROC AUC of the least probability that a network gives to a token or the end, words against near misses."""
    rows = []
    for length in _lengths_to_classify(task, setting):
        of_kind = tasks.words(task.language, seeds, "tests", setting.sequences, length)
        member, miss = (least_probability(weights, network, tokens.to(device)) for tokens in of_kind)
        rows += [
            {"seed": seed, "length": length, "quantity": "auc", "value": area_under_curve(*of_seed)}
            for seed, *of_seed in zip(seeds, member, miss, strict=True)
        ]
    return rows


def area_under_curve(above: Tensor, below: Tensor) -> float:
    """ROC AUC: how often one of `above` [m] exceeds one of `below` [n], where ties count half; NaN without either."""
    difference = above[:, None] - below
    return float(((difference > 0).double() + (difference == 0) / 2).mean())


def _lengths_to_classify(task: Formal, setting: Setting) -> list[int]:
    """Lengths spread over each bin at which there are words and near misses."""
    lengths = [n for n in range(2, setting.longest + 1) if languages.has_near_misses(task.language, n)]
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


def history(outcome: Outcome, seeds: Sequence[int], points: int) -> pd.DataFrame:
    """Return loss and gradient norm along training, in at most `points` stretches of iterations.

    A row a stretch and seed: seed, iteration (its last), loss and gradient_norm (means over it), highest_loss and
    highest_gradient_norm.
    """
    trained = outcome.trained
    ends = np.unique(np.linspace(0, len(trained.losses), points + 1).round().astype(int))[1:]
    rows = []
    for member, seed in enumerate(seeds):
        for start, end in zip([0, *ends], ends, strict=False):
            loss, gradient = (values[start:end, member] for values in (trained.losses, trained.gradient_norms))
            row = {"seed": seed, "iteration": int(end), "loss": loss.mean(), "gradient_norm": gradient.mean()}
            rows.append({**row, "highest_loss": loss.max(), "highest_gradient_norm": gradient.max()})
    return pd.DataFrame(rows)


def require_finite(outcome: Outcome, learning_rate: float, key: str) -> None:
    """Raise InputError where no network of an outcome stayed finite; `key` names its learning rate."""
    if outcome.tests.empty:
        raise InputError(f"every network diverged at {key} = {learning_rate:g}; lower it")


def _part(sequences: Sequences, part: slice) -> Sequences:
    values = None if sequences.values is None else sequences.values[:, part]
    return Sequences(sequences.tokens[:, part], values, sequences.legal[:, part])


def _to(sequences: Sequences, device: str) -> Sequences:
    values = None if sequences.values is None else sequences.values.to(device)
    return Sequences(sequences.tokens.to(device), values, sequences.legal.to(device))
