"""Agreement of predictions with observations whose numbers are known."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.retrieval import agreement
from tests.unit.retrieval import worlds


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([0.2, 0.1, -0.1, -0.3], 0.075),  # between .05 and .1, halfway
        ([0.2, 0.0, -0.1, -0.3], 0.05),
        ([0.3, -0.1, 0.1, -0.1], 0.0375),  # the first time
        ([0.3, 0.2, 0.1, 0.1], np.nan),
        ([-0.3, -0.2, -0.1, -0.1], np.nan),
        ([-0.3, 0.2, np.nan, -0.1], np.nan),
        ([0.0, -0.2, -0.1, -0.1], np.nan),  # it is never above 0
    ],
)
def test_the_slope_where_a_gap_changes_sign(gaps, expected):
    assert agreement.crossing(np.array([0, 0.05, 0.1, 0.2]), np.array(gaps)) == pytest.approx(expected, nan_ok=True)


def test_agreement_is_that_of_scipy_and_of_the_normalised_profiles():
    table = worlds.world(noise=0.02)
    found = agreement.agreement(table)
    assert len(found) == len(agreement.PREDICTORS) * (2 * 7 + 1) * 5
    wide = table.pivot(index=["study", "network", "seed"], columns=["quantity", "position"], values="value")
    for row in found.sample(60, random_state=1).itertuples():
        profiles = wide.loc[(row.study, row.network, row.seed)]
        seen, predicted = (profiles[name].to_numpy() / profiles[name].sum() for name in ("share", row.predictor))
        assert row.observed == pytest.approx(seen[0] - seen[-1])
        assert row.gap == pytest.approx(predicted[0] - predicted[-1])
        if min(predicted.min(), seen.min()) >= 0:
            places = np.arange(8) / 7
            distance = scipy.stats.wasserstein_distance(places, places, predicted, seen)
            assert row.wasserstein == pytest.approx(distance)
        if row.predictor != "uniform":
            assert row.spearman == pytest.approx(scipy.stats.spearmanr(predicted, seen).statistic)
            assert row.right == float((predicted[0] > predicted[-1]) == (seen[0] > seen[-1]))
    assert found.loc[found["predictor"] == "uniform", "spearman"].isna().all()


def test_shares_of_nothing_are_missing():
    shares = agreement.as_shares(np.array([[0.1, 0.3], [0.1, -0.1], [-0.2, 0.1]]))
    np.testing.assert_allclose(shares, [[0.25, 0.75], [np.nan] * 2, [np.nan] * 2])


def test_a_seed_that_lacks_a_network_has_no_mean_over_networks():
    found = agreement.agreement(worlds.world())
    lost = (found["network"] == "rope") & (found["seed"] == 2) & (found["study"] == "plain")
    means = agreement.over_networks(found[~lost], "right")
    assert np.flatnonzero(means["measured"].isna()).tolist() == [2]
    whole = agreement.over_networks(found, "right")
    assert whole["measured"].notna().all()
    of_seed = found[(found["seed"] == 0) & (found["predictor"] == "measured")]
    assert whole.loc[0, "measured"] == pytest.approx(of_seed["right"].mean())


def test_the_table_of_predictors_has_means_over_networks_and_intervals_over_seeds():
    table = worlds.world(noise=0.005)
    found = agreement.agreement(table)
    predictors = agreement.predictors(table, 0.9)
    assert list(predictors["predictor"]) == ["share", *agreement.PREDICTORS] * 2
    assert set(predictors["networks"]) == {7}
    assert set(predictors["seeds"]) == {5}
    one = predictors.set_index(["study", "predictor"]).loc[("residual", "arch")]
    own = found[(found["study"] == "residual") & (found["predictor"] == "arch")]
    by_seed = own.groupby("seed")["wasserstein"].mean()
    half = scipy.stats.t.ppf(0.95, 4) * by_seed.std() / 5**0.5
    assert one["wasserstein"] == pytest.approx(by_seed.mean())
    assert one["wasserstein low"] == pytest.approx(by_seed.mean() - half)
    assert one["wasserstein high"] == pytest.approx(by_seed.mean() + half)
    assert one["slope"] == pytest.approx(0.15, abs=0.01)
    slopes = predictors.set_index(["study", "predictor"])["slope"]
    assert slopes["plain", "share"] == pytest.approx(0.1, rel=0.1)
    assert slopes["residual", "measured"] == pytest.approx(slopes["residual", "share"], rel=0.05)
    nothing = predictors[predictors["predictor"] == "uniform"]
    assert nothing[["spearman", "right", "slope"]].isna().all(axis=None)


def test_only_the_fewest_layers_have_a_slope():
    table = worlds.world()
    deeper = table[table["network"] == "decay-0.1"].assign(depth=4, value=lambda rows: rows["value"].to_numpy()[::-1])
    both = pd.concat([table, deeper], ignore_index=True)
    one, other = (agreement.predictors(every, 0.95) for every in (table, both))
    pd.testing.assert_series_equal(one["slope"], other["slope"])
    assert set(other["networks"]) == {8}
