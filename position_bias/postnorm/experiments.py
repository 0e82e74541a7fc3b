"""These are the trainings that figures compare: by scheme, width, averaged weights, stability; and learning rates.

Each is a table, a row a number. Seeds share data and, at one size, initial weights, so that what is compared is paired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from torch import Tensor

from position_bias.postnorm import depths, training
from position_bias.postnorm.tasks import Nested, SetComplement, Task
from position_bias.postnorm.training import Outcome, Setting
from position_bias.running.checkpoint import Place
from position_bias.small_networks.averaging import Averaging, bema
from position_bias.small_networks.ensemble import Recipe
from position_bias.small_networks.size import Size

POINTS = 400  # of a curve along training


def schedule(iterations: int, warmup: float, weight_decay: float) -> Recipe:
    """AdamW with linear warmup over a share of the iterations, then linear decay; the rate is the scheme's."""
    return Recipe(iterations, 1.0, weight_decay, warmup=round(warmup * iterations), decay=True)


def minimal(vocabulary: int) -> Size:
    """The minimal transformer of the Set Complement Task: one layer, one head, attention only, d = v - 1."""
    return Size(layers=1, width=vocabulary - 1, heads=1, hidden=0)


def by_scheme(
    task: Task,
    size: Size,
    setting: Setting,
    recipe: Recipe,
    learning_rates: Mapping[str, float],
    seeds: Sequence[int],
    place: Place,
    key: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tests and history of every scheme that `learning_rates` names, each trained at its own.

    `key` is where the configuration has these rates. Raises InputError where all networks of a scheme diverge.
    """
    tests: list[pd.DataFrame] = []
    histories: list[pd.DataFrame] = []
    for scheme, outcome in _of_schemes(task, size, setting, recipe, learning_rates, seeds, place, key):
        tests.append(outcome.tests.assign(scheme=scheme))
        histories.append(training.history(outcome, seeds, POINTS).assign(scheme=scheme))
    return _joined(tests, task), _joined(histories, task)


def by_width(
    task: SetComplement,
    widths: Sequence[int],
    setting: Setting,
    recipe: Recipe,
    learning_rates: Mapping[str, float],
    seeds: Sequence[int],
    place: Place,
    key: str,
) -> pd.DataFrame:
    """Tests of the minimal transformer with d other than v - 1, too: columns of `by_scheme` and width."""
    found = []
    for scheme, rate in learning_rates.items():
        for width in widths:
            size, of_rate = replace(minimal(task.inputs), width=width), replace(recipe, learning_rate=rate)
            apart = place.apart(task.name, scheme, f"width{width}")
            outcome = training.train(task, scheme, size, setting, of_rate, seeds, apart)
            training.require_finite(outcome, rate, f"{key}.{scheme}")
            found.append(outcome.tests.assign(scheme=scheme, width=width))
    return _joined(found, task)


def by_average(
    task: Task,
    size: Size,
    scheme: str,
    setting: Setting,
    recipe: Recipe,
    learning_rate: float,
    averaging: Averaging,
    etas: Sequence[float],
    seeds: Sequence[int],
    place: Place,
) -> pd.DataFrame:
    """Tests of last weights, EMA and BEMA for each eta, at a constant and a decaying learning rate.

    Columns: those of `by_scheme`, decay (of the rate), weights (raw, ema, bema), kappa and eta (0 but for bema).
    """
    found = []
    for decay in (False, True):
        of_rate = replace(recipe, learning_rate=learning_rate, decay=decay)
        apart = place.apart(task.name, scheme, f"decay{decay}")
        outcome = training.train(task, scheme, size, setting, of_rate, seeds, apart, averaging)
        training.require_finite(outcome, learning_rate, "postnorm.averaging.learning_rate")
        finite = sorted(set(outcome.tests["seed"]))
        for name, eta, weights in _averages(outcome, averaging, etas, recipe.iterations):
            tested = training.evaluate(weights, outcome.architecture, task, setting, seeds, place.device)
            tested = tested[tested["seed"].isin(finite)]
            found.append(tested.assign(decay=decay, weights=name, kappa=averaging.kappa, eta=eta))
    return _joined(found, task).assign(scheme=scheme)


def _averages(
    outcome: Outcome, averaging: Averaging, etas: Sequence[float], iterations: int
) -> Iterator[tuple[str, float, Mapping[str, Tensor]]]:
    last, average = outcome.trained.parameters, outcome.trained.averaged
    yield "raw", 0.0, last
    yield "ema", 0.0, average
    for eta in etas:
        yield "bema", eta, bema(average, last, outcome.initial, averaging.correction(iterations, eta))


def by_depth(
    task: Nested,
    size: Size,
    setting: Setting,
    recipe: Recipe,
    learning_rates: Mapping[str, float],
    seeds: Sequence[int],
    place: Place,
) -> pd.DataFrame:
    """How every scheme does on brackets deeper than those of training, and on others: `depths.by_depth` and scheme.

    Seeds that diverged are left out. Raises InputError where all networks of a scheme did.
    """
    found, key = [], "postnorm.languages.learning_rate"
    for scheme, outcome in _of_schemes(task, size, setting, recipe, learning_rates, seeds, place, key):
        weights, network = outcome.trained.parameters, outcome.architecture
        tested = depths.by_depth(weights, network, task, seeds, setting.sequences, place.device)
        found.append(tested[tested["seed"].isin(set(outcome.tests["seed"]))].assign(scheme=scheme))
    return _joined(found, task)


def stability(
    task: Task,
    schemes: Sequence[str],
    sizes: Sequence[Size],
    learning_rates: Sequence[float],
    setting: Setting,
    recipe: Recipe,
    seeds: Sequence[int],
    place: Place,
) -> pd.DataFrame:
    """Return loss and gradient norm at every iteration, without warmup of any scheme, size and learning rate.

    Columns of `training.history`, scheme, layers and learning_rate. What diverges stays, as NaN.
    """
    whole = replace(place, checkpoint_every=recipe.iterations)  # one whose members are all lost goes on to the end
    found = []
    for size, scheme, rate in product(sizes, schemes, learning_rates):
        apart = whole.apart(task.name, scheme, f"layers{size.layers}", f"rate{rate:g}")
        outcome = training.train(task, scheme, size, setting, replace(recipe, learning_rate=rate), seeds, apart)
        curves = training.history(outcome, seeds, recipe.iterations)
        found.append(curves.assign(scheme=scheme, layers=size.layers, learning_rate=rate))
    return _joined(found, task)


def settled_losses(curves: pd.DataFrame, share: float = 0.1) -> pd.DataFrame:
    """Mean loss over the last `share` of the iterations of `stability`, missing where one of them is not finite.

    A row a training: task, scheme, layers, learning_rate, seed, loss.
    """
    iterations = curves["iteration"].max()
    last = curves[curves["iteration"] > (1 - share) * iterations]
    losses = last["loss"].where(np.isfinite(last["loss"]))
    keys = ["task", "scheme", "layers", "learning_rate", "seed"]
    means = last.assign(loss=losses).groupby(keys, sort=False)["loss"].apply(lambda loss: loss.mean(skipna=False))
    return means.reset_index()


def sweep(
    task: Task,
    size: Size,
    schemes: Sequence[str],
    setting: Setting,
    recipes: Sequence[Recipe],
    learning_rates: Sequence[float],
    seeds: Sequence[int],
    place: Place,
) -> pd.DataFrame:
    """Total variation distance at trained lengths, at every learning rate and number of iterations.

    A row a seed: task, scheme, learning_rate, iterations, seed, tvd (mean over lengths up to the trained one; missing
    where a member diverged).
    """
    found = []
    for scheme, recipe, rate in product(schemes, recipes, learning_rates):
        tried = replace(recipe, learning_rate=rate)
        apart = place.apart(task.name, scheme, f"{recipe.iterations}", f"{rate:g}")
        outcome = training.train(task, scheme, size, setting, tried, seeds, apart)
        distances = outcome.tests[(outcome.tests["quantity"] == "tvd") & (outcome.tests["length"] <= setting.length)]
        tvd = distances.groupby("seed")["value"].mean().reindex(list(seeds))
        row = {"task": task.name, "scheme": scheme, "learning_rate": rate, "iterations": recipe.iterations}
        found += [{**row, "seed": seed, "tvd": value} for seed, value in tvd.items()]
    return pd.DataFrame(found)


def _of_schemes(
    task: Task,
    size: Size,
    setting: Setting,
    recipe: Recipe,
    learning_rates: Mapping[str, float],
    seeds: Sequence[int],
    place: Place,
    key: str,
) -> Iterator[tuple[str, Outcome]]:
    """Train every scheme at its own rate; `key` is where the configuration has these. Raises as `by_scheme` does."""
    for scheme, rate in learning_rates.items():
        apart, of_rate = place.apart(task.name, scheme), replace(recipe, learning_rate=rate)
        outcome = training.train(task, scheme, size, setting, of_rate, seeds, apart)
        training.require_finite(outcome, rate, f"{key}.{scheme}")
        yield scheme, outcome


def _joined(tables: list[pd.DataFrame], task: Task) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True).assign(task=task.name)
