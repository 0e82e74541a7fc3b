"""This module rolls out attention that knows distances alone: a head weighs the key at distance k by w(k) = e^g(k).

Row i of a head is w(i - j) / Z_i on the tokens j that it reads, with Z_i = w(0) + ... + w(i): a Toeplitz matrix with
scaled rows. So a row vector p meets it as one correlation of p / Z with w, which Fourier transforms compute in
O(n log n). `kernel_attention` is the matrix itself, and the one to read.

The kernel may be fitted to a model, be that of its mean query and key, or be 0: uniform attention, in windows where the
model has them.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from scipy import fft

from position_card.rollout.attention import Array, checked_window
from position_card.rollout.last_row import checked_mixings

Kernel = npt.NDArray[np.floating]

TOGETHER = 32  # rows that a thread rolls out at once, at most: where a user interrupts it, it ends these first
NEVER_UNDERFLOWS = 600.0  # e to its negative is well above the smallest number
MOST_SPREAD = np.log(1e3)  # of the Z of rows that are transformed together: rounding errors grow with e^spread


def kernel_attention(kernel: npt.ArrayLike, window: int | None = None) -> Array:
    """Return mean attention `[n, n]` of heads with kernels `[H, n]`, rows summing to 1; a window as in `last_row`."""
    weights = _log_weights(kernel, window)
    n = weights.shape[1]
    attention = np.zeros((n, n))
    for i in range(n):
        row = weights[:, i::-1]
        row = np.exp(row - row.max(axis=1, keepdims=True))
        attention[i, : i + 1] = (row / row.sum(axis=1, keepdims=True)).mean(axis=0)
    return attention


def kernel_last_rows(kernels: npt.ArrayLike, windows: Sequence[int | None], mixings: Iterable[npt.ArrayLike]) -> Array:
    """Return last rows `[R, n]` of rollouts by heads with kernels `[T, H, n]` and windows `[T]`: one a mixing `[T]`.

    They agree with those through `kernel_attention` to 1e-12, absolute; smaller shares are noise of that size or 0.
    As many threads share the rows as `scipy.fft.set_workers` says.
    """
    kernels, by_row = np.asarray(kernels, np.float64), checked_mixings(mixings)

    def roll_out(some_mixings: Array) -> Array:
        rows = np.zeros((len(some_mixings), kernels.shape[2]))
        rows[:, -1] = 1.0
        for mix, kernel, window in zip(some_mixings.T[::-1, :, None], kernels[::-1], windows[::-1], strict=True):
            rows = (1 - mix) * rows + mix * _attended(rows, _log_weights(kernel, window))
        return rows

    workers = fft.get_workers()
    if workers == 1:
        return roll_out(by_row)
    together = min(TOGETHER, -(-len(by_row) // workers))
    parts = [by_row[begin : begin + together] for begin in range(0, len(by_row), together)]
    with ThreadPoolExecutor(workers) as threads:
        return np.concatenate(list(threads.map(roll_out, parts)))


def agreement(kernel: Kernel, prediction: Kernel, window: int | None = None) -> Array:
    """R^2 [H] of kernels [H, n] that were predicted, against those that were fitted, at distances from 1 on.

    A constant is free, and every pair of tokens that is read counts alike. NaN where a fitted kernel does not vary.
    """
    n = kernel.shape[1]
    reach = n if window is None else min(window, n)
    pairs = np.arange(n - 1, n - reach, -1)
    kernel, prediction = (values[:, 1:reach].astype(np.float64) for values in (kernel, prediction))

    def squares(values: Array) -> Array:
        mean = values @ pairs / max(pairs.sum(), 1)
        return np.asarray((values - mean[:, None]) ** 2 @ pairs)

    whole = squares(kernel)
    return 1 - np.divide(squares(kernel - prediction), whole, out=np.full(len(whole), np.nan), where=whole > 0)


def _attended(rows: Array, weights: Array) -> Array:
    """Return rows `[R, n]` times the mean attention of heads with log weights `[H, n]`."""
    heads = len(weights)
    totals = _log_totals(weights)
    attended = np.zeros_like(rows)
    for start, stop in _alike(totals):
        size = fft.next_fast_len(2 * stop - start - 1, real=True)
        largest = totals[:, stop - 1 : stop]
        kernel = fft.rfft(np.exp(weights[:, :stop] - largest), size, axis=1).conj()
        scale = np.exp(largest - totals[:, start:stop]) / heads
        signal = np.zeros((heads, size))  # whose end stays 0
        for row, received in zip(rows, attended, strict=True):
            np.multiply(row[start:stop], scale, out=signal[:, : stop - start])
            spectrum = fft.rfft(signal, axis=1)
            product = np.multiply(spectrum, kernel, out=spectrum).sum(axis=0)
            correlation = fft.irfft(product, size)  # of row j at place j - start, rows before start at the end
            received[start:stop] += correlation[: stop - start]
            received[:start] += correlation[size - start :]
    return np.maximum(attended, 0)


def _log_totals(weights: Array) -> Array:
    """Return log Z `[H, n]` of heads with log weights `[H, n]`."""
    largest = weights.max(axis=1, keepdims=True)
    if (largest - weights[:, :1] > NEVER_UNDERFLOWS).any():
        return np.logaddexp.accumulate(weights, axis=1)  # ten times slower
    return np.log(np.cumsum(np.exp(weights - largest), axis=1)) + largest


def _alike(totals: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows `[start, stop)` in which no head's log Z `[H, n]`, which never falls, spreads too far."""
    n, start = totals.shape[1], 0
    while start < n:
        beyond = (totals[:, start:] > totals[:, start : start + 1] + MOST_SPREAD).any(axis=0)
        stop = start + int(beyond.argmax()) if beyond.any() else n
        yield start, stop
        start = stop


def _log_weights(kernel: npt.ArrayLike, window: int | None) -> Array:
    weights = np.array(kernel, np.float64)
    if window is not None:
        weights[:, checked_window(window) :] = -np.inf
    return weights
