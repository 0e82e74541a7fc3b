"""Every sentence of a card, from tables whose meaning is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from position_bias.card import sentences
from position_bias.card.profiles import QUOTIENT, RECALL, REPLACEMENT, SHOWN, Interval, Part
from position_bias.rollout import variants

LEVEL, REPLICATES = 0.9, 40


def rows(estimator, variant, statistic, value, spread):
    """A statistic whose interval reaches about `spread` to either side."""
    again = value + spread * np.linspace(-1, 1, REPLICATES)
    label = {"estimator": estimator, "variant": variant, "statistic": statistic}
    return pd.DataFrame({**label, "replicate": np.arange(-1, REPLICATES), "value": [value, *again]})


def part(values, n=256, prompts=16, lambdas=()):
    token = pd.DataFrame({"estimator": "token", "layer": range(1, len(lambdas) + 1), "value": 0.99})
    frobenius = pd.DataFrame({"estimator": "frobenius", "layer": range(1, len(lambdas) + 1), "value": lambdas})
    return Part(n, prompts, LEVEL, values, {"layers": pd.concat([token, frobenius])})


@pytest.mark.parametrize(
    ("trend", "spread", "said"), [(-0.8, 0.1, "falls"), (0.8, 0.1, "rises"), (0.2, 0.5, "neither rises nor falls")]
)
def test_lambda_names_its_mean_its_least_and_most_layer_and_its_trend(trend, spread, said):
    values = rows("frobenius", "lambda", "spearman with depth", trend, spread)
    sentence = sentences.on_lambda(part(values, lambdas=(0.3, 0.1, 0.2, 0.2, 0.2, 0.2)))
    assert "is 0.2 on average over the layers, least in layer 2 (0.1) and most in layer 1 (0.3)" in sentence
    assert f"; with depth it {said} (rank correlation {trend:.3f} [" in sentence
    assert sentence.endswith(").")


def test_of_few_layers_no_trend_is_told():
    values = rows("frobenius", "lambda", "spearman with depth", -0.8, 0.1)
    sentence = sentences.on_lambda(part(values, lambdas=(0.3, 0.1, 0.2, 0.2, 0.2)))
    assert sentence.endswith("least in layer 2 (0.1) and most in layer 1 (0.3).")


def test_one_layer_has_no_trend():
    values = rows("frobenius", "lambda", "spearman with depth", np.nan, 0)
    said = sentences.on_lambda(part(values, lambdas=(0.3,)))
    assert said.endswith("lambda, is 0.3 on average over the layers.")


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((0.928, 0.869, 1.0031), "0.928 [0.869, 1.003]"),  # which side of 1 a bound lies on can be read
        ((463.2, 434.1, 493.4), "463 [434, 493]"),
        ((2.3, 2.1, 2.5), "2.30 [2.10, 2.50]"),
        ((0.00123, -0.5, 0.7), "0.00 [-0.50, 0.70]"),
        ((-0.958, -0.965, -0.958), "-0.958 [-0.965, -0.958]"),
        ((0.0, 0.0, 0.0), "0.00 [0.00, 0.00]"),
    ],
)
def test_the_bounds_of_an_interval_have_the_decimals_of_its_value(interval, said):
    assert str(Interval(*interval)) == said


SHARES = {"last": 0.4, "first quarter / middle": 0.7, "last quarter / middle": 1.3}


@pytest.mark.parametrize("sides", list(itertools.product((1, 0, -1), repeat=2)))
def test_influence_names_the_ends_that_differ_from_the_middle(sides):
    ratios = {1: (3.0, 0.5), 0: (1.1, 0.5), -1: (0.4, 0.1)}
    values = pd.concat(
        rows("none", "influence", f"{place} / middle", *ratios[side])
        for place, side in zip(("first", "last"), sides, strict=True)
    )
    shares = [rows("none", "influence", name, value, 0.02) for name, value in SHARES.items()]
    values = pd.concat([values, *shares])
    sentence = sentences.on_influence(part(values), "the tokenizer's <s>")
    assert sentence.startswith("By gradients, in prompts of 256 tokens, the first token (the tokenizer's <s>) has ")
    assert " times the influence of an average token in the middle half of the prompt, and the last token " in sentence
    assert f" times: {sentences.SHAPES[sides]}. The share of the last token in all influence is 0.400 [" in sentence
    assert " of the first quarter has 0.700 [" in sentence
    assert ", and one of the last quarter 1.30 [" in sentence
    assert len(set(sentences.SHAPES.values())) == 9


def distances(**values):
    baselines = {"uniform": 0.2, "last": 0.6, "half": 0.3}
    tables = [rows("none", name, "wasserstein", value, 0.0) for name, value in baselines.items()]
    tables += [rows("frobenius", name, "wasserstein", *value) for name, value in values.items()]
    others = [rows(*of, "wasserstein", 0.0, 0.0) for of in (("token", "mean-query-key"), ("backward", "b"))]
    return part(pd.concat([*tables, *others]))


UNIFORM = "the same influence of every token (W = 0.2)"


@pytest.mark.parametrize(
    ("value", "spread", "said"),
    [
        (0.05, 0.01, f"W = 0.0500 [0.0410, 0.0590]: closer than every baseline; the nearest baseline is {UNIFORM}."),
        (0.18, 0.05, f": not separable from the nearest baseline, {UNIFORM}."),
        (0.35, 0.05, f": farther than the nearest baseline, {UNIFORM}."),
    ],
)
def test_rollouts_name_the_closest_and_hold_it_to_the_nearest_baseline(value, spread, said):
    sentence = sentences.on_rollouts(distances(**{"logit-by-distance": (value, spread), "mean-attention": (0.5, 0.0)}))
    assert sentence.startswith("Of the rollouts, the rollout of the logit by distance comes closest to this influence")
    assert sentence.endswith(said)


def test_rollouts_that_are_not_separable_from_the_closest_are_not_ranked():
    close = {"logit-by-distance": (0.05, 0.04), "content-free": (0.06, 0.0)}
    alike = sentences.on_rollouts(distances(**close))
    assert alike.startswith("The rollouts are equally close to this influence (W = 0.05 to 0.06): closer than every")
    apart = sentences.on_rollouts(distances(**close, **{"mean-attention": (0.15, 0.0)}))
    assert apart.startswith(
        "Of the rollouts, the rollout of the logit by distance and the rollout without content come closest to this "
        "influence, and are equally close (W = 0.05 to 0.06): "
    )


@pytest.mark.parametrize(
    ("value", "alike", "said"),
    [(0.053, True, "closer"), (0.057, False, "closer"), (0.196, False, "not separable"), (0.207, False, "farther")],
)
def test_differences_below_the_last_printed_digit_count_as_none(value, alike, said):
    other = 0.05 if said == "closer" else 0.5
    sentence = sentences.on_rollouts(distances(**{"b": (value, 0.0), "c": (other, 0.0)}))
    assert ("equally close" in sentence) == alike
    assert f": {said} " in sentence


def test_lambda_of_other_estimators_and_of_the_backward_pass_is_not_what_rollouts_are_judged_by():
    sentence = sentences.on_rollouts(distances(**{"mean-attention": (0.4, 0.1)}))
    assert sentence.startswith("Of the rollouts, the rollout of the mean attention comes closest to this influence")


def test_every_rollout_and_baseline_has_a_name():
    every = {*variants.BASELINES, *variants.ROLLOUTS} - {"logit-by-distance-apart"}  # which no card asks for
    assert set(sentences.NAMES) == every == {*SHOWN} - {variants.INFLUENCE}


@pytest.mark.parametrize(
    ("quotients", "said"),
    [
        ((1.0, 1.1), "On these prompts the two measures do not differ separably."),
        ((3.0, 1.1), "gradients give the first token 3.00 [2.55, 3.45] times the weight that replacement gives."),
        ((3.0, 0.5), "the first token 3.00 [2.55, 3.45] times the weight and the last 0.500 [0.050, 0.950] times the"),
    ],
)
def test_both_measures_are_asked_and_what_they_say_differently_is_told(quotients, said):
    ends = ("first / middle", "last / middle")
    values = [rows("none", REPLACEMENT, end, value, 0.5) for end, value in zip(ends, (1.1, 40.0), strict=True)]
    values += [rows("none", QUOTIENT, end, value, 0.5) for end, value in zip(ends, quotients, strict=True)]
    sentence = sentences.on_replacement(part(pd.concat(values)))
    assert sentence.startswith("Another token in place of the first changes the prediction 1.10 [0.65, 1.55] times as ")
    assert "(16 prompts): the last token outweighs the middle, and the first is not separable from it. " in sentence
    assert said in sentence


@pytest.mark.parametrize(
    ("accuracy", "ends", "said"),
    [
        (0.3, (2.5, 1.1), "one in the last eighth 1.10 [0.65, 1.55] times, by probability: the first eighth outweighs"),
        (0.3, (1.1, 0.2), "by probability: the middle outweighs the last eighth, and the first is not separable from"),
        (0.3, (1.0, np.nan), " In the middle half it recalls too little for a comparison with the ends."),
        (0.014, (2.5, 1.1), "Recall is too near to chance to speak of place: after a repeated passage, it goes on "),
    ],
)
def test_recall_is_told_by_place_only_above_three_times_chance(accuracy, ends, said):
    values = [rows("none", RECALL, "accuracy", accuracy, 0.1)]
    eighths = [f"{end} eighth / middle" for end in ("first", "last")]
    values += [rows("none", RECALL, name, of, 0.5) for name, of in zip(eighths, ends, strict=True)]
    sentence = sentences.on_recall(part(pd.concat(values), 128), 200)
    assert f"it goes on with the right word in {Interval(accuracy, accuracy - 0.09, accuracy + 0.09)} " in sentence
    assert "chance is 0.005 (16 contexts of 128 words in random order)." in sentence
    assert said in sentence
    assert ("It finds a passage in the first eighth " in sentence) == (accuracy == 0.3 and not np.isnan(ends).any())
