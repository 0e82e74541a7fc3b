"""Verdicts on claims from rows of checks, against what is worked out by hand."""

import dataclasses
import math
import re

import numpy as np
import pandas as pd
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.verdicts import planning, scorecard
from position_bias.verdicts.judge import COLUMNS, table
from position_bias.verdicts.rule import OF_ROW
from tests.refusals import refused
from tests.unit.verdicts.rows import (
    CLAIM,
    DOWN,
    DOWN_ROW,
    NULL,
    OPEN,
    OPEN_ROW,
    OTHER_UP,
    TABLE,
    UP,
    UP_ROW,
    at,
    check,
)

NEAR = "none: it would take over 10 times as many seeds"


def judged(*rows, claim=CLAIM, level=0.95):
    checks = {TABLE: table("emergence", "test", rows)}
    (found,) = scorecard.scorecard(scorecard.judge_claims([claim], checks, level), {"a": ".17"}, level).to_dict(
        "records"
    )
    return found


def claim_of_form(form, unit="seed", **others):
    return dataclasses.replace(CLAIM, form=form, unit=unit, **others)


def test_one_row_is_its_own_verdict_with_its_own_interval():
    found = judged(check(0.2, 0.05))
    assert (found["verdict"], found["measured"], found["published"]) == ("holds", 0.2, ".17")
    assert (found["relation"], found["bound"], found["margin"]) == (">", 0, 0.01)
    np.testing.assert_allclose((found["low"], found["high"]), (0.15, 0.25))
    assert [found[f"rows: {word}"] for word in OF_ROW] == [1, 0, 0, 0, 0]


def rows(**values):
    return [check(*value, quantity=name) for name, value in values.items()]


@pytest.mark.parametrize(
    ("form", "found", "verdict", "decides"),
    [
        ("all", {"a": UP, "b": (0.1, 0.05)}, "holds", "b"),
        ("all", {"a": UP, "b": OPEN}, "undecided", "b"),
        ("all", {"a": UP, "b": DOWN, "c": (-0.9, 0.1)}, "fails", "c"),
        ("all", {"a": NULL, "b": (0.0, 0.001), "c": (0.002, 0.007)}, "no effect", "c"),
        ("all", {"a": NULL, "b": OPEN}, "undecided", "a"),
        ("all", {"a": UP, "b": UP, "c": (0.0, 0.004)}, "mostly holds", "c"),
        ("all", {"a": (0.2, 0.02), "b": (0.0, 0.004)}, "mixed", "b"),
        ("all", {"a": UP, "b": (-0.065, 0.05)}, "mixed", "b"),  # alone it would fail: of two that may be chance
        ("most", {"a": UP, "b": (0.062, 0.05), "c": DOWN}, "undecided", "b"),  # two of three at half the error
        ("most", {"a": (0.2, 0.02), "b": (0.2, 0.03), "c": DOWN}, "holds", "b"),
        ("most", {"a": UP, "b": (-0.2, 0.02), "c": (-0.2, 0.03)}, "fails", "c"),
        ("can", {"a": (0.2, 0.02), "b": DOWN}, "holds", "a"),
        ("can", {"a": DOWN, "b": (-0.3, 0.01)}, "fails", "a"),
        ("can", {"a": DOWN, "b": NULL}, "mixed", "b"),
        ("can", {"a": NULL, "b": (0.0, 0.001)}, "no effect", "a"),
    ],
)
def test_a_form_says_how_many_rows_must_lie_beyond_their_bounds(form, found, verdict, decides):
    said = judged(*rows(**found), claim=claim_of_form(form))
    assert (said["verdict"], said["quantity"]) == (verdict, decides)


TESTED, MOST = claim_of_form("all", "model"), claim_of_form("most", "model")
EXACT = claim_of_form("exact", "none")
FEW, WIDE = check(0.2, 0.01, n=4), check(0.2, 0.195, n=1000)
KNOWN = [{**row, "known": True} for row in (check(0.2, 0.18, n=1), WIDE)]
SEEN_UP, SEEN_DOWN, SEEN_NEAR = ({**check(*value), "seen_before": 1} for value in (UP, DOWN, (0.0371, 0.0627)))


def models(**found):
    """A row a model: the value and half of the interval of what was found. Names tell which were seen before."""
    return [{**check(*value, n=100, model=name), "seen_before": int("seen" in name)} for name, value in found.items()]


OF_A = [check(*value, n=100, model="a") for value in (UP, (0.0, 0.05), (0.05, 0.05))]


@pytest.mark.parametrize(
    ("rows", "claim", "verdict", "would_decide"),
    [
        # four seeds decide nothing, and so many documents do
        ([FEW], CLAIM, "undecided", "5 seeds"),
        ([FEW], TESTED, "holds", ""),
        # how many seeds would decide, if not too many
        ([check(0.0371, 0.0627)], CLAIM, "undecided", "17 to 105 seeds"),
        ([check(0.011, 0.06)], CLAIM, "undecided", NEAR),
        # what has no width speaks only where nothing is sampled
        ([check(0.2, 0)], CLAIM, "not testable here", "rows that have an interval"),
        ([check(math.nan, 0)], CLAIM, "not testable here", "rows that have a value"),
        ([check(0.2, 0), check(0.3, 0.01, quantity="b")], CLAIM, "undecided", ""),
        ([check(0.2, 0)], EXACT, "holds", ""),
        ([check(0.01, 0)], claim_of_form("equal", "none"), "no effect", ""),
        ([check(-0.2, 0)], claim_of_form("exact", "none", kind="errata"), "erratum", ""),
        # a range is judged by both ends whatever its n, and no number of prompts narrows it
        (KNOWN[:1], TESTED, "holds", ""),
        ([*KNOWN[:1], check(0.2, 0.05, n=1000, quantity="another gap")], TESTED, "holds", ""),
        (KNOWN[1:], TESTED, "undecided", planning.RANGE),
        (KNOWN[1:], EXACT, "undecided", planning.RANGE),
        ([WIDE], TESTED, "undecided", NEAR.replace("seeds", "documents")),
        # a number that is known decides alone, whether beyond its bound, contrary to it or within the margin
        ([{**check(0.2, 0, n=1), "known": True}], TESTED, "holds", ""),
        ([{**check(0.2, 0, n=1), "known": True}], CLAIM, "holds", ""),
        ([{**check(-0.2, 0, n=1), "known": True}], TESTED, "fails", ""),
        ([{**check(0.0, 0, n=1), "known": True}], TESTED, "no effect", ""),
        ([check(0.2, 0, n=1)], TESTED, "not testable here", "rows that have an interval"),
        # what was seen before confirms nothing and can contradict
        ([SEEN_UP], CLAIM, "undecided", "seeds that nobody has seen"),
        ([SEEN_DOWN], CLAIM, "fails", ""),
        ([SEEN_NEAR], CLAIM, "undecided", "17 to 105 seeds and seeds that nobody has seen"),
        # of models, those that nobody had seen have to hold, and those that were seen can contradict
        (models(a=UP, b=UP, seen=UP), TESTED, "holds", ""),
        (models(a=UP, b=UP, seen=DOWN), TESTED, "fails", ""),
        (models(a=UP, b=UP, seen=DOWN), MOST, "holds", ""),
        (models(a=UP, b=UP, seen=DOWN, also_seen=DOWN), MOST, "fails", ""),
        (models(a=UP, b=DOWN, seen=UP, also_seen=UP), MOST, "undecided", "models that nobody has seen"),
        (models(a=UP, b=UP, seen=(0.1, 0.2)), TESTED, "undecided", "833 to 1199 documents"),
        (models(seen=UP, also_seen=UP), MOST, "undecided", "documents that nobody has seen"),
        # seeds of one model that contradict each other where they were seen, and that do not
        (OF_A[:2], TESTED, "undecided", planning.CONTRADICTION),
        (OF_A[::2], TESTED, "undecided", "265 to 381 documents"),
    ],
)  # fmt: skip
def test_a_verdict_follows_from_what_rows_have(rows, claim, verdict, would_decide):
    found = judged(*rows, claim=claim)
    assert (found["verdict"], found["would decide"]) == (verdict, would_decide)
    assert ("seen before" in found["decides"]) == any(row["seen_before"] for row in rows)


def test_of_rows_that_were_all_seen_the_least_shown_decides():
    found = judged(*({**row, "seen_before": 1} for row in rows(a=UP, b=OPEN, c=UP)))
    assert (found["verdict"], found["quantity"]) == ("undecided", "b")


def test_a_model_counts_once_and_its_measurements_must_agree():
    several = [check(*UP, n=100, model=name, quantity="gap") for name in "aab"]
    found = judged(*several, claim=claim_of_form("most", "model"))
    assert (found["verdict"], re.findall(r"\d+", found["decides"])) == ("holds", [*"223"])
    assert found["holds in"] == "2 of 2 models"
    other_seed = check(*DOWN, n=100, model="b")
    assert judged(*several, other_seed, claim=claim_of_form("all", "model"))["verdict"] == "undecided"
    other_part = check(*DOWN, n=100, model="b", quantity="another gap")
    assert judged(*several, other_part, claim=claim_of_form("all", "model"))["verdict"] == "fails"


STRONG, WEAK = (0.5, 0.02), (0.075, 0.05)  # both beyond


@pytest.mark.parametrize(
    ("form", "found", "verdict", "decides"),
    [
        # two of three models must hold: two rows of a alone are more surely beyond than the row of b
        ("most", {"a x": STRONG, "a y": UP, "b z": WEAK, "c x": DOWN}, "holds", "b z"),
        ("most", {"a x": UP, "a y": WEAK, "b x": STRONG, "c x": DOWN}, "holds", "a y"),
        ("all", {"a x": STRONG, "b x": WEAK, "b y": UP}, "holds", "b x"),
        # one part that is contrary is enough; of its two measurements that one decides which says less
        ("all", {"a x": (-0.9, 0.01), "a x again": DOWN, "a y": OPEN}, "fails", "a x again"),
        ("most", {"a x": DOWN, "a y": (-0.9, 0.01), "b z": (-0.9, 0.02), "c x": UP}, "fails", "b z"),
        ("can", {"a x": (0.0, 0.004), "b x": NULL, "b y": (0.0, 0.004)}, "no effect", "b x"),
        ("all", {"a x": OPEN, "a y": STRONG, "b x": STRONG}, "undecided", "a x"),
    ],
)
def test_a_claim_on_models_shows_the_model_that_decides(form, found, verdict, decides):
    measured = [
        {**check(*value, n=100, quantity=name[2], model=name[0]), "quantity": name} for name, value in found.items()
    ]
    said = judged(*measured, claim=claim_of_form(form, "model"))
    assert (said["verdict"], said["quantity"]) == (verdict, decides)


def test_the_seeds_that_suffice_are_counted():
    near, far = check(0.011, 0.06), check(0.05, 0.06, quantity="another gap")
    assert judged(near, far)["would decide"] == NEAR
    start, _, end, unit = judged(near, far, claim=claim_of_form("can"))["would decide"].split()
    error, freedom = 0.06 / scipy.stats.t.ppf(0.975, 4), 4
    for units, share in ((start, 0.1), (end, 0.9)):  # of the interval of the spread
        spread = error * np.sqrt(5) * np.sqrt(freedom / scipy.stats.chi2.isf(share, freedom))
        power = [  # of a row that has to be as sure as one of two
            scipy.stats.nct.sf(scipy.stats.t.isf(0.0125, n - 1), n - 1, 0.04 / spread * np.sqrt(n))
            for n in (int(units) - 1, int(units))
        ]
        assert (power[0] < 0.8) == (int(units) > 5)
        assert power[1] >= 0.8
    assert unit == "seeds"
    beside = dataclasses.replace(claim_of_form("all"), needs="iterations")
    lost = check(-0.05, 0.06, quantity="another gap")  # which decides, whatever is near or missing
    tables = {
        TABLE: pd.concat([at("default", UP_ROW, OTHER_UP, check(*UP, quantity="third")), at("paper", near, lost)])
    }
    found = scorecard.scorecard(scorecard.judge_claims([beside], tables, 0.95), {"a": ""}, 0.95)["would decide"].item()
    assert re.fullmatch(r"\d+ to \d+ seeds", found)


@pytest.mark.parametrize("nothing", ["", math.nan])
def test_rows_of_no_claim_say_nothing(nothing):
    assert judged(check(0.2, 0.01), check(-0.5, 0.01, claim=nothing))["verdict"] == "holds"


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([check(0.2, 0.01, claim="")], "claim rises"),
        ([check(0.2, 0.01), check(0.2, 0.01, claim="falls")], "claim falls"),
        *(([{**check(*UP), bound: math.inf}], "'gap'") for bound in ("low", "high")),
    ],
)
def test_rows_that_a_claim_cannot_have_are_a_fault(rows, named):
    with refused("emergence/checks", named):
        judged(*rows)


def test_a_row_in_another_table_than_its_claim_names_is_a_fault():
    other = dataclasses.replace(CLAIM, id="falls", table="layernorm/checks")
    checks = {TABLE: table("emergence", "test", [check(0.2, 0.01), check(0.2, 0.01, claim="falls")])}
    checks["layernorm/checks"] = table("layernorm", "test", [check(0.2, 0.01, claim="falls")])
    with refused("emergence/checks", "claim falls"):
        scorecard.judge_claims([CLAIM, other], checks, 0.95)


@settings(max_examples=20)
@given(order=st.permutations(range(6)))
def test_where_rows_stand_decides_nothing(order):
    rows = [check(0.1 + 0.1 * i, 0.05, claim="rises" if i % 2 else "", quantity=f"gap {i}") for i in range(6)]
    assert judged(*(rows[i] for i in order)) == judged(*rows)


def test_a_table_of_another_schema_is_refused():
    with refused("emergence/checks", "source, of"):
        scorecard.judge_claims([CLAIM], {TABLE: pd.DataFrame(columns=COLUMNS[:-2])}, 0.95)


def judged_at(*tables, needs="iterations", **others):
    claim = dataclasses.replace(CLAIM, needs=needs, **others)
    (found,) = scorecard.scorecard(
        scorecard.judge_claims([claim], {TABLE: pd.concat(tables)}, 0.95), {"a": ""}, 0.95
    ).to_dict("records")
    return found


def where(found):
    return found["verdict"], found["own scale"], found["scale"], found["by scale"]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([at("default", UP_ROW)], ("holds", False, "default", "default: holds")),
        ([at("paper", UP_ROW)], ("holds", True, "paper", "paper: holds")),
        ([at("default", DOWN_ROW), at("paper", UP_ROW)], ("holds", True, "paper", "paper: holds; default: fails")),
        ([at("default", UP_ROW), at("longer", DOWN_ROW)], ("fails", False, "longer", "longer: fails; default: holds")),
        (
            [at("default", UP_ROW), at("paper", OPEN_ROW)],
            ("undecided", True, "paper", "paper: undecided; default: holds"),
        ),
        # a row that the larger scale lacks
        (
            [at("default", UP_ROW, OTHER_UP), at("paper", UP_ROW)],
            ("undecided", True, "paper", "paper: undecided; default: holds"),
        ),
        (
            [at("default", UP_ROW, OTHER_UP), at("paper", check(-0.2, 0.01))],
            ("fails", True, "paper", "paper: fails; default: holds"),
        ),
        # no interval at the larger one
        ([at("default", UP_ROW), at("paper", check(0.2, 0))], ("holds", False, "default", "default: holds")),
    ],
)  # fmt: skip
def test_the_largest_scale_with_intervals_decides_alone(tables, expected):
    found = judged_at(*tables)
    assert where(found) == expected
    assert found["settled"] == (found["own scale"] and found["verdict"] != "undecided")


def models_at(scale, value, names):
    return at(scale, *(check(*value, n=100, model=name) for name in names))


@pytest.mark.parametrize(
    ("larger", "smaller", "expected"),
    [
        ((DOWN, "d"), (UP, "abc"), ("holds", "default", "default (3 models): holds; longer (1 model): fails")),
        ((DOWN, "def"), (UP, "abc"), ("fails", "longer", "longer (3 models): fails; default (3 models): holds")),
        ((UP, "d"), (UP, "abc"), ("holds", "longer", "longer (1 model): holds; default (3 models): holds")),
    ],
)
def test_one_larger_model_does_not_override_three(larger, smaller, expected):
    found = judged_at(models_at("longer", *larger), models_at("default", *smaller), unit="model")
    assert (found["verdict"], found["scale"], found["by scale"]) == expected


def test_what_no_short_run_could_show_is_judged_at_longer_ones_alone():
    short = at("default", UP_ROW)
    found = judged_at(short, would_test="more iterations")
    assert (found["verdict"], found["would decide"]) == ("not testable here", "more iterations")
    assert found["rows: not testable here"] == 1
    assert where(judged_at(short, at("longer", DOWN_ROW), would_test="more"))[::2] == ("fails", "longer")


def test_exceptions_are_named_with_their_numbers():
    found = judged(*rows(a=UP, b=UP, c=NULL, d=DOWN, e=OPEN), claim=claim_of_form("most"))
    assert found["holds in"] == "2 of 5 comparisons"
    assert found["exceptions"] == "d: -0.2 [-0.25, -0.15]; c: 0 [-0.008, 0.008]"
    many = judged(*rows(**{f"gap {i}": (-0.1 * i, 0.05) for i in range(1, 7)}))
    assert [part.partition(":")[0] for part in many["exceptions"].split("; ")] == [
        "gap 6", "gap 5", "gap 4", "and 3 more"
    ]  # fmt: skip
    known = judged({**check(-0.2, 0, n=1), "known": True}, claim=TESTED)
    assert known["exceptions"] == "gap: -0.2"


def test_missing_rows_are_named():
    found = judged_at(at("default", UP_ROW, OTHER_UP), at("paper", UP_ROW))
    assert re.findall(r"\d+|another gap", found["decides"]) == [*"2211", "another gap"]
    assert "missing" in found["would decide"]


def test_a_claim_that_needs_nothing_is_settled_at_any_scale():
    assert where(judged_at(at("default", DOWN_ROW), needs="nothing")) == ("fails", True, "default", "default: fails")


def test_other_words_change_no_verdict():
    reworded = {**UP_ROW, "quantity": "the same gap in other words", "item": "Figure 3"}
    as_worded, other = (where(judged_at(at("default", DOWN_ROW), at("paper", row))) for row in (UP_ROW, reworded))
    assert as_worded == other


def test_what_a_larger_scale_lacks_is_judged_at_the_smaller():
    nothing = check(math.nan, 0.1)
    found = judged_at(at("default", UP_ROW), at("paper", nothing))
    assert where(found) == ("holds", False, "default", "default: holds")
    assert judged_at(at("paper", nothing))["verdict"] == "not testable here"


def test_an_identity_supports_no_claim():
    identity = {**check(0.0, 0.0, prediction=("=", 0.0, 0.1), quantity="no mask"), "identity": True}
    assert judged(UP_ROW, identity)["rows: holds"] == 1
    assert judged(DOWN_ROW, identity)["verdict"] == "fails"
    vacuous = judged(identity)
    assert vacuous["verdict"] == "not testable here"
