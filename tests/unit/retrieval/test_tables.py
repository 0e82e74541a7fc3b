"""The table of predictors, of profiles made by hand."""

import pandas as pd
import pytest
import scipy.stats

from position_bias.retrieval import agreement, tables
from tests.unit.retrieval import worlds


def numbers(table):
    """The rows by study, predictor and statistic."""
    return table.set_index(["study", "predictor", "statistic"])


def test_numbers_are_means_over_networks_with_intervals_over_seeds():
    profiles = worlds.world(noise=0.005)
    found, table = agreement.agreement(profiles), tables.predictors(profiles, 0.9)
    assert list(table["predictor"].unique()) == ["share", *agreement.PREDICTORS]
    assert set(table["networks"]) == {7}
    assert set(table["n"]) == {5}
    one = numbers(table).loc["residual", "arch", "wasserstein"]
    own = found[(found["study"] == "residual") & (found["predictor"] == "arch")]
    by_seed = own.groupby("seed")["wasserstein"].mean()
    half = scipy.stats.t.ppf(0.95, 4) * by_seed.std() / 5**0.5
    assert one["value"] == pytest.approx(by_seed.mean())
    assert one["low"] == pytest.approx(by_seed.mean() - half)
    assert one["high"] == pytest.approx(by_seed.mean() + half)
    slopes = numbers(table)["value"].xs("slope", level="statistic")
    assert slopes["residual", "arch"] == pytest.approx(0.15, abs=0.01)
    assert slopes["plain", "share"] == pytest.approx(0.1, rel=0.1)
    assert slopes["residual", "measured"] == pytest.approx(slopes["residual", "share"], rel=0.05)
    assert set(table.loc[table["predictor"] == "uniform", "statistic"]) == {"wasserstein"}


def test_the_readable_table_has_every_number():
    table = tables.predictors(worlds.world(noise=0.005), 0.95)
    shown = tables.readable(table)
    assert len(shown) == 2 * (1 + len(agreement.PREDICTORS))
    cell = shown.set_index(["study", "predictor"]).loc[("plain", "measured"), "distance"]
    row = numbers(table).loc["plain", "measured", "wasserstein"]
    assert cell == f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    without = shown.set_index(["study", "predictor"])["slope where the gap changes sign"]
    assert without["plain", "uniform"] == ""
    assert (shown["kind"] == "diagnostic").sum() == 4


def test_a_gap_that_does_not_change_sign_has_no_slope():
    profiles = worlds.world(measured=lambda study, network, gap: 0.2)
    table = tables.predictors(profiles, 0.95)
    assert numbers(table).loc["plain", "measured", "slope"]["n"] == 0
    shown = tables.readable(table).set_index(["study", "predictor"])
    assert shown.loc[("plain", "measured"), "slope where the gap changes sign"] == "-"


def test_only_the_fewest_layers_have_a_slope():
    profiles = worlds.world()
    deeper = profiles[profiles["network"] == "decay-0.1"]
    deeper = deeper.assign(depth=4, value=deeper["value"].to_numpy()[::-1])
    tables_of = [tables.predictors(every, 0.95) for every in (profiles, pd.concat([profiles, deeper]))]
    one, other = (numbers(table)["value"].xs("slope", level="statistic") for table in tables_of)
    pd.testing.assert_series_equal(one, other)
    assert set(tables_of[1].loc[tables_of[1]["study"] == "plain", "networks"]) == {8}
