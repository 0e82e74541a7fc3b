from math import exp, sqrt

import numpy as np
import pytest

from position_bias.postnorm import theory

VOCABULARIES = (2, 3, 8, 16, 32)


def softmax_distance(s, v, gap):
    """Total variation distance of a softmax with two values of logits to the uniform target, term by term."""
    weights = [1.0] * s + [exp(gap)] * (v - s)
    target = [0.0] * s + [1 / (v - s)] * (v - s)
    return sum(abs(weight / sum(weights) - of_target) for weight, of_target in zip(weights, target, strict=True)) / 2


def construction_gaps(v, normalised):
    """Logit gaps of uniform attention over s = 1..v-1 random tokens, and how unequal logits within a group are."""
    embeddings = theory.simplex(v)
    order = np.random.default_rng(v).permutation(v)
    gaps, spread = [], 0.0
    for s in range(1, v):
        present, absent = order[:s], order[s:]
        mean = sum(embeddings[token] for token in present) / s
        if normalised:
            mean = mean / sqrt(sum(x * x for x in mean))
        logits = -embeddings @ mean
        gaps.append(logits[absent].mean() - logits[present].mean())
        spread = max(spread, np.ptp(logits[present]), np.ptp(logits[absent]))
    return np.array(gaps), spread


@pytest.mark.parametrize("v", VOCABULARIES)
@pytest.mark.parametrize("gap", [-2.0, 0.0, 0.3, 5.0])
def test_the_distance_is_that_of_a_softmax(v, gap):
    expected = [softmax_distance(s, v, gap) for s in range(1, v)]
    np.testing.assert_allclose(theory.total_variation(np.arange(1, v), v, gap), expected, rtol=1e-12, atol=1e-15)


def test_without_a_gap_the_distance_is_the_share_present_and_it_ends_at_0_and_1():
    np.testing.assert_allclose(theory.total_variation([1, 4, 7], 8, 0), [1 / 8, 4 / 8, 7 / 8])
    np.testing.assert_array_equal(theory.total_variation(3, 8, [np.inf, -np.inf]), [0, 1])


def test_laws_are_what_their_names_say():
    s, v, constant = np.arange(1, 8), 8, 3.0
    expected = {
        "C/s": [3 / n for n in s],
        "C/sqrt(s(v-s))": [3 / sqrt(n * (8 - n)) for n in s],
        "C/2^s": [3 * 0.5**n for n in s],
    }
    assert list(theory.LAWS) == list(expected)
    for law, gaps in expected.items():
        np.testing.assert_allclose(theory.law_gap(law, s, v, constant), gaps, rtol=1e-14)


@pytest.mark.parametrize("v", VOCABULARIES)
def test_embeddings_are_a_regular_simplex(v):
    embeddings = theory.simplex(v)
    assert embeddings.shape == (v, v - 1)
    expected = np.where(np.eye(v) == 1, 1.0, -1 / (v - 1))
    np.testing.assert_allclose(embeddings @ embeddings.T, expected, atol=1e-14)
    np.testing.assert_allclose(embeddings.sum(0), 0, atol=1e-13)


@pytest.mark.parametrize("v", VOCABULARIES)
@pytest.mark.parametrize("law", [theory.DISPERSED, theory.NORMALISED])
def test_the_construction_follows_its_law(v, law):
    gaps, spread = construction_gaps(v, normalised=law == theory.NORMALISED)
    s = np.arange(1, v)
    np.testing.assert_allclose(gaps, theory.law_gap(law, s, v, theory.simplex_constant(law, v)), rtol=1e-11)
    assert spread < 1e-12  # one logit for the present and one for the absent, so that the distance is theirs
