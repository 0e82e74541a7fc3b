"""The findings that a report opens with are claims of the registry, and have the numbers of the scorecard."""

from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
from docutils.core import publish_parts

from position_bias.verdicts import findings
from tests.graphs import CLAIMS, FIGURES

FINDINGS = [(question, *named.split()) for question, named in findings.FINDINGS.items()]
SCORES = pd.read_csv(Path(__file__).parents[3] / "docs/scorecard.csv")


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
    (tmp_path / "logs/page.rst").write_text(findings.page(SCORES))  # as report/workflow.rst includes it
    body = publish_parts(".. include:: logs/page.rst", writer="html", settings_overrides=strict)["html_body"]
    told = " ".join(unescape(body).split())
    for question, figure, *claims in FINDINGS:
        after = told[told.index(question) :]
        assert f"<svg><title>{figure}</title></svg>" in after
        for claim in claims:
            row = SCORES.set_index("claim").loc[claim]
            number = "no value" if np.isnan(row["measured"]) else f"{row['measured']:.3g} [{row['low']:.3g}, "
            said = f"<strong>{row['verdict']}</strong>: {row['statement']} ({number}"
            assert said in after
