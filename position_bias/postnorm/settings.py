"""What a configuration can ask of `postnorm`. It imports no torch, since every call of the workflow reads it."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, Any, Literal

from position_bias.postnorm import languages
from position_bias.postnorm.schemes import LANGUAGE, MINIMAL
from position_bias.running.section import (
    Bounds,
    Count,
    Decay,
    Given,
    Items,
    Level,
    Name,
    Rate,
    Rates,
    Seeds,
    Share,
    Small,
    Words,
    section,
)
from position_bias.small_networks.size import Size

MOST = 100_000  # tokens or classes of a task

Scheme = Annotated[Literal["none", "pre", "pre-final", "post", "peri", "peri-init"], "placement of norms"]
Schemes = Annotated[list[Scheme], Items(1), "placements of norms"]
RateByScheme = Annotated[dict[Scheme, Rate], Items(1), "learning rate of each scheme that is trained"]
Lengths = Annotated[
    dict[Name, Annotated[Small, "tokens or symbols of training sequences"]],
    Items(1),
    "length of the training sequences, by task",
]
Vocabulary = Annotated[int, Bounds(2, 100_000), "different tokens of the Set Complement Task, v; it needs 2"]
Exponent = Annotated[float, Bounds(above=0, most=10)]
Batch = Annotated[Count, "sequences of an iteration"]
Iterations = Annotated[Count, "optimiser steps"]


@section
class Complements:
    """The Set Complement Task, by the minimal transformer."""

    lengths: Lengths
    batch: Batch
    iterations: Iterations
    learning_rate: Annotated[dict[Name, RateByScheme], "learning rate of each scheme, by task"]
    seeds: Seeds


@section
class Languages:
    """Maximum retrieval, Dyck and Tomita languages."""

    lengths: Lengths
    size: Size
    furthest: Annotated[int, Bounds(2, 100), "the longest test, in trained lengths"]
    batch: Batch
    iterations: Iterations
    learning_rate: RateByScheme
    seeds: Seeds


@section
class Depth:
    """Brackets deeper than those of training. Words of brackets have as many symbols as their length; half open."""

    kinds: Annotated[Small, "kinds of brackets"]
    trained: Annotated[Small, "brackets that are open at once in training sequences"]
    length: Annotated[Small, "symbols of sequences"]

    def __post_init__(self) -> None:
        if self.length % 2 or self.length < 4:
            raise ValueError(
                f"length = {self.length} has no words of brackets that nest; give an even length from 4 on"
            )
        if 2 * self.trained >= self.length:
            raise ValueError(
                f"trained = {self.trained} leaves no deeper words of postnorm.depth.length = {self.length}; "
                f"give at most {self.length // 2 - 1}"
            )
        if self.kinds ** (self.length + 1) > languages.MOST_STACKS:
            raise ValueError(
                f"kinds = {self.kinds} with postnorm.depth.length = {self.length} gives more than "
                f"{languages.MOST_STACKS} stacks; lower one of them"
            )


@section
class Dimension:
    """Widths of the minimal transformer."""

    vocabulary: Vocabulary
    widths: Annotated[list[Small], Items(2), "coordinates of a token, d"]
    schemes: Schemes
    seeds: Seeds


@section
class Averaging:
    """EMA and BEMA of the minimal transformer."""

    vocabularies: Annotated[list[Annotated[int, Bounds(4, 100_000)]], Items(1), "tokens of the tasks"]
    trained_share: Annotated[Share, "share of a vocabulary's tokens that a training sequence has"]
    deterministic: Annotated[
        list[Annotated[str, Words("^maximum-[0-9]{1,4}$", "maximum-CLASSES, as in maximum-10")]],
        Items(),
        "maximum-CLASSES of postnorm.languages.lengths, whose every answer is determined",
    ]
    scheme: Scheme
    batch: Batch
    iterations: Iterations
    learning_rate: Rate
    kappa: Annotated[Exponent, "exponent of the weight that an average gives to the last weights"]
    etas: Annotated[list[Exponent], Items(1), "exponents of the correction of BEMA"]
    seeds: Seeds

    def __post_init__(self) -> None:
        for vocabulary in self.vocabularies:
            if not 1 <= round(self.trained_share * vocabulary) < vocabulary:
                raise ValueError(
                    f"trained_share = {self.trained_share} gives training sequences of "
                    f"{round(self.trained_share * vocabulary)} of {vocabulary} tokens; give a share that leaves at "
                    "least one in and one out"
                )


@section
class Deep(Size):
    """Size of the deep decoder, beside the minimal one of 1 layer."""

    layers: Annotated[int, Bounds(2, 100_000), "layers of attention and MLP; the minimal one has 1"]


@section
class Stability:
    """Training without warmup, of the minimal transformer and a deep one."""

    deep: Deep
    schemes: Schemes
    learning_rates: Rates
    iterations: Iterations
    seeds: Seeds


@section
class Construction:
    """The network built by hand."""

    vocabulary: Vocabulary
    strength: Annotated[float, Bounds(above=0, most=1000), "factor of the logits"]


@section
class SweepOfStability:
    """Learning rates of the networks without warmup."""

    schemes: Schemes
    learning_rates: Rates
    seeds: Seeds


@section
class Sweep:
    """Learning rates and iterations that are compared, on seeds of their own."""

    learning_rates: Rates
    iterations: Annotated[
        list[Annotated[float, Bounds(above=0, most=100)]], Items(1), "multiples of the iterations of the figures"
    ]
    languages: Annotated[list[Given], Items(1), "some of postnorm.languages.lengths, which stand for all of them"]
    seeds: Seeds
    stability: SweepOfStability


@section
class PostNorm:
    """Zsamboki et al. 2025: norms after attention, and lengths beyond those of training."""

    set_complement: Complements
    languages: Languages
    depth: Depth
    dimension: Dimension
    averaging: Averaging
    stability: Stability
    warmup: Annotated[
        float,
        Bounds(0, below=1),
        "share of the iterations in which the learning rate rises; then it falls",
    ]
    weight_decay: Decay
    test_sequences: Annotated[Count, "test sequences of a seed"]
    construction: Construction
    sweep: Sweep
    level: Level


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value of `postnorm` that fits its section, but not the rest of the configuration."""
    postnorm = config["postnorm"]
    for name, length in postnorm[MINIMAL]["lengths"].items():
        yield from _faults_of_complement(f"postnorm.{MINIMAL}.lengths", name, length)
        if name not in postnorm[MINIMAL]["learning_rate"]:
            yield f"postnorm.{MINIMAL}.learning_rate.{name} is missing; add the learning rate of each scheme"
    for name in postnorm[MINIMAL]["learning_rate"]:
        if name not in (known := postnorm[MINIMAL]["lengths"]):
            named = ", ".join(known)
            yield f"postnorm.{MINIMAL}.learning_rate has rates for {name!r}, which has no length; use {named}"
    for name in postnorm[LANGUAGE]["lengths"]:
        yield from _faults_of_language(f"postnorm.{LANGUAGE}.lengths", name)
    for key, names in (
        ("sweep.languages", postnorm["sweep"]["languages"]),
        ("averaging.deterministic", postnorm["averaging"]["deterministic"]),
    ):
        for name in names:
            if name not in postnorm[LANGUAGE]["lengths"]:
                known = ", ".join(postnorm[LANGUAGE]["lengths"])
                yield f"postnorm.{key} = {name!r} is not in postnorm.languages.lengths; use some of {known}"
    for part, share in product((MINIMAL, LANGUAGE), postnorm["sweep"]["iterations"]):
        if round(share * (iterations := postnorm[part]["iterations"])) < 1:
            yield f"postnorm.sweep.iterations = {share} of postnorm.{part}.iterations = {iterations} is none; give more"
    kept = [*postnorm[MINIMAL]["lengths"], *postnorm[LANGUAGE]["lengths"], "averaging"]
    for name in config["evidence"]["postnorm"]:
        if name not in kept:
            yield f"evidence.postnorm = {name!r} is not trained; use some of {', '.join(kept)}"
    if (trained := f"set-complement-{postnorm['dimension']['vocabulary']}") not in postnorm[MINIMAL]["lengths"]:
        known = ", ".join(postnorm[MINIMAL]["lengths"])
        yield (
            f"postnorm.dimension.vocabulary = {postnorm['dimension']['vocabulary']} is of no task in "
            f"postnorm.{MINIMAL}.lengths: {known}"
        )
        return
    for scheme in postnorm["dimension"]["schemes"]:
        if scheme not in (rates := postnorm[MINIMAL]["learning_rate"].get(trained, {})):
            key, known = f"postnorm.{MINIMAL}.learning_rate.{trained}", ", ".join(rates)
            yield f"postnorm.dimension.schemes = {scheme!r} is not in {key}: {known}"


def _faults_of_complement(key: str, name: str, length: int) -> Iterator[str]:
    matched = re.fullmatch(r"set-complement-(\d+)", name)
    if not matched:
        yield f"{key} has the task {name!r}; give set-complement-V with a vocabulary of V tokens"
    elif (v := int(matched[1])) < 2:
        yield f"{key} has the task {name!r}; a set and its complement need a vocabulary of at least 2 tokens"
    elif v > MOST:
        yield f"{key} has the task {name!r}; give a vocabulary of at most {MOST} tokens"
    elif length >= v:
        yield f"{key}.{name} = {length} leaves no token absent; give at most {v - 1}"
    else:
        yield from _faults_of_spelling(key, name, f"set-complement-{v}")


def _faults_of_language(key: str, name: str) -> Iterator[str]:
    if maximum := re.fullmatch(r"maximum-(\d+)", name):
        classes = int(maximum[1])
        if classes < 2:
            yield f"{key} has the task {name!r}; there is something to retrieve from 2 classes on"
        elif classes > MOST:
            yield f"{key} has the task {name!r}; give at most {MOST} classes"
        yield from _faults_of_spelling(key, name, f"maximum-{classes}")
        return
    try:
        yield from _faults_of_spelling(key, name, languages.language(name).name)
    except ValueError as error:
        yield f"{key} has the task {name!r}: {error}"


def _faults_of_spelling(key: str, name: str, usual: str) -> Iterator[str]:
    """Two names of one task would share a folder of checkpoints."""
    if name != usual:
        yield f"{key} has the task {name!r}; write it {usual}"
