import numpy as np
import pytest

from position_bias.layernorm import checks_theory, theory
from position_bias.verdicts.verdict import COLUMNS

CLAIMED = ("layernorm-full-mask", "layernorm-moments", "layernorm-mask-adds", "layernorm-premise")
SETTING = {"tokens": 50, "width": 64, "sequences": 600, "limit_tokens": 1000, "seed": 3}


@pytest.fixture(scope="module")
def table():
    return checks_theory.table("test", 0.95, **SETTING)


def test_every_statement_has_a_verdict(table):
    assert list(table.columns) == list(COLUMNS)
    assert list(dict.fromkeys(table["item"])) == [
        "Layer 2",
        "Layer 2, no norm",
        "Layer 2, norm",
        "Three tokens",
        "Averaging layers",
        "Depth",
        "LayerNorm",
        "Scaling by 1/sqrt(d)",
        "Anisotropy",
        "Removing residuals",
        "Independent embeddings",
        "Full mask",
        "Moments by position",
    ]
    assert set(table["paper"]) == {"layernorm"}
    assert set(table["scale"]) == {"test"}
    assert not table.duplicated(["item", "quantity", "source"]).any()
    assert (table["low"] <= table["measured"]).all()
    assert (table["measured"] <= table["high"]).all()


def test_what_fails_is_known(table):
    failed = table[table["verdict"] == "fails"]
    assert failed.groupby("item")["quantity"].count().to_dict() == {
        "Depth": 1,  # without norm and with residual, layer 12
        "Scaling by 1/sqrt(d)": 2,  # anisotropy 0.6, with residual and without
        "Removing residuals": 1,
        "Independent embeddings": 3,
        "Moments by position": 1,  # falling anisotropy, which the premise has recent
    }
    assert failed.query("item == 'Scaling by 1/sqrt(d)'")["quantity"].str.contains("anisotropy 0.6").all()
    open_ones = table[~table["verdict"].isin(["holds", "fails"])]
    assert (open_ones["verdict"] == "not separable").all()
    assert set(open_ones["relation"]) <= {"="}  # an equality within a margin asks for more sequences


def test_the_theorem_holds_and_would_not_for_keys_in_reverse(table, monkeypatch):
    theorem = table[table["item"] == "Layer 2, norm"]
    assert (theorem["verdict"] == "holds").all()
    scores = theory.second_scores

    def reversed_keys(n, alpha, rho, strength, *, norm, width=None):
        return scores(n, alpha, rho, strength, norm=norm, width=width)[:, ::-1]

    monkeypatch.setattr(theory, "second_scores", reversed_keys)
    runs = checks_theory.Runs(checks_theory.Sampling(12, 16, 1.0, 20, 0, 0.95))
    judged = {row["quantity"]: row["verdict"] for row in checks_theory._theorem(runs)}
    assert next(verdict for quantity, verdict in judged.items() if "S_ij" in quantity) == "fails"


def test_a_causal_mask_is_noticed_where_a_full_one_is_claimed_and_moments_that_go_the_other_way(monkeypatch):
    runs = checks_theory.Runs(checks_theory.Sampling(24, 64, 1.0, 300, 0, 0.95))
    seen = checks_theory.Runs.of_profile

    def judged(wrong):
        monkeypatch.setattr(checks_theory.Runs, "of_profile", wrong)
        rows = [*checks_theory._full_mask(runs), *checks_theory._moments(runs)]
        return {claim: {row["verdict"] for row in rows if row["claim"] == claim} for claim in CLAIMED}

    assert judged(seen) == {claim: {"holds"} for claim in CLAIMED} | {"layernorm-premise": {"holds", "fails"}}
    always_causal = judged(lambda runs, profile, mask, *rest: seen(runs, profile, "causal", *rest))
    assert always_causal["layernorm-full-mask"] == {"fails"}
    assert "holds" not in always_causal["layernorm-mask-adds"]
    turned = {"rises": "falls", "falls": "rises", "alike": "alike"}
    other_way = judged(
        lambda runs, profile, *rest: seen(runs, profile.replace(last := profile.split()[-1], turned[last]), *rest)
    )
    assert other_way["layernorm-moments"] == {"fails"}


def test_a_wrong_closed_form_fails(monkeypatch):
    norms = theory.squared_norms
    monkeypatch.setattr(theory, "squared_norms", lambda *arguments: 1.1 * norms(*arguments))
    runs = checks_theory.Runs(checks_theory.Sampling(12, 64, 1.0, 300, 0, 0.95))
    judged = {row["quantity"]: row["verdict"] for row in checks_theory._closed_forms(runs)}
    assert [verdict for quantity, verdict in judged.items() if "RMSNorm" in quantity or "q_j" in quantity] == [
        "fails"
    ] * 4


def test_the_setting_that_speaks_most_against_a_claim_is_judged():
    runs = checks_theory.Runs(checks_theory.Sampling(12, 16, 1.0, 20, 0, 0.95))
    settings = [np.array([1.0, 1.1]), np.array([-0.2, -0.1]), np.array([0.1, 0.2])]
    chosen = {
        prediction.relation: checks_theory._mean(runs, "", "", "", prediction, settings, "")["measured"]
        for prediction in (checks_theory.RISES, checks_theory.FALLS, checks_theory.SAME)
    }
    assert chosen == pytest.approx({">": -0.15, "<": 1.05, "=": 1.05})


def test_limits_need_many_tokens():
    with pytest.raises(ValueError, match="limit_tokens = 999"):
        checks_theory.table("test", 0.95, **{**SETTING, "limit_tokens": 999})
