"""What a card says in words, from its numbers by stated rules: on lambda, on influence, on rollouts.

An interval that holds the value which would mean nothing (no trend, no ratio, no difference) is said to mean nothing.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from position_card.card.profiles import (
    ACCURACY,
    BASELINES,
    EIGHTHS,
    ENDS,
    FIRST_WORD,
    LOSS,
    NO_TOKEN,
    QUARTERS,
    QUOTIENT,
    RECALL,
    REPLACEMENT,
    CardPart,
    Interval,
)
from position_card.core.wording import enumeration
from position_card.rollout.attention import Array
from position_card.rollout.parts import is_able
from position_card.rollout.passages import PIECE, PIECES, WORDS
from position_card.rollout.variants import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR

ESTIMATOR = "frobenius"  # Eq. 1 of the paper; sentences are about it
EQUAL_DISTANCE = (
    0.005  # of W, up to which rollouts are equally close: half of the last digit that the paper prints of it
)
TREND_FROM = 6  # layers; of fewer, a rank correlation says little

NAMES = {
    "a": "attention alone (a)",
    "b": "the residual-aware rollout (b)",
    "c": "the residual-aware rollout with content (c)",
    "content-free": "the rollout without content",
    "logit-by-distance": "the rollout of the logit by distance",
    "mean-query-key": "the rollout of the mean query and key",
    "mean-attention": "the rollout of the mean attention",
    "uniform": "baseline: the same influence of every token",
    "last": "baseline: all influence on the last token",
    "half": "baseline: the rollout without content, with residual mixing of 1/2",
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

# The same of recall in n tokens, for a title.
RECALL_SIDES = {
    (1, 1): "better at both ends of {n:,} tokens than in the middle",
    (1, 0): "better at the beginning of {n:,} tokens than in the middle",
    (1, -1): "best at the beginning of {n:,} tokens, and worst at the end",
    (0, 1): "better at the end of {n:,} tokens than in the middle",
    (0, 0): "at no end of {n:,} tokens separably better or worse than in the middle",
    (0, -1): "worse at the end of {n:,} tokens than in the middle",
    (-1, 1): "best at the end of {n:,} tokens, and worst at the beginning",
    (-1, 0): "worse at the beginning of {n:,} tokens than in the middle",
    (-1, -1): "better in the middle of {n:,} tokens than at both ends",
}


def verdict(model: str, influence: CardPart, parts: Mapping[str, CardPart]) -> str:
    """Say in the words of a title what recall tells of the place, or else replacement, or else gradients."""
    for name, ends, measure in ((RECALL, EIGHTHS, ""), (REPLACEMENT, ENDS, "replacement"), ("", ENDS, "gradients")):
        part = parts.get(name) if name else influence
        if part is None:
            continue
        first, last = (part.interval(name or INFLUENCE, end) for end in ends)
        if not np.isnan([first.low, last.low]).any():
            sides = first.side(1), last.side(1)
            by_recall = f"{model} finds random words {RECALL_SIDES[sides].format(n=part.n)}"
            return f"In {model}, by {measure}, {SHAPES[sides]}" if measure else by_recall
    return f"In {model} no place can be compared with the middle"


def on_chance(part: CardPart, uniform: float, by_frequency: float) -> str:
    """Whether the model predicts no better than one that knows no context; "" where its loss is separably lower.

    `uniform` is the loss, in nats a token, of the same probability for every token, and `by_frequency` about that of a
    model that knows how often each token occurs in the text.
    """
    loss = part.interval(LOSS, "mean")
    if loss.side(min(uniform, by_frequency)) < 0:
        return ""
    chance = loss.side(uniform) >= 0
    reference = "chance" if chance else "the frequencies of tokens in this text"
    return (
        f"**This model predicts no better than {reference}.** Its loss is {loss} nats a token; the same probability "
        f"for every token has {uniform:.3g}, and a model that knows only how often each token of this text occurs "
        f"about {by_frequency:.3g}. So this card describes a model that cannot predict this text, such as one without "
        "training, of damaged weights or of other texts, and claims no position bias. The tables have its numbers."
    )


def on_mixing(part: CardPart) -> str:
    """Say how much attention adds, layer by layer."""
    of_layers = mixings(part)
    least, greatest = of_layers.argmin(), of_layers.argmax()
    mean = f"{of_layers.mean():.3g} on average over the layers"
    sentence = f"Residual mixing (lambda), the share of a layer's output that attention brings, is {mean}"
    if len(of_layers) == 1:
        return f"{sentence}."
    sentence += (
        f", least in layer {least + 1} ({of_layers[least]:.3g}) "
        f"and most in layer {greatest + 1} ({of_layers[greatest]:.3g})"
    )
    if len(of_layers) < TREND_FROM:
        return f"{sentence}."
    trend = part.interval("lambda", "spearman with depth", ESTIMATOR)
    direction = {1: "rises", -1: "falls", 0: "neither rises nor falls"}[trend.side(0)]
    return f"{sentence}; with depth it {direction} (rank correlation {trend})."


def on_no_token(part: CardPart) -> str:
    """Say how much of the attention goes to no token, as in heads with a learned sink; "" where weights add to 1."""
    layers = part.tables["layers"]
    columns = [NO_TOKEN, f"{NO_TOKEN} low", f"{NO_TOKEN} high"]
    of_layers = layers.loc[layers["estimator"] == ESTIMATOR, columns].to_numpy()
    if not of_layers.any():
        return ""
    mean, greatest = of_layers[:, 0].mean(), of_layers[:, 0].argmax()
    return (
        f"Attention weights do not add to 1: {mean:.3g} of the attention goes to no token, on average over the layers, "
        f"and most in layer {greatest + 1} ({Interval(*map(float, of_layers[greatest]))}). "
        "Rollouts take shares that add to 1."
    )


def on_influence(part: CardPart, first: str) -> str:
    """Say how influence is spread over the prompt; `first` says what the first token is."""
    begin, end, share, early, late = (part.interval(INFLUENCE, name) for name in (*ENDS, "last", *QUARTERS))
    if np.isnan([begin.value, end.value, early.value, late.value]).any():
        return (
            f"By gradients, in prompts of {part.n} tokens, some tokens have no influence at all, as those that no "
            "layer reads, so that ends are not compared with the middle. The share of the last token in all influence "
            f"is {share}."
        )
    return (
        f"By gradients, in prompts of {part.n} tokens, the first token ({first}) has {begin} times the influence of a "
        f"typical token in the middle half of the prompt, and the last token {end} times: "
        f"{SHAPES[begin.side(1), end.side(1)]}. The share of the last token in all influence is {share}. Without these "
        f"two tokens, a typical token of the first quarter has {early} times, and one of the last quarter {late} "
        "times, the influence of one in the middle half."
    )


def on_replacement(part: CardPart, text: str) -> str:
    """Say what other tokens in place of the first and the last change, and where gradients say otherwise.

    `text` is the name of the text that prompts are of.
    """
    begin, end = (part.interval(REPLACEMENT, name) for name in ENDS)
    if np.isnan([begin.value, end.value]).any():
        return (
            f"Another token in place of some changes nothing at all ({part.prompts} prompts of {part.n:,} tokens of "
            f"{text}), so that ends are not compared with the middle by replacement."
        )
    word = ""
    if FIRST_WORD in set(part.values["statistic"].unique()):
        of_word = part.interval(REPLACEMENT, FIRST_WORD)
        word = f" The first word of the text, behind what the tokenizer adds, has {of_word} times the weight."
    sentence = (
        f"Another token in place of the first changes the prediction {begin} times as much as a typical one in the "
        f"middle half, and in place of the last {end} times ({part.prompts} prompts of {part.n:,} tokens of {text}): "
        f"{SHAPES[begin.side(1), end.side(1)]}.{word}"
    )
    quotients = {"the first token": part.interval(QUOTIENT, ENDS[0]), "the last": part.interval(QUOTIENT, ENDS[1])}
    differ = [f"{place} {quotient} times the weight" for place, quotient in quotients.items() if quotient.side(1)]
    if not differ:
        return f"{sentence} On these prompts the two measures do not differ separably."
    return (
        f"{sentence} The measures differ: on these prompts gradients give {enumeration(differ)} that replacement gives."
    )


def on_recall(part: CardPart, words: int) -> str:
    """Say where in contexts of some of these `words` a passage is found again, at this length and with this material.

    Nothing is said of places where the accuracy is too low, or where nothing of the middle is recalled.
    """
    accuracy, first, last = (part.interval(RECALL, name) for name in (ACCURACY, *EIGHTHS))
    contexts = f"{part.prompts} contexts of {recall_material(part.n)}"
    right = f"it goes on with the right word in {accuracy} of cases; chance is {1 / words:.3g}"
    if not is_able(accuracy.value):
        return f"Recall is too poor to speak of place: after a repeated passage, {right} ({contexts})."
    sentence = f"After a repeated passage, {right} ({contexts})."
    if np.isnan([first.low, last.low]).any():
        return f"{sentence} In the middle half it recalls too little for a comparison with the ends."
    shape = SHAPES[first.side(1), last.side(1)].replace("token", "eighth")
    return (
        f"{sentence} The right word gains {first} times as much probability from a passage in the first eighth as "
        f"from one in the middle half, and {last} times from one in the last eighth: {shape}. That is so in "
        f"{part.n:,} tokens with random words; facts in documents and other lengths can have another order, which "
        "`--documents` measures."
    )


def recall_material(n: int) -> str:
    """What contexts of recall consist of, in words: those of n tokens."""
    if n <= WORDS:
        return f"{n} words in random order"
    return f"{n:,} tokens, which are {WORDS} words in random order, in {PIECES} pieces of {PIECE} apart in the text"


def on_rollouts(part: CardPart) -> str:
    """Say which rollouts come closest to the measured influence, and whether closer than every baseline.

    Closest by the Wasserstein distance W over all prompts, with lambda of Eq. 1. Rollouts whose W is not separably
    more than SAME above the least are equally close. The least is compared with the nearest baseline in the same way,
    replicate by replicate.
    """
    of_variant = distances(part)
    close, span = closest(part)
    baseline, *_ = sorted(set(of_variant) & set(BASELINES), key=lambda name: of_variant[name].loc[-1])
    difference = part.interval_of(of_variant[close[0]] - of_variant[baseline])
    nearest = f"{NAMES[baseline].removeprefix('baseline: ')} (W = {of_variant[baseline].loc[-1]:.3g})"
    if difference.side(-EQUAL_DISTANCE) < 0:
        verdict = f"closer than every baseline; the nearest baseline is {nearest}"
    elif difference.side(EQUAL_DISTANCE) > 0:
        verdict = f"farther than the nearest baseline, {nearest}"
    else:
        verdict = f"not separable from the nearest baseline, {nearest}"
    if len(close) == 1:
        return f"Of the rollouts, {NAMES[close[0]]} comes closest to this influence, {span}: {verdict}."
    if len(close) == len(set(of_variant) - set(BASELINES)):
        return f"The rollouts are equally close to this influence ({span}): {verdict}."
    return (
        f"Of the rollouts, {enumeration([NAMES[name] for name in close])} come closest to this influence, and are "
        f"equally close ({span}): {verdict}."
    )


def closest(part: CardPart) -> tuple[list[str], str]:
    """Return the rollout of the least distance, and those that are not separably more than SAME farther, by distance.

    Beside them W in words: of one rollout with its interval, of several from the least to the greatest.
    """
    of_variant = {name: of for name, of in distances(part).items() if name not in BASELINES}
    first, *rest = sorted(of_variant, key=lambda name: of_variant[name].loc[-1])
    least = of_variant[first]
    alike = [name for name in rest if part.interval_of(of_variant[name] - least).side(EQUAL_DISTANCE) < 1]
    if not alike:
        return [first], f"W = {part.interval_of(least)}"
    return [first, *alike], f"W = {least.loc[-1]:.3g} to {of_variant[alike[-1]].loc[-1]:.3g}"


def mixings(part: CardPart) -> Array:
    """Return residual mixing by Eq. 1 of every layer, [L]."""
    layers = part.tables["layers"]
    return layers.loc[layers["estimator"] == ESTIMATOR, "value"].to_numpy()


def distances(part: CardPart) -> dict[str, pd.Series]:
    """Return W of every baseline, and of every rollout with lambda of Eq. 1, or without any: by replicate."""
    values = part.values
    rows = values[
        (values["statistic"] == "wasserstein") & values["estimator"].isin([ESTIMATOR, SAME_FOR_EVERY_ESTIMATOR])
    ]
    return {str(name): of.set_index("replicate")["value"] for name, of in rows.groupby("variant")}
