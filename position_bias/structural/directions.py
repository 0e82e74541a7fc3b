"""What is left of influence where the directions of gradients are changed: profiles, and how far they are from it.

The profile of a change is the root mean square over its draws, made to sum to 1 in each prompt. A prompt is compared
with itself as measured. The null is what knows positions and not the prompt: the mean profile of all other prompts.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from position_bias.attention import Array
from position_bias.rollout import measurement
from position_bias.rollout.measurement import Floats, Measurement
from position_bias.rollout.middle import middle_half
from position_bias.running.artifacts import TensorFile
from position_bias.statistics import total_variation
from position_bias.structural.checks_directions import COLUMNS, LABELS
from position_bias.verdicts.claim import PRETRAINED

MEASURED, NULL, HALF = "measured", "other prompts", "half of other prompts"
BETWEEN = "twice between draws"  # what two halves of the draws of rotations differ by, twice
ERROR = "error of draws in"  # of a way: half of what two halves of its draws differ by
AT = {"hub": "", "copy0": " at the own scale", "usual0": " at .02"}  # checkpoint -> how names of statistics end
BEFORE, AFTER = 9, 8  # how many tokens correlations leave out at the ends of a prompt


def profiles(measured: Measurement) -> dict[str, Array]:
    """The influence of each prompt as measured, under each change and by the null, [N, n], each summing to 1."""
    assert measured.influence is not None
    own = _shares(measured.influence)
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


def first_over_middle(profile: Array) -> Array:
    """Logarithm of the first token's share less the mean of the logarithms in the middle half, [N, n] -> [N]."""
    logarithms = np.log(profile)
    ratio: Array = logarithms[:, 0] - logarithms[:, middle_half(profile.shape[1])].mean(1)
    return ratio


def described(measured: Measurement) -> dict[str, dict[str, Array]]:
    """What is judged of one model with one kind of weights: statistic -> network -> [N]."""
    if measured.terms:
        return {"layer by layer": layer_by_layer(measured.terms)}
    known = profiles(measured)
    own = known[MEASURED]
    apart = distances(measured)
    return {
        "total variation": apart,
        "correlation": {way: correlation(known[way], own) for way in (*measured.directions, NULL)},
        "log first / middle": {name: first_over_middle(profile) for name, profile in known.items()},
    }


def layer_by_layer(terms: Mapping[str, Floats]) -> dict[str, Array]:
    """Ratios of squared gradients summed over tokens, the geometric mean over layers, [N, L, n] each -> [N].

    A coherence of 1 is adding in squares, an isotropy of 1 what the Frobenius norms of the weights say.
    """
    total = {name: np.asarray(values, np.float64).sum(-1) for name, values in terms.items()}
    total["both"] = total["attention"] + total["mlp"]
    ratios = {"coherence over queries": ("values", "queries"), "coherence over heads": ("queries", "heads")}
    ratios |= {"share of values": ("values", "attention"), "share of attention": ("attention", "both")}
    ratios |= {"isotropy": ("heads", "random")} if "random" in total else {}
    found = {name: np.exp(np.log(total[one] / total[other]).mean(1)) for name, (one, other) in ratios.items()}
    first = np.asarray(terms["values"], np.float64)[..., 0] / terms["attention"][..., 0]
    across = (total["across"] / total["attention"]).mean(1)
    return found | {"share of values, first token": np.exp(np.log(first).mean(1)), "cross term": across}


def evidence(
    measured: list[TensorFile], terms: list[TensorFile], scale: str, steps: list[int]
) -> dict[str, pd.DataFrame]:
    """The table of `checks_directions.COLUMNS` for evidence/: means over the prompts of each document.

    `terms` are measured apart, on fewer prompts. `steps` are those after which models trained here are kept: before
    training, early in it, and at its end.
    """
    stages = {f"seed0/step{step}": "early" for step in steps}
    stages |= {f"seed0/step{steps[0]}": "untrained", f"seed0/step{steps[-1]}": "trained"}
    rows = [row for file in [*measured, *terms] for row in _rows(file, scale, stages)]
    return {"directions": pd.DataFrame(rows, columns=list(COLUMNS)).round({"value": 5})}


def _rows(file: TensorFile, scale: str, stages: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
    found, labels = measurement.read(file.path), file.labels
    checkpoint, values = labels["checkpoint"], described(found)
    if checkpoint in AT:
        named = {f"{name}{AT[checkpoint]}": networks for name, networks in values.items()}
    else:
        apart = values["total variation"]
        named = {"in training": {stages[checkpoint]: np.log(apart["signs"] / apart[NULL])}}
    setting = {**labels, "scale": PRETRAINED if checkpoint in AT else scale}
    for name, networks in named.items():
        for network, of_prompts in networks.items():
            for document, value in pd.Series(of_prompts).groupby(found.documents).mean().items():
                yield (*(setting[label] for label in LABELS), name, network, document, value)


def _over(draws: Floats) -> Array:
    """The root mean square over draws, [N, draws, n] -> [N, n], as shares of each prompt."""
    return _shares(np.sqrt((np.asarray(draws, np.float64) ** 2).mean(1)))


def _shares(influence: Floats | Array) -> Array:
    profile = np.asarray(influence, np.float64)
    shares: Array = profile / profile.sum(1, keepdims=True)
    return shares
