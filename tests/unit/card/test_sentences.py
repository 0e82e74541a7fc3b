"""Every sentence of a card, from tables whose meaning is known."""

import itertools
import re

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
    ("trend", "spread", "said"), [(-0.8, 0.1, " falls "), (0.8, 0.1, " rises "), (0.2, 0.5, "neither rises nor falls")]
)
def test_lambda_names_its_mean_its_least_and_most_layer_and_its_trend(trend, spread, said):
    values = rows("frobenius", "lambda", "spearman with depth", trend, spread)
    sentence = sentences.on_lambda(part(values, lambdas=(0.3, 0.1, 0.2, 0.2, 0.2, 0.2)))
    assert re.search(r"is 0\.2 on average .* layer 2 \(0\.1\) .* layer 1 \(0\.3\)", sentence)
    assert said in sentence
    assert f"{trend:.3f} [" in sentence


@pytest.mark.parametrize(("lambdas", "ends"), [((0.3, 0.1, 0.2, 0.2, 0.2), "layer 1 (0.3)."), ((0.3,), "the layers.")])
def test_of_few_layers_no_trend_is_told(lambdas, ends):
    values = rows("frobenius", "lambda", "spearman with depth", -0.8, 0.1)
    assert sentences.on_lambda(part(values, lambdas=lambdas)).endswith(ends)


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
    assert "in prompts of 256 tokens, the first token (the tokenizer's <s>) has " in sentence
    assert f": {sentences.SHAPES[sides]}. " in sentence
    assert re.search(r" is 0\.400 \[.* first quarter has 0\.700 \[.* last quarter 1\.30 \[", sentence)
    assert len(set(sentences.SHAPES.values())) == 9


def distances(**values):
    baselines = {"uniform": 0.2, "last": 0.6, "half": 0.3}
    tables = [rows("none", name, "wasserstein", value, 0.0) for name, value in baselines.items()]
    tables += [rows("frobenius", name, "wasserstein", *value) for name, value in values.items()]
    others = [rows(*of, "wasserstein", 0.0, 0.0) for of in (("token", "mean-query-key"), ("backward", "b"))]
    return part(pd.concat([*tables, *others]))


@pytest.mark.parametrize(
    ("value", "spread", "said"),
    [
        (0.05, 0.01, "W = 0.0500 [0.0410, 0.0590]: closer than every baseline"),
        (0.18, 0.05, ": not separable from the nearest baseline"),
        (0.35, 0.05, ": farther than the nearest baseline"),
    ],
)
def test_rollouts_name_the_closest_and_hold_it_to_the_nearest_baseline(value, spread, said):
    sentence = sentences.on_rollouts(distances(**{"logit-by-distance": (value, spread), "mean-attention": (0.5, 0.0)}))
    assert sentence.startswith(f"Of the rollouts, {sentences.NAMES['logit-by-distance']} comes closest ")
    assert said in sentence
    assert sentence.endswith("the same influence of every token (W = 0.2).")


def test_rollouts_that_are_not_separable_from_the_closest_are_not_ranked():
    close = {"logit-by-distance": (0.05, 0.04), "content-free": (0.06, 0.0)}
    alike = sentences.on_rollouts(distances(**close))
    assert alike.startswith("The rollouts are equally close to this influence (W = 0.05 to 0.06): ")
    apart = sentences.on_rollouts(distances(**close, **{"mean-attention": (0.15, 0.0)}))
    both = " and ".join(sentences.NAMES[name] for name in close)
    assert apart.startswith(f"Of the rollouts, {both} come closest ")
    assert "(W = 0.05 to 0.06): " in apart


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
    assert sentence.startswith(f"Of the rollouts, {sentences.NAMES['mean-attention']} comes closest ")


def test_every_rollout_and_baseline_has_a_name():
    every = {*variants.BASELINES, *variants.ROLLOUTS} - {"logit-by-distance-apart"}  # which no card asks for
    assert set(sentences.NAMES) == every == {*SHOWN} - {variants.INFLUENCE}


@pytest.mark.parametrize(
    ("quotients", "said"),
    [
        ((1.0, 1.1), "do not differ separably"),
        ((3.0, 1.1), "the first token 3.00 [2.55, 3.45] times the weight that"),
        ((3.0, 0.5), "the first token 3.00 [2.55, 3.45] times the weight and the last 0.500 [0.050, 0.950] times"),
    ],
)
def test_both_measures_are_asked_and_what_they_say_differently_is_told(quotients, said):
    ends = ("first / middle", "last / middle")
    values = [rows("none", REPLACEMENT, end, value, 0.5) for end, value in zip(ends, (1.1, 40.0), strict=True)]
    values += [rows("none", QUOTIENT, end, value, 0.5) for end, value in zip(ends, quotients, strict=True)]
    sentence = sentences.on_replacement(part(pd.concat(values)))
    assert re.search(r" 1\.10 \[0\.65, 1\.55\] times .*\(16 prompts\)", sentence)
    assert f": {sentences.SHAPES[0, 1]}. " in sentence
    assert said in sentence


@pytest.mark.parametrize(
    ("accuracy", "ends", "said"),
    [
        (0.3, (2.5, 1.1), f"eighth 1.10 [0.65, 1.55] times, by probability: {sentences.SHAPES[1, 0]}"),
        (0.3, (1.1, 0.2), f"by probability: {sentences.SHAPES[0, -1]}"),
        (0.3, (1.0, np.nan), "In the middle half it recalls too little"),
        (0.014, (2.5, 1.1), "Recall is too near to chance"),
    ],
)
def test_recall_is_told_by_place_only_above_three_times_chance(accuracy, ends, said):
    values = [rows("none", RECALL, "accuracy", accuracy, 0.1)]
    eighths = [f"{end} eighth / middle" for end in ("first", "last")]
    values += [rows("none", RECALL, name, of, 0.5) for name, of in zip(eighths, ends, strict=True)]
    sentence = sentences.on_recall(part(pd.concat(values), 128), 200)
    assert f" {Interval(accuracy, accuracy - 0.09, accuracy + 0.09)} of cases; chance is 0.005" in sentence
    assert "(16 contexts of 128 words " in sentence
    assert said.replace("token", "eighth") in sentence
    assert ("in the first eighth " in sentence) == (accuracy == 0.3 and not np.isnan(ends).any())
