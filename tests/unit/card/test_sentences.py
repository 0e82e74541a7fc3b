"""Every sentence of a card, from tables whose meaning is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from position_bias.card import sentences

LEVEL, REPLICATES = 0.9, 40


def rows(estimator, variant, statistic, value, spread):
    """A statistic whose interval reaches about `spread` to either side."""
    again = value + spread * np.linspace(-1, 1, REPLICATES)
    label = {"estimator": estimator, "variant": variant, "statistic": statistic}
    return pd.DataFrame({**label, "replicate": np.arange(-1, REPLICATES), "value": [value, *again]})


def layers(*values):
    token = pd.DataFrame({"estimator": "token", "layer": range(1, len(values) + 1), "value": 0.99})
    frobenius = pd.DataFrame({"estimator": "frobenius", "layer": range(1, len(values) + 1), "value": values})
    return pd.concat([token, frobenius])


@pytest.mark.parametrize(
    ("trend", "spread", "said"), [(-0.8, 0.1, "falls"), (0.8, 0.1, "rises"), (0.2, 0.5, "neither rises nor falls")]
)
def test_lambda_names_its_mean_its_least_and_most_layer_and_its_trend(trend, spread, said):
    values = rows("frobenius", "lambda", "spearman with depth", trend, spread)
    sentence = sentences.on_lambda(layers(0.3, 0.1, 0.2), values, LEVEL)
    assert "is 0.2 on average over the layers, least in layer 2 (0.1) and most in layer 1 (0.3)" in sentence
    assert f"; with depth it {said} (rank correlation {trend} [" in sentence
    assert sentence.endswith(").")


def test_one_layer_has_no_trend():
    values = rows("frobenius", "lambda", "spearman with depth", np.nan, 0)
    assert sentences.on_lambda(layers(0.3), values, LEVEL).endswith("lambda, is 0.3 on average over the layers.")


@pytest.mark.parametrize("sides", list(itertools.product((1, 0, -1), repeat=2)))
def test_influence_names_the_ends_that_differ_from_the_middle(sides):
    ratios = {1: (3.0, 0.5), 0: (1.1, 0.5), -1: (0.4, 0.1)}
    values = pd.concat(
        rows("none", "d", f"{place} / middle", *ratios[side])
        for place, side in zip(("first", "last"), sides, strict=True)
    )
    sentence = sentences.on_influence(values, 256, "the tokenizer's <s>", LEVEL)
    assert sentence.startswith("In prompts of 256 tokens the first one (the tokenizer's <s>) has ")
    assert sentence.endswith(f" times: {sentences.SHAPES[sides]}.")
    assert len(set(sentences.SHAPES.values())) == 9


def distances(**values):
    nulls = {"uniform": 0.2, "last": 0.6, "half": 0.3}
    tables = [rows("none", name, "wasserstein", value, 0.0) for name, value in nulls.items()]
    tables += [rows("frobenius", name, "wasserstein", *value) for name, value in values.items()]
    return pd.concat(
        [*tables, rows("token", "rotary", "wasserstein", 0.0, 0.0), rows("backward", "b", "wasserstein", 0, 0)]
    )


@pytest.mark.parametrize(
    ("value", "spread", "said"),
    [
        (
            0.05,
            0.01,
            "W = 0.05 [0.041, 0.059]: closer than anything that knows nothing of the model; the nearest of that",
        ),
        (0.18, 0.05, ": not separable from the uniform profile (W = 0.2), which knows nothing of the model."),
        (0.35, 0.05, ": farther than the uniform profile (W = 0.2), which knows nothing of the model."),
    ],
)
def test_rollouts_name_the_closest_and_hold_it_to_the_nearest_null(value, spread, said):
    sentence = sentences.on_rollouts(distances(toeplitz=(value, spread), measured=(0.5, 0.0)), LEVEL)
    assert "the rollout of the mean logit by distance comes closest to this influence, W = " in sentence
    assert said in sentence


def test_lambda_of_other_estimators_and_of_the_backward_pass_is_not_what_rollouts_are_judged_by():
    assert "the rollout of the mean attention comes closest" in sentences.on_rollouts(
        distances(measured=(0.4, 0.1)), LEVEL
    )


def test_every_rollout_and_null_has_a_name():
    from position_bias.card.profiles import NULLS

    assert set(sentences.NAMES) == {*NULLS, "a", "b", "c", "content-free", "toeplitz", "rotary", "measured"}
