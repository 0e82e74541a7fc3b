"""This is a causal transformer decoder without positional encoding, as a stack of models.

Both papers on norms, `layernorm` and `postnorm`, train it.

Axes: E members, S sequences, T tokens, d coordinates, H heads.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from position_bias.small_networks import norms
from position_bias.small_networks.ensemble import Parameters, generators, normal
from position_bias.small_networks.settings import Norm, Placement

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Architecture:
    """What the members of a stack share."""

    inputs: int  # tokens that can be read
    outputs: int  # and predicted
    width: int
    placement: Placement
    layers: int = 1
    heads: int = 1
    hidden: int = 0  # units of a layer's MLP; 0 is attention only
    norm: Norm = "rms"
    final_norm: bool = False  # before the read-out
    has_values: bool = False  # whether a token carries a number, too

    @property
    def blocks(self) -> list[tuple[str, int]]:
        """List kind and layer of the blocks, in order."""
        kinds = ("attention", "mlp") if self.hidden else ("attention",)
        return [(kind, layer) for layer in range(self.layers) for kind in kinds]


@dataclass(frozen=True)
class AttentionTrace:
    """What a layer of attention worked on."""

    inputs: Tensor  # [E, S, T, d] that queries and keys are made of
    logits: Tensor  # [E, S, H, T, T] before the mask
    weights: Tensor  # [E, S, H, T, T]


def initial(architecture: Architecture, seeds: Sequence[int], device: str) -> Parameters:
    """Draw untrained weights by name, float32 `[members, ...]`, a member a seed, on a device.

    They are Gaussian with variance 1/fan-in; gains are 1 and biases 0. Networks of one size and seed start from the
    same weights, wherever they normalise.
    """
    d, h = architecture.width, architecture.hidden
    shapes = {"embedding": ((architecture.inputs, d), d), "readout": ((d, architecture.outputs), d)}
    for layer in range(architecture.layers):
        shapes |= {f"{name}{layer}": ((d, d), d) for name in "qkvo"}
        if h:
            shapes |= {f"in{layer}": ((d, h), d), f"out{layer}": ((h, d), h)}
    if architecture.has_values:
        shapes |= {"value": ((1, d), d)}
    by_member = generators(seeds, "weights")
    weights = {name: normal(by_member, shape, fan_in, device) for name, (shape, fan_in) in shapes.items()}
    if h:
        weights |= {
            f"in{layer}_bias": torch.zeros(len(seeds), 1, h, device=device) for layer in range(architecture.layers)
        }
    return weights | {name: torch.ones(len(seeds), d, device=device) for name in _gains(architecture)}


def logits(
    weights: Weights,
    architecture: Architecture,
    tokens: Tensor,
    values: Tensor | None = None,
    trace_attention: Callable[[AttentionTrace], None] | None = None,
) -> Tensor:
    """Return logits of the outputs after every token, `[E, S, T, outputs]`, for tokens (and values) `[E, S, T]`.

    `trace_attention` is called with what attention works on in each layer. Tokens lie in [0, inputs), which is not
    checked: that would wait for the device.
    """
    x = _embed(weights, architecture, tokens, values)
    mask = torch.full((x.shape[-2], x.shape[-2]), -torch.inf, device=x.device).triu(1)
    for kind, layer in architecture.blocks:

        def block(y: Tensor, kind: str = kind, layer: int = layer) -> Tensor:
            return (
                _mlp(weights, layer, y)
                if kind == "mlp"
                else _attention(weights, layer, y, architecture.heads, mask, trace_attention)
            )

        def norm_of(place: str, kind: str = kind, layer: int = layer) -> norms.Apply:
            return _norm(weights, architecture, f"{kind}{layer}_{place}")

        x = norms.add_block(x, block, architecture.placement, norm_of)
    if architecture.final_norm:
        x = _norm(weights, architecture, "final")(x)
    return _project(x, weights["readout"])


def _embed(weights: Weights, architecture: Architecture, tokens: Tensor, values: Tensor | None) -> Tensor:
    """The residual stream that enters the first layer, `[E, S, T, d]`."""
    table = weights["embedding"]
    rows = torch.arange(len(tokens), device=tokens.device)[:, None, None] * architecture.inputs
    x = functional.embedding(tokens + rows, table.flatten(0, 1))
    if architecture.has_values:
        if values is None:
            raise ValueError("values = None: these networks read tokens that carry a number; give values [E, S, T]")
        x = x + values[..., None] * weights["value"][:, None]
    return _norm(weights, architecture, "embedding")(x) if architecture.placement == "peri-init" else x


def _gains(architecture: Architecture) -> list[str]:
    """Names of the gains that the architecture has."""
    places = norms.NORMALISED[architecture.placement]
    gains = [f"{kind}{layer}_{place}_gain" for kind, layer in architecture.blocks for place in places]
    if architecture.placement == "peri-init":
        gains.append("embedding_gain")
    return [*gains, "final_gain"] if architecture.final_norm else gains


def _norm(weights: Weights, architecture: Architecture, place: str) -> norms.Apply:
    return lambda x: norms.normalise(x, weights[f"{place}_gain"], architecture.norm)


def _attention(
    weights: Weights,
    layer: int,
    x: Tensor,
    heads: int,
    mask: Tensor,
    trace_attention: Callable[[AttentionTrace], None] | None,
) -> Tensor:
    """Return what softmax attention of a layer makes of `x` `[E, S, T, d]`; same shape.

    `mask` `[T, T]` is added to the logits q.k / sqrt(d / heads). `trace_attention` is told inputs, logits and weights.
    """
    E, S, T, d = x.shape
    q, k, v = (
        _project(x, weights[f"{name}{layer}"]).view(E, S, T, heads, -1).transpose(2, 3).reshape(E * S * heads, T, -1)
        for name in "qkv"
    )
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d // heads)
    A = functional.softmax(scores + mask, -1)
    if trace_attention is not None:
        trace_attention(AttentionTrace(x, scores.view(E, S, heads, T, T), A.view(E, S, heads, T, T)))
    mixed = torch.bmm(A, v).view(E, S, heads, T, -1).transpose(2, 3).reshape(E, S, T, d)
    return _project(mixed, weights[f"o{layer}"])


def _mlp(weights: Weights, layer: int, x: Tensor) -> Tensor:
    """Return what the MLP of a layer, with one hidden layer of ReLU units, makes of `x` `[E, S, T, d]`; same shape."""
    units = torch.baddbmm(weights[f"in{layer}_bias"], x.flatten(1, 2), weights[f"in{layer}"])
    return torch.bmm(functional.relu(units), weights[f"out{layer}"]).view(x.shape)


def _project(x: Tensor, W: Tensor) -> Tensor:
    """`x` [E, S, T, d] times each member's `W` [E, d, *]."""
    return torch.bmm(x.flatten(1, 2), W).view(*x.shape[:-1], -1)
