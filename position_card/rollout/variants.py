"""The profiles that are compared with the measured influence: rollouts of a decoder, and baselines that know little.

Of a model with ALiBi there are the rollouts of Section 6.2 of `structural`: (a) attention only; (b) residual-aware;
(c) residual-aware with content. Of any other, `content-free` is uniform attention, in the windows of the model;
`logit-by-distance` takes the mean logit by distance, and `logit-by-distance-apart` that without the first token;
`mean-query-key` the kernel of the mean query and key before they
are turned. Of every model `mean-attention` takes the measured mean attention, where that was kept. The baselines are
`half`, the fixed mixing of Abnar and Zuidema (2020), and `uniform` and `last`, which know nothing of the model.

Lambda and content are weighted means over prompts, as influence is. So are mean attention and kernels where groups of
documents have means of their own; otherwise these are those of all prompts, whatever the weights.

Of the distances between profiles, say that a kernel is predicted, never that one rollout predicts influence better: for
that, compare models of several training seeds.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from position_card.rollout.attention import Array, shares
from position_card.rollout.kernels import kernel_attention, kernel_last_rows
from position_card.rollout.last_row import attended_last_rows, attended_last_rows_of_means, last_row
from position_card.rollout.measurement import ESTIMATORS, TOEPLITZ_APART, Floats, Measurement

INFLUENCE = "influence"
SAME_FOR_EVERY_ESTIMATOR = "none"  # the estimator of a profile that does not depend on measured lambda
DENSE_UP_TO = 1024  # tokens; up to there, one matrix a layer serves all replicates

Rollout = Callable[[Array, Array], Array]  # lambda [R, L], weights of the prompts [R, N] -> last rows [R, n]


@dataclass(frozen=True)
class ProfileVariant:
    """One profile under one estimator of lambda."""

    estimator: str
    name: str
    profiles: Callable[[Array], Array]  # weights of the prompts [R, N] -> [R or 1, n], rows sum to 1


def variants(
    measurement: Measurement, names: Mapping[str, str], estimators: Collection[str] = ESTIMATORS
) -> Iterator[ProfileVariant]:
    """Yield the measured influence, then each chosen baseline and rollout that applies to the model of a measurement.

    The keys of `names` choose: they are INFLUENCE, which has to be among them, and keys of BASELINES and of ROLLOUTS.
    Their values are the names that the variants get. A rollout comes once for each of the `estimators` of lambda that
    was measured. The `profiles` of a variant are means over prompts with weights that its caller gives, those of
    attention and of kernels only where `groups` were kept. Raises ValueError where influence was not measured, and
    where prompts of one group are weighed differently.
    """
    if measurement.influence is None:
        raise ValueError("influence was not measured: there is nothing to compare rollouts with")
    yield ProfileVariant(SAME_FOR_EVERY_ESTIMATOR, names[INFLUENCE], partial(_mean_influence, measurement.influence))
    for name in names:
        if name in BASELINES and (row := BASELINES[name](measurement)) is not None:
            yield ProfileVariant(SAME_FOR_EVERY_ESTIMATOR, names[name], partial(_always, row))
    rollouts = {names[name]: ROLLOUTS[name](measurement) for name in names if name in ROLLOUTS}
    for estimator, by_prompt in measurement.mixing.items():
        for name, rollout in rollouts.items():
            if rollout is not None and estimator in estimators:
                yield ProfileVariant(estimator, name, partial(_rolled_out, rollout, by_prompt))


def _mean_influence(by_prompt: Floats, weights: Array) -> Array:
    influence = weights @ by_prompt
    return np.asarray(influence / influence.sum(-1, keepdims=True))


def _always(row: Array, _weights: Array) -> Array:
    return row[None]


def _rolled_out(rollout: Rollout, mixing_by_prompt: Floats, weights: Array) -> Array:
    return rollout(np.asarray(weights @ mixing_by_prompt, np.float64), weights)


def _mixed_alike(mixing: float, measurement: Measurement) -> Array:
    """Return the rollout without content with the same residual mixing in every layer, [n]."""
    rollout = _alibi(measurement) or _uniform(measurement)
    assert rollout is not None
    return rollout(np.full((1, measurement.layers), mixing), np.empty(0))[0]


def _attention_only(measurement: Measurement) -> Array | None:
    return None if measurement.slopes is None else _mixed_alike(1.0, measurement)


def _alibi(measurement: Measurement) -> Rollout | None:
    """Return the residual-aware rollout (b); None of a model without ALiBi."""
    slopes, n = measurement.slopes, measurement.n
    if slopes is None:
        return None
    return lambda mixings, _weights: np.stack([last_row(n, mixing, slopes) for mixing in mixings])


def _alibi_with_content(measurement: Measurement) -> Rollout | None:
    """Return the residual-aware rollout with content (c); None of a model without ALiBi or content logits."""
    slopes, n = measurement.slopes, measurement.n
    if slopes is None or measurement.diagonal is None or measurement.below is None:
        return None
    offset = measurement.diagonal.astype(np.float64) - measurement.below  # of the diagonal, by prompt, layer and head

    def rollout(mixings: Array, weights: Array) -> Array:
        pairs = zip(mixings, np.tensordot(weights, offset, axes=1), strict=True)
        return np.stack([last_row(n, mixing, slopes, diagonal) for mixing, diagonal in pairs])

    return rollout


def _uniform(measurement: Measurement) -> Rollout | None:
    """Return the rollout of uniform attention within the windows of a model; None of a model with ALiBi."""
    if measurement.slopes is not None:
        return None
    return _through_kernels(np.zeros((measurement.layers, 1, measurement.n)), measurement.windows)


def _kernel(name: str, measurement: Measurement) -> Rollout | None:
    """Return the rollout of measured kernels of this name; None of a model with ALiBi or without such kernels."""
    if measurement.slopes is not None or name not in measurement.kernels:
        return None
    kernels, groups = measurement.kernels[name].astype(np.float64), measurement.groups
    if groups is None:
        return _through_kernels(kernels, measurement.windows)
    of_groups = measurement.kernels_of_groups[name].astype(np.float64)

    def rollout(mixings: Array, weights: Array) -> Array:
        pairs = zip(mixings, _changes(groups, weights), strict=True)
        rows = [
            kernel_last_rows(kernels + np.tensordot(change, of_groups, 1), measurement.windows, [mixing])
            for mixing, change in pairs
        ]
        return np.concatenate(rows)

    return rollout


def _through_kernels(kernels: Array, windows: tuple[int | None, ...]) -> Rollout:
    """Return the rollout of kernels [L, H, n] in windows [L], by matrices for short prompts."""
    if kernels.shape[2] > DENSE_UP_TO:
        return lambda mixings, _weights: kernel_last_rows(kernels, windows, mixings)
    layers = zip(kernels, windows, strict=True)
    attention = np.stack([kernel_attention(kernel, window) for kernel, window in layers])
    return lambda mixings, _weights: attended_last_rows(attention, mixings)


def _mean_attention(measurement: Measurement) -> Rollout | None:
    """Return the rollout of measured mean attention; None where it was not kept."""
    if measurement.attention is None:
        return None
    mean, of_groups, groups = measurement.attention, measurement.attention_of_groups, measurement.groups
    if groups is None or of_groups is None:
        attention = shares(mean)
        return lambda mixings, _weights: attended_last_rows(attention, mixings)

    def rollout(mixings: Array, weights: Array) -> Array:
        changes = _changes(groups, weights)
        return attended_last_rows_of_means([mean, *of_groups], np.insert(changes, 0, 1, axis=1), mixings)

    return rollout


def _changes(groups: NDArray[np.int64], weights: Array) -> Array:
    """Return what weights of prompts [R, N] give to each group, less its share of the prompts: [R, G], rows sum to 0.

    The mean over all prompts, and these times the means of groups, is the weighted mean; equal weights leave it as it
    is.
    """
    order = np.unique(groups, return_index=True)[1]
    if not np.allclose(weights, weights[:, order][:, groups], rtol=1e-9, atol=0):
        raise ValueError("prompts of one group are weighed differently, but attention is known of whole groups alone")
    sizes = np.bincount(groups)
    return np.asarray(weights[:, order] * sizes - sizes / sizes.sum())


# Each yields None of a model that it does not apply to.
BASELINES: dict[str, Callable[[Measurement], Array | None]] = {
    "uniform": lambda measurement: np.full(measurement.n, 1 / measurement.n),
    "last": lambda measurement: np.eye(1, measurement.n, measurement.n - 1)[0],
    "half": partial(_mixed_alike, 0.5),
    "a": _attention_only,
}
ROLLOUTS: dict[str, Callable[[Measurement], Rollout | None]] = {
    "b": _alibi,
    "c": _alibi_with_content,
    "content-free": _uniform,
    "logit-by-distance": partial(_kernel, "toeplitz"),
    "logit-by-distance-apart": partial(_kernel, TOEPLITZ_APART),
    "mean-query-key": partial(_kernel, "rotary"),
    "mean-attention": _mean_attention,
}
