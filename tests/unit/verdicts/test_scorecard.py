"""Verdicts on claims from rows of checks, against what is worked out by hand."""

import dataclasses
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from position_bias.running.runtime import InputError
from position_bias.verdicts import pages, scorecard
from position_bias.verdicts.claim import Claim
from position_bias.verdicts.verdict import COLUMNS, Prediction, row, table

ABOVE = Prediction(">", 0.0, 0.01)
TABLE = "emergence/checks"
CLAIM = Claim(
    "rises", "emergence", "Figure 2", "Section 5", "it rises", "paper", "nothing", TABLE, "figures/x.pdf", "a"
)


def check(measured, half, n=5, prediction=ABOVE, quantity="gap", claim="rises", item="Figure 2"):
    found = row(claim, item, quantity, prediction, measured, (measured - half, measured + half), n, "Section 5")
    return {**found, "statistic": item, "network": quantity, "other": "", "setting": ""}


def judged(*rows, claim=CLAIM, level=0.95):
    checks = {TABLE: table("emergence", "test", rows)}
    (found,) = scorecard.scorecard([claim], checks, {"a": ".17"}, level).to_dict("records")
    return found


predictions = st.builds(
    Prediction,
    st.sampled_from([">", "<", "="]),
    st.floats(-1e3, 1e3).map(lambda value: float(f"{value:g}")),
    st.floats(0, 10).map(lambda value: float(f"{value:g}")),
)


@given(prediction=predictions, low=st.floats(-20, 20), width=st.floats(0, 20))
def test_slack_tells_holding_from_all_else(prediction, low, width):
    holds = prediction.verdict(low, low + width) == "holds"
    slack = prediction.slack(low, low + width)
    assert (slack > 0) <= holds <= (slack >= 0)


def test_one_row_is_its_own_verdict_with_its_own_interval():
    found = judged(check(0.2, 0.05))
    assert (found["verdict"], found["measured"], found["published"]) == ("holds", 0.2, ".17")
    assert (found["relation"], found["bound"], found["margin"]) == (">", 0, 0.01)
    np.testing.assert_allclose((found["low"], found["high"]), (0.15, 0.25))
    assert [found[f"rows: {kind}"] for kind in scorecard.VERDICTS] == [1, 0, 0, 0]


def test_among_two_rows_intervals_are_those_of_half_the_error():
    """Five seeds each: Student's quantile at .9875 over that at .975, 4 degrees of freedom, 3.4954 over 2.7764."""
    found = judged(check(0.2, 0.05, quantity="near"), check(0.9, 0.05, quantity="far"))
    assert found["quantity"] == "near"
    np.testing.assert_allclose(found["high"] - 0.2, 0.05 * 3.4954 / 2.7764, rtol=1e-4)


def test_a_row_that_holds_alone_need_not_hold_among_many():
    alone = check(0.065, 0.05)
    assert judged(alone)["verdict"] == "holds"
    assert judged(alone, *(check(5.0, 0.1, quantity=str(i)) for i in range(9)))["verdict"] == "not separable"


def test_false_alarms_over_many_rows_are_as_rare_as_over_one():
    """Twenty rows whose true value is the bound: at level .9, at most about one time in ten any of them is settled."""
    rng, settled, trials = np.random.default_rng(0), 0, 400
    for _ in range(trials):
        values = rng.normal(0, 1, (20, 8))
        halves = student.ppf(0.95, 7) * values.std(axis=1, ddof=1) / math.sqrt(8)
        rows = [check(v.mean(), half, 8, Prediction(">", 0)) for v, half in zip(values, halves, strict=True)]
        settled += judged(*rows, level=0.9)["verdict"] == "fails" or judged(*rows, level=0.9)["rows: holds"] > 0
    assert 0.05 < settled / trials < 0.14


def test_a_range_over_settings_is_neither_widened_nor_judged_again():
    worst = row("rises", "Figure 2", "the worst of many draws", ABOVE, 0.02, (0.02, 0.02), 40, "Section 5")
    rows = [{**worst, "high": 0.9}, check(0.065, 0.05)]
    claim = dataclasses.replace(CLAIM, ranges=True)
    assert judged(*rows)["verdict"] == "not separable"
    found = judged(*rows, claim=claim)
    assert (found["verdict"], found["low"], found["high"]) == ("holds", 0.015, 0.115)


def test_what_has_no_width_is_not_widened():
    found = judged(check(0.2, 0.0, quantity="a"), check(0.3, 0.0, quantity="b"), check(0.02, 0.005, quantity="c"))
    assert found["verdict"] == "holds"
    np.testing.assert_allclose(found["low"], 0.015)


@pytest.mark.parametrize(
    ("rows", "verdict", "decides"),
    [
        ([check(0.2, 0.01, quantity="a"), check(0.1, 0.01, quantity="b")], "holds", "b"),
        ([check(0.2, 0.01, quantity="a"), check(0.0, 0.1, quantity="b")], "not separable", "b"),
        (
            [check(0.2, 0.01, quantity="a"), check(-0.1, 0.01, quantity="b"), check(-0.9, 0.1, quantity="c")],
            "fails",
            "c",
        ),
        ([check(math.nan, 0.1, quantity="a"), check(0.2, 0.01, quantity="b")], "holds", "b"),
        ([check(math.nan, 0.1, quantity="a")], "not testable here", "a"),
    ],
)
def test_a_claim_holds_where_all_rows_do_and_fails_where_one_does(rows, verdict, decides):
    found = judged(*rows)
    assert (found["verdict"], found["quantity"]) == (verdict, decides)


@pytest.mark.parametrize("nothing", ["", math.nan])
def test_rows_of_no_claim_say_nothing_as_made_and_as_read_from_a_file(nothing):
    assert judged(check(0.2, 0.01), check(-0.5, 0.01, claim=nothing))["verdict"] == "holds"


def test_a_claim_without_rows_is_a_fault_and_not_an_omission():
    with pytest.raises(InputError, match="claim rises has no row in table emergence/checks; configure") as raised:
        judged(check(0.2, 0.01, claim=""))
    assert len(str(raised.value).splitlines()) == 1


def test_a_row_of_a_claim_that_is_not_registered_is_a_fault():
    with pytest.raises(InputError, match="table emergence/checks has rows of claim falls, which") as raised:
        judged(check(0.2, 0.01), check(0.2, 0.01, claim="falls"))
    assert len(str(raised.value).splitlines()) == 1


def test_a_row_in_another_table_than_its_claim_names_is_a_fault():
    other = dataclasses.replace(CLAIM, id="falls", table="layernorm/checks")
    checks = {TABLE: table("emergence", "test", [check(0.2, 0.01), check(0.2, 0.01, claim="falls")])}
    checks["layernorm/checks"] = table("layernorm", "test", [check(0.2, 0.01, claim="falls")])
    with pytest.raises(InputError, match="table emergence/checks has rows of claim falls, which"):
        scorecard.scorecard([CLAIM, other], checks, {"a": ""}, 0.95)


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(6)))
def test_where_rows_stand_decides_nothing(order):
    rows = [check(0.1 + 0.1 * i, 0.05, claim="rises" if i % 2 else "", quantity=f"gap {i}") for i in range(6)]
    assert judged(*(rows[i] for i in order)) == judged(*rows)


def test_a_table_of_another_schema_is_refused():
    with pytest.raises(InputError, match="table emergence/checks lacks column seen_before, source"):
        scorecard.scorecard([CLAIM], {TABLE: pd.DataFrame(columns=COLUMNS[:-2])}, {"a": ""}, 0.95)


def at(scale, *rows):
    return table("emergence", scale, rows)


def judged_at(*tables, needs="iterations"):
    claim = dataclasses.replace(CLAIM, needs=needs)
    (found,) = scorecard.scorecard([claim], {TABLE: pd.concat(tables)}, {"a": ""}, 0.95).to_dict("records")
    return found["verdict"], found["settled"], found["scale"], found["by scale"]


UP, DOWN, OPEN = check(0.2, 0.01), check(-0.2, 0.01), check(0.0, 0.1)
OTHER_UP, OTHER_DOWN = (check(value, 0.01, quantity="another gap") for value in (0.2, -0.2))


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([at("laptop", UP)], ("holds", False, "laptop", "laptop: holds")),
        ([at("longer", DOWN)], ("fails", False, "longer", "longer: fails")),
        ([at("paper", UP)], ("holds", True, "paper", "paper: holds")),
        ([at("laptop", DOWN), at("paper", UP)], ("holds", True, "paper", "paper: holds; laptop: fails")),
        ([at("laptop", UP), at("paper", DOWN)], ("fails", True, "paper", "paper: fails; laptop: holds")),
        ([at("laptop", UP), at("longer", DOWN)], ("fails", False, "longer", "longer: fails; laptop: holds")),
        (
            [at("laptop", UP), at("paper", OPEN)],
            ("not separable", True, "paper", "paper: not separable; laptop: holds"),
        ),
        # of two quantities one has been seen at the paper's scale
        ([at("laptop", UP, OTHER_UP), at("paper", UP)], ("holds", False, "laptop", "paper: holds; laptop: holds")),
        ([at("laptop", UP, OTHER_UP), at("paper", DOWN)], ("fails", True, "paper", "paper: fails; laptop: holds")),
        ([at("laptop", UP, OTHER_DOWN), at("paper", UP)], ("fails", False, "laptop", "paper: holds; laptop: fails")),
    ],
)
def test_the_largest_scale_speaks_and_settles_what_the_claim_is_about(tables, expected):
    verdict, settled, scale, by_scale = judged_at(*tables)
    assert (verdict, settled, by_scale) == (expected[0], expected[1], expected[3])
    assert scale == expected[2] or expected[0] == "holds"  # of rows that all hold the least convincing is shown


def test_a_claim_that_needs_nothing_is_settled_at_any_scale():
    assert judged_at(at("laptop", DOWN), needs="nothing") == ("fails", True, "laptop", "laptop: fails")


def test_other_words_change_no_verdict_and_a_row_without_keys_is_overruled_by_none():
    reworded = {**UP, "quantity": "the same gap in other words"}
    assert judged_at(at("laptop", DOWN), at("paper", reworded)) == judged_at(at("laptop", DOWN), at("paper", UP))
    without = {**UP, "statistic": "", "network": ""}
    assert judged_at(at("laptop", DOWN), at("paper", without))[0] == "fails"


def test_what_has_no_data_at_the_larger_scale_is_judged_at_the_smaller():
    nothing = check(math.nan, 0.1)
    assert judged_at(at("laptop", UP), at("paper", nothing)) == ("holds", False, "laptop", "laptop: holds")
    assert judged_at(at("paper", nothing)) == ("not testable here", False, "paper", "")


def test_an_identity_supports_no_claim():
    identity = {**check(0.0, 0.0, prediction=Prediction("=", 0.0, 0.1), quantity="no mask"), "identity": True}
    assert judged(UP, identity)["rows: holds"] == 1
    assert judged(DOWN, identity)["verdict"] == "fails"
    assert judged(identity)["verdict"] == "not testable here"


@pytest.mark.parametrize("bound", ["low", "high"])
def test_a_verdict_without_a_finite_interval_is_an_error(bound):
    with pytest.raises(InputError, match="table emergence/checks has a verdict on 'gap' without a finite interval"):
        judged({**UP, bound: math.inf})


def claims_of_three():
    secondary = dataclasses.replace(CLAIM, id="t", item="Theorem 1", statement="a norm", whose="secondary source")
    own = dataclasses.replace(CLAIM, id="n", item="the null", statement="no norm", whose="ours", needs="iterations")
    doubted = dataclasses.replace(secondary, id="d", statement="it falls", doubted=True)
    rows = [UP, {**DOWN, "claim": "t"}, {**UP, "claim": "n"}, {**DOWN, "claim": "d"}]
    checks = {TABLE: table("emergence", "test", rows)}
    return scorecard.scorecard([CLAIM, secondary, own, doubted], checks, {"a": ".17"}, 0.95)


def test_the_terminal_shows_counts_and_a_line_a_claim():
    lines = pages.short(claims_of_three()).splitlines()
    assert lines[2:] == [
        "Of 1 claims of the papers, 1 is settled (1 holds); 0 are seen at a smaller scale only.",
        "Of 1 claims known from secondary sources, 1 is settled (1 fails); 0 are seen at a smaller scale only.",
        "Of 1 claims that we add, 0 are settled; 1 is seen at a smaller scale only (1 holds).",
        "Not counted: 1 whose source may not say what the paper says.",
        "",
        "emergence: claims of the papers",
        "  holds  Figure 2: it rises",
        "",
        "emergence: claims known from secondary sources",
        "  fails  Theorem 1: a norm",
        "",
        "emergence: claims that we add",
        "  (holds)  the null: no norm",
        "",
        "emergence: claims that are not counted",
        "  fails  Theorem 1: it falls (does the paper say so?)",
    ]


def test_what_training_changed_names_the_claims_that_have_several_scales_those_that_differ_first():
    scales = ["paper: holds; laptop: holds", "laptop: holds", "longer: fails; laptop: holds", "laptop: fails"]
    table = claims_of_three().assign(**{"by scale": scales})
    said, _, header, _, *rows = pages.by_training(table).splitlines()
    assert said == "Of 2 claims, 1 got different verdicts from different trainings."
    assert header == "| claim | default run | longer training | the paper's training | verdict |"
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    claims = table["claim"].tolist()
    assert [re.search(r"#(.*)\)", row[0])[1] for row in cells] == [claims[2], claims[0]]
    assert [row[1:4] for row in cells] == [["holds", "fails", ""], ["holds", "", "holds"]]


def test_the_tally_counts_every_claim_once():
    lines = pages.tally(claims_of_three()).splitlines()
    assert lines[2:] == [
        "| claims of the papers | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |",
        "| claims known from secondary sources | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |",
        "| claims that we add | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 0 |",
        "",
        "Not counted: 1 whose source may not say what the paper says.",
    ]


def test_the_table_for_people_has_five_columns_and_a_link_to_the_finding():
    shown = "figures/emergence/fig2.pdf and results/tables/emergence/gaps.md and figures/emergence/long_training.pdf"
    table = pages.readable(claims_of_three().assign(shown=shown))
    assert list(table) == ["claim", "verdict", "measured", "source", "finding"]
    own = table.iloc[2]
    assert own["verdict"] == "holds, at a smaller scale"
    assert own["measured"] == "0.2 [0.19, 0.21] (predicted > 0, margin 0.01), n = 5: gap"
    figures = "[fig2](gallery/emergence.md#figure-2), [long_training](gallery/emergence.md#long-training)"
    assert own["finding"] == f"[n](deviations.md#n), {figures}"


def test_every_comparison_has_its_own_interval_and_the_one_it_is_judged_by():
    rows = [{**UP, "quantity": name} for name in ("one", "two", "three")]
    low, high = UP["low"], UP["high"]
    found = scorecard.comparisons([CLAIM], {TABLE: table("emergence", "paper", rows)}, 0.95)
    assert list(found) == list(scorecard.COMPARISON_COLUMNS)
    assert found["claim"].tolist() == [CLAIM.id] * 3
    assert (found[["low", "high"]] == [low, high]).all(axis=None)
    assert (found["low, judged"] < low).all()
    assert (found["high, judged"] > high).all()
    counted = scorecard.scorecard([CLAIM], {TABLE: table("emergence", "paper", rows)}, {"a": ".17"}, 0.95).iloc[0]
    assert [(found["verdict"] == verdict).sum() for verdict in scorecard.VERDICTS] == [
        counted[f"rows: {verdict}"] for verdict in scorecard.VERDICTS
    ]
    assert counted["low"] in set(found["low, judged"])
    readable = pages.compared(found)
    assert readable["measured"].iloc[0] == f"{UP['measured']:.3g} [{low:.3g}, {high:.3g}]"
    assert readable["judged by"].iloc[0] != f"[{low:.3g}, {high:.3g}]"


def test_a_comparison_that_a_larger_scale_overrules_is_kept_and_judged_by_none():
    rows = [UP, {**UP, "scale": "laptop", "measured": -1, "low": -1.1, "high": -0.9, "verdict": "fails"}]
    found = scorecard.comparisons([CLAIM], {TABLE: table("emergence", "paper", rows)}, 0.95)
    assert found["decides"].tolist() == [True, False]
    assert found["low, judged"].notna().tolist() == [True, False]
    assert pages.compared(found)["verdict"].tolist() == ["holds", "overruled (fails)"]
    assert pages.compared(found)["judged by"].tolist()[1] == ""


def test_a_value_that_prints_as_its_bound_is_told_to_be_larger():
    near = {**UP, "bound": 1.0, "margin": 0.0, "measured": 1 + 1e-9, "low": 1 + 1e-9, "high": 1 + 1e-9}
    found = scorecard.comparisons([CLAIM], {TABLE: table("emergence", "paper", [near])}, 0.95)
    (predicted,) = pages.compared(found)["predicted"]
    assert predicted == "> 1; larger by less than these digits show"
