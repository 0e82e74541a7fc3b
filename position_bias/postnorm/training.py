"""Decoders under every scheme of norms are trained on short sequences of a task and tested on longer ones.

What an experiment asks of its networks becomes a table, a row a number. Seeds share data and, at one size, initial
weights, so that what is compared is paired.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from position_bias.postnorm import languages, tasks
from position_bias.postnorm.languages import Language
from position_bias.postnorm.runs import BINS, SCHEMES, Trial, bin_of
from position_bias.postnorm.tasks import Sequences, SequenceTask
from position_bias.small_networks import decoder, ensemble
from position_bias.small_networks.averaging import bema, share
from position_bias.small_networks.decoder import Architecture, AttentionTrace
from position_bias.small_networks.ensemble import Parameters, Recipe, TrainingResult
from position_card.core.checkpoint import Place
from position_card.core.runtime import InputError

QUANTITIES = ("tvd", "legal_tvd", "leak", "gap", "largest_weight")
DRAWS_AT_ONCE = 2048  # training sequences of a seed that are drawn at once
PART = 64  # test sequences of a seed that pass through the networks at once
LENGTHS_A_BIN = 4  # at which words are told from near misses
POINTS = 400  # of a curve along training
LAST_SHARE = 0.1  # of the iterations, the last, over which a settled loss is averaged
WORDS = 4  # times as many words of brackets as sequences, since few are deep


@dataclass(frozen=True)
class TrialSetting:
    """What networks of a task are trained on and tested with."""

    length: int  # of training sequences
    batch: int
    longest: int  # of test sequences
    sequences: int  # test sequences of a seed


@dataclass(frozen=True)
class Networks:
    """Networks of one scheme and size, one from each seed, with the task that they learn."""

    task: SequenceTask
    architecture: Architecture
    setting: TrialSetting
    seeds: Sequence[int]
    device: str


@dataclass(frozen=True)
class TrialOutcome:
    """What became of the networks of a trial."""

    trial: Trial
    networks: Networks
    initial: Parameters
    result: TrainingResult
    finite: list[int]  # the seeds whose networks did not diverge
    tests: pd.DataFrame  # seed, length, quantity, value, of these seeds


def run(trials: Sequence[Trial], names: Sequence[str], place: Place) -> dict[str, pd.DataFrame]:
    """Train the networks of every trial, and return the table of TABLES of each name, with the labels of the trials.

    Raises InputError where all networks of a trial diverge whose learning rate has a key.
    """
    by_name: dict[str, list[pd.DataFrame]] = {name: [] for name in names}
    for index, trial in enumerate(trials):
        outcome = train(trial, place.apart(f"trial{index}"))
        if trial.rate_key and not outcome.finite:
            rate = trial.recipe["learning_rate"]
            raise InputError(f"every network diverged at {trial.rate_key} = {rate:g}; lower it")
        for name, tables in by_name.items():
            tables.append(TABLES[name](outcome).assign(**trial.labels))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in by_name.items()}


def networks(trial: Trial, device: str) -> Networks:
    """Return the networks that a trial trains, with their task, architecture and sequences."""
    task, (placement, final) = tasks.task(trial.task), SCHEMES[trial.scheme]
    architecture = Architecture(
        task.size, task.size, placement=placement, final_norm=final, has_values=task.has_values, **trial.size
    )
    return Networks(task, architecture, TrialSetting(**trial.setting), trial.seeds, device)


def train(trial: Trial, place: Place) -> TrialOutcome:
    """Train the networks of a trial, all at once, and test them.

    Targets are single legal outputs, drawn uniformly. What a seed draws does not depend on the scheme, so that schemes
    compare in pairs. A killed call resumes from `place`.
    """
    of_trial = networks(trial, place.device)
    initial = decoder.initial(of_trial.architecture, trial.seeds, place.device)
    batches, recipe = TaskBatches(of_trial), Recipe(**trial.recipe)

    def draw(iteration: int) -> tuple[Tensor, ...]:
        sequences, targets = batches(iteration)
        return sequences.tokens, targets, *([] if sequences.values is None else [sequences.values])

    def loss(weights: Mapping[str, Tensor], tokens: Tensor, targets: Tensor, values: Tensor | None = None) -> Tensor:
        logits = decoder.logits(weights, of_trial.architecture, tokens, values)
        return ensemble.mean_cross_entropy(logits, targets)

    result = ensemble.train(
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
    finite = [seed for index, seed in enumerate(trial.seeds) if index not in result.divergences]
    tests = evaluate(result.parameters, of_trial)
    return TrialOutcome(trial, of_trial, initial, result, finite, tests[tests["seed"].isin(finite)])


class TaskBatches:
    """Training batches: `batches(iteration)` gives sequences and targets `[S, M, T]`, whichever were drawn before."""

    def __init__(self, networks: Networks) -> None:
        self.networks, self.batch = networks, networks.setting.batch
        self.in_block = max(1, DRAWS_AT_ONCE // self.batch)  # iterations that are drawn for at once
        self.block = lru_cache(maxsize=1)(self._block)

    def __call__(self, iteration: int) -> tuple[Sequences, Tensor]:
        block, place = divmod(iteration - 1, self.in_block)
        sequences, targets = self.block(block)
        part = slice(place * self.batch, (place + 1) * self.batch)
        return sequences.to_device(self.networks.device, part), targets[:, part]

    def _block(self, block: int) -> tuple[Sequences, Tensor]:
        task, seeds, device = self.networks.task, self.networks.seeds, self.networks.device
        count, length = self.in_block * self.batch, self.networks.setting.length
        sequences = task.sequences(seeds, ("batches", block), count, length).to_device(device)
        generators = ensemble.generators(seeds, "targets", block)
        uniform = torch.stack([torch.rand(sequences.legal.shape[1:3], generator=generator) for generator in generators])
        return sequences, tasks.draw_targets(sequences.legal, uniform.to(device))


@torch.no_grad()
def evaluate(weights: Mapping[str, Tensor], networks: Networks) -> pd.DataFrame:
    """How networks do at every length up to the longest: a row a number, with seed, length, quantity and value.

    Means over test sequences of: `tvd`, the total variation distance to the uniform distribution over legal outputs;
    `leak`, the mass on others; `legal_tvd`, the distance among legal outputs alone; `largest_weight` of a row of
    attention, over heads and layers; and `gap`, the mean logit of legal outputs less that of others. Languages have no
    gap, since all outputs may be legal; instead, at some lengths of each bin, `auc`: words told from near misses.
    """
    setting, seeds, language = networks.setting, networks.seeds, networks.task.language
    sequences = networks.task.sequences(seeds, "tests", setting.sequences, setting.longest)
    begin_tokens = sequences.tokens.shape[-1] - setting.longest  # begin tokens
    total = torch.zeros(len(QUANTITIES), len(seeds), setting.longest)
    for start in range(0, setting.sequences, PART):
        part = sequences.to_device(networks.device, slice(start, start + PART))
        total += judge(weights, networks.architecture, part).sum(2)[..., begin_tokens:].cpu()
    means = (total / setting.sequences).numpy()
    rows: list[dict[str, object]] = [
        {"seed": seed, "length": length, "quantity": quantity, "value": float(means[row, member, length - 1])}
        for row, quantity in enumerate(QUANTITIES)
        if not (language and quantity == "gap")
        for member, seed in enumerate(seeds)
        for length in range(1, setting.longest + 1)
    ]
    if language:
        rows += _auc_rows(weights, networks, language)
    return pd.DataFrame(rows)


def judge(weights: Mapping[str, Tensor], network: Architecture, sequences: Sequences) -> Tensor:
    """Return the QUANTITIES (`evaluate`) of every sequence and position, `[quantities, S, M, T]`, float32."""
    traces: list[AttentionTrace] = []
    logits = decoder.logits(weights, network, sequences.tokens, sequences.values, traces.append)
    legal = sequences.legal
    count = legal.sum(-1)
    p = logits.softmax(-1)
    target = legal / count[..., None]
    p_legal = logits.masked_fill(~legal, -torch.inf).softmax(-1)
    gap = (logits * legal).sum(-1) / count - (logits * ~legal).sum(-1) / (legal.shape[-1] - count).clamp(min=1)
    largest = torch.stack([layer.weights.amax(-1).mean(2) for layer in traces]).mean(0)
    return torch.stack(
        [
            (p - target).abs().sum(-1) / 2,
            (p_legal - target).abs().sum(-1) / 2,
            (p * ~legal).sum(-1),
            gap,
            largest,
        ]
    )


def _auc_rows(weights: Mapping[str, Tensor], networks: Networks, language: Language) -> list[dict[str, object]]:
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


def area_under_curve(positives: Tensor, negatives: Tensor) -> float:
    """Return the ROC AUC: how often one of `positives` [m] exceeds one of `negatives` [n], where ties count half.

    It is NaN where one of them is empty.
    """
    difference = positives[:, None] - negatives
    return float(((difference > 0).double() + (difference == 0) / 2).mean())


def _lengths_to_classify(language: Language, setting: TrialSetting) -> list[int]:
    """Lengths spread over each bin at which there are words and near misses."""
    lengths = [n for n in range(2, setting.longest + 1) if languages.has_near_misses(language, n)]
    of_bin = {name: [n for n in lengths if bin_of(n, setting.length) == name] for name in BINS}
    choices: set[int] = set()
    for in_bin in of_bin.values():
        places = np.linspace(0, len(in_bin) - 1, min(LENGTHS_A_BIN, len(in_bin)))
        choices |= {in_bin[round(place)] for place in places}
    return sorted(choices)


def least_probability(weights: Mapping[str, Tensor], network: Architecture, tokens: Tensor) -> Tensor:
    """Return the lowest log probability (nats) that a network gives to any symbol of a sequence or its end, `[S, M]`.

    `tokens` [S, M, T] begin with the begin token.
    """
    log_p = decoder.logits(weights, network, tokens).log_softmax(-1)
    end = torch.full_like(tokens[..., :1], network.outputs - 1)
    next_tokens = torch.cat([tokens[..., 1:], end], -1)
    return log_p.gather(-1, next_tokens[..., None])[..., 0].amin(-1)


# What experiments ask of the networks of a trial


def stretches(outcome: TrialOutcome, points: int) -> pd.DataFrame:
    """Return loss and gradient norm along training, in at most `points` stretches of iterations; NaN is kept.

    A row a stretch and seed: seed, iteration (its last), loss and gradient_norm (means over it), highest_loss and
    highest_gradient_norm.
    """
    result = outcome.result
    ends = np.unique(np.linspace(0, len(result.losses), points + 1).round().astype(int))[1:]
    rows = []
    for member, seed in enumerate(outcome.trial.seeds):
        for start, end in zip([0, *ends], ends, strict=False):
            loss, gradient = (values[start:end, member] for values in (result.losses, result.gradient_norms))
            row = {"seed": seed, "iteration": int(end), "loss": loss.mean(), "gradient_norm": gradient.mean()}
            rows.append({**row, "highest_loss": loss.max(), "highest_gradient_norm": gradient.max()})
    return pd.DataFrame(rows)


def settled_losses(outcome: TrialOutcome) -> pd.DataFrame:
    """Return a row for each seed of a trial: task, the labels of the trial, seed, and loss.

    The loss is its mean over the last share LAST_SHARE of the iterations, and missing where one of them is not finite.
    """
    trial = outcome.trial
    last = outcome.result.losses[int((1 - LAST_SHARE) * trial.recipe["iterations"]) :]
    means = [loss.mean() if np.isfinite(loss).all() else np.nan for loss in last.T]
    losses = np.array(means, dtype=last.dtype)
    return pd.DataFrame({"task": trial.task, **trial.labels, "seed": trial.seeds, "loss": losses})


def distances(outcome: TrialOutcome) -> pd.DataFrame:
    """The labels, seed, and tvd: the mean distance over trained lengths, missing where a member diverged."""
    trial, tests = outcome.trial, outcome.tests
    of_training = tests[(tests["quantity"] == "tvd") & (tests["length"] <= trial.setting["length"])]
    means = of_training.groupby("seed")["value"].mean().reindex(trial.seeds)
    return pd.DataFrame({**trial.labels, "seed": trial.seeds, "tvd": means.to_numpy()})


@torch.no_grad()
def by_depth(outcome: TrialOutcome) -> pd.DataFrame:
    """How networks do on brackets up to the depth of training and deeper: seed, deeper, quantity and value.

    Sequences are as long as in training, so that attention is over as many tokens, and what a norm after attention does
    about length does not come in. `tvd` is the mean total variation distance to the uniform distribution over legal
    outputs, over the positions of prefixes at which as many brackets are open. `auc` is the ROC AUC of words against
    near misses, of the words whose greatest depth is in question; missing where none is.
    """
    nested, networks, weights = tasks.nested(outcome.trial.task), outcome.networks, outcome.result.parameters
    seeds, sequences, device = networks.seeds, networks.setting.sequences, networks.device
    prefixes = tasks.formal(nested.deep_language).sequences(seeds, "depths", sequences, nested.longest)
    on_device = prefixes.to_device(device)
    tvds = judge(weights, networks.architecture, on_device)[QUANTITIES.index("tvd")].cpu()
    of_kinds = tasks.words(nested.deep_language, seeds, "depths", WORDS * sequences, nested.longest)
    scores = [least_probability(weights, networks.architecture, tokens.to(device)).cpu() for tokens in of_kinds]
    is_symbol = torch.arange(nested.longest + 1) > 0  # the begin token says nothing of depth
    rows: list[dict[str, object]] = []
    for deeper in (False, True):
        positions = ((nested.depths(prefixes.tokens) > nested.depth) == deeper) & is_symbol
        words = (nested.depths(of_kinds[0]).amax(-1) > nested.depth) == deeper
        for member, seed in enumerate(seeds):
            tvd = float(tvds[member][positions[member]].mean())
            auc = area_under_curve(*(of_kind[member][words[member]] for of_kind in scores))
            rows += [
                {"seed": seed, "deeper": deeper, "quantity": name, "value": value}
                for name, value in (("tvd", tvd), ("auc", auc))
                if seed in outcome.finite
            ]
    return pd.DataFrame(rows)


def averages(outcome: TrialOutcome) -> pd.DataFrame:
    """Tests of last weights, EMA and BEMA for each eta, of the seeds that stayed finite.

    Columns: those of `tests`, decay (of the rate), weights (raw, ema, bema), kappa and eta (0 but for bema).
    """
    trial, last, average = outcome.trial, outcome.result.parameters, outcome.result.average
    assert trial.kappa is not None
    by_kind = {("raw", 0.0): last, ("ema", 0.0): average}
    for eta in trial.etas:
        correction = share(trial.recipe["iterations"], eta)
        by_kind["bema", eta] = bema(average, last, outcome.initial, correction)
    frames = []
    for (name, eta), weights in by_kind.items():
        tests = evaluate(weights, outcome.networks)
        labels = {"decay": trial.recipe["decay"], "weights": name, "kappa": trial.kappa, "eta": eta}
        frames.append(tests[tests["seed"].isin(outcome.finite)].assign(**labels))
    return pd.concat(frames)


TABLES: dict[str, Callable[[TrialOutcome], pd.DataFrame]] = {  # an output of a rule -> what it has
    "tests": lambda outcome: outcome.tests,
    "history": lambda outcome: stretches(outcome, POINTS),
    "losses": lambda outcome: stretches(outcome, outcome.trial.recipe["iterations"]),
    "settled": settled_losses,
    "distances": distances,
    "depths": by_depth,
    "averages": averages,
}
