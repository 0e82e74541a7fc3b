"""Rollouts through Toeplitz attention: against dense matrices, ALiBi's linear way, and closed forms."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft

from position_card.rollout import kernels as rollout_kernels
from position_card.rollout.attention import content_free_attention
from position_card.rollout.kernels import agreement, kernel_attention, kernel_last_rows
from position_card.rollout.last_row import attended_last_rows, last_row

ROUNDING = 1e-12  # absolute; profiles sum to 1


def dense(kernels, windows, mixings):
    attention = [kernel_attention(kernel, window) for kernel, window in zip(kernels, windows, strict=True)]
    return attended_last_rows(attention, mixings)


@settings(max_examples=80)
@given(
    n=st.integers(1, 60),
    layers=st.integers(1, 4),
    heads=st.integers(1, 4),
    spread=st.sampled_from([0.0, 1.0, 20.0, 300.0, 3000.0]),
    windows=st.lists(st.none() | st.integers(1, 70), min_size=4, max_size=4),
    seed=st.integers(0, 2**32),
)
def test_fast_is_dense(n, layers, heads, spread, windows, seed):
    rng = np.random.default_rng(seed)
    kernels, mixings = rng.normal(0, spread, (layers, heads, n)), rng.uniform(0, 1, (2, layers))
    with np.errstate(all="raise", under="ignore"):
        rows = kernel_last_rows(kernels, windows[:layers], mixings)
    np.testing.assert_allclose(rows, dense(kernels, windows[:layers], mixings), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(rows.sum(1), 1, rtol=0, atol=ROUNDING)
    assert (rows >= 0).all()


@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (2, 2), (3, 3), (9, 5)])
def test_threads_share_the_rows_and_change_no_bit(workers, threads, monkeypatch):
    rng = np.random.default_rng(0)
    kernels, mixings = rng.normal(0, 3, (2, 3, 50)), rng.uniform(0, 1, (5, 2))
    alone, attended = kernel_last_rows(kernels, [None, 7], mixings), rollout_kernels._attended
    barrier = threading.Barrier(threads)  # which lets them pass when so many wait there

    def attended_together(rows, weights):
        barrier.wait(10)
        return attended(rows, weights)

    monkeypatch.setattr(rollout_kernels, "_attended", attended_together)
    with fft.set_workers(workers):
        np.testing.assert_array_equal(kernel_last_rows(kernels, [None, 7], mixings), alone)


@pytest.mark.parametrize("window", [None, 1, 7, 400])
def test_kernels_that_fall_in_a_straight_line_are_those_of_alibi(window):
    n, slopes, mixing = 3000, np.array([1.0, 0.1, 0.001, 0.0]), np.array([0.2, 0.9, 1.0])
    kernels = np.broadcast_to(-slopes[:, None] * np.arange(n), (3, 4, n))
    expected = last_row(n, mixing, slopes, window=window)
    np.testing.assert_allclose(kernel_last_rows(kernels, [window] * 3, [mixing])[0], expected, rtol=0, atol=ROUNDING)


def test_the_matrix_of_a_straight_line_is_that_of_alibi():
    slopes = np.array([1.0, 0.1, 0.0])
    for window in (None, 1, 4):
        expected = content_free_attention(20, slopes, window=window).mean(0)
        found = kernel_attention(-slopes[:, None] * np.arange(20), window)
        np.testing.assert_allclose(found, expected, atol=1e-15)


def test_a_kernel_that_rises_steeply_keeps_its_precision():
    """Rows near the start weigh by e^-900 of what the last ones do: transformed together they would drown."""
    n = 300
    kernels = np.linspace(0, 900, n)[None, None]
    assert len(list(rollout_kernels._alike(rollout_kernels._log_totals(kernels[0])))) > 10
    for mixing in ([1.0], [0.5]):
        found = kernel_last_rows(kernels, [None], [mixing])
        np.testing.assert_allclose(found, dense(kernels, [None], [mixing]), rtol=0, atol=ROUNDING)


def test_sixteen_thousand_tokens_take_seconds_of_computing():
    kernels = np.random.default_rng(0).normal(0, 1, (6, 12, 16384))
    started = time.process_time()
    (row,) = kernel_last_rows(kernels, [None] * 6, [np.full(6, 0.2)])
    assert time.process_time() - started < 5  # about 0.2 s; 13 GB of weights would take minutes
    assert row.sum() == pytest.approx(1, abs=ROUNDING)


def test_agreement_is_one_with_itself_and_zero_with_nothing():
    kernel = np.random.default_rng(0).normal(0, 1, (3, 30))
    shifted = kernel + 5
    shifted[:, 0] = 99
    np.testing.assert_allclose(agreement(kernel, shifted), 1)
    np.testing.assert_allclose(agreement(kernel, np.zeros((3, 30))), 0, atol=1e-12)
    shifted[:, 8:] = -7  # beyond the window
    np.testing.assert_allclose(agreement(kernel, shifted, window=8), 1)
    assert np.isnan(agreement(np.ones((1, 5)), kernel[:1, :5])).all()


def test_agreement_counts_pairs_of_tokens():
    """A kernel of 40 tokens repeated by hand, once for each pair at its distance."""
    rng = np.random.default_rng(1)
    fitted, predicted = rng.normal(0, 1, (2, 1, 40))
    pairs = np.arange(39, 0, -1)
    every, guess = (np.repeat(kernel[0, 1:], pairs) for kernel in (fitted, predicted))
    missing = (every - guess).var() / every.var()
    np.testing.assert_allclose(agreement(fitted, predicted), [1 - missing])
