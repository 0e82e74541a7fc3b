"""What a configuration can ask of `layernorm`. It imports no torch, since every call of the workflow reads it."""

from typing import Annotated

from position_bias.small_networks.settings import NetworkSize, Norm, Placement
from position_bias.workflow.section import (
    Bounds,
    Count,
    Decay,
    Items,
    Keys,
    Level,
    Names,
    Rate,
    Rates,
    Seed,
    Seeds,
    Small,
    section,
)
from position_card.rollout.attention import uneven_heads

NETWORKS: dict[str, tuple[Placement, Norm, bool]] = {  # placement, norm, whether one stands before the read-out
    "none": ("none", "layer", False),
    "pre-layer": ("pre", "layer", True),
    "pre-rms": ("pre", "rms", True),
    "post-layer": ("post", "layer", False),
}
Anisotropy = Annotated[float, Bounds(0, below=1), "expected cosine of two embeddings, in [0, 1)"]


@section
class Curve:
    """Anisotropies of the curves in closed form, from 0 on."""

    step: Annotated[float, Bounds(0.001, 1), "distance of two anisotropies of the curves in closed form"]
    last: Annotated[Anisotropy, "the largest of these anisotropies, in [0, 1)"]


@section
class Simulation:
    """The decoder without parameters."""

    tokens: Annotated[int, Bounds(9, 1024), "tokens of a sequence; recency needs 9"]
    width: Annotated[int, Bounds(2, 65536), "coordinates of a token"]
    layers: Annotated[int, Bounds(2, 100), "layers of the score maps"]
    strength: Annotated[float, Bounds(0, 1000), "factor of the scores in the softmax"]
    anisotropy: Annotated[list[Anisotropy], Items(1), "expected cosines of two embeddings, each in [0, 1)"]
    sequences: Annotated[int, Bounds(2, 100_000_000), "sequences that are averaged over"]
    deepest: Annotated[int, Bounds(2, 200), "layers of the curves against depth"]
    depth_anisotropy: Anisotropy
    curve: Curve
    limit_tokens: Annotated[int, Bounds(1000, 10_000), "tokens of the sequences that limits are judged on"]
    seed: Annotated[Seed, "seed of the sequences"]


@section
class RandomWeights:
    """Decoders with heads, whose weights are random."""

    tokens: Annotated[int, Bounds(9, 4096), "tokens of a sequence; recency needs 9"]
    width: Annotated[Small, "coordinates of a token; its heads divide it"]
    layers: Annotated[int, Bounds(3, 100_000), "layers of attention; a claim is about those from the third on"]
    heads: Annotated[Small, "heads of attention in a layer"]
    anisotropy: Anisotropy
    residuals: Annotated[
        list[Annotated[float, Bounds(0, 100)]], Items(1), "strengths of the residual connection; 1 is the usual one"
    ]
    sequences: Annotated[Count, "sequences of a seed"]
    seeds: Seeds

    def __post_init__(self) -> None:
        if fault := uneven_heads("width", self.width, self.heads):
            raise ValueError(fault)


@section
class Data:
    """Exchangeable sequences."""

    vocabulary: Annotated[int, Bounds(2, 1_000_000), "different tokens"]
    tokens: Annotated[int, Bounds(9, 4096), "tokens that a network reads; recency needs 9"]
    skew: Annotated[float, Bounds(0, 100), "power of the uniform numbers that token frequencies are made of"]


@section
class TrainedDecoders:
    """Decoders without positional encoding."""

    data: Data
    size: NetworkSize
    batch: Annotated[Count, "sequences of an iteration"]
    iterations: Annotated[Count, "optimiser steps"]
    warmup: Annotated[int, Bounds(0, 1_000_000_000), "iterations of linear warmup; then the rate falls linearly"]
    learning_rate: Annotated[
        dict[str, Rate], Keys(dict.fromkeys(NETWORKS, "learning rate of AdamW")), "learning rate of each network"
    ]
    weight_decay: Decay
    held_out: Annotated[Count, "sequences that networks are looked at on"]
    seeds: Seeds

    def __post_init__(self) -> None:
        if self.warmup >= self.iterations:
            raise ValueError(
                f"warmup = {self.warmup} leaves no iteration after it; "
                f"set it below layernorm.trained.iterations = {self.iterations}"
            )


@section
class DecoderSweep:
    """Learning rates that are compared, on seeds of their own."""

    learning_rates: Rates
    seeds: Seeds


@section
class LayerNorm:
    """Kim et al. 2026: where norms point the scores of a causal decoder."""

    simulation: Simulation
    random_weights: RandomWeights
    trained: TrainedDecoders
    pretrained: Annotated[Names, "the language models whose Gram is shown"]
    sweep: DecoderSweep
    level: Level
