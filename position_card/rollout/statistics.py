"""This module has distances between profiles, and means with intervals.

A profile is a distribution over n positions on the last axis.

Leading axes broadcast, so one call compares every bootstrap replicate, layer or data set. Distances along the sequence
are shares of its length n - 1, hence within [0, 1].
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit  # scipy.stats takes longer to import than a rollout takes

from position_card.core.runtime import InputError

Array = npt.NDArray[np.float64]

SAME_TOTAL = 1e-5  # relative difference that rounding may leave between the totals of profiles


def wasserstein(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the Wasserstein distance W1 over n - 1 (Appendix C.3), `[..., n]` and `[..., n]` -> `[...]`.

    In one dimension that is the area between the cumulative distributions. Raises InputError where the totals differ.
    """
    p, q = _pair(p, q)
    _require_total(p, q.sum(axis=-1))
    gap = np.cumsum(p, axis=-1) - np.cumsum(q, axis=-1)
    return np.abs(gap[..., :-1]).sum(axis=-1) / _length(gap)


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the share of the mass that has to move, however far, `[..., n]` and `[..., n]` -> `[...]`."""
    p, q = _pair(p, q)
    return np.abs(p - q).sum(axis=-1) / 2


def spearman(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the rank correlation over positions, `[..., n]` and `[..., n]` -> `[...]`; ties share their mean rank.

    A constant profile has no order: NaN, also for n = 1.
    """
    p, q = (_centred_ranks(profile) for profile in _pair(p, q))
    with np.errstate(invalid="ignore"):
        return (p * q).sum(axis=-1) / np.sqrt((p * p).sum(axis=-1) * (q * q).sum(axis=-1))


def mean_position(p: npt.ArrayLike) -> Array:
    """Return the centre of mass of profiles, `[..., n]` -> `[...]`: 0 the first token, 1 the last.

    Raises InputError where a profile does not sum to 1.
    """
    p = np.asarray(p, np.float64)
    _require_total(p, np.ones(1))
    return p @ np.arange(p.shape[-1]) / _length(p)


def bootstrap_weights(prompts: int, replicates: int, seed: int) -> Array:
    """Return the weight of each prompt in each bootstrap replicate, `[replicates, prompts]`, rows summing to 1.

    A replicate draws as many prompts as there are, with replacement, and weighs each by how often it was drawn. So
    `weights @ values` holds the mean of every replicate, and all quantities weighed alike are resampled jointly.
    """
    if prompts < 1:
        raise ValueError(f"prompts = {prompts}: there must be at least 1 to resample")
    if replicates < 1:
        raise ValueError(f"replicates = {replicates}: there must be at least 1")
    counts = np.random.default_rng(seed).multinomial(prompts, np.full(prompts, 1 / prompts), size=replicates)
    return counts / prompts


def resampled_weights(units: npt.ArrayLike, replicates: int, seed: int) -> Array:
    """Weigh observations [N] of these units, such as documents, as they are, then in each resample: [1 + R, N].

    A resample draws all observations of a unit, or none of them, and rows sum to 1.
    """
    names, place = np.unique(np.asarray(units), return_inverse=True)
    replicate_weights = bootstrap_weights(len(names), replicates, seed)[:, place]
    weights = np.vstack([np.ones((1, len(place))), replicate_weights])
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def percentile_interval(replicates: npt.ArrayLike, level: float) -> tuple[Array, Array]:
    """Return bounds with (1 - level) / 2 of the replicates beyond each, `[replicates, ...]` -> two of `[...]`."""
    tail = (1 - _checked_level(level)) / 2
    low, high = np.quantile(np.asarray(replicates, np.float64), [tail, 1 - tail], axis=0)
    return low, high


def mean_and_interval(values: npt.ArrayLike, level: float) -> tuple[Array, Array, Array]:
    """Return the mean of independent observations [observations, ...] and the ends of Student's interval, [...] each.

    One observation has no interval, and none has no mean either: NaN stands for what is missing. Raises ValueError
    where `level` is no share between 0 and 1.
    """
    values = np.asarray(values, np.float64)
    quantile = (1 + _checked_level(level)) / 2
    undefined = np.full(values.shape[1:], np.nan)
    n = len(values)
    mean = values.mean(axis=0) if n else undefined
    half = t_quantile(quantile, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else undefined
    return mean, mean - half, mean + half


def group_means(table: pd.DataFrame, keys: Sequence[str], value: str, level: float) -> pd.DataFrame:
    """Return the mean of the column `value` in each group of rows that are alike in `keys`, with Student's interval.

    The rows of a group are independent observations; those without a value are left out. Columns: `keys`, mean, low,
    high, n (observations). Groups keep the order in which they come first.
    """
    groups = [(key, values.dropna()) for key, values in table.groupby(list(keys), sort=False)[value]]
    rows = [(*key, *map(float, mean_and_interval(values, level)), len(values)) for key, values in groups]
    return pd.DataFrame(rows, columns=[*keys, "mean", "low", "high", "n"])


def t_quantile(share: float, freedom: npt.ArrayLike) -> Array:
    """Return the value that a share of Student's distribution with `freedom` `[...]` degrees lies below, `[...]`."""
    return np.asarray(stdtrit(np.asarray(freedom, np.float64), share))


def _pair(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[Array, Array]:
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    if p.shape[-1:] != q.shape[-1:] or 0 in (p.ndim, p.size):
        raise ValueError(f"p has shape {p.shape} and q has shape {q.shape}: expected the same positions, at least 1")
    return p, q


def _require_total(profiles: Array, target: Array) -> None:
    """Raise InputError where profiles `[..., n]` have another total than `target`, with the first that has."""
    totals, target = np.broadcast_arrays(profiles.sum(axis=-1), target)
    if (wrong := np.abs(totals - target) > SAME_TOTAL * np.abs(target)).any():
        raise InputError(
            f"a profile sums to {totals[wrong][0]:.6g} where {target[wrong][0]:.6g} is expected; divide it by its sum"
        )


def _length(profile: Array) -> int:
    """Return n - 1 for profiles [..., n], by which distances are divided; 1 for a single position, which has none."""
    return max(profile.shape[-1] - 1, 1)


def _centred_ranks(profile: Array) -> Array:
    """Return ranks less their mean, `[..., n]`; NaN throughout a profile that holds one."""
    n = profile.shape[-1]
    ranks = pd.DataFrame(profile.reshape(-1, n)).rank(axis=1).to_numpy(np.float64).reshape(profile.shape)
    return np.where(np.isnan(profile).any(axis=-1, keepdims=True), np.nan, ranks - (n + 1) / 2)


def _checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level = {level}: a level of confidence lies strictly between 0 and 1")
    return level
