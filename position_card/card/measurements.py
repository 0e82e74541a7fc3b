"""The measurements of a decoder that its card shows, and the files that hold them. Reading them needs no torch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_card.core import artifacts
from position_card.core.runtime import InputError, whole_directory
from position_card.rollout import measurement
from position_card.rollout.measurement import Measurement
from position_card.rollout.parts import RecallScores

REPLACEMENT, RECALL, QUESTIONS = "replaced.safetensors", "recalled.safetensors", "questions.safetensors"  # of files
PROBABILITY = "log_probability"  # the column of the answers to questions that is kept as a tensor
FORMAT = 3  # of the files; another number where a tensor or a label of theirs means something else


@dataclass(frozen=True)
class ReplacementEffects:
    """How far the prediction moved when tokens of some prompts of n tokens were replaced."""

    n: int
    positions: tuple[int, ...]
    effects: NDArray[np.float64]  # total variation of the prediction [N, P]


@dataclass(frozen=True)
class RecallResult:
    """How well a decoder recalled passages of contexts of n tokens, by their place, after a cue of `cue` words."""

    n: int
    cue: int
    words: int  # that contexts are drawn from, and among which the right one is looked for
    scores: RecallScores

    @property
    def contexts(self) -> int:
        """How many contexts the decoder read."""
        return len(self.scores.correct)


@dataclass(frozen=True, eq=False)
class QuestionAnswers:
    """What a decoder makes of the built-in questions, as `Documents` has it: a row for each record and place."""

    table: pd.DataFrame
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Measurements:
    """All measurements of one decoder, by length of the prompts, and the facts that the card tells about them."""

    lengths: Mapping[int, Measurement]
    facts: Mapping[str, Any]
    replacement: ReplacementEffects | None = None
    recall: RecallResult | None = None
    questions: QuestionAnswers | None = None

    def losses_without_context(self, n: int) -> tuple[float, float]:
        """Return two losses to compare that of prompts of n tokens with, in nats a token.

        The first is that of the same probability for every token, and the second about that of a model that knows how
        often each token occurs in the text.
        """
        return math.log(self.facts["model"]["vocabulary"]), self.facts["prompts"][str(n)]["entropy"]

    def write(self, directory: str | Path) -> None:
        """Write a file for each length, and one each for questions, replacement and recall, if they were measured."""
        with whole_directory(directory) as partial:
            for n, part in self.lengths.items():
                measurement.write(partial / f"n{n}.safetensors", part, facts=self.facts, format=FORMAT)
            if self.replacement:
                labels = {"n": self.replacement.n, "positions": self.replacement.positions}
                artifacts.write_tensors(partial / REPLACEMENT, {"effects": self.replacement.effects}, **labels)
            if answers := self.questions:
                columns = {name: column.tolist() for name, column in answers.table.items() if name != PROBABILITY}
                probability = {PROBABILITY: answers.table[PROBABILITY].to_numpy(np.float64)}
                order = list(answers.table)
                artifacts.write_tensors(
                    partial / QUESTIONS, probability, columns=columns, order=order, facts=answers.facts
                )
            if recall := self.recall:
                labels = {"n": recall.n, "cue": recall.cue, "words": recall.words}
                artifacts.write_tensors(partial / RECALL, recall.scores._asdict(), **labels)


def read(directory: Path) -> Measurements:
    """Read the files that `Measurements.write` wrote into a directory, from the shortest length on.

    Raises InputError where a file is missing or not as it was written, or where another version wrote the files.
    """
    try:
        files = sorted(directory.glob("n*.safetensors"), key=lambda file: int(file.stem.removeprefix("n")))
        labels = artifacts.read_labels(files[-1])
        if labels.get("format") == FORMAT:
            return _read(directory, files, labels["facts"])
    except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
        reason = (
            f"a file {error.reason}" if isinstance(error, artifacts.UnusableError) else " ".join(str(error).split())
        )
        raise InputError(f"{directory} is damaged ({reason}); measure it anew") from error
    raise InputError(f"{directory} was written by another version of position-card; measure it anew")


def _read(directory: Path, files: Sequence[Path], facts: Mapping[str, Any]) -> Measurements:
    lengths = {part.n: part for part in map(measurement.read, files)}
    if set(facts["prompts"]) != set(map(str, lengths)):
        raise ValueError("the file of a length is missing")
    file, replacement = directory / REPLACEMENT, None
    if file.exists():
        labels = artifacts.read_labels(file)
        effects = artifacts.read_tensors(file)["effects"]
        replacement = ReplacementEffects(labels["n"], tuple(labels["positions"]), effects)
    recall = None
    if (file := directory / RECALL).exists():
        recall = RecallResult(**artifacts.read_labels(file), scores=RecallScores(**artifacts.read_tensors(file)))
    questions = None
    if (file := directory / QUESTIONS).exists():
        labels = artifacts.read_labels(file)
        table = pd.DataFrame({**labels["columns"], **artifacts.read_tensors(file)})[labels["order"]]
        questions = QuestionAnswers(table, labels["facts"])
    return Measurements(lengths, facts, replacement, recall, questions)
