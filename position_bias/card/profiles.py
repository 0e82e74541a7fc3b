"""The tables of a card: lambda by layer, profiles by position, their statistics, and attention by distance.

All rollouts and baselines that apply to the decoder are taken, with every lambda that was measured; that of the
backward pass is our addition, and no forward prediction: it reads the gradient that it predicts.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from position_bias import statistics
from position_bias.attention import Array
from position_bias.card.measured import Recalled, Replaced
from position_bias.rollout import comparison, directions
from position_bias.rollout.measurement import Measurement
from position_bias.rollout.middle import middle_half
from position_bias.rollout.places import above_prior, ends_over_middle, is_able
from position_bias.rollout.variants import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR, variants

LOSS = "loss"
QUARTERS = ("first quarter / middle", "last quarter / middle")  # without the first and the last token
REPLACEMENT, QUOTIENT = "replacement", "influence / replacement"  # variants of which the ends are told
ENDS = ("first / middle", "last / middle")
FIRST_WORD = "first word / middle"  # where the tokenizer puts another token first
SIGNS, SAME, SQUARES = "signs", "same", "squares"  # changes of directions, and how influence adds up
RECALL, ACCURACY, EIGHTHS = "recall", "accuracy", ("first eighth / middle", "last eighth / middle")
BASELINES = ("uniform", "last", "half")  # know nothing of the model, but for its slopes or windows
SHOWN = (INFLUENCE, *BASELINES, "a", "b", "content-free", "logit-by-distance", "mean-query-key", "mean-attention", "c")


class Compared(NamedTuple):
    """What a card says of the prompts of one length, as tidy tables."""

    layers: pd.DataFrame  # estimator, layer from 1 on, value, low, high: lambda
    profiles: pd.DataFrame  # the first table of `comparison.tabulate`
    values: pd.DataFrame  # its second, with the trends of lambda over depth, the quarters of influence, and the loss


def compare(measured: Measurement, replicates: int, level: float, seed: int) -> Compared:
    """Lambda by layer, profiles by position, and the statistics of every bootstrap replicate over prompts.

    Prompts are resampled jointly; kernels and mean attention are those of all prompts. The loss is in nats a token.
    """
    weights = comparison.prompt_weights(measured.prompts, replicates, seed)
    curves, values = comparison.tabulate(variants(measured, {name: name for name in SHOWN}), weights, level)
    trends = comparison.depth_trends(measured.mixing, weights)
    every = pd.concat([values, _quarters(measured, weights), trends, _loss(measured, weights)], ignore_index=True)
    return Compared(_layers(measured, weights, level), curves, every)


def compare_replaced(
    replaced: Replaced, measured: Measurement, before: int, replicates: int, level: float, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What replacing a token changes, by position; and how much its ends weigh, beside what gradients say of them.

    The first table is tidy (position, value, low, high): the mean over prompts of the total variation. The second has
    rows like the third of `compare`: the first and the last token over the mean of the positions in the middle half,
    and the same ratio of influence at the same positions of the same prompts, divided by it (QUOTIENT). Where the
    tokenizer puts tokens `before` the text, its first word is compared as well.
    """
    assert measured.influence is not None
    prompts = len(replaced.effects)
    weights = comparison.prompt_weights(prompts, replicates, seed)
    point, again = (of_prompts @ replaced.effects for of_prompts in weights.values())
    low, high = statistics.percentile_interval(again, level)
    table = pd.DataFrame({"position": replaced.positions, "value": point[0], "low": low, "high": high})
    rows = []
    of_middle = middle_half(replaced.n)
    inside = [of_middle.start <= position < of_middle.stop for position in replaced.positions]
    influence = measured.influence[:prompts, list(replaced.positions)]
    compared = dict(zip(ENDS, (0, -1), strict=True))
    if before:
        compared[FIRST_WORD] = replaced.positions.index(before)
    for start, of_prompts in weights.items():
        effect, gradient = of_prompts @ replaced.effects, of_prompts @ influence
        for name, end in compared.items():
            ratio, by_gradients = (
                comparison.ratio(values[:, end], values[:, inside].mean(-1)) for values in (effect, gradient)
            )
            rows.append(_replicates(REPLACEMENT, name, {start: ratio}))
            rows.append(_replicates(QUOTIENT, name, {start: comparison.ratio(by_gradients, ratio)}))
    return table, pd.concat(rows, ignore_index=True)


def compare_changed(changed: Measurement, replicates: int, seed: int) -> pd.DataFrame:
    """How far a prompt's influence moves where directions of gradients are changed; rows as the second above.

    Its total variation with random SIGNS, with the SAME direction for all tokens, and to the mean of the other prompts;
    and how much of the way from sums to squares influence is: what one direction moves over what both changes move.
    """
    apart = directions.distances(changed)
    rows = []
    for start, of_prompts in comparison.prompt_weights(changed.prompts, replicates, seed).items():
        moved = {name: of_prompts @ apart[name] for name in (SIGNS, SAME, directions.NULL)}
        rows += [_replicates(name, "total variation", {start: values}) for name, values in moved.items()]
        rows.append(_replicates(SQUARES, "share", {start: comparison.ratio(moved[SAME], moved[SIGNS] + moved[SAME])}))
    return pd.concat(rows, ignore_index=True)


def compare_recalled(recalled: Recalled, replicates: int, level: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What is recalled by place, and of both ends over the middle half; contexts are resampled.

    The first table has the columns place, probability and accuracy with their bounds, prior and chance. The second has
    rows like the third of `compare`: the mean accuracy, and the EIGHTHS by the probability above the prior. These are
    NaN where `is_able` says that the accuracy is too near to chance.
    """
    found = recalled.found
    weights = comparison.prompt_weights(recalled.contexts, replicates, seed)
    columns: dict[str, Any] = {"place": np.arange(found.correct.shape[1])}
    for name, of_context in (("probability", found.probability), (ACCURACY, found.correct)):
        point, again = (of_contexts @ of_context for of_contexts in weights.values())
        low, high = statistics.percentile_interval(again, level)
        columns |= {name: point[0], f"{name} low": low, f"{name} high": high}
    table = pd.DataFrame({**columns, "prior": found.prior.mean(0), "chance": 1 / recalled.words})
    known = 1.0 if is_able(float(found.correct.mean()), recalled.words) else np.nan
    rows = []
    for start, of_contexts in weights.items():
        rows.append(_replicates(RECALL, ACCURACY, {start: of_contexts @ found.correct.mean(-1)}))
        for name, over in ends_over_middle(of_contexts @ above_prior(found)).items():
            rows.append(_replicates(RECALL, name, {start: known * over}))
    return table, pd.concat(rows, ignore_index=True)


def attention_table(measured: Measurement) -> pd.DataFrame:
    """Mean attention by distance as a tidy table: (layer, distance, value, n), layer 1 the first."""
    layers, n = measured.by_distance.shape
    layer, distance = np.divmod(np.arange(layers * n), n)
    value = measured.by_distance.astype(float).ravel()
    return pd.DataFrame({"layer": layer + 1, "distance": distance, "value": value, "n": n})


def quarters(influence: Array) -> dict[str, Array]:
    """Influence [..., n] of an average token of the first and of the last quarter, over that of one in the middle half.

    Without the first and the last token, which stand for themselves.
    """
    between = middle_half(influence.shape[-1])
    tokens = zip(QUARTERS, (slice(1, between.start), slice(between.stop, -1)), strict=True)
    of_middle = comparison.middle(influence)
    return {name: comparison.ratio(influence[..., of].mean(-1), of_middle) for name, of in tokens}


def _quarters(measured: Measurement, weights: Mapping[int, Array]) -> pd.DataFrame:
    assert measured.influence is not None
    found = {start: quarters(of_prompts @ measured.influence) for start, of_prompts in weights.items()}
    return pd.concat(
        _replicates(INFLUENCE, name, {start: of[name] for start, of in found.items()}) for name in QUARTERS
    )


def _loss(measured: Measurement, weights: Mapping[int, Array]) -> pd.DataFrame:
    return _replicates(LOSS, "mean", {start: of_prompts @ measured.loss for start, of_prompts in weights.items()})


def _replicates(variant: str, statistic: str, values: Mapping[int, Array]) -> pd.DataFrame:
    """A statistic that no rollout has; `values` by the replicate of their first, -1 for all prompts."""
    label = {"estimator": SAME_FOR_EVERY_ESTIMATOR, "variant": variant, "statistic": statistic}
    return pd.concat(
        pd.DataFrame({**label, "replicate": np.arange(start, start + len(found)), "value": found})
        for start, found in values.items()
    )


def _layers(measured: Measurement, weights: Mapping[int, Array], level: float) -> pd.DataFrame:
    tables = []
    for estimator, by_prompt in measured.mixing.items():
        point, again = (of_prompts @ by_prompt for of_prompts in weights.values())
        low, high = statistics.percentile_interval(again, level)
        layer = np.arange(1, by_prompt.shape[1] + 1)
        tables.append(
            pd.DataFrame({"estimator": estimator, "layer": layer, "value": point[0], "low": low, "high": high})
        )
    return pd.concat(tables, ignore_index=True)
