"""What a card says in words, from its numbers by stated rules: on lambda, on influence, on rollouts.

An interval that holds the value which would mean nothing (no trend, no ratio, no difference) is said to mean nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from position_bias.card import profiles
from position_bias.card.profiles import (
    ACCURACY,
    BASELINES,
    EIGHTHS,
    ENDS,
    FIRST_WORD,
    QUARTERS,
    QUOTIENT,
    RECALL,
    REPLACEMENT,
    SIGNS,
    SQUARES,
)
from position_bias.rollout import comparison
from position_bias.rollout.directions import NULL
from position_bias.rollout.places import is_able
from position_bias.rollout.variants import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR
from position_bias.statistics import percentile_interval

ESTIMATOR = "frobenius"  # Eq. 1 of the paper; sentences are about it
SAME = 0.005  # of W, up to which rollouts are equally close: half of the last digit that the paper prints of it
TREND_FROM = 6  # layers; of fewer, a rank correlation says little

NAMES = {
    "a": "attention alone (a)",
    "b": "the rollout with lambda (b)",
    "c": "the rollout with lambda and content (c)",
    "content-free": "the rollout without content",
    "logit-by-distance": "the rollout of the logit by distance",
    "mean-query-key": "the rollout of the mean query and key",
    "mean-attention": "the rollout of the mean attention",
    "uniform": "baseline: the same influence of every token",
    "last": "baseline: all influence on the last token",
    "half": "baseline: the rollout without content, with lambda = 1/2",
}

# Whether the first and the last token outweigh the middle half: +1, -1, or 0 where the interval holds 1.
SHAPES = {
    (1, 1): "both outweigh the middle",
    (1, 0): "the first token outweighs the middle, and the last is not separable from it",
    (1, -1): "the first token outweighs the middle, and the middle outweighs the last token",
    (0, 1): "the last token outweighs the middle, and the first is not separable from it",
    (0, 0): "neither is separable from the middle",
    (0, -1): "the middle outweighs the last token, and the first is not separable from it",
    (-1, 1): "the last token outweighs the middle, and the middle outweighs the first token",
    (-1, 0): "the middle outweighs the first token, and the last is not separable from it",
    (-1, -1): "the middle outweighs both",
}


@dataclass(frozen=True)
class Interval:
    """A value with the bounds of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """All three with as many decimals as give three digits of the value, or of the width where that is larger."""
        largest = max(abs(self.value), self.high - self.low)
        decimals = max(0, 2 - int(np.floor(np.log10(largest)))) if largest else 2
        return f"{self.value:.{decimals}f} [{self.low:.{decimals}f}, {self.high:.{decimals}f}]"

    def side(self, of: float) -> int:
        """+1 where all of it is above a number, -1 where all is below, else 0."""
        return int(self.low > of) - int(self.high < of)


def on_lambda(layers: pd.DataFrame, values: pd.DataFrame, level: float) -> str:
    """How much attention adds, layer by layer, from the first and third table of `profiles.compare`."""
    of_layers = layers.loc[layers["estimator"] == ESTIMATOR, "value"].to_numpy()
    least, most = of_layers.argmin(), of_layers.argmax()
    sentence = f"Attention's share of the residual stream, lambda, is {of_layers.mean():.3g} on average over the layers"
    if len(of_layers) == 1:
        return f"{sentence}."
    sentence += (
        f", least in layer {least + 1} ({of_layers[least]:.3g}) and most in layer {most + 1} ({of_layers[most]:.3g})"
    )
    if len(of_layers) < TREND_FROM:
        return f"{sentence}."
    trend = _interval(values, ESTIMATOR, "lambda", "spearman with depth", level)
    direction = {1: "rises", -1: "falls", 0: "neither rises nor falls"}[trend.side(0)]
    return f"{sentence}; with depth it {direction} (rank correlation {trend})."


def on_influence(values: pd.DataFrame, n: int, first: str, level: float) -> str:
    """How influence is spread over the prompt; `first` says what the first token is."""
    begin, end = ends(values, level)
    share = _interval(values, SAME_FOR_EVERY_ESTIMATOR, INFLUENCE, "last", level)
    early, late = (_interval(values, SAME_FOR_EVERY_ESTIMATOR, INFLUENCE, quarter, level) for quarter in QUARTERS)
    return (
        f"By gradients, in prompts of {n} tokens, the first token ({first}) has {begin} times the influence of an "
        f"average token in the middle half of the prompt, and the last token {end} times: "
        f"{SHAPES[begin.side(1), end.side(1)]}. The share of the last token in all influence is {share}. Without these "
        f"two tokens, an average token of the first quarter has {early} times, and one of the last quarter {late} "
        "times, the influence of one in the middle half."
    )


def on_replacement(values: pd.DataFrame, prompts: int, level: float) -> str:
    """What other tokens in place of the first and the last do, and where gradients say otherwise of the same prompts.

    `values` are the second table of `profiles.compare_replaced`, of so many prompts.
    """
    begin, end = ends(values, level, REPLACEMENT)
    word = ""
    if FIRST_WORD in set(values["statistic"]):
        of_word = _interval(values, SAME_FOR_EVERY_ESTIMATOR, REPLACEMENT, FIRST_WORD, level)
        word = f" The first word of the text, behind what the tokenizer adds, has {of_word} times the weight."
    said = (
        f"Another token in place of the first changes the prediction {begin} times as much as one in the middle half, "
        f"and in place of the last {end} times ({prompts} prompts): {SHAPES[begin.side(1), end.side(1)]}.{word}"
    )
    places = zip(("the first token", "the last"), ends(values, level, QUOTIENT), strict=True)
    differ = [f"{place} {quotient} times the weight" for place, quotient in places if quotient.side(1)]
    if not differ:
        return f"{said} On these prompts the two measures do not differ separably."
    return f"{said} The measures differ: on these prompts gradients give {listed(differ)} that replacement gives."


def on_recall(values: pd.DataFrame, n: int, words: int, contexts: int, level: float) -> str:
    """Where in contexts of n of these `words` a passage is found again, from the second of `compare_recalled`.

    Nothing is said of places where the accuracy is too near to chance, or where nothing of the middle is recalled.
    """
    accuracy, first, last = (
        _interval(values, SAME_FOR_EVERY_ESTIMATOR, RECALL, name, level) for name in (ACCURACY, *EIGHTHS)
    )
    asked = f"{contexts} contexts of {n} words in random order"
    right = f"it goes on with the right word in {accuracy} of cases; chance is {1 / words:.3g}"
    if not is_able(accuracy.value, words):
        return f"Recall is too near to chance to speak of place: after a repeated passage, {right} ({asked})."
    said = f"After a repeated passage, {right} ({asked})."
    if np.isnan([first.low, last.low]).any():
        return f"{said} In the middle half it recalls too little for a comparison with the ends."
    shape = SHAPES[first.side(1), last.side(1)].replace("token", "eighth")
    return (
        f"{said} It finds a passage in the first eighth {first} times as often as in the middle half, and one in the "
        f"last eighth {last} times, by probability: {shape}."
    )


def on_directions(values: pd.DataFrame, n: int, prompts: int, level: float) -> str:
    """How influence adds up, from the table of `profiles.compare_changed` of so many prompts of n tokens.

    In squares or in sums where the interval of the share lies on that side of a half, and what keeps to it moves
    influence separably less than the mean of the other prompts does; otherwise in neither.
    """
    of = values.set_index(["variant", "replicate"])["value"]
    moved = {name: _of_replicates(of[name], level) for name in (SIGNS, profiles.SAME, NULL)}
    share = _of_replicates(of[SQUARES], level)
    less = {name: _of_replicates(of[name] - of[NULL], level).side(0) < 0 for name in (SIGNS, profiles.SAME)}
    how = "neither in squares nor in sums"
    if share.side(0.5) > 0 and less[SIGNS]:
        how = "in squares"
    elif share.side(0.5) < 0 and less[profiles.SAME]:
        how = "in sums"
    return (
        f"Influence adds up {how}: {share} of the way from sums (0) to squares (1). A random sign for the gradient of "
        f"each token at each layer moves the influence of a prompt by {moved[SIGNS]}, and one direction for all tokens "
        f"by {moved[profiles.SAME]}; from the mean of the other prompts it is {moved[NULL]} away (total variation, "
        f"{prompts} prompts of {n} tokens)."
    )


def ends(values: pd.DataFrame, level: float, variant: str = INFLUENCE) -> tuple[Interval, Interval]:
    """The first and the last token over an average one in the middle half of the prompt, by default by influence."""
    first, last = (_interval(values, SAME_FOR_EVERY_ESTIMATOR, variant, end, level) for end in ENDS)
    return first, last


def on_rollouts(values: pd.DataFrame, level: float) -> str:
    """Which rollouts come closest to the measured influence, and whether closer than every baseline.

    Closest by the Wasserstein distance W over all prompts, with lambda of Eq. 1. Rollouts whose W is not separably
    more than SAME above the least are equally close. The least is compared with the nearest baseline in the same way,
    replicate by replicate.
    """
    of_variant = distances(values)
    close = closest(values, level)
    baseline, *_ = sorted(set(of_variant) & set(BASELINES), key=lambda name: of_variant[name].loc[-1])
    difference = _of_replicates(of_variant[close[0]] - of_variant[baseline], level)
    nearest = f"{NAMES[baseline].removeprefix('baseline: ')} (W = {of_variant[baseline].loc[-1]:.3g})"
    if difference.side(-SAME) < 0:
        verdict = f"closer than every baseline; the nearest baseline is {nearest}"
    elif difference.side(SAME) > 0:
        verdict = f"farther than the nearest baseline, {nearest}"
    else:
        verdict = f"not separable from the nearest baseline, {nearest}"
    span = span_of_closest(values, level)
    if len(close) == 1:
        return f"Of the rollouts, {NAMES[close[0]]} comes closest to this influence, {span}: {verdict}."
    if len(close) == len(set(of_variant) - set(BASELINES)):
        return f"The rollouts are equally close to this influence ({span}): {verdict}."
    return (
        f"Of the rollouts, {listed([NAMES[name] for name in close])} come closest to this influence, and are equally "
        f"close ({span}): {verdict}."
    )


def closest(values: pd.DataFrame, level: float) -> list[str]:
    """The rollout of the least distance, and those that are not separably more than SAME farther, by distance."""
    of_variant = distances(values, baselines=False)
    first, *others = sorted(of_variant, key=lambda name: of_variant[name].loc[-1])
    return [
        first,
        *(name for name in others if _of_replicates(of_variant[name] - of_variant[first], level).side(SAME) < 1),
    ]


def span_of_closest(values: pd.DataFrame, level: float) -> str:
    """W of the closest rollout with its interval, or from the least to the greatest of those that are equally close."""
    of_variant = distances(values)
    first, *others = (of_variant[name] for name in closest(values, level))
    if not others:
        return f"W = {_of_replicates(first, level)}"
    return f"W = {first.loc[-1]:.3g} to {others[-1].loc[-1]:.3g}"


def statistics(values: pd.DataFrame, level: float) -> dict[tuple[str, str, str], Interval]:
    """Every statistic with its interval, by estimator, variant and name, from the third table of `profiles.compare`."""
    table = comparison.summary(values, level)
    keys = zip(table["estimator"], table["variant"], table["statistic"], strict=True)
    bounds = table[["value", "low", "high"]].to_numpy()
    return {key: Interval(*map(float, found)) for key, found in zip(keys, bounds, strict=True)}


def listed(names: Sequence[str]) -> str:
    """Names with commas, and `and` before the last."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def distances(values: pd.DataFrame, *, baselines: bool = True) -> Mapping[str, pd.Series]:
    """W of every rollout with lambda of Eq. 1, or without any, and of the `baselines`: by replicate."""
    rows = values[
        (values["statistic"] == "wasserstein") & values["estimator"].isin([ESTIMATOR, SAME_FOR_EVERY_ESTIMATOR])
    ]
    found = {str(name): of.set_index("replicate")["value"] for name, of in rows.groupby("variant")}
    return {name: of for name, of in found.items() if baselines or name not in BASELINES}


def _interval(values: pd.DataFrame, estimator: str, variant: str, statistic: str, level: float) -> Interval:
    rows = values[
        (values["estimator"] == estimator) & (values["variant"] == variant) & (values["statistic"] == statistic)
    ]
    return _of_replicates(rows.set_index("replicate")["value"], level)


def _of_replicates(values: pd.Series, level: float) -> Interval:
    low, high = percentile_interval(values[values.index >= 0], level)
    return Interval(float(values.loc[-1]), float(low), float(high))
