"""What of `layernorm` a configuration can ask for; free of torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from position_bias.attention import uneven_heads

if TYPE_CHECKING:  # every call of the workflow reads this module, and norms are a matter of torch
    from position_bias.small_networks.norms import Norm, Placement

NETWORKS: dict[str, tuple["Placement", "Norm", bool]] = {  # placement, norm, whether one stands before the read-out
    "none": ("none", "layer", False),
    "pre-layer": ("pre", "layer", True),
    "pre-rms": ("pre", "rms", True),
    "post-layer": ("post", "layer", False),
}


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """What of `layernorm` in a configuration fits its schema, and not its other values; a line each."""
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
