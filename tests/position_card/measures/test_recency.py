import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from position_card.measures.recency import (
    FIRST_ROW,
    mean_relative_position,
    mean_size,
    recency,
    recency_weights,
    relative_recency,
)
from tests.refusals import refused

SEEDS = st.integers(0, 2**32 - 1)


def recency_by_rows(scores, first_row=FIRST_ROW):
    """The definition, row by row."""
    found = []
    for i in range(first_row, len(scores)):
        keys, quarter = scores[i, :i], max(1, i // 4)
        found.append(keys[-quarter:].mean() - keys[:quarter].mean())
    return np.mean(found)


@settings(max_examples=30)
@given(n=st.integers(FIRST_ROW + 1, 40), seed=SEEDS)
def test_recency_is_its_definition(n, seed):
    scores = np.random.default_rng(seed).normal(size=(2, 3, n, n))
    expected = [[recency_by_rows(one) for one in some] for some in scores]
    assert recency(scores) == pytest.approx(np.array(expected), abs=1e-12)


def test_relative_recency_has_no_scale():
    scores = np.random.default_rng(0).normal(size=(2, 12, 12))
    below = np.abs(scores[1][np.tril_indices(12, -1)]).mean()
    assert mean_size(scores)[1] == pytest.approx(below)
    assert relative_recency(1e3 * scores) == pytest.approx(relative_recency(scores))
    assert relative_recency(scores)[1] == pytest.approx(recency_by_rows(scores[1]) / below)


@settings(max_examples=20)
@given(n=st.integers(FIRST_ROW + 1, 20), seed=SEEDS)
def test_the_mean_position_is_its_definition(n, seed):
    A = np.random.default_rng(seed).random((n, n))
    rows = [sum(A[i, j] * j / (i - 1) for j in range(i)) / sum(A[i, :i]) for i in range(FIRST_ROW, n)]
    assert mean_relative_position(A) == pytest.approx(np.mean(rows))


def test_attention_to_nothing_earlier_has_no_position():
    assert np.isnan(mean_relative_position(np.eye(12)))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: recency_weights(FIRST_ROW), "n = 8"),
        (lambda: recency(np.zeros((5, 5))), "n = 5"),
        (lambda: mean_relative_position(np.zeros((3, 3))), "n = 3"),
    ],
)
def test_a_bad_argument_is_named(call, named):
    with refused(named, by=ValueError):
        call()
