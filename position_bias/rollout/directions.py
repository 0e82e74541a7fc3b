"""What is left of influence where the directions of gradients are changed: profiles, and how far they are from it.

The profile of a change is the root mean square over its draws, made to sum to 1 in each prompt. A prompt is compared
with itself as measured. The null is what knows positions and not the prompt: the mean profile of all other prompts.
"""

import numpy as np

from position_bias.attention import Array
from position_bias.rollout.measurement import Floats, Measurement
from position_bias.statistics import total_variation

MEASURED, NULL, HALF = "measured", "other prompts", "half of other prompts"
BETWEEN = "twice between draws"  # what two halves of the draws of rotations differ by, twice
ERROR = "error of draws in"  # of a way: half of what two halves of its draws differ by
BEFORE, AFTER = 9, 8  # how many tokens correlations leave out at the ends of a prompt


def profiles(measured: Measurement) -> dict[str, Array]:
    """The influence of each prompt as measured, under each change and by the null, [N, n], each summing to 1."""
    assert measured.influence is not None
    own = shares(measured.influence)
    others = (own.sum(0) - own) / (len(own) - 1)
    return {MEASURED: own, NULL: others} | {way: _over(draws) for way, draws in measured.directions.items()}


def distances(measured: Measurement) -> dict[str, Array]:
    """Total variation to the prompt's influence as measured, [N], of each change and of half the null.

    Beside it, the error that the number of draws leaves in the profile of each change: half of what the profiles of two
    halves of its draws differ by.
    """
    known = profiles(measured)
    own = known.pop(MEASURED)
    apart = {name: total_variation(profile, own) for name, profile in known.items()}
    halves = {
        way: total_variation(_over(draws[:, ::2]), _over(draws[:, 1::2])) for way, draws in measured.directions.items()
    }
    errors = {f"{ERROR} {way}": values / 2 for way, values in halves.items()}
    twice = {BETWEEN: 2 * halves["rotated"]} if "rotated" in halves else {}
    return apart | {HALF: apart[NULL] / 2} | errors | twice


def correlation(profile: Array, own: Array) -> Array:
    """Correlation of logarithms with position regressed out, of two [N, n] -> [N]; tokens at the ends are left out.

    What is regressed out is a constant, ln j, ln(n - j), j and j^2 of a token j, counted from 0.
    """
    n = own.shape[1]
    inside = slice(BEFORE, n - AFTER)
    j = np.arange(n, dtype=float)[inside]
    known = np.stack([np.ones_like(j), np.log(j), np.log(n - j), j / n, (j / n) ** 2], 1)
    left = [np.log(of[:, inside]) @ (np.eye(len(j)) - known @ np.linalg.pinv(known)) for of in (profile, own)]
    product: Array = (left[0] * left[1]).sum(1)
    return product / np.sqrt((left[0] ** 2).sum(1) * (left[1] ** 2).sum(1))


def _over(draws: Floats) -> Array:
    """The root mean square over draws, [N, draws, n] -> [N, n], as shares of each prompt."""
    return shares(np.sqrt((np.asarray(draws, np.float64) ** 2).mean(1)))


def shares(influence: Floats | Array) -> Array:
    """Make profiles [..., n] sum to 1."""
    profile = np.asarray(influence, np.float64)
    shares: Array = profile / profile.sum(-1, keepdims=True)
    return shares
