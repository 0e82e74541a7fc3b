"""The tables of a card: lambda by layer, profiles by position, their statistics, and attention by distance.

What an end has over the middle half (ENDS) is one statistic: of influence and replacement the geometric mean over
documents (`logarithms_by_unit`), and of answers that over records (`record_statistics`). Recall above its prior may be
0 or less, which has no logarithm, so there it is a ratio of means.

All rollouts and baselines that apply to the decoder are taken, with every lambda that was measured; that of the
backward pass is our addition, and no forward prediction: it reads the gradient that it predicts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_card.card.measurements import RecallResult, ReplacementEffects
from position_card.rollout import comparison
from position_card.rollout.attention import Array
from position_card.rollout.measurement import Measurement
from position_card.rollout.parts import above_prior, ends_over_middle, is_able, logarithms_over_middle, middle_half
from position_card.rollout.passages import places
from position_card.rollout.statistics import percentile_interval, resampled_weights
from position_card.rollout.variants import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR, variants

LOSS = "loss"
NO_TOKEN = "to no token"  # the column of the share of attention that goes to none
QUARTERS = ("first quarter / middle", "last quarter / middle")  # without the first and the last token
REPLACEMENT, QUOTIENT = "replacement", "influence / replacement"  # variants of which the ends are told
ENDS = ("first / middle", "last / middle")
FIRST_WORD = "first word / middle"  # where the tokenizer puts another token first
QUESTIONS = "questions"  # the built-in ones
RECALL, ACCURACY, EIGHTHS = "recall", "accuracy", ("first eighth / middle", "last eighth / middle")
LEAST = 8  # documents that intervals are over; where there are fewer, they are over prompts
BASELINES = ("uniform", "last", "half")  # know nothing of the model, but for its slopes or windows
PROFILE_NAMES = (
    INFLUENCE,
    *BASELINES,
    "a",
    "b",
    "content-free",
    "logit-by-distance",
    "mean-query-key",
    "mean-attention",
    "c",
)


@dataclass(frozen=True)
class Interval:
    """A value with the bounds of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Write all three, with the decimals that give three digits of the value, or of the width if that is larger."""
        largest = max(abs(self.value), self.high - self.low)
        decimals = max(0, 2 - int(np.floor(np.log10(largest)))) if largest else 2
        return f"{self.value:.{decimals}f} [{self.low:.{decimals}f}, {self.high:.{decimals}f}]"

    def side(self, number: float) -> int:
        """Return +1 where the whole interval is above a number, -1 where it is below, else 0."""
        return int(self.low > number) - int(self.high < number)


@dataclass(frozen=True)
class CardPart:
    """What a card says of the prompts of one length, or of the contexts of recall, as tidy tables."""

    n: int  # tokens of a prompt, or words of a context
    prompts: int
    level: float  # of the intervals
    values: pd.DataFrame  # rows like those of the second table of `comparison.tabulate`
    tables: Mapping[str, pd.DataFrame]  # as they are called in the folder of a card

    @cached_property
    def statistics(self) -> pd.DataFrame:
        """Every statistic of `values` with the bounds of its interval."""
        return comparison.summary(self.values, self.level)

    @cached_property
    def intervals(self) -> dict[tuple[str, str, str], Interval]:
        """The same by estimator, variant and statistic."""
        table = self.statistics.set_index(["estimator", "variant", "statistic"])
        rows = table[["value", "low", "high"]].to_numpy()
        return {key: Interval(*map(float, row)) for key, row in zip(table.index, rows, strict=True)}

    def interval(self, variant: str, statistic: str, estimator: str = SAME_FOR_EVERY_ESTIMATOR) -> Interval:
        """One statistic."""
        return self.intervals[estimator, variant, statistic]

    def interval_of(self, values: pd.Series) -> Interval:
        """Return the interval of values by replicate, where the value at index -1 is that of all prompts."""
        low, high = percentile_interval(values[values.index >= 0], self.level)
        return Interval(float(values.loc[-1]), float(low), float(high))


def units(documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what is resampled of prompts [N]: their documents, or themselves where documents are fewer than LEAST."""
    return documents if len(np.unique(documents)) >= LEAST else np.arange(len(documents))


def influence_part(measurement: Measurement, replicates: int, level: float, seed: int) -> CardPart:
    """Return lambda by layer, profiles by position, and the statistics of every bootstrap replicate over `units`.

    All are resampled jointly; kernels and mean attention are those of all prompts. The loss is in nats a token. Beside
    lambda of each layer is the share of its attention that goes to no token, 0 where weights add to 1.
    """
    assert measurement.influence is not None
    weights = comparison.prompt_weights(units(measurement.documents), replicates, seed)
    profiles = variants(measurement, {name: name for name in PROFILE_NAMES})
    curves, values = comparison.tabulate(profiles, weights, level, SHAPE)
    of_profile = (values["variant"] == INFLUENCE) & values["statistic"].isin(ENDS)
    over_middle = _rows(INFLUENCE, influence_over_middle(measurement, replicates, seed))
    of_loss = {"mean": _means(weights, measurement.loss)}
    trends = comparison.depth_trends(measurement.mixing, weights)
    all_values = pd.concat([values[~of_profile], over_middle, trends, _rows(LOSS, of_loss)], ignore_index=True)
    zeros = np.zeros((measurement.prompts, measurement.layers))
    no_token = bounds(_means(weights, zeros if measurement.no_token is None else measurement.no_token), level)
    layers = [
        pd.DataFrame(
            {
                "estimator": estimator,
                "layer": np.arange(1, measurement.layers + 1),
                **bounds(_means(weights, by_prompt), level),
                NO_TOKEN: no_token["value"],
                **{f"{NO_TOKEN} {bound}": no_token[bound] for bound in ("low", "high")},
            }
        )
        for estimator, by_prompt in measurement.mixing.items()
    ]
    tables = {
        "layers": pd.concat(layers, ignore_index=True),
        "profile": curves,
        "distances": attention_table(measurement),
    }
    if measurement.losses is not None:
        of_positions = bounds(_means(weights, measurement.losses), level)
        tables[LOSS] = pd.DataFrame({"position": measurement.loss_positions, **of_positions})
    return CardPart(measurement.n, measurement.prompts, level, all_values, tables)


def replacement_part(
    replacement: ReplacementEffects, measurement: Measurement, before: int, replicates: int, level: float, seed: int
) -> CardPart:
    """Return what replacing a token changes, by position, and how much the ends weigh by it and by gradients.

    The table is tidy (position, value, low, high): the mean over prompts of the total variation. One statistic is that
    of the first and the last token over that of the positions in the middle half (ENDS). The other (QUOTIENT) is the
    same of influence at the same positions of the same prompts, divided by the first. Where the tokenizer puts tokens
    `before` the text, its first word is compared as well.
    """
    assert measurement.influence is not None
    prompts = len(replacement.effects)
    weights = comparison.prompt_weights(units(measurement.documents[:prompts]), replicates, seed)
    table = pd.DataFrame({"position": replacement.positions, **bounds(_means(weights, replacement.effects), level)})
    place_of_end = dict(zip(ENDS, (0, -1), strict=True))
    if before:
        place_of_end[FIRST_WORD] = replacement.positions.index(before)
    influence = measurement.influence[:prompts, list(replacement.positions)]
    effects, gradients = (
        resampled_logarithms(values, replacement.positions, replacement.n, measurement.documents, replicates, seed)
        for values in (replacement.effects, influence)
    )
    rows = []
    for name, end in place_of_end.items():
        rows.append(_rows(REPLACEMENT, {name: np.exp(effects[:, end])}))
        rows.append(_rows(QUOTIENT, {name: np.exp(gradients[:, end] - effects[:, end])}))
    values = pd.concat(rows, ignore_index=True)
    return CardPart(replacement.n, prompts, level, values, {REPLACEMENT: table})


def recall_part(recall: RecallResult, replicates: int, level: float, seed: int) -> CardPart:
    """Return recall by place, and that of both ends over the middle half; contexts are resampled.

    The table has the columns place, probability and accuracy with their bounds, prior and chance. The statistics are
    the mean accuracy, and the EIGHTHS by the probability above the prior. These are NaN where `is_able` says that too
    little is recalled.
    """
    scores = recall.scores
    weights = comparison.prompt_weights(np.arange(recall.contexts), replicates, seed)
    table = pd.DataFrame({"place": places(recall.n, recall.cue)})
    for name, by_context in (("probability", scores.probability), (ACCURACY, scores.correct)):
        table[[name, f"{name} low", f"{name} high"]] = pd.DataFrame(bounds(_means(weights, by_context), level))
    table = table.assign(prior=scores.prior.mean(0), chance=1 / recall.words)
    factor = 1.0 if is_able(float(scores.correct.mean())) else np.nan
    eighths = ends_over_middle(_means(weights, above_prior(scores)))
    values = {ACCURACY: _means(weights, scores.correct.mean(-1))}
    values |= {name: factor * over for name, over in eighths.items()}
    return CardPart(recall.n, recall.contexts, level, _rows(RECALL, values), {RECALL: table})


def attention_table(measurement: Measurement) -> pd.DataFrame:
    """Return the mean attention by distance as a tidy table: (layer, distance, value), layer 1 the first."""
    layers, n = measurement.by_distance.shape
    layer, distance = np.divmod(np.arange(layers * n), n)
    value = measurement.by_distance.astype(float).ravel()
    return pd.DataFrame({"layer": layer + 1, "distance": distance, "value": value})


def influence_over_middle(measurement: Measurement, replicates: int, seed: int) -> dict[str, Array]:
    """Return what both ends, and both quarters without them, have over the middle half by influence: [1 + R] each.

    All are geometric means over documents, and over tokens (`logarithms_by_unit`).
    """
    assert measurement.influence is not None
    n = measurement.n
    logarithms = resampled_logarithms(measurement.influence, range(n), n, measurement.documents, replicates, seed)
    between = middle_half(n)
    parts = (slice(1), slice(n - 1, n), slice(1, between.start), slice(between.stop, n - 1))
    tokens = zip((*ENDS, *QUARTERS), parts, strict=True)
    return {name: np.exp(logarithms[:, of].mean(-1)) for name, of in tokens}


def resampled_logarithms(
    effects: NDArray[np.floating],
    positions: Sequence[int],
    n: int,
    documents: NDArray[np.int64],
    replicates: int,
    seed: int,
) -> Array:
    """Return the means of `logarithms_by_unit` over all units, then over those of every replicate, [1 + R, P].

    The units are drawn as by `prompt_weights`. The first N of the prompts of these `documents` have `effects`.
    """
    by_unit = logarithms_by_unit(effects, positions, n, units(documents[: len(effects)]))
    return resampled_weights(np.arange(len(by_unit)), replicates, seed) @ by_unit


def logarithms_by_unit(
    effects: NDArray[np.floating], positions: Sequence[int], n: int, of_units: NDArray[np.int64]
) -> Array:
    """Return the logarithms of effects [N, P] over the middle half, as means over the prompts of each unit, [U, P].

    In a prompt it is the logarithm of an effect less the mean of those in the middle half. So a position that is like
    those of the middle has 0, however widely effects spread. NaN where an effect is 0.
    """
    over = logarithms_over_middle(effects.astype(np.float64), positions, n)
    return np.stack([over[of_units == unit].mean(0) for unit in np.unique(of_units)])


def _end_of_profile(place: int) -> Callable[[Array], Array]:
    """Return what divides the share at a place of profiles [R, n] by the geometric mean in their middle half."""

    def over_middle(profiles: Array) -> Array:
        n = profiles.shape[-1]
        return np.exp(logarithms_over_middle(profiles, range(n), n)[:, place])

    return over_middle


SHAPE = comparison.SHAPE | {end: _end_of_profile(place) for end, place in zip(ENDS, (0, -1), strict=True)}


def bounds(values: Array, level: float) -> dict[str, Array]:
    """Return the value of all prompts and the bounds of its interval, from values [1 + R, ...]."""
    low, high = percentile_interval(values[1:], level)
    return {"value": values[0], "low": low, "high": high}


def _means(weights: Mapping[int, Array], of_prompts: NDArray[Any]) -> Array:
    """Return means over all prompts, then over those of every replicate, [1 + R, ...]."""
    return np.concatenate([of @ of_prompts for of in weights.values()])


def _rows(variant: str, statistics: Mapping[str, Array]) -> pd.DataFrame:
    """Statistics [1 + R] that no rollout has, by name."""
    label = {"estimator": SAME_FOR_EVERY_ESTIMATOR, "variant": variant}
    return pd.concat(
        pd.DataFrame({**label, "statistic": name, "replicate": np.arange(-1, len(values) - 1), "value": values})
        for name, values in statistics.items()
    )
