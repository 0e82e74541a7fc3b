import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from position_card.rollout.statistics import (
    bootstrap_weights,
    group_means,
    mean_and_interval,
    mean_position,
    percentile_interval,
    resampled_weights,
    spearman,
    total_variation,
    wasserstein,
)
from tests.refusals import refused


@st.composite
def pairs(draw, least=2):
    """Two profiles over the same positions, with zeros and ties."""
    n = draw(st.integers(least, 30))
    masses = arrays(float, n, elements=st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0.01, 10))
    return tuple(mass / mass.sum() for mass in (draw(masses.filter(lambda mass: mass.sum() > 0)) for _ in "pq"))


def stacked(rows, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(7), size=rows)


@given(pair=pairs())
def test_wasserstein_is_scipys_over_the_length(pair):
    positions = np.arange(len(pair[0]))
    expected = scipy.stats.wasserstein_distance(positions, positions, *pair) / positions[-1]
    assert wasserstein(*pair) == pytest.approx(expected, abs=1e-14)


@given(pair=pairs())
def test_spearman_is_scipys(pair):
    if any(np.ptp(profile) == 0 for profile in pair):
        assert np.isnan(spearman(*pair))
    else:
        assert spearman(*pair) == pytest.approx(scipy.stats.spearmanr(*pair).statistic, abs=1e-13)


@given(pair=pairs(least=1))
def test_total_variation_is_what_one_has_beyond_the_other(pair):
    p, q = pair
    assert total_variation(p, q) == pytest.approx(np.maximum(p - q, 0).sum(), abs=1e-14)


def test_a_single_position_leaves_no_distance_and_no_order():
    one = np.ones(1)
    assert wasserstein(one, one) == total_variation(one, one) == mean_position(one) == 0
    assert np.isnan(spearman(one, one))


@pytest.mark.parametrize("between", [wasserstein, total_variation, spearman])
def test_leading_axes_broadcast_and_positions_do_not(between):
    p, q = stacked((4, 1), 1), stacked((3,), 2)
    together = between(p, q)
    assert together.shape == (4, 3)
    for i, j in np.ndindex(4, 3):
        assert together[i, j] == pytest.approx(between(p[i, 0], q[j]), abs=1e-15)
    with refused("p has shape (7,)", "q has shape (1,)", by=ValueError):
        between(np.ones(7), np.ones(1))  # would broadcast


def test_bootstrap_draws_whole_prompts_with_replacement():
    weights = bootstrap_weights(20, 500, seed=3)
    drawn = weights * 20
    assert weights.shape == (500, 20)
    np.testing.assert_allclose(drawn, drawn.round(), atol=1e-12)
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-14)
    assert drawn.max() > 2
    np.testing.assert_array_equal(bootstrap_weights(20, 500, seed=3), weights)
    assert (bootstrap_weights(20, 500, seed=4) != weights).any()
    # Each prompt is missing from (1 - 1/20)^20 = 36 % of the replicates; four standard errors of 10,000 draws.
    assert (drawn == 0).mean() == pytest.approx(0.95**20, abs=4 * np.sqrt(0.36 * 0.64 / 10_000))


def test_resamples_draw_units_and_never_a_part_of_one():
    documents = np.array([7, 7, 7, 2, 5, 5])
    weights = resampled_weights(documents, 200, 0)
    np.testing.assert_allclose(weights.sum(-1), 1)
    np.testing.assert_allclose(weights[0], 1 / 6)
    assert (weights[:, 0] == weights[:, 2]).all()
    assert (weights[:, 4] == weights[:, 5]).all()
    assert (weights[1:, 3] == 0).any()


def test_percentile_interval_agrees_with_scipys_bootstrap():
    values = np.random.default_rng(8).exponential(size=60)
    low, high = percentile_interval(bootstrap_weights(60, 20_000, seed=9) @ values, 0.9)
    scipys = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, confidence_level=0.9, method="percentile", rng=np.random.default_rng(10)
    ).confidence_interval
    assert (low, high) == pytest.approx(tuple(scipys), abs=0.05 * (high - low))


def test_a_mean_and_its_interval_are_scipys():
    values = np.random.default_rng(11).normal(size=(6, 2, 3))
    expected = scipy.stats.ttest_1samp(values, 0, axis=0).confidence_interval(0.95)
    found = mean_and_interval(values, 0.95)
    np.testing.assert_allclose(found, [scipy.stats.tmean(values, axis=0), expected.low, expected.high], rtol=1e-12)


def test_the_interval_of_a_mean_covers_as_often_as_it_says():
    _, low, high = mean_and_interval(np.random.default_rng(12).normal(2.0, 3.0, size=(4, 20_000)), 0.8)
    assert ((low < 2) & (high > 2)).mean() == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / 20_000))


def test_one_observation_has_no_interval_and_none_has_no_mean():
    mean, low, high = mean_and_interval(np.full((1, 3), 7.0), 0.95)
    assert mean.tolist() == [7.0] * 3
    assert np.isnan([low, high]).all()
    assert np.isnan(mean_and_interval(np.ones((0, 3)), 0.95)).all()


def test_means_of_groups_are_scipys_and_keep_their_order():
    rng = np.random.default_rng(0)
    drawn = {(depth, pair): rng.normal(size=5 + depth) for depth in (4, 2) for pair in ("b", "a")}
    rows = [(*key, value) for key, values in drawn.items() for value in values]
    found = group_means(pd.DataFrame(rows, columns=["depth", "pair", "gap"]), ["depth", "pair"], "gap", 0.9)
    assert found.columns.tolist() == ["depth", "pair", "mean", "low", "high", "n"]
    for row, (key, values) in zip(found.itertuples(index=False), drawn.items(), strict=True):
        interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
        assert tuple(row) == pytest.approx((*key, values.mean(), interval.low, interval.high, len(values)))


def test_means_leave_out_observations_that_are_missing():
    table = pd.DataFrame({"at": [1, 1, 1, 2], "value": [1.0, np.nan, 3.0, np.nan]})
    found = group_means(table, ["at"], "value", 0.95)
    pd.testing.assert_frame_equal(found.iloc[:1], group_means(table.dropna(), ["at"], "value", 0.95))
    assert found["n"].tolist() == [2, 0]
    assert found.iloc[1][["mean", "low", "high"]].isna().all()


@pytest.mark.parametrize("arguments", [(0, 5), (5, 0)])
def test_nothing_cannot_be_resampled(arguments):
    with refused(" = 0", by=ValueError):
        bootstrap_weights(*arguments, seed=0)


@pytest.mark.parametrize("interval", [percentile_interval, mean_and_interval])
@pytest.mark.parametrize("level", [0, 1, np.nan])
def test_a_level_is_a_share(interval, level):
    with refused(f"level = {level}", by=ValueError):
        interval(np.arange(5.0), level)


@pytest.mark.parametrize("share", [0.94, 1.06, 2.0])
def test_profiles_of_other_totals_have_no_distance_and_no_place(share):
    profile = stacked(3)
    with refused(f"{share:.6g}", "where 1 is expected"):
        wasserstein(np.stack([profile[0], share * profile[1]]), profile[:2])
    with refused(f"{share:.6g}", "where 1 is expected"):
        mean_position(np.stack([profile[0], share * profile[1]]))
    assert wasserstein(7 * profile[0], 7 * profile[1]) == pytest.approx(7 * wasserstein(*profile[:2]))
    assert np.isnan(mean_position(np.full(3, np.nan)))
