"""The rule of verdicts: what it says of single rows, how often it errs, and how it takes rows together."""

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from position_bias.verdicts import rule

ROOT = Path(__file__).parents[3]
LEVEL, WORLDS, MARGIN, WIDE, FAR = 0.95, 10_000, 0.5, 50.0, 500.0
PAGE = (ROOT / "docs/verdicts.md").read_text()
FORMS = ("all", "most", "can")
NORMAL, SKEWED = 0.0, 0.8  # sigma of the log-normal spread; 0 is the normal one
WORDS = ("holds", "mostly holds", "mixed", "no effect", "fails")
REFUTING = WORDS[1:]  # that say that the claim does not hold as worded


def worlds(form, rows):
    """Word -> worlds in which it is false by nothing: the margin, the true values, and the side of the long tail.

    As many rows as possible lie so far on the word's side that they help it; the others lie on its boundary. *Mostly
    holds* and *mixed* have two boundaries: too few rows hold for the claim, and most do, or one is outside the margin.
    """
    beyond, most = rule.quorum(form, rows), rule.quorum("most", rows)
    found = {
        "holds": [(MARGIN, [FAR] * (beyond - 1) + [MARGIN] * (rows - beyond + 1), -1)],
        "mixed": [
            (MARGIN, [-FAR] * (rows - beyond) + [MARGIN] * beyond, 1),
            (WIDE, [0.0] * (rows - 1) + [WIDE], -1),
        ],
        "no effect": [(WIDE, [0.0] * (rows - 1) + [WIDE], 1)],
        "fails": [(MARGIN, [-FAR] * (rows - beyond) + [-MARGIN] * beyond, 1)],
    }
    if form == "all" and rows > 2:
        found["mostly holds"] = [
            (MARGIN, [FAR] * (rows - 1) + [MARGIN], 1),
            (MARGIN, [FAR] * (most - 1) + [MARGIN] * (rows - most) + [-FAR], -1),
        ]
    return found


def error_rate(word, form, rows, seeds, sigma):
    """How often a word is said of 10,000 worlds in which it is false by nothing, rows correlated by .5."""
    return max(
        _error_rate(word, world, form, seeds, sigma, place) for place, world in enumerate(worlds(form, rows)[word])
    )


def _error_rate(word, world, form, seeds, sigma, place):
    margin, truth, tail = world
    rows = len(truth)
    rng = np.random.default_rng([rows, seeds, FORMS.index(form), WORDS.index(word), int(10 * sigma), place])
    shared, own = rng.standard_normal((2, WORLDS, seeds, rows), np.float32)
    noise = np.sqrt(0.5) * (shared[..., :1] + own)
    if sigma:
        noise = tail * (np.exp(sigma * noise) - np.exp(sigma**2 / 2))  # on the side where it is missed most
        noise /= np.sqrt(np.exp(sigma**2) * np.expm1(sigma**2))
    mean, spread = noise.mean(axis=1) + truth, noise.std(axis=1, ddof=1)
    half = stdtrit(seeds - 1, (1 + LEVEL) / 2) * spread / np.sqrt(seeds)
    p = rule.conjunction(rule.p_values(">", (0, margin, mean - half, mean + half, seeds), LEVEL), form)
    said = rule.words(p, LEVEL)
    too_few_hold = word == "mixed" and place == 0  # which every word that refutes the claim says
    return np.isin(said, REFUTING if too_few_hold else [word]).mean()


AS_MANY_WORLDS = pytest.mark.all("as many worlds again, with a skewed spread, of which nothing is promised")
CASES = [("all", 1, 5), ("all", 6, 20), *((form, rows, 5) for form in FORMS for rows in (6, 12))]


@cache
def rates(sigma):
    """Word -> how often it is said of worlds of each case in which it is false by nothing."""
    return {word: [error_rate(word, *case, sigma) for case in CASES if word in worlds(*case[:2])] for word in WORDS}


def stated(sigma):
    """The least and largest percentages of the page, by word, for a spread."""
    column = 1 if sigma == NORMAL else 2
    cells = {
        row.split("|")[1].strip(): row.split("|")[1 + column] for row in PAGE.splitlines() if row.startswith("| *")
    }
    return {word.strip("*"): tuple(map(float, re.findall(r"[\d.]+", cell))) for word, cell in cells.items()}


def test_words_are_wrong_in_at_most_three_of_a_hundred_worlds():
    worst = {word: max(of_word) for word, of_word in rates(NORMAL).items()}
    assert all(rate <= 0.03 for rate in worst.values()), worst


@pytest.mark.parametrize("sigma", [NORMAL, pytest.param(SKEWED, marks=AS_MANY_WORLDS)])
def test_the_page_has_the_error_rates_that_are_simulated(sigma):
    """With a skewed spread nothing better is promised than what the page says."""
    found = {word: (round(100 * min(r), 1), round(100 * max(r), 1)) for word, r in rates(sigma).items()}
    assert stated(sigma) == found


def test_the_page_defines_each_word_as_the_rule_does():
    defined = dict(re.findall(r"^\| (\w[\w ]*) \| (\w.*) \|$", PAGE, re.MULTILINE))
    assert {word: defined[word] for word in rule.MEANING} == dict(rule.MEANING)


@given(
    middle=st.floats(-2, 2), half=st.floats(0.01, 2), n=st.integers(2, 200), relation=st.sampled_from(["<", ">", "!="])
)
def test_a_row_alone_says_what_its_interval_says(middle, half, n, relation):
    low, high = middle - half, middle + half
    distances = [abs(end - edge) for end in (low, high) for edge in (-MARGIN, MARGIN)]
    if min(distances) > 1e-6:
        p = rule.p_values(relation, (0, MARGIN, low, high, n), LEVEL)
        expected = rule.word_of_interval(relation, 0, MARGIN, low, high)
        outside = relation == "!=" and expected == "holds"  # two sides, at half the error each
        assert rule.words_of_rows(p, LEVEL) == expected or outside


@pytest.mark.parametrize(
    ("number", "word"),
    [(MARGIN, "no effect"), (-MARGIN, "no effect"), (MARGIN + 1e-9, "holds"), (-MARGIN - 1e-9, "fails")],
)
def test_a_number_at_the_very_end_of_the_margin_is_within_it(number, word):
    assert rule.word_of_interval(">", 0, MARGIN, number, number) == word
    assert rule.word_of_interval("<", 0, MARGIN, -number, -number) == word


def test_k_of_m_rows_are_judged_by_the_kth_smallest_p_value():
    p = np.stack([[0.004, 0.5, 0.01, 0.03]] * 4, axis=-1)
    for form, beyond, too_few in (
        ("all", 1 * 0.5, 4 * 0.004),
        ("most", 2 * 0.03, 3 * 0.01),
        ("can", 0.016, 0.5),
    ):
        most, outside = max(2 * 0.03, too_few), max(2 * 4 * 0.004, too_few)
        np.testing.assert_allclose(rule.conjunction(p, form), [beyond, too_few, 0.5, most, outside])


def test_models_are_mixed_where_a_row_of_theirs_is_outside():
    models, rows = np.full((1, 4), 1.0), np.full((3, 4), 1.0)
    models[:, rule.SHORT] = 0.001
    assert rule.words(rule.conjunction(models, "all", rows), LEVEL) == "undecided"
    rows[1, rule.BEYOND] = 0.001
    assert rule.words(rule.conjunction(models, "all", rows), LEVEL) == "mixed"


def test_no_effect_needs_every_row_within_the_margin():
    null, near = (0, MARGIN, -0.4, 0.4, 5), (0, MARGIN, -0.6, 0.4, 5)
    for rows, word in (([null] * 3, "no effect"), ([null, null, near], "undecided")):
        p = rule.p_values(">", list(zip(*rows, strict=True)), LEVEL)
        assert rule.words(rule.conjunction(p, "all"), LEVEL) == word


def test_a_bound_without_margin_costs_five_percent():
    """Both words are said of worlds at the bound, each in 2.5 %."""
    values = np.random.default_rng(3).standard_normal((WORLDS, 5))
    mean, spread = values.mean(axis=1), values.std(axis=1, ddof=1)
    half = stdtrit(4, (1 + LEVEL) / 2) * spread / np.sqrt(5)
    said = rule.words_of_rows(rule.p_values(">", (0, 0, mean - half, mean + half, 5), LEVEL), LEVEL)
    wrong = np.isin(said, ["holds", "fails"]).mean()
    (stated,) = re.findall(r"margin of 0 [^.]*?(\d) %", PAGE)
    assert abs(100 * wrong - float(stated)) < 0.7


# What an interval says by itself

NUMBERS = st.floats(-1e6, 1e6)
PREDICTIONS = st.tuples(st.sampled_from((">", "<", "=", "!=")), NUMBERS, st.floats(0, 1e3))
INTERVALS = st.tuples(NUMBERS, NUMBERS).map(lambda ends: tuple(sorted(ends)))


@given(prediction=PREDICTIONS, interval=INTERVALS)
def test_an_interval_and_its_mirror_image_have_the_same_verdict(prediction, interval):
    (low, high), (relation, bound, margin) = interval, prediction
    other = {">": "<", "<": ">"}.get(relation, relation)
    assert rule.word_of_interval(*prediction, low, high) == rule.word_of_interval(other, -bound, margin, -high, -low)


@given(prediction=PREDICTIONS, outer=INTERVALS, shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_an_interval_within_another_settles_alike(prediction, outer, shares):
    low, high = outer
    inner = sorted(min(max(low + share * (high - low), low), high) for share in shares)
    verdict = rule.word_of_interval(*prediction, low, high)
    assert verdict not in ("holds", "fails") or rule.word_of_interval(*prediction, *inner) == verdict


@pytest.mark.parametrize(
    ("relation", "margin", "low", "high", "verdict"),
    [
        (">", 0, 0.1, 0.2, "holds"),
        (">", 0, -0.2, -0.1, "fails"),
        (">", 0, -0.1, 0.1, "undecided"),
        (">", 0, 0.0, 0.1, "undecided"),
        (">", 0.01, 0.02, 0.03, "holds"),
        (">", 0.01, 0.001, 0.002, "no effect"),
        (">", 0.01, -0.005, 0.002, "no effect"),
        (">", 0.01, -0.5, 0.002, "undecided"),
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
def test_an_interval_settles_a_claim_beyond_the_margin_alone(relation, margin, low, high, verdict):
    assert rule.word_of_interval(relation, 0.0, margin, low, high) == verdict


@pytest.mark.parametrize(("low", "high"), [(math.nan, 1.0), (0.0, math.nan), (math.nan, math.nan)])
def test_what_is_not_defined_at_this_scale_cannot_be_tested(low, high):
    assert rule.word_of_interval(">", 0.0, 0.0, low, high) == "not testable here"
