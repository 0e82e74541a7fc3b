"""What a configuration can ask of `retrieval`. It imports no torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from position_bias.running.section import Bounds, Count, Items, Level, Seeds, Words, section

DECAY = "decay-"  # before a slope

Study = Annotated[
    str, Words("^(plain|residual|last)/depth[1-9][0-9]{0,2}$", "STUDY/depthLAYERS, as in residual/depth2")
]
Encodings = Annotated[
    list[
        Annotated[
            str,
            Words(
                f"^(none|sin|rope|{DECAY}([0-9]{{1,4}}[.])?[0-9]{{1,9}})$",
                "none, sin, rope or decay-SLOPE, as in decay-0.1",
            ),
        ]
    ],
    Items(1),
    "encodings, or decay-SLOPE, the decay mask with a slope",
]


@section
class Recall:
    """Where a passage must stand in a context so that a pretrained decoder goes on with it when it is repeated."""

    words: Annotated[list[Annotated[int, Bounds(8, 100_000)]], Items(1), "different words of a context, each length"]
    cue: Annotated[int, Bounds(1, 4), "words of the passage that are repeated"]
    contexts: Annotated[int, Bounds(2, 100_000), "of each length"]
    contexts_of_copies: Annotated[int, Bounds(2, 100_000), "the same for the copy with random weights"]


@section
class Retrieval:
    """Our addition: whether the structural prior tells which label a network of emergence copies."""

    networks: Annotated[dict[Study, Encodings], Items(1), "causal networks of studies of emergence that are trained"]
    iterations: Annotated[Count, "of training"]
    sequences: Annotated[Count, "of a test for each position"]
    seeds: Seeds
    recall: Recall
    level: Level


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value that fits its section, but not the rest.

    In the tests, every item of a sequence has a class and a label of its own. No network is trained twice.
    """
    task = config["emergence"]["task"]
    for name in ("classes", "labels"):
        if task[name] < task["items"]:
            yield (
                f"emergence.task.{name} = {task[name]} leaves items of the tests of retrieval without their own; "
                f"give at least {task['items']}"
            )
    networks = config["retrieval"]["networks"]
    for kept in config["evidence"]["retrieval"]:
        if kept not in networks:
            yield f"evidence.retrieval = {kept} is not trained; use some of {', '.join(networks)}"
    for key, names in networks.items():
        slopes = [float(name.removeprefix(DECAY)) for name in names if name.startswith(DECAY)]
        if 0 in slopes:
            yield f"retrieval.networks.{key} has a slope of 0, which is the causal mask alone; write none in its place"
        if twice := sorted(slope for slope in set(slopes) if slopes.count(slope) > 1):
            yield f"retrieval.networks.{key} has the slope {twice[0]:g} twice; name each once"
