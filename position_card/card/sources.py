"""Where the models and the text of a card come from, and what their files are called.

It needs no torch, whose seconds a name that is not there must not cost.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from position_card.core.runtime import InputError
from position_card.models import files
from position_card.models.files import GGUF
from position_card.models.source import PACKAGE

Stamp = list[tuple[str, int, int]]  # of files: what tells them from others of the same names

TEXT = "standard-library"  # where none is named
TEXTS = (".txt", ".jsonl")  # files of text that are read by themselves
MODEL = ("*.json", "*.safetensors", "chat_template.jinja")  # files of a model in its directory: those of `hub.PATTERNS`
BETWEEN_NAMES = "-and-"  # between the names of models that one figure shows
MOST_FILES = 100_000  # in the folder of a text, others included; of them, 4 million characters are read
STEP = re.compile(r"(.*(?<![a-z])(?:checkpoint|ckpt|step|iter)[-_]?)(\d+)(?!\.?\d|[a-z])", re.IGNORECASE)  # in a name
TRAINER_STATE = "trainer_state.json"  # what Trainer of transformers writes beside the weights of a checkpoint
MOST_COMPARED = 4  # models in one figure, untrained copies included: the rows of a printed page


class RefusedError(InputError):
    """The command is wrong, whatever the models are."""


@dataclass(frozen=True)
class Source:
    """Where a model or a text comes from."""

    argument: str  # as it was typed
    kind: Literal["path", "named", "hub"]
    untrained: int | None = None  # the seed that draws the weights of an untrained copy; None of the model itself

    @property
    def path(self) -> Path:
        """The file or directory that is meant."""
        return Path(self.argument).expanduser()

    @property
    def label(self) -> str:
        """As a reader knows it: the name of the file or directory, or what was typed; of a copy, with its seed."""
        return self.with_seed(Path(os.path.abspath(self.path)).name if self.kind == "path" else self.argument)

    @property
    def name(self) -> str:
        """As its files are called: lower-case letters, digits, dots and dashes."""
        last = original(self).label.removesuffix(GGUF).rsplit("/", 1)[-1].rsplit(":", 1)[-1]
        return self.with_seed(re.sub(r"[^a-z0-9.]+", "-", last.lower()).strip("-.") or "unnamed")

    def with_seed(self, name: str) -> str:
        """Return the name of the model, or of this untrained copy of it."""
        return name if self.untrained is None else f"{name}-untrained-{self.untrained}"


def files_of_model(model: Source) -> list[Path]:
    """Return the files of a model that is named by its path, without notes and folders that lie there."""
    if model.kind != "path" or model.path.is_file():
        return [model.path] if model.kind == "path" else []
    return sorted(file for pattern in MODEL for file in model.path.glob(pattern) if file.is_file())


def files_of_text(text: Source) -> list[Path]:
    """Return the files that a text is read from: itself, or those of TEXTS below it, or where there are none, all.

    Raises InputError where more lies below it than any text has, as in the folder of a whole system.
    """
    if text.kind != "path" or not text.path.is_dir():
        return [text.path] if text.kind == "path" else []
    entries = list(islice(text.path.rglob("*"), MOST_FILES + 1))
    if len(entries) > MOST_FILES:
        raise InputError(
            f"text {text.argument} holds more than {MOST_FILES:,} files and folders; name a smaller folder"
        )
    files = sorted(file for file in entries if file.is_file())
    return [file for file in files if file.suffix in TEXTS] or files


def source(argument: str, names: Collection[str] = ()) -> Source:
    """Say what a name means: a path where something lies there or where it looks like one, or else an id of the hub."""
    if argument in names:
        return Source(argument, "named")
    return Source(argument, "path" if argument.startswith(("/", ".", "~")) or os.path.exists(argument) else "hub")


def original(model: Source) -> Source:
    """Return the model that an untrained copy is of, or the model itself."""
    return replace(model, untrained=None)


def locate(model: Source, revision: str | None, out: Path) -> tuple[Path, str]:
    """Return the directory or file of a model, and where it comes from in words; one of the hub is fetched.

    The record of its files is written into its folder in `out`. Raises InputError where it cannot be fetched.
    """
    if model.kind != "hub":
        return model.path, model.argument
    from position_card.models import hub  # here, since whether the network may be used is read where it is imported

    record = out / original(model).name / "model.json"
    hub.fetch_model(model.argument, revision, None, record)
    commit = hub.revision(record)
    return hub.model_place(record), f"{model.argument} at {commit}" if commit else model.argument


def title(model: Source, place: Path) -> str:
    """Return what a card calls a model: as it was typed, but one of a package by its file, which lies at `place`."""
    if not model.argument.startswith(PACKAGE):
        return model.label
    return model.with_seed(re.sub(r"[.-](I?Q\d\w*|B?F16|F32)$", "", place.stem, flags=re.IGNORECASE))


def with_copies(models: Sequence[Source], untrained: int) -> list[Source]:
    """Return the models, then so many untrained copies of each."""
    return [*models, *(replace(model, untrained=seed) for model in models for seed in range(untrained))]


def folder_of_several(models: Sequence[Source], untrained: int) -> str:
    """Return the name of the folder of what compares several models, such as `mine-and-2-untrained`."""
    return BETWEEN_NAMES.join([*(model.name for model in models), *([f"{untrained}-untrained"] if untrained else [])])


def run_steps(models: Sequence[Source]) -> dict[Source, int]:
    """Return models with their training steps, in order, where they are checkpoints of one run; else nothing.

    They are where they lie in one folder and have different steps. A step stands in a name, such as checkpoint-500 or
    step300, and these names are alike before it; where a name has none, Trainer of transformers has written it into
    trainer_state.json. Raises InputError where that file cannot be read.
    """
    if len(models) < 2 or any(model.kind != "path" for model in models) or len({*map(_parent, models)}) > 1:
        return {}
    steps_by_model = {model: _step(model) for model in models}
    steps = {model: step for model, (_, step) in steps_by_model.items() if step is not None}
    if len({*steps.values()}) < len(models) or len({before for before, _ in steps_by_model.values()} - {""}) > 1:
        return {}
    return dict(sorted(steps.items(), key=lambda of_model: of_model[1]))


def run_name(models: Sequence[Source]) -> str:
    """Return what the run of some checkpoints is called: as the folder in which they lie."""
    return _parent(models[0]).name


def _parent(model: Source) -> Path:
    return Path(os.path.abspath(model.path)).parent


def _step(model: Source) -> tuple[str, int | None]:
    """Return the training step of a checkpoint and what stands before it in its name; None where nothing tells it."""
    if match := STEP.match(model.label.removesuffix(GGUF)):
        return match[1], int(match[2])
    if not (model.path / TRAINER_STATE).is_file():
        return "", None
    step = files.read(model.path, TRAINER_STATE).get("global_step")
    return "", step if isinstance(step, int) else None


def stamp(paths: Sequence[Path]) -> Stamp:
    """Path, size and time of change of every file: what tells it from its successor."""
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in paths if file.exists()]


def faults(models: Sequence[Source], untrained: int) -> Iterator[str]:
    """Yield a line for each reason why these models cannot be measured together."""
    for model in models:
        if model.kind == "path" and not os.path.exists(model.path):  # which says no of names that no file can have
            yield f"model {model.argument} is not there, seen from {Path.cwd()}"
        elif model.kind == "path" and model.path.is_file() and model.path.suffix != GGUF:
            yield f"model {model.argument} is a file; give its directory, or a file that ends in {GGUF}"
    if len(models) > 1 and untrained:
        yield f"untrained copies are of one model, and {len(models)} are named; name one"
    if len(models) + untrained > MOST_COMPARED and not run_steps(models):
        yield f"a page has room for {MOST_COMPARED} models side by side, and {len(models) + untrained} are asked for"
    for name, count in Counter(model.name for model in models).items():
        if count > 1:
            namesakes = " and ".join(model.argument for model in models if model.name == name)
            yield f"models {namesakes} would share the name {name}; rename one, or give a link of another name (ln -s)"
