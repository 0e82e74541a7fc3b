"""How much the scores of a causal decoder favour recent keys over early ones, as one number for a matrix.

This measure is our addition. Row i scores the keys j < i, counted from 0; what a token makes of itself says nothing
about order and is left out. So are the first rows, which have too few keys to compare.
"""

import numpy as np
import numpy.typing as npt

from position_card.rollout.attention import Array, causal_mask

FIRST_ROW = 8  # that is looked at: it has two keys a quarter


def recency_weights(n: int) -> Array:
    """Return weights `[n, n]` whose sum with scores is their recency: linear, so means over sequences may come first.

    Recency is the mean over rows i >= `FIRST_ROW` of the mean of the last quarter of the keys j < i less that of the
    first; a quarter is i // 4 keys. Raises ValueError where no row is left.
    """
    rows = _rows(n)
    weights = np.zeros((n, n))
    for i in rows:
        quarter = i // 4
        weights[i, :quarter] = -1 / quarter
        weights[i, i - quarter : i] = 1 / quarter
    return weights / len(rows)


def recency(scores: npt.ArrayLike) -> Array:
    """Return recency of scores `[..., n, n]`, `[...]`: above 0 where recent keys score higher (`recency_weights`)."""
    scores = np.asarray(scores, np.float64)
    return np.einsum("...ij,ij->...", scores, recency_weights(scores.shape[-1]))


def relative_recency(scores: npt.ArrayLike) -> Array:
    """Recency of scores `[..., n, n]` over their mean absolute value below the diagonal, `[...]`.

    This compares scores whose scale means nothing, such as those that grow with depth for want of a norm.
    """
    return recency(scores) / mean_size(scores)


def mean_size(scores: npt.ArrayLike) -> Array:
    """Return the mean absolute value of scores `[..., n, n]` below the diagonal, `[...]`."""
    scores = np.asarray(scores, np.float64)
    return np.abs(scores[..., _earlier(scores.shape[-1])]).mean(axis=-1)


def mean_relative_position(attention: npt.ArrayLike) -> Array:
    """Say where attention `[..., n, n]` to earlier tokens lies: 0 the first key, 1 the one before, 1/2 uniform.

    The mean over rows i >= `FIRST_ROW` of sum_j A_ij j / (i - 1) over sum_j A_ij, both over j < i. A row that gives
    earlier tokens nothing has no such place: NaN.
    """
    attention = np.asarray(attention, np.float64)
    n = attention.shape[-1]
    rows = np.array(_rows(n))
    earlier = (attention * _earlier(n))[..., rows, :]
    with np.errstate(invalid="ignore"):
        places = earlier @ np.arange(n) / (rows - 1) / earlier.sum(axis=-1)
    return places.mean(axis=-1)


def _earlier(n: int) -> npt.NDArray[np.bool_]:
    return causal_mask(n) & ~np.eye(n, dtype=bool)


def _rows(n: int) -> range:
    if n <= FIRST_ROW:
        raise ValueError(f"n = {n}: recency looks at rows from {FIRST_ROW} on, counted from 0; give more tokens")
    return range(FIRST_ROW, n)
