"""Three sentences on a card, from its numbers by stated rules: on lambda, on influence, on rollouts.

An interval that holds the value which would mean nothing (no trend, no ratio, no difference) is said to mean nothing.
"""

from dataclasses import dataclass

import pandas as pd

from position_bias.card.profiles import NULLS
from position_bias.rollout.comparison import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR
from position_bias.statistics import percentile_interval

ESTIMATOR = "frobenius"  # Eq. 1 of the paper; sentences are about it

NAMES = {
    "a": "attention alone (a)",
    "b": "the rollout without content (b)",
    "c": "the rollout with content (c)",
    "content-free": "the rollout without content",
    "toeplitz": "the rollout of the mean logit by distance",
    "rotary": "the rollout of the mean query and key",
    "measured": "the rollout of the mean attention",
    "uniform": "the uniform profile",
    "last": "the last token alone",
    "half": "lambda = 1/2 without content",
}

# Whether the first and the last token outweigh the middle half: +1, -1, or 0 where the interval holds 1.
SHAPES = {
    (1, 1): "both ends outweigh the middle",
    (1, 0): "the beginning outweighs the middle, and the end is not separable from it",
    (1, -1): "influence falls from the first token on: the beginning outweighs the middle, and the middle the end",
    (0, 1): "the end outweighs the middle, and the beginning is not separable from it",
    (0, 0): "neither end is separable from the middle",
    (0, -1): "the middle outweighs the end, and the beginning is not separable from it",
    (-1, 1): "influence rises towards the last token: the end outweighs the middle, and the middle the beginning",
    (-1, 0): "the middle outweighs the beginning, and the end is not separable from it",
    (-1, -1): "the middle outweighs both ends",
}


@dataclass(frozen=True)
class Interval:
    """A value with the bounds of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def side(self, of: float) -> int:
        """+1 where all of it is above a number, -1 where all is below, else 0."""
        return int(self.low > of) - int(self.high < of)


def on_lambda(layers: pd.DataFrame, values: pd.DataFrame, level: float) -> str:
    """How much attention adds, layer by layer, from the first and third table of `profiles.compare`."""
    of_layers = layers.loc[layers["estimator"] == ESTIMATOR, "value"].to_numpy()
    trend = _interval(values, ESTIMATOR, "lambda", "spearman with depth", level)
    least, most = of_layers.argmin(), of_layers.argmax()
    sentence = f"Attention's share of the residual stream, lambda, is {of_layers.mean():.3g} on average over the layers"
    if len(of_layers) == 1:
        return f"{sentence}."
    direction = {1: "rises", -1: "falls", 0: "neither rises nor falls"}[trend.side(0)]
    return (
        f"{sentence}, least in layer {least + 1} ({of_layers[least]:.3g}) and most in layer {most + 1} "
        f"({of_layers[most]:.3g}); with depth it {direction} (rank correlation {trend})."
    )


def on_influence(values: pd.DataFrame, n: int, first: str, level: float) -> str:
    """How influence is spread over the prompt; `first` says what the first token is."""
    of_influence = SAME_FOR_EVERY_ESTIMATOR, INFLUENCE
    begin = _interval(values, *of_influence, "first / middle", level)
    end = _interval(values, *of_influence, "last / middle", level)
    return (
        f"In prompts of {n} tokens the first one ({first}) has {begin} times the influence of one in the middle half, "
        f"and the last one {end} times: {SHAPES[begin.side(1), end.side(1)]}."
    )


def on_rollouts(values: pd.DataFrame, level: float) -> str:
    """Which rollout comes closest to the measured influence, and whether closer than what knows nothing of the model.

    Closest by the Wasserstein distance W over all prompts, with lambda of Eq. 1; the nearest null is compared with it
    replicate by replicate.
    """
    distances = values[(values["statistic"] == "wasserstein") & values["estimator"].isin([ESTIMATOR, "none"])]
    of_variant = {str(name): rows.set_index("replicate")["value"] for name, rows in distances.groupby("variant")}
    closest, *_ = sorted(set(of_variant) - set(NULLS), key=lambda name: of_variant[name].loc[-1])
    null, *_ = sorted(set(of_variant) & set(NULLS), key=lambda name: of_variant[name].loc[-1])
    difference = _of_replicates(of_variant[closest] - of_variant[null], level)
    of_null = f"{NAMES[null]} (W = {of_variant[null].loc[-1]:.3g})"
    verdict = {
        -1: f"closer than anything that knows nothing of the model; the nearest of that is {of_null}",
        0: f"not separable from {of_null}, which knows nothing of the model",
        1: f"farther than {of_null}, which knows nothing of the model",
    }[difference.side(0)]
    distance = _of_replicates(of_variant[closest], level)
    return (
        f"Of the rollouts with that lambda, {NAMES[closest]} comes closest to this influence, "
        f"W = {distance}: {verdict}."
    )


def _interval(values: pd.DataFrame, estimator: str, variant: str, statistic: str, level: float) -> Interval:
    rows = values[
        (values["estimator"] == estimator) & (values["variant"] == variant) & (values["statistic"] == statistic)
    ]
    return _of_replicates(rows.set_index("replicate")["value"], level)


def _of_replicates(values: pd.Series, level: float) -> Interval:
    low, high = percentile_interval(values[values.index >= 0], level)
    return Interval(float(values.loc[-1]), float(low), float(high))
