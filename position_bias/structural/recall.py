"""Recall of pretrained decoders by place, and whether influence ranks places so: tables of what is judged and drawn.

Contexts are the units, and are resampled. A decoder whose accuracy is below .2 recalls too little, and nothing is
said of its places.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_bias.structural.checks import OF_DECODERS
from position_bias.structural.pretrained import HUB
from position_bias.verdicts.judge import ESTIMATE
from position_bias.verdicts.registry import PRETRAINED
from position_card.core.artifacts import TensorFile
from position_card.rollout import passages
from position_card.rollout.attention import Array
from position_card.rollout.parts import (
    RecallScores,
    above_prior,
    by_part,
    eighths,
    ends_over_middle,
    is_able,
    middle_half,
    ratio,
)
from position_card.rollout.statistics import percentile_interval, resampled_weights, spearman

WORDS, PROSE = "words", "words in prose"  # what stands in place of a data set: words alone, or apart in prose
NEAR = 1 / 16  # of a prompt: places that are averaged where recall is compared with influence
SPLITS = 20  # random halves of the contexts, which tell how far noise hides the order of places
INFLUENCES = ("gradient", "replacement")
ROLLOUTS = ("rotary", "measured")  # that predict influence, by their names in the profiles
OF_INFLUENCE = ("model", "weights", "measure", "position", "value")  # columns that are read of profiles of influence
PROFILES = ("model", "n", "contexts", "able", "eighth", "value", "low", "high")  # columns of what is drawn


def recall_tables(
    recalled: list[TensorFile], profiles: list[pd.DataFrame], replicates: int, level: float, seed: int
) -> dict[str, pd.DataFrame]:
    """The tables of all decoders: `values`, which are judged (`checks.OF_DECODERS`), and `profiles` (PROFILES).

    `recalled` are files with the fields of `RecallScores`, labelled with model, n, cue and words; `profiles` are those
    of `structural.pretrained`, a table for each decoder whose places are ranked. What is drawn is the probability of
    the right word in each eighth of the places, counted from 1, over its mean in the middle half.
    """
    influence = _influence(pd.concat(profiles) if profiles else pd.DataFrame(columns=list(OF_INFLUENCE)))
    rows: list[tuple[Any, ...]] = []
    curves = []
    for file in recalled:
        labels, scores = file.labels, RecallScores(**file.read())
        weights = resampled_weights(np.arange(len(scores.correct)), replicates, seed)
        above = above_prior(scores)  # [contexts, P]
        of_model = influence[influence["model"] == labels["model"]]
        able = is_able(float(scores.correct.mean()))
        rankings = (
            (statistic, measure, values if able else np.nan * values)
            for statistic, measure, values in _rankings(
                above, shares(labels), weights, of_model, halves(len(above), seed)
            )
        )
        statistics = chain(logs_of_ends(scores, weights), _by_length(scores, labels["n"], weights), rankings)
        for statistic, network, values in statistics:
            rows += _rows(labels, statistic, network, values, len(scores.correct))
        columns = {"model": labels["model"], "n": labels["n"], "contexts": len(above), "able": able}
        curves.append(_eighths(columns, weights @ above, level))
    return {
        "values": pd.DataFrame(rows, columns=OF_DECODERS).round({"value": 6}),
        "profiles": pd.concat(curves, ignore_index=True),
    }


def recalled_ends(file: TensorFile, replicates: int, seed: int) -> Iterator[tuple[Any, ...]]:
    """Rows of OF_DECODERS of `logs_of_ends` in each resample. `file` has the fields of `RecallScores`."""
    labels, scores = file.labels, RecallScores(**file.read())
    weights = resampled_weights(np.arange(len(scores.correct)), replicates, seed)
    for statistic, network, values in logs_of_ends(scores, weights):
        yield from _rows(labels, statistic, network, values, len(scores.correct))


def logs_of_ends(scores: RecallScores, weights: Array) -> Iterator[tuple[str, str, Array]]:
    """Statistic, network and values [1 + R]: the first and the last eighth of the places over the middle half.

    Of recall the probability of the right word is compared, less that after a foreign cue, and of accuracy how often
    it is the likeliest of all words. Values are logarithms; where too little is recalled there are none.
    """
    able = is_able(float(scores.correct.mean()))
    for network, values in {"recall": above_prior(scores), "accuracy": scores.correct}.items():
        for name, over in ends_over_middle(weights @ values).items():
            yield f"log {name}", network, np.log(np.where(able & (over > 0), over, np.nan))


def _by_length(scores: RecallScores, n: int, weights: Array) -> Iterator[tuple[str, str, Array]]:
    """Statistic, network and values [1 + R] that contexts of n tokens have: which end wins, and the mean accuracy."""
    able = is_able(float(scores.correct.mean()))
    parts = by_part(weights @ above_prior(scores))
    positive = able & (parts["first"] > 0) & (parts["last"] > 0)
    over = ratio(np.where(positive, parts["first"], np.nan), np.where(positive, parts["last"], np.nan))
    yield f"log first eighth / last eighth, {n:,} tokens", "recall", np.log(over)
    accuracy = weights @ scores.correct.mean(-1)
    yield "log accuracy", "recall", np.log(np.where(accuracy > 0, accuracy, np.nan))


def _rankings(
    above: Array, at: Array, weights: Array, influence: pd.DataFrame, splits: NDArray[np.bool_]
) -> Iterator[tuple[str, str, Array]]:
    """Statistic, network and values [1 + R]: how places rank by recall and by influence, measured or rolled out."""
    for measure, curve in influence.groupby("measure", sort=False):
        near = np.abs(curve["place"].to_numpy()[:, None] - at) <= NEAR  # [positions, P]
        around = above @ (near / near.sum(-1, keepdims=True)).T  # [contexts, positions]
        yield (
            "rank correlation of places",
            str(measure),
            ranked_alike(around, curve["value"].to_numpy(), weights, splits),
        )


def halves(contexts: int, seed: int) -> NDArray[np.bool_]:
    """Which contexts are in the first half of each of SPLITS random splits: [SPLITS, contexts]."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(contexts) < contexts // 2 for _ in range(SPLITS)])


def ranked_alike(around: Array, curve: Array, weights: Array, splits: NDArray[np.bool_]) -> Array:
    """The rank correlation of a curve [P] with the mean of `around` [contexts, P], freed of noise: [1 + R].

    Noise in a mean over few contexts makes it rank places less like anything, so that a correlation with it is too
    small. It is divided by the correlation with a mean over many contexts, the square root of the reliability: that
    follows from how alike two halves of the contexts rank places (Spearman and Brown). NaN where they do not agree.
    Resamples are noisier still, so their median is moved to the estimate.
    """
    alike = np.mean([spearman(around[half].mean(0), around[~half].mean(0)) for half in splits])
    reliability = 2 * alike / (1 + alike) if alike > 0 else np.nan
    correlation = spearman(weights @ around, curve) / np.sqrt(reliability)
    correlation[1:] += correlation[0] - np.median(correlation[1:])
    return np.asarray(np.clip(correlation, -1, 1))


def material(n: int) -> str:
    """What contexts of n tokens consist of, in the column of data sets."""
    return WORDS if n <= passages.WORDS else PROSE


def shares(labels: dict[str, Any]) -> Array:
    """Places as shares of the context [P], from 0 at the first to 1 at the last."""
    begins = passages.places(labels["n"], labels["cue"])
    return np.linspace(0, 1, len(begins)) if labels["n"] <= passages.WORDS else (begins - begins[0]) / np.ptp(begins)


def _rows(labels: dict[str, Any], statistic: str, network: str, values: Array, contexts: int) -> list[tuple[Any, ...]]:
    setting = (labels["model"], material(labels["n"]), labels["n"], statistic, network)
    return [
        (*setting, unit, contexts, value, PRETRAINED) for unit, value in enumerate(map(float, values), start=ESTIMATE)
    ]


def _influence(profiles: pd.DataFrame) -> pd.DataFrame:
    """What tokens weigh in the trained decoders, by measures and by rollouts, with places in place of positions."""
    of_decoders = profiles[(profiles["weights"] == HUB) & profiles["measure"].isin((*INFLUENCES, *ROLLOUTS))]
    longest = of_decoders.groupby("model")["position"].transform("max")
    return of_decoders.assign(place=of_decoders["position"] / longest)[["model", "measure", "place", "value"]]


def _eighths(columns: dict[str, Any], excess: Array, level: float) -> pd.DataFrame:
    """Means of `excess` [1 + R, P] over each eighth that has a place, over that of the middle half."""
    places = excess.shape[1]
    parts = {number: part for number, part in enumerate(eighths(places), 1) if part.stop > part.start}
    means = np.stack([excess[:, part].mean(-1) for part in parts.values()], axis=1)
    over = means / excess[:, middle_half(places)].mean(-1, keepdims=True)
    low, high = percentile_interval(over[1:], level)
    values = {"eighth": [*parts], "value": over[0], "low": low, "high": high}
    return pd.DataFrame({**columns, **values})[list(PROFILES)]
