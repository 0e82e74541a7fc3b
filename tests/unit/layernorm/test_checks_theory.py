from itertools import chain
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.layernorm import checks_theory, theory
from position_bias.layernorm.checks import read_estimates, tabulate
from position_bias.verdicts.judge import KEYS
from position_card.core import artifacts
from tests.worlds import judged

SETTING = {"tokens": 50, "width": 64, "sequences": 600, "limit_tokens": 1000, "seed": 3}


@pytest.fixture(scope="module")
def simulated():
    return checks_theory.table(0.95, **SETTING)


@pytest.fixture(scope="module")
def table(simulated):
    return rows(read_estimates(simulated))


def runs(tokens=12, width=64, sequences=300):
    return checks_theory.Runs(checks_theory.Sampling(tokens, width, 1.0, sequences, 0, 0.95))


def rows(statistics):
    return judged("layernorm", statistics, 0.95)


def test_what_fails_is_known(table):
    assert not table.duplicated(["claim", *KEYS]).any()
    failed = table[table["verdict"] == "fails"]
    assert failed["statistic"].value_counts().to_dict() == {
        "relative recency, above 0 by the recursion": 1,  # without norm and with residual, layer 12
        "recency of scaled scores": 2,  # anisotropy 0.6, with residual and without
        "recency without residual": 1,
        "recency without anisotropy": 3,
        "recency with a causal mask, residual 1": 1,  # falling anisotropy, which the premise has recent
    }
    scaled = failed[failed["statistic"] == "recency of scaled scores"]
    assert scaled["setting"].str.endswith("anisotropy = 0.6").all()
    open_ones = table[~table["verdict"].isin(["holds", "fails"])]
    assert (open_ones["verdict"] == "undecided").all()
    assert set(open_ones["relation"]) <= {"="}  # an equality within a margin asks for more sequences


def test_bounds_of_simulations_are_those_of_their_size(table):
    noise, rows = 4 / sqrt(64 * 600), table.set_index("statistic")
    for statistic, layers in {
        "closed form of scores": 1,
        "averages: simulated layer 3": 2,
        "recency of deeper layers less the recursion": 3,
        "recency of profiles less the recursion": 4,
    }.items():
        np.testing.assert_allclose(rows.loc[statistic, "bound"], layers / 64 + noise, rtol=1e-12)
    for statistic in ("score of three tokens, simulated", "recency along all ones, as expected"):
        assert (rows.loc[statistic, "margin"] == 1 / 64).all()


def test_the_theorem_holds_and_would_not_for_keys_in_reverse(table, monkeypatch):
    theorem = table[table["statistic"] == "steps from a token to the next"]
    assert theorem["verdict"].tolist() == ["holds", "holds"]
    scores = theory.second_scores

    def reversed_keys(n, alpha, rho, strength, *, norm, width=None):
        return scores(n, alpha, rho, strength, norm=norm, width=width)[:, ::-1]

    monkeypatch.setattr(theory, "second_scores", reversed_keys)
    assert rows(checks_theory._theorem(runs())).set_index("network").loc["S_ij", "verdict"] == "fails"


def test_a_wrong_mask_and_wrong_moments_are_noticed(monkeypatch):
    sampled, seen = runs(24, 64, 300), checks_theory.Runs.profile_recency
    full, without = "recency with a full mask, residual 1", "recency with a full mask, residual 0"
    added, more = "recency added by the causal mask", "recency with a full mask, more with residual"

    def verdicts(profile_recency):
        monkeypatch.setattr(checks_theory.Runs, "profile_recency", profile_recency)
        table = rows(checks_theory._moments(sampled))
        return {key: set(of_key) for key, of_key in table.groupby(["statistic", "network"])["verdict"]}

    right = verdicts(seen)
    assert {without, full, added, more} < {statistic for statistic, _ in right}
    assert {key for key, found in right.items() if found != {"holds"}} == {
        ("recency with a causal mask, residual 1", "anisotropy falls")  # the paper's premise, which fails there
    }
    always_causal = verdicts(lambda runs, profile, mask, *rest: seen(runs, profile, "causal", *rest))
    assert always_causal[full, "alike"] == always_causal[without, "alike"] == {"fails"}
    assert "holds" not in always_causal[added, "all"]
    turned = {"rises": "falls", "falls": "rises", "alike": "alike"}
    other_way = verdicts(
        lambda runs, profile, *rest: seen(runs, profile.replace(last := profile.split()[-1], turned[last]), *rest)
    )
    moments = [found for (statistic, network), found in other_way.items() if statistic == full and network != "alike"]
    assert moments == [{"fails"}] * 4


def test_a_wrong_closed_form_fails(monkeypatch):
    norms = theory.squared_norms
    monkeypatch.setattr(theory, "squared_norms", lambda *arguments: 1.1 * norms(*arguments))
    found = rows(checks_theory._closed_forms(runs()))
    depends = (found["network"] == "RMSNorm") | (found["statistic"] == "closed form of squared norms")
    assert found.loc[depends, "verdict"].tolist() == ["fails"] * 4


@pytest.mark.parametrize(("relation", "mean"), [(">", -0.15), ("<", 1.05), ("=", 1.05)])
def test_the_setting_that_speaks_most_against_a_claim_is_judged(relation, mean):
    settings = [np.array([1.0, 1.1]), np.array([-0.2, -0.1]), np.array([0.1, 0.2])]
    means = checks_theory._means(runs(), "recency", {}, {"RMSNorm": settings})
    found = means.estimate(means.table["RMSNorm"], SimpleNamespace(relation=relation, bound=0.0), 0.95)
    (of_setting,) = [values for values in settings if values.mean() == pytest.approx(mean)]
    interval = scipy.stats.ttest_1samp(of_setting, 0).confidence_interval(0.95)
    assert found[:4] == (pytest.approx(mean), pytest.approx(interval.low), pytest.approx(interval.high), 2)


def test_a_number_that_is_computed_has_no_width_and_must_be_one():
    formula = checks_theory._worked_out("step", {}, {"q_j": [-3.0, -1.0]})
    assert formula.estimate(formula.table["q_j"], SimpleNamespace(relation="<", bound=0.0), 0.95)[:4] == (-1, -1, -1, 2)
    for unknown in (np.nan, np.inf):
        formula = checks_theory._worked_out("step", {}, {"q_j": [-3.0, unknown]})
        with pytest.raises(ValueError, match="is no number that can be judged"):
            formula.estimate(formula.table["q_j"], SimpleNamespace(relation="<", bound=0.0), 0.95)


def test_what_is_read_is_judged_as_what_was_simulated(simulated, tmp_path):
    artifacts.write_table(tmp_path / "theory.parquet", simulated)
    again = tabulate(read_estimates(artifacts.read_table(tmp_path / "theory.parquet")))
    pd.testing.assert_frame_equal(again, simulated, check_exact=True)
    few = checks_theory.Sampling(24, 16, 1.0, 50, 0, 0.95)
    direct = rows(chain.from_iterable(checks_theory.theorem_statements(few, 1000)))
    kept = tabulate(chain.from_iterable(checks_theory.theorem_statements(few, 1000)))
    pd.testing.assert_frame_equal(rows(read_estimates(kept)), direct, check_exact=True)
