"""A verdict stands under figures that show what decides it; a network that is left out of its figure is found."""

from dataclasses import replace

import pandas as pd
import pytest

from position_bias.emergence import checks, figures
from position_bias.verdicts.registry import predictions
from position_bias.verdicts.scorecard import comparisons, judge_claims
from position_card.drawing import shown as drawing_shown
from tests import shown
from tests.configurations import ROOT
from tests.figures.emergence import trained
from tests.graphs import CLAIMS
from tests.worlds import PREDICTED

CLAIM = next(claim for claim in CLAIMS if claim.id == "emergence-figure-3-u")
FIGURE, GROUPS = "figures/emergence/fig3.pdf", ("ends-causal", "ends-no-mask", "ends-rope")
LEVEL = 0.95


@pytest.fixture(scope="module")
def compared():
    """What decides the claim on Figure 3, judged on the long runs that are kept."""
    paths = [path for group in GROUPS for path in (ROOT / f"evidence/emergence/{group}").glob("*.csv")]
    networks = checks.read_long_runs(paths, 0.2)["paper"]
    judged = checks.network_checks(networks, predictions(PREDICTED, "emergence"), "paper", LEVEL)
    return comparisons(judge_claims([CLAIM], {CLAIM.table: judged[judged["claim"] == CLAIM.id]}, LEVEL))


def drawn_of(*groups):
    """What Figure 3 draws of the networks of some long runs, before those of a short run."""
    kept = [pd.read_csv(ROOT / f"evidence/emergence/{group}/curves.csv") for group in groups]
    own = trained(study=["ends"], bias=["ends"], residual=[True], mask=["causal", "none"], encoding=["sin", "rope"])
    return {FIGURE: set(drawing_shown.names_in(figures.by_bias(own, kept, LEVEL, {}), "short"))}


@pytest.mark.usefixtures("styled")
def test_a_deciding_network_that_its_figure_lacks_is_found(compared):
    assert list(shown.faults([CLAIM], compared, drawn_of(*GROUPS))) == []
    (fault,) = shown.faults([CLAIM], compared, drawn_of("ends-causal", "ends-no-mask"))
    assert fault.startswith(f"{CLAIM.id}: {FIGURE} do not show paper: gaussian/ends/causal/rope/depth2")
    assert list(shown.faults([CLAIM], compared, drawn_of())) == [
        f"{CLAIM.id}: {FIGURE} do not show {', '.join(sorted(shown.deciding(compared)[CLAIM.id]))}",
        f"{CLAIM.id}: {FIGURE} shows nothing that decides it",
    ]


ROWS = pd.DataFrame(
    [("one", "paper", "a; b", True, 0.1), ("one", "short", "c", False, 0.1), ("one", "paper", "d", True, float("nan"))],
    columns=["claim", "scale", "of", "decides", "measured"],
)


@pytest.mark.parametrize(
    ("targets", "drawn", "found"),
    [
        ("figures/x.pdf", {"figures/x.pdf": {"paper: a", "paper: b"}}, []),
        ("figures/x.pdf", {"figures/x.pdf": {"paper: a", "short: b"}}, ["do not show paper: b"]),
        ("figures/x.pdf and figures/y.pdf", {"figures/x.pdf": {"paper: a"}, "figures/y.pdf": {"paper: b"}}, []),
        ("figures/x.pdf and figures/y.pdf", {"figures/x.pdf": {"paper: a", "paper: b"}}, ["y.pdf shows nothing"]),
        ("results/tables/t.md and figures/x.pdf", {"figures/x.pdf": {"paper: a"}}, []),
        ("results/tables/t.md", {}, []),
    ],
)
def test_figures_show_together_what_decides_and_each_a_part(targets, drawn, found):
    claim = replace(CLAIM, id="one", shown=targets)
    faults = list(shown.faults([claim], ROWS, drawn))
    assert len(faults) == len(found)
    assert all(words in fault for words, fault in zip(found, faults, strict=True))


def test_every_verdict_that_is_kept_stands_under_what_decides_it():
    assert shown.kept(ROOT, CLAIMS) == []


def test_leaving_any_deciding_network_out_of_its_figures_is_found():
    compared, drawn = pd.read_csv(ROOT / "docs/comparisons.csv"), shown.drawn_as_kept(ROOT)
    of_figures = {claim.id: claim for claim in CLAIMS if shown.TABLE not in claim.shown}
    left_out = 0
    for claim_id, rows in compared[compared["claim"].isin(of_figures)].groupby("claim"):
        claim = of_figures[claim_id]
        for name in shown.deciding(rows).get(claim_id, set()):
            others = {figure: drawn[figure] - {name} for figure in claim.shown.split(" and ")}
            assert any(name in fault for fault in shown.faults([claim], rows, others)), (claim_id, name)
            left_out += 1
    assert left_out > len(of_figures)
