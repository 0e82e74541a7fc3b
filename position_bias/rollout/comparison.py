"""This module takes rollout variants of Section 6.2 of `structural`, and how far each lies from the measured influence.

(a) attention only; (b) residual-aware; (c) residual-aware with content; `half`, the fixed mixing of Abnar and
Zuidema (2020); `measured`, the measured mean attention in place of a model of it; and two null profiles, `uniform`
and `last`, that know nothing of the model. All are compared with (d), the measured influence.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from position_bias import statistics
from position_bias.attention import Array
from position_bias.rollout.last_row import attended_last_rows, last_row
from position_bias.rollout.middle import middle_half
from position_bias.running import runtime
from position_bias.running.artifacts import TensorFile
from position_bias.running.runtime import InputError

INFLUENCE = "d"
SAME_FOR_EVERY_ESTIMATOR = "none"  # the estimator of a profile that does not depend on measured lambda


@dataclass(frozen=True)
class Measured:
    """What a rollout needs of one measurement: N prompts of n tokens, L layers of H heads, all float64."""

    mixing: dict[str, Array]  # estimator -> lambda [N, L]
    offset: Array  # mean diagonal less mean below-diagonal content logit [N, L, H]
    influence: Array  # [N, n]
    slopes: Array  # effective ALiBi slopes [H]
    attention: Array | None  # mean attention [L, n, n], where it was kept

    @property
    def n(self) -> int:
        return self.influence.shape[1]

    @property
    def prompts(self) -> int:
        return self.influence.shape[0]


def tables(
    mixing: TensorFile,
    content: TensorFile,
    attention: TensorFile,
    influence: TensorFile,
    slopes: TensorFile,
    replicates: int,
    level: float,
    seed: int,
) -> dict[str, pd.DataFrame]:
    """Compare the files of one measurement: the tables of `compare` and `summary`, with the labels of the measurement.

    Prompts are resampled alike on one data set at one length. Raises InputError where the model has no ALiBi.
    """
    labels = mixing.labels
    of_heads = alibi_slopes(slopes.read(), labels["model"])
    logits, mean_attention = content.read("diagonal", "below"), attention.read().get("mean")
    measured = Measured(
        mixing={name: values.astype(float) for name, values in mixing.read().items()},
        offset=logits["diagonal"].astype(float) - logits["below"],
        influence=influence.read("influence")["influence"].astype(float),
        slopes=of_heads,
        attention=None if mean_attention is None else mean_attention.astype(float),
    )
    drawn_by = runtime.seed(seed, "bootstrap", labels["dataset"], labels["n"])
    shown, values = compare(measured, replicates, level, drawn_by)
    found = {"profiles": shown, "statistics": summary(values, level), "replicates": values}
    return {name: table.assign(**labels, prompts=measured.prompts) for name, table in found.items()}


def alibi_slopes(measured: Mapping[str, Array], model: str) -> Array:
    """The slopes among what was measured of `model`. Raises InputError where it has none: it knows no ALiBi."""
    if "slopes" not in measured:
        raise InputError(
            f"model {model} has no ALiBi, which rollouts (a) to (c) are about: they do not apply to it; "
            "name it in layernorm.pretrained alone, not in measure.models"
        )
    return measured["slopes"]


@dataclass(frozen=True)
class Profile:
    """One variant under one estimator of lambda, for R weightings of the prompts; [1, n] where they do not matter."""

    estimator: str
    variant: str
    values: Array  # [R or 1, n], rows sum to 1


def profiles(measured: Measured, weights: Array) -> Iterator[Profile]:
    """Make every variant, measured means taken with each row of `weights` [R, N] over the prompts; (d) comes first.

    The mean attention is kept over all prompts only, so that `measured` varies through lambda alone.
    """
    n, layers = measured.n, measured.offset.shape[1]
    influence = weights @ measured.influence
    yield Profile(SAME_FOR_EVERY_ESTIMATOR, INFLUENCE, influence / influence.sum(-1, keepdims=True))

    for variant, mixing in {"a": 1.0, "half": 0.5}.items():
        fixed = last_row(n, np.full(layers, mixing), measured.slopes)
        yield Profile(SAME_FOR_EVERY_ESTIMATOR, variant, fixed[None])
    yield Profile(SAME_FOR_EVERY_ESTIMATOR, "uniform", np.full((1, n), 1 / n))
    yield Profile(SAME_FOR_EVERY_ESTIMATOR, "last", np.eye(n)[-1:])

    offsets = np.tensordot(weights, measured.offset, axes=1)
    for estimator, mixing_by_prompt in measured.mixing.items():
        mixings = weights @ mixing_by_prompt
        yield Profile(estimator, "b", np.stack([last_row(n, mixing, measured.slopes) for mixing in mixings]))
        with_content = [
            last_row(n, mixing, measured.slopes, offset) for mixing, offset in zip(mixings, offsets, strict=True)
        ]
        yield Profile(estimator, "c", np.stack(with_content))
        if measured.attention is not None:
            yield Profile(estimator, "measured", attended_last_rows(measured.attention, mixings))


def middle(profile: Array) -> Array:
    """Mean of the middle half of the positions, [..., n] -> [...]."""
    return np.asarray(profile[..., middle_half(profile.shape[-1])].mean(-1))


def argmin_position(profile: Array) -> Array:
    """Return where the profile is lowest, as a share of n - 1."""
    return np.asarray(profile.argmin(-1) / (profile.shape[-1] - 1))


def ratio(part: Array, whole: Array) -> Array:
    """Return part / whole, NaN where the whole is 0 (the null profile `last` has no middle)."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def first_over_predicted_minimum(profile: Array, influence: Array) -> Array:
    """Divide influence of the first token by that of the position where `profile` is lowest.

    Above 1, the influence falls and rises as predicted. Dividing by its own minimum instead would exceed 1 by chance.
    """
    lowest = np.broadcast_to(profile.argmin(-1)[..., None], (*influence.shape[:-1], 1))
    return ratio(influence[..., 0], np.take_along_axis(influence, lowest, -1)[..., 0])


# What is said of one profile, and of a profile against the measured influence.
SHAPE: dict[str, Callable[[Array], Array]] = {
    "first": lambda p: p[..., 0],
    "last": lambda p: p[..., -1],
    "first / middle": lambda p: ratio(p[..., 0], middle(p)),
    "last / middle": lambda p: ratio(p[..., -1], middle(p)),
    "first / minimum": lambda p: ratio(p[..., 0], p.min(-1)),
    "argmin": argmin_position,
    "mean position": statistics.mean_position,
}
DISTANCE: dict[str, Callable[[Array, Array], Array]] = {
    "wasserstein": statistics.wasserstein,
    "spearman": statistics.spearman,
    "total variation": statistics.total_variation,
    "argmin distance": lambda p, d: np.abs(argmin_position(p) - argmin_position(d)),
    "influence, first / predicted minimum": first_over_predicted_minimum,
}


def compare(measured: Measured, replicates: int, level: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return profiles with intervals, and the statistics of each for all prompts and for every bootstrap replicate.

    Prompts are resampled jointly: one resample gives lambda, content and influence together. Returns the two tables of
    `tabulate`, the second with the trend of lambda over depth (Section 6.1) besides.
    """
    weights = prompt_weights(measured.prompts, replicates, seed)
    curves, values = tabulate(partial(profiles, measured), weights, level)
    return curves, pd.concat([values, depth_trends(measured.mixing, weights)], ignore_index=True)


def prompt_weights(prompts: int, replicates: int, seed: int) -> dict[int, Array]:
    """Weigh prompts [R, N] by the number of the first replicate: -1 all prompts as they are, 0 the resampled."""
    everything = np.full((1, prompts), 1 / prompts)
    return {-1: everything, 0: statistics.bootstrap_weights(prompts, replicates, seed)}


def tabulate(
    profiles: Callable[[Array], Iterator[Profile]], weights: Mapping[int, Array], level: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What `profiles` yields for each row of `weights` (`prompt_weights`), (d) first, as two tidy tables.

    Profiles with intervals: (estimator, variant, position, value, low, high), position 0 the first token. Statistics of
    each: (estimator, variant, statistic, replicate, value), replicate -1 for all prompts as they are.
    """
    curves, values = [], []
    influence: dict[int, Array] = {}
    for point, again in zip(*(profiles(of_prompts) for of_prompts in weights.values()), strict=True):
        low, high = statistics.percentile_interval(again.values, level)
        curve = {"position": np.arange(point.values.shape[1]), "value": point.values[0], "low": low, "high": high}
        curves.append(_labelled(curve, point))
        for first_replicate, profile in zip(weights, (point, again), strict=True):
            reference = influence.setdefault(first_replicate, profile.values)  # (d) comes first
            for name, value in _statistics(profile, reference).items():
                replicate = np.arange(first_replicate, first_replicate + len(reference))
                every = np.broadcast_to(value, len(reference))
                values.append(_labelled({"statistic": name, "replicate": replicate, "value": every}, profile))
    return pd.concat(curves, ignore_index=True), pd.concat(values, ignore_index=True)


def summary(values: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return point value and percentile interval of every statistic in the second table of `compare`."""
    keys = ["estimator", "variant", "statistic"]
    wide = values.pivot(index="replicate", columns=keys, values="value")
    low, high = statistics.percentile_interval(wide[wide.index >= 0], level)
    return pd.DataFrame({"value": wide.loc[-1], "low": low, "high": high}).reset_index()


def _statistics(profile: Profile, influence: Array) -> dict[str, Array]:
    shape = {name: of(profile.values) for name, of in SHAPE.items()}
    if profile.variant == INFLUENCE:
        return shape
    return shape | {name: between(profile.values, influence) for name, between in DISTANCE.items()}


def depth_trends(mixing: Mapping[str, Array], weights: Mapping[int, Array]) -> pd.DataFrame:
    """Return Spearman's correlation of lambda with depth (Section 6.1): -1 where attention adds less layer by layer.

    `mixing` holds lambda [N, L] of each estimator; as the second table of `tabulate`.
    """
    trends = []
    for first_replicate, of_prompts in weights.items():
        for estimator, mixing_by_prompt in mixing.items():
            mixings = of_prompts @ mixing_by_prompt
            trend = statistics.spearman(mixings, np.arange(mixings.shape[1], dtype=float))
            replicate = np.arange(first_replicate, first_replicate + len(of_prompts))
            label = {"estimator": estimator, "variant": "lambda", "statistic": "spearman with depth"}
            trends.append(pd.DataFrame({**label, "replicate": replicate, "value": trend}))
    return pd.concat(trends)


def _labelled(columns: Mapping[str, object], profile: Profile) -> pd.DataFrame:
    return pd.DataFrame({"estimator": profile.estimator, "variant": profile.variant, **columns})
