"""The beginning, the middle and the end of a prompt, and what the ends have over the middle.

Whatever is measured by position is compared so: influence, the effect of replacing a token, and recall of a passage.
From the probability of a recalled word is taken away what the word would be given anyway, after a cue that its context
does not have.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from position_card.rollout.attention import Array

ABLE = 0.2  # the accuracy of recall from which places are compared


class RecallScores(NamedTuple):
    """What a decoder recalls of C contexts, of the passages that begin at P places (`language_models.recall`)."""

    probability: Array  # [C, P] of the word that followed the passage, among all tokens
    correct: Array  # [C, P]: 1 where this word is the most probable of all words, else 0
    prior: Array  # [C, P] its probability after a cue of words that the context does not have


def middle_half(n: int) -> slice:
    """Return the middle half of n positions: what stays where the first and the last quarter are left out."""
    return slice(n // 4, n - n // 4)


def words(n: int, first: int = 0) -> list[slice]:
    """Return six windows of one token each: the first of the text, four spread over its middle half, and the last.

    The text is what stands behind `first` start tokens in a prompt of n tokens.
    """
    text = n - first
    middle = middle_half(text)
    spread = np.linspace(middle.start, middle.stop - 1, 4).round().astype(int)
    return [slice(first + place, first + place + 1) for place in (0, *map(int, spread), text - 1)]


def eighths(n: int, first: int = 0) -> list[slice]:
    """Return the eighths of the text behind `first` start tokens in a prompt of n tokens, at least 8 of them.

    The third to the sixth are its middle half.
    """
    edges = [first + part * (n - first) // 8 for part in range(9)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def inside(positions: Sequence[int], n: int) -> list[bool]:
    """Say of each position whether it lies in the middle half of n."""
    return [n // 4 <= position < n - n // 4 for position in positions]


def logarithms_over_middle(effects: Array, positions: Sequence[int], n: int) -> Array:
    """Return log effects [N, P] less the mean of the logarithms at the chosen positions of the middle half.

    A position that is like those of the middle has 0 in the mean over prompts, however widely effects spread. An effect
    of 0 has no logarithm, and is NaN.
    """
    logarithms = np.log(np.where(effects > 0, effects, np.nan))
    return np.asarray(logarithms - logarithms[:, inside(positions, n)].mean(-1, keepdims=True))


def ratio(part: Array, whole: Array) -> Array:
    """Return part / whole, NaN where the whole is 0 (the null profile `last` has no middle)."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def above_prior(scores: RecallScores) -> Array:
    """Return how much more probable the right word is than after the cue of another context, [C, P]."""
    return scores.probability - scores.prior


def is_able(accuracy: float) -> bool:
    """Say whether a decoder of this mean accuracy recalls enough to compare places."""
    return accuracy >= ABLE


def ends_over_middle(values: Array) -> dict[str, Array]:
    """Divide the first and the last eighth of the places by their middle half, [R, P] -> [R]; NaN where that is 0."""
    parts = by_part(values)
    return {f"{end} eighth / middle": ratio(parts[end], parts["middle"]) for end in ("first", "last")}


def by_part(values: Array) -> dict[str, Array]:
    """Return means [C] of values [C, P] over the parts of their places."""
    return {name: values[:, part].mean(-1) for name, part in parts_of_places(values.shape[1]).items()}


def parts_of_places(count: int) -> dict[str, slice]:
    """Return the first eighth of so many places, but one at least, their middle half, and as many of the last."""
    eighth = max(1, count // 8)
    return {"first": slice(None, eighth), "middle": middle_half(count), "last": slice(-eighth, None)}
