import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from position_bias.postnorm.lengths import BINS, bin_of


@given(length=st.integers(1, 10_000), trained=st.integers(1, 2_000))
def test_a_bin_ends_at_one_two_and_four_trained_lengths(length, trained):
    if length <= trained:
        expected = "up to L"
    elif length <= 2 * trained:
        expected = "L to 2L"
    elif length <= 4 * trained:
        expected = "2L to 4L"
    else:
        expected = "beyond 4L"
    assert bin_of(length, trained) == expected
    assert expected in BINS


def test_every_length_may_have_a_trained_length_of_its_own():
    assert bin_of([5, 5, 5], [5, 4, 1]).tolist() == ["up to L", "L to 2L", "beyond 4L"]
    assert bin_of(np.full((2, 3), 7), np.array([[7], [3]])).shape == (2, 3)
