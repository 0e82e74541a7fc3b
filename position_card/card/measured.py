"""What was measured of a decoder for its card, and the files that keep it. Whoever reads them needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from position_card.core import artifacts
from position_card.core.runtime import InputError, whole_directory
from position_card.rollout import measurement
from position_card.rollout.measurement import Measurement
from position_card.rollout.parts import Recall

RECALLED = "recalled.safetensors"  # the file of what was recalled


@dataclass(frozen=True)
class Replaced:
    """What replacing tokens of some prompts did to the prediction."""

    n: int
    positions: tuple[int, ...]
    effects: NDArray[np.float64]  # total variation of the prediction [N, P]


@dataclass(frozen=True)
class Recalled:
    """What was recalled of contexts of n words by place, after a cue of so many."""

    n: int
    cue: int
    words: int  # that contexts are drawn from, and among which the right one is looked for
    found: Recall

    @property
    def contexts(self) -> int:
        """How many were read."""
        return len(self.found.correct)


@dataclass(frozen=True)
class Measured:
    """What was measured of one decoder, by length, and what the card says of how."""

    lengths: Mapping[int, Measurement]
    facts: Mapping[str, Any]
    replaced: Replaced | None = None
    recalled: Recalled | None = None

    def write(self, directory: str | Path) -> None:
        """Write a file for each length, and one for each of the other parts that were measured."""
        with whole_directory(directory) as partial:
            for n, found in self.lengths.items():
                measurement.write(partial / f"n{n}.safetensors", found, facts=self.facts)
            if self.replaced:
                labels = {"n": self.replaced.n, "positions": self.replaced.positions}
                artifacts.write_tensors(partial / "replaced.safetensors", {"effects": self.replaced.effects}, **labels)
            if of := self.recalled:
                labels = {"n": of.n, "cue": of.cue, "words": of.words}
                artifacts.write_tensors(partial / RECALLED, of.found._asdict(), **labels)


def read(directory: Path) -> Measured:
    """Read what `Measured.write` wrote, from the shortest length on.

    Raises InputError as `measurement.read`, and where a length lacks.
    """
    files = sorted(directory.glob("n*.safetensors"), key=lambda file: int(file.stem.removeprefix("n")))
    lengths = {found.n: found for found in map(measurement.read, files)}
    facts = artifacts.read_labels(files[-1])["facts"] if files else {}
    if not files or set(facts["prompts"]) != set(map(str, lengths)):
        raise InputError(f"{directory} lacks the measurement of a length; measure it anew")
    file, replaced = directory / "replaced.safetensors", None
    if file.exists():
        labels = artifacts.read_labels(file)
        effects = artifacts.read_tensors(file)["effects"]
        replaced = Replaced(labels["n"], tuple(labels["positions"]), effects)
    recalled = None
    if (file := directory / RECALLED).exists():
        recalled = Recalled(**artifacts.read_labels(file), found=Recall(**artifacts.read_tensors(file)))
    return Measured(lengths, facts, replaced, recalled)
