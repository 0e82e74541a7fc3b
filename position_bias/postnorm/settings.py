"""What a configuration can ask of `postnorm`. It imports no torch, since every call of the workflow reads it."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from position_bias.attention import uneven_heads
from position_bias.postnorm import languages
from position_bias.small_networks.placements import Placement

SCHEMES: dict[str, tuple[Placement, bool]] = {  # placement of RMSNorm, and whether one stands before the read-out
    "none": ("none", False),
    "pre": ("pre", False),
    "pre-final": ("pre", True),
    "post": ("post", False),
    "peri": ("peri", False),
    "peri-init": ("peri-init", False),
}
MOST = 100_000  # tokens or classes of a task
MINIMAL, LANGUAGE = "set_complement", "languages"  # the parts of the configuration that name tasks


def part_of(task: str) -> str:
    """Return the part of the configuration that a task stands in."""
    return MINIMAL if task.startswith("set-complement") else LANGUAGE


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value of `postnorm` that fits the schema, but not the rest of the configuration."""
    postnorm = config["postnorm"]
    for name, length in postnorm[MINIMAL]["lengths"].items():
        yield from _faults_of_complement(f"postnorm.{MINIMAL}.lengths", name, length)
        if name not in postnorm[MINIMAL]["learning_rate"]:
            yield f"postnorm.{MINIMAL}.learning_rate.{name} is missing; add the learning rate of each scheme"
    for name in postnorm[MINIMAL]["learning_rate"]:
        if name not in (known := postnorm[MINIMAL]["lengths"]):
            named = ", ".join(known)
            yield f"postnorm.{MINIMAL}.learning_rate has rates for {name!r}, which has no length; use {named}"
    for vocabulary in postnorm["averaging"]["vocabularies"]:
        share = postnorm["averaging"]["trained_share"]
        if not 1 <= round(share * vocabulary) < vocabulary:
            yield (
                f"postnorm.averaging.trained_share = {share} gives training sequences of {round(share * vocabulary)} "
                f"of {vocabulary} tokens; give a share that leaves at least one in and one out"
            )
    for name in postnorm[LANGUAGE]["lengths"]:
        yield from _faults_of_language(f"postnorm.{LANGUAGE}.lengths", name)
    yield from _faults_of_depth(**postnorm["depth"])
    for key, names in (
        ("sweep.languages", postnorm["sweep"]["languages"]),
        ("averaging.deterministic", postnorm["averaging"]["deterministic"]),
    ):
        for name in names:
            if name not in postnorm[LANGUAGE]["lengths"]:
                known = ", ".join(postnorm[LANGUAGE]["lengths"])
                yield f"postnorm.{key} = {name!r} is not in postnorm.languages.lengths; use some of {known}"
    for key, size in (
        ("languages.size", postnorm[LANGUAGE]["size"]),
        ("stability.deep", postnorm["stability"]["deep"]),
    ):
        if fault := uneven_heads(f"postnorm.{key}.width", size["width"], size["heads"]):
            yield fault
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


def _faults_of_depth(kinds: int, trained: int, length: int) -> Iterator[str]:
    """Words of brackets have as many symbols as their length, half of which open."""
    key = "postnorm.depth"
    if length % 2 or length < 4:
        yield f"{key}.length = {length} has no words of brackets that nest; give an even length from 4 on"
    elif 2 * trained >= length:
        most = length // 2 - 1
        yield f"{key}.trained = {trained} leaves no deeper words of {key}.length = {length}; give at most {most}"
    elif kinds ** (length + 1) > languages.MOST_STACKS:
        yield (
            f"{key}.kinds = {kinds} with {key}.length = {length} gives more than {languages.MOST_STACKS} stacks; "
            "lower one of them"
        )


def _faults_of_spelling(key: str, name: str, usual: str) -> Iterator[str]:
    """Two names of one task would share a folder of checkpoints."""
    if name != usual:
        yield f"{key} has the task {name!r}; write it {usual}"
