import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from position_bias.verdicts.rule import word_of_interval

RELATIONS = (">", "<", "=", "!=")
numbers, margins = st.floats(-1e6, 1e6), st.floats(0, 1e3)
predictions = st.tuples(st.sampled_from(RELATIONS), numbers, margins)
intervals = st.tuples(numbers, numbers).map(lambda ends: tuple(sorted(ends)))
SETTLED = ("holds", "fails")


@given(prediction=predictions, interval=intervals)
def test_an_interval_and_its_mirror_image_have_the_same_verdict(prediction, interval):
    (low, high), (relation, bound, margin) = interval, prediction
    other = {">": "<", "<": ">"}.get(relation, relation)
    assert word_of_interval(*prediction, low, high) == word_of_interval(other, -bound, margin, -high, -low)


@given(prediction=predictions, outer=intervals, shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_what_an_interval_settles_every_interval_within_it_settles_alike(prediction, outer, shares):
    low, high = outer
    inner = sorted(min(max(low + share * (high - low), low), high) for share in shares)
    verdict = word_of_interval(*prediction, low, high)
    assert verdict not in SETTLED or word_of_interval(*prediction, *inner) == verdict


@pytest.mark.parametrize(
    ("relation", "margin", "low", "high", "verdict"),
    [
        (">", 0, 0.1, 0.2, "holds"),
        (">", 0, -0.2, -0.1, "fails"),
        (">", 0, -0.1, 0.1, "undecided"),
        (">", 0, 0.0, 0.1, "undecided"),
        (">", 0.01, 0.02, 0.03, "holds"),
        (">", 0.01, 0.001, 0.002, "no effect"),
        (">", 0.01, -0.5, 0.002, "no effect"),
        (">", 0.01, 0.001, 0.5, "undecided"),
        ("<", 0, 0.1, 0.2, "fails"),
        ("<", 0, -0.2, -0.1, "holds"),
        ("<", 0, -0.1, 0.0, "undecided"),
        ("!=", 0, 0.1, 0.2, "holds"),
        ("!=", 0, -0.2, -0.1, "holds"),
        ("!=", 0, -0.1, 0.1, "undecided"),
        ("=", 0.05, -0.04, 0.05, "holds"),
        ("=", 0.05, -0.06, 0.01, "undecided"),
        ("=", 0.05, 0.06, 0.2, "fails"),
        ("=", 0.05, -0.2, -0.06, "fails"),
    ],
)
def test_an_interval_settles_a_claim_only_if_it_lies_on_one_side_and_beyond_the_margin(
    relation, margin, low, high, verdict
):
    assert word_of_interval(relation, 0.0, margin, low, high) == verdict


@pytest.mark.parametrize(("low", "high"), [(math.nan, 1.0), (0.0, math.nan), (math.nan, math.nan)])
def test_what_is_not_defined_at_this_scale_cannot_be_tested(low, high):
    assert word_of_interval(">", 0.0, 0.0, low, high) == "not testable here"
