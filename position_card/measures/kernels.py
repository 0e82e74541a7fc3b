"""How much of the logits of attention depends on distance alone: a kernel g(k) for each head, k = i - j.

Two kernels are taken from queries and keys as the softmax sees them. The Toeplitz kernel is the least-squares fit
l_ij = r_i + g(i - j) to the mean logits of a head; what a row adds to all its logits, r_i, cancels in the softmax. The
rotary kernel is what rotation makes of the mean query and the mean key before they are turned,

    g(k) = scaling * <R_k mean(q), mean(k)>,

which knows positions and no token. Both are fixed up to a constant; here g(0) = 0.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import solve_banded
from torch import Tensor

from position_card.probe.rotation import Rotation

DENSE_UP_TO = 512  # tokens; beyond, Fourier transforms are faster than products of matrices

Array = NDArray[np.float64]


def logit_sums(query: Tensor, key: Tensor, window: int | None) -> tuple[Tensor, Tensor]:
    """Sum q_i . k_j over what is read and over the prompts, by row i and by distance i - j: two float32 [H, n].

    Queries are [B, H, n, d]; keys may have fewer heads, each of which serves H / heads neighbouring queries. The sums
    by distance are those of all pairs, whatever the `window`.
    """
    if query.shape[2] <= DENSE_UP_TO:
        return _dense_sums(query, key, window)
    return _row_sums(query, key, window), _distance_sums(query, key)


def _dense_sums(query: Tensor, key: Tensor, window: int | None) -> tuple[Tensor, Tensor]:
    """Do as `logit_sums` by way of the logits themselves, summed over prompts and head dimension at once."""
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1).flip(2)
    by_head = (part.float().permute(1, 2, 0, 3).flatten(2) for part in (query, key))
    by_distance = skewed(torch.matmul(next(by_head), next(by_head).mT))
    return by_distance[..., :window].sum(-1), by_distance.sum(-2)


def skewed(reversed_rows: Tensor) -> Tensor:
    """Order rows by distance, not by position: [H, r, n], keys from last to first -> column k of row i is key i - k.

    Where there is no such key, 0. The rows are those of the last r of n tokens.
    """
    rows = reversed_rows.shape[-2]
    extended = torch.nn.functional.pad(reversed_rows, (0, rows)).flatten(1)
    return extended[:, :-rows].unflatten(1, (rows, -1))[..., rows - 1 :]  # each row begins one place further right


def _distance_sums(query: Tensor, key: Tensor) -> Tensor:
    """Sum logits by distance, [H, n], by Fourier transforms, in O(n log n)."""
    n = query.shape[2]
    query_spectrum = torch.fft.rfft(_grouped(query, key).float(), 2 * n, dim=-2)
    key_spectrum = torch.fft.rfft(key.float(), 2 * n, dim=-2)[:, :, None].conj()
    return torch.fft.irfft((query_spectrum * key_spectrum).sum((0, -1)), 2 * n, dim=-1)[..., :n].flatten(0, 1)


def _row_sums(query: Tensor, key: Tensor, window: int | None) -> Tensor:
    """Sum logits by row, [H, n], by running sums of keys, in O(n)."""
    sums = key.float().cumsum(-2)
    if window is not None:
        sums = sums - torch.nn.functional.pad(sums, (0, 0, window, 0))[..., : sums.shape[-2], :]
    return (_grouped(query, key).float() * sums[:, :, None]).sum((0, -1)).flatten(0, 1)


def fitted_kernel(rows: Array, distances: Array, window: int | None = None) -> Array:
    """Return the Toeplitz kernel g [H, n] of logits with these sums by row and by distance, each [H, n].

    Least squares over all pairs that are read, solved exactly in O(n): with s_k = g(0) + ... + g(k), the normal
    equations of neighbouring distances differ by a tridiagonal system in s. Beyond a `window` g is 0.
    """
    heads, n = rows.shape
    reach = n if window is None else min(window, n)
    if reach == 1:
        return np.zeros((heads, n))
    k = np.arange(1, reach)
    # (n-k) (s_k - s_(k-1)) - (n-k-1) (s_(k+1) - s_k) - s_k / (k+1) = D_k - D_(k+1) - R_k / (k+1), and s_0 = 0
    bands = np.zeros((3, reach - 1))  # above the diagonal, on it and below
    bands[0, 1:] = bands[2, :-1] = -(n - k[1:])
    bands[1] = 2 * (n - k) - 1 - 1 / (k + 1)
    right_hand_side = distances[:, 1:reach] - np.append(distances[:, 2:reach], np.zeros((heads, 1)), axis=1)
    right_hand_side -= rows[:, 1:reach] / (k + 1)
    # all rows from the last distance on have it: (n-k) (s_k - s_(k-1)) - (n-k) s_k / reach = D_k - sum of R_i / reach
    bands[1, -1] = (n - reach + 1) * (1 - 1 / reach)
    right_hand_side[:, -1] = distances[:, reach - 1] - rows[:, reach - 1 :].sum(-1) / reach
    sums = solve_banded((1, 1), bands, right_hand_side.T).T
    kernel = np.zeros((heads, n))
    kernel[:, 1:reach] = np.diff(sums, axis=1, prepend=0)
    return kernel


def first_logits(query: Tensor, key: Tensor) -> Tensor:
    """Sum q_i . k_0, the logits of the first token, over the prompts: float32 [H, n]; shapes as in `logit_sums`."""
    return (_grouped(query, key).float() * key[:, :, None, :1].float()).sum((0, -1)).flatten(0, 1)


def fitted_without_first(rows: Array, distances: Array, first: Array, window: int | None = None) -> Array:
    """Return the `fitted_kernel` of all pairs but those with the first token, whose logits sum to `first` [H, n].

    A token that all others attend to, whatever the distance, then spoils no distance. Nothing else is known of the
    largest distance: it has the value of the one before.
    """
    n = rows.shape[1]
    first_logits_read = np.where(np.arange(n) < (n if window is None else window), first, 0)
    kernel = fitted_kernel((rows - first_logits_read)[:, 1:], (distances - first)[:, :-1], window)
    last = kernel[:, -1:] if window is None or window >= n else np.zeros((len(kernel), 1))
    return np.append(kernel, last, axis=1)


def rotary_kernel(query: Tensor, key: Tensor, scaling: float, n: int, rotation: Rotation | None) -> Array:
    """Return the rotary kernel g [H, n] of the mean query [H, d] and mean key [H or fewer, d] before they are turned.

    A layer without rotation has none: zeros.
    """
    if rotation is None:
        return np.zeros((len(query), n))
    repeated = (part.float().to(rotation.device)[None, :, None].expand(-1, -1, n, -1) for part in (query, key))
    queries, keys = rotation.turn(*repeated)
    first = keys[0, :, 0].repeat_interleave(len(query) // len(key), dim=0)
    kernel = scaling * (queries[0].double() * first[:, None].double()).sum(-1)
    return np.asarray((kernel - kernel[:, :1]).cpu())


def _grouped(query: Tensor, key: Tensor) -> Tensor:
    """Group queries by the head of the keys that they meet: [B, H, n, d] -> [B, heads, H / heads, n, d]."""
    return query.unflatten(1, (key.shape[1], -1))
