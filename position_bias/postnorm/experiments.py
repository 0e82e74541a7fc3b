"""The networks of trials are trained, and what an experiment asks of them becomes a table, a row a number.

Seeds share data and, at one size, initial weights, so that what is compared is paired.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch

from position_bias.postnorm import tasks, training
from position_bias.postnorm.training import Outcome
from position_bias.postnorm.trials import Trial
from position_bias.running.checkpoint import Place
from position_bias.running.runtime import InputError
from position_bias.small_networks.averaging import bema, share

POINTS = 400  # of a curve along training
SETTLED = 0.1  # of the iterations, the last, over which a settled loss is averaged
WORDS = 4  # times as many words of brackets as sequences, since few are deep


def run(trials: Sequence[Trial], names: Sequence[str], place: Place) -> dict[str, pd.DataFrame]:
    """Train the networks of every trial, and return the table of TABLES of each name, with the labels of the trials.

    Raises InputError where all networks of a trial diverge whose learning rate has a key.
    """
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in names}
    for index, trial in enumerate(trials):
        outcome = training.train(trial, place.apart(f"trial{index}"))
        if trial.rate_key and not outcome.finite:
            rate = trial.recipe["learning_rate"]
            raise InputError(f"every network diverged at {trial.rate_key} = {rate:g}; lower it")
        for name, tables in found.items():
            tables.append(TABLES[name](outcome).assign(**trial.labels))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in found.items()}


def stretches(outcome: Outcome, points: int) -> pd.DataFrame:
    """Return loss and gradient norm along training, in at most `points` stretches of iterations; NaN is kept.

    A row a stretch and seed: seed, iteration (its last), loss and gradient_norm (means over it), highest_loss and
    highest_gradient_norm.
    """
    trained = outcome.trained
    ends = np.unique(np.linspace(0, len(trained.losses), points + 1).round().astype(int))[1:]
    rows = []
    for member, seed in enumerate(outcome.trial.seeds):
        for start, end in zip([0, *ends], ends, strict=False):
            loss, gradient = (values[start:end, member] for values in (trained.losses, trained.gradient_norms))
            row = {"seed": seed, "iteration": int(end), "loss": loss.mean(), "gradient_norm": gradient.mean()}
            rows.append({**row, "highest_loss": loss.max(), "highest_gradient_norm": gradient.max()})
    return pd.DataFrame(rows)


def settled_losses(outcome: Outcome) -> pd.DataFrame:
    """Task, labels, seed, and loss: its mean over the last iterations, missing where one of them is not finite."""
    trial = outcome.trial
    last = outcome.trained.losses[int((1 - SETTLED) * trial.recipe["iterations"]) :]
    means = [loss.mean() if np.isfinite(loss).all() else np.nan for loss in last.T]
    losses = np.array(means, dtype=last.dtype)
    return pd.DataFrame({"task": trial.task, **trial.labels, "seed": trial.seeds, "loss": losses})


def distances(outcome: Outcome) -> pd.DataFrame:
    """The labels, seed, and tvd: the mean distance over trained lengths, missing where a member diverged."""
    trial, found = outcome.trial, outcome.tests
    near = found[(found["quantity"] == "tvd") & (found["length"] <= trial.setting["length"])]
    means = near.groupby("seed")["value"].mean().reindex(trial.seeds)
    return pd.DataFrame({**trial.labels, "seed": trial.seeds, "tvd": means.to_numpy()})


@torch.no_grad()
def by_depth(outcome: Outcome) -> pd.DataFrame:
    """How networks do on brackets up to the depth of training and deeper: seed, deeper, quantity and value.

    Sequences are as long as in training, so that attention is over as many tokens, and what a norm after attention does
    about length does not come in. `tvd` is the mean total variation distance to the uniform distribution over legal
    outputs, over the positions of prefixes at which as many brackets are open. `auc` is the ROC AUC of words against
    near misses, of the words whose greatest depth is in question; missing where none is.
    """
    nested, networks, weights = tasks.nested(outcome.trial.task), outcome.networks, outcome.trained.parameters
    seeds, sequences, device = networks.seeds, networks.setting.sequences, networks.device
    prefixes = tasks.formal(nested.unbounded).sequences(seeds, "depths", sequences, nested.longest)
    seen = prefixes.on(device)
    tvds = training.judge(weights, networks.architecture, seen)[training.QUANTITIES.index("tvd")].cpu()
    of_kinds = tasks.words(nested.unbounded, seeds, "depths", WORDS * sequences, nested.longest)
    scores = [
        training.least_probability(weights, networks.architecture, tokens.to(device)).cpu() for tokens in of_kinds
    ]
    begun = torch.arange(nested.longest + 1) > 0  # the begin token says nothing of depth
    rows: list[dict[str, object]] = []
    for deeper in (False, True):
        positions = ((nested.depths(prefixes.tokens) > nested.depth) == deeper) & begun
        words = (nested.depths(of_kinds[0]).amax(-1) > nested.depth) == deeper
        for member, seed in enumerate(seeds):
            tvd = float(tvds[member][positions[member]].mean())
            auc = training.area_under_curve(*(of_kind[member][words[member]] for of_kind in scores))
            rows += [
                {"seed": seed, "deeper": deeper, "quantity": name, "value": value}
                for name, value in (("tvd", tvd), ("auc", auc))
                if seed in outcome.finite
            ]
    return pd.DataFrame(rows)


def averages(outcome: Outcome) -> pd.DataFrame:
    """Tests of last weights, EMA and BEMA for each eta, of the seeds that stayed finite.

    Columns: those of `tests`, decay (of the rate), weights (raw, ema, bema), kappa and eta (0 but for bema).
    """
    trial, last, average = outcome.trial, outcome.trained.parameters, outcome.trained.averaged
    assert trial.kappa is not None
    every = {("raw", 0.0): last, ("ema", 0.0): average}
    for eta in trial.etas:
        correction = share(trial.recipe["iterations"], eta)
        every["bema", eta] = bema(average, last, outcome.initial, correction)
    found = []
    for (name, eta), weights in every.items():
        tested = training.evaluate(weights, outcome.networks)
        described = {"decay": trial.recipe["decay"], "weights": name, "kappa": trial.kappa, "eta": eta}
        found.append(tested[tested["seed"].isin(outcome.finite)].assign(**described))
    return pd.concat(found)


TABLES: dict[str, Callable[[Outcome], pd.DataFrame]] = {  # an output of a rule -> what it has
    "tests": lambda outcome: outcome.tests,
    "history": lambda outcome: stretches(outcome, POINTS),
    "losses": lambda outcome: stretches(outcome, outcome.trial.recipe["iterations"]),
    "settled": settled_losses,
    "distances": distances,
    "depths": by_depth,
    "averages": averages,
}
