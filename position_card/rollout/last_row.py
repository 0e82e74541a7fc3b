"""Residual-aware attention rollout tells how much of each input token reaches the last one.

It is that of Herasimchyk et al. 2026, Section 3. One layer moves information by R = (1 - lambda) I + lambda A, and T of
them by P = R_T ... R_1. The profile is the last row of P. `dense_last_row` multiplies it out and is the one to read.
`last_row` gives the same numbers without building a matrix, in time proportional to layers x heads x n:

With ALiBi slope a and w = e^-a, row i of a head gives weight on[h] to itself and off[h] w^(i-j-1) to each j < i, over
their sum Z_i. So a row vector p meets the head's attention A as one first-order recurrence from the last token back,

    g_i = p_i / Z_i        r_j = g_(j+1) + w r_(j+1)        (p A)_j = off r_j + on g_j        r_(n-1) = 0

and all terms are positive: nothing cancels. Positions and layers count from 0; the last layer acts on the row first.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt
from numba import njit

from position_card.rollout.attention import (
    Array,
    checked_diagonal,
    checked_length,
    checked_slopes,
    checked_window,
    content_free_attention,
)

# Sums over heads may be reordered (that is what lets them run as SIMD) and fused. NaN and infinity keep their meaning.
compiled = njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

STANDSTILL = 38.0  # beyond i = 38 / a the sum Z_i stands still: what is missing, e^-38, is below half a rounding error
NEGLIGIBLE = 1e-290  # smaller states count as zero, because arithmetic on subnormal numbers is slow
MOST_BUFFERED = 2**23  # numbers in each of the sliding window's three buffers: bounds how many heads are done together
LEAST_TOGETHER = 8  # but fewer heads than this would waste SIMD


def transition(attention: Array, mixing: float) -> Array:
    """Return R = (1 - lambda) I + lambda A of one layer, `[n, n]`, from its attention `[n, n]` and lambda."""
    return (1 - mixing) * np.eye(len(attention)) + mixing * attention


def rollout_matrix(transitions: Iterable[Array]) -> Array:
    """Return P = R_T ... R_1, `[n, n]`, from at least one transition `[n, n]`, first layer first."""
    return reduce(lambda rollout, layer: layer @ rollout, transitions)


def dense_last_row(
    n: int,
    mixing: npt.ArrayLike,
    slopes: npt.ArrayLike,
    diagonal: npt.ArrayLike | None = None,
    window: int | None = None,
) -> Array:
    """Compute what `last_row` does by multiplying [n, n] matrices; heads are averaged uniformly (Appendix B)."""
    mixing = checked_mixing(mixing)
    slopes = checked_slopes(slopes)
    diagonal = checked_diagonal(diagonal, (len(mixing), len(slopes)))

    def layer_attention(content: Array) -> Array:
        heads = (content_free_attention(n, [a], [delta], window)[0] for a, delta in zip(slopes, content, strict=True))
        return sum(heads) / len(slopes)  # one head at a time: together they would not fit in memory

    layers = zip(mixing, diagonal, strict=True)
    return rollout_matrix(transition(layer_attention(content), mix) for mix, content in layers)[-1]


def last_row(
    n: int,
    mixing: npt.ArrayLike,
    slopes: npt.ArrayLike,
    diagonal: npt.ArrayLike | None = None,
    window: int | None = None,
) -> Array:
    """Return the influence of each of n tokens on the last one, `[n]`, summing to 1: the last row of the rollout.

    `mixing[T]` holds lambda of each layer, first layer first, within [0, 1]; `slopes[H]` the ALiBi slopes (0: no
    positional bias); `diagonal[T, H]` the logit that each head adds where a token reads itself (Prop. 4.5). Each
    token reads itself and all tokens before it or, with a `window`, the latest `window` of these. Memory is one
    number a position and a few a head; a window adds at most 200 MB for a million tokens.
    """
    n, mixing, slopes = checked_length(n), checked_mixing(mixing), checked_slopes(slopes)
    diagonal = checked_diagonal(diagonal, (len(mixing), len(slopes)))
    window = n if window is None else checked_window(window)
    flattest_first = np.argsort(slopes, kind="stable")
    slopes = slopes[flattest_first]
    on, off = _row_weights(slopes, np.ascontiguousarray(diagonal[:, flattest_first]))
    if window >= n:
        return _causal_last_row(n, mixing, slopes, on, off)
    if window == 1:
        return _last_token(n)  # nobody reads anybody else
    return _windowed_last_row(n, window - 1, mixing, slopes, on, off)


def attended_last_rows(attention: npt.ArrayLike, mixings: Iterable[npt.ArrayLike]) -> Array:
    """Last rows `[R, n]` of rollouts through given, for example measured, attention `[T, n, n]`: one a mixing `[T]`.

    Together they take a fraction of the time that they take one by one.
    """
    attention, by_row = np.asarray(attention), checked_mixings(mixings)
    rows = np.tile(_last_token(attention.shape[1]), (len(by_row), 1))
    for mix, layer in zip(by_row.T[::-1, :, None], attention[::-1], strict=True):
        rows = (1 - mix) * rows + mix * (rows @ np.asarray(layer, np.float64))  # all at once they take double memory
    return rows


def attended_last_rows_of_means(
    attention: Sequence[npt.ArrayLike], weights: Array, mixings: Iterable[npt.ArrayLike]
) -> Array:
    """Last rows `[R, n]` of rollouts, each through a sum of G attentions `[T, n, n]` weighed by a row of `[R, G]`.

    Rows of the sum are divided by their totals, as `shares` does. No matrix of a single rollout is made.
    """
    by_row = checked_mixings(mixings)
    parts = [np.asarray(part) for part in attention]
    rows = np.tile(_last_token(parts[0].shape[1]), (len(by_row), 1))
    for place in reversed(range(by_row.shape[1])):
        layer = [part[place].astype(np.float64) for part in parts]
        totals = weights @ np.stack([part.sum(-1) for part in layer])
        quotients = np.where(totals > 0, rows / np.where(totals > 0, totals, 1), 0)
        attended = np.where(totals > 0, 0, rows)  # a token that gives nothing to any token reads itself
        for weight, part in zip(weights.T, layer, strict=True):
            attended += weight[:, None] * (quotients @ part)
        mix = by_row[:, place, None]
        rows = (1 - mix) * rows + mix * attended
    return rows


def checked_mixing(mixing: npt.ArrayLike) -> Array:
    """Return a copy of residual mixing `[T]`, each the share of a layer's output that attention brings (Eq. 1)."""
    return checked_mixings([mixing])[0]


def checked_mixings(mixings: Iterable[npt.ArrayLike]) -> Array:
    """Return a copy of residual mixings `[R, T]`, of which each is as `checked_mixing` says."""
    checked = np.array(list(mixings), np.float64)
    if checked.ndim != 2 or checked.size == 0:
        raise ValueError(f"mixing has shape {checked.shape[1:]}: expected one lambda a layer, [layers]")
    if (wrong := ~((checked >= 0) & (checked <= 1))).any():
        raise ValueError(f"mixing holds {checked[wrong][0]}: every lambda must lie within [0, 1]")
    return checked


def _last_token(n: int) -> Array:
    """Return the influence `[n]` of tokens of which the last reads itself alone: 0, and 1 for the last."""
    row = np.zeros(n)
    row[-1] = 1.0
    return row


def _row_weights(slopes: Array, diagonal: Array) -> tuple[Array, Array]:
    """Return weights of a token itself and of the one before it, `[T, H]` each, scaled so that the larger is 1."""
    largest = np.maximum(diagonal, -slopes)
    return np.exp(diagonal - largest), np.exp(-slopes - largest)


@compiled
def _geometric_sum(slope: float, terms: int) -> float:
    """Return 1 + w + ... + w^(terms - 1), exact to rounding for every slope."""
    return float(terms) if slope == 0 else np.expm1(-slope * terms) / np.expm1(-slope)


@compiled
def _causal_last_row(n: int, mixing: Array, slopes: Array, on: Array, off: Array) -> Array:
    # A causal layer needs, at position j, only what happened at later positions. So instead of layer by layer, all
    # layers are done at one position before the next, and only the states r[T, H] have to be kept.
    layers, heads = on.shape
    w = np.exp(-slopes)
    r = np.zeros((layers, heads))
    reads = np.empty(heads)
    inverse = np.empty((layers, heads))  # 1 / Z_j
    row = np.empty(n)
    for j in range(n - 1, 0, -1):
        # Only the flattest heads, which come first, have a Z_j that still changes with j.
        changing = heads if j == n - 1 else np.searchsorted(slopes, STANDSTILL / j, side="right")
        for h in range(changing):
            reads[h] = _geometric_sum(slopes[h], j)
        p = 1.0 if j == n - 1 else 0.0
        for t in range(layers - 1, -1, -1):
            if changing > 0:
                _invert(reads[:changing], on[t], off[t], inverse[t])
            p = (1 - mixing[t]) * p + mixing[t] / heads * _attend(p, w, on[t], off[t], inverse[t], r[t])
        row[j] = p
    p = 1.0 if n == 1 else 0.0
    for t in range(layers - 1, -1, -1):
        p += mixing[t] / heads * np.sum(off[t] * r[t])  # the first token reads itself with weight 1, so it keeps all
    row[0] = p
    return row


@compiled
def _invert(reads: Array, on: Array, off: Array, inverse: Array) -> None:
    for h in range(len(reads)):
        inverse[h] = 1 / (on[h] + off[h] * reads[h])


@compiled
def _attend(p: float, w: Array, on: Array, off: Array, inverse: Array, r: Array) -> float:
    """Add up what position j receives from p_j and from later ones, over the heads; move the states r on to j - 1."""
    attended = 0.0
    for h in range(len(w)):
        g = p * inverse[h]
        attended += off[h] * r[h] + on[h] * g
        r[h] = _flushed(g + w[h] * r[h])
    return attended


@compiled
def _windowed_last_row(n: int, reach: int, mixing: Array, slopes: Array, on: Array, off: Array) -> Array:
    layers, heads = on.shape
    together = min(heads, max(LEAST_TOGETHER, MOST_BUFFERED // reach))
    buffers = np.empty((3, reach * together))
    attended = np.empty(n)
    row = np.zeros(n)
    row[n - 1] = 1.0
    for t in range(layers - 1, -1, -1):
        first_share = row[0]  # the first token reads itself with weight 1, so it keeps all
        row[0] = 0.0
        attended[:] = 0.0
        for h in range(0, heads, together):
            some_heads = slice(h, min(h + together, heads))
            _attend_windowed(row, reach, slopes[some_heads], on[t, some_heads], off[t, some_heads], buffers, attended)
        row = (1 - mixing[t]) * row + mixing[t] / heads * attended
        row[0] += first_share
    return row


@compiled
def _attend_windowed(
    row: Array, reach: int, slopes: Array, on: Array, off: Array, buffers: Array, attended: Array
) -> None:
    """Add to `attended` what some heads bring. Here r_j ends with g_(j+reach); p_0 must be 0."""
    # To subtract what leaves the window would cancel. So (van Herk) positions are cut into blocks of `reach`, and each
    # window into the rest of its first block and a beginning of the next: two partial sums of positive terms.
    heads = len(slopes)
    w = np.exp(-slopes)
    reads, power, total = np.empty(heads), np.empty(heads), np.empty(heads)
    g = buffers[0, : reach * heads].reshape(reach, heads)
    beginning = buffers[1, : reach * heads].reshape(reach, heads)
    next_beginning = buffers[2, : reach * heads].reshape(reach, heads)
    next_beginning[:] = 0.0
    for stop in range(len(row), 0, -reach):
        start = max(stop - reach, 0)
        for h in range(heads):
            reads[h] = _geometric_sum(slopes[h], min(max(start, 1), reach))
            power[h], total[h] = 1.0, 0.0
        for i in range(start, stop):
            _sum_beginning(row[i], w, on, off, reads, power, total, g[i - start], beginning[i - start])
            if 0 < i < reach:
                reads[:] = 1.0 + w * reads
        for h in range(heads):
            power[h], total[h] = 1.0, 0.0
        for j in range(stop - 1, start - 1, -1):
            attended[j] += _sum_rest(w, on, off, power, total, g[j - start], next_beginning[j + reach - stop])
        beginning, next_beginning = next_beginning, beginning


@compiled
def _sum_beginning(
    p: float, w: Array, on: Array, off: Array, reads: Array, power: Array, total: Array, g: Array, beginning: Array
) -> None:
    for h in range(len(w)):
        g[h] = p / (on[h] + off[h] * reads[h])
        total[h] += power[h] * g[h]
        beginning[h] = total[h]
        power[h] = _flushed(w[h] * power[h])


@compiled
def _sum_rest(w: Array, on: Array, off: Array, power: Array, rest: Array, g: Array, next_beginning: Array) -> float:
    attended = 0.0
    for h in range(len(w)):
        r = rest[h] + power[h] * next_beginning[h]
        attended += off[h] * r + on[h] * g[h]
        rest[h] = _flushed(g[h] + w[h] * rest[h])
        power[h] = _flushed(w[h] * power[h])
    return attended


@compiled
def _flushed(state: float) -> float:
    return 0.0 if state < NEGLIGIBLE else state
