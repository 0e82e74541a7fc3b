"""How far each variant of `variants` lies from the measured influence, and what shape it has, with intervals.

Prompts are resampled. `structural` has its names here: (d) is the measured influence, and `measured` the rollout of
the measured mean attention.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_card.core import artifacts, runtime
from position_card.core.runtime import InputError
from position_card.rollout import measurement, statistics
from position_card.rollout.attention import Array
from position_card.rollout.measurement import FORWARD, Floats, Measurement
from position_card.rollout.parts import middle_half, ratio
from position_card.rollout.variants import ProfileVariant, variants

INFLUENCE = "d"
VARIANT_NAMES = {
    "influence": INFLUENCE,
    "a": "a",
    "half": "half",
    "uniform": "uniform",
    "last": "last",
    "b": "b",
    "c": "c",
}
VARIANT_NAMES |= {"mean-attention": "measured"}

Columns: TypeAlias = Mapping[str, str | NDArray[Any]]


def comparison_tables(file: Path, replicates: int, level: float, seed: int) -> dict[str, pd.DataFrame]:
    """Compare the file of one measurement: the tables of `compare` and `summary`, with the labels of the measurement.

    Documents are resampled alike on one data set at one length; `resampled` counts them. Raises InputError where the
    model has no ALiBi.
    """
    labels = artifacts.read_labels(file)
    measurement_of_file = measurement.read(file)
    if measurement_of_file.slopes is None:
        raise InputError(
            f"model {labels['model']} has no ALiBi, which rollouts (a) to (c) are about: they do not apply to it; "
            "name it in layernorm.pretrained alone, not in measure.models"
        )
    bootstrap_seed = runtime.seed(seed, "bootstrap", labels["dataset"], labels["n"])
    profiles, values = compare(measurement_of_file, replicates, level, bootstrap_seed)
    tables = {"profiles": profiles, "statistics": summary(values, level), "replicates": values}
    columns = {name: labels[name] for name in ("model", "checkpoint", "dataset", "n", "prompts")}
    columns["resampled"] = len(np.unique(measurement_of_file.documents))
    return {name: table.assign(**columns) for name, table in tables.items()}


def middle(profile: Array) -> Array:
    """Return the mean of the middle half of the positions, [..., n] -> [...]."""
    return np.asarray(profile[..., middle_half(profile.shape[-1])].mean(-1))


def argmin_position(profile: Array) -> Array:
    """Return where the profile is lowest, as a share of n - 1."""
    return np.asarray(profile.argmin(-1) / (profile.shape[-1] - 1))


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


def compare(measurement: Measurement, replicates: int, level: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return profiles with intervals, and the statistics of each for all prompts and for every bootstrap replicate.

    Documents are resampled, each with all of its prompts, since prompts of one document are alike. One resample gives
    lambda, content and influence together. Returns the two tables of `tabulate`, the second with the trend of lambda
    over depth (Section 6.1) besides.
    """
    weights = prompt_weights(measurement.documents, replicates, seed)
    curves, values = tabulate(variants(measurement, VARIANT_NAMES, FORWARD), weights, level)
    forward = {estimator: measurement.mixing[estimator] for estimator in FORWARD}
    return curves, pd.concat([values, depth_trends(forward, weights)], ignore_index=True)


def prompt_weights(units: NDArray[np.int64], replicates: int, seed: int) -> dict[int, Array]:
    """Weigh prompts of units [N] by the number of the first replicate: -1 as they are [1, N], 0 resamples [R, N]."""
    weights = statistics.resampled_weights(units, replicates, seed)
    return {-1: weights[:1], 0: weights[1:]}


def tabulate(
    variants: Iterable[ProfileVariant],
    weights: Mapping[int, Array],
    level: float,
    shape: Mapping[str, Callable[[Array], Array]] = SHAPE,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tabulate `variants`, measured influence first, for each row of `weights` (`prompt_weights`), as two tidy tables.

    Profiles with intervals: (estimator, variant, position, value, low, high), position 0 the first token. Statistics of
    each: (estimator, variant, statistic, replicate, value), replicate -1 for all prompts as they are. The `shape` has
    what is said of a profile by itself, [R, n] -> [R].
    """
    curves, values = [], []
    influence: dict[int, Array] = {}
    for variant in variants:
        point, resampled = (variant.profiles(of_prompts) for of_prompts in weights.values())
        low, high = statistics.percentile_interval(resampled, level)
        curve = {"position": np.arange(point.shape[1]), "value": point[0], "low": low, "high": high}
        curves.append(_rows(curve, variant))
        for first_replicate, profiles in zip(weights, (point, resampled), strict=True):
            reference = influence.get(first_replicate)
            for name, value in _statistics(profiles, reference, shape).items():
                replicate = np.arange(first_replicate, first_replicate + len(weights[first_replicate]))
                values_by_replicate = np.broadcast_to(value, len(replicate))
                values.append(_rows({"statistic": name, "replicate": replicate, "value": values_by_replicate}, variant))
            influence.setdefault(first_replicate, profiles)
    return _table(curves), _table(values)


def summary(values: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return point value and percentile interval of every statistic in the second table of `compare`."""
    keys = ["estimator", "variant", "statistic"]
    wide = values.pivot(index="replicate", columns=keys, values="value")
    low, high = statistics.percentile_interval(wide[wide.index >= 0], level)
    return pd.DataFrame({"value": wide.loc[-1], "low": low, "high": high}).reset_index()


def _statistics(
    profiles: Array, influence: Array | None, shape: Mapping[str, Callable[[Array], Array]]
) -> dict[str, Array]:
    """Return statistics of profiles [R or 1, n] by name, and their distances to the influence [R, n], unless None."""
    values = {name: shape_of(profiles) for name, shape_of in shape.items()}
    if influence is None:
        return values
    return values | {name: distance_between(profiles, influence) for name, distance_between in DISTANCE.items()}


def depth_trends(mixing: Mapping[str, Floats], weights: Mapping[int, Array]) -> pd.DataFrame:
    """Return Spearman's correlation of lambda with depth (Section 6.1): -1 where attention adds less layer by layer.

    `mixing` holds lambda [N, L] of each estimator; as the second table of `tabulate`.
    """
    trends = []
    for first_replicate, of_prompts in weights.items():
        for estimator, mixing_by_prompt in mixing.items():
            mixings = np.asarray(of_prompts @ mixing_by_prompt, np.float64)
            trend = statistics.spearman(mixings, np.arange(mixings.shape[1], dtype=float))
            replicate = np.arange(first_replicate, first_replicate + len(of_prompts))
            label = {"estimator": estimator, "variant": "lambda", "statistic": "spearman with depth"}
            trends.append(pd.DataFrame({**label, "replicate": replicate, "value": trend}))
    return pd.concat(trends)


def _rows(columns: Columns, variant: ProfileVariant) -> Columns:
    """Return columns of equal lengths, those of a variant's labels first; a text stands in every row."""
    return {"estimator": variant.estimator, "variant": variant.name, **columns}


def _table(parts: Sequence[Columns]) -> pd.DataFrame:
    """Join rows once: a table of each part would take a millisecond, and there are hundreds."""
    part_of_row = np.repeat(np.arange(len(parts)), [len(part["value"]) for part in parts])
    columns: dict[str, Any] = {}
    for name, first in parts[0].items():
        joined: list[Any] = [part[name] for part in parts]
        columns[name] = pd.Series(joined).take(part_of_row).array if isinstance(first, str) else np.concatenate(joined)
    return pd.DataFrame(columns)
