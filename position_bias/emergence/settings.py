"""What a configuration can ask of `emergence`. It imports no torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from position_bias.emergence import task
from position_bias.emergence.runs import NAME, STUDIES, study
from position_bias.workflow.section import Bounds, Count, Decay, Items, Keys, Level, Rate, Seed, Share, Words, section

Depths = Annotated[list[Annotated[int, Bounds(1, 100)]], Items(), "numbers of attention layers"]
SomeSeeds = Annotated[int, Bounds(1, 1000)]
Networks = Annotated[
    list[Annotated[str, Words(f"^(?:{NAME.pattern})$", "MASK/ENCODING, as in causal/rope or window5/none")]],
    Items(),
    "networks that are trained, each MASK/ENCODING",
]


@section
class Iterations:
    """How long networks are trained."""

    unbiased: Annotated[Count, "optimiser steps where the answer is anywhere"]
    ends: Annotated[Count, "optimiser steps where the answer is at either end"]
    position: Annotated[Count, "optimiser steps where the answer is at one position"]


@section
class RetrievalTraining:
    """How networks are trained."""

    batch: Annotated[Count, "sequences of an iteration"]
    iterations: Iterations
    learning_rate: Annotated[Rate, "constant learning rate of AdamW"]
    weight_decay: Decay


@section
class Testing:
    """How networks are tested."""

    every: Annotated[Count, "iterations between two tests"]
    sequences_along: Annotated[Count, "sequences of each test set while training"]
    sequences: Annotated[Count, "sequences of each test set at the end"]
    settled: Annotated[float, Bounds(above=0, most=1), "last share of the iterations that gaps are averaged over"]
    last_kept: Annotated[Count, "tests of a long training in evidence/ that its gaps are averaged over, the last"]


@section
class ByWiring:
    """Depths without and with residual connections."""

    plain: Depths
    residual: Depths


@section
class Isotropic:
    """Depths with the isotropic vocabulary."""

    plain: Depths


@section
class ByVocabulary:
    """Layers of the networks trained without biased data, by vocabulary and wiring."""

    gaussian: ByWiring
    fixed: ByWiring
    isotropic: Isotropic


@section
class Seeds:
    """How many networks are trained alike."""

    first: Annotated[Seed, "the first of them; those that follow it are the others"]
    shallow: Annotated[SomeSeeds, "seeds of networks of 2 layers"]
    deep: Annotated[SomeSeeds, "seeds of networks of more than 2 layers"]
    ends: Annotated[SomeSeeds, "seeds of networks trained on answers at both ends"]


@section
class Sinks:
    """Which keys count as attention sinks."""

    sequences: Annotated[Count, "sequences whose attention is counted"]
    thresholds: Annotated[list[Share], Items(1), "attention above which a key counts as a sink"]
    threshold: Annotated[Share, "the threshold of the figures, one of thresholds"]

    def __post_init__(self) -> None:
        """Raise ValueError where the threshold is not one of those that are compared."""
        if self.threshold not in self.thresholds:
            thresholds = ", ".join(map(str, self.thresholds))
            raise ValueError(f"threshold = {self.threshold} is not one of emergence.sinks.thresholds: {thresholds}")


@section
class Theory:
    """The theorems, on attention of random queries and keys."""

    tokens: Annotated[int, Bounds(8, 200), "tokens of the sequences that the bounds are checked on"]
    layers: Annotated[int, Bounds(10, 10_000), "layers of the deepest stack, many times the tokens"]
    draws: Annotated[int, Bounds(2, 10_000), "draws of random queries and keys"]
    seed: Annotated[Seed, "seed of the draws"]
    peak_tokens: Annotated[int, Bounds(50, 4000), "tokens of the sequences that peaks are located on"]


@section
class Emergence:
    """Wu et al. 2025: attention-only networks on a synthetic retrieval task."""

    task: task.Numbers
    training: RetrievalTraining
    testing: Testing
    decay: Annotated[float, Bounds(0, 1000), "slope of the decay mask, in logits a token"]
    networks: Annotated[
        dict[str, Networks],
        Keys({name: of.says for name, of in STUDIES.items()}),
        "networks of each study that are trained",
    ]
    depths: ByVocabulary
    seeds: Seeds
    sinks: Sinks
    theory: Theory
    level: Level


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value of `emergence` that fits its section, but not the rest of the configuration."""
    emergence = config["emergence"]
    tokens = task.Numbers(**emergence["task"]).tokens
    for name, networks in emergence["networks"].items():
        for of_study in study(name, networks, emergence["decay"]).networks:
            entry, masks = f"emergence.networks.{name} = {of_study.mask_name}/{of_study.encoding}", STUDIES[name].masks
            if of_study.mask not in masks:
                yield f"{entry} has a mask that this study does not compare; use {' or '.join(masks)}"
            elif of_study.reach > tokens:
                yield f"{entry} reaches over more than a sequence's tokens; give at most {tokens}"
    for key in ("sequences_along", "sequences"):
        if emergence["testing"][key] < emergence["task"]["items"]:
            count, items = emergence["testing"][key], emergence["task"]["items"]
            yield f"emergence.testing.{key} = {count} leaves positions without a test; give {items} or more"
    studies = [name for name, networks in emergence["networks"].items() if networks]
    for run in config["evidence"]["emergence"]:
        if run.split("/")[1] not in studies:
            yield f"evidence.emergence = {run} is of no study that is trained; use one of {', '.join(studies)}"
