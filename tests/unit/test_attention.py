import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from position_bias.attention import (
    alibi_bias,
    causal_mask,
    content_free_attention,
    full_mask,
    layer_products,
    masked_softmax,
    prefix_mask,
    rotary_angles,
    sinusoidal_encoding,
    sliding_window_mask,
)


def torch_attention(n, slopes, diagonal, window):
    """The same attention written the way transformer code writes it: loops, -inf, torch's softmax."""
    logits = torch.full((len(slopes), n, n), -torch.inf, dtype=torch.float64)
    for i in range(n):
        for j in range(max(0, i - window + 1), i + 1):
            logits[:, i, j] = -torch.tensor(slopes, dtype=torch.float64) * (i - j)
        logits[:, i, i] += torch.tensor(diagonal, dtype=torch.float64)
    return logits.softmax(-1).numpy()


def drawn(mask):
    """Rows of a mask: 1 where the token reads."""
    return ["".join(map(str, row)) for row in mask.astype(int)]


def test_masks_are_those_that_are_drawn():
    assert drawn(causal_mask(3)) == ["100", "110", "111"]
    assert drawn(sliding_window_mask(4, 2)) == ["1000", "1100", "0110", "0011"]
    assert drawn(prefix_mask(5, 3)) == ["11100", "11100", "11100", "11110", "11111"]  # the prefix reads both ways
    np.testing.assert_array_equal(prefix_mask(6, 1), causal_mask(6))
    np.testing.assert_array_equal(prefix_mask(6, 6), full_mask(6))


def test_alibi_falls_by_its_slope_each_token_back():
    bias = alibi_bias(3, [0.5, 2])
    np.testing.assert_array_equal(bias[0][np.tril_indices(3)], [0, -0.5, 0, -1, -0.5, 0])
    np.testing.assert_array_equal(bias[1], 4 * bias[0])


def test_what_the_mask_hides_gets_nothing_however_large():
    weights = masked_softmax(np.array([[0.0, 1e6], [0.0, 0.0]]), np.array([[True, False], [True, True]]))
    assert weights.tolist() == [[1, 0], [0.5, 0.5]]


@given(
    n=st.integers(1, 24),
    heads=st.lists(st.tuples(st.floats(0, 50), st.floats(-800, 800)), min_size=1, max_size=3),
    window=st.integers(1, 30) | st.none(),
)
def test_attention_is_what_torch_makes_of_the_same_logits(n, heads, window):
    slopes, diagonal = zip(*heads, strict=True)
    with np.errstate(all="raise", under="ignore"):
        attention = content_free_attention(n, slopes, diagonal, window)
    np.testing.assert_allclose(attention, torch_attention(n, slopes, diagonal, window or n), rtol=0, atol=1e-15)
    np.testing.assert_allclose(attention.sum(-1), 1, rtol=0, atol=1e-15)
    assert (attention[:, 0, 0] == 1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n = 0: a sequence has at least 1 token"),
        ({"window": 0}, "window = 0: a token reads at least itself, so the window is at least 1"),
        ({"slopes": [0.5, -1]}, "slopes holds -1.0: every slope must be finite and at least 0"),
        ({"slopes": []}, "slopes has shape (0,): expected one slope a head, [heads]"),
        ({"diagonal": [1.0]}, "diagonal has shape (1,): mixing and slopes call for (2,)"),
        ({"diagonal": [1.0, -np.inf]}, "diagonal holds -inf: every logit must be finite"),
    ],
)
def test_what_cannot_be_is_named_with_its_value(arguments, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared below
        content_free_attention(**{"n": 3, "slopes": [0.5, 1.0], **arguments})
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("mask", "arguments", "message"),
    [
        (prefix_mask, (5, 0), "prefix = 0: it holds at least 1 and at most all 5 tokens"),
        (prefix_mask, (5, 6), "prefix = 6: it holds at least 1 and at most all 5 tokens"),
        (sinusoidal_encoding, (5, 7), "width = 7: sines, cosines and rotations need pairs"),
        (rotary_angles, (0, 4), "n = 0: a sequence has at least 1 token"),
    ],
)
def test_masks_and_encodings_that_cannot_be_are_named_with_their_value(mask, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        mask(*arguments)


def test_sinusoids_are_those_of_vaswani():
    n, width = 11, 6
    encoding = sinusoidal_encoding(n, width)
    assert encoding.shape == (n, width)
    for position in range(n):
        for pair in range(width // 2):
            angle = position / 10000 ** (2 * pair / width)
            assert encoding[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-14)
            assert encoding[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-14)


def test_rotary_angles_grow_by_theta_a_token_and_theta_is_that_of_appendix_j():
    angles = rotary_angles(9, 64)
    assert angles.shape == (9, 32)
    assert (angles[0] == 0).all()
    np.testing.assert_allclose(angles[1], [10000 ** (-2 * (i - 1) / 64) for i in range(1, 33)], rtol=1e-13)
    np.testing.assert_allclose(np.diff(angles, axis=0), np.tile(angles[1], (8, 1)), rtol=1e-12)


def test_products_of_layers_are_those_of_the_matrices_one_by_one():
    layers = np.random.default_rng(0).random((4, 2, 3, 3))
    found = layer_products(layers)
    for draw in range(2):
        for depth in range(4):
            expected = np.linalg.multi_dot([*layers[depth::-1, draw], np.eye(3)])
            np.testing.assert_allclose(found[depth, draw], expected, rtol=1e-12)
