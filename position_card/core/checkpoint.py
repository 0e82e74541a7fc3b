"""A checkpoint holds all that a training needs to go on after a kill, in a sealed file that names its run."""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from position_card.core import artifacts
from position_card.core.artifacts import UnusableError
from position_card.core.runtime import log

NamedParameters = Iterable[tuple[str, Tensor]]  # parameters by name
Moments = MutableMapping[Tensor, dict[str, Tensor]]  # of each parameter, as the state of a torch optimizer

NAME = "checkpoint.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what Adam keeps of each parameter


@dataclass(frozen=True)
class Place:
    """Where a training computes, and the folder of what it goes on from."""

    folder: Path
    checkpoint_every: int  # units of its work: iterations, steps, prompts
    device: str

    @property
    def made_with(self) -> dict[str, str]:
        """What a table of the training says of how it was computed: columns device and torch."""
        return {"device": self.device, "torch": torch.__version__}

    def apart(self, *names: str) -> "Place":
        """Return the place of one of several trainings of a job: a folder of its own in this one's."""
        return replace(self, folder=self.folder / "_".join(names))


@dataclass(frozen=True)
class State:
    """Where a training stood."""

    step: int
    facts: dict[str, Any]  # what JSON can hold
    tensors: dict[str, Tensor]
    cpu_seconds: float = 0.0  # of all processes that brought it here


def fingerprint(settings: object, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Take a checksum of all that decides the outcome of a training, to tell one run's checkpoint from another's."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([settings, torch.__version__], default=str).encode())
    for name, array in arrays.items():
        digest.update(f"{name}{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def write(path: Path, fingerprint: str, state: State) -> None:
    """Write `state` of the run with this fingerprint, whole or not at all."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in state.tensors.items()}
    labels = {"run": fingerprint, "step": state.step, "facts": state.facts, "cpu_seconds": state.cpu_seconds}
    artifacts.seal(path, arrays, labels)


def read(path: Path, fingerprint: str) -> State:
    """Read the state that `write` wrote for the run with this fingerprint.

    Raises UnusableError where there is none, and where it is cut short, changed or of another run.
    """
    labels, arrays = artifacts.unseal(path)
    if labels.get("run") != fingerprint:
        raise UnusableError(path, "was written with other settings, data or versions")
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return State(labels["step"], labels["facts"], tensors, labels["cpu_seconds"])


def resumed(path: Path, fingerprint: str, description: str) -> State | None:
    """Read as `read` does, but give None where there is nothing to go on from; a checkpoint of no use is reported."""
    if not path.exists():
        return None
    try:
        return read(path, fingerprint)
    except UnusableError as error:
        log.warning("%s: starts over, since %s %s", description, path, error.reason)
        return None


def cpu_minutes(folder: Path) -> float:
    """Count CPU minutes that the trainings whose checkpoints lie below `folder` took, over all kills and resumptions.

    What a killed process did after its last checkpoint was done again and counts once. A checkpoint of no use is none.
    """
    seconds = 0.0
    for path in folder.rglob(NAME):
        with suppress(UnusableError):
            seconds += artifacts.read_labels(path)["cpu_seconds"]
    return seconds / 60


class Clock:
    """CPU seconds of a training, over the processes that it took: those before this one, and its own from now on."""

    def __init__(self, before: float = 0.0) -> None:
        self.before, self.started = before, time.process_time()

    def seconds(self) -> float:
        """Count CPU seconds until now."""
        return self.before + time.process_time() - self.started


def initial_moments(parameter: Tensor) -> dict[str, Tensor]:
    """Return what Adam keeps of a parameter (MOMENTS), before the first step."""
    step, *averages = MOMENTS
    return {step: torch.zeros((), device=parameter.device)} | {name: torch.zeros_like(parameter) for name in averages}


def training_state(parameters: NamedParameters, moments: Moments) -> dict[str, Tensor]:
    """Return parameters, and what Adam keeps of them (`moments`), as tensors to write."""
    tensors = {}
    for name, parameter in parameters:
        tensors[f"parameter/{name}"] = parameter.detach()
        for moment, value in moments[parameter].items():
            tensors[f"{moment}/{name}"] = value
    return tensors


@torch.no_grad()
def restore(tensors: Mapping[str, Tensor], parameters: NamedParameters, moments: Moments) -> None:
    """Copy parameters, and what Adam keeps of them, from the tensors that `training_state` returned."""
    for name, parameter in parameters:
        parameter.copy_(tensors[f"parameter/{name}"])
        moments[parameter] = {moment: tensors[f"{moment}/{name}"].to(parameter.device) for moment in MOMENTS}
