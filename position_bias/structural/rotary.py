"""This module tells what rollouts predict of decoders with rotary positions, which the paper leaves open (Section 7).

Without ALiBi there is no content-free attention to start from, but for uniform rows. Two kernels stand in for it, each
a logit that depends on the distance alone: `toeplitz`, fitted to the mean logits, and `rotary`, which knows only the
mean query and the mean key before they are turned. Three questions are asked of them: does `rotary` predict the fitted
kernel, are the rows of a kernel near those of mean attention, and is its rollout near the measured influence?
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias import statistics
from position_bias.rollout import measurement
from position_bias.rollout.kernels import Kernel, agreement, kernel_attention
from position_bias.rollout.measurement import Measurement
from position_bias.rollout.variants import INFLUENCE, variants
from position_bias.structural import tables

CONTENT_FREE = "content-free"  # uniform rows, in the windows of the model where it has them
R_SQUARED, ROWS, DISTANCE = "R^2 of the kernel", "total variation of rows", "W to influence"
NONE = "none"  # lambda of a profile that has none
CALLED = {  # the variants that are compared with influence, by the kernel that they roll out
    INFLUENCE: INFLUENCE,
    "content-free": CONTENT_FREE,
    "logit-by-distance": "toeplitz",
    "mean-query-key": "rotary",
    "mean-attention": "measured",
    "uniform": "uniform",
    "last": "last",
}
ALL = 0  # layer of a value that speaks of all of them
COLUMNS = ("quantity", "kernel", "mixing", "layer", "value")


def of_checkpoint(measured: Path, model: str, checkpoint: str) -> pd.DataFrame:
    """What is `described` of what was measured of a checkpoint, with columns model, seed, step."""
    result = measurement.read(measured)
    seed = int(tables.training(checkpoint).removeprefix("seed"))
    return described(result).assign(model=model, seed=seed, step=tables.step(checkpoint))


def evidence(rotary: pd.DataFrame, losses: pd.DataFrame, runs: pd.DataFrame, scale: str) -> dict[str, pd.DataFrame]:
    """The tables of checkpoints, losses and runs of long trainings, for evidence/."""
    kept = {"rotary": rotary, "losses": losses, "runs": runs}
    return {name: table.round({"value": 7, "loss": 6}).assign(scale=scale) for name, table in kept.items()}


def described(measured: Measurement) -> pd.DataFrame:
    """Return what the kernels of a rotary decoder predict, as a tidy table with `COLUMNS`.

    `R_SQUARED` is that of the kernel `rotary` against `toeplitz` at distances from 1 on, the mean over heads, by layer.
    `ROWS` is the total variation between a row of the mean attention and that of the heads with the kernel, the mean
    over rows from the second on, by layer. `DISTANCE` is W1 / (n - 1) between the mean measured influence and a
    prediction. This is the last row of the rollout, through a kernel with a measured lambda (`mixing`) or through
    `measured` attention, or a profile that knows nothing of the model.

    Raises ValueError where the measurement has no mean attention or lacks a kernel.
    """
    if measured.attention is None or not {"toeplitz", "rotary"} <= set(measured.kernels):
        raise ValueError("mean attention and the kernels toeplitz and rotary are needed; measure a rotary decoder")
    layers, heads, n = measured.kernels["rotary"].shape
    kernels: dict[str, Kernel] = {CONTENT_FREE: np.zeros((layers, heads, n)), **measured.kernels}
    rows = [*_agreements(kernels, measured.windows), *_rows_apart(kernels, measured), *_distances(measured)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


Value = tuple[str, str, str, int, float]


def _agreements(kernels: Mapping[str, Kernel], windows: tuple[int | None, ...]) -> Iterator[Value]:
    both = zip(kernels["toeplitz"], kernels["rotary"], windows, strict=True)
    for layer, (fitted, predicted, window) in enumerate(both, 1):
        yield R_SQUARED, "rotary", NONE, layer, float(np.nanmean(agreement(fitted, predicted, window)))


def _rows_apart(kernels: Mapping[str, Kernel], measured: Measurement) -> Iterator[Value]:
    assert measured.attention is not None
    for name, of_layers in kernels.items():
        each = zip(of_layers, measured.windows, measured.attention, strict=True)
        for layer, (kernel, window, attention) in enumerate(each, 1):
            apart = statistics.total_variation(kernel_attention(kernel, window)[1:], attention[1:])
            yield ROWS, name, NONE, layer, float(apart.mean())


def _distances(measured: Measurement) -> Iterator[Value]:
    by_prompt = measured.mixing["frobenius"]
    with_half = replace(measured, mixing={**measured.mixing, "half": np.full_like(by_prompt, 0.5)})
    influence, *others = variants(with_half, CALLED, with_half.mixing)
    everything = np.full((1, measured.prompts), 1 / measured.prompts)
    for variant in others:
        apart = statistics.wasserstein(variant.profiles(everything), influence.profiles(everything))
        yield DISTANCE, variant.name, variant.estimator, ALL, float(apart.item())
