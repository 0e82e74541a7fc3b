"""What is measured of rollout and the labels named, on profiles made by hand, and where claims do not hold."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_bias.retrieval import checks
from position_bias.verdicts.claim import registry
from position_bias.verdicts.predictions import predictions
from position_bias.verdicts.verdict import COLUMNS, KEYS
from tests.unit.retrieval import worlds

ROOT = Path(__file__).parents[3]
PREDICTED = ROOT / "published/predictions.csv"
PREDICTIONS = predictions(PREDICTED, "retrieval")
OF_WING = [claim for claim in registry(ROOT / "published/claims.csv") if claim.paper == "retrieval"]
CLAIMS = [claim.id for claim in OF_WING if claim.kind == "network"]  # the others are of decoders: test_decoders.py
ALL_HOLD = {claim: {"holds"} for claim in CLAIMS}


def judged(table):
    return checks.checks(table, PREDICTIONS, "test", 0.95)


def verdicts(table):
    """The verdicts of the rows of each claim."""
    return judged(table).groupby("claim")["verdict"].agg(set).drop("").to_dict()


def measured(table):
    """Statistic and study -> its table."""
    return {(found.name, *found.setting.values()): found.table for found in checks.statistics(table)}


def test_every_claim_has_rows_in_the_common_schema_and_all_hold_where_measured_rollout_is_what_is_named():
    found = judged(worlds.world())
    assert list(found.columns) == [*COLUMNS, *KEYS]
    assert not found.duplicated(["item", "quantity"]).any()
    assert not found.duplicated(list(KEYS)).any()
    assert verdicts(worlds.world()) == ALL_HOLD


def test_every_claim_fails_where_measured_rollout_is_five_times_the_opposite():
    table = worlds.world()
    opposite = 1 / 8 - 5 * (table["value"] - 1 / 8)
    found = verdicts(table.assign(value=table["value"].where(table["quantity"] != "measured", opposite)))
    assert found == {claim: {"fails"} for claim in CLAIMS} | {"retrieval-slope": {"not testable here"}}


def test_shares_of_right_signs_are_beside_the_better_constant_guess_by_seed_without_sinusoids():
    """The gap is above 0 where the slope is below .1, and 0 at .1 but for noise; the architecture turns at .15."""
    table = worlds.world(measured=lambda study, network, gap: 0.2)
    observed = table[(table["study"] == "plain") & (table["quantity"] == "share") & (table["network"] != "sin")]
    ends = observed.pivot(index=["seed", "network"], columns="position", values="value")
    positive = (ends[1] > ends[8]).groupby("seed").mean()
    right = measured(table)["right", "plain"]
    np.testing.assert_allclose(right["measured"], positive)
    np.testing.assert_allclose(right["constant"], np.maximum(positive, 1 - positive))
    decayed = (ends[1] > ends[8]).unstack()["decay-0.1"]  # that alone is named otherwise than by the architecture
    np.testing.assert_allclose(right["arch"], np.where(decayed, 1, 5 / 6))
    turned = table.assign(value=table["value"].where(table["quantity"] != "share", 0.15 - table["value"]))
    np.testing.assert_allclose(measured(turned)["right", "plain"]["constant"], right["constant"])


def test_a_ratio_of_slopes_is_taken_by_seed():
    """Between the slopes .05 and .1, and .1 and .2, gaps are taken as linear."""
    found = measured(worlds.world(measured=lambda study, network, gap: gap + 0.02, noise=0))
    slopes = np.array(list(worlds.SLOPES.values()))
    for study, turn in (("plain", 0.1), ("residual", 0.08)):
        predicted, observed = (np.interp(0, -worlds.gap_at(slopes, turn) - shift, slopes) for shift in (0.02, 0))
        np.testing.assert_allclose(found["slope", study]["measured"], [np.log(predicted / observed)] * 5, atol=1e-12)


def test_distances_are_means_over_networks_without_sinusoids():
    """Profiles are lines: between gaps a and b the distance is |a - b| times that of one line of slope 1."""
    found = measured(worlds.world(measured=lambda study, network, gap: 3 * gap, noise=0))
    unit = np.abs(np.cumsum(worlds.tilted(1) - 1 / 8)).sum() / 7
    slopes = np.array([*worlds.SLOPES.values(), 0])  # RoPE has none
    gaps, by_architecture = worlds.gap_at(slopes, 0.08), 3 * worlds.gap_at(slopes, 0.15)
    for predictor, off in {"measured": 2 * gaps, "uniform": gaps, "arch": by_architecture - gaps}.items():
        np.testing.assert_allclose(found["distance", "residual"][predictor], unit * np.abs(off).mean())


def test_orders_are_those_of_sinusoids_and_of_training_on_the_last_item():
    found = measured(worlds.world())
    for key in (("order with sinusoids", "plain"), ("order with sinusoids", "residual"), ("order after bias",)):
        assert found[key]["measured"].to_list() == pytest.approx([-1] * 5)
        assert found[key]["frozen"].to_list() == pytest.approx([1] * 5)


def test_what_is_not_trained_cannot_be_tested():
    table = worlds.world()
    found = judged(table[(table["study"] == "residual") & (table["network"] != "sin")])
    assert found["quantity"].to_list() == judged(table)["quantity"].to_list()
    untrained = (found["setting"] == "study = plain") | found["statistic"].str.startswith("order")
    assert set(found.loc[untrained, "verdict"]) == {"not testable here"}
    assert set(found.loc[untrained, "n"]) == {0}
    assert "not testable here" not in set(found.loc[~untrained, "verdict"])


def test_a_seed_that_lacks_a_network_is_left_out_of_means_over_networks():
    table = worlds.world()
    found = judged(table[~((table["seed"] == 2) & (table["network"] == "rope") & (table["study"] == "plain"))])
    left_out = found[found["left_out"] > 0].groupby(["statistic", "setting"])["left_out"].unique()
    assert left_out.to_dict() == {("distance", "study = plain"): [1], ("right", "study = plain"): [1]}


def test_long_runs_are_judged_at_their_scale_as_far_as_they_go():
    table = worlds.world()
    kept = pd.concat([table[table["study"] == "residual"].assign(scale="longer"), table.assign(scale="paper")])
    found = checks.verdicts(table, [kept], [], PREDICTED, "test", 0.95)
    longer, paper = (found[found["scale"] == scale] for scale in ("longer", "paper"))
    assert "not testable here" not in set(longer["verdict"])
    assert set(longer["setting"]) == {"study = residual"}
    assert len(paper) == len(judged(table))
