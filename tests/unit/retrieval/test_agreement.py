"""Agreement of predictions with observations whose numbers are known."""

import numpy as np
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
