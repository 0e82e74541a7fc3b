from hypothesis import given
from hypothesis import strategies as st

from position_bias.postnorm.lengths import BINS, bin_of


@given(length=st.integers(1, 10_000), trained=st.integers(1, 2_000))
def test_a_bin_ends_at_one_two_and_four_trained_lengths_each_of_its_own(length, trained):
    assert tuple(BINS) == ("up to L", "L to 2L", "2L to 4L", "beyond 4L")
    expected = BINS[sum(length > times * trained for times in (1, 2, 4))]
    assert bin_of(length, trained) == expected
    assert bin_of([[1, length]], [[1, trained]]).tolist() == [["up to L", expected]]
