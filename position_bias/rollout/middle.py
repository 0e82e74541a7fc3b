"""The part of a prompt that its ends are compared with."""

from collections.abc import Sequence

import numpy as np

from position_bias.attention import Array


def middle_half(n: int) -> slice:
    """The middle half of n positions: what stays where the first and the last quarter are left out."""
    return slice(n // 4, n - n // 4)


def inside(positions: Sequence[int], n: int) -> list[bool]:
    """Which of some positions lie in the middle half of n."""
    return [n // 4 <= position < n - n // 4 for position in positions]


def logarithms_over_middle(effects: Array, positions: Sequence[int], n: int) -> Array:
    """The logarithm of each effect [N, P] less the mean of the logarithms at the chosen positions of the middle half.

    A position that is like those of the middle has 0 in the mean over prompts, however widely effects spread. An effect
    of 0 has no logarithm, and is NaN.
    """
    logarithms = np.log(np.where(effects > 0, effects, np.nan))
    return np.asarray(logarithms - logarithms[:, inside(positions, n)].mean(-1, keepdims=True))
