"""Kernels of the logits: sums and fits against dense matrices, rotation against complex numbers."""

import numpy as np
import pytest
import torch
from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as turn_neighbours
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as turn_halves

from position_card.measures import kernels
from position_card.measures.kernels import first_logits, fitted_kernel, fitted_without_first, logit_sums, rotary_kernel
from position_card.probe.rotation import Rotation

HEADS, SHARED, WIDTH = 6, 3, 4


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("shared", [HEADS, SHARED, 1])
@pytest.mark.parametrize("n", [1, 2, 3, 17, 64])
def test_sums_by_row_and_by_distance_are_those_of_the_logits(n, shared, dense, monkeypatch):
    monkeypatch.setattr(kernels, "DENSE_UP_TO", n if dense else n - 1)
    query, key = drawn(2, HEADS, n, WIDTH), drawn(2, shared, n, WIDTH, seed=1)
    logits = (query.double() @ key.double().repeat_interleave(HEADS // shared, 1).mT).sum(0).numpy()
    by_distance = np.stack([logits.diagonal(-k, 1, 2).sum(-1) for k in range(n)], -1)
    for window in (None, 1, 2, 5, n, n + 3):
        rows, distances = logit_sums(query, key, window)
        read = np.tri(n) - np.tri(n, k=-(window or n))
        np.testing.assert_allclose(rows, (logits * read).sum(-1), atol=2e-4)
        np.testing.assert_allclose(distances, by_distance, atol=2e-4)


@pytest.mark.parametrize("window", [None, 1, 2, 3, 7, 19, 20, 30])
@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_the_fit_is_that_of_least_squares_over_all_pairs_that_are_read(n, window):
    logits = np.random.default_rng(n).normal(0, 3, (2, n, n))
    reach = min(window or n, n)
    read = np.tri(n) - np.tri(n, k=-reach)
    rows, columns = np.nonzero(read)
    design = np.zeros((len(rows), n + reach))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), n + rows - columns] = 1
    expected = np.linalg.lstsq(design, logits[:, rows, columns].T, rcond=None)[0][n:].T
    masked = logits * read
    sums = np.stack([masked.diagonal(-k, 1, 2).sum(-1) for k in range(n)], -1)
    kernel = fitted_kernel(masked.sum(-1), sums, window)
    np.testing.assert_allclose(kernel[:, :reach], expected - expected[:, :1], atol=1e-9)
    assert (kernel[:, reach:] == 0).all()


@pytest.mark.parametrize("window", [None, 1, 2, 7, 19, 20, 30])
def test_without_the_first_token_the_fit_is_that_of_all_other_pairs(window):
    n, prompts = 20, 2
    query, key = drawn(prompts, HEADS, n, WIDTH), drawn(prompts, SHARED, n, WIDTH, seed=1)
    key[:, :, 0] *= 100  # a sink
    rows, distances, first = (
        sums.double().numpy() for sums in (*logit_sums(query, key, window), first_logits(query, key))
    )
    others = (sums.double().numpy() for sums in logit_sums(query[:, :, 1:], key[:, :, 1:], window))
    kernel = fitted_without_first(rows, distances, first, window)
    np.testing.assert_allclose(kernel[:, :-1], fitted_kernel(*others, window), atol=1e-3)
    beyond = window is not None and window < n
    np.testing.assert_allclose(kernel[:, -1], 0 if beyond else kernel[:, -2])


def test_the_fit_finds_a_kernel_whatever_rows_add_at_a_length_where_nothing_dense_would_do():
    n, rng = 4096, np.random.default_rng(0)
    kernel = rng.normal(0, 2, n).cumsum() / 40
    rows = rng.normal(0, 5, n)
    sums = rows * np.arange(1, n + 1) + kernel.cumsum()
    distances = kernel * np.arange(n, 0, -1) + rows[::-1].cumsum()[::-1]
    np.testing.assert_allclose(fitted_kernel(sums[None], distances[None])[0], kernel - kernel[0], atol=1e-7)


def rotation(function, n, width, scale=1.0):
    half = width // 2
    angles = torch.arange(n)[:, None] * 10000.0 ** (-torch.arange(half) / half)
    angles = torch.cat([angles, angles], -1) if function is turn_halves else angles.repeat_interleave(2, -1)
    settings = {"cos": scale * angles.cos()[None], "sin": scale * angles.sin()[None]}
    return Rotation(function, settings, width)


def as_complex(vectors, function, width):
    turned = vectors[..., :width].double().numpy()
    if function is turn_halves:
        return turned[..., : width // 2] + 1j * turned[..., width // 2 :]
    return turned[..., ::2] + 1j * turned[..., 1::2]


@pytest.mark.parametrize("function", [turn_halves, turn_neighbours])
@pytest.mark.parametrize(("width", "scale"), [(8, 1.0), (4, 1.0), (8, 1.3), (4, 1.3)])
def test_the_rotary_kernel_turns_the_mean_query_by_complex_phases(function, width, scale):
    n, scaling = 40, 0.3
    query, key = drawn(HEADS, 8), drawn(SHARED, 8, seed=1)
    found = rotary_kernel(query, key, scaling, n, rotation(function, n, width, scale))
    frequencies = 10000.0 ** (-np.arange(width // 2) / (width // 2))
    phases = np.exp(1j * np.arange(n)[:, None] * frequencies)
    pairs = as_complex(query, function, width) * as_complex(key, function, width).repeat(2, 0).conj()
    kernel = scaling * scale**2 * (pairs[:, None] * phases).sum(-1).real
    np.testing.assert_allclose(found, kernel - kernel[:, :1], atol=2e-5)


def test_a_layer_without_rotation_has_no_rotary_kernel():
    assert (rotary_kernel(drawn(HEADS, 8), drawn(SHARED, 8), 1.0, 5, None) == 0).all()


@pytest.mark.parametrize("function", [turn_halves, turn_neighbours])
@pytest.mark.parametrize(("width", "scale"), [(8, 1.0), (4, 1.3)])
def test_a_rotation_is_undone(function, width, scale):
    how = rotation(function, 12, width, scale)
    query, key = drawn(2, HEADS, 12, 8), drawn(2, SHARED, 12, 8, seed=1)
    turned = how.turn(query, key)
    assert (turned[0] - query).abs().max() > 0.5
    for again, before in zip(how.undo(*turned), (query, key), strict=True):
        torch.testing.assert_close(again, before, atol=1e-5, rtol=0)
