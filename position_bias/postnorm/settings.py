"""What a configuration can ask of `postnorm`. It imports no torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, Any, Literal

from position_bias.postnorm import languages, runs
from position_bias.postnorm.runs import LANGUAGE, MINIMAL
from position_bias.small_networks.settings import NetworkSize
from position_bias.workflow.section import (
    Bounds,
    Count,
    Decay,
    Items,
    Level,
    Rate,
    Rates,
    Seeds,
    Share,
    Small,
    Text,
    Words,
    section,
)

Scheme = Annotated[Literal["none", "pre", "pre-final", "post", "peri", "peri-init"], "placement of norms"]
Schemes = Annotated[list[Scheme], Items(1), "placements of norms"]
RateByScheme = Annotated[dict[Scheme, Rate], Items(1), "learning rate of each scheme that is trained"]
Complement = Annotated[
    str, Words("^set-complement-([2-9]|[1-9][0-9]{1,4})$", "set-complement-V with a vocabulary of 2 to 99999 tokens")
]
Language = Annotated[
    str,
    Words(
        "^(maximum-([2-9]|[1-9][0-9]{1,4})|dyck-[1-9][0-9]*-[1-9][0-9]*|tomita-[1-7])$",
        "maximum-CLASSES with 2 to 99999 classes, dyck-KINDS-DEPTH, or one of tomita-1 to tomita-7",
    ),
]
Length = Annotated[Small, "tokens or symbols of training sequences"]
Vocabulary = Annotated[int, Bounds(2, 100_000), "different tokens of the Set Complement Task, v; it needs 2"]
Exponent = Annotated[float, Bounds(above=0, most=10)]
Batch = Annotated[Count, "sequences of an iteration"]
Iterations = Annotated[Count, "optimiser steps"]


@section
class Complements:
    """The Set Complement Task, by the minimal transformer."""

    lengths: Annotated[dict[Complement, Length], Items(1), "length of the training sequences, by task"]
    batch: Batch
    iterations: Iterations
    learning_rate: Annotated[dict[Complement, RateByScheme], "learning rate of each scheme, by task"]
    seeds: Seeds


@section
class Languages:
    """Maximum retrieval, Dyck and Tomita languages."""

    lengths: Annotated[dict[Language, Length], Items(1), "length of the training sequences, by task"]
    size: NetworkSize
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
class Deep(NetworkSize):
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
class TaskSweep:
    """Learning rates and iterations that are compared, on seeds of their own."""

    learning_rates: Rates
    iterations: Annotated[
        list[Annotated[float, Bounds(above=0, most=100)]], Items(1), "multiples of the iterations of the figures"
    ]
    languages: Annotated[list[Text], Items(1), "some of postnorm.languages.lengths, which stand for all of them"]
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
    sweep: TaskSweep
    level: Level


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value of `postnorm` that fits its section, but not the rest of the configuration."""
    postnorm = config["postnorm"]
    complements, tasks = postnorm[MINIMAL]["lengths"], postnorm[LANGUAGE]["lengths"]
    rates, dimension = postnorm[MINIMAL]["learning_rate"], postnorm["dimension"]
    for name, length in complements.items():
        if length >= (v := runs.vocabulary(name)):
            yield f"postnorm.{MINIMAL}.lengths.{name} = {length} leaves no token absent; give at most {v - 1}"
        if name not in rates:
            yield f"postnorm.{MINIMAL}.learning_rate.{name} is missing; add the learning rate of each scheme"
    for name in filter(lambda name: name.startswith("dyck"), tasks):
        try:
            languages.language(name)
        except ValueError as error:
            yield f"postnorm.{LANGUAGE}.lengths has the task {name!r}: {error}"
    for part, share in product((MINIMAL, LANGUAGE), postnorm["sweep"]["iterations"]):
        if round(share * (iterations := postnorm[part]["iterations"])) < 1:
            yield f"postnorm.sweep.iterations = {share} of postnorm.{part}.iterations = {iterations} is none; give more"
    widths_of = f"{runs.COMPLEMENT}{dimension['vocabulary']}"
    for key, names, parent, choices in (  # names that some key has, and those that there are
        (f"postnorm.{MINIMAL}.learning_rate", rates, f"in postnorm.{MINIMAL}.lengths", complements),
        ("postnorm.sweep.languages", postnorm["sweep"]["languages"], f"in postnorm.{LANGUAGE}.lengths", tasks),
        (
            "postnorm.averaging.deterministic",
            postnorm["averaging"]["deterministic"],
            f"in postnorm.{LANGUAGE}.lengths",
            tasks,
        ),
        ("evidence.postnorm", config["evidence"]["postnorm"], "trained", [*complements, *tasks, "averaging"]),
        (
            "postnorm.dimension.vocabulary",
            [dimension["vocabulary"]],
            f"of a task in postnorm.{MINIMAL}.lengths",
            [runs.vocabulary(name) for name in complements],
        ),
        (
            "postnorm.dimension.schemes",
            dimension["schemes"],
            f"in postnorm.{MINIMAL}.learning_rate.{widths_of}",
            rates.get(widths_of, dimension["schemes"]),
        ),
    ):
        for name in names:
            if name not in choices:
                yield f"{key} = {name!r} is not {parent}; use some of {', '.join(map(str, choices))}"
