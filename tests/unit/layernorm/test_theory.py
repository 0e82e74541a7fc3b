import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.layernorm import theory
from position_card.measures.recency import recency

ALPHAS = st.floats(0, 0.95)
RHOS = st.floats(0, 3)
STRENGTHS = st.floats(0, 5)


def attention_by_rows(scores, strength):
    P = np.zeros_like(scores)
    for i in range(len(scores)):
        weights = [np.exp(strength * (scores[i, j] - scores[i, : i + 1].max())) for j in range(i + 1)]
        P[i, : i + 1] = np.array(weights) / sum(weights)
    return P


def streams(n, alpha, rho, strength, layers, norm):
    """The decoder run on vectors whose Gram matrix is exactly that of the theory, layer by layer: [layers, n, n]."""
    x = np.concatenate([np.full((n, 1), np.sqrt(alpha)), np.sqrt(1 - alpha) * np.eye(n)], axis=1)
    scores = []
    for _ in range(layers):
        y = x if norm == "none" else x / np.linalg.norm(x, axis=1, keepdims=True)
        scores.append(y @ y.T)
        x = rho * (y if norm == "post" else x) + attention_by_rows(scores[-1], strength) @ y
    return np.array(scores)


@pytest.mark.parametrize("norm", theory.PLACEMENTS)
@settings(max_examples=15)
@given(n=st.integers(1, 12), alpha=ALPHAS, rho=RHOS, strength=st.floats(0, 2))
def test_the_recursion_is_a_decoder_on_vectors_in_general_position(norm, n, alpha, rho, strength):
    found = theory.gram_recursion(n, alpha, rho, strength, 3, norm)
    expected = streams(n, alpha, rho, strength, 3, norm)
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-10)


@settings(max_examples=20)
@given(data=st.data(), n=st.integers(1, 10), rho=RHOS, strength=st.floats(0, 2), full=st.booleans())
def test_the_recursion_knows_moments_by_position_and_any_mask(data, n, rho, strength, full):
    """Vectors that have them, and attention a row at a time over what the mask admits."""
    alphas, lengths = (
        np.array(data.draw(st.lists(values, min_size=n, max_size=n))) for values in (ALPHAS, st.floats(0.2, 5))
    )
    x = lengths[:, None] * np.concatenate([np.sqrt(alphas)[:, None], np.diag(np.sqrt(1 - alphas))], axis=1)
    assert theory.gram_of_embeddings(alphas, lengths) == pytest.approx(x @ x.T)
    mask = np.ones((n, n), bool) if full else np.tri(n, dtype=bool)
    found = theory.recursion(theory.gram_of_embeddings(alphas, lengths), mask, rho, strength, 3, "pre")
    for scores in found:
        y = x / np.linalg.norm(x, axis=1, keepdims=True)
        assert scores == pytest.approx(y @ y.T, abs=1e-8)
        weights = np.exp(strength * y @ y.T) * mask
        x = rho * x + weights / weights.sum(axis=1, keepdims=True) @ y


@pytest.mark.parametrize("norm", [False, True])
@settings(max_examples=25)
@given(n=st.integers(1, 30), alpha=ALPHAS, rho=RHOS, strength=STRENGTHS)
def test_the_closed_form_is_the_second_layer_of_the_recursion(norm, n, alpha, rho, strength):
    recursion = theory.gram_recursion(n, alpha, rho, strength, 2, "pre" if norm else "none")
    assert theory.second_scores(n, alpha, rho, strength, norm=norm) == pytest.approx(recursion[1], rel=1e-10)
    if not norm:
        diagonal = np.diagonal(recursion[1])
        assert theory.squared_norms(n, alpha, rho, strength) == pytest.approx(diagonal, rel=1e-10)


@settings(max_examples=60)
@given(n=st.integers(3, 40), alpha=ALPHAS, rho=RHOS, strength=STRENGTHS)
def test_with_a_norm_later_keys_score_higher_and_without_one_all_score_the_same(n, alpha, rho, strength):
    """The theorem."""
    assert (np.diff(theory.squared_norms(n, alpha, rho, strength)) < 0).all()
    normed = theory.second_scores(n, alpha, rho, strength, norm=True)
    plain = theory.second_scores(n, alpha, rho, strength, norm=False)
    for i in range(2, n):
        assert (np.diff(normed[i, :i]) > 0).all()
        assert plain[i, :i] == pytest.approx(np.full(i, plain[i, 0]), rel=1e-12)


@settings(max_examples=20)
@given(n=st.integers(1, 30), alpha=ALPHAS, strength=STRENGTHS)
def test_first_weights_are_a_softmax(n, alpha, strength):
    a, b = theory.first_weights(n, alpha, strength)
    P = attention_by_rows(alpha + (1 - alpha) * np.eye(n), strength)
    assert a == pytest.approx(np.diagonal(P), rel=1e-9)
    assert b[1:] == pytest.approx(P[1:, 0], rel=1e-9)


def test_a_finite_width_pulls_attention_towards_the_token_itself():
    """c_i is linear in 1/d, and what it adds to the sum of a token's weights is what it adds to its own share."""
    n, alpha, rho, s = 20, 0.3, 0.5, 1.0
    c = theory.pull(n, alpha, s, 64)
    assert c[0] == 0
    assert theory.pull(n, alpha, s, 128) == pytest.approx(c / 2)
    assert not theory.pull(n, alpha, s, None).any()
    a, b = theory.first_weights(n, alpha, s)
    M = np.tril(np.outer(b, np.ones(n)), -1) + np.diag(rho + a + c)
    gram = M @ (alpha + (1 - alpha) * np.eye(n)) @ M.T
    assert theory.second_scores(n, alpha, rho, s, norm=False, width=64) == pytest.approx(gram)
    assert theory.squared_norms(n, alpha, rho, s, 64) == pytest.approx(np.diagonal(gram))


def test_the_pull_is_the_first_order_of_a_softmax():
    """E sum_k P_ik x_k along x_i, over random tokens of many small deviations: against a plain simulation."""
    rng, n, d, s = np.random.default_rng(0), 6, 400, 1.0
    found = []
    for _ in range(2000):
        x = rng.normal(size=(n, d)) / np.sqrt(d)
        weights = np.exp(s * x[:-1] @ x[-1])
        found.append(weights @ (x[:-1] @ x[-1]) / (np.exp(s) + weights.sum()))
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(theory.pull(n, 0, s, d)[-1], abs=4 * error)
    assert np.mean(found) > 4 * error


def test_reference_values_of_three_tokens():
    S = theory.second_scores(3, 0, 1, 1, norm=True)
    assert [round(S[i, j], 4) for i, j in ((1, 0), (2, 0), (2, 1))] == [0.1535, 0.1321, 0.1508]


def test_anisotropy_changes_its_role_with_the_residual():
    grid = np.arange(100) / 100
    without, usual = (
        np.array([recency(theory.second_scores(50, alpha, rho, 1, norm=True)) for alpha in grid]) for rho in (0, 1)
    )
    assert (np.diff(without) < 0).all()
    assert grid[usual.argmax()] == pytest.approx(0.27, abs=0.011)
    assert (without > usual).all()


@settings(max_examples=20)
@given(n=st.integers(2, 40), alpha=ALPHAS)
def test_averages_in_layer_2(n, alpha):
    i, j = (index + 1 for index in np.tril_indices(n, -1))
    found = theory.gram_recursion(n, alpha, 0, 0, 2, "pre")[1][i - 1, j - 1]
    assert theory.second_scores_of_averages(i, j, alpha) == pytest.approx(found)
    assert theory.second_scores_of_averages(i, j, 0) == pytest.approx(np.sqrt(j / i))


def test_averages_in_layer_3_with_norm_near_their_limit():
    r = np.array([0.1, 0.25, 0.5, 0.75])
    away = []
    for n in (200, 400):
        found = theory.gram_recursion(n, 0, 0, 0, 3, "pre")[2, -1, np.round(r * n).astype(int) - 1]
        away.append(np.abs(found - theory.third_scores_of_averages(r)))
    assert (away[1] < 0.55 * away[0]).all()  # 1/n
    assert away[1].max() < 0.003
    found = theory.gram_recursion(400, 0, 0, 0, 3, "pre")[2, -1, [39, 99, 199, 299]]
    assert found == pytest.approx([0.535, 0.751, 0.915, 0.982], abs=6e-4)


def test_averages_in_layer_3_without_norm_fall_with_the_key():
    n = 300
    H = np.cumsum(1 / np.arange(1, n + 1))
    j = np.arange(1, n)
    found = theory.gram_recursion(n, 0, 0, 0, 3, "none")[2, -1, :-1]
    assert found == pytest.approx((2 + H[-1] - H[:-1] - H[:-1] / j) / n)
    assert (np.diff(found) < 0).all()
    far = j > n // 2
    assert theory.third_products_of_averages(n, j)[far] == pytest.approx(found[far], rel=0.02)
