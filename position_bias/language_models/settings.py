"""What a configuration can ask of models and texts. It imports no torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from position_bias.workflow.section import Bounds, Count, Items, Name, Names, Rate, Saving, Seed, Text, Words, section
from position_card.models.source import is_directory, is_package
from position_card.rollout.attention import uneven_heads

Config = Mapping[str, Any]

WITH_ALIBI = ("bloom", "mpt", "falcon")  # the other families of `families` know positions in other ways
OFFLINE = "offline"  # the folder of the tokenizer of models trained here; every model of the hub has its own
TRAINED_CONTEXT = (
    2048  # tokens that an MPT or a Llama trained here takes, or as many as it is trained on where that is more
)

Source = Annotated[Text, "id on the Hugging Face hub, or a directory that starts with a slash or a dot"]
ModelSource = Annotated[Source, "id on the hub, a directory that starts with a slash or a dot, or package:NAME"]
Pin = Annotated[str, Words("^([0-9a-f]{40}|[0-9a-f]{64})$", "40 or 64 hexadecimal digits")]
Revision = Annotated[Pin | None, "commit of the hub, or sha256 of the file of a package; null for a directory"]
Corpus = Literal["language-reference", "standard-library", "scientific-packages"]
TrainedFamily = Literal["bloom", "mpt", "falcon", "llama"]
PretrainedFamily = Literal["bloom", "mpt", "falcon", "llama", "qwen3", "phi", "phi3"]


@section
class Dataset:
    """An offline text."""

    corpus: Annotated[Corpus, "which offline text this data set is"]


@section
class HubDataset:
    """A text of the hub."""

    source: Source
    revision: Revision
    subset: Annotated[
        Text | None,
        "name of the part of the data set that is read, of a directory its folder, or null where it has but one",
    ]
    split: Annotated[Text, "split that is read"]
    column: Annotated[Text, "column that holds the text"]
    documents: Annotated[Count, "documents that are fetched; each long enough one gives a prompt, its first n tokens"]

    def __post_init__(self) -> None:
        if is_package(self.source):
            raise ValueError(f"source = {self.source!r} is a package, which may hold a model; name a text")
        _check_pinned(self.source, self.revision)


@section
class Length:
    """Prompts of one length."""

    tokens: Annotated[int, Bounds(9, 16384), "tokens of a prompt"]
    prompts: Annotated[int, Bounds(2, 1_000_000_000), "prompts that a measurement averages over"]


@section
class Lengths:
    """The prompts by purpose."""

    heatmap: Length
    standard: Length
    long: Length
    more: Annotated[list[Length], Items(), "further lengths that are measured"]

    def __post_init__(self) -> None:
        purposes: dict[int, str] = {}
        for purpose, length in self.by_purpose():
            if namesake := purposes.get(length.tokens):
                raise ValueError(
                    f"{purpose}.tokens = {length.tokens} is that of lengths.{namesake} too; give each its own"
                )
            purposes[length.tokens] = purpose

    def by_purpose(self) -> list[tuple[str, Length]]:
        """Return every length with the key that it stands at below `lengths`."""
        more = [(f"more.{place}", length) for place, length in enumerate(self.more)]
        return [("heatmap", self.heatmap), ("standard", self.standard), ("long", self.long), *more]


@section
class Tokenizer:
    """Byte-level BPE, shared by the models trained here."""

    vocabulary: Annotated[int, Bounds(258, 1_000_000), "number of tokens, the 256 bytes and the end of text included"]
    datasets: Annotated[Names, "the data sets whose training text it is made from"]


@section
class TrainingSettings:
    """Training of every model of models."""

    datasets: Annotated[Names, "the data sets whose training text the models read"]
    context: Annotated[int, Bounds(2, 16384), "tokens of a training window"]
    batch: Annotated[Count, "windows in a step"]
    steps: Annotated[Count, "number of optimiser steps"]
    snapshots: Annotated[
        list[Annotated[int, Bounds(0, 1_000_000_000)]],
        Items(),
        "steps after which the model is kept, beside the last; 0: untrained",
    ]
    learning_rate: Annotated[Rate, "largest learning rate, after the warm-up"]
    warmup: Annotated[int, Bounds(0, 1_000_000_000), "steps of linear warm-up"]
    weight_decay: Annotated[float, Bounds(0, 1), "decoupled weight decay of the matrices"]
    clip: Annotated[float, Bounds(above=0, most=1_000_000), "largest norm of the gradient"]
    held_out: Annotated[Count, "test windows that the held-out loss is measured on"]

    def __post_init__(self) -> None:
        if self.warmup >= self.steps:
            raise ValueError(
                f"warmup = {self.warmup} leaves no step after it; set it below training.steps = {self.steps}"
            )
        for step in self.snapshots:
            if step > self.steps:
                raise ValueError(f"snapshots = {step} is never reached; use steps up to training.steps = {self.steps}")


@section
class ModelArchitecture:
    """The size of a model."""

    layers: Annotated[Count, "number of transformer blocks"]
    heads: Annotated[Count, "attention heads of a layer"]
    hidden: Annotated[Count, "width of the residual stream, a multiple of heads"]
    initializer_range: Annotated[float, Bounds(above=0, most=1), "standard deviation of the initial weights"]

    def __post_init__(self) -> None:
        if fault := uneven_heads("hidden", self.hidden, self.heads):
            raise ValueError(fault)


@section
class ModelSettings:
    """A model that is trained here."""

    family: Annotated[TrainedFamily, "the transformers classes it is made of"]
    seeds: Annotated[list[Seed], Items(1), "training seeds, one model each"]
    architecture: ModelArchitecture


@section
class HubModel:
    """A model of the hub."""

    source: ModelSource
    revision: Revision
    family: Annotated[PretrainedFamily, "the model type that its config.json names"]
    positions: Annotated[Literal["own", "none"], "how tokens know their place; none: stored as rotary, trained without"]
    gpus: Annotated[int, Bounds(1, 64), "GPUs that its weights are spread over"]
    memory: Annotated[int, Bounds(1, 100_000), "memory of the host that a job with it needs, in GB"]
    minutes: Annotated[int, Bounds(1, 100_000), "time that a cluster gives to measuring it on one data set"]

    def __post_init__(self) -> None:
        """Raise ValueError where the model is not pinned, and where its family has no way to leave out positions."""
        _check_pinned(self.source, self.revision)
        if self.positions == "none" and self.family in WITH_ALIBI:
            raise ValueError("positions = 'none', but ALiBi cannot be turned off; set it to own")


@section
class Measure:
    """Measurements, for Herasimchyk et al. 2026."""

    models: Annotated[Names, "the models of the figures and tables of Herasimchyk et al. 2026"]
    datasets: Annotated[Names, "the data sets that they are measured on"]
    precision: Annotated[Literal["float32", "bfloat16"], "precision of the weights; sums are in float32 either way"]
    tokens_per_batch: Annotated[Count, "tokens that pass through the model at once; 256 to 1024 suits a CPU"]
    activation_checkpointing: Saving
    matrices_up_to: Annotated[int, Bounds(9, 16384), "tokens of the longest prompts whose mean matrices are kept"]


Datasets = Annotated[dict[Name, Dataset], Items(1), "the data sets by name"]
HubDatasets = Annotated[dict[Name, HubDataset], "data sets of the hub by name"]
Models = Annotated[dict[Name, ModelSettings], Items(1), "the models by name"]
HubModels = Annotated[dict[Name, HubModel], "models of the hub by name"]
PrimaryDataset = Annotated[Name, "the data set of the figures and tables that show one"]


def _check_pinned(source: str, revision: str | None) -> None:
    """Raise ValueError for a model or text from elsewhere that cannot be found, or might change."""
    if source.startswith("~") or (not is_directory(source) and Path(source).is_dir()):
        raise ValueError(f"source = {source!r} is no id of the hub; a directory starts with / or a dot")
    if is_directory(source) and revision is not None:
        raise ValueError(f"revision = {revision!r}, but its source is a directory; set it to null")
    if not is_directory(source) and revision is None:
        raise ValueError(f"revision = None leaves the hub's {source!r} unpinned; name a commit")
    if revision is not None and len(revision) != (64 if is_package(source) else 40):
        pin = "a package by the sha256 of its file" if is_package(source) else "the hub's by its commit"
        raise ValueError(f"revision = {revision!r} does not pin {source!r}: pin {pin}")


def faults(config: Config) -> Iterator[str]:
    """Yield a line for each value of models and texts that fits its section, but not the rest of the configuration."""
    yield from _unknown_names(config)
    yield from _sources(config)
    yield from _lengths(config)


def _unknown_names(config: Config) -> Iterator[str]:
    """A line for each name that a list uses and nothing defines."""
    offline, measure = list(config["datasets"]), config["measure"]
    models = [*config["models"], *config["hub_models"]]
    texts = [*offline, *config["hub_datasets"]]
    for key, names, choices, homes in (
        ("tokenizer.datasets", config["tokenizer"]["datasets"], offline, "datasets"),
        ("training.datasets", config["training"]["datasets"], offline, "datasets"),
        ("measure.datasets", measure["datasets"], texts, "datasets or hub_datasets"),
        ("primary_dataset", [config["primary_dataset"]], measure["datasets"], "measure.datasets"),
        ("measure.models", measure["models"], models, "models or hub_models"),
        ("structural.fig1", config["structural"]["fig1"], models, "models or hub_models"),
        ("structural.curve.dataset", [config["structural"]["curve"]["dataset"]], texts, "datasets or hub_datasets"),
        ("layernorm.pretrained", config["layernorm"]["pretrained"], models, "models or hub_models"),
        ("evidence.structural", config["evidence"]["structural"], list(config["models"]), "models"),
        ("evidence.sink", config["evidence"]["sink"], config["structural"]["sink"]["models"], "structural.sink.models"),
    ):
        for name in names:
            if name not in choices:
                yield f"{key} = {name!r} is not in {homes}; use one of {', '.join(choices)}"


def _sources(config: Config) -> Iterator[str]:
    """A line for each model or text from elsewhere that cannot be used."""
    for part, hub_part in (("datasets", "hub_datasets"), ("models", "hub_models")):
        for name in config[hub_part]:
            if name in config[part]:
                yield f"{hub_part}.{name} has the name of {part}.{name}; give it another"
    models = {**config["models"], **config["hub_models"]}
    pretrained = config["structural"]["pretrained"]["models"]
    for name, deviation in pretrained.items():
        if name not in config["hub_models"]:
            yield (
                f"structural.pretrained.models.{name} = {deviation} is of no model in hub_models; use one of "
                f"{', '.join(config['hub_models'])}"
            )
    for name in config["measure"]["models"]:
        if name in pretrained and models.get(name, {}).get("family") in WITH_ALIBI:
            yield f"measure.models = {name!r} is in structural.pretrained.models, too; name it once"
    for name in config["layernorm"]["pretrained"]:
        if is_package(config["hub_models"].get(name, {}).get("source", "")) and name not in pretrained:
            yield (
                f"layernorm.pretrained = {name!r} comes as a package, which is measured where "
                "structural.pretrained.models names it; name it there"
            )
    for name in config["measure"]["models"]:
        if name in models and (family := models[name]["family"]) not in WITH_ALIBI:
            yield (
                f"measure.models = {name!r} is of family {family}, which has no ALiBi: rollouts (a) to (c) do not "
                "apply to it; name it in layernorm.pretrained alone, or measure it with position-card"
            )
    if config["evidence"]["group"] and config["scale"] == "default":
        group = config["evidence"]["group"]
        yield (
            f"scale = 'default' trains no longer than the default run, and evidence.group = {group!r} keeps long runs; "
            "name config/paper.yaml before the overlay"
        )
    if OFFLINE in config["hub_models"]:
        yield f"hub_models.{OFFLINE} has the name of the tokenizer of models trained here; give it another"


def _lengths(config: Config) -> Iterator[str]:
    """A line for each length that is longer than what is kept of it, and for each that is longer than a model takes."""
    lengths = config["lengths"]
    purposes = [(purpose, lengths[purpose]["tokens"]) for purpose in ("heatmap", "standard", "long")]
    purposes += [(f"more.{place}", length["tokens"]) for place, length in enumerate(lengths["more"])]
    for purpose in ("heatmap", "standard"):
        if (tokens := lengths[purpose]["tokens"]) > (longest := config["measure"]["matrices_up_to"]):
            yield (
                f"lengths.{purpose}.tokens = {tokens} is more than measure.matrices_up_to = {longest}, so that no "
                f"matrices of content and attention would be kept; give at most {longest}, or raise that"
            )
    for purpose, tokens in purposes:
        limit = max(config["training"]["context"], TRAINED_CONTEXT)
        for name, model in config["models"].items():
            if model["family"] in ("mpt", "llama") and tokens > limit:
                yield (
                    f"lengths.{purpose}.tokens = {tokens} is more than models.{name} ({model['family']}) takes; give "
                    f"at most {limit}"
                )
