"""Uniform attention by distance, against its matrix."""

import numpy as np
import pytest

from position_bias.card.figures import uniform_attention


@pytest.mark.parametrize("n", [1, 2, 40])
def test_uniform_attention_falls_with_distance_because_few_tokens_have_many_before_them(n):
    attention = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    expected = [np.diagonal(attention, -distance).mean() for distance in range(n)]
    np.testing.assert_allclose(uniform_attention(n), expected, rtol=1e-12)
