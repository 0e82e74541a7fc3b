"""What the arguments of a card mean: `model`, one or several with commas between them, and `text`.

It imports no torch, since every call of the workflow reads it.
"""

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from position_bias.language_models.files import model_files
from position_bias.language_models.sources import is_directory
from position_bias.running.runtime import InputError
from position_bias.running.section import Bounds, Count, Given, Items, Saving, section

Config = Mapping[str, Any]

TEXT = "standard-library"  # of config.yaml: cards on it are called after their model alone
TEXTS = (".txt", ".jsonl")  # files of text that are read by themselves
DATA = (".parquet", ".arrow", ".csv", ".tsv", ".json", ".gz", ".bz2", ".xz", ".zst", ".zip")  # that `datasets` reads
MODEL = ("*.json", "*.safetensors")  # files of a model: those of `hub.WANTED`
MEASURING = (
    "lengths",
    "prompts",
    "precision",
    "tokens_per_batch",
    "activation_checkpointing",
    "gpus",
)  # keys of `card`
DECIDING = ("lengths", "prompts", "precision")  # those that decide numbers
COPIES = 3  # untrained, which a card suggests
STARTS = "starts with /, . or ~"  # every path; other names are ids of the hub
BESIDE = "-beside-"  # between the names of models that one figure shows
OTHER_NAME = "rename one, or make a symbolic link to it that has another name (ln -s) and give that"
ON = "-on-"  # between the name of a model, or of several, and that of a text which is not TEXT
MOST_BESIDE = 4  # models in one figure, untrained copies included: the rows of a printed page

# How the classes of `transformers` are called that predict the next token, the last of them from images, too; and the
# types of models whose classes without a head are called as those of decoders are, and are none.
WITH_HEAD = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
ENCODERS = (
    "albert",
    "bert",
    "camembert",
    "deberta",
    "deberta-v2",
    "distilbert",
    "electra",
    "longformer",
    "modernbert",
    "mpnet",
    "roberta",
    "xlm-roberta",
)

# An id of the hub: a name, most often after that of its owner.
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


Model = Annotated[
    Given | None,
    "the model of the position card, or several with commas between them: a directory, whose path starts with /, . or "
    "~, a name of models or hub_models, or an id of the hub",
]
Text = Annotated[
    Given,
    "the text of the position card: a .txt or .jsonl file or a directory, which start with / or a dot, a name of "
    "datasets or hub_datasets, or an id of the hub",
]


@section
class Card:
    """The position card of any decoder, by the arguments model and text; rollout.bootstrap, rollout.level and seed act
    on it too.
    """

    lengths: Annotated[
        list[Annotated[int, Bounds(9, 1_048_576)]],
        Items(1),
        "tokens of the prompts, as far as the model goes and as the text has 8 prompts",
    ]
    prompts: Annotated[int, Bounds(8, 1_000_000), "prompts of each length, or as many as the text has"]
    characters: Annotated[Count, "characters that are read of a text that is no data set of the configuration"]
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"],
        "precision of the weights; auto: bfloat16 above a billion parameters",
    ]
    tokens_per_batch: Annotated[
        int,
        Bounds(0, 1_000_000_000),
        "tokens that pass through the model at once; 0: as many as 0.7 GB hold, 8 GB on a GPU",
    ]
    activation_checkpointing: Saving
    untrained: Annotated[int, Bounds(0, 3), "untrained copies that are measured besides, drawn by the seeds 0, 1, ..."]
    gpus: Annotated[int, Bounds(1, 64), "GPUs that the weights are spread over"]
    memory: Annotated[
        int,
        Bounds(0, 100_000),
        "memory that a cluster gives to measuring, in GB; 0: by the size of the weights",
    ]
    minutes: Annotated[int, Bounds(1, 100_000), "time that a cluster gives to measuring"]


@dataclass(frozen=True)
class Source:
    """Where a model or a text comes from."""

    name: str  # of its files: lower-case letters, digits, dots and dashes
    given: str  # as it was typed
    kind: Literal["path", "configured", "hub"]
    untrained: int | None = None  # the seed that draws the weights of an untrained copy; None of the model itself

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

    @property
    def shown(self) -> str:
        """As a reader knows it: the name of the file or directory, or what was typed."""
        return self._of_copy(_whole(self.given).name if self.kind == "path" else self.given)

    @property
    def called(self) -> str:
        """As its files are called: the name of a model, and of an untrained copy its seed besides."""
        return self._of_copy(self.name)

    def _of_copy(self, name: str) -> str:
        return name if self.untrained is None else f"{name}-untrained-{self.untrained}"


def models(config: Config) -> list[Source]:
    """The models that the argument `model` names, in its order; none where it is not given."""
    configured = [*config["models"], *config["hub_models"]]
    return [_source(part, configured, _name) for part in _parts(config) if part]


def text(config: Config) -> Source:
    """The text that the argument `text` names."""
    return _source(config["text"].strip(), [*config["datasets"], *config["hub_datasets"]], _name_of_text)


def by_card(config: Config) -> dict[str, Source]:
    """The models by the names of their cards, which also name the text where that is not TEXT; then their copies."""
    named, seeds = models(config), range(config["card"]["untrained"])
    copies = [replace(model, untrained=seed) for model in named for seed in seeds]
    return {f"{model.called}{_on(config)}": model for model in [*named, *copies]}


def of_origin(card: str, config: Config) -> str:
    """The card of the model that `card` is of an untrained copy of; of any other model, `card` itself."""
    return f"{by_card(config)[card].name}{_on(config)}"


def cards(config: Config) -> dict[str, list[str]]:
    """The figures, by name: the cards that each shows. One a model, and one of all where there are several."""
    names = list(by_card(config))
    alone = {name: [name] for name in names}
    copies = [f"{count}-untrained"] if (count := config["card"]["untrained"]) else []
    together = BESIDE.join([*(model.name for model in models(config)), *copies]) + _on(config)
    return {**alone, together: names} if len(names) > 1 else alone


def with_copies(card: str, config: Config) -> dict[str, str]:
    """The `command` that measures untrained copies beside the model of a card, and what its figure is called."""
    model, on = by_card(config)[card], text(config)
    named = [f"model={model.given}", *([] if on.given == TEXT else [f"text={on.given}"])]
    copies = config["card"]["untrained"] or COPIES
    numbers = [f"{key}: {config['card'][key]}" for key in DECIDING if config["card"][key] != "auto"]
    words = [*named, f"card={{{', '.join([*numbers, f'untrained: {copies}'])}}}"]
    return {
        "command": " ".join(["snakemake card --config", *map(shlex.quote, words)]),
        "together": f"{model.name}{BESIDE}{copies}-untrained{_on(config)}",
    }


def faults(config: Config) -> Iterator[str]:
    """A line for each argument of the card that cannot be meant, or names nothing that can be measured."""
    found = models(config)
    for key, sources in (("model", found), ("text", [text(config)])):
        for source in sources:
            yield from _faults_of(key, source)
    if config["model"] is not None and not found:
        yield f"model = {config['model']!r} names no model; give a directory, a name of the configuration, or a hub id"
    elif found and not all(_parts(config)):
        yield f"model = {config['model']!r} has nothing before or after a comma; write model=./a,./b, without blanks"
    if len(found) > 1 and config["card"]["untrained"]:
        yield f"card.untrained = {config['card']['untrained']} copies one model, but model names {len(found)}; name one"
    if len(found) > MOST_BESIDE:
        yield f"model names {len(found)} models; a page has room for {MOST_BESIDE} side by side, so ask in several runs"
    for name, count in Counter(model.name for model in found).items():
        if count > 1:
            same = " and ".join(repr(model.given) for model in found if model.name == name)
            yield f"model = {same} would share the name {name!r}; {OTHER_NAME}"
    if found:
        yield from _overwritten(config)


def faults_of_directory(place: str | Path) -> Iterator[str]:
    """A line for each thing for which the model in a directory cannot be measured, as far as its files tell."""
    try:
        source = model_files(place)
    except InputError as error:
        yield str(error)
        return
    if fault := _no_decoder(source.described):
        yield f"{source.place} holds {fault}; the card needs a decoder that predicts the next token"
        return
    if not (source.directory / "tokenizer.json").is_file():
        yield (
            f"{source.place} lacks tokenizer.json, the file of a fast tokenizer; save that of its model there: "
            f"AutoTokenizer.from_pretrained(...).save_pretrained({str(source.directory)!r})"
        )


def stamp(files: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Path, size and time of change of every file: what tells it from its successor."""
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def files_of_model(directory: Path) -> list[Path]:
    """The files of a model in its directory: notes beside them are no part of it, nor is what stands in folders."""
    return sorted(file for pattern in MODEL for file in directory.glob(pattern) if file.is_file())


def files_of_text(path: Path) -> list[Path]:
    """The files that a text is read from: `path` itself, or those of TEXTS below it, or where there are none, all."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files if file.suffix in TEXTS] or files


def _parts(config: Config) -> list[str]:
    return [part.strip() for part in (config["model"] or "").split(",")]


def _on(config: Config) -> str:
    on = text(config)
    return "" if on.given == TEXT else f"{ON}{on.name}"


def _source(given: str, configured: list[str], name: Callable[[Path], str]) -> Source:
    if given.startswith(("/", ".", "~")):
        return Source(name(_whole(given)), given, "path")
    if given in configured:
        return Source(given, given, "configured")
    last = _safe(given.rsplit("/", 1)[-1])
    return Source(_safe(given) if last in configured else last, given, "hub")


def _whole(given: str) -> Path:
    """The path without dots, from the root on. Links are kept: the name of a link is a name that was chosen."""
    return Path(os.path.abspath(Path(given).expanduser()))


def _name(path: Path) -> str:
    return _safe(path.name)


def _name_of_text(path: Path) -> str:
    """With the ending of a file, since `a.txt` and `a.jsonl` are two texts."""
    return _safe(f"{path.stem}-{path.suffix[1:]}" if path.suffix in TEXTS else path.name)


def _safe(name: str) -> str:
    """`name` as a name of files, in lower case; whatever a name may not have becomes a dash."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "unnamed"


def _overwritten(config: Config) -> Iterator[str]:
    """A line for each result of another model or text that would be overwritten, since it has the same name."""
    on = text(config)
    named = [("model", model, f"results/card/{card}", "/model.json") for card, model in by_card(config).items()]
    if on.kind != "configured":
        named.append(("text", on, f"results/texts/{on.name}", ".json"))
    for key, source, place, ending in named:
        recorded = _recorded(Path(f"{place}{ending}"))
        if recorded is None or (source.untrained is None and _is(source, recorded, config)):
            continue
        files = f"{place}*" if ending == ".json" else place
        if source.kind == "hub" and is_directory(recorded):
            yield (
                f"{key} = {source.given!r} is read as an id of the hub, but {place} is of {recorded!r}; the path of a "
                f"file or directory {STARTS}. If you mean the hub, remove {files}"
            )
        else:
            yield (
                f"{key} = {source.given!r} would take the place of {recorded!r} in {place}; {OTHER_NAME}, or remove "
                f"{files}"
            )


def _recorded(record: Path) -> str | None:
    """The source in the record of a model or text; None where there is none."""
    try:
        found: str | None = json.loads(record.read_text(encoding="utf-8")).get("source")
    except (OSError, ValueError):
        return None
    return found


def _is(source: Source, recorded: str, config: Config) -> bool:
    """Whether a record is of that source; a path may have been typed in another way."""
    if source.kind == "configured":
        own = f"./results/models/{source.given}/"
        return recorded.startswith(own) or (source.given in config["hub_models"] and not is_directory(recorded))
    if source.kind == "hub" or not is_directory(recorded):
        return recorded == source.place
    return any(of(recorded) == of(source.place) for of in (os.path.abspath, os.path.realpath))


def _no_decoder(described: Mapping[str, Any]) -> str:
    """What a model is that predicts no next token, by its config.json; nothing of a decoder, or of an unnamed class."""
    names = described.get("architectures") or []
    kind = described.get("model_type")
    if described.get("is_encoder_decoder"):
        return f"{_a(names[0] if names else str(kind))}, an encoder with a decoder"
    if not names or any(name.endswith(WITH_HEAD) for name in names):
        return ""
    if kind in ENCODERS or any("MaskedLM" in name for name in names):
        return f"{_a(names[0])}, an encoder"
    return _a(names[0]) if any(re.search(r"[a-z0-9]For[A-Z]", name) for name in names) else ""


def _a(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIO' else 'a'} {name}"


def _faults_of(key: str, source: Source) -> Iterator[str]:
    """A line where an argument names something that is not there, that is no name at all, or that cannot be used."""
    wanted = "a directory" if key == "model" else "a directory or a file of the kinds .txt or .jsonl"
    if source.kind == "path":
        if not source.path.exists():
            yield f"{key} = {source.given!r} is not there, seen from {Path.cwd()}; give {wanted} that exists"
        elif source.path.is_file() and (key == "model" or source.path.suffix not in TEXTS):
            yield f"{key} = {source.given!r} is a file; give {wanted} in its place"
        elif key == "model":
            yield from faults_of_directory(source.place)
        elif source.path.is_dir() and not any(file.suffix in (*TEXTS, *DATA) for file in files_of_text(source.path)):
            yield (
                f"{key} = {source.given!r} holds no file of the kinds .txt or .jsonl, and no data set such as .parquet "
                "or .csv; put the text there as such"
            )
    elif source.kind == "hub" and Path(source.given).exists():
        yield f"{key} = {source.given!r} is here, but the path of {wanted} {STARTS}; write {key}=./{source.given}"
    elif source.kind == "hub" and key == "text" and Path(source.given).suffix in (*TEXTS, *DATA):
        yield f"{key} = {source.given!r} is not there; the path of a file {STARTS}, as in text=./{source.given}"
    elif source.kind == "hub" and not _HUB_ID.fullmatch(source.given):
        yield (
            f"{key} = {source.given!r} is no id of the hub, and no name of the configuration; "
            f"the path of {wanted} {STARTS}"
        )
