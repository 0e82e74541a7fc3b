"""The one list of rollouts and baselines: against dense matrices, and in both ways that a length can be taken."""

from dataclasses import replace

import numpy as np
import pytest

from position_card.rollout import variants
from position_card.rollout.measurement import ESTIMATORS
from tests.measurements import LAYERS, PROMPTS, WINDOWS, causal, in_groups, made

N = 20
EVERY = {name: name for name in (variants.INFLUENCE, *variants.BASELINES, *variants.ROLLOUTS)}


@pytest.fixture
def without():
    return made(np.random.default_rng(0), alibi=False)


@pytest.fixture
def with_alibi():
    return made(np.random.default_rng(1), alibi=True)


def found(measurement, weights):
    return {(v.estimator, v.name): v.profiles(weights) for v in variants.variants(measurement, EVERY)}


def rolled_out(attention, mixing):
    row = np.eye(N)[-1]
    for layer, mix in zip(attention[::-1], mixing[::-1], strict=True):
        row = row @ ((1 - mix) * np.eye(N) + mix * layer)
    return row


def by_distance(kernel, window):
    distance = np.arange(N)[:, None] - np.arange(N)
    return causal(kernel[:, np.abs(distance)], window).mean(0)


def test_rollouts_are_products_of_dense_matrices(without):
    rows = found(without, np.full((1, PROMPTS), 1 / PROMPTS))
    attention = {
        name: [by_distance(kernel, window) for kernel, window in zip(kernels, WINDOWS, strict=True)]
        for name, kernels in {
            "logit-by-distance": without.kernels["toeplitz"],
            "mean-query-key": without.kernels["rotary"],
            "content-free": np.zeros((LAYERS, 1, N)),
        }.items()
    }
    attention["mean-attention"] = list(without.attention)
    assert {variant for estimator, variant in rows if estimator == "frobenius"} == set(attention)
    for estimator in ESTIMATORS:
        mixing = without.mixing[estimator].mean(0)
        for name, layers in attention.items():
            np.testing.assert_allclose(rows[estimator, name][0], rolled_out(layers, mixing), atol=1e-12)
    half = rolled_out(attention["content-free"], [0.5] * LAYERS)
    np.testing.assert_allclose(rows["none", "half"][0], half, atol=1e-12)


@pytest.mark.parametrize("alibi", [True, False])
def test_long_prompts_are_rolled_out_without_matrices(alibi, monkeypatch):
    measurement = made(np.random.default_rng(3), alibi=alibi)
    weights = np.random.default_rng(2).dirichlet(np.ones(PROMPTS), 4)
    expected = found(measurement, weights)
    monkeypatch.setattr(variants, "DENSE_UP_TO", N - 1)
    for key, values in found(measurement, weights).items():
        np.testing.assert_allclose(values, expected[key], atol=1e-12)


def test_what_does_not_apply_or_was_not_measured_is_left_out(without, with_alibi):
    weights = np.full((1, PROMPTS), 1 / PROMPTS)
    fixed = {("none", name) for name in ("influence", "uniform", "last", "half")}
    bare = replace(without, attention=None, kernels={})
    assert found(bare, weights).keys() == fixed | {(estimator, "content-free") for estimator in ESTIMATORS}
    through = {(estimator, name) for estimator in ESTIMATORS for name in ("b", "c", "mean-attention")}
    assert found(with_alibi, weights).keys() == fixed | {("none", "a")} | through


def test_the_chosen_ones_come_in_their_order_by_their_names(with_alibi):
    chosen = {"influence": "d", "last": "last", "mean-attention": "measured", "uniform": "uniform", "b": "b"}
    names = [(v.estimator, v.name) for v in variants.variants(with_alibi, chosen, ["token"])]
    fixed = [("none", "d"), ("none", "last"), ("none", "uniform")]
    assert names == [*fixed, ("token", "measured"), ("token", "b")]


def test_attention_that_a_sink_takes_is_left_out_of_shares(without):
    """Of a sink of any size in every row, the same shares are left; a token that reads nothing keeps to itself."""
    weights = np.full((1, PROMPTS), 1 / PROMPTS)
    sinks = np.random.default_rng(4).uniform(0.05, 1, (LAYERS, N, 1))
    expected = found(without, weights)
    rows = found(replace(without, attention=without.attention * sinks), weights)
    for key, values in rows.items():
        np.testing.assert_allclose(values, expected[key], atol=1e-12)
        assert values.sum() == pytest.approx(1)
    nothing = found(replace(without, attention=np.zeros((LAYERS, N, N))), weights)
    np.testing.assert_array_equal(nothing["token", "mean-attention"], np.eye(N)[-1:])


def test_weighed_groups_have_the_rollout_of_their_means(without):
    """Each row of weights by dense matrices of its own; rows of attention are divided by their totals."""
    measurement = in_groups(np.random.default_rng(5), without)
    of_groups = np.random.default_rng(6).dirichlet(np.ones(3), 4)
    weights = of_groups[:, measurement.groups] / (PROMPTS / 3)
    rows = found(measurement, weights)
    for replicate, (of_prompts, share) in enumerate(zip(weights, of_groups, strict=True)):
        mixing = of_prompts @ without.mixing["token"]
        attention = np.tensordot(share, measurement.attention_of_groups, 1)
        layers = {"mean-attention": list(attention / attention.sum(-1, keepdims=True))}
        for name, kernel in {"logit-by-distance": "toeplitz", "mean-query-key": "rotary"}.items():
            kernels = np.tensordot(share, measurement.kernels_of_groups[kernel], 1)
            layers[name] = [by_distance(of_layer, window) for of_layer, window in zip(kernels, WINDOWS, strict=True)]
        for name, of_name in layers.items():
            np.testing.assert_allclose(rows["token", name][replicate], rolled_out(of_name, mixing), atol=1e-12)
        influence = of_prompts @ without.influence
        np.testing.assert_allclose(rows["none", "influence"][replicate], influence / influence.sum())


def test_with_equal_weights_groups_change_no_rollout(without):
    measurement, weights = in_groups(np.random.default_rng(5), without), np.full((1, PROMPTS), 1 / PROMPTS)
    held = replace(measurement, groups=None, attention_of_groups=None, kernels_of_groups={})
    expected = found(held, weights)
    for key, values in found(measurement, weights).items():
        np.testing.assert_allclose(values, expected[key], rtol=1e-11, atol=1e-14)


def test_prompts_of_one_group_must_weigh_alike(without):
    measurement = in_groups(np.random.default_rng(5), without)
    weights = np.full((2, PROMPTS), 1 / PROMPTS)
    weights[1, :2] += [0.1, -0.1]
    with pytest.raises(ValueError, match="one group"):
        found(measurement, weights)
