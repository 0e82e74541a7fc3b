"""This module has both sides of each statement in sections 4 and 5 of Herasimchyk et al. 2026, from attention kernels.

Attention is `[T, n, n]`, first layer first, or `[T, H, n, n]` where something happens to each head before heads are
averaged (Appendix B); `mixing[T]` is lambda. A statement is a function that returns its slack, the side said to be
larger less the other, one number a comparison: negative where the statement is violated. Theorem 5.5 and Lemma 5.4
compare numbers of any size, so their slack is relative. Whether the hypotheses hold is for the caller to see to.
"""

import numpy as np
import numpy.typing as npt

from position_card.rollout.attention import Array, causal_mask, layer_products, masked_softmax
from position_card.rollout.last_row import rollout_matrix, transition


def prefix_mass(profile: Array) -> Array:
    """Sum the mass on the first k positions for k = 1..n, `[..., n]`, of profiles `[..., n]` (section 4)."""
    return profile.cumsum(axis=-1)


def monotonicity_violation(kernel: Array) -> float:
    """Return the largest violation of Assumption 4.1 by kernels `[..., n, n]`; 0 if they are stochastically monotone.

    That is how much more mass a row has on some prefix than an earlier row has, at most.
    """
    prefix = prefix_mass(kernel)
    least_so_far = np.minimum.accumulate(prefix, axis=-2)
    return float((prefix[..., 1:, :] - least_so_far[..., :-1, :]).max(initial=0.0))


def reweighted(attention: Array, logits: Array) -> Array:
    """Change attention `[..., n, n]` by adding `logits` (same shape, or one that broadcasts) inside its softmax."""
    is_read = attention > 0
    return masked_softmax(np.log(np.where(is_read, attention, 1)) + logits, is_read)


def rollouts(attention: Array, mixing: Array) -> Array:
    """Return P of the first 1, 2, ... T layers, `[T, n, n]`."""
    return layer_products(map(transition, attention, mixing))


# Section 4: finite depth, four forces


def primacy_drift(attention: Array, mixing: Array) -> Array:
    """Prop. 4.2: return what each layer from the second on adds to the last row's prefix masses, `[T - 1, n - 1]`."""
    return np.diff(prefix_mass(rollouts(attention, mixing)[:, -1])[:, :-1], axis=0)


def residual_drift(attention: Array, mixing: Array, larger: Array) -> Array:
    """Prop. 4.3: return prefix masses of the last row with `larger[T]` >= mixing, less those by `mixing`, `[n - 1]`."""
    return _last_prefix(attention, larger) - _last_prefix(attention, mixing)


def positional_drift(heads: Array, bias: Array, mixing: Array) -> Array:
    """Prop. 4.4: return prefix masses of the last row without `bias`, less those with it, `[n - 1]`.

    The bias, `[H, n, n]` or `[T, H, n, n]`, must not fall from a key to a later one. Either kernel may be the one that
    satisfies Assumption 4.1: the rows of one dominate those of the other, and the induction can take both orders.
    """
    return _last_prefix(heads.mean(1), mixing) - _last_prefix(reweighted(heads, bias).mean(1), mixing)


def content_drift(heads: Array, diagonal: Array, mixing: Array) -> Array:
    """Prop. 4.5: return prefix masses without diagonal content `[T, H]`, less those with it, `[n (n - 1) / 2]`.

    One number for each output row i and cutoff k < i: none is negative where every logit is >= 0, none positive where
    every logit is <= 0.
    """
    n = heads.shape[-1]
    content = reweighted(heads, diagonal[..., None, None] * np.eye(n))
    without, with_content = (
        prefix_mass(rollout_matrix(map(transition, layers.mean(1), mixing))) for layers in (heads, content)
    )
    return (without - with_content)[np.tril_indices(n, -1)]


def _last_prefix(attention: Array, mixing: Array) -> Array:
    return prefix_mass(rollout_matrix(map(transition, attention, mixing))[-1])[:-1]


# Section 5: infinite depth


def hidden_norms(states: Array, mixing: Array, values: Array, logits: Array) -> Array:
    """Largest row norm of the hidden states after each layer, over that of the input, `[T]`.

    A layer maps X to (1 - lambda) X + lambda A X W_V, where A is the causal softmax of X M X^T. `states` is X
    `[n, d]`, `values` are W_V `[T, d, d]`, and `logits` is M `[d, d]`, the same in every layer.
    """
    mask = causal_mask(len(states))
    first = np.linalg.norm(states, axis=-1).max()
    norms = []
    for mix, value in zip(mixing, values, strict=True):
        attention = masked_softmax(states @ logits @ states.T, mask)
        states = (1 - mix) * states + mix * attention @ states @ value
        norms.append(np.linalg.norm(states, axis=-1).max())
    return np.array(norms) / first


def growth_bound(mixing: Array, excess: Array) -> Array:
    """Proof of Lemma 5.4(i): prod_t (1 + lambda_t excess_t), above `hidden_norms`, `[T]`.

    The excess of a layer is max(0, ||W_V|| - 1); Assumption 5.2 says that its sum is finite.
    """
    bound: Array = (1 + mixing * excess).cumprod()
    return bound


def exponential_growth(mixing: Array, excess: Array) -> Array:
    """Proof of Lemma 5.4(i): exp(sum_t lambda_t excess_t), above `growth_bound`, `[T]`."""
    return np.exp((mixing * excess).cumsum())


def attention_floor(attention: Array) -> float:
    """Return epsilon of Lemma 5.4: the smallest weight of causal attention `[..., n, n]` on a token it may read."""
    return float(attention[..., causal_mask(attention.shape[-1])].min())


def softmax_floor(logits: Array) -> Array:
    """Lemma 5.4(ii): return the smallest weight of each row, over e^-B / n, less 1, `[..., n]`.

    `logits[..., n, n]` range over at most B within what a row may read; B is the largest range of any row.
    """
    n = logits.shape[-1]
    mask = causal_mask(n)
    highest, lowest = (np.where(mask, logits, fill) for fill in (-np.inf, np.inf))
    largest_range = (highest.max(-1) - lowest.min(-1)).max(-1, keepdims=True)
    smallest_weight = np.where(mask, masked_softmax(logits, mask), np.inf).min(-1)
    return smallest_weight * n * np.exp(largest_range) - 1


def diagonal_bound(mixing: Array, floor: float) -> Array:
    """Theorem 5.5(i): return prod_t (1 - lambda_t (1 - epsilon)), below P_ii at each depth, `[T]`."""
    stays: Array = (1 - mixing) + mixing * floor  # nothing cancels where lambda is 1 and epsilon is small
    return stays.cumprod()


def tail_bound(mixing: Array, floor: float, n: int) -> Array:
    """Theorem 5.5(ii): return prod_t (1 - lambda_t (j - 1) epsilon) at each depth for j = 2..n, `[T, n - 1]`.

    `mixing` `[T]` has lambda of each layer, and `floor` is epsilon, the least attention weight that a row gives to a
    token that it reads.
    """
    stays: Array = 1 - mixing[:, None] * floor * np.arange(1, n)
    return stays.cumprod(axis=0)


def exponential_bound(mixing: Array, floor: float, n: int) -> Array:
    """Theorem 5.5(ii): return exp(-(j - 1) epsilon sum_t lambda_t) at each depth for j = 2..n, `[T, n - 1]`."""
    total: Array = mixing.cumsum()[:, None]
    return np.exp(-floor * np.arange(1, n) * total)


def retention(attention: Array, mixing: Array) -> Array:
    """Theorem 5.5(i): return 1 less the bound over what each token keeps of itself, P_ii, `[T, n]`."""
    share: Array = rollouts(attention, mixing).diagonal(axis1=-2, axis2=-1)
    return 1 - diagonal_bound(mixing, attention_floor(attention))[:, None] / share


def collapse(attention: Array, mixing: Array) -> Array:
    """Theorem 5.5(ii): return 1 less the mass of row i from token j on, over the bound of P_ij, `[T, n (n - 1) / 2]`.

    One number for each i >= j > 1. The proof bounds all of this mass, hence P_ij too; j = 2 leaves the first token.
    """
    n = attention.shape[-1]
    tail = rollouts(attention, mixing)[..., ::-1].cumsum(-1)[..., ::-1][..., 1:]
    ratio = tail / tail_bound(mixing, attention_floor(attention), n)[:, None, :]
    return 1 - ratio[(..., *np.tril_indices(n, -1))]


def exponential_step(attention: Array, mixing: Array) -> Array:
    """Theorem 5.5(ii): return 1 less the product over the exponential that bounds it, `[T, n - 1]`."""
    floor, n = attention_floor(attention), attention.shape[-1]
    return 1 - tail_bound(mixing, floor, n) / exponential_bound(mixing, floor, n)


def beyond_first(attention: Array, mixing: npt.ArrayLike) -> Array:
    """Return 1 - P(first token) of the last row at each depth, `[T]`, with the same attention `[n, n]` in every layer.

    Summed from what lies beyond the first token, so that it stays exact however little that is.
    """
    beyond = np.ones(len(attention))
    beyond[0] = 0.0
    last = []
    for mix in np.asarray(mixing):
        beyond = (1 - mix) * beyond + mix * (attention @ beyond)
        last.append(beyond[-1])
    return np.array(last)
