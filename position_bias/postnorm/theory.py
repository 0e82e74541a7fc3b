"""How well uniform attention solves the Set Complement Task of Zsamboki et al. 2025, with and without normalisation.

Of v tokens s are present; the target is uniform over the v - s absent ones. The logit gap g is by how much the logits
of the absent tokens exceed those of the present ones, where both groups have one logit each. Numbers present may be
real, so that curves can be drawn through them.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.linalg import helmert
from scipy.special import expit

from position_card.rollout.attention import Array

DISPERSED, NORMALISED = "C/s", "C/sqrt(s(v-s))"

# Laws of the gap: of s present tokens, a vocabulary v and a constant C.
# We derived the first two, for plain uniform attention and for uniform attention with a normalised output.
# C/2^s is the precision bound of Theorem 4.2 as a summary of the paper prints it.
LAWS: dict[str, Callable[[Array, int, float], Array]] = {
    DISPERSED: lambda s, v, C: C / s,
    NORMALISED: lambda s, v, C: C / np.sqrt(s * (v - s)),
    "C/2^s": lambda s, v, C: C / 2**s,
}


def law_gap(law: str, s: npt.ArrayLike, v: int, constant: float) -> Array:
    """Return the logit gap that `LAWS[law]` gives to `s` present tokens, same shape; `constant` is its C > 0."""
    return LAWS[law](np.asarray(s, np.float64), v, constant)


def total_variation(s: npt.ArrayLike, v: int, gap: npt.ArrayLike) -> Array:
    """Return the total variation distance to the target, s e^-g / (s e^-g + v - s): the mass on present tokens.

    Arguments broadcast.

    With equal logits (g = 0) it is s/v.
    """
    present = np.asarray(s, np.float64)
    return expit(np.log(present / (v - present)) - np.asarray(gap, np.float64))


def simplex(v: int) -> Array:
    """Return a regular simplex, `[v, v - 1]`: v unit vectors with inner products -1 / (v - 1), which sum to 0."""
    return helmert(v).T * np.sqrt(v / (v - 1))


def simplex_constant(law: str, v: int) -> float:
    """Return C of our construction, which reads the mean of present embeddings of `simplex(v)` with the simplex itself.

    The mean m of s embeddings has the product (v - s) / (s (v - 1)) with a present one and -1 / (v - 1) with an absent
    one: a difference of v / ((v - 1) s). Its norm is the root of (v - s) / (s (v - 1)), so that the difference for
    m / |m| is v / sqrt((v - 1) s (v - s)). Logits are minus these products; a factor of the readout is one of C.
    """
    constants = {DISPERSED: v / (v - 1), NORMALISED: v / np.sqrt(v - 1)}
    return float(constants[law])
