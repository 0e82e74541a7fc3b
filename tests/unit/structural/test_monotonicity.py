import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from position_bias.structural import checks, content
from position_bias.structural.monotonicity import TOLERANCE, Monotonicity, monotonicity, pooled, released_kernel
from position_card.rollout.attention import causal_mask, content_free_attention
from tests.unit.structural.conftest import PREDICTED

NO_SHIFTS = pd.DataFrame()
NO_ROWS = pd.DataFrame(columns=content.LABELS)
LABELS = {"model": "m", "checkpoint": "seed0/step9", "dataset": "d", "n": 12, "prompts": 64}
SLOPES = [0.5, 0.125]


def random_kernel(n, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n), size=n) * causal_mask(n)


def by_hand(attention, tolerance):
    """All triples i < i' and k <= i, counted from 1, one by one."""
    n = len(attention)
    triples, gaps = 0, []
    for i, later in combinations(range(1, n + 1), 2):
        for k in range(1, i + 1):
            triples += 1
            early, late = (attention[row - 1][:k].sum() / attention[row - 1].sum() for row in (i, later))
            if late - early > tolerance:
                gaps.append(late - early)
    return triples, gaps


@st.composite
def kernels(draw):
    n = draw(st.integers(1, 8))
    weights = draw(arrays(float, (n, n), elements=st.sampled_from([0.0, 1.0]) | st.floats(0.01, 9)))
    return weights * causal_mask(n) + 0.1 * np.eye(n)


@given(kernel=kernels(), tolerance=st.sampled_from([1e-6, 0.1]))
def test_every_triple_is_compared_once(kernel, tolerance):
    triples, gaps = by_hand(kernel, tolerance)
    found = monotonicity(kernel, tolerance)
    assert found.triples == triples
    assert found.violated == len(gaps)
    assert found.missing == pytest.approx(sum(gaps), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 40])
def test_kernels_known_to_be_monotone_have_no_violation(n):
    alibi = content_free_attention(n, [0.0, 1.0, *SLOPES])
    diagonal = content_free_attention(n, SLOPES, diagonal=[3.0, 0.0])  # positive content only favours oneself
    window = content_free_attention(n, SLOPES, window=3)
    for kernel in [*alibi, *diagonal, *window, alibi.mean(0), np.eye(n)]:
        assert monotonicity(kernel, 1e-12) == Monotonicity((n + 1) * n * (n - 1) // 6, 0, 0.0)


def test_a_violation_is_counted_and_sized():
    kernel = np.array([[1, 0, 0, 0], [0.2, 0.8, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1.0]])
    found = monotonicity(kernel)  # token 3 has 0.3 more on the first token than token 2: one triple of 10
    assert (found.triples, found.violated) == (10, 1)
    assert found.rate == pytest.approx(0.1)
    assert found.gap == pytest.approx(0.3)
    assert found.shortfall == pytest.approx(0.03)


@pytest.mark.parametrize(("by", "violated"), [(0.5 * TOLERANCE, 0), (2 * TOLERANCE, 1)])
def test_rounding_is_no_violation(by, violated):
    assert monotonicity([[1, 0, 0], [0.5, 0.5, 0], [0.5 + by, 0, 0.5 - by]]).violated == violated


def test_layers_are_pooled_triple_by_triple():
    one, other = Monotonicity(10, 1, 0.5), Monotonicity(10, 3, 0.1)
    both = pooled(iter([one, other]))
    assert both == Monotonicity(20, 4, 0.6)
    assert both.gap == pytest.approx(0.15)  # not the mean of the layers' gaps
    assert both.shortfall == pytest.approx(both.rate * both.gap) == pytest.approx((one.shortfall + other.shortfall) / 2)


def test_without_violation_there_is_no_gap():
    assert math.isnan(Monotonicity(10, 0, 0.0).gap)
    assert Monotonicity(10, 0, 0.0).shortfall == 0


# The authors' construction


def test_the_released_kernel_is_a_softmax_of_weights_with_alibi():
    n = 7
    weights = random_kernel(n)
    expected = np.zeros((n, n))
    for slope in SLOPES:
        for i in range(n):
            scores = [math.exp(weights[i, j] - slope * (i - j)) for j in range(i + 1)]
            for j in range(i + 1):
                expected[i, j] += scores[j] / sum(scores) / len(SLOPES)
    np.testing.assert_allclose(released_kernel(weights, SLOPES), expected, atol=1e-15)


# Tables and verdicts


@pytest.fixture(scope="module")
def table():
    monotone = content_free_attention(12, SLOPES).mean(0)
    return content.kernels([(LABELS, np.stack([monotone, random_kernel(12)]), SLOPES)])


def test_the_table_has_each_layer_and_all_triples(table):
    rows = table.set_index(["kernel", "layer"])
    assert list(rows.index) == [(kernel, layer) for kernel in ("measured", "released") for layer in ("all", "1", "2")]
    alone = monotonicity(random_kernel(12))
    assert rows.loc[("measured", "1"), "violations"] == 0
    assert rows.loc[("measured", "2"), "shortfall"] == pytest.approx(alone.shortfall)
    assert rows.loc[("measured", "all"), "violations"] == pytest.approx(alone.rate / 2)
    assert rows.loc[("measured", "all"), "gap"] == pytest.approx(alone.gap)
    assert rows.loc[("released", "2"), "violations"] == monotonicity(released_kernel(random_kernel(12), SLOPES)).rate


def test_the_readable_table_shows_the_range_over_layers(table):
    measured, _ = content.readable_kernels(table).to_dict("records")
    rate = monotonicity(random_kernel(12)).rate
    assert measured["violations"] == f"{rate / 2:.2%} (0.00% to {rate:.2%})"


def test_verdicts_ask_every_layer_and_speak_of_the_claim_by_measured_attention(table):
    alone = content.kernels([(LABELS, random_kernel(12)[None], SLOPES)])
    one_of_two, every = (checks.on_content(NO_ROWS, of, NO_SHIFTS, PREDICTED, "test") for of in (table, alone))
    measured, released = (one_of_two[one_of_two["network"] == kernel] for kernel in ("measured", "released"))
    assert measured["verdict"].to_list() == ["undecided"] * 2  # one layer is monotone, the other is not
    assert measured["low"].to_list() == [0, 0]
    kernel = monotonicity(random_kernel(12))
    assert measured["measured"].to_list() == pytest.approx([kernel.rate / 2, kernel.shortfall / 2])
    assert measured["high"].to_list() == pytest.approx([kernel.rate, kernel.shortfall])
    assert (set(measured["claim"]), set(released["claim"])) == ({"structural-assumption-4-1"}, {""})
    assert set(one_of_two["n"]) == {2}
    assert every.loc[every["network"] == "measured", "verdict"].to_list() == ["fails"] * 2
