"""Which rows speak of the claims on norms, on tables of worlds made by hand; what papers print is typed here."""

from itertools import chain
from pathlib import Path

import pandas as pd
import pytest

from position_bias.layernorm import checks as layernorm_checks
from position_bias.layernorm import checks_theory
from position_bias.verdicts import scorecard
from position_bias.verdicts.registry import OURS, every_claim
from tests.unit.layernorm import world as layernorm
from tests.unit.postnorm import world as postnorm

ROOT = Path(__file__).parents[3]
LAYERNORM, POSTNORM = "layernorm/checks", "postnorm/checks"
CLAIMS = {
    claim.id: claim for claim in every_claim(ROOT / "published/claims.csv") if claim.table in (LAYERNORM, POSTNORM)
}
VALUES = pd.read_csv(ROOT / "published/values.csv", dtype=str)

TINY = {"tokens": 16, "width": 16, "sequences": 64, "limit_tokens": 1000, "seed": 0}


@pytest.fixture(scope="module")
def checks():
    """Tables of checks as the scorecard reads them: theory at toy scale, networks in worlds of our predictions."""
    of_theory = layernorm_checks.read_estimates(checks_theory.table(layernorm.LEVEL, **TINY))
    statistics = chain(of_theory, layernorm_checks.statistics(*layernorm.tables()))
    return {LAYERNORM: layernorm.rows_of(statistics), POSTNORM: postnorm.judged()}


def verdicts(checks):
    printed = dict(zip(VALUES["id"], VALUES["value"], strict=True))
    cards = scorecard.scorecard(CLAIMS.values(), checks, printed, postnorm.LEVEL)
    return cards.set_index("claim")


def rows_of(name, checks):
    table = checks[CLAIMS[name].table]
    return table[table["claim"] == name]


@pytest.mark.parametrize("name", CLAIMS)
def test_rows_of_a_claim_are_predicted_by_whom_it_names(checks, name):
    sources = rows_of(name, checks)["source"]
    if CLAIMS[name].whose == OURS:
        assert sources.str.contains(r"^our addition|this depth is our addition", regex=True).all()
    else:
        assert not sources.str.startswith("our addition").any()
        assert not sources.str.contains("this depth is our addition").any()


@pytest.mark.parametrize("name", [LAYERNORM, POSTNORM])
def test_every_row_that_a_paper_predicts_speaks_of_one_claim_and_no_row_of_two(checks, name):
    table = checks[name]
    assert set(table["claim"]) - {""} == {claim.id for claim in CLAIMS.values() if claim.table == name}
    assert not table.drop(columns="claim").duplicated().any()
    silent = table[table["claim"] == ""]
    silent = silent[~silent["source"].str.startswith("our addition")]
    assert silent["statistic"].str.endswith("another eta").all()


def test_claims_hold_in_worlds_that_behave_as_predicted_but_those_that_contradict_them(checks):
    found = verdicts(checks)["verdict"]
    fails = {"layernorm-residuals", "layernorm-embeddings", "layernorm-premise", "postnorm-precision-law"}
    fails |= {"layernorm-deep-primacy", "layernorm-scaling"}  # ours, by theory at any scale
    open_ones = {"layernorm-full-mask"}  # toy scale
    open_ones |= {"postnorm-breaks", "postnorm-final-stability"}  # few trainings were counted
    assert set(found[found == "fails"].index) == fails
    assert set(found[found.isin(["undecided", "no effect"])].index) == open_ones
    assert set(found.drop([*fails, *open_ones])) == {"holds"}


def test_claims_on_schemes_fail_where_schemes_swap_their_roles():
    sets, words = (postnorm.swapped("pre", "post", postnorm.WORLD[name]) for name in ("sets", "languages"))
    swapped = postnorm.judged(**postnorm.WORLD | {"sets": sets, "languages": words})
    chosen = [claim for claim in CLAIMS.values() if claim.table == POSTNORM]
    cards = scorecard.scorecard(chosen, {POSTNORM: swapped}, {}, postnorm.LEVEL).set_index("claim")["verdict"]
    failing = {"generalises", "best", "languages", "classification", "dispersed-law", "resharpened-law", "final-norm"}
    failing.add("legal-after")
    failed = {name.removeprefix("postnorm-") for name in cards[cards == "fails"].index}
    assert failed == failing | {"precision-law"}


def test_printed_scores_are_those_that_the_checks_hold_against(checks):
    printed = VALUES[VALUES["paper"] == "layernorm"].set_index("id")
    assert printed["value"].to_dict() == {
        "layernorm_three_tokens_2_1": "0.154",
        "layernorm_three_tokens_3_1": "0.132",
        "layernorm_three_tokens_3_2": "0.150",
    }
    bounds = rows_of("layernorm-three-tokens", checks).set_index("network")["bound"]
    assert bounds.to_dict() == {
        f"({i}, {j})": float(printed.loc[f"layernorm_three_tokens_{i}_{j}", "value"]) for i, j in checks_theory.PAIRS
    }


def test_the_printed_score_that_the_scorecard_shows_is_that_of_the_row_that_decides(checks):
    card = verdicts(checks).loc["layernorm-three-tokens"]
    assert "score (3, 2)" in card["quantity"]
    assert CLAIMS["layernorm-three-tokens"].published == "layernorm_three_tokens_3_2"
    assert card["published"] == "0.150"
