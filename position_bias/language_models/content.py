"""This module takes means of content logits q.k / sqrt(d), before bias and softmax (structural, Section 6.1).

Proposition 4.5 models them as a constant plus an offset on the diagonal; the constant cancels in the softmax,
so the mean on the diagonal less the mean below it is all that a rollout needs.
"""

import math

from torch import Tensor


def diagonal_mean(query: Tensor, key: Tensor) -> Tensor:
    """Mean of the logits q_i.k_i / sqrt(d) over tokens: [B, n, H, d] twice -> [B, H]."""
    return (query * key).sum((1, 3)) / (query.shape[1] * math.sqrt(query.shape[-1]))


def below_diagonal_mean(query: Tensor, key: Tensor) -> Tensor:
    """Mean of the logits q_i.k_j / sqrt(d) over j < i, in O(n d): [B, n, H, d] twice -> [B, H]; 0 for n = 1.

    sum_i q_i . (k_1 + ... + k_{i-1}) needs only a running sum of keys.
    """
    n, head_dim = query.shape[1], query.shape[-1]
    earlier_keys = key.cumsum(1)[:, :-1]
    pairs = max(n * (n - 1) // 2, 1)
    return (query[:, 1:] * earlier_keys).sum((1, 3)) / (pairs * math.sqrt(head_dim))


def add_logits(total: Tensor, query: Tensor, key: Tensor) -> None:
    """Add the content logits of a batch, summed over its prompts, to `total` [H, n, n].

    One product [H, n, B d] x [H, B d, n] sums over prompts and head dimension at once: the mean over prompts
    needs no logits of a single prompt.
    """
    query_by_head = query.permute(2, 1, 0, 3).flatten(2)
    key_by_head = key.permute(2, 0, 3, 1).flatten(1, 2)
    total.baddbmm_(query_by_head, key_by_head, alpha=1 / math.sqrt(query.shape[-1]))
