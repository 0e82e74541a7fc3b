"""The rollouts of a card: against dense matrices, and against the variants of models with ALiBi."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from position_bias.attention import sliding_window_mask
from position_bias.card import profiles
from position_bias.language_models.measured import Measured
from position_bias.rollout import comparison

N, LAYERS, HEADS, PROMPTS = 20, 3, 2, 6
WINDOWS = (None, 4, 1)
ESTIMATORS = ("frobenius", "token", "backward")


def causal(logits, window=None):
    n = logits.shape[-1]
    weights = np.exp(logits) * sliding_window_mask(n, window or n)
    return weights / weights.sum(-1, keepdims=True)


def measured(rng, *, alibi):
    common = {
        "mixing": {name: rng.uniform(0, 1, (PROMPTS, LAYERS)) for name in ESTIMATORS},
        "influence": rng.uniform(0.1, 1, (PROMPTS, N)),
        "loss": rng.uniform(3, 6, PROMPTS),
        "by_distance": rng.uniform(0, 1, (LAYERS, N)),
        "attention": causal(rng.normal(0, 1, (LAYERS, N, N))),
    }
    if alibi:
        offset, slopes = rng.normal(0, 1, (PROMPTS, LAYERS, HEADS)), np.array([0.5, 0.02])
        return Measured(**common, kernels={}, windows=(None,) * LAYERS, offset=offset, slopes=slopes)
    kernels = {name: rng.normal(0, 1, (LAYERS, HEADS, N)) for name in ("toeplitz", "rotary")}
    return Measured(**common, kernels=kernels, windows=WINDOWS, offset=None, slopes=None)


@pytest.fixture
def without():
    return measured(np.random.default_rng(0), alibi=False)


@pytest.fixture
def with_alibi():
    return measured(np.random.default_rng(1), alibi=True)


def everything(of):
    return np.full((1, of.prompts), 1 / of.prompts)


def found(of, weights):
    ways = profiles.rollouts(of)
    return {(each.estimator, each.variant): each.values for each in profiles.profiles(of, ways, weights)}


def rolled_out(attention, mixing):
    row = np.eye(N)[-1]
    for layer, mix in zip(attention[::-1], mixing[::-1], strict=True):
        row = row @ ((1 - mix) * np.eye(N) + mix * layer)
    return row


def by_distance(kernel, window):
    distance = np.arange(N)[:, None] - np.arange(N)
    return causal(kernel[:, np.abs(distance)], window).mean(0)


def test_rollouts_are_products_of_dense_matrices(without):
    rows = found(without, everything(without))
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


def test_a_model_with_alibi_has_the_variants_that_it_has_elsewhere(with_alibi):
    weights = np.random.default_rng(2).dirichlet(np.ones(PROMPTS), 4)
    elsewhere = comparison.Measured(
        mixing=dict(with_alibi.mixing),
        offset=with_alibi.offset,
        influence=with_alibi.influence,
        slopes=with_alibi.slopes,
        attention=with_alibi.attention,
    )
    rows = found(with_alibi, weights)
    names = {"measured": "mean-attention"}
    expected = {
        (each.estimator, names.get(each.variant, each.variant)): each.values
        for each in comparison.profiles(elsewhere, weights)
    }
    assert rows.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_allclose(rows[key], values, atol=1e-12)


@pytest.mark.parametrize("alibi", [True, False])
def test_long_prompts_are_rolled_out_without_matrices_to_the_same_rows(alibi, monkeypatch):
    of = measured(np.random.default_rng(3), alibi=alibi)
    weights = np.random.default_rng(2).dirichlet(np.ones(PROMPTS), 4)
    expected = found(of, weights)
    monkeypatch.setattr(profiles, "DENSE_UP_TO", N - 1)
    for key, values in found(of, weights).items():
        np.testing.assert_allclose(values, expected[key], atol=1e-12)


def test_what_was_not_measured_is_left_out(without, with_alibi):
    bare = replace(without, attention=None, kernels={})
    assert list(profiles.rollouts(bare)) == ["content-free"]
    assert list(profiles.rollouts(with_alibi)) == ["b", "mean-attention"]


def test_tables_have_every_profile_every_layer_and_their_intervals(without):
    layers, curves, values = profiles.compare(without, replicates=50, level=0.9, seed=0)
    assert len(layers) == len(ESTIMATORS) * LAYERS
    for estimator in ESTIMATORS:
        rows = layers[layers["estimator"] == estimator]
        assert rows["layer"].tolist() == [1, 2, 3]
        np.testing.assert_allclose(rows["value"], without.mixing[estimator].mean(0))
        spread = without.mixing[estimator].std(0) / np.sqrt(PROMPTS)
        width = (rows["high"] - rows["low"]).to_numpy()
        assert (width > spread).all()
        assert (width < 5 * spread).all()
    kinds = {"influence", "uniform", "last", "half", "content-free", "logit-by-distance", "mean-query-key"}
    assert set(curves["variant"]) == {*kinds, "mean-attention"}
    of_influence = curves[curves["variant"] == "influence"]
    np.testing.assert_allclose(of_influence["value"], without.influence.sum(0) / without.influence.sum())
    assert (of_influence["low"] < of_influence["value"]).all()
    assert (of_influence["value"] < of_influence["high"]).all()
    assert set(values["replicate"]) == set(range(-1, 50))
    assert set(values.loc[values["variant"] == "lambda", "estimator"]) == set(ESTIMATORS)
    pd.testing.assert_frame_equal(values, profiles.compare(without, 50, 0.9, 0)[2])


def test_a_rollout_through_the_true_attention_is_the_closest():
    """One layer, all of it attention, whose last row is the influence: W is 0."""
    attention = causal(np.random.default_rng(0).normal(0, 1, (1, N, N)))
    influence = np.tile(attention[0, -1], (2, 1))
    lambdas = {"frobenius": np.ones((2, 1))}
    exact = Measured(lambdas, influence, np.ones(2), attention[:, -1], attention, {}, (None,), None, None)
    _, _, values = profiles.compare(exact, 5, 0.9, 0)
    distance = values[(values["statistic"] == "wasserstein") & (values["variant"] == "mean-attention")]["value"]
    np.testing.assert_allclose(distance, 0, atol=1e-15)


def test_quarters_leave_the_first_and_the_last_token_out(without):
    """Of 20 tokens, the middle half has those from 5 to 14; influence is their number, but for the ends."""
    influence = np.tile([1e6, *range(1, N - 1), 1e6], (PROMPTS, 1))
    _, _, values = profiles.compare(replace(without, influence=influence), 5, 0.9, 0)
    rows = values[values["statistic"].isin(profiles.QUARTERS)]
    assert set(rows["variant"]) == {"influence"}
    expected = {"first quarter / middle": 2.5 / 9.5, "last quarter / middle": 16.5 / 9.5}
    for name, of in rows.groupby("statistic"):
        assert list(of["replicate"]) == list(range(-1, 5))
        assert of["value"].to_numpy() == pytest.approx(expected[name])
