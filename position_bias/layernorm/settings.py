"""What a configuration can ask of `layernorm`. It imports no torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping
from typing import Any

from position_bias.attention import uneven_heads
from position_bias.small_networks.placements import Norm, Placement

NETWORKS: dict[str, tuple[Placement, Norm, bool]] = {  # placement, norm, whether one stands before the read-out
    "none": ("none", "layer", False),
    "pre-layer": ("pre", "layer", True),
    "pre-rms": ("pre", "rms", True),
    "post-layer": ("post", "layer", False),
}


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value of `layernorm` that fits the schema, but not the rest of the configuration."""
    layernorm = config["layernorm"]
    for key, size in (("random_weights", layernorm["random_weights"]), ("trained.size", layernorm["trained"]["size"])):
        if fault := uneven_heads(f"layernorm.{key}.width", size["width"], size["heads"]):
            yield fault
    warmup, iterations = (layernorm["trained"][name] for name in ("warmup", "iterations"))
    if warmup >= iterations:
        yield (
            f"layernorm.trained.warmup = {warmup} leaves no iteration after it; "
            f"set it below layernorm.trained.iterations = {iterations}"
        )
