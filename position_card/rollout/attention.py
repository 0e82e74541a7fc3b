"""This module makes masks, positional encodings, the attention that they alone produce, and products of layers.

Token i reads token j.
"""

from collections.abc import Iterable
from itertools import accumulate

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def full_mask(n: int) -> Mask:
    """Return the mask that hides nothing, `[n, n]`: every token reads every token."""
    return _distance(checked_length(n)) < n


def causal_mask(n: int) -> Mask:
    """Return which keys a query may read, `[n, n]`: token i reads every j <= i."""
    return sliding_window_mask(n, n)


def sliding_window_mask(n: int, window: int) -> Mask:
    """Return a `causal_mask` in which token i reads the `window` latest keys, with its own: i - window < j <= i."""
    distance = _distance(checked_length(n))
    return (distance >= 0) & (distance < checked_window(window))


def prefix_mask(n: int, prefix: int) -> Mask:
    """Return a `causal_mask` in which the first `prefix` tokens read one another too, `[n, n]`."""
    if not 1 <= prefix <= n:
        raise ValueError(f"prefix = {prefix}: it holds at least 1 and at most all {n} tokens")
    first = np.arange(n) < prefix
    return causal_mask(n) | (first[:, None] & first)


def alibi_bias(n: int, slopes: npt.ArrayLike) -> Array:
    """Return logits -slope (i - j) of slopes `[H]`, `[H, n, n]`. They grow above the diagonal: mask before softmax."""
    return -checked_slopes(slopes)[:, None, None] * _distance(checked_length(n))


def sinusoidal_encoding(n: int, width: int) -> Array:
    """Return vectors to add to the tokens, `[n, width]`: sines of i theta_l in even columns, cosines in odd ones."""
    angles = rotary_angles(n, width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, width)


def rotary_angles(n: int, width: int) -> Array:
    """Return the angles by which RoPE turns pair l of the coordinates of token i, `[n, width / 2]`, counted from 0:

    i theta_l with theta_l = 10000^(-2l/width).
    """
    if width < 2 or width % 2:
        raise ValueError(f"width = {width}: sines, cosines and rotations need pairs of coordinates; give an even width")
    return np.arange(checked_length(n))[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)


def masked_softmax(logits: Array, mask: Mask) -> Array:
    """Take the softmax over the last axis, on keys that the mask admits (at least one a row); others get exactly 0."""
    visible_logits = np.where(mask, logits, -np.inf)
    weights = np.exp(visible_logits - visible_logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def content_free_attention(
    n: int, slopes: npt.ArrayLike, diagonal: npt.ArrayLike | None = None, window: int | None = None
) -> Array:
    """Return the attention of H heads that know positions but no tokens, `[H, n, n]`, whose rows sum to 1.

    The logits are ALiBi's, plus `diagonal[h]` where a token reads itself. This is the content of Prop. 4.5, whose
    constant background is left out because it cancels in the softmax. `window=None` is full causal attention.
    """
    slopes = checked_slopes(slopes)
    diagonal = checked_diagonal(diagonal, slopes.shape)
    logits = alibi_bias(n, slopes) + diagonal[:, None, None] * np.eye(n)
    return masked_softmax(logits, causal_mask(n) if window is None else sliding_window_mask(n, window))


def layer_products(layers: Iterable[Array]) -> Array:
    """Return products of the first 1, 2, ... T layers, `[T, ..., n, n]`, from layers `[..., n, n]`, first layer first.

    Each layer acts after those below it: L_1, L_2 L_1, L_3 L_2 L_1 and so on. There must be at least one.
    """
    return np.stack(list(accumulate(layers, lambda below, layer: layer @ below)))


def shares(attention: npt.ArrayLike) -> Array:
    """Divide attention weights `[..., n, n]` by the total of their row, which learned sinks leave below 1.

    A token that gives nothing to any token reads itself.
    """
    weights = np.asarray(attention, np.float64)
    totals = weights.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, weights / np.where(totals > 0, totals, 1), np.eye(weights.shape[-1]))


def checked_length(n: int) -> int:
    """Return `n` if it can be a number of tokens."""
    if n < 1:
        raise ValueError(f"n = {n}: a sequence has at least 1 token")
    return n


def checked_window(window: int) -> int:
    """Return `window` if it leaves each token something to read."""
    if window < 1:
        raise ValueError(f"window = {window}: a token reads at least itself, so the window is at least 1")
    return window


def checked_slopes(slopes: npt.ArrayLike) -> Array:
    """Return a copy of the ALiBi slopes `[H]`, none of which may favour distant keys."""
    checked = np.array(slopes, np.float64)
    if checked.ndim != 1 or checked.size == 0:
        raise ValueError(f"slopes has shape {checked.shape}: expected one slope a head, [heads]")
    if (wrong := ~(np.isfinite(checked) & (checked >= 0))).any():
        raise ValueError(f"slopes holds {checked[wrong][0]}: every slope must be finite and at least 0")
    return checked


def checked_diagonal(diagonal: npt.ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """Return a copy of the diagonal content logits, which must have `shape`; zeros for None."""
    if diagonal is None:
        return np.zeros(shape)
    checked = np.array(diagonal, np.float64)
    if checked.shape != shape:
        raise ValueError(f"diagonal has shape {checked.shape}: mixing and slopes call for {shape}")
    if (wrong := ~np.isfinite(checked)).any():
        raise ValueError(f"diagonal holds {checked[wrong][0]}: every logit must be finite")
    return checked


def uneven_heads(key: str, width: int, heads: int) -> str:
    """Say what is wrong where the width that `key` names has no room for as many equal heads; "" where it has."""
    return f"{key} = {width} does not divide into heads = {heads}; use a multiple of {heads}" if width % heads else ""


def _distance(n: int) -> npt.NDArray[np.int64]:
    position = np.arange(n)
    return position[:, None] - position
