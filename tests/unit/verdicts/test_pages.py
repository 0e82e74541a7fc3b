"""What pages say of a scorecard, and that the findings a report opens with are claims of the registry."""

import dataclasses
import math
import re
from html import unescape
from pathlib import Path

import pandas as pd
from docutils.core import publish_parts

from position_bias.verdicts import pages, scorecard
from position_bias.verdicts.judge import table
from tests.graphs import CLAIMS, FIGURES
from tests.unit.verdicts.rows import CLAIM, DOWN_ROW, OTHER_UP, TABLE, UP_ROW, at, check

FINDINGS = [(question, *named.split()) for question, named in pages.FINDINGS.items()]
SCORES, ADDITIONS = (pd.read_csv(Path(__file__).parents[3] / f"docs/{name}.csv") for name in ("scorecard", "additions"))
BOTH = pd.concat([SCORES, ADDITIONS]).set_index("claim")


def test_findings_are_claims_and_figures_of_the_workflow():
    drawn = {f"{paper}/{name}" for paper, names in FIGURES.items() for name in names.split()}
    assert {figure for _, figure, *_ in FINDINGS} <= drawn
    assert {claim for _, _, *claims in FINDINGS for claim in claims} <= {claim.id for claim in CLAIMS}
    assert len(FINDINGS) == 4


def test_the_page_has_verdicts_numbers_and_figures_in_its_html(tmp_path, monkeypatch):
    for _, figure, *_ in FINDINGS:
        (tmp_path / f"figures/{figure}.svg").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"figures/{figure}.svg").write_text(f"<svg><title>{figure}</title></svg>")
    monkeypatch.chdir(tmp_path)
    strict = {"halt_level": 2}  # a warning is an error
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/page.rst").write_text(pages.findings(SCORES, ADDITIONS))  # as report/workflow.rst includes it
    body = publish_parts(".. include:: logs/page.rst", writer="html", settings_overrides=strict)["html_body"]
    told = " ".join(unescape(body).split())
    for question, figure, *claims in FINDINGS:
        after = told[told.index(question) :]
        assert f"<svg><title>{figure}</title></svg>" in after
        for claim in claims:
            row = BOTH.loc[claim]
            number = scorecard.effect(row).partition(",")[0]
            said = f"<strong>{row['verdict']}</strong>: {row['statement']} ({number}"
            assert said in after


def claims_of_three():
    secondary = dataclasses.replace(CLAIM, id="t", title="A norm", whose="secondary source", kind="theory")
    own = dataclasses.replace(CLAIM, id="n", title="No norm", needs="iterations")
    doubted = dataclasses.replace(secondary, id="d", statement="it falls", doubted=True)
    of_three = [UP_ROW, {**DOWN_ROW, "claim": "t"}, {**UP_ROW, "claim": "n"}, {**DOWN_ROW, "claim": "d"}]
    checks = {TABLE: table("emergence", "test", of_three)}
    return scorecard.scorecard(
        scorecard.judge_claims([CLAIM, secondary, own, doubted], checks, 0.95), {"a": ".17"}, 0.95
    )


def test_the_terminal_counts_every_claim():
    header, *lines, _ = pages.short(claims_of_three()).splitlines()
    counted = {line[:35].strip(): line.split()[-1] for line in lines if line.split()[-1] == "1"}
    assert counted == {"claims known from secondary sources": "1"}
    assert [line.split()[-1] for line in lines if line.startswith("papers: networks")] == ["2"]
    column = header.index("fail")
    assert [line[column : column + 4].strip() for line in lines].count("1") == 1


def test_the_headline_counts_every_claim_once_by_kind_and_scale():
    found = pages.verdict_counts(claims_of_three())
    assert found.to_numpy().sum() == 4
    assert found[found["hold"] > 0].index.tolist() == [
        ("claims of the papers", "networks", ""),
        ("claims of the papers", "networks", "(toy run)"),
    ]
    assert found[found["fail"] > 0].index.get_level_values(0).tolist() == [
        "claims known from secondary sources",
        "claims that are not counted",
    ]


def test_an_entry_has_its_verdict_numbers_and_links():
    shown = "figures/emergence/fig2.pdf and results/tables/emergence/gaps.md and figures/emergence/long_training.pdf"
    _, *entries = pages.page(claims_of_three().assign(shown=shown)).split("\n- ")
    of_ours = entries[2]
    assert re.findall(r'id="(\w)"|\*\*(\w+)\*\*', of_ours) == [("n", ""), ("", "holds")]
    assert re.search("Effect: (.*?):", of_ours)[1] == "0.2 [0.15, 0.25], predicted > 0, margin 0.01, n = 5"
    figures = [f"../../figures/emergence/{name}.png" for name in ("fig2", "long_training")]
    assert re.findall(r"\]\((.*?)\)", of_ours) == ["../../docs/papers/emergence.md#n", *figures]


def test_an_entry_says_what_would_decide_and_no_missing_number():
    checks = {TABLE: table("emergence", "test", [check(math.nan, 0.1), {**check(0.0371, 0.0627), "claim": "n"}])}
    page = pages.page(
        scorecard.scorecard(
            scorecard.judge_claims([CLAIM, dataclasses.replace(CLAIM, id="n")], checks, 0.95), {"a": ""}, 0.95
        )
    )
    assert re.findall("What would decide: (.*)", page)[1] == "17 to 105 seeds"
    assert "nan" not in page


def test_comparisons_of_the_scale_that_decides_come_first():
    rows = pd.concat([at("default", DOWN_ROW, OTHER_UP), at("paper", UP_ROW)])
    found = scorecard.comparisons(scorecard.judge_claims([CLAIM], {TABLE: rows}, 0.95))
    assert list(found) == list(scorecard.COMPARISON_COLUMNS)
    assert found["decides"].tolist() == [True, False, False]
    assert pages.readable_comparisons(found)["verdict"].tolist() == ["holds", "(fails)", "(holds)"]


def test_a_value_that_prints_as_its_bound_is_told_to_be_larger():
    near = {**UP_ROW, "bound": 1.0, "margin": 0.0, "measured": 1 + 1e-9, "low": 1 + 1e-9, "high": 1 + 1e-9}
    found = scorecard.comparisons(scorecard.judge_claims([CLAIM], {TABLE: table("emergence", "paper", [near])}, 0.95))
    (predicted,) = pages.readable_comparisons(found)["predicted"]
    assert predicted == "> 1; larger by less than these digits show"
