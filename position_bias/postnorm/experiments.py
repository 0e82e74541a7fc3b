"""The networks of trials are trained, and what an experiment asks of them becomes a table, a row a number.

Seeds share data and, at one size, initial weights, so that what is compared is paired.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from torch import Tensor

from position_bias.postnorm import depths, tasks, training
from position_bias.postnorm.tasks import Nested
from position_bias.postnorm.training import Outcome, Setting
from position_bias.postnorm.trials import Trial
from position_bias.running.checkpoint import Place
from position_bias.small_networks.averaging import Averaging, bema
from position_bias.small_networks.ensemble import Recipe
from position_bias.small_networks.size import Size

POINTS = 400  # of a curve along training
SETTLED = 0.1  # of the iterations, the last, over which a settled loss is averaged


def run(trials: Sequence[Trial], names: Sequence[str], place: Place) -> dict[str, pd.DataFrame]:
    """Train the networks of every trial, and return the table of TABLES of each name, with the labels of the trials.

    Raises InputError where all networks of a trial diverge whose learning rate has a key.
    """
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in names}
    for index, trial in enumerate(trials):
        outcome = train(trial, place.apart(f"trial{index}"))
        for name, tables in found.items():
            tables.append(TABLES[name](trial, outcome, place.device).assign(**trial.labels))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in found.items()}


def train(trial: Trial, place: Place) -> Outcome:
    """Train and test the networks of a trial. Raises InputError as `run` does."""
    if trial.to_the_end:
        place = replace(place, checkpoint_every=trial.recipe["iterations"])
    outcome = training.train(
        tasks.task(trial.task),
        trial.scheme,
        Size(**trial.size),
        Setting(**trial.setting),
        Recipe(**trial.recipe),
        trial.seeds,
        place,
        None if trial.kappa is None else Averaging(trial.kappa),
    )
    if trial.rate_key:
        training.require_finite(outcome, trial.recipe["learning_rate"], trial.rate_key)
    return outcome


def tests(_trial: Trial, outcome: Outcome, _device: str) -> pd.DataFrame:
    """Tests at every length: `training.evaluate`."""
    return outcome.tests


def history(trial: Trial, outcome: Outcome, _device: str) -> pd.DataFrame:
    """Curves along training, of POINTS stretches: `training.history`."""
    return training.history(outcome, trial.seeds, POINTS)


def every_loss(trial: Trial, outcome: Outcome, _device: str) -> pd.DataFrame:
    """Loss and gradient norm at every iteration, as `training.history` has them; what diverges stays, as NaN."""
    return training.history(outcome, trial.seeds, trial.recipe["iterations"])


def settled_losses(trial: Trial, outcome: Outcome, _device: str) -> pd.DataFrame:
    """Task, labels, seed, and loss: its mean over the last iterations, missing where one of them is not finite."""
    last = outcome.trained.losses[int((1 - SETTLED) * trial.recipe["iterations"]) :]
    means = [loss.mean() if np.isfinite(loss).all() else np.nan for loss in last.T]
    losses = np.array(means, dtype=last.dtype)
    return pd.DataFrame({"task": trial.task, **trial.labels, "seed": trial.seeds, "loss": losses})


def distances(trial: Trial, outcome: Outcome, _device: str) -> pd.DataFrame:
    """The labels, seed, and tvd: the mean distance over trained lengths, missing where a member diverged."""
    found = outcome.tests
    near = found[(found["quantity"] == "tvd") & (found["length"] <= trial.setting["length"])]
    means = near.groupby("seed")["value"].mean().reindex(trial.seeds)
    return pd.DataFrame({**trial.labels, "seed": trial.seeds, "tvd": means.to_numpy()})


def by_depth(trial: Trial, outcome: Outcome, device: str) -> pd.DataFrame:
    """Tests on brackets deeper than those of training, and on others, of the seeds that stayed finite: `depths`."""
    task = tasks.task(trial.task)
    assert isinstance(task, Nested)
    weights, sequences = outcome.trained.parameters, trial.setting["sequences"]
    found = depths.by_depth(weights, outcome.architecture, task, trial.seeds, sequences, device)
    return found[found["seed"].isin(set(outcome.tests["seed"]))]


def averages(trial: Trial, outcome: Outcome, device: str) -> pd.DataFrame:
    """Tests of last weights, EMA and BEMA for each eta, of the seeds that stayed finite.

    Columns: those of `tests`, decay (of the rate), weights (raw, ema, bema), kappa and eta (0 but for bema).
    """
    task, setting, finite = tasks.task(trial.task), Setting(**trial.setting), set(outcome.tests["seed"])
    found = []
    for name, eta, weights in _averages(trial, outcome):
        tested = training.evaluate(weights, outcome.architecture, task, setting, trial.seeds, device)
        described = {"decay": trial.recipe["decay"], "weights": name, "kappa": trial.kappa, "eta": eta}
        found.append(tested[tested["seed"].isin(finite)].assign(**described))
    return pd.concat(found)


def _averages(trial: Trial, outcome: Outcome) -> Iterator[tuple[str, float, Mapping[str, Tensor]]]:
    assert trial.kappa is not None
    averaging, last, average = Averaging(trial.kappa), outcome.trained.parameters, outcome.trained.averaged
    yield "raw", 0.0, last
    yield "ema", 0.0, average
    for eta in trial.etas:
        correction = averaging.correction(trial.recipe["iterations"], eta)
        yield "bema", eta, bema(average, last, outcome.initial, correction)


TABLES: dict[str, Callable[[Trial, Outcome, str], pd.DataFrame]] = {  # an output of a rule -> what it has
    "tests": tests,
    "history": history,
    "losses": every_loss,
    "settled": settled_losses,
    "distances": distances,
    "depths": by_depth,
    "averages": averages,
}
