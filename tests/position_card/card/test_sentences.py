"""Every sentence of a card, from tables whose meaning is known."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from position_card.card import sentences
from position_card.card.profiles import EIGHTHS, ENDS, PROFILE_NAMES, QUOTIENT, RECALL, REPLACEMENT, CardPart, Interval
from position_card.rollout import variants

LEVEL, REPLICATES = 0.9, 40


def rows(estimator, variant, statistic, value, spread):
    """A statistic whose interval reaches about `spread` to either side."""
    again = value + spread * np.linspace(-1, 1, REPLICATES)
    label = {"estimator": estimator, "variant": variant, "statistic": statistic}
    return pd.DataFrame({**label, "replicate": np.arange(-1, REPLICATES), "value": [value, *again]})


def part(values, n=256, prompts=16, lambdas=()):
    token = pd.DataFrame({"estimator": "token", "layer": range(1, len(lambdas) + 1), "value": 0.99})
    frobenius = pd.DataFrame({"estimator": "frobenius", "layer": range(1, len(lambdas) + 1), "value": lambdas})
    return CardPart(n, prompts, LEVEL, values, {"layers": pd.concat([token, frobenius])})


@pytest.mark.parametrize(
    ("trend", "spread", "said"), [(-0.8, 0.1, " falls "), (0.8, 0.1, " rises "), (0.2, 0.5, "neither rises nor falls")]
)
def test_lambda_has_its_mean_extremes_and_trend_with_depth(trend, spread, said):
    values = rows("frobenius", "lambda", "spearman with depth", trend, spread)
    sentence = sentences.on_mixing(part(values, lambdas=(0.3, 0.1, 0.2, 0.2, 0.2, 0.2)))
    assert re.search(r" 0\.2 .* layer 2 \(0\.1\) .* layer 1 \(0\.3\)", sentence)
    assert said in sentence
    assert f"{trend:.3f} [" in sentence
    for few in ((0.3, 0.1, 0.2, 0.2, 0.2), (0.3,)):
        assert f"{trend:.3f}" not in sentences.on_mixing(part(values, lambdas=few))


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((0.928, 0.869, 1.0031), "0.928 [0.869, 1.003]"),  # which side of 1 a bound lies on can be read
        ((463.2, 434.1, 493.4), "463 [434, 493]"),
        ((0.00123, -0.5, 0.7), "0.00 [-0.50, 0.70]"),
    ],
)
def test_bounds_of_an_interval_have_the_decimals_of_its_value(interval, said):
    assert str(Interval(*interval)) == said


def ends_of(variant, ends, values=(3.0, 3.0), spread=0.5):
    found = [rows("none", variant, end, value, spread) for end, value in zip(ends, values, strict=True)]
    return part(pd.concat(found), n=128)


@pytest.mark.parametrize(
    ("others", "named"),
    [
        (
            {RECALL: (3.0, 0.1), REPLACEMENT: (3.0, 3.0)},
            ("random words", "128 tokens", "beginning", "worst at the end"),
        ),
        ({RECALL: (1.1, 1.1)}, ("at no end of 128 tokens", "random words")),
        ({RECALL: (np.nan, np.nan), REPLACEMENT: (3.0, 0.1)}, ("by replacement", "outweighs the last token")),
        ({RECALL: (np.nan, np.nan)}, ("by gradients", "both outweigh")),
        ({}, ("by gradients", "both outweigh")),
    ],
)
def test_a_title_is_of_the_first_measure_that_can_tell(others, named):
    ends = {RECALL: EIGHTHS, REPLACEMENT: ENDS}
    spreads = [[0.05 if value == 0.1 else 0.5 for value in values] for values in others.values()]
    parts = {
        name: part(
            pd.concat(
                rows("none", name, end, value, spread)
                for end, value, spread in zip(ends[name], values, of_ends, strict=True)
            ),
            n=128,
        )
        for (name, values), of_ends in zip(others.items(), spreads, strict=True)
    }
    title = sentences.verdict("mine", ends_of("influence", ENDS), parts)
    assert "mine" in title
    assert [name for name in named if name not in title] == []


@pytest.mark.parametrize("sides", list(itertools.product((1, 0, -1), repeat=2)))
def test_influence_names_the_ends_that_differ_from_the_middle(sides):
    ratios = {1: (3.0, 0.5), 0: (1.1, 0.5), -1: (0.4, 0.1)}
    ends = zip(("first", "last"), sides, strict=True)
    values = [rows("none", "influence", f"{end} / middle", *ratios[side]) for end, side in ends]
    shares = {"last": 0.4, "first quarter / middle": 0.7, "last quarter / middle": 1.3}
    values += [rows("none", "influence", name, value, 0.02) for name, value in shares.items()]
    sentence = sentences.on_influence(part(pd.concat(values)), "the tokenizer's <s>")
    assert f": {sentences.SHAPES[sides]}. " in sentence
    assert re.search(r" 256 .*\(the tokenizer's <s>\) .* 0\.400 \[.* 0\.700 \[.* 1\.30 \[", sentence)
    assert len(set(sentences.SHAPES.values())) == 9


def distances(values):
    """W of baselines and of rollouts, and of what sentences do not go by: other estimators and the backward pass."""
    baselines = {"uniform": 0.2, "last": 0.6, "half": 0.3}
    tables = [rows("none", name, "wasserstein", value, 0.0) for name, value in baselines.items()]
    tables += [rows("frobenius", name, "wasserstein", *value) for name, value in values.items()]
    others = [rows(*of, "wasserstein", 0.0, 0.0) for of in (("token", "mean-query-key"), ("backward", "b"))]
    return part(pd.concat([*tables, *others]))


@pytest.mark.parametrize(
    ("values", "closest", "verdict"),
    [
        ({"c": (0.05, 0.01), "mean-attention": (0.5, 0.0)}, "c", "closer than every baseline"),
        ({"c": (0.18, 0.05), "mean-attention": (0.5, 0.0)}, "c", "not separable from the nearest baseline"),
        ({"c": (0.35, 0.05), "mean-attention": (0.5, 0.0)}, "c", "farther than the nearest baseline"),
        ({"c": (0.05, 0.04), "b": (0.06, 0.0)}, "c b", "closer"),
        ({"c": (0.05, 0.04), "b": (0.06, 0.0), "mean-attention": (0.15, 0.0)}, "c b", "closer"),
        ({"b": (0.053, 0.0), "c": (0.05, 0.0)}, "c b", "closer"),  # below the last digit that is printed
        ({"b": (0.057, 0.0), "c": (0.05, 0.0)}, "c", "closer"),
        ({"b": (0.196, 0.0), "c": (0.5, 0.0)}, "b", "not separable"),
        ({"b": (0.207, 0.0), "c": (0.5, 0.0)}, "b", "farther"),
    ],
)
def test_rollouts_are_held_to_each_other_and_to_baselines(values, closest, verdict):
    names, span = sentences.closest(distances(values))
    assert names == closest.split()
    sentence = sentences.on_rollouts(distances(values))
    assert span in sentence
    assert f": {verdict}" in sentence
    assert [name for name in values if sentences.NAMES[name] in sentence] == (names if len(names) < len(values) else [])


def test_every_rollout_and_baseline_has_a_name():
    every = {*variants.BASELINES, *variants.ROLLOUTS} - {"logit-by-distance-apart"}  # which no card asks for
    assert set(sentences.NAMES) == every == {*PROFILE_NAMES} - {variants.INFLUENCE}


@pytest.mark.parametrize(("quotients", "told"), [((1.0, 1.2), ""), ((3.0, 1.2), "3.00"), ((3.0, 0.4), "3.00 0.400")])
def test_gradients_and_replacement_are_told_apart(quotients, told):
    values = [rows("none", REPLACEMENT, end, value, 0.5) for end, value in zip(ENDS, (1.1, 40.0), strict=True)]
    values += [rows("none", QUOTIENT, end, value, 0.5) for end, value in zip(ENDS, quotients, strict=True)]
    sentence = sentences.on_replacement(part(pd.concat(values)), "prose")
    assert "1.10 [0.65, 1.55]" in sentence
    assert "(16 prompts of 256 tokens of prose)" in sentence
    assert f": {sentences.SHAPES[0, 1]}. " in sentence
    assert [value for value in ("1.00", "1.20", "3.00", "0.400") if f" {value} [" in sentence] == told.split()


@pytest.mark.parametrize(
    ("accuracy", "ends", "shape"),
    [
        (0.3, (2.5, 1.1), sentences.SHAPES[1, 0]),
        (0.3, (1.1, 0.2), sentences.SHAPES[0, -1]),
        (0.3, (1.0, np.nan), None),  # nothing of the middle is recalled
        (0.19, (2.5, 1.1), None),  # less than .2
    ],
)
def test_recall_is_told_by_place_where_there_is_enough(accuracy, ends, shape):
    values = [rows("none", RECALL, "accuracy", accuracy, 0.1)]
    values += [rows("none", RECALL, name, of, 0.5) for name, of in zip(EIGHTHS, ends, strict=True)]
    sentence = sentences.on_recall(part(pd.concat(values), 128), 200)
    assert re.search(rf"{re.escape(str(Interval(accuracy, accuracy - 0.09, accuracy + 0.09)))}.* 0\.005", sentence)
    assert ("times as much probability" in sentence) == (shape is not None)
    assert shape is None or shape.replace("token", "eighth") in sentence
    assert ("`--documents`" in sentence) == (shape is not None)


@pytest.mark.parametrize(
    ("n", "told"), [(128, ("contexts of 128 words in", "in 128 tokens")), (2048, ("16 pieces of 8", "in 2,048 tokens"))]
)
def test_recall_names_its_length_and_material(n, told):
    values = [
        rows("none", RECALL, name, value, 0.1) for name, value in zip(("accuracy", *EIGHTHS), (0.5, 2, 1), strict=True)
    ]
    sentence = sentences.on_recall(part(pd.concat(values), n), 200)
    assert all(words in sentence for words in told)


@pytest.mark.parametrize(
    ("loss", "named"),
    [
        ((6.6, 6.4, 6.8), "no better than chance"),
        ((5.9, 5.7, 6.1), "no better than chance"),  # not separable
        ((5.0, 4.8, 5.2), "no better than the frequencies"),
        ((4.0, 3.4, 4.6), "no better than the frequencies"),
        ((4.0, 3.6, 4.4), None),
    ],
)
def test_a_loss_that_is_not_below_that_of_frequencies_is_told(loss, named):
    values = pd.DataFrame({"estimator": "none", "variant": "loss", "statistic": "mean", "value": loss})
    part = CardPart(8, 9, 0.999, values.assign(replicate=[-1, 0, 1]), {})
    said = sentences.on_chance(part, 6.0, 4.5)
    assert (named in said and "4.5." in said and " 6," in said) if named else said == ""
