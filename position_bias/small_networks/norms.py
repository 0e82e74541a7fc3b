"""This module says where a transformer normalises: each norm and each placement is defined once.

A norm acts on the last axis; its gain `[E, d]` is that of E stacked models, whose tensors are `[E, ..., d]`.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from position_bias.small_networks.settings import Norm, Placement

Apply = Callable[[Tensor], Tensor]

EPSILON = {"rms": 1e-6, "layer": 1e-5}  # beside the mean square: the usual values
NORMALISED: dict[Placement, tuple[str, ...]] = {  # of a block: its input, its output, or the sum with what it adds to
    "none": (),
    "pre": ("input",),
    "post": ("sum",),
    "peri": ("input", "output"),
    "peri-init": ("input", "output"),
}


def normalise(x: Tensor, gain: Tensor, norm: Norm) -> Tensor:
    """Apply RMSNorm or LayerNorm (without shift) to `x` [E, ..., d], times `gain` [E, d]."""
    gain = gain.view(len(gain), *[1] * (x.ndim - 2), -1)
    if norm == "layer":
        return functional.layer_norm(x, x.shape[-1:], eps=EPSILON[norm]) * gain
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON[norm]) * gain


def add_block(x: Tensor, block: Apply, placement: Placement, norms: Callable[[str], Apply]) -> Tensor:
    """Return the residual stream after a block, attention or MLP; `norms` gives the norm of each place in NORMALISED.

    none: x + B(x). pre: x + B(N(x)). post: N(x + B(x)). peri: x + N(B(N(x))). Peri-init is peri on
    normalised embeddings; it is the decoder that normalises them, not this function.
    """
    places = NORMALISED[placement]
    update = block(norms("input")(x) if "input" in places else x)
    total = x + (norms("output")(update) if "output" in places else update)
    return norms("sum")(total) if "sum" in places else total
