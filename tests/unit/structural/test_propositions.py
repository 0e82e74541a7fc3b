from itertools import product
from math import exp, prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.structural import checks_theory, propositions
from position_bias.structural.propositions import (
    attention_floor,
    beyond_first,
    content_drift,
    exponential_bound,
    monotonicity_violation,
    positional_drift,
    prefix_mass,
    primacy_drift,
    residual_drift,
    reweighted,
    rollouts,
    softmax_floor,
    tail_bound,
)
from position_bias.verdicts.judge import COLUMNS, KEYS
from position_card.rollout import last_row
from position_card.rollout.attention import causal_mask, content_free_attention, sliding_window_mask
from tests.unit.structural.conftest import ROOT

ROUNDING = 1e-12
MIXING = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)


def causal_kernels(rng, shape, n, window):
    """Random causal attention [*shape, n, n], from almost uniform to almost on one token."""
    mask = sliding_window_mask(n, window)
    spread = rng.choice([0.3, 1.0, 10.0], size=(*shape, 1, 1))
    weights = np.where(mask, rng.gamma(spread, size=(*shape, n, n)), 0)
    return weights / weights.sum(-1, keepdims=True)


def monotone_kernels(rng, shape, n, window):
    """Random causal attention that satisfies Assumption 4.1: the prefix masses of random rows, each cutoff sorted.

    Where one column was at most the next one before sorting, it is so afterwards; ones and zeros that the mask puts
    into a column are its largest and smallest entries and stay in place.
    """
    prefix = prefix_mass(causal_kernels(rng, shape, n, window))
    prefix[..., ~causal_mask(n) | np.eye(n, dtype=bool)] = 1
    falling = -np.sort(-np.minimum(prefix, 1), axis=-2)
    return np.diff(falling, axis=-1, prepend=0)


@st.composite
def settings_of_a_model(draw, kernels):
    n, layers, heads = draw(st.integers(2, 9)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mixing = np.array(draw(st.lists(MIXING, min_size=layers, max_size=layers)))
    return kernels(rng, (layers, heads), n, draw(st.sampled_from([n, 2, 3]))), mixing, rng


MONOTONE = settings_of_a_model(monotone_kernels)
CAUSAL = settings_of_a_model(lambda rng, shape, n, window: causal_kernels(rng, shape, n, n))


def recency_favouring(rng, heads):
    """Logits that grow from each key to the next, differently for each query, head and layer."""
    return rng.exponential(rng.choice([0.01, 1.0, 5.0]), size=heads.shape).cumsum(-1)


# Assumption 4.1


@given(model=MONOTONE)
def test_the_random_monotone_kernels_are_stochastic_causal_and_monotone(model):
    heads, _, _ = model
    n = heads.shape[-1]
    assert (heads >= 0).all()
    np.testing.assert_allclose(heads.sum(-1), 1, rtol=1e-14)
    assert (heads[..., ~causal_mask(n)] == 0).all()
    assert monotonicity_violation(heads) < ROUNDING
    assert monotonicity_violation(heads.mean(1)) < ROUNDING  # Appendix B: convexity keeps the assumption


@given(model=CAUSAL)
def test_the_violation_is_that_of_the_worst_triple(model):
    heads, _, _ = model
    kernel = heads[0, 0]
    n = len(kernel)
    worst = max(
        sum(kernel[later, : k + 1]) - sum(kernel[i, : k + 1])
        for i in range(n)
        for later in range(i + 1, n)
        for k in range(i + 1)
    )
    assert monotonicity_violation(kernel) == pytest.approx(max(worst, 0), abs=1e-14)
    assert monotonicity_violation(heads) >= monotonicity_violation(kernel)


@given(
    n=st.integers(1, 30),
    slopes=st.lists(st.sampled_from([0.0, 9.0]) | st.floats(0, 2), min_size=1, max_size=4),
    content=st.lists(st.floats(-30, 30), min_size=4, max_size=4),
    window=st.none() | st.integers(1, 31),
)
def test_alibi_with_diagonal_content_of_any_sign_and_size_satisfies_the_assumption(n, slopes, content, window):
    heads = content_free_attention(n, slopes, content[: len(slopes)], window)
    assert monotonicity_violation(heads) < ROUNDING
    assert monotonicity_violation(heads.mean(0)) < ROUNDING


# Propositions 4.2-4.5, on any kernel that satisfies the assumption


@settings(max_examples=80)
@given(model=MONOTONE)
def test_prefix_mass_grows_with_depth(model):
    heads, mixing, _ = model
    slack = primacy_drift(heads.mean(1), mixing)
    assert slack.shape == (len(mixing) - 1, heads.shape[-1] - 1)
    assert slack.min(initial=0) > -ROUNDING


@settings(max_examples=80)
@given(model=MONOTONE)
def test_prefix_mass_grows_with_lambda(model):
    heads, mixing, rng = model
    larger = mixing + rng.uniform(0, 1 - mixing)
    slack = residual_drift(heads.mean(1), mixing, larger)
    assert slack.shape == (heads.shape[-1] - 1,)
    assert slack.min() > -ROUNDING
    np.testing.assert_array_equal(residual_drift(heads.mean(1), larger, mixing), -slack)


@settings(max_examples=80)
@given(model=MONOTONE)
def test_a_bias_to_recent_keys_takes_prefix_mass(model):
    heads, mixing, rng = model
    assert positional_drift(heads, recency_favouring(rng, heads), mixing).min() > -ROUNDING


@settings(max_examples=80)
@given(model=MONOTONE)
def test_it_is_enough_that_attention_with_the_bias_is_monotone(model):
    heads, mixing, rng = model
    bias = recency_favouring(rng, heads)
    assert positional_drift(reweighted(heads, -bias), bias, mixing).min() > -ROUNDING


@settings(max_examples=80)
@given(model=MONOTONE)
def test_diagonal_content_of_one_sign_drifts_one_way(model):
    heads, mixing, rng = model
    n = heads.shape[-1]
    content = rng.exponential(rng.choice([0.1, 3.0]), size=heads.shape[:2])
    assert content_drift(heads, content, mixing).shape == (n * (n - 1) // 2,)
    assert content_drift(heads, content, mixing).min() > -ROUNDING
    assert content_drift(heads, -content, mixing).max() < ROUNDING


# What happens without the hypotheses


def test_each_proposition_fails_on_a_kernel_that_is_not_monotone():
    lower, upper = checks_theory.NOT_MONOTONE
    assert monotonicity_violation(lower) == pytest.approx(0.9 - 0.05)
    assert monotonicity_violation(upper) == 0
    ones = np.ones(2)
    # From token 3, one layer leaves 0.9 on the first token; two leave 0.05 + 0.5 * 0.05 + 0.45 * 0.9.
    assert primacy_drift(checks_theory.NOT_MONOTONE, ones)[0, 0] == pytest.approx(0.48 - 0.9)
    # With lambda = 0.1 in the upper layer, that layer keeps 0.9 of what one layer leaves.
    assert residual_drift(checks_theory.NOT_MONOTONE, np.array([1, 0.1]), ones)[0] == pytest.approx(0.9 * (0.48 - 0.9))
    heads, above = checks_theory.NOT_MONOTONE[:, None], np.array([0.0, 1.0])
    assert positional_drift(heads, above[:, None, None, None] * np.arange(3), ones).min() < -0.1
    assert content_drift(heads, above[:, None], ones).min() < -0.1


# Theorem 5.5 and Lemma 5.4, on any causal kernel


@settings(max_examples=80)
@given(model=CAUSAL)
def test_the_bounds_are_those_that_the_theorem_prints(model):
    heads, mixing, _ = model
    attention, n = heads.mean(1), heads.shape[-1]
    floor = min(layer[i, j] for layer in attention for i in range(n) for j in range(i + 1))
    assert attention_floor(attention) == floor
    matrix = rollouts(attention, mixing)[-1]
    for j in range(1, n + 1):
        bound = prod(1 - mix * (j - 1) * floor for mix in mixing)
        looser = exp(-(j - 1) * floor * sum(mixing))
        if j > 1:
            assert tail_bound(mixing, floor, n)[-1, j - 2] == pytest.approx(bound, rel=1e-12)
            assert exponential_bound(mixing, floor, n)[-1, j - 2] == pytest.approx(looser, rel=1e-12)
        assert (matrix[:, j - 1] <= bound * (1 + ROUNDING)).all()
        assert bound <= looser * (1 + ROUNDING)
        kept = prod((1 - mix) + mix * floor for mix in mixing)  # 1 - mix (1 - floor), where nothing cancels
        assert matrix[j - 1, j - 1] >= kept * (1 - ROUNDING)


@given(n=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.0, 1.0, 20.0]))
def test_the_floor_of_the_lemma(n, seed, scale):
    logits = np.random.default_rng(seed).normal(0, scale, (2, n, n))
    slack = softmax_floor(logits)
    assert slack.min() > -ROUNDING
    for head, found in zip(logits, slack, strict=True):
        widest = max(max(head[i, : i + 1]) - min(head[i, : i + 1]) for i in range(n))
        for i in range(n):
            weights = np.exp(head[i, : i + 1]) / np.exp(head[i, : i + 1]).sum()
            assert found[i] == pytest.approx(min(weights) / (exp(-widest) / n) - 1, rel=1e-9, abs=1e-9)


# Against sums over paths, for few tokens


@settings(max_examples=25)
@given(model=CAUSAL.filter(lambda model: model[0].shape[-1] <= 6 and len(model[1]) <= 4))
def test_a_rollout_is_a_sum_over_paths(model):
    heads, mixing, _ = model
    attention, n, depth = heads.mean(1), heads.shape[-1], len(mixing)

    def influence(i, j):  # of token j on token i: every way down through the layers, the last layer first
        paths = ((i, *between, j) for between in product(range(n), repeat=depth - 1))
        return sum(
            prod(
                (1 - mixing[t]) * (path[depth - 1 - t] == path[depth - t])
                + mixing[t] * attention[t, path[depth - 1 - t], path[depth - t]]
                for t in range(depth)
            )
            for path in paths
        )

    expected = [[influence(i, j) for j in range(n)] for i in range(n)]
    np.testing.assert_allclose(rollouts(attention, mixing)[-1], expected, rtol=0, atol=1e-14)


@settings(max_examples=50)
@given(model=CAUSAL)
def test_drifts_are_differences_of_prefix_sums(model):
    heads, mixing, rng = model
    n, depth = heads.shape[-1], len(mixing)
    larger, content, bias = np.ones(depth), rng.normal(size=heads.shape[:2]), rng.normal(size=heads.shape)

    def prefix(heads, mixing, k, row=-1):
        matrix = np.eye(n)
        for mix, layer in zip(mixing, heads.mean(1), strict=True):
            matrix = (1 - mix) * matrix + mix * layer @ matrix
        return sum(matrix[row, :k])

    weights = heads * np.exp(bias)
    biased = weights / weights.sum(-1, keepdims=True)
    weights = heads * np.where(np.eye(n, dtype=bool), np.exp(content[..., None, None]), 1)
    with_content = weights / weights.sum(-1, keepdims=True)
    cutoffs = range(1, n)
    expected = {
        "4.2": [
            [prefix(heads[: t + 1], mixing[: t + 1], k) - prefix(heads[:t], mixing[:t], k) for k in cutoffs]
            for t in range(1, depth)
        ],
        "4.3": [prefix(heads, larger, k) - prefix(heads, mixing, k) for k in cutoffs],
        "4.4": [prefix(heads, mixing, k) - prefix(biased, mixing, k) for k in cutoffs],
        "4.5": [
            prefix(heads, mixing, k, row) - prefix(with_content, mixing, k, row)
            for row in cutoffs
            for k in cutoffs[:row]
        ],
    }
    found = {
        "4.2": primacy_drift(heads.mean(1), mixing),
        "4.3": residual_drift(heads.mean(1), mixing, larger),
        "4.4": positional_drift(heads, bias, mixing),
        "4.5": content_drift(heads, content, mixing),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found[name].ravel(), np.ravel(values), rtol=0, atol=1e-13, err_msg=name)


def test_reweighted_attention_is_that_of_the_summed_logits():
    np.testing.assert_allclose(
        reweighted(content_free_attention(7, [0.2, 1.0], window=3), np.array([1.5, -2.0])[:, None, None] * np.eye(7)),
        content_free_attention(7, [0.2, 1.0], [1.5, -2.0], window=3),
        rtol=1e-13,
    )


@pytest.mark.parametrize("slopes", [[0.0], [0.5, 0.1]])
def test_what_lies_beyond_the_first_token(slopes):
    attention, mixing = content_free_attention(8, slopes).mean(0), 0.9 / np.arange(1, 40)
    dense = 1 - rollouts(np.stack([attention] * 39), mixing)[:, -1, 0]
    np.testing.assert_allclose(beyond_first(attention, mixing), dense, rtol=0, atol=1e-14)
    assert beyond_first(attention, np.ones(300))[-1] > 0  # although 1 - P would have rounded to 0


# Appendix A.1: the lemmas that the propositions rest on


@given(settings_of_a_model(monotone_kernels), MIXING)
def test_residual_kernels_inherit_stochastic_monotonicity(drawn, mixing):
    """Lemma A.3."""
    for heads in drawn[0]:
        assert monotonicity_violation(last_row.transition(heads[0], mixing)) <= ROUNDING


@given(settings_of_a_model(monotone_kernels), st.integers(0, 2**32 - 1))
def test_monotone_kernels_keep_the_order_of_distributions_and_of_vectors(drawn, seed):
    """Lemmas A.2 and A.5."""
    kernel = drawn[0][0, 0]
    rng = np.random.default_rng(seed)
    earlier, later = np.sort(rng.dirichlet(np.ones(len(kernel)), size=2).cumsum(axis=1), axis=0)[::-1]
    dominated, dominating = (np.diff(prefix, prepend=0) @ kernel for prefix in (earlier, later))
    assert (prefix_mass(dominated) - prefix_mass(dominating)).min() >= -ROUNDING
    falling = -np.sort(-rng.normal(size=len(kernel)))
    assert np.diff(kernel @ falling).max(initial=0) <= ROUNDING


@given(settings_of_a_model(causal_kernels), st.integers(0, 2**32 - 1))
def test_rowwise_dominance_is_dominance_after_a_step_from_any_distribution(drawn, seed):
    """Lemma A.4, which needs no monotone kernel: the second kernel moves mass of every row to later tokens."""
    kernel = drawn[0][0, 0]
    rng = np.random.default_rng(seed)
    prefix = prefix_mass(kernel)
    moved = prefix * np.sort(rng.uniform(size=kernel.shape), axis=-1)
    later = np.diff(np.where(prefix >= 1 - ROUNDING, prefix, moved), prepend=0)
    start = rng.dirichlet(np.ones(len(kernel)))
    assert (prefix_mass(start @ kernel) - prefix_mass(start @ later)).min() >= -ROUNDING


def test_a_kernel_that_is_not_monotone_breaks_the_lemmas():
    kernel = checks_theory.NOT_MONOTONE[0]
    assert monotonicity_violation(kernel) > 0.8
    assert np.diff(kernel @ np.array([1.0, 0, 0])).max() > 0.8  # a falling vector rises


# Other kernels than ALiBi's


@pytest.mark.parametrize("n", [2, 5, 9])
def test_other_kernels_are_causal_attention_that_satisfies_the_assumption(n):
    for heads in checks_theory.other_kernels(n).values():
        np.testing.assert_allclose(heads.sum(-1), 1, atol=ROUNDING)
        assert (heads[..., ~causal_mask(n)] == 0).all()
        assert heads.min() >= 0
        assert monotonicity_violation(heads) <= ROUNDING
    logarithmic = checks_theory.other_kernels(n)["logarithmic decay"][0, 1, -1]
    expected = np.arange(n, 0, -1.0) ** -2
    np.testing.assert_allclose(logarithmic, expected / expected.sum())


def rotated(vector, angles):
    """The two planes of a vector [4], each turned by its angle."""
    planes = zip(vector.reshape(2, 2), angles, strict=True)
    return np.concatenate([np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) @ plane for plane, a in planes])


def test_rotary_logits_are_those_of_rotated_vectors():
    rng = np.random.default_rng(0)
    size = (2, checks_theory.DEPTH, 5, 2)
    query, key = (rng.normal(size=size) + 1j * rng.normal(size=size)).view(float)
    found = checks_theory.rotary_logits(5)
    for layer, i, j in ((0, 4, 0), (3, 2, 1), (11, 4, 4)):
        turned = rotated(query[layer, i], (i, 0.1 * i)) @ rotated(key[layer, j], (j, 0.1 * j))
        assert found[layer, i, j] == pytest.approx(turned)


# Lemma 5.4(i)


def test_hidden_norms_are_those_of_layers_written_out():
    rng = np.random.default_rng(1)
    states, values, logits, mixing = rng.normal(size=(4, 3)), rng.normal(size=(5, 3, 3)), rng.normal(size=(3, 3)), 0.4
    found = propositions.hidden_norms(states, np.full(5, mixing), values, logits)
    first, expected = max(np.linalg.norm(row) for row in states), []
    for value in values:
        after = np.empty_like(states)
        for i, row in enumerate(states):
            weights = np.array([exp(row @ logits @ states[j]) for j in range(i + 1)])
            read = (weights / weights.sum()) @ states[: i + 1]
            after[i] = (1 - mixing) * row + mixing * read @ value
        states = after
        expected.append(max(np.linalg.norm(row) for row in states) / first)
    np.testing.assert_allclose(found, expected)


@given(st.integers(0, 2**32 - 1), MIXING)
def test_hidden_states_of_any_layers_stay_below_the_bound_of_the_proof(seed, mixing):
    rng = np.random.default_rng(seed)
    states, values, logits = rng.normal(size=(4, 3)), rng.normal(size=(20, 3, 3)), rng.normal(size=(3, 3))
    mixings = np.full(20, mixing)
    excess = np.maximum(np.linalg.norm(values, 2, axis=(1, 2)) - 1, 0)
    bound = propositions.growth_bound(mixings, excess)
    assert (propositions.hidden_norms(states, mixings, values, logits) <= bound * (1 + ROUNDING)).all()
    assert (bound <= propositions.exponential_growth(mixings, excess) * (1 + ROUNDING)).all()


# Verdicts


def test_every_prediction_of_theory_holds():
    checks = checks_theory.proposition_checks(ROOT / "published/predictions.csv", "default")
    assert list(checks.columns) == [*COLUMNS, *KEYS]
    assert set(checks["verdict"]) == {"holds"}
    assert not checks.duplicated(["claim", *KEYS]).any()


def test_a_comparison_is_judged_by_its_largest_violation_and_shows_its_largest_effect():
    found = checks_theory._violation("drift", [np.array([[0.3, -0.2]]), np.array([0.1])])
    assert found.table.to_dict("records") == [{"violation": 0.2, "effect": 0.3}]
    below = SimpleNamespace(relation="<", bound=0)
    assert found.estimate(found.table["violation"], below, 0.9)[:4] == (0.2, 0.2, 0.2, 3)
    kept = checks_theory._violation("drift", [np.array([0.3, 0.2])])
    assert kept.table.to_dict("records") == [{"violation": 0, "effect": 0.3}]


# What the figures draw


def test_forces_go_where_the_propositions_say_and_meet_in_one_setting():
    table = checks_theory.forces()
    for (varied, mask), curve in table.groupby(["varied", "mask"]):
        steps = np.diff(curve["value"]) * (1 if varied in ("depth", "lambda") else -1)
        assert steps.min() > -ROUNDING, (varied, mask)
        assert steps.sum() > 0.1, (varied, mask)
    shared = table[table["shared"]].groupby("mask")["value"]
    assert (shared.count() == 4).all()
    causal = last_row.dense_last_row(64, [0.3] * 12, [1 / 16])[:16].sum()
    windowed = last_row.dense_last_row(64, [0.3] * 12, [1 / 16], window=checks_theory.SETTING_WINDOW)[:16].sum()
    np.testing.assert_allclose(shared.get_group("causal"), causal, rtol=1e-13)
    np.testing.assert_allclose(shared.get_group("window"), windowed, rtol=1e-13)


def test_the_dichotomy_lies_between_its_bounds():
    table = checks_theory.dichotomy()
    assert set(table["schedule"]) == set(checks_theory.EXPONENTS)
    for _, curve in table.groupby(["schedule", "attention"]):
        assert curve["depth"].iloc[[0, -1]].tolist() == [1, checks_theory.DEEPEST]
        assert (np.diff(curve["value"]) <= 0).all()
    assert (table["lower"] <= table["value"] + ROUNDING).all()
    assert (table["value"] <= table["upper"] + ROUNDING).all()
