import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from position_card.rollout.attention import (
    content_free_attention,
    layer_products,
    masked_softmax,
    prefix_mask,
    rotary_angles,
    sinusoidal_encoding,
)
from tests.refusals import refused


def torch_attention(n, slopes, diagonal, window):
    """The same attention written the way transformer code writes it: loops, -inf, torch's softmax."""
    logits = torch.full((len(slopes), n, n), -torch.inf, dtype=torch.float64)
    for i in range(n):
        for j in range(max(0, i - window + 1), i + 1):
            logits[:, i, j] = -torch.tensor(slopes, dtype=torch.float64) * (i - j)
        logits[:, i, i] += torch.tensor(diagonal, dtype=torch.float64)
    return logits.softmax(-1).numpy()


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
    ("arguments", "named"),
    [
        ({"n": 0}, "n = 0"),
        ({"window": 0}, "window = 0"),
        ({"slopes": [0.5, -1]}, "slopes holds -1.0"),
        ({"slopes": []}, "slopes has shape (0,)"),
        ({"diagonal": [1.0]}, "diagonal has shape (1,)"),
        ({"diagonal": [1.0, -np.inf]}, "diagonal holds -inf"),
    ],
)
def test_what_cannot_be_is_named_with_its_value(arguments, named):
    with refused(named, by=ValueError):
        content_free_attention(**{"n": 3, "slopes": [0.5, 1.0], **arguments})


@pytest.mark.parametrize(
    ("mask", "arguments", "named"),
    [
        (prefix_mask, (5, 0), "prefix = 0"),
        (prefix_mask, (5, 6), "prefix = 6"),
        (sinusoidal_encoding, (5, 7), "width = 7"),
        (rotary_angles, (0, 4), "n = 0"),
    ],
)
def test_masks_and_encodings_that_cannot_be_are_named(mask, arguments, named):
    with refused(named, by=ValueError):
        mask(*arguments)


def test_products_of_layers_are_those_of_the_matrices_one_by_one():
    layers = np.random.default_rng(0).random((4, 2, 3, 3))
    found = layer_products(layers)
    for draw in range(2):
        for depth in range(4):
            expected = np.linalg.multi_dot([*layers[depth::-1, draw], np.eye(3)])
            np.testing.assert_allclose(found[depth, draw], expected, rtol=1e-12)
