"""Worlds made by hand, in which claims are judged: in one all is as the paper says, the others contradict it."""

import numpy as np
import pandas as pd

from position_card.rollout.comparison import DISTANCE, SHAPE
from position_card.rollout.variants import SAME_FOR_EVERY_ESTIMATOR

N, REPLICATES, LEVEL = 64, 60, 0.95
LABELS = {"model": "bloom", "checkpoint": "seed0/step9", "dataset": "text", "n": N, "prompts": 40, "resampled": 30}
ESTIMATORS = ("frobenius", "token")
OF_LAMBDA = ("b", "c", "measured", "lambda")  # variants that depend on the estimator
POSITION = np.linspace(0, 1, N)


def normalised(profile):
    return profile / profile.sum(-1, keepdims=True)


def jittered(profile, seed):
    """All prompts first, then every replicate: 1 % of noise at each position."""
    noise = np.random.default_rng(seed).normal(1, 0.01, (1 + REPLICATES, N))
    noise[0] = 1
    return normalised(profile * noise)


def first_raised(profile, share):
    """Move a share of the whole profile to the first token."""
    return (1 - share) * profile + share * np.eye(N)[0]


def papers_world():
    """Measured influence is a U; less and less of a rollout is on the first token from (a) over (b) to (c)."""
    d = jittered(0.1 + (2 * POSITION - 1) ** 2, seed=0)
    alike = jittered(0.1 + (2 * POSITION - 1) ** 2, seed=1)  # a prediction, not the measurement itself
    return {
        "a": first_raised(alike, 0.95),
        "half": first_raised(alike, 0.15),
        "b": first_raised(alike, 0.1),
        "c": first_raised(alike, 0.04),
        "measured": first_raised(alike, 0.02),
        "d": d,
        "uniform": np.full((1, N), 1 / N),
        "last": np.eye(N)[-1:],
    }


def hump(peak, width, seed):
    return jittered(np.exp(-(((POSITION - peak) / width) ** 2)), seed)


def opposite_world():
    """Influence is a late hump, which attention alone predicts; the residual stream and content lead away from it.

    It has a little on its first token where (a) has nothing, and (c) more there than (b).
    """
    return papers_world() | {
        "d": first_raised(hump(0.75, 0.25, seed=2), 0.009),
        "a": hump(0.80, 0.17, seed=3),
        "half": hump(0.70, 0.17, seed=4),
        "b": hump(0.30, 0.17, seed=5),
        "c": first_raised(hump(0.25, 0.17, seed=6), 0.006),
        "measured": hump(0.20, 0.17, seed=7),
    }


def swapped(one, other):
    world = papers_world()
    return world | {one: world[other], other: world[one]}


def replicates(world, trend=-1.0):
    """The tidy table of statistics that `comparison.compare` would make of these profiles."""
    values = {(variant, name): shape(world[variant]) for variant in world for name, shape in SHAPE.items()}
    others = [variant for variant in world if variant != "d"]
    values |= {(v, name): distance(world[v], world["d"]) for v in others for name, distance in DISTANCE.items()}
    values["lambda", "spearman with depth"] = np.asarray(trend)
    columns = {
        (estimator, variant, name): np.broadcast_to(value, 1 + REPLICATES)
        for (variant, name), value in values.items()
        for estimator in (ESTIMATORS if variant in OF_LAMBDA else (SAME_FOR_EVERY_ESTIMATOR,))
    }
    wide = pd.DataFrame(columns, index=pd.RangeIndex(-1, REPLICATES))
    tidy = wide.rename_axis("replicate").rename_axis(["estimator", "variant", "statistic"], axis=1).unstack()
    return tidy.rename("value").reset_index().assign(**LABELS)
