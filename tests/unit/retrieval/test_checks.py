"""Claims on profiles made by hand, in which they hold, and in which they do not."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_bias.retrieval import checks
from position_bias.running import imports
from position_bias.verdicts.claim import registry
from position_bias.verdicts.verdict import COLUMNS
from tests.unit.retrieval import worlds

ROOT = Path(__file__).parents[3]
CLAIMS = [claim.id for claim in registry(ROOT / "published/claims.csv") if claim.paper == "retrieval"]
ALL_HOLD = {claim: {"holds"} for claim in CLAIMS}


def verdicts(table):
    """The verdicts of the rows of each claim."""
    found = checks.checks(table, "test", 0.95)
    return {claim: set(rows["verdict"]) for claim, rows in found.groupby("claim") if claim}


def test_every_claim_has_rows_in_the_common_schema():
    found = checks.checks(worlds.world(), "test", 0.95)
    assert list(found.columns) == list(COLUMNS)
    assert set(found["claim"]) == {*CLAIMS, ""}
    assert found["claim"].value_counts().drop("").to_dict() == {
        "retrieval-sign": 4,
        "retrieval-slope": 2,
        "retrieval-data": 2,
        "retrieval-sinusoids": 2,
        "retrieval-last": 1,
    }
    assert not found.duplicated(["item", "quantity"]).any()


def test_all_claims_hold_where_measured_rollout_is_what_is_named():
    assert verdicts(worlds.world()) == ALL_HOLD


@pytest.mark.parametrize(
    ("world", "failing"),
    [
        ({"measured": lambda study, network, gap: -gap}, {"retrieval-sign", "retrieval-slope"}),
        ({"measured": lambda study, network, gap: 0.2}, {"retrieval-sign"}),  # a constant guess; it never turns
        ({"measured": lambda study, network, gap: gap + 0.07}, {"retrieval-slope"}),
        ({"measured": lambda study, network, gap: 5 * gap}, {"retrieval-data"}),
    ],
    ids=["reversed", "constant", "shifted", "exaggerated"],
)
def test_a_claim_does_not_hold_where_measured_rollout_is_wrong(world, failing):
    found = verdicts(worlds.world(**world))
    assert failing <= {claim for claim, verdict in found.items() if "fails" in verdict or verdict != {"holds"}}
    for claim in {"retrieval-sinusoids", "retrieval-last"} - failing:
        assert found[claim] == {"holds"}


def test_failures_that_are_none_fail():
    table = worlds.world()
    measured = table["quantity"] == "measured"
    failing = measured & ((table["network"] == "sin") | (table["study"] == "last"))
    turned = table.assign(value=table["value"].mask(failing, 0.25 - table["value"]))
    found = verdicts(turned)
    assert found["retrieval-sinusoids"] == found["retrieval-last"] == {"fails"}
    assert found["retrieval-sign"] == {"holds"}


def test_diagnostics_carry_no_claim():
    found = checks.checks(worlds.world(frozen=lambda gap: -gap), "test", 0.95)
    of_frozen = found[found["quantity"].str.contains("frozen")]
    assert set(of_frozen["claim"]) == {""}
    assert set(of_frozen["verdict"]) == {"fails"}
    assert verdicts(worlds.world(frozen=lambda gap: -gap)) == ALL_HOLD


def test_a_ratio_of_slopes_is_taken_by_seed():
    found = checks.checks(worlds.world(measured=lambda study, network, gap: gap + 0.02), "test", 0.95)
    (plain, residual) = found[found["claim"] == "retrieval-slope"].to_dict("records")
    for row in (plain, residual):
        assert row["n"] == 5
        assert 0 < row["low"] < row["measured"] < row["high"]
        assert row["high"] - row["low"] < 0.1


def test_what_is_not_trained_cannot_be_tested():
    table = worlds.world()
    without = table[(table["study"] == "residual") & (table["network"] != "sin")]
    found = checks.checks(without, "test", 0.95).set_index("quantity")
    other = found[found.index.str.contains("without residual|sinusoids|last item")]
    assert set(other["verdict"]) == {"not testable here"}
    assert "not testable here" not in set(found.drop(index=other.index)["verdict"])


def test_long_runs_are_judged_at_their_scale_as_far_as_they_go():
    table = worlds.world()
    kept = pd.concat([table[table["study"] == "residual"].assign(scale="longer"), table.assign(scale="paper")])
    longer, paper = checks.of_evidence(kept, 0.95)
    assert set(longer["scale"]) == {"longer"}
    assert set(paper["scale"]) == {"paper"}
    assert "not testable here" not in set(longer["verdict"])
    assert not longer["quantity"].str.contains("without residual").any()
    assert len(paper) == len(checks.checks(table, "paper", 0.95))


def test_the_better_constant_guess_is_chosen_by_seed():
    found = checks.agreement(worlds.world())
    own = found[(found["study"] == "plain") & (found["predictor"] == "measured")]
    positive = np.array([(own[own["seed"] == seed]["observed"] > 0).mean() for seed in worlds.SEEDS])
    guess = checks._best_constant(found[found["study"] == "plain"])
    np.testing.assert_allclose(guess, np.maximum(positive, 1 - positive))
    turned = found[found["study"] == "plain"].assign(observed=lambda rows: -rows["observed"])
    np.testing.assert_allclose(checks._best_constant(turned), guess)  # most are negative now
    assert (guess > 0.5).all()


def test_checks_depend_on_no_network():
    script = ROOT / "scripts/retrieval/checks.py"
    names = {path.name for path in imports.closure(script, ROOT)}
    assert not names & {"network.py", "folded.py", "training.py", "last_row.py"}


def test_sinusoids_are_left_out_of_means_over_networks():
    found = checks.checks(worlds.world(), "test", 0.95).set_index("quantity")["measured"]
    (share,) = found[
        found.index.str.startswith("share of networks where measured") & found.index.str.contains("without")
    ]
    assert share == 1  # with sinusoids, which are predicted the wrong way round, it would be 6 of 7
