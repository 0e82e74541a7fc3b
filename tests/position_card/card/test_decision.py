"""The sentence that decides, at the borders of its rules."""

from dataclasses import replace

import pytest

from position_card.card import decision
from position_card.card.decision import OptionShares, PlaceRatios, decide_on_options, decide_on_places
from position_card.card.profiles import Interval

NONE = Interval(1.0, 0.5, 2.0)
USED = Interval(5.0, 3.0, 8.0)
OPEN = PlaceRatios(NONE, NONE, NONE, USED, USED, 0.36, Interval(0.0, -0.2, 0.2), True, 40, 90, 500)
EVEN = Interval(0.25, 0.2, 0.3)
SHARES = OptionShares(("A", "B", "C", "D"), (EVEN,) * 4, 0.5, 0.75, 30, 100)


def decided(**changes):
    return decide_on_places(replace(OPEN, **changes))


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        ({"alone": Interval(4.0, 2.999, 8.0), "ever_right": False}, "This model answers none of these with or without"),
        (
            {"alone": Interval(4.0, 2.999, 8.0)},
            "The documents that hold the answers make these 4.00 [3.00, 8.00]",
        ),
        ({"best": Interval(4.0, 2.999, 8.0)}, "Among the other documents the model loses the answer"),
        ({"ever_right": False}, "This model answers none of these with or without"),
        ({"ever_right": False, "first": Interval(3.8, 2.0, 7.0)}, "This model answers none of these with or without"),
        ({"right": 0.0}, "Among the other documents no answer is right, at any place: this file cannot tell"),
        ({"right": 0.0, "first": Interval(10.5, 7.8, 14.7)}, "Among the other documents no answer is right"),
        ({"right": 0.01, "first": Interval(10.5, 7.8, 14.7)}, "Put key documents first"),
        ({}, "Undecided"),
        (
            {"first": Interval(10.5, 7.8, 14.7)},
            "Put key documents first: the answer's probability is 10.5 [7.8, 14.7]",
        ),
        ({"first": Interval(1.5, 1.001, 2.0)}, "Put key documents first"),
        ({"first": Interval(1.5, 1.0, 2.0)}, "Undecided"),
        ({"last": Interval(1.5, 1.001, 2.0), "first": Interval(1.2, 1.1, 1.4)}, "Put key documents last"),
        ({"last": Interval(0.7, 0.5, 0.999)}, "Don't put key documents last"),
        ({"first": Interval(0.7, 0.5, 0.999)}, "Don't put key documents first"),
        ({"last": Interval(0.7, 0.5, 1.0)}, "Undecided"),
        ({"first": Interval(1.02, 1.01, 1.09), "last": Interval(0.95, 0.92, 0.99)}, "Order matters little here"),
        ({"first": Interval(1.02, 1.01, 1.11), "last": Interval(0.95, 0.92, 0.99)}, "Put key documents first"),
        ({"first": Interval(1.0, 0.95, 1.05), "last": Interval(0.95, 0.90, 0.99)}, "Don't put key documents last"),
    ],
)
def test_the_rules_decide_at_their_borders(changes, begins):
    said = decided(**changes)
    assert said.startswith(begins), said
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("end", "right", "begins"),
    [
        ("first", Interval(-0.6, -1.0, -0.001), "Probability and right answers disagree: with key documents first"),
        ("first", Interval(-0.6, -1.0, 0.0), "Put key documents first"),
        ("first", Interval(0.6, 0.1, 1.0), "Put key documents first"),
        ("last", Interval(0.6, 0.001, 1.0), "Probability and right answers disagree: with key documents last"),
        ("last", Interval(-0.6, -1.0, -0.1), "Put key documents last"),
    ],
)
def test_an_end_with_fewer_right_answers_than_the_other_is_not_recommended(end, right, begins):
    said = decided(**{end: Interval(1.9, 1.4, 2.6)}, right_first_less_last=right)
    assert said.startswith(begins), said


def test_the_other_end_is_named_where_it_is_like_the_better_or_worse_than_the_middle():
    first = Interval(3.7, 2.0, 6.7)
    both = decided(first=first, last=Interval(2.2, 1.2, 4.0), first_over_last=Interval(1.7, 0.9, 3.0))
    assert "last does as well, as far as this tells" in both
    apart = decided(first=first, last=Interval(2.2, 1.2, 4.0), first_over_last=Interval(1.7, 1.1, 3.0))
    assert "told apart" not in apart
    assert "don't put them last: 0.400 [0.300, 0.500] times" in decided(first=first, last=Interval(0.4, 0.3, 0.5))


def test_how_many_records_are_missing_is_told():
    assert "about 50 more records would show a factor of 1.25" in decided()
    assert "about 460 more records would show a factor of 1.1" in decided(sample_size=40)
    assert "about 1 more" in decided(sample_size=10, sample_size_for_little=20)


def test_how_many_answers_are_right_is_told():
    for changes in ({}, {"first": Interval(2.0, 1.5, 2.5)}, {"last": Interval(0.7, 0.5, 0.9)}, {"best": NONE}):
        assert "(36 % right over all places)" in decided(**changes)


@pytest.mark.parametrize(
    ("chosen", "begins"),
    [
        ((EVEN,) * 4, "Undecided: place A"),
        ((EVEN, Interval(0.56, 0.2501, 0.7), EVEN, EVEN), "Don't trust one order: the option at place B"),
        ((EVEN, Interval(0.56, 0.25, 0.7), EVEN, EVEN), "Undecided: place B is chosen most, in 56 % [25, 70]"),
        ((Interval(0.25, 0.23, 0.27),) * 4, "Order matters little here"),
        ((Interval(0.25, 0.23, 0.27),) * 3 + (Interval(0.25, 0.23, 0.28),), "Undecided"),
        ((Interval(0.25, 0.23, 0.27),) * 3 + (Interval(0.265, 0.255, 0.276),), "Don't trust one order"),
    ],
)
def test_the_rules_on_options_decide_at_their_borders(chosen, begins):
    said = decide_on_options(replace(SHARES, choices=chosen))
    assert said.startswith(begins), said
    assert "the same option is chosen in all orders in 50 % of the records" in said
    assert "75 % of the choices are right, and 25 % by chance" in said
    assert "are right" not in decide_on_options(replace(SHARES, choices=chosen, right=None))


def test_the_bounds_are_those_that_the_page_states():
    assert (decision.MARGIN, decision.SAMPLE_RATIO, decision.ANSWER_RATIO) == (1.1, 1.25, 3.0)
