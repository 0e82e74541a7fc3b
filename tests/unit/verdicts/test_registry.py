"""The registry of claims, how it is read, and what it says against the rules of the workflow and what papers print."""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from position_bias.verdicts import registry
from position_bias.verdicts.registry import NOTHING, OF_ADDITIONS, OF_CLAIMS, OURS, SCALES, Claim
from tests.refusals import refused
from tools.workflow import rules

ROOT = Path(__file__).parents[3]
PAPERS = {path.parent.name for path in (ROOT / "position_bias").glob("*/checks.py")}
CLAIMS = registry.every_claim(ROOT / "published/claims.csv")
ADDITIONS = registry.every_addition(ROOT / "published/additions.csv")
VALUES = pd.read_csv(ROOT / "published/values.csv", dtype=str, keep_default_na=False)
BOTH = CLAIMS + ADDITIONS
every_claim = pytest.mark.parametrize("claim", BOTH, ids=[claim.id for claim in BOTH])


def is_output(path):
    """Whether a rule makes this, with wildcards that it allows."""
    return any(rule.makes(path) for rule in rules().values())


KERNELS = ("structural-smooth-kernels", "structural-assumption-needed")  # on Assumption 4.1, without any network
PRINTED = tuple(
    f"structural-printed-{name}" for name in ("content", "size", "larger", "long", "triangle")
)  # on printed tables
RELEASED = tuple(
    f"structural-released-{name}" for name in ("slopes", "content", "lambda")
)  # on what text and released code say of one number
UNTRAINED = "structural-untrained"  # of architectures, whatever their size

LINE = "a-1,emergence,Figure 2,Section 5,Rising,it rises,paper,iterations,emergence/checks,figures/x.pdf"
LINE += ",most,seed,network,gaps,,false"


def read(folder, *lines):
    (folder / "claims.csv").write_text("\n".join([",".join(OF_CLAIMS), *lines]) + "\n")
    return registry.every_claim(folder / "claims.csv")


def test_a_line_is_a_claim(tmp_path):
    second = (
        LINE.replace("a-1", "a-2").replace("it rises", '"falls, a little"').replace(",paper,", ",secondary source,")
    )
    first, second = read(tmp_path, LINE, second.replace(",,false", ",value_1,true,more iterations"))
    shown = ("paper", "iterations", "emergence/checks", "figures/x.pdf", "most", "seed", "network", "gaps")
    assert first == Claim("a-1", "emergence", "Figure 2", "Section 5", "Rising", "it rises", *shown, "", False)
    assert (second.id, second.statement, second.whose) == ("a-2", "falls, a little", "secondary source")
    assert (second.published, second.doubted, second.would_test) == ("value_1", True, "more iterations")


def test_an_addition_is_ours_and_answers_a_question(tmp_path):
    line = "a-3,emergence,Figure 2,Does it rise?,Rising,it rises,iterations,emergence/checks,figures/x.pdf"
    line += ",most,seed,network,gaps"
    path = tmp_path / "additions.csv"
    path.write_text("\n".join([",".join(OF_ADDITIONS), line]) + "\n")
    (found,) = registry.every_addition(path)
    assert (found.id, found.question, found.whose, found.place) == ("a-3", "Does it rise?", "ours", "")
    path.write_text("\n".join([",".join(OF_ADDITIONS), line.replace("Does it rise?", "")]) + "\n")
    with refused("row 2", "question"):
        registry.every_addition(path)


def test_additions_are_few_and_each_is_a_question():
    assert len(ADDITIONS) <= 20
    assert all(claim.question.endswith("?") for claim in ADDITIONS)
    assert len({claim.question for claim in ADDITIONS}) == len(ADDITIONS)
    assert len({claim.id for claim in BOTH}) == len(BOTH)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ([LINE, LINE], "a-1 twice"),
        ([LINE.replace("false", "no")], "doubted no; use one of: true, false"),
        ([LINE.replace("iterations", "prompts and luck")], "needs luck"),
        ([LINE.replace(",paper,", ",theirs,")], "whose theirs"),
        ([LINE.replace(",paper,", ",ours,")], "whose ours"),
        ([LINE.replace(",most,", ",few,")], "form few"),
        ([LINE, "a-2,emergence"], "row 3"),
        ([LINE, ""], "row 3"),
        ([LINE + ",more,too many"], "row 2"),
    ],
)
def test_a_registry_that_cannot_be_used_ends_in_one_line(tmp_path, lines, named):
    with refused(tmp_path / "claims.csv", named):
        read(tmp_path, *lines)


def test_papers_on_norms_speak_by_a_secondary_source():
    assert {claim.paper for claim in CLAIMS} == PAPERS
    assert {(claim.paper, claim.whose) for claim in CLAIMS} == {
        ("structural", "paper"),
        ("emergence", "paper"),
        ("layernorm", "secondary source"),
        ("postnorm", "secondary source"),
    }


@every_claim
def test_what_a_claim_shows_and_is_judged_on_is_made_by_a_rule(claim):
    assert all(map(is_output, claim.shown.split(" and ")))
    assert is_output(f"results/tables/{claim.table}.csv")


@every_claim
def test_the_cells_of_a_claim_fit_each_other(claim):
    """Theory needs no scale and has no unit to generalise over; what is trained has both."""
    assert re.fullmatch(rf"{claim.paper}-[a-z0-9-]+", claim.id)
    assert claim.table.split("/")[0] == claim.paper
    assert claim.published == "" or VALUES.set_index("id").loc[claim.published, "paper"] == claim.paper
    theory = claim.item.startswith(("Theorem", "Lemma", "Proposition", "Appendices"))
    if claim.paper in ("structural", "emergence"):
        assert (claim.needs == NOTHING) == (theory or claim.id in (*KERNELS, *PRINTED, *RELEASED, UNTRAINED))
    assert (claim.whose == OURS) == (claim.place == "") == (claim.question != "")
    assert (claim.unit == "none") == (claim.kind in ("theory", "printed", "errata"))
    assert claim.form != "exact" or claim.unit == "none"


def test_what_no_rule_makes_is_no_output():
    for paper, known, unknown in (("structural", "fig1", "fig9"), ("emergence", "fig4", "fig14")):
        assert is_output(f"figures/{paper}/{known}.pdf")
        assert not is_output(f"figures/{paper}/{unknown}.pdf")


def test_published_values_are_known_to_half_of_their_last_digit():
    assert list(VALUES.columns) == ["id", "paper", "item", "place", "quantity", "value", "tolerance", "source"]
    assert VALUES["id"].is_unique
    assert set(VALUES["paper"]) <= PAPERS
    assert (VALUES[["item", "place", "quantity", "source"]] != "").all(axis=None)
    for value, tolerance in VALUES[["value", "tolerance"]].itertuples(index=False):
        last_digit = Decimal(1).scaleb(int(Decimal(value).as_tuple().exponent))
        assert Decimal(tolerance) == last_digit / 2, f"{value} +- {tolerance}"


@pytest.mark.parametrize(
    ("needs", "whose", "met"),
    [
        ("nothing", "paper", [*SCALES]),
        ("iterations", "ours", ["paper"]),
        ("prompts and lengths", "paper", ["paper"]),
        ("pretrained models", "paper", ["paper"]),
        ("pretrained models", "ours", ["pretrained", "paper"]),
    ],
)
def test_rows_of_the_scale_that_a_claim_is_about_meet_its_needs(needs, whose, met):
    claim = replace(CLAIMS[0], needs=needs, whose=whose)
    assert [scale for scale in SCALES if claim.met_at(scale)] == met


def test_no_two_claims_have_the_same_title():
    assert len({claim.title for claim in BOTH}) == len(BOTH)
