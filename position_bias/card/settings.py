"""What the configuration says of position cards. It needs no torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from position_bias.card import sources
from position_bias.card.sources import Source
from position_bias.running.section import Bounds, Given, Items, Saving, section

Config = Mapping[str, Any]

Model = Annotated[
    Given | None,
    "the model of the position card, or several with commas between them: a directory or a GGUF file, whose path "
    "starts with /, . or ~, a name of models or hub_models, or an id of the hub",
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
    replaced: Annotated[
        Annotated[int, Bounds(0, 1_000_000)] | None,
        "prompts of the longest length whose tokens are replaced; null: 16 of models up to a billion parameters",
    ]
    recalled: Annotated[
        Annotated[int, Bounds(0, 1_000_000)] | None,
        "contexts of random words in which repeated passages are looked for; null: 16 of models up to a billion "
        "parameters. A context has 128 words, or as many as the longest length has tokens, where that is above 256",
    ]
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


def models(config: Config) -> list[Source]:
    """The models that the argument `model` names, in its order; none where it is not given."""
    named = [part.strip() for part in (config["model"] or "").split(",")]
    return [sources.source(name, [*config["models"], *config["hub_models"]]) for name in named if name]


def text(config: Config) -> Source:
    """The text that the argument `text` names."""
    return sources.source(config["text"].strip(), [*config["datasets"], *config["hub_datasets"]])


def faults(config: Config) -> Iterator[str]:
    """A line for each argument of the card that cannot be meant, or names nothing that can be measured."""
    yield from sources.faults(models(config), config["card"]["untrained"] if config["model"] else 0)
    if (read := text(config)).kind == "path" and not read.path.exists():
        yield f"text = {read.given!r} is not there; give a directory or a file of the kinds .txt or .jsonl"
