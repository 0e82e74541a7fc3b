from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from position_card.rollout import last_row as rollout_last_row
from position_card.rollout.attention import content_free_attention
from position_card.rollout.last_row import attended_last_rows, dense_last_row, last_row, rollout_matrix, transition
from tests.refusals import refused

ROUNDING = 5e-15  # absolute; profiles sum to 1
MIXING = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
SLOPE = st.sampled_from([0.0, 50.0, 5e-324, 1e-9]) | st.floats(0, 50) | st.floats(0, 1)
CONTENT = st.sampled_from([0.0, 800.0, -800.0]) | st.floats(-800, 800) | st.floats(-5, 5)


@st.composite
def models(draw):
    layers, heads = draw(st.integers(1, 4)), draw(st.integers(1, 4))

    def several(values, count):
        return draw(st.lists(values, min_size=count, max_size=count))

    content = np.reshape(several(CONTENT, layers * heads), (layers, heads)) if draw(st.booleans()) else None
    return several(MIXING, layers), several(SLOPE, heads), content


def random_model(seed, layers, slopes):
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 1, layers), np.array(slopes), rng.normal(0, 2, (layers, len(slopes)))


def assert_profile(row, expected):
    np.testing.assert_allclose(row, expected, rtol=0, atol=ROUNDING)


@settings(max_examples=120)
@given(n=st.integers(1, 40), model=models(), window=st.none() | st.integers(1, 45))
def test_linear_is_dense(n, model, window):
    with np.errstate(all="raise", under="ignore"):
        row = last_row(n, *model, window)
        assert_profile(row, dense_last_row(n, *model, window))
    assert row.shape == (n,)
    assert row.sum() == pytest.approx(1, abs=ROUNDING)
    assert (row >= 0).all()


@pytest.mark.parametrize("slopes", [[0.5], [0.4, 0.9, 3.0], [0.0, 1.0], [1.0, 1e-3, 0.7]])
@pytest.mark.parametrize("window", [None, 30, 100])
def test_it_stays_dense_where_normalisers_have_settled(slopes, window):
    n = 180
    assert n > rollout_last_row.STANDSTILL / max(slopes)
    model = random_model(1, 4, slopes)
    assert_profile(last_row(n, *model, window), dense_last_row(n, *model, window))


@settings(max_examples=40)
@given(n=st.integers(1, 40), mixing=st.lists(MIXING, min_size=1, max_size=5), heads=st.integers(1, 3))
def test_uniform_attention_has_an_exact_rational_profile(n, mixing, heads):
    exact = [Fraction(mix) for mix in mixing]

    def influence(j):  # of position j, counted from 1
        differences = (
            (-1) ** k * comb(n - j, k) * prod(1 - mix + mix / (j + k) for mix in exact) for k in range(n - j + 1)
        )
        return comb(n - 1, j - 1) * sum(differences)

    expected = [float(influence(j)) for j in range(1, n + 1)]
    assert_profile(last_row(n, mixing, [0.0] * heads), expected)
    assert_profile(dense_last_row(n, mixing, [0.0] * heads), expected)


@pytest.mark.parametrize("content", [0.0, 2.5, -2.5, 800.0, -800.0])
@pytest.mark.parametrize("slope", [0.0, 0.7, 50.0, 900.0])
def test_two_tokens(slope, content):
    mixing = np.array([0.9, 0.2, 1.0, 0.5])
    with np.errstate(over="ignore"):
        own = 1 / (1 + np.exp(-slope - content))
    kept = np.prod(1 - mixing + mixing * own)
    for row in (last_row, dense_last_row):
        assert_profile(row(2, mixing, [slope], np.full((4, 1), content)), [1 - kept, kept])


def test_the_last_layer_acts_first():
    # `step` sends each token to its predecessor; `first` sends token 1 to token 0 and leaves token 2 where it is. From
    # token 2, `step` then `first` ends at token 0; the other way round at token 1.
    step = [[1, 0, 0], [1, 0, 0], [0, 1, 0]]
    first = [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert attended_last_rows([first, step], [[1, 1]])[0].tolist() == [1, 0, 0]
    assert attended_last_rows([step, first], [[1, 1]])[0].tolist() == [0, 1, 0]


def test_one_layer_is_the_last_row_of_its_attention():
    n, slopes, content = 100_000, np.array([0.0, 1e-4, 0.3, 2.0]), np.array([[1.0, -3.0, 5.0, 0.0]])
    logits = -slopes[:, None] * np.arange(n - 1, -1, -1)
    logits[:, -1] += content[0]
    heads = np.exp(logits - logits.max(1, keepdims=True))
    attention = (heads / heads.sum(1, keepdims=True)).mean(0)
    expected = 0.3 * attention
    expected[-1] += 0.7
    row = last_row(n, [0.3], slopes, content)
    assert_profile(row, expected)
    np.testing.assert_allclose(row, expected, rtol=1e-11)  # w^100000 carries 100000 roundings


def test_two_layers_of_uniform_attention_at_any_length():
    n, (first, second) = 200_000, (0.8, 0.6)
    after_second = np.full(n, second / n)
    after_second[-1] += 1 - second
    received = np.cumsum((after_second / np.arange(1, n + 1))[::-1])[::-1]
    expected = (1 - first) * after_second + first * received
    np.testing.assert_allclose(last_row(n, [first, second], [0.0, 0.0]), expected, rtol=1e-12)


def test_far_from_the_start_a_profile_only_shifts():
    model = random_model(2, 5, [0.05, 0.2, 1.0])
    for window in (None, 700):
        long, short = last_row(60_000, *model, window), last_row(6_000, *model, window)
        np.testing.assert_allclose(long[-4_000:], short[-4_000:], rtol=1e-12, atol=1e-250)
        assert long[:50_000].max() < 1e-200


def test_two_windows_of_uniform_attention_make_a_triangle():
    n, window = 5_000, 37
    back = np.arange(2 * window - 1)
    row = last_row(n, [1, 1], [0.0], window=window)
    np.testing.assert_allclose(row[::-1][: len(back)], np.minimum(back + 1, back[::-1] + 1) / window**2, rtol=1e-13)
    assert (row[: n - len(back)] == 0).all()


def test_a_wide_window_takes_the_heads_in_turns():
    n, window, heads = 2**20 + 5, 2**20 + 1, 12
    assert rollout_last_row.MOST_BUFFERED // (window - 1) < heads
    expected = np.zeros(n)
    expected[-window:] = 1 / window
    np.testing.assert_allclose(last_row(n, [1], np.zeros(heads), window=window), expected, rtol=1e-12)


def test_measured_attention_need_not_be_causal():
    attention = np.random.default_rng(5).dirichlet(np.ones(6), size=(3, 6))
    mixing = [0.2, 1.0, 0.6]
    expected = rollout_matrix(map(transition, attention, mixing))[-1]
    assert_profile(attended_last_rows(attention, [mixing])[0], expected)


def test_rollouts_through_attention_are_the_same_together():
    attention = [content_free_attention(9, [0.1 * t, 1.0], [t, -t]).mean(0) for t in range(3)]
    mixings = np.random.default_rng(7).uniform(size=(5, 3))
    for row, mixing in zip(attended_last_rows(attention, mixings), mixings, strict=True):
        assert_profile(row, rollout_matrix(map(transition, attention, mixing))[-1])


def test_arguments_stay_as_they_were():
    mixing, slopes, content = random_model(6, 2, [1.0, 0.5])
    copies = mixing.copy(), slopes.copy(), content.copy()
    last_row(10, mixing, slopes, content)
    for now, before in zip((mixing, slopes, content), copies, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_fast_arithmetic_does_not_hide_what_is_not_finite(broken):
    on, off, one = np.full((1, 2), 0.5), np.full((1, 2), broken), np.ones(2)
    assert np.isnan(rollout_last_row._causal_last_row(9, np.ones(1), one, on, off)).any()
    assert np.isnan(rollout_last_row._windowed_last_row(9, 3, np.ones(1), one, on, off)).any()


@pytest.mark.parametrize("row", [last_row, dense_last_row])
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n": 0}, "n = 0"),
        ({"window": -1}, "window = -1"),
        ({"mixing": [0.5, 1.5]}, "mixing holds 1.5"),
        ({"mixing": [np.nan, 0.5]}, "mixing holds nan"),
        ({"mixing": []}, "mixing has shape (0,)"),
        ({"slopes": [-0.5]}, "slopes holds -0.5"),
        ({"diagonal": [[1.0, 2.0]]}, "diagonal has shape (1, 2)"),
    ],
)
def test_what_cannot_be_is_named_with_its_value(row, arguments, named):
    with refused(named, by=ValueError):
        row(**{"n": 3, "mixing": [0.5, 0.5], "slopes": [1.0], **arguments})
