"""What the arguments of a card mean: `model`, one or several with commas between them, and `text`.

It imports no torch, since every call of the workflow reads it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from position_bias.language_models.settings import is_directory

Config = Mapping[str, Any]

TEXTS = (".txt", ".jsonl")  # files of text that are read by themselves
MEASURING = (
    "lengths",
    "prompts",
    "precision",
    "tokens_per_batch",
    "activation_checkpointing",
    "gpus",
)  # keys of `card`
BESIDE = "-beside-"  # between the names of models that one figure shows
MOST_BESIDE = 4  # models in one figure: the rows of a printed page

# An id of the hub: a name, most often after that of its owner.
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True)
class Source:
    """Where a model or a text comes from."""

    name: str  # of its files: lower-case letters, digits, dots and dashes
    given: str  # as it was typed
    kind: Literal["path", "configured", "hub"]

    @property
    def path(self) -> Path:
        """The file or directory that is meant."""
        return Path(self.given).expanduser()

    @property
    def place(self) -> str:
        """As `hub.fetch_model` wants it: a directory starts with a slash or a dot."""
        if self.kind != "path":
            return self.given
        path = str(self.path)
        return path if is_directory(path) else f"./{path}"


def models(config: Config) -> list[Source]:
    """The models that the argument `model` names, in its order; none where it is not given."""
    given = [part.strip() for part in (config["model"] or "").split(",")]
    return [_source(part, [*config["models"], *config["hub_models"]]) for part in given if part]


def text(config: Config) -> Source:
    """The text that the argument `text` names."""
    return _source(config["text"].strip(), [*config["datasets"], *config["hub_datasets"]])


def cards(config: Config) -> dict[str, list[str]]:
    """The figures, by name: the models that each shows. One a model, and one of all where there are several."""
    names = [model.name for model in models(config)]
    alone = {name: [name] for name in names}
    return {**alone, BESIDE.join(names): names} if len(names) > 1 else alone


def faults(config: Config) -> Iterator[str]:
    """A line for each argument of the card that cannot be meant, or names nothing that is there."""
    found = models(config)
    for key, sources in (("model", found), ("text", [text(config)])):
        for source in sources:
            yield from _faults_of(key, source)
    if config["model"] is not None and not found:
        yield f"model = {config['model']!r} names no model; give a directory, a name of the configuration, or a hub id"
    if len(found) > MOST_BESIDE:
        yield f"model names {len(found)} models; a page has room for {MOST_BESIDE} side by side, so ask in several runs"
    for name, count in Counter(model.name for model in found).items():
        if count > 1:
            same = " and ".join(repr(model.given) for model in found if model.name == name)
            yield f"model = {same} would share the name {name!r}; rename a directory, or draw a card of each alone"


def stamp(files: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Path, size and time of change of every file: what tells it from its successor."""
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def files_of_model(directory: Path) -> list[Path]:
    """The files of a model's directory; what stands in folders below it is no part of the model."""
    return sorted(file for file in directory.iterdir() if file.is_file())


def files_of_text(path: Path) -> list[Path]:
    """The files that a text is read from: `path` itself, or those of TEXTS below it, or where there are none, all."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files if file.suffix in TEXTS] or files


def _source(given: str, configured: list[str]) -> Source:
    if given.startswith(("/", ".", "~")):
        return Source(_name(Path(given).expanduser().resolve()), given, "path")
    if given in configured:
        return Source(given, given, "configured")
    return Source(_safe(given.rsplit("/", 1)[-1]), given, "hub")


def _name(path: Path) -> str:
    return _safe(path.stem if path.suffix in TEXTS else path.name)


def _safe(name: str) -> str:
    """`name` as a name of files, in lower case; whatever a name may not have becomes a dash."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "unnamed"


def _faults_of(key: str, source: Source) -> Iterator[str]:
    """A line where an argument names something that is not there, or that is no name at all."""
    wanted = "a directory" if key == "model" else "a directory or a file of the kinds .txt or .jsonl"
    if source.kind == "path":
        if not source.path.exists():
            yield f"{key} = {source.given!r} is not there, seen from {Path.cwd()}; give {wanted} that is"
        elif source.path.is_file() and (key == "model" or source.path.suffix not in TEXTS):
            yield f"{key} = {source.given!r} is a file; give {wanted} in its place"
    elif source.kind == "hub" and Path(source.given).exists():
        yield f"{key} = {source.given!r} is here, but {wanted} starts with / or a dot; give ./{source.given}"
    elif source.kind == "hub" and not _HUB_ID.fullmatch(source.given):
        yield (
            f"{key} = {source.given!r} is no id of the hub, and no name of the configuration; "
            f"{wanted} starts with / or a dot"
        )
