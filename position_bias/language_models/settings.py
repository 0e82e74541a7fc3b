"""What a configuration can ask of models and texts. It imports no torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from position_bias.attention import uneven_heads

Config = Mapping[str, Any]

WITH_ALIBI = ("bloom", "mpt", "falcon")  # the other families of `families` know positions in other ways
PACKAGE = "package:"  # begins a source that is a Python package with a model in it
OFFLINE = "offline"  # the folder of the tokenizer of models trained here; every model of the hub has its own
TRAINED_CONTEXT = (
    2048  # tokens that an MPT or a Llama trained here takes, or as many as it is trained on where that is more
)


def is_directory(source: str) -> bool:
    """Whether a `source` means a directory, there or not; an id of the hub starts with a letter or digit."""
    return source.startswith(("/", "."))


def is_package(source: str) -> bool:
    """Whether a `source` means a Python package with a model in it."""
    return source.startswith(PACKAGE)


def faults(config: Config) -> Iterator[str]:
    """Yield a line for each value of models and texts that fits the schema, but not the rest of the configuration."""
    yield from _unknown_names(config)
    yield from _sources(config)
    yield from _lengths(config)
    training = config["training"]
    if training["warmup"] >= training["steps"]:
        yield (
            f"training.warmup = {training['warmup']} leaves no step after it; "
            f"set it below training.steps = {training['steps']}"
        )
    for step in training["snapshots"]:
        if step > training["steps"]:
            yield f"training.snapshots = {step} is never reached; use steps up to training.steps = {training['steps']}"
    for name, model in config["models"].items():
        architecture = model["architecture"]
        if fault := uneven_heads(f"models.{name}.architecture.hidden", architecture["hidden"], architecture["heads"]):
            yield fault


def _unknown_names(config: Config) -> Iterator[str]:
    """A line for each name that a list uses and nothing defines."""
    offline, measure = list(config["datasets"]), config["measure"]
    models = [*config["models"], *config["hub_models"]]
    for key, names, known, of in (
        ("tokenizer.datasets", config["tokenizer"]["datasets"], offline, "datasets"),
        ("training.datasets", config["training"]["datasets"], offline, "datasets"),
        ("measure.datasets", measure["datasets"], [*offline, *config["hub_datasets"]], "datasets or hub_datasets"),
        ("primary_dataset", [config["primary_dataset"]], measure["datasets"], "measure.datasets"),
        ("measure.models", measure["models"], models, "models or hub_models"),
        ("structural.fig1", config["structural"]["fig1"], models, "models or hub_models"),
        ("layernorm.pretrained", config["layernorm"]["pretrained"], models, "models or hub_models"),
        ("evidence.structural", config["evidence"]["structural"], list(config["models"]), "models"),
        ("evidence.rotary", config["evidence"]["rotary"], list(config["models"]), "models"),
    ):
        for name in names:
            if name not in known:
                yield f"{key} = {name!r} is not in {of}; use one of {', '.join(known)}"


def _sources(config: Config) -> Iterator[str]:
    """A line for each model or text from elsewhere that cannot be used."""
    for part, hub_part in (("datasets", "hub_datasets"), ("models", "hub_models")):
        for name, described in config[hub_part].items():
            if name in config[part]:
                yield f"{hub_part}.{name} has the name of {part}.{name}; give it another"
            source, revision = described["source"], described["revision"]
            pinned = "a package by the sha256 of its file" if is_package(source) else "the hub's by its commit"
            if is_package(source) and hub_part == "hub_datasets":
                yield f"{hub_part}.{name}.source = {source!r} is a package, which may hold a model; name a text"
            elif source.startswith("~") or (not is_directory(source) and Path(source).is_dir()):
                yield f"{hub_part}.{name}.source = {source!r} is no id of the hub; a directory starts with / or a dot"
            elif is_directory(source) and revision is not None:
                yield f"{hub_part}.{name}.revision = {revision!r}, but its source is a directory; set it to null"
            elif not is_directory(source) and revision is None:
                yield f"{hub_part}.{name}.revision = None leaves the hub's {source!r} unpinned; name a commit"
            elif not is_directory(source) and len(revision) != (64 if is_package(source) else 40):
                yield f"{hub_part}.{name}.revision = {revision!r} does not pin {source!r}: pin {pinned}"
    models = {**config["models"], **config["hub_models"]}
    for part, key in (("measure", "models"), ("layernorm", "pretrained")):
        for name in config[part][key]:
            if is_package(config["hub_models"].get(name, {}).get("source", "")):
                yield (
                    f"{part}.{key} = {name!r} comes as a package, of which only cards are made: "
                    f"snakemake card --config model={name}"
                )
    for name in config["measure"]["models"]:
        if name in models and (family := models[name]["family"]) not in WITH_ALIBI:
            yield (
                f"measure.models = {name!r} is of family {family}, which has no ALiBi: rollouts (a) to (c) do not "
                "apply to it; name it in layernorm.pretrained alone, or ask for its card"
            )
    if config["evidence"]["group"] and config["scale"] == "laptop":
        group = config["evidence"]["group"]
        yield (
            f"scale = 'laptop' trains no longer than the default run, and evidence.group = {group!r} keeps long runs; "
            "name config/paper.yaml before the overlay"
        )
    for name in config["evidence"]["rotary"]:
        if name in models and (family := models[name]["family"]) in WITH_ALIBI:
            yield (
                f"evidence.rotary = {name!r} is of family {family}, which has ALiBi and no rotary positions; name it "
                "in evidence.structural"
            )
    if OFFLINE in config["hub_models"]:
        yield f"hub_models.{OFFLINE} has the name of the tokenizer of models trained here; give it another"
    for name, model in config["hub_models"].items():
        if model["positions"] == "none" and model["family"] in WITH_ALIBI:
            yield f"hub_models.{name}.positions = 'none', but ALiBi cannot be turned off; set it to own"


def _lengths(config: Config) -> Iterator[str]:
    """A line for each length that another length excludes, and for each that is longer than a model takes."""
    lengths = config["lengths"]
    named = [(purpose, lengths[purpose]["tokens"]) for purpose in ("heatmap", "standard", "long")]
    named += [(f"more.{place}", length["tokens"]) for place, length in enumerate(lengths["more"])]
    for purpose in ("heatmap", "standard"):
        if (tokens := lengths[purpose]["tokens"]) > (most := config["measure"]["matrices_up_to"]):
            yield (
                f"lengths.{purpose}.tokens = {tokens} is more than measure.matrices_up_to = {most}, so that no "
                f"matrices of content and attention would be kept; give at most {most}, or raise that"
            )
    purposes: dict[int, str] = {}
    for purpose, tokens in named:
        if other := purposes.get(tokens):
            yield f"lengths.{purpose}.tokens = {tokens} is that of lengths.{other} too; give each its own"
        purposes[tokens] = purpose
        limit = max(config["training"]["context"], TRAINED_CONTEXT)
        for name, model in config["models"].items():
            if model["family"] in ("mpt", "llama") and tokens > limit:
                yield (
                    f"lengths.{purpose}.tokens = {tokens} is more than models.{name} ({model['family']}) takes; give "
                    f"at most {limit}"
                )
