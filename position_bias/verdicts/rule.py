"""The rule by which rows of checks become the verdict on a claim. docs/verdicts.md has its error rates.

A row estimates a number theta, and has a bound b, a direction (">" below) and a margin m. Three regions cover all:
theta is *beyond* (above b + m), *contrary* (below b - m) or *within*. A claim's form says how many of its m rows have
to be beyond. The p-value that at least k of m rows are so is (m - k + 1) p_(k), with p sorted: it needs no rows that
are independent. Each word is wrong in at most (1 - level) / 2 of all cases, where units are nearly normal.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from position_bias.verdicts.registry import Relation
from position_card.rollout.statistics import Array, t_quantile

Word = Literal["holds", "fails", "no effect", "undecided", "not testable here"]
HOLDS: Word = "holds"
FAILS: Word = "fails"
NO_EFFECT: Word = "no effect"
UNDECIDED: Word = "undecided"
UNTESTABLE: Word = "not testable here"
ERRATUM = "erratum"  # what FAILS is called of a constant, a step of a proof or a released number with a corrected one
MEANING: Mapping[str, str] = {
    HOLDS: "as many rows as the claim needs lie beyond their bounds by more than the margin",
    FAILS: "so many rows lie on the other side, by more than the margin, that too few are left",
    NO_EFFECT: "in so many rows the effect is shown not to exceed the margin that too few are left",
    UNDECIDED: "the intervals leave open which of these is so, or rows are missing",
    UNTESTABLE: "no row with an interval speaks of the claim at any scale",
    ERRATUM: "a printed constant, a step of a proof or a released number does not hold, and a corrected one does",
}
WORDS: tuple[Word, ...] = (HOLDS, FAILS, NO_EFFECT, UNDECIDED, UNTESTABLE)
DECIDED = WORDS[:3]  # the words that a p-value supports, in the order in which they are tried
# how many rows have to be beyond by the form of a claim; else all
FORMS: Mapping[str, Callable[[int], int]] = {"most": lambda rows: rows // 2 + 1, "can": lambda rows: 1}
LEAST_SEEDS = 5  # behind a row that decides


def p_values(
    relation: npt.ArrayLike, numbers: Sequence[npt.ArrayLike], level: float, exact: npt.ArrayLike = False
) -> Array:
    """The p-values of DECIDED for rows `[...]`, of the `numbers` of each: bound, margin, low, high, n -> `[..., 3]`.

    An interval of `level` over n units is Student's about its middle; where a row is `exact`, low and high are a range
    of numbers that are known. An equality has no third word, and a size beyond the margin has no second one.
    """
    bound, margin, low, high, n = (np.asarray(number, np.float64) for number in numbers)
    below = np.asarray(relation) == "<"
    direction = np.where(below, -1.0, 1.0)
    least, most = np.where(below, -high, low), np.where(below, -low, high)
    upper, lower = direction * bound + margin, direction * bound - margin
    freedom = np.maximum(n - 1, 1)
    middle, half = (least + most) / 2, (most - least) / 2

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = t_quantile((1 + level) / 2, freedom) / half

        def tail(distance: Array) -> Array:
            return np.asarray(stdtr(freedom, distance * scale))

        beyond = np.where(exact, least <= upper, tail(upper - middle))
        contrary = np.where(exact, most >= lower, tail(middle - lower))
        within = np.where(exact, most > upper, tail(middle - upper))
        inside = np.maximum(within, np.where(exact, least < lower, tail(lower - middle)))
    outside = np.minimum(2 * np.minimum(beyond, contrary), 1)
    nothing = np.ones_like(outside)
    kinds = [np.asarray(relation) == "=", np.asarray(relation) == "!="]
    by_word = (([inside, outside], beyond), ([outside, nothing], contrary), ([nothing, inside], within))
    return np.stack([np.select(kinds, others, side) for others, side in by_word], axis=-1)


def needed(form: str, rows: int) -> int:
    """How many of a claim's rows have to be beyond their bounds."""
    return FORMS[form](rows) if form in FORMS else rows


def conjunction(p: Array, form: str) -> Array:
    """The p-values of DECIDED for a claim, of those for its rows, `[..., rows, 3]` -> `[..., 3]`."""
    rows = p.shape[-2]
    beyond = needed(form, rows)
    ordered = np.sort(p, axis=-2)
    each = [ordered[..., k - 1, word] * (rows - k + 1) for word, k in enumerate((beyond, *[rows - beyond + 1] * 2))]
    together: Array = np.minimum(np.stack(each, axis=-1), 1)
    return together


def words(p: Array, level: float) -> npt.NDArray[np.str_]:
    """The first of DECIDED that its p-value supports, else UNDECIDED, `[..., 3]` -> `[...]`."""
    supported = p <= (1 - level) / 2
    return np.select([supported[..., place] for place in range(len(DECIDED))], DECIDED, UNDECIDED)


def word_of_interval(relation: Relation, bound: float, margin: float, low: float, high: float) -> Word:
    """What an interval says by itself: the word of the region that all of it lies in."""
    if np.isnan(low) or np.isnan(high):
        return UNTESTABLE
    p = p_values(relation, (bound, margin, low, high, 2), 0.95, exact=True)
    return next((word for word, value in zip(DECIDED, p, strict=True) if value == 0), UNDECIDED)
