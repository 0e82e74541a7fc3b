"""Which checkpoints of which language models the rules read.

It imports no torch, since every call of the workflow reads it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Config = Mapping[str, Any]


class Checkpoint(NamedTuple):
    """A model of the hub, or a seed of one trained here, at a step. Its files: below `results/STAGE/{checkpoint}/`."""

    model: str
    name: str  # hub, or seed0/step300

    def __str__(self) -> str:
        return f"{self.model}/{self.name}"


class TrainingRun(NamedTuple):
    """A model trained here from one seed, whose files are below `results/models/{training}/`."""

    model: str
    seed: int

    def __str__(self) -> str:
        return f"{self.model}/seed{self.seed}"


def steps(config: Config) -> list[int]:
    """Return the steps of training after which models are kept, in their order; the last is the end."""
    return sorted({*config["training"]["snapshots"], config["training"]["steps"]})


def checkpoints(config: Config, models: Iterable[str], at: Iterable[int] | None = None) -> list[Checkpoint]:
    """Return every seed of the models at the steps `at` of training, or at the last step where none are given.

    Models of the hub are trained already, and stand at the last step. Raises KeyError for a model that is not
    configured.
    """
    last = config["training"]["steps"]
    steps_asked = [last] if at is None else list(at)
    result: list[Checkpoint] = []
    for model in models:
        if model not in config["hub_models"]:
            runs = trainings(config, [model])
            result += [Checkpoint(model, f"seed{run.seed}/step{step}") for run in runs for step in steps_asked]
        elif last in steps_asked:
            result.append(Checkpoint(model, "hub"))
    return result


def trainings(config: Config, models: Iterable[str]) -> list[TrainingRun]:
    """Every seed of models that are trained here."""
    return [TrainingRun(model, seed) for model in models for seed in config["models"][model]["seeds"]]
