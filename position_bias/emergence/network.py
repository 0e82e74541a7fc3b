"""The paper's attention-only networks (Section 5, App. J) are stacks of members that share depth and wiring.

A member has single-head attention layers with square W_Q, W_K, W_V and no biases, then a ReLU MLP of three layers and a
linear read-out on the query, the last token. Where a study asks for it, layers normalise as in `norms`, with LayerNorm
(our addition: the paper's networks have no norms). Here stand the formulas as one would write them down; `folded`
computes the same logits faster.

Axes: E members, S sequences, T tokens, d coordinates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from position_bias import attention
from position_bias.emergence.studies import Network
from position_bias.emergence.task import Task
from position_bias.small_networks import norms
from position_bias.small_networks.ensemble import Parameters, generators, uniform
from position_bias.small_networks.settings import Placement

MLP = 3  # hidden layers of the classifier

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Stack:
    """What the members of a stack share (depth, wiring, rotation, norms), and the positional part of each."""

    depth: int
    residual: bool
    logits: Tensor  # [E, 1, T, T] added to the attention logits: -inf where the mask forbids, decay elsewhere
    added: Tensor | None  # [E, 1, T, d] sinusoids added to the tokens, zeros for members without
    rotation: Tensor | None  # [T, d/2] complex, RoPE's
    placement: Placement  # of LayerNorm


def stack(
    task: Task,
    networks: Sequence[Network],
    depth: int,
    residual: bool,
    device: str,
    dtype: torch.dtype = torch.float32,
    placement: Placement = "none",
) -> Stack:
    """Return the stack of `networks`, of which all use RoPE or none does.

    Norms need residual connections: without these, there is no sum to place them by. Raises ValueError for a mask or
    encoding that does not fit the task.
    """
    sinusoids = [network.encoding == "sin" for network in networks]
    logits = np.stack([attention_logits(task, network) for network in networks])
    added = rotation = None
    if any(sinusoids):
        encoding = attention.sinusoidal_encoding(task.tokens, task.width)
        added = torch.from_numpy(np.stack([used * encoding for used in sinusoids]))[:, None].to(device, dtype)
    if networks[0].encoding == "rope":
        angles = torch.from_numpy(attention.rotary_angles(task.tokens, task.width))
        rotation = torch.polar(torch.ones_like(angles), angles).to(device, dtype.to_complex())
    return Stack(depth, residual, torch.from_numpy(logits)[:, None].to(device, dtype), added, rotation, placement)


def attention_logits(task: Task, network: Network) -> attention.Array:
    """What a network's mask and decay add to its attention logits, `[T, T]`. Raises ValueError as `stack` does."""
    towards_earlier = np.minimum(attention.alibi_bias(task.tokens, [network.slope])[0], 0)  # Eq. 2: 0 for later tokens
    return np.where(mask(task, network), towards_earlier if network.encoding == "decay" else 0.0, -np.inf)


def mask(task: Task, network: Network) -> attention.Mask:
    """Return which tokens a query may read, `[T, T]`. Raises ValueError as `stack` does."""
    match network.mask:
        case "none":
            return attention.full_mask(task.tokens)
        case "causal":
            return attention.causal_mask(task.tokens)
        case "window":
            return attention.sliding_window_mask(task.tokens, network.reach)
        case "prefix":
            return attention.prefix_mask(task.tokens, network.reach)


def initial(task: Task, depth: int, seeds: Sequence[int], device: str, placement: Placement = "none") -> Parameters:
    """Return untrained weights, one member a seed: a network of another mask, encoding or norm starts from the same."""
    d, L = task.width, task.labels
    drawn = generators(seeds, "weights")
    shapes: dict[str, tuple[int, ...]] = {f"{name}{layer}": (d, d) for layer in range(depth) for name in "qkv"}
    for layer in range(MLP):
        shapes |= {f"mlp{layer}": (d, d), f"mlp{layer}_bias": (1, d)}
    shapes |= {"readout": (d, L), "readout_bias": (1, L)}
    gains = [f"{place}_gain{layer}" for layer in range(depth) for place in norms.NORMALISED[placement]]
    ones = {name: torch.ones(len(seeds), d, device=device) for name in gains}
    return {name: uniform(drawn, shape, d, device) for name, shape in shapes.items()} | ones


def encoded(stack: Stack, tokens: Tensor) -> Tensor:
    """Return the tokens `[E, S, T, d]` with the sinusoids of the members that have them."""
    return tokens if stack.added is None else tokens + stack.added


def represented(weights: Weights, stack: Stack, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the tokens after all layers, `[E, S, T, d]`, and the attention of every layer, `[E, depth, S, T, T]`."""
    x = encoded(stack, tokens)
    maps: list[Tensor] = []
    for layer in range(stack.depth):

        def block(y: Tensor, layer: int = layer) -> Tensor:
            q, k, v = (project(y, weights[f"{name}{layer}"]) for name in "qkv")
            if stack.rotation is not None:
                q, k = rotate(q, stack.rotation), rotate(k, stack.rotation)
            maps.append(functional.softmax(q @ k.transpose(-1, -2) / math.sqrt(y.shape[-1]) + stack.logits, -1))
            return maps[-1] @ v

        def norm_of(place: str, layer: int = layer) -> norms.Apply:
            return lambda y: norms.normalise(y, weights[f"{place}_gain{layer}"], "layer")

        x = norms.add_block(x, block, stack.placement, norm_of) if stack.residual else block(x)
    return x, torch.stack(maps, 1)


def classify(weights: Weights, query: Tensor) -> Tensor:
    """The three-layer MLP and the read-out, on the query's representation `[E, S, d]`."""
    for layer in range(MLP):
        query = functional.relu(torch.baddbmm(weights[f"mlp{layer}_bias"], query, weights[f"mlp{layer}"]))
    return torch.baddbmm(weights["readout_bias"], query, weights["readout"])


def project(x: Tensor, W: Tensor) -> Tensor:
    """Multiply `x` [E, S, T, d] by each member's `W` [E, d, d]."""
    return torch.bmm(x.flatten(1, 2), W).view(x.shape)


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Turn each pair of neighbouring coordinates by the angle of its token."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(-2)
