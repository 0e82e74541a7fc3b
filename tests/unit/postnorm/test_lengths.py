import numpy as np
import pytest
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


@given(trained=st.integers(1, 2_000), times=st.sampled_from([1, 2, 4]))
def test_the_upper_end_belongs_to_its_bin_and_what_follows_to_the_next(trained, times):
    place = [1, 2, 4].index(times)
    assert bin_of([times * trained, times * trained + 1], trained).tolist() == [BINS[place], BINS[place + 1]]


def test_bins_stand_in_the_order_of_lengths():
    order = [BINS.index(name) for name in bin_of(np.arange(1, 40), 5)]
    assert order == sorted(order)
    assert set(order) == {0, 1, 2, 3}


def test_every_length_may_have_a_trained_length_of_its_own():
    assert bin_of([5, 5, 5], [5, 4, 1]).tolist() == ["up to L", "L to 2L", "beyond 4L"]
    assert bin_of(np.full((2, 3), 7), np.array([[7], [3]])).shape == (2, 3)


@pytest.mark.parametrize("nothing", [[], np.empty((0, 3))])
def test_no_lengths_have_no_bins(nothing):
    assert bin_of(nothing, 5).size == 0
