"""What the rules of the position card read, say and make, from its arguments.

It imports no torch, since every call of the workflow reads it.
"""

from pathlib import Path
from typing import NamedTuple

from position_bias.card import settings
from position_bias.card.settings import Config, Source
from position_bias.language_models.runs import checkpoints

Stamp = list[tuple[str, int, int]]  # of files: what tells them from others of the same names
GB = 1e3  # megabytes


class Card(NamedTuple):
    """One model, or an untrained copy of one."""

    model: Source
    trained: list[str]  # the directory of its first seed, where it is trained here
    source: str  # a directory, or an id of the hub
    revision: str | None  # the commit that the configuration names
    files: Stamp  # of a directory that was named
    record: str  # what was noted of the model, or of the one that an untrained copy is of
    title: str  # of its page


class Text(NamedTuple):
    """The text that all cards of a run are on."""

    text: Source
    texts: str
    manifest: str
    files: Stamp  # of a file or directory that was named


def text(config: Config) -> Text:
    """The text of the configuration's argument: a data set of it, or what is made into one."""
    source = settings.text(config)
    folder = "results/corpus" if source.kind == "configured" else "results/texts"
    files = settings.stamp(settings.files_of_text(source.path)) if source.kind == "path" else []
    return Text(source, f"{folder}/{source.name}/test.parquet", f"{folder}/{source.name}.json", files)


def cards(config: Config) -> dict[str, Card]:
    """Every card by its name: of each model that is named, then of its untrained copies."""
    return {name: _card(name, model, config) for name, model in settings.by_card(config).items()}


def _card(name: str, model: Source, config: Config) -> Card:
    trained = []
    if model.given in config["models"]:
        trained = [f"results/models/{checkpoints(config, [model.given])[0]}"]
    hub = config["hub_models"].get(model.given, {})
    return Card(
        model=model,
        trained=trained,
        source=f"./{trained[0]}" if trained else hub.get("source", model.place),
        revision=hub.get("revision"),
        files=settings.stamp(settings.files_of_model(model.path)) if model.kind == "path" else [],
        record=f"results/card/{settings.of_origin(name, config)}/model.json",
        title=f"{model.shown} on {settings.text(config).shown}",
    )


def megabytes(config: Config) -> int:
    """How much measuring the largest of the models may take: what is said, or guessed from directories' weights.

    They are opened in float32, for which bfloat16 grows to twice its size.
    """
    if said := config["card"]["memory"]:
        return int(said * GB)
    paths = [model.path for model in settings.models(config) if model.kind == "path"]
    sizes = [sum(file.stat().st_size for file in path.glob("*.safetensors")) for path in paths]
    return int(3000 + 3 * max(sizes, default=0) / 1e6)


def made(config: Config) -> list[str]:
    """Every file that is made for a reader: figures and pages, and the tables of each model."""
    figures, tables = settings.cards(config), ("layers", "profile", "distances", "statistics")
    return [
        *(f"figures/card/{figure}.{suffix}" for figure in figures for suffix in ("pdf", "svg", "png")),
        *(f"results/card/{figure}/card.md" for figure in figures),
        *(f"results/card/{name}/{table}.csv" for name in settings.by_card(config) for table in tables),
    ]


def where_to_look(config: Config, folder: Path) -> list[str]:
    """A line for each page and figure in a folder of results, that of several models first."""
    figures = sorted(settings.cards(config).items(), key=lambda figure: -len(figure[1]))
    return [
        f"Read {folder / 'results/card' / name / 'card.md'}; the figure is {folder / 'figures/card' / name}.png"
        for name, _ in figures
    ]
