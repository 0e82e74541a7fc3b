"""The networks that are trained, and the sequences that they read; free of torch.

They stand apart from the settings, so that another bound there trains nothing again.
"""

from typing import Annotated

from position_bias.running.section import Bounds, section
from position_bias.small_networks.settings import Norm, Placement

NETWORKS: dict[str, tuple[Placement, Norm, bool]] = {  # placement, norm, whether one stands before the read-out
    "none": ("none", "layer", False),
    "pre-layer": ("pre", "layer", True),
    "pre-rms": ("pre", "rms", True),
    "post-layer": ("post", "layer", False),
}


@section
class Data:
    """Exchangeable sequences."""

    vocabulary: Annotated[int, Bounds(2, 1_000_000), "different tokens"]
    tokens: Annotated[int, Bounds(9, 4096), "tokens that a network reads; recency needs 9"]
    skew: Annotated[float, Bounds(0, 100), "power of the uniform numbers that token frequencies are made of"]
