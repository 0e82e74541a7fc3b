"""Which networks every experiment of `postnorm` trains, worked out from its section of the configuration.

It imports no torch, since every call of the workflow reads it: a trial goes to its job as the numbers that it holds.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from position_bias.small_networks.settings import Placement, seeds_of_sweep

PostNorm = Mapping[str, Any]  # the section of the configuration
Numbers = dict[str, Any]

SCHEMES: dict[str, tuple[Placement, bool]] = {  # placement of RMSNorm, and whether one stands before the read-out
    "none": ("none", False),
    "pre": ("pre", False),
    "pre-final": ("pre", True),
    "post": ("post", False),
    "peri": ("peri", False),
    "peri-init": ("peri-init", False),
}
MINIMAL, LANGUAGE = "set_complement", "languages"  # the parts of the configuration that name tasks
COMPLEMENT = "set-complement-"  # before the vocabulary, in names of tasks
BINS = ("up to L", "L to 2L", "2L to 4L", "beyond 4L")  # of lengths, where L is the trained one
_EDGES = (1, 2, 4)  # trained lengths at which a bin ends
OF_AVERAGES = ("trained_share", "scheme", "seeds", "iterations", "batch", "learning_rate", "kappa")  # in their record


class Trial(NamedTuple):
    """Networks of one scheme and size, trained on one task at one learning rate: one from each seed."""

    task: str  # a name that `tasks.task` knows
    scheme: str
    size: Numbers  # of `small_networks.settings.Size`
    setting: Numbers  # of `training.Setting`
    recipe: Numbers  # of `ensemble.Recipe`
    seeds: list[int]
    labels: Numbers  # columns of its rows
    rate_key: str = ""  # where the configuration has the learning rate; none where all of its networks may diverge
    to_the_end: bool = False  # whether it goes on where all of its networks are lost
    kappa: float | None = None  # exponent of an average of the weights, where one is kept
    etas: tuple[float, ...] = ()  # exponents of the corrections of that average


def experiments(postnorm: PostNorm) -> dict[str, list[Trial]]:
    """Return the trials of each experiment by its name: a task of the configuration, or what the experiment varies."""
    tasks = [*postnorm["set_complement"]["lengths"], *postnorm["languages"]["lengths"]]
    stability_grid, sweep_grid = postnorm["stability"], postnorm["sweep"]["stability"]
    return {
        **{task: by_scheme(postnorm, task) for task in tasks},
        "dimension": by_width(postnorm),
        "depth": by_depth(postnorm),
        "averaging": by_average(postnorm),
        "stability": stability(postnorm, stability_grid, range(stability_grid["seeds"])),
        "sweep": sweep(postnorm),
        "sweep_stability": stability(postnorm, sweep_grid, seeds_of_sweep(sweep_grid["seeds"])),
    }


def part_of(task: str) -> str:
    """Return the part of the configuration that a task stands in."""
    return MINIMAL if task.startswith(COMPLEMENT) else LANGUAGE


def vocabulary(task: str) -> int:
    """Return v, the tokens of a Set Complement Task, from its name `set-complement-V`."""
    return int(task.removeprefix(COMPLEMENT))


def bin_of(length: npt.ArrayLike, trained_length: npt.ArrayLike) -> npt.NDArray[np.str_]:
    """Return the bin of BINS that every length lies in, same shape.

    Bins are multiples of L, which is `trained_length`; the upper end of a bin belongs to it. Both arguments broadcast.
    """
    return np.array(BINS)[np.searchsorted(_EDGES, np.asarray(length) / np.asarray(trained_length), side="left")]


def minimal(inputs: int) -> Numbers:
    """Return the size of the minimal transformer of v = `inputs` tokens: one layer, one head, no MLP, d = v - 1."""
    return {"layers": 1, "width": inputs - 1, "heads": 1, "hidden": 0}


def recipe(postnorm: PostNorm, iterations: int, learning_rate: float, decay: bool = True) -> Numbers:
    """Return the fields of `ensemble.Recipe`: linear warmup over a share of the iterations, then linear decay.

    With `decay` false the learning rate stays constant after the warmup.
    """
    return {
        "iterations": iterations,
        "learning_rate": learning_rate,
        "weight_decay": postnorm["weight_decay"],
        "warmup": round(postnorm["warmup"] * iterations),
        "decay": decay,
    }


def setting(postnorm: PostNorm, length: int, batch: int, longest: int) -> Numbers:
    """Return the fields of `training.TrialSetting`: training sequences, and the `longest` test sequences."""
    return {"length": length, "batch": batch, "longest": longest, "sequences": postnorm["test_sequences"]}


def by_scheme(postnorm: PostNorm, task: str) -> list[Trial]:
    """Return the trials of a task of the configuration, one for each scheme, at the learning rate of that scheme.

    On a Set Complement Task the network is the `minimal` transformer.
    """
    if task in postnorm["set_complement"]["lengths"]:
        part, rates = postnorm["set_complement"], postnorm["set_complement"]["learning_rate"][task]
        size, longest = minimal(vocabulary(task)), vocabulary(task) - 1
        rate_key = f"postnorm.set_complement.learning_rate.{task}"
    else:
        part, rates = postnorm["languages"], postnorm["languages"]["learning_rate"]
        size, longest = part["size"], part["lengths"][task] * part["furthest"]
        rate_key = "postnorm.languages.learning_rate"
    length = part["lengths"][task]
    return [
        Trial(
            task=task,
            scheme=scheme,
            size=size,
            setting=setting(postnorm, length, part["batch"], longest),
            recipe=recipe(postnorm, part["iterations"], rate),
            seeds=list(range(part["seeds"])),
            labels={"scheme": scheme, "task": task, "trained": length},
            rate_key=f"{rate_key}.{scheme}",
        )
        for scheme, rate in rates.items()
    ]


def by_width(postnorm: PostNorm) -> list[Trial]:
    """Trials of the minimal transformer at widths around v - 1, on the Set Complement Task of v tokens.

    One trial for each of the schemes and widths of the section `dimension`, which also says v and how many seeds. All
    else, such as the learning rate of a scheme, is that of `by_scheme`; labels have the width, too.
    """
    dimension = postnorm["dimension"]
    minimal_trials = {trial.scheme: trial for trial in by_scheme(postnorm, f"{COMPLEMENT}{dimension['vocabulary']}")}
    return [
        minimal_trials[scheme]._replace(
            size=minimal_trials[scheme].size | {"width": width},
            seeds=list(range(dimension["seeds"])),
            labels={"scheme": scheme, "width": width} | minimal_trials[scheme].labels,
        )
        for scheme, width in product(dimension["schemes"], dimension["widths"])
    ]


def by_depth(postnorm: PostNorm) -> list[Trial]:
    """Return the trials on brackets of little depth, which are tested on deeper ones of the same length.

    All else is as for the first task of the languages.
    """
    kinds, depth, length = (postnorm["depth"][name] for name in ("kinds", "trained", "length"))
    return [
        trial._replace(
            task=f"nested-{kinds}-{depth}-{length}",
            setting=trial.setting | {"length": length, "longest": length},
            labels={"scheme": trial.scheme, "task": f"nested-{kinds}-{depth}"},
        )
        for trial in by_scheme(postnorm, next(iter(postnorm["languages"]["lengths"])))
    ]


def by_average(postnorm: PostNorm) -> list[Trial]:
    """Return the trials in which weights are averaged, at a constant and at a decaying learning rate (section 4.5)."""
    numbers, languages = postnorm["averaging"], postnorm["languages"]
    tasks = [
        *(
            (f"{COMPLEMENT}{v}", minimal(v), round(numbers["trained_share"] * v), v - 1)
            for v in numbers["vocabularies"]
        ),
        *((task, languages["size"], *2 * [languages["lengths"][task]]) for task in numbers["deterministic"]),
    ]
    return [
        Trial(
            task=task,
            scheme=numbers["scheme"],
            size=size,
            setting=setting(postnorm, length, numbers["batch"], longest),
            recipe=recipe(postnorm, numbers["iterations"], numbers["learning_rate"], decay),
            seeds=list(range(numbers["seeds"])),
            labels={"task": task, "scheme": numbers["scheme"], "trained": length},
            rate_key="postnorm.averaging.learning_rate",
            kappa=numbers["kappa"],
            etas=tuple(numbers["etas"]),
        )
        for (task, size, length, longest), decay in product(tasks, (False, True))
    ]


def stability(postnorm: PostNorm, grid: Mapping[str, Any], seeds: Iterable[int]) -> list[Trial]:
    """Return the trials of a shallow and a deep network without warmup, at the schemes and learning rates of `grid`.

    Each is trained from every one of the `seeds`, and goes on where its loss is no longer finite.
    """
    task, length = next(iter(postnorm["set_complement"]["lengths"].items()))
    numbers, batch = postnorm["stability"], postnorm["set_complement"]["batch"]
    without_warmup = {**postnorm, "warmup": 0}
    return [
        Trial(
            task=task,
            scheme=scheme,
            size=size,
            setting=setting(postnorm, length, batch, length),
            recipe=recipe(without_warmup, numbers["iterations"], rate, decay=False),
            seeds=list(seeds),
            labels={"scheme": scheme, "layers": size["layers"], "learning_rate": rate, "task": task},
            to_the_end=True,
        )
        for size, scheme, rate in product(
            [minimal(vocabulary(task)), numbers["deep"]], grid["schemes"], grid["learning_rates"]
        )
    ]


def sweep(postnorm: PostNorm) -> list[Trial]:
    """Return the trials of several learning rates and numbers of iterations, on seeds of their own.

    They are tested at trained lengths, and show which learning rates the configuration should have.
    """
    numbers, tasks = postnorm["sweep"], [*postnorm["set_complement"]["lengths"], *postnorm["sweep"]["languages"]]
    return [
        trial._replace(
            setting=trial.setting | {"longest": trial.setting["length"]},
            recipe=recipe(postnorm, iterations := round(share * trial.recipe["iterations"]), rate),
            seeds=list(seeds_of_sweep(numbers["seeds"])),
            labels={"task": task, "scheme": trial.scheme, "learning_rate": rate, "iterations": iterations},
            rate_key="",
        )
        for task in tasks
        for trial, share, rate in product(by_scheme(postnorm, task), numbers["iterations"], numbers["learning_rates"])
    ]


def record(postnorm: PostNorm, experiment: str) -> Numbers:
    """Return what run.csv says of the training of a task, or of averages."""
    if experiment == "averaging":
        numbers = postnorm["averaging"]
        lists = {name: " ".join(map(str, numbers[name])) for name in ("vocabularies", "deterministic")}
        return {"task": experiment} | lists | {name: numbers[name] for name in OF_AVERAGES}
    trials = by_scheme(postnorm, experiment)
    return {
        "task": experiment,
        "schemes": " ".join(trial.scheme for trial in trials),
        "seeds": len(trials[0].seeds),
        "iterations": trials[0].recipe["iterations"],
        "batch": trials[0].setting["batch"],
        "learning_rates": " ".join(f"{trial.recipe['learning_rate']:g}" for trial in trials),
    }
