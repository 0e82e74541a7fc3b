"""What evidence/ keeps of how influence adds up: of changed directions, of rollouts, and layer by layer."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from position_bias.attention import Array
from position_bias.rollout import measurement
from position_bias.rollout.directions import MEASURED, NULL, correlation, distances, profiles, shares
from position_bias.rollout.measurement import Floats, Measurement
from position_bias.rollout.middle import middle_half
from position_bias.rollout.variants import variants
from position_bias.running.artifacts import TensorFile
from position_bias.statistics import total_variation, wasserstein
from position_bias.structural.checks_directions import COLUMNS, LABELS
from position_bias.verdicts.claim import PRETRAINED

SQUARES, SWAPPED = "squares", "squares of other prompts"  # the rollout in squares, and what it is of the wrong prompt
AT = {"hub": "", "copy0": " at the own scale", "usual0": " at .02"}  # checkpoint -> how names of statistics end


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
    if measured.rollouts:
        return of_rollouts(measured, own, known[NULL])
    apart = distances(measured)
    return {
        "total variation": apart,
        "correlation": {way: correlation(known[way], own) for way in (*measured.directions, NULL)},
        "log first / middle": {name: first_over_middle(profile) for name, profile in known.items()},
    }


def of_rollouts(measured: Measurement, own: Array, others: Array) -> dict[str, dict[str, Array]]:
    """How far profiles from forward passes are from influence, `own` [N, n], and those that know positions alone.

    Those that know positions alone have one number, which comes nearest to the mean of the other prompts, `others`
    [N, n]. W is of mean profiles, with that between two halves of the prompts, and is the same for every prompt.
    """
    n = own.shape[1]
    rollouts = {name: shares(profile) for name, profile in measured.rollouts.items()}
    called = {"influence": MEASURED, "mean-query-key": "mean query and key"}
    rollouts |= {each.name: each.profiles(np.eye(len(own))) for each in variants(measured, called, ["frobenius"])}
    del rollouts[MEASURED]
    last, before = np.eye(n)[-1], np.arange(n, 0, -1.0)
    steps = np.linspace(0, 1, 101)[:, None]
    families = {
        "last and uniform": steps * last + (1 - steps) / n,
        "power of distance": shares(before ** (-3 * steps)),
    }
    alone = {name: family[total_variation(family, others[:, None]).argmin(1)] for name, family in families.items()} | {
        NULL: others
    }
    apart = {name: total_variation(profile, own) for name, profile in (rollouts | alone).items()}
    alike = {name: correlation(profile, own) for name, profile in rollouts.items()}
    swapped = [np.roll(rollouts[SQUARES], shift, 0) for shift in range(1, len(own))]
    apart[SWAPPED] = np.mean([total_variation(profile, own) for profile in swapped], 0)
    alike[SWAPPED] = np.mean([correlation(profile, own) for profile in swapped], 0)
    means = {name: wasserstein(profile.mean(0), own.mean(0)) for name, profile in (rollouts | alone).items()}
    means["halves of the prompts"] = wasserstein(own[::2].mean(0), own[1::2].mean(0))
    return {
        "total variation of rollouts": apart,
        "correlation of rollouts": alike,
        "W of mean rollouts": {name: np.broadcast_to(value, len(own)) for name, value in means.items()},
    }


def layer_by_layer(terms: Mapping[str, Floats]) -> dict[str, Array]:
    """Ratios of squared gradients summed over tokens, the geometric mean over layers, [N, L, n] each -> [N].

    A coherence of 1 is adding in squares, an isotropy of 1 what the Frobenius norms of the weights say. Sums are over
    all tokens, and over the first, those in the middle half, and the last.
    """
    ratios = {"coherence over queries": ("values", "queries"), "coherence over heads": ("queries", "heads")}
    ratios |= {"share of values": ("values", "attention"), "share of attention": ("attention", "both")}
    ratios |= {"isotropy": ("heads", "random")} if "random" in terms else {}
    squares = {name: np.asarray(values, np.float64) for name, values in terms.items()}
    squares["both"] = squares["attention"] + squares["mlp"]
    middle = middle_half(squares["both"].shape[-1])
    places = {"": slice(None), ", first token": slice(1), ", middle half": middle, ", last token": slice(-1, None)}
    found = {}
    for of, tokens in places.items():
        total = {name: values[..., tokens].sum(-1) for name, values in squares.items()}
        for name, (one, other) in ratios.items():
            found[f"{name}{of}"] = np.exp(np.log(total[one] / total[other]).mean(1))
        found[f"cross term{of}"] = (total["across"] / total["attention"]).mean(1)
    return found


def evidence(
    measured: list[TensorFile], rollouts: list[TensorFile], terms: list[TensorFile], scale: str, steps: list[int]
) -> dict[str, pd.DataFrame]:
    """The table of `checks_directions.COLUMNS` for evidence/: means over the prompts of each document.

    `rollouts` and `terms` are measured apart. `steps` are those after which models trained here are kept: before
    training, early in it, and at its end.
    """
    stages = {f"seed0/step{step}": "early" for step in steps}
    stages |= {f"seed0/step{steps[0]}": "untrained", f"seed0/step{steps[-1]}": "trained"}
    rows = [row for file in [*measured, *rollouts, *terms] for row in _rows(file, scale, stages)]
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
