"""The rule by which rows of checks become the verdict on a claim. docs/verdicts.md has its error rates.

A row estimates a number theta, and has a bound b, a direction (">" below) and a margin m. It is *beyond* where theta is
above b + m, *contrary* where it is below b - m, and else *within* the margin; *short* is what is not beyond. A claim's
form says how many of its m rows have to be beyond. The p-value that at least k of m rows are so is (m - k + 1) p_(k),
with p sorted: it needs no rows that are independent. Each word is wrong in at most (1 - level) / 2 of all cases, where
units are nearly normal.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from position_bias.verdicts.registry import Relation
from position_card.rollout.statistics import Array, t_quantile

Word = Literal["holds", "mostly holds", "mixed", "no effect", "fails", "undecided", "not testable here"]
HOLDS: Word = "holds"
MOSTLY: Word = "mostly holds"
MIXED: Word = "mixed"
NO_EFFECT: Word = "no effect"
FAILS: Word = "fails"
UNDECIDED: Word = "undecided"
UNTESTABLE: Word = "not testable here"
ERRATUM = "erratum"  # what FAILS is called of a printed constant, a step of a proof or a released number
MEANING: Mapping[str, str] = {
    HOLDS: "enough comparisons are as the claim says, by more than the margin",
    MOSTLY: "more than half of the comparisons are as the claim says, but some are shown not to be",
    MIXED: "too many comparisons are shown not to be as the claim says, and one at least shows an effect",
    NO_EFFECT: "every comparison is shown to lie within the margin",
    FAILS: "enough comparisons contradict the claim, by more than the margin, that it cannot hold",
    UNDECIDED: "the intervals leave open which of these is so, or comparisons are missing",
    UNTESTABLE: "no comparison with an interval speaks of it at any scale, or no run so far could show the effect",
    ERRATUM: "a printed constant, a step of a proof or a released number does not hold as it stands",
}
WORDS: tuple[Word, ...] = (HOLDS, MOSTLY, MIXED, NO_EFFECT, FAILS, UNDECIDED, UNTESTABLE)
DECISIONS = (HOLDS, FAILS, NO_EFFECT, MOSTLY, MIXED)  # the words that a p-value supports, in the order of trying
OF_ROW = (HOLDS, FAILS, NO_EFFECT, UNDECIDED, UNTESTABLE)  # the words of a row by itself
BEYOND, CONTRARY, SHORT, WITHIN = range(4)  # the regions of a row, as `p_values` has them
SHOWS: Mapping[str, int] = {
    HOLDS: BEYOND,
    FAILS: CONTRARY,
    NO_EFFECT: WITHIN,
    MOSTLY: SHORT,
    MIXED: SHORT,
}  # where the deciding row is
# how many rows have to be beyond by the form of a claim; else all
FORMS: Mapping[str, Callable[[int], int]] = {"most": lambda rows: rows // 2 + 1, "can": lambda rows: 1}
LEAST_SEEDS = 5  # behind a row that decides


def p_values(
    relation: npt.ArrayLike, numbers: Sequence[npt.ArrayLike], level: float, exact: npt.ArrayLike = False
) -> Array:
    """Return the p-values that rows `[...]` lie in the regions BEYOND, CONTRARY, SHORT and WITHIN, `[..., 4]`, float64.

    `numbers` are bound, margin, low, high and n of each row. An interval of `level` over n units is Student's about its
    middle. Where a row is `exact`, low and high are a range of numbers that are known, and each p-value is 0 or 1. An
    equality (`=`) is beyond where it is within the margin of its bound, and else contrary. A row that predicts a
    difference (`!=`) is beyond on either side of the margin, and cannot be contrary.
    """
    bound, margin, low, high, n = (np.asarray(number, np.float64) for number in numbers)
    is_less = np.asarray(relation) == "<"
    direction = np.where(is_less, -1.0, 1.0)
    smallest, largest = np.where(is_less, -high, low), np.where(is_less, -low, high)
    upper, lower = direction * bound + margin, direction * bound - margin
    freedom = np.maximum(n - 1, 1)
    middle, half = (smallest + largest) / 2, (largest - smallest) / 2

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = t_quantile((1 + level) / 2, freedom) / half

        def tail(distance: Array) -> Array:
            return np.asarray(stdtr(freedom, distance * scale))

        p_beyond = np.where(exact, smallest <= upper, tail(upper - middle))
        p_contrary = np.where(exact, largest >= lower, tail(middle - lower))
        p_short = np.where(exact, largest > upper, tail(middle - upper))
        p_within = np.maximum(p_short, np.where(exact, smallest < lower, tail(lower - middle)))
    p_outside = np.minimum(2 * np.minimum(p_beyond, p_contrary), 1)
    p_never = np.ones_like(p_outside)
    is_kind = [np.asarray(relation) == "=", np.asarray(relation) == "!="]
    by_region = (
        ([p_within, p_outside], p_beyond),
        ([p_outside, p_never], p_contrary),
        ([p_never, p_within], p_short),
        ([p_never, p_within], p_within),
    )
    return np.stack([np.select(is_kind, of_kinds, of_side) for of_kinds, of_side in by_region], axis=-1)


def quorum(form: str, rows: int) -> int:
    """Return how many of so many rows, or models, have to be beyond their bounds for a claim of this form to hold."""
    return FORMS[form](rows) if form in FORMS else rows


def at_least(count: int, p: Array, region: int) -> Array:
    """Return the p-value that at least `count` rows lie in a region: `[..., rows, 4]` -> `[...]`.

    It is (m - k + 1) p_(k) of the sorted p-values of m rows, at most 1. The rows need not be independent.
    """
    p_value: Array = np.minimum(np.sort(p[..., region], axis=-1)[..., count - 1] * (p.shape[-2] - count + 1), 1)
    return p_value


def conjunction(p: Array, form: str, of_rows: Array | None = None) -> Array:
    """Return the p-values of the words DECISIONS for a claim of this form: `[..., rows, 4]` -> `[..., 5]`.

    `p` has those of what the form counts, rows or models. Where it counts models, `of_rows` are the p-values of rows,
    of which one has to lie outside the margin for *mixed*.
    """
    rows = p.shape[-2]
    single = p if of_rows is None else of_rows
    p_outside = np.minimum(2 * np.minimum(at_least(1, single, BEYOND), at_least(1, single, CONTRARY)), 1)
    count = quorum(form, rows)
    minority = rows - count + 1  # rows that are not beyond, where too few are
    p_too_few = at_least(minority, p, SHORT)
    by_word = {
        HOLDS: at_least(count, p, BEYOND),
        FAILS: at_least(minority, p, CONTRARY),
        NO_EFFECT: at_least(rows, p, WITHIN),
        MOSTLY: np.maximum(at_least(quorum("most", rows), p, BEYOND), p_too_few),
        MIXED: np.maximum(p_outside, p_too_few),
    }
    return np.stack([by_word[word] for word in DECISIONS], axis=-1)


def words(p: Array, level: float) -> npt.NDArray[np.str_]:
    """Return the first of DECISIONS that its p-value supports at an error of (1 - `level`) / 2, `[..., 5]` -> `[...]`.

    Where none is supported the word is UNDECIDED.
    """
    support = p <= (1 - level) / 2
    return np.select([support[..., place] for place in range(len(DECISIONS))], DECISIONS, UNDECIDED)


def words_of_rows(p: Array, level: float) -> npt.NDArray[np.str_]:
    """Return the word that each row says by itself: p-values of its regions `[..., 4]` -> `[...]`.

    The error is (1 - `level`) / 2. The word is HOLDS, FAILS, NO_EFFECT or UNDECIDED.
    """
    candidates = OF_ROW[:3]
    support = [p[..., SHOWS[word]] <= (1 - level) / 2 for word in candidates]
    return np.select(support, candidates, UNDECIDED)


def word_of_interval(relation: Relation, bound: float, margin: float, low: float, high: float) -> Word:
    """Return the word of the region that the whole interval from `low` to `high` lies in, else UNDECIDED.

    Where one of the ends is NaN the word is UNTESTABLE.
    """
    if np.isnan(low) or np.isnan(high):
        return UNTESTABLE
    p = p_values(relation, (bound, margin, low, high, 2), 0.95, exact=True)
    return next((word for word in OF_ROW[:3] if p[SHOWS[word]] == 0), UNDECIDED)
