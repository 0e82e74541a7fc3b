from itertools import product
from math import ceil, comb, exp, log, pi, prod, sqrt

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.emergence import theory
from position_card.rollout.attention import (
    causal_mask,
    content_free_attention,
    masked_softmax,
    prefix_mask,
    sliding_window_mask,
)

ROUNDING = 1e-12
SEEDS = st.integers(0, 2**32 - 1)


def kernels(rng, layers, draws, mask):
    """Random attention [layers, draws, n, n], from almost uniform to almost on one token."""
    spread = rng.choice([0.3, 1.0, 30.0], size=(layers, draws, 1, 1))
    weights = np.where(mask, rng.gamma(spread, size=(layers, draws, *mask.shape)) + 1e-6, 0)
    return weights / weights.sum(-1, keepdims=True)


@st.composite
def stacks(draw, mask_of, smallest=3):
    n, layers, draws = draw(st.integers(smallest, 8)), draw(st.integers(2, 9)), draw(st.integers(1, 3))
    size = draw(st.integers(2, n - 1))
    rng = np.random.default_rng(draw(SEEDS))
    mask = mask_of(n, size)
    return kernels(rng, layers, draws, mask), mask, size


CAUSAL = stacks(lambda n, size: causal_mask(n))
WINDOW = stacks(sliding_window_mask)
PREFIX = stacks(prefix_mask)


def parts(stack):
    attention, mask, size = stack
    layers, _, n, _ = attention.shape
    return theory.products(attention), theory.smallest_weight(attention, mask), n, layers, size


# Layers and products


@settings(max_examples=25)
@given(stack=stacks(prefix_mask).filter(lambda stack: stack[0].shape[-1] <= 4 and len(stack[0]) <= 4))
def test_a_product_is_a_sum_over_walks(stack):
    attention = stack[0][:, 0]
    depth, n = len(attention), attention.shape[-1]
    walks = product(range(n), repeat=depth + 1)  # from i down to j: the last layer first
    expected = np.zeros((n, n))
    for walk in walks:
        steps = (attention[depth - 1 - s, walk[s], walk[s + 1]] for s in range(depth))
        expected[walk[0], walk[-1]] += prod(steps)
    np.testing.assert_allclose(theory.products(stack[0])[-1, 0], expected, rtol=0, atol=1e-14)


def test_logits_are_bounded_as_a1_asks_and_come_from_the_seed():
    logits = theory.random_logits(5, 3, 12, 7)
    assert logits.shape == (5, 3, 12, 12)
    assert np.abs(logits).max() <= theory.LARGEST_NORM**2
    assert np.abs(logits).max() > 0.3 * theory.LARGEST_NORM**2
    assert np.linalg.matrix_rank(logits[0, 0]) == theory.DIMENSION
    np.testing.assert_array_equal(logits, theory.random_logits(5, 3, 12, 7))
    assert not np.allclose(logits, theory.random_logits(5, 3, 12, 8))
    assert not np.allclose(logits[0], logits[1])
    assert not np.allclose(logits[:, 0], logits[:, 1])


def test_the_floor_is_that_of_every_layer_and_admitted_pair_of_a_draw():
    mask = sliding_window_mask(4, 2)
    attention = kernels(np.random.default_rng(0), 3, 2, mask)
    pairs = [(i, j) for i in range(4) for j in range(4) if 0 <= i - j < 2]
    expected = [min(attention[t, d, i, j] for t in range(3) for i, j in pairs) for d in range(2)]
    np.testing.assert_array_equal(theory.smallest_weight(attention, mask), expected)


# Theorems 4.1-4.3


def test_bounds_are_those_that_the_theorems_print():
    floor, n, layers = np.array([0.05, 0.1]), 6, 4
    causal, prefix = theory.prefix_bound(floor, n, 1, layers), theory.prefix_bound(floor, n, 2, layers)
    window, constant = theory.window_bound(floor, n, 3, layers), theory.window_constant(floor, n, 3)
    early = theory.first_steps_bound(floor, n, 3)
    mass = theory.mass_bound(floor, layers, centres=2, steps=3)
    for t, (d, eps) in product(range(layers), enumerate(floor)):
        for j in range(2, n + 1):
            assert exp(causal[t, d, j - 2]) == pytest.approx((1 - eps) * (1 - (j - 1) * eps) ** t)
            walk = ceil((n - 1) / (3 - 1))
            rate = (1 - (j - 1) * eps**walk) ** (t / (2 * walk))
            assert exp(window[t, d, j - 2]) == pytest.approx(constant[d] * rate)
            if t < walk:
                assert exp(early[t, d, j - 2]) == pytest.approx((1 - eps) ** ((t + 1) / walk))
            if j > 2:
                assert exp(prefix[t, d, j - 3]) == pytest.approx((1 - eps) * (1 - (j - 2) * eps) ** t)
        assert mass[t, d] == pytest.approx((1 - 2 * eps**3) ** ((t + 1) // 3))
    assert len(early) == 3  # t < R


def test_a_bound_of_less_than_nothing_is_refused():
    with pytest.raises(ValueError, match=r"would take 1\.5 of the mass"):
        theory.prefix_bound(np.array([0.1, 0.5]), 4, 1, 3)


def test_the_share_of_a_bound_is_its_largest():
    attention = kernels(np.random.default_rng(1), 4, 2, causal_mask(5))
    products = theory.products(attention)
    bound = np.random.default_rng(2).uniform(0.1, 1, size=(4, 2, 3))  # of the last three tokens
    expected = [
        max(products[t, d, i, j] / bound[t, d, j - 2] for t in range(4) for i in range(5) for j in (2, 3, 4))
        for d in range(2)
    ]
    np.testing.assert_allclose(theory.share_of_bound(products, np.log(bound)), expected, rtol=1e-13)


@settings(max_examples=60)
@given(stack=CAUSAL)
def test_theorem_4_1(stack):
    products, floor, n, layers, _ = parts(stack)
    assert (theory.share_of_bound(products, theory.prefix_bound(floor, n, 1, layers)) < 1 + ROUNDING).all()
    mass = theory.mass_beyond(products, 1)
    np.testing.assert_allclose(mass, 1 - products[..., 0], rtol=0, atol=1e-14)
    assert (mass.max(-1) <= theory.mass_bound(floor, layers) * (1 + ROUNDING)).all()


@settings(max_examples=60)
@given(stack=WINDOW)
def test_theorem_4_2_with_its_constant(stack):
    products, floor, n, layers, window = parts(stack)
    constant = theory.window_constant(floor, n, window)
    bound = theory.window_bound(floor, n, window, layers)
    assert (theory.share_of_bound(products, bound) < 1 + ROUNDING).all()
    steps = theory.walk_length(n, window)
    early = theory.first_steps_bound(floor, n, window)[:layers]
    assert (theory.share_of_bound(products[: len(early)], early) < 1 + ROUNDING).all()  # Appendix B
    assert (constant >= 1 - floor).all()
    assert (constant <= 1 - floor**steps + ROUNDING).all()  # what Theorem 4.1 would give for blocks of R layers
    assert (theory.mass_beyond(products, 1).max(-1) <= theory.mass_bound(floor, layers, 1, steps) + ROUNDING).all()


@settings(max_examples=60)
@given(n=st.integers(3, 200), window=st.integers(2, 199), share=st.floats(1e-3, 1))
def test_the_constant_of_theorem_4_2_is_below_1(n, window, share):
    window = min(window, n - 1)
    floor = np.array([share / window])  # the last row shares 1 among that many tokens
    constant = theory.window_constant(floor, n, window)
    assert 1 - floor <= constant < 1
    assert constant <= 1 - floor ** theory.walk_length(n, window) + ROUNDING


def test_theorem_4_2_needs_a_larger_constant_than_theorem_4_1():
    # P_32 is 1/2 after one layer and after two, but the bound falls from C to C (3/4)^(1/4).
    mask = sliding_window_mask(3, 2)
    products = theory.products(masked_softmax(np.zeros((2, 1, 3, 3)), mask))
    np.testing.assert_allclose(products[:, 0, 2, 1], 0.5)
    assert theory.window_constant(np.array([0.5]), 3, 2) == pytest.approx(0.5 * 0.5**-0.25)
    share = theory.share_of_bound(products, theory.window_bound(np.array([0.5]), 3, 2, 2))
    assert share == pytest.approx(0.5 / (0.5 * 0.5**-0.25 * 0.75**0.25))


@settings(max_examples=100)
@given(stack=WINDOW)
def test_lemma_b_1(stack):
    attention, mask, window = stack
    n, layers = attention.shape[-1], len(attention)
    floor, steps = theory.smallest_weight(attention, mask), theory.walk_length(n, window)
    for walk in range(1, layers + 1):
        found = theory.blocks(attention, walk)
        expected = [
            np.linalg.multi_dot([*attention[start : start + walk, d][::-1], np.eye(n)])
            for start in range(0, layers - walk + 1, walk)
            for d in range(attention.shape[1])
        ]
        np.testing.assert_allclose(found.reshape(-1, n, n), expected, rtol=1e-12, atol=1e-300)
        if walk == steps:
            assert (found[..., causal_mask(n)].min(axis=(0, -1)) >= floor**steps * (1 - ROUNDING)).all()
        if walk < steps:
            assert (found[..., -1, 0] == 0).all()


@pytest.mark.parametrize(("n", "window"), [(2, 2), (3, 2), (9, 3), (17, 9), (6, 6)])
def test_mass_and_its_half_without_content(n, window):
    rows = [[1 / min(i, window) if 0 <= i - j < window else 0 for j in range(1, n + 1)] for i in range(1, n + 1)]
    dense = [1 - np.linalg.matrix_power(np.array(rows), depth)[:, 0].min() for depth in range(41)]
    np.testing.assert_allclose(theory.mass_without_content(n, window, 40), dense[1:], rtol=1e-9, atol=1e-14)
    half = theory.layers_to_half(n, window)
    below = int(half)
    assert dense[below] + (half - below) * (dense[below + 1] - dense[below]) == pytest.approx(0.5)


def test_the_rate_is_that_of_the_second_half():
    assert theory.rate(np.array([9.0, 1.0, 0.5, 0.25, 0.125])) == pytest.approx(log(2))
    curve = theory.mass_without_content(3, 2, 300)  # (t + 1) / 2^t
    assert theory.rate(curve) == pytest.approx(log(2) - log(301 / 152) / 149)


@pytest.mark.parametrize(
    ("n", "window", "steps"), [(16, 2, 15), (16, 4, 5), (16, 8, 3), (17, 9, 2), (5, 5, 1), (5, 9, 1)]
)
def test_the_walk_is_the_shortest_that_reaches_everything(n, window, steps):
    mask = sliding_window_mask(n, window).astype(int)
    assert theory.walk_length(n, window) == steps
    reached = [np.linalg.matrix_power(mask, walk)[-1, 0] > 0 for walk in range(1, steps + 1)]
    assert reached == [False] * (steps - 1) + [True]


@settings(max_examples=60)
@given(stack=PREFIX)
def test_theorem_4_3(stack):
    attention = stack[0]
    products, floor, n, layers, prefix = parts(stack)
    assert (theory.share_of_bound(products, theory.prefix_bound(floor, n, prefix, layers)) < 1 + ROUNDING).all()
    mass = theory.mass_beyond(products, prefix)
    assert (mass.max(-1) <= theory.mass_bound(floor, layers, prefix) * (1 + ROUNDING)).all()
    for printed in (True, False):
        found = theory.prefix_ratio(attention, products, prefix, as_printed=printed)
        for d, value in enumerate(found):
            worst = np.inf
            for t, i, k, other in product(range(1, layers), range(1, n + 1), range(prefix), range(prefix)):
                if k != other:
                    last = min(i, prefix) if printed else max(i, prefix)
                    bound = min(attention[0, d, row, k] / attention[0, d, row, other] for row in range(last))
                    worst = min(worst, products[t, d, i - 1, k] / products[t, d, i - 1, other] / bound)
            assert value == pytest.approx(worst, rel=1e-9)
    assert (found > 1 - ROUNDING).all()  # the corrected one


def test_the_printed_minimum_forgets_the_tokens_behind_the_prefix():
    layer = np.array([[[0.5, 0.5, 0], [0.5, 0.5, 0], [0.1, 0.5, 0.4]]])
    attention = np.stack([layer] * 2)
    products = theory.products(attention)  # P_31 / P_32 = (.1 * .5 + .5 * .5 + .4 * .1) / (.05 + .25 + .2) = .68
    assert theory.prefix_ratio(attention, products, 2, as_printed=True) == pytest.approx(0.34 / 0.5)
    assert theory.prefix_ratio(attention, products, 2, as_printed=False) >= 1


def test_each_prefix_token_keeps_its_share():
    mask = prefix_mask(6, 3)
    attention = kernels(np.random.default_rng(5), 300, 4, mask)
    kappa = theory.prefix_share(attention, 3)
    first = attention[0, :, :3, :3]
    expected = [min(f[row, k] / f[row, other] for row, k, other in product(range(3), repeat=3)) / 3 for f in first]
    np.testing.assert_allclose(kappa, expected, rtol=1e-13)
    assert (theory.products(attention)[-1, ..., :3].min(axis=(-2, -1)) >= kappa * (1 - ROUNDING)).all()


# Distances and paths


@pytest.mark.parametrize(("layers", "distance"), [(1, 0), (1, 4), (2, 3), (3, 4), (4, 3)])
def test_paths_and_squares_by_listing_every_path(layers, distance):
    steps = [s for s in product(range(distance + 1), repeat=layers) if sum(s) == distance]
    assert theory.paths_through(layers, distance) == len(steps) == comb(layers - 1 + distance, distance)
    assert exp(theory.log_paths(layers - 1, distance)) == pytest.approx(len(steps))
    assert theory.least_squares_of_steps(layers, distance) == min(sum(s**2 for s in path) for path in steps)


# Lemma 4.4 and Theorem 4.5


@settings(max_examples=100)
@given(
    seed=SEEDS, n=st.integers(2, 9), layers=st.integers(1, 5), m=st.floats(0.05, 3), size=st.sampled_from([0, 0.1, 3])
)
def test_lemma_4_4_and_theorem_4_5(seed, n, layers, m, size):
    logits = np.random.default_rng(seed).uniform(-size, size, (layers, 2, n, n))
    spread, attention = theory.logit_range(logits), theory.decay_attention(logits, m)
    floor, ceiling = theory.decay_floor(spread, m), theory.decay_ceiling(spread)
    products = theory.products(attention)
    bounds = theory.path_bounds(layers, m * np.arange(n), floor, ceiling)
    low, high = theory.path_ratio(*theory.by_distance(products), *bounds)
    for d in range(2):
        admitted = [logits[t, d, i, j] for t in range(layers) for i in range(n) for j in range(i + 1)]
        assert spread[d] == pytest.approx(max(admitted) - min(admitted))
        assert floor[d] == pytest.approx((1 - exp(-m)) * exp(-spread[d]))
        ratios = []
        for t, i in product(range(layers), range(n)):
            row = np.exp(logits[t, d, i, : i + 1] - m * np.arange(i, -1, -1))
            np.testing.assert_allclose(attention[t, d, i, : i + 1], row / row.sum(), rtol=1e-12)
            assert (row / row.sum() <= ceiling[d] * np.exp(-m * np.arange(i, -1, -1)) * (1 + ROUNDING)).all()
            assert (row / row.sum() >= floor[d] * np.exp(-m * np.arange(i, -1, -1)) * (1 - ROUNDING)).all()
            ratios += [products[t, d, i, j] / comb(t + i - j, t) / exp(-m * (i - j)) for j in range(i + 1)]
            ratios[-i - 1 :] = [
                (value / floor[d] ** (t + 1), value / ceiling[d] ** (t + 1)) for value in ratios[-i - 1 :]
            ]
        assert low[d] == pytest.approx(min(below for below, _ in ratios))
        assert high[d] == pytest.approx(max(above for _, above in ratios))
        assert low[d] > 1 - ROUNDING
        assert high[d] < 1 + ROUNDING
    least, most = theory.decay_ratio(attention, m)
    assert (least / floor > 1 - ROUNDING).all()
    assert (most / ceiling < 1 + ROUNDING).all()


def test_the_printed_ceiling_of_lemma_4_4_fails_in_the_first_row():
    attention = theory.decay_attention(np.zeros((1, 1, 5, 5)), 0.4)
    assert theory.decay_ceiling_printed(np.zeros(1), 0.4) == pytest.approx(1 / (1 + exp(-0.4)))
    printed = theory.decay_ceiling_printed(np.zeros(1), 0.4)
    assert attention[0, 0, 0, 0] == 1 > printed
    later = attention[0, 0, 1:] * np.exp(0.4 * np.arange(1, 5)[:, None] - 0.4 * np.arange(5))
    assert (later <= printed * (1 + ROUNDING)).all()


@pytest.mark.parametrize("m", theory.DECAYS)
def test_far_from_the_first_token_a_row_is_negative_binomial(m):
    rows = theory.last_rows(content_free_attention(400, [m])[0], 6)
    expected = [scipy.stats.nbinom.pmf(np.arange(150), t + 1, 1 - exp(-m)) for t in range(6)]
    np.testing.assert_allclose(rows[:, :150], expected, rtol=1e-6, atol=1e-13)
    for t, row in enumerate(rows):
        assert theory.peak(row) == int(t / (exp(m) - 1) + 1e-9)


def test_a_tie_is_settled_for_the_greater_distance():
    assert theory.peak(np.array([0.1, 0.4, 0.4 - 1e-12, 0.1])) == 2
    assert theory.peak(np.array([0.1, 0.4, 0.39, 0.1])) == 1
    assert [theory.decay_peak(t, -log(0.8)) for t in (1, 2, 4, 8)] == pytest.approx([4, 8, 16, 32])


# RoPE


def rotation(angle):
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def example(seed=0, multiples=(1.0,), slack=0.3, unevenness=0.0, n=7, norms=(0.5, 2.0)):
    return theory.random_rotary(3, 2, n, seed, slack=slack, norms=norms, multiples=multiples, unevenness=unevenness)


@pytest.mark.parametrize("multiples", [(1.0,), (1.0, 2.5)])
def test_logits_are_those_of_rotated_rows(multiples):
    rotary = example(multiples=multiples, slack=0.1, unevenness=0.02)
    found = theory.rope_logits(rotary)
    for t, d, i, j in np.ndindex(found.shape):
        total = 0.0
        for segment, alpha in enumerate(multiples):
            q, k = rotary.query[t, d, i, segment], rotary.key[t, d, j, segment]
            turn = [rotation(position * alpha * rotary.angle) for position in (i, j)]
            total += (np.array([q.real, q.imag]) @ turn[0]) @ (np.array([k.real, k.imag]) @ turn[1])
        assert found[t, d, i, j] == pytest.approx(total)


@settings(max_examples=60)
@given(seed=SEEDS, n=st.integers(2, 12), slack=st.floats(0.01, 2.5), largest=st.floats(0.5, 5))
def test_lemma_4_6_and_theorem_4_7(seed, n, slack, largest):
    rotary = example(seed, n=n, slack=slack, norms=(0.4, largest))
    whole, angles = theory.angles_between(rotary.query, rotary.key)
    np.testing.assert_allclose(angles[..., 0], whole, atol=1e-7)
    assert angles.max() <= rotary.slack == slack
    assert rotary.slack + (n - 1) * rotary.angle == pytest.approx(pi)
    check_gaussian_bounds(rotary)


@settings(max_examples=40)
@given(seed=SEEDS, n=st.integers(2, 9), slack=st.floats(0.01, 0.1), alpha=st.floats(1, 5))
def test_lemma_i_1_and_theorem_i_2(seed, n, slack, alpha):
    rotary = example(seed, n=n, slack=slack, multiples=(1.0, alpha), unevenness=0.05)
    whole, angles = theory.angles_between(rotary.query, rotary.key)
    shares = [np.abs(v) / np.sqrt((np.abs(v) ** 2).sum(-1, keepdims=True)) for v in (rotary.query, rotary.key)]
    bound = theory.segment_slack(rotary.query, rotary.key)
    np.testing.assert_allclose(bound, pi / 2 / sqrt(shares[0].min() * shares[1].min()) * whole, rtol=1e-12)
    assert (angles <= bound[..., None] + 1e-9).all()  # Lemma I.3
    delta = whole.max() / rotary.angle
    left = sqrt(1 / (shares[0].min() * shares[1].min())) * delta * pi + 2 * (n - 1) * alpha
    assert left * rotary.angle == pytest.approx(2 * pi)  # its condition
    check_gaussian_bounds(rotary)


def check_gaussian_bounds(rotary):
    logits = theory.rope_logits(rotary)
    n, layers = rotary.n, len(logits)
    attention = masked_softmax(logits, causal_mask(n))
    products, constants = theory.products(attention), theory.rope_constants(rotary)
    lower, upper = theory.rope_logit_range(rotary)
    squares = (rotary.multiples**2).sum()
    for d in range(2):
        weakest, strongest = (
            pick(pick(np.abs(rotary.query[:, d])) * np.abs(rotary.key[:, d])) for pick in (np.min, np.max)
        )
        assert (rotary.weakest[d], rotary.strongest[d]) == (pytest.approx(weakest), pytest.approx(strongest))
        assert constants.slow[d] == pytest.approx(weakest / pi**2)
        assert constants.fast[d] == pytest.approx(strongest)
        lowest = sum(weakest - strongest * rotary.slack**2 for _ in rotary.multiples)
        highest = sum(strongest + 2 / pi**2 * weakest * rotary.slack**2 for _ in rotary.multiples)
        row = sum(exp(-weakest / pi**2 * (x * rotary.angle) ** 2 * squares) for x in range(n))
        assert constants.floor[d] == pytest.approx(exp(lowest - highest) / row)
        assert constants.ceiling[d] == pytest.approx(exp(highest - lowest))
        below, above = np.inf, 0.0
        for t, i in product(range(layers), range(n)):
            for j in range(i + 1):
                x = i - j
                assert lower[d, x] - ROUNDING <= logits[t, d, i, j] <= upper[d, x] + ROUNDING
                reach = x**2 * rotary.angle**2 * squares
                gaussians = [c[d] * exp(-rate[d] * reach) for c, rate in zip(*pairs(constants), strict=True)]
                assert gaussians[0] * (1 - ROUNDING) <= attention[t, d, i, j] <= gaussians[1] * (1 + ROUNDING)
                paths = comb(t + x, x)
                floor = paths * constants.floor[d] ** (t + 1) * exp(-constants.fast[d] * reach)
                ceiling = paths * constants.ceiling[d] ** (t + 1) * exp(-constants.slow[d] * reach / (t + 1))
                below = min(below, products[t, d, i, j] / floor)
                above = max(above, products[t, d, i, j] / ceiling)
        found = theory.gaussian_ratio(products, len(products), rotary)
        assert (found[0][d], found[1][d]) == (pytest.approx(below), pytest.approx(above))
        assert below >= 1 - ROUNDING
        assert above <= 1 + ROUNDING
    least, most = theory.gaussian_ratio(attention, 1, rotary)
    assert (least >= 1 - ROUNDING).all()
    assert (most <= 1 + ROUNDING).all()


@pytest.mark.parametrize("opposed", [True, False])
def test_the_gaussian_bounds_hold_for_content_that_speaks_most_against_them(opposed):
    """One of the last row's keys is as far from its query as the slack admits, and all others are not, or reversed.

    Random content, which never comes near, would not notice constants that are wrong by many powers of ten.
    """
    slack, n = 2.5, 6
    phases = np.full(n, slack / 2 if opposed else -slack / 2)
    phases[-1] *= -1
    norms = np.full(n, 5.0)
    norms[0] = 0.4  # so that the weakest pair is far below the strongest
    query, key = norms * np.exp(0.5j * slack), norms * np.exp(1j * phases)
    angle = (pi - slack) / (n - 1)
    rotary = theory.Rotary(query[None, None, :, None], key[None, None, :, None], angle, np.ones(1), slack)
    lower, upper = theory.gaussian_ratio(masked_softmax(theory.rope_logits(rotary), causal_mask(n)), 1, rotary)
    assert lower[0] >= 1 - ROUNDING
    assert upper[0] <= 1 + ROUNDING


def pairs(constants):
    return (constants.floor, constants.ceiling), (constants.fast, constants.slow)


def test_single_constants_by_listing_every_logit():
    rotary = example(slack=0.5)
    logits = theory.rope_logits(rotary)
    found = theory.single_constants(logits, rotary)
    for d in range(2):
        quotients = {"lower": [], "upper": []}
        for t in range(3):
            least, most = ([], []), ([], [])  # of C_min and of C_max: at least, at most
            for i, j in product(range(7), range(7)):
                if j <= i:
                    logit, x = logits[t, d, i, j], (i - j) * rotary.angle
                    far, near = np.cos(x + 0.5), np.cos(abs(x - 0.5))
                    least[int(far > 0)].append(logit / far)  # C cos <= logit: an upper limit of C where cos > 0
                    most[int(near < 0)].append(logit / near)  # C cos >= logit: a lower limit of C where cos > 0
            quotients["lower"].append(max(least[0]) / min(least[1]))
            quotients["upper"].append(max(most[0]) / min(most[1]))
        assert found[0][d] == pytest.approx(max(quotients["lower"]))
        assert found[1][d] == pytest.approx(max(quotients["upper"]))


def test_one_constant_suffices_where_norms_are_equal_and_no_angle_differs():
    aligned = np.ones((1, 1, 5, 1), complex)
    rotary = theory.Rotary(aligned, aligned, pi / 4 / 1.1, np.ones(1), 0.1 * pi / 1.1)
    lower, _ = theory.single_constants(theory.rope_logits(rotary), rotary)
    assert lower < 1  # cos(x theta) against cos((x + delta) theta)
    norms = np.array([1, 2, 1, 2, 1])[:, None]
    uneven = theory.Rotary(aligned * norms, aligned * norms, rotary.angle, np.ones(1), rotary.slack)
    lower, upper = theory.single_constants(theory.rope_logits(uneven), uneven)
    assert min(lower, upper) > 1
    least, most = theory.by_distance(theory.rope_logits(uneven)[0, 0])
    below, above = (bound[0] for bound in theory.rope_logit_range(uneven))
    assert ((below <= least) & (most <= above)).all()


# A quarter turn


def test_a_quarter_turn_by_hand():
    turn, n, layers = theory.quarter_turn(9, 3), 9, 3
    angle, furthest = pi / 8, 4
    rows = np.array(
        [[exp(theory.STRENGTH * (np.cos(angle * (i - j)) - 1)) if j <= i else 0 for j in range(n)] for i in range(n)]
    )
    matrix = rows / rows.sum(axis=1, keepdims=True)
    assert (turn.least, turn.most) == pytest.approx((matrix[8, 8], matrix[4, 4]))
    lower, upper = turn.bounds()
    for t, x in product(range(layers), range(furthest + 1)):
        value = np.linalg.matrix_power(matrix, t + 1)[8, 8 - x]
        assert turn.rows[t, x] == pytest.approx(value)
        below = comb(t + x, x) * turn.least ** (t + 1) * exp(-theory.STRENGTH / 2 * (x * angle) ** 2)
        above = comb(t + x, x) * turn.most ** (t + 1) * exp(-theory.STRENGTH * 4 / pi**2 * (x * angle) ** 2 / (t + 1))
        assert exp(lower[t, 0, x]) == pytest.approx(below)
        assert exp(upper[t, 0, x]) == pytest.approx(above)
        assert below * (1 - ROUNDING) <= value <= above * (1 + ROUNDING)
    for t in range(layers):
        c = turn.coefficients()[t]
        joined = turn.rows[t, 0] * comb(t + furthest, furthest) * exp(-c * (furthest * angle) ** 2)
        assert joined == pytest.approx(turn.rows[t, furthest])


@pytest.mark.parametrize("strength", [50.0, 400.0])
def test_the_coefficient_lies_between_one_path_and_all_of_them(monkeypatch, strength):
    monkeypatch.setattr(theory, "STRENGTH", strength)
    turn, y = theory.quarter_turn(41, 5), pi / 2
    for t in (0, 1, 3, 4):  # whose t + 1 layers split 20 steps evenly, into the path that weighs most
        one_path = strength * (t + 1) * (1 - np.cos(y / (t + 1))) / y**2
        assert one_path * (1 - 1e-9) <= turn.coefficients()[t] <= (one_path + log(comb(t + 20, 20)) / y**2) * (1 + 1e-9)


@settings(max_examples=100)
@given(depth=st.integers(1, 40), angle=st.floats(0.005, 1.5))
def test_the_critical_point_is_next_to_the_largest_l(depth, angle):
    x = theory.critical_point(depth, angle**2)
    assert log((depth + x) / x) == pytest.approx(2 * angle**2 * x)
    values = [log(comb(depth + y, y)) - (y * angle) ** 2 for y in range(int(2 * x) + 3)]
    assert abs(int(np.argmax(values)) - x) < 1
    np.testing.assert_allclose(theory.rope_profile(depth, angle, np.arange(len(values))), values, atol=1e-9)


@settings(max_examples=100)
@given(depth=st.integers(1, 40), more=st.integers(1, 40), coefficient=st.floats(1e-6, 3), factor=st.floats(1.01, 9))
def test_the_critical_point_moves_as_appendix_h_says_and_no_faster_than_its_bounds(depth, more, coefficient, factor):
    deeper, x = depth + more, theory.critical_point(depth, coefficient)
    assert theory.critical_point(depth, coefficient * factor) < x
    growth = theory.critical_point(deeper, coefficient) / x
    assert 1 < growth <= sqrt(deeper / depth) * (1 + 1e-9)
    split = theory.critical_point(deeper, coefficient / (deeper + 1)) / theory.critical_point(
        depth, coefficient / (depth + 1)
    )
    assert split <= sqrt(deeper * (deeper + 1) / (depth * (depth + 1))) * (1 + 1e-9)


# What the figure draws


def test_convergence_of_two_of_three_tokens_by_hand():
    table = theory.convergence(3, 12, 4, 0)
    assert set(table["mask"]) == {"causal", "window 2", "prefix 2"}
    curve = {mask: some.set_index("layers") for mask, some in table.groupby("mask")}
    for mask, matrix in {
        "causal": [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]],
        "window 2": [[1, 0, 0], [1 / 2, 1 / 2, 0], [0, 1 / 2, 1 / 2]],
    }.items():
        for layers in (1, 2, 12):
            expected = 1 - np.linalg.matrix_power(np.array(matrix), layers)[:, 0].min()
            assert curve[mask].loc[layers, "value"] == pytest.approx(expected)
    assert curve["prefix 2"].loc[5, "value"] == pytest.approx(3.0**-5)
    assert curve["causal"].loc[5, "bound"] == pytest.approx((2 / 3) ** 5)
    assert curve["window 2"].loc[5, "bound"] == pytest.approx((1 - 1 / 4) ** 2)
    assert curve["prefix 2"].loc[5, "bound"] == pytest.approx((1 - 2 / 3) ** 5)
    assert (table["value"] <= table["bound"] * (1 + ROUNDING)).all()
    assert (table["low"] <= table["high"]).all()
    assert (curve["causal"]["low"] < curve["causal"]["high"]).all()
    assert theory.convergence(3, 12, 4, 0).equals(table)
    assert not theory.convergence(3, 12, 4, 1).equals(table)


def test_profiles_and_peaks_agree():
    decay, rope = theory.decay_profiles(200), theory.rope_profiles(200)
    for table in (decay, rope):
        assert list(table["depth"].unique()) == list(theory.DEPTHS)
        for _, profile in table.groupby("depth"):
            assert profile["value"].sum() == pytest.approx(1)
            assert profile["peak"].iloc[0] == profile.set_index("distance")["value"].idxmax() + tied(profile)
    peaks = theory.decay_peaks(200).query("decay == @theory.DECAY").set_index("depth")["peak"]
    assert peaks[list(theory.DEPTHS)].tolist() == [4, 8, 16, 32] == list(decay.groupby("depth")["peak"].first())
    measured = theory.rope_peaks(200)
    whole = measured[measured["angle"] == measured["angle"].max()].set_index("depth")["peak"]
    assert whole.tolist() == list(rope.groupby("depth")["peak"].first())


def tied(profile):
    """0, or 1 where two neighbouring distances share the maximum and the nearer one happens to be rounded up."""
    values = np.sort(profile["value"])[-2:]
    first = profile["value"].to_numpy().argmax()
    return int(values[0] > (1 - 1e-9) * values[1] and first != profile["peak"].iloc[0])
