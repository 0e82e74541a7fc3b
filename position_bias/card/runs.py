"""The cards that a configuration asks for, and what the rules read and make of each.

It needs no torch, since every call of the workflow reads it.
"""

from typing import Any, NamedTuple

from position_bias.card import settings, sources
from position_bias.card.settings import Config
from position_bias.card.sources import Source, Stamp
from position_bias.language_models.runs import checkpoints

GB = 1e3  # megabytes


class Card(NamedTuple):
    """One model, or an untrained copy of one."""

    model: Source
    origin: str  # the card of the model itself, of which this may be a copy
    trained: list[str]  # the directory of its first seed, where it is trained here
    source: str  # a directory, a GGUF file, or an id of the hub
    revision: str | None  # the commit that the configuration names
    files: Stamp  # of a model and of a text that were named by their paths


def cards(config: Config) -> dict[str, Card]:
    """Every card by its name, which also names a text that is not TEXT: of each model, then of its untrained copies."""
    on, read = _on(config), settings.text(config)
    found = {}
    for model in sources.with_copies(settings.models(config), config["card"]["untrained"]):
        trained = []
        if model.given in config["models"]:
            trained = [f"results/models/{checkpoints(config, [model.given])[0]}"]
        hub = config["hub_models"].get(model.given, {})
        found[f"{model.name}{on}"] = Card(
            model=model,
            origin=f"{sources.original(model).name}{on}",
            trained=trained,
            source=f"./{trained[0]}" if trained else hub.get("source", model.place),
            revision=hub.get("revision"),
            files=sources.stamp([*sources.files_of_model(model), *sources.files_of_text(read)]),
        )
    return found


def figures(config: Config) -> dict[str, list[str]]:
    """The figures, by name: the cards that each shows. One a model, and one of all where there are several."""
    names = list(cards(config))
    alone = {name: [name] for name in names}
    every = f"{sources.together(settings.models(config), config['card']['untrained'])}{_on(config)}"
    return {**alone, every: names} if len(names) > 1 else alone


def options(config: Config) -> dict[str, Any]:
    """How models are measured: the arguments of `measuring.Options`."""
    keys = ("prompts", "replaced", "recalled", "tokens_per_batch", "activation_checkpointing")
    return {"lengths": tuple(config["card"]["lengths"]), "seed": config["seed"]} | {
        key: config["card"][key] for key in keys
    }


def megabytes(config: Config) -> int:
    """How much measuring the largest of the models may take: what is said, or guessed from directories' weights.

    They are opened in float32, for which bfloat16 grows to twice its size.
    """
    if said := config["card"]["memory"]:
        return int(said * GB)
    sizes = [
        sum(size for _, size, _ in sources.stamp(sources.files_of_model(model))) for model in settings.models(config)
    ]
    return int(3000 + 3 * max(sizes, default=0) / 1e6)


def _on(config: Config) -> str:
    read = settings.text(config)
    return "" if read.given == sources.TEXT else f"{sources.ON}{read.name}"
