"""This module takes cosines between the vectors that attention reads: the Gram matrix that LayerNorm turns to recent
keys (layernorm; there the scores of a layer are these products themselves).
"""

import torch
from torch import Tensor
from torch.nn import functional

from position_bias.recency import FIRST_ROW


def unit_vectors(inputs: Tensor) -> Tensor:
    """Bring the inputs of queries and keys `[B, n, d]` to norm 1, float32."""
    return functional.normalize(inputs.detach().float(), dim=-1)


def add_cosines(total: Tensor, unit: Tensor) -> None:
    """Add the cosines of a batch `[B, n, d]`, summed over its prompts, to `total` [n, n]."""
    flat = unit.transpose(0, 1).flatten(1)
    total.addmm_(flat, flat.T)


def recency(unit: Tensor) -> Tensor:
    """Take `recency.recency` of the cosines of each prompt, in O(n d): [B, n, d] -> [B]; n must exceed FIRST_ROW.

    A row's mean over a quarter of its keys is its product with the mean key, which takes a running sum.
    """
    rows = torch.arange(FIRST_ROW, unit.shape[1], device=unit.device)
    quarter = (rows // 4).clamp(min=1)
    sums = functional.pad(unit.cumsum(1), (0, 0, 1, 0))  # sums[:, j] is that of the keys before j
    difference = sums[:, rows] - sums[:, rows - quarter] - sums[:, quarter]
    return ((unit[:, FIRST_ROW:] * difference).sum(-1) / quarter).mean(-1)
