"""What rollout needs of a network: its mean attention, residual mixing, content on the diagonal, and value matrices.

Axes: E members, M sequences, T tokens, d coordinates.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from position_bias.attention import Array
from position_bias.emergence.network import Stack, Weights, encoded, project, represented
from position_bias.language_models.quantities import frobenius_mixing, squared_norms

SMALLEST = torch.finfo(torch.float32).tiny  # of attention: a logarithm of less would be infinite


@dataclass(frozen=True)
class Inside:
    """Of one network, over sequences; first layer first."""

    attention: Array  # mean, [depth, T, T]
    mixing: Array  # lambda, mean over sequences, [depth]; 1 without residual connections
    content: Array  # logit of a token with itself less that with an earlier one, mean over both, [depth]
    values: Array  # W_V, [depth, d, d]


@torch.no_grad()
def measured(weights: Weights, stack: Stack, parts: Iterable[Tensor]) -> list[Inside]:
    """Measure each network of a stack on sequences, tokens `[E, M, T, d]` in parts."""
    total, sums = 0, [torch.zeros(())] * 3
    for tokens in parts:
        _, maps = represented(weights, stack, tokens)
        found = maps.double().sum(2), _mixing(weights, stack, tokens, maps).sum(-1), _content(stack, maps).sum(-1)
        sums = [kept + new for kept, new in zip(sums, found, strict=True)]
        total += tokens.shape[1]
    values = torch.stack([weights[f"v{layer}"] for layer in range(stack.depth)], 1).double()
    means = zip(*(value / total for value in sums), values, strict=True)
    return [Inside(*(value.cpu().numpy() for value in of_member)) for of_member in means]


def _mixing(weights: Weights, stack: Stack, tokens: Tensor, maps: Tensor) -> Tensor:
    """lambda (structural, Eq. 1) of each layer and sequence, `[E, depth, M]`."""
    x, found = encoded(stack, tokens), []
    for layer in range(stack.depth):
        read = maps[:, layer] @ project(x, weights[f"v{layer}"])
        whole = frobenius_mixing(squared_norms(x), squared_norms(read)).double()
        found.append(whole if stack.residual else torch.ones_like(whole))
        x = x + read if stack.residual else read
    return torch.stack(found, 1)


def _content(stack: Stack, maps: Tensor) -> Tensor:
    """How much higher the content logit of a token with itself is than that with earlier ones, `[E, depth, M]`.

    It is a mean over rows from the second on, taken row by row: what shifts all logits of a row cancels.
    """
    logits = maps.double().clamp_min(SMALLEST).log() - stack.logits[:, None].double()  # mask: inf, never read below
    rows = torch.arange(1, maps.shape[-1])
    earlier = torch.stack([logits[..., row, :row].mean(-1) for row in rows.tolist()], -1)
    return (logits[..., rows, rows] - earlier).mean(-1)
