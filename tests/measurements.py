"""Measurements that are made up, for tests of what is computed from them."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from position_card.rollout.attention import Array, sliding_window_mask
from position_card.rollout.measurement import ESTIMATORS, KERNELS, Measurement

LAYERS, HEADS, PROMPTS = 3, 2, 6
WINDOWS = (None, 4, 1)


def causal(logits: Array, window: int | None = None) -> Array:
    """Softmax of logits [..., n, n] over the tokens that may be read."""
    n = logits.shape[-1]
    weights = np.exp(logits) * sliding_window_mask(n, window or n)
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def labels(n: int) -> dict[str, str | int]:
    """What stands beside each row of a table of comparisons, in the order of its columns."""
    return {
        "model": "bloom",
        "checkpoint": "seed0/step9",
        "dataset": "text",
        "n": n,
        "prompts": PROMPTS,
        "resampled": PROMPTS,
    }


def made(rng: np.random.Generator, *, alibi: bool, n: int = 20, **changed: Any) -> Measurement:
    """A measurement of LAYERS layers of HEADS heads on PROMPTS prompts of n tokens, with everything that there can be.

    A model without ALiBi has WINDOWS and kernels.
    """
    common = Measurement(
        documents=np.arange(PROMPTS),
        windows=(None,) * LAYERS if alibi else WINDOWS,
        mixing={name: rng.uniform(0.1, 0.9, (PROMPTS, LAYERS)) for name in ESTIMATORS},
        influence=rng.uniform(0.1, 1, (PROMPTS, n)),
        loss=rng.uniform(3, 6, PROMPTS),
        by_distance=rng.uniform(0, 1, (LAYERS, n)),
        attention=causal(rng.normal(0, 1, (LAYERS, n, n))),
        kernels={} if alibi else {name: rng.normal(0, 1, (LAYERS, HEADS, n)) for name in KERNELS},
        recency=rng.normal(0, 1, (PROMPTS, LAYERS)),
        gram=rng.normal(0, 1, (LAYERS, n, n)),
    )
    if alibi:
        content = {name: rng.normal(0, 1, (PROMPTS, LAYERS, HEADS)) for name in ("diagonal", "below")}
        logits = rng.normal(0, 1, (LAYERS, HEADS, n, n))
        common = replace(common, slopes=np.array([0.5, 0.02]), content=logits, **content)
    return replace(common, **changed)


def in_groups(rng: np.random.Generator, measurement: Measurement, groups: int = 3) -> Measurement:
    """The same with means of its own for each of some groups of documents, all of which have as many prompts."""
    size = (groups, measurement.layers, measurement.n, measurement.n)
    attention = causal(rng.normal(0, 1, size)) * rng.uniform(0.1, 1, size[:-1])[..., None]  # sinks take the rest
    of_groups = {name: rng.normal(0, 1, (groups, *kernel.shape)) for name, kernel in measurement.kernels.items()}
    return replace(
        measurement,
        groups=np.arange(measurement.prompts) % groups,
        attention=attention.mean(0),
        attention_of_groups=attention,
        kernels={name: kernels.mean(0) for name, kernels in of_groups.items()},
        kernels_of_groups=of_groups,
    )


def file(labels: Mapping[str, Any], **tensors: Any) -> Any:
    """What reads as the file of a measurement with these tensors."""
    return SimpleNamespace(labels=labels, read=lambda *names: {name: tensors[name] for name in names})
