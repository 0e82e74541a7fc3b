"""The rollouts that apply to a decoder, beside its measured influence and baselines that know nothing of it.

Of a model with ALiBi, the variants (a), (b), (c) of the paper. Of any other, `content-free`: uniform attention, in the
windows of the model; `logit-by-distance`: the mean logit by distance; `mean-query-key`: the kernel of the mean query
and key before they are turned. Of every model `mean-attention`, where that was kept. Each is taken with every lambda
that was measured; that of the backward pass is our addition, and no forward prediction: it reads the gradient that it
predicts. The measured influence is called `influence` here, where `structural` has the paper's letter d.

Of the distances between profiles, say that a kernel is predicted, never that one rollout predicts influence better: for
that, compare models of several training seeds.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_bias import statistics
from position_bias.attention import content_free_attention
from position_bias.language_models.measured import Measured
from position_bias.rollout import comparison
from position_bias.rollout.comparison import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR, Profile
from position_bias.rollout.kernels import kernel_attention, kernel_last_rows
from position_bias.rollout.last_row import attended_last_rows, last_row
from position_bias.rollout.middle import middle_half

Array = NDArray[np.float64]
Rollout = Callable[[Array], Array]  # lambda [R, L] -> last rows [R, n]

MEASURED, LOSS = "influence", "loss"
QUARTERS = ("first quarter / middle", "last quarter / middle")  # without the first and the last token
BASELINES = ("uniform", "last", "half")  # know nothing of the model, but for its slopes or windows
KERNELS = {"toeplitz": "logit-by-distance", "rotary": "mean-query-key"}  # as they are measured, and as rollouts
DENSE_UP_TO = 1024  # tokens; up to there, one matrix a layer serves all replicates


def compare(
    measured: Measured, replicates: int, level: float, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Lambda by layer, profiles by position, and the statistics of every bootstrap replicate over prompts.

    Prompts are resampled jointly; kernels and mean attention are those of all prompts. Returns tidy tables: (estimator,
    layer, value, low, high), layer 1 the first; and those of `comparison.tabulate`, the second with the trends of
    lambda over depth, the quarters of measured influence, and the loss, in nats a token.
    """
    weights = comparison.prompt_weights(measured.prompts, replicates, seed)
    curves, values = comparison.tabulate(partial(profiles, measured, rollouts(measured)), weights, level)
    trends = comparison.depth_trends(measured.mixing, weights)
    named = {"variant": {INFLUENCE: MEASURED}}
    every = pd.concat([values, _quarters(measured, weights), trends, _loss(measured, weights)], ignore_index=True)
    return _layers(measured, weights, level), curves.replace(named), every.replace(named)


def profiles(measured: Measured, ways: Mapping[str, Rollout], weights: Array) -> Iterator[Profile]:
    """Every profile, measured means taken with each row of `weights` [R, N] over the prompts; (d) comes first.

    `ways` are the rollouts of `measured`.
    """
    n, layers = measured.n, len(measured.windows)
    influence = weights @ measured.influence
    yield Profile(SAME_FOR_EVERY_ESTIMATOR, INFLUENCE, influence / influence.sum(-1, keepdims=True))
    yield Profile(SAME_FOR_EVERY_ESTIMATOR, "uniform", np.full((1, n), 1 / n))
    yield Profile(SAME_FOR_EVERY_ESTIMATOR, "last", np.eye(n)[-1:])
    plainest = next(iter(ways.values()))
    yield Profile(SAME_FOR_EVERY_ESTIMATOR, "half", plainest(np.full((1, layers), 0.5)))
    if measured.slopes is not None:
        yield Profile(SAME_FOR_EVERY_ESTIMATOR, "a", plainest(np.ones((1, layers))))
    for estimator, by_prompt in measured.mixing.items():
        mixings = weights @ by_prompt
        for variant, roll_out in ways.items():
            yield Profile(estimator, variant, roll_out(mixings))
        if measured.slopes is not None and measured.offset is not None:
            offsets = np.tensordot(weights, measured.offset, axes=1)
            both = zip(mixings, offsets, strict=True)
            rows = [last_row(n, mixing, measured.slopes, offset) for mixing, offset in both]
            yield Profile(estimator, "c", np.stack(rows))


def rollouts(measured: Measured) -> dict[str, Rollout]:
    """The rollouts through attention that does not vary with the prompts, by variant; that without content first."""
    if measured.slopes is not None:
        ways = {"b": _through_alibi(measured.n, measured.slopes)}
    else:
        flat = np.zeros((len(measured.windows), 1, measured.n))
        kernels = {"content-free": flat, **{KERNELS[name]: kernel for name, kernel in measured.kernels.items()}}
        ways = {name: _through_kernels(kernel, measured.windows) for name, kernel in kernels.items()}
    if measured.attention is not None:
        ways["mean-attention"] = partial(attended_last_rows, measured.attention)
    return ways


def _through_alibi(n: int, slopes: Array) -> Rollout:
    if n > DENSE_UP_TO:
        return lambda mixings: np.stack([last_row(n, mixing, slopes) for mixing in mixings])
    attention = content_free_attention(n, slopes).mean(0)
    return lambda mixings: attended_last_rows(np.broadcast_to(attention, (mixings.shape[1], n, n)), mixings)


def _through_kernels(kernels: Array, windows: tuple[int | None, ...]) -> Rollout:
    if kernels.shape[2] > DENSE_UP_TO:
        return partial(kernel_last_rows, kernels, windows)
    attention = [kernel_attention(kernel, window) for kernel, window in zip(kernels, windows, strict=True)]
    return partial(attended_last_rows, np.stack(attention))


def quarters(influence: Array) -> dict[str, Array]:
    """Influence [..., n] of an average token of the first and of the last quarter, over that of one in the middle half.

    Without the first and the last token, which stand for themselves.
    """
    between = middle_half(influence.shape[-1])
    tokens = zip(QUARTERS, (slice(1, between.start), slice(between.stop, -1)), strict=True)
    of_middle = comparison.middle(influence)
    return {name: comparison.ratio(influence[..., of].mean(-1), of_middle) for name, of in tokens}


def _quarters(measured: Measured, weights: Mapping[int, Array]) -> pd.DataFrame:
    found = {start: quarters(of_prompts @ measured.influence) for start, of_prompts in weights.items()}
    return pd.concat(_replicates(MEASURED, name, {start: of[name] for start, of in found.items()}) for name in QUARTERS)


def _loss(measured: Measured, weights: Mapping[int, Array]) -> pd.DataFrame:
    return _replicates(LOSS, "mean", {start: of_prompts @ measured.loss for start, of_prompts in weights.items()})


def _replicates(variant: str, statistic: str, values: Mapping[int, Array]) -> pd.DataFrame:
    """A statistic that no rollout has; `values` by the replicate of their first, -1 for all prompts."""
    label = {"estimator": SAME_FOR_EVERY_ESTIMATOR, "variant": variant, "statistic": statistic}
    return pd.concat(
        pd.DataFrame({**label, "replicate": np.arange(start, start + len(found)), "value": found})
        for start, found in values.items()
    )


def _layers(measured: Measured, weights: Mapping[int, Array], level: float) -> pd.DataFrame:
    tables = []
    for estimator, by_prompt in measured.mixing.items():
        point, again = (of_prompts @ by_prompt for of_prompts in weights.values())
        low, high = statistics.percentile_interval(again, level)
        layer = np.arange(1, by_prompt.shape[1] + 1)
        tables.append(
            pd.DataFrame({"estimator": estimator, "layer": layer, "value": point[0], "low": low, "high": high})
        )
    return pd.concat(tables, ignore_index=True)
