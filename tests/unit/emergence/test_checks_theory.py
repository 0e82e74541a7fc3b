from math import exp
from pathlib import Path

import numpy as np
import pytest

from position_bias.emergence import checks_theory, theory
from position_bias.verdicts.judge import COLUMNS, KEYS

PREDICTED = Path(__file__).parents[3] / "published/predictions.csv"
SETTING = {"tokens": 16, "layers": 120, "draws": 6, "seed": 3, "peak_tokens": 400, "scale": "test"}
FAILS = {
    ("Theorem 4.2: rate", "value"),
    ("Theorem 4.3: ratio of shares", "printed"),
    ("Lemma 4.4: weight over its bound", "printed"),
    ("Theorem 4.5: weight over its bound", "printed"),
    ("Theorem 4.5: distance of the peak, few tokens", "value"),  # shorter than the theorem supposes
    ("Lemma 4.6: one constant", "lower"),
    ("Lemma 4.6: one constant", "upper"),
    ("Theorem 4.7: one c", "value"),
    ("Theorem 4.7: number of paths", "printed"),
    ("Theorem 4.7: squares of steps", "printed"),
    ("Theorem 4.7: distance of the peak of L", "printed"),
    ("Theorem 4.7: growth of the peak", "printed"),
}


def made(**given):
    return checks_theory.theorem_checks(**{**SETTING, **given}, predicted=PREDICTED)


@pytest.fixture(scope="module")
def table():
    return made()


def with_verdict(table, verdict):
    return set(table.loc[table["verdict"] == verdict, ["statistic", "network"]].itertuples(index=False, name=None))


def test_every_statement_holds_but_what_is_known_to_fail(table):
    assert list(table.columns) == [*COLUMNS, *KEYS]
    assert set(table["verdict"]) == {"holds", "fails"}
    assert with_verdict(table, "fails") == FAILS
    assert not table.duplicated(["claim", *KEYS]).any()


def test_the_floor_of_lemma_4_4_is_missed_by_what_the_row_lacks(table):
    """C_min = 1 - e^-m has the sum over all distances; the row of token n stops after n of them."""
    is_floor = (table["statistic"] == "Lemma 4.4: weight over its bound") & (table["network"] == "lower")
    row = table[is_floor & (table["setting"] == "content = no content")].iloc[0]
    ratios = [1 / (1 - exp(-m * SETTING["tokens"])) for m in theory.DECAYS]
    assert row["measured"] == pytest.approx(min(ratios), rel=1e-12)


def test_two_equal_sides_are_1_and_support_nothing(table):
    """Columns of a prefix weigh the same without content: the quotients are 1, whatever the theorem says of them."""
    equal = table[table["statistic"].str.endswith("equal sides")]
    assert equal["setting"].str.endswith("content = uniform attention").all()
    assert len(equal) == 3 * len(theory.PREFIXES)
    assert (equal["claim"] == "").all()
    np.testing.assert_allclose(equal[["low", "high"]], 1, rtol=1e-12)


def test_one_draw_of_all_is_judged_so_that_rows_have_no_width(table):
    drawn = table[table["setting"].str.contains("random attention")]
    assert set(drawn["n"]) == {SETTING["draws"]}
    assert (table[["low", "high"]].eq(table["measured"], axis=0)).all(axis=None)


def test_the_table_comes_from_its_numbers(table):
    assert made().equals(table)
    other = made(seed=4)
    assert not other.equals(table)
    assert other["verdict"].equals(table["verdict"])


def test_lemma_b_1_is_judged_where_there_are_layers_enough():
    few = made(layers=10)
    lemma = few[few["item"] == "Lemma B.1"]
    assert set(lemma["setting"].str.extract(r"window = (\d)")[0]) == {"4", "8"}  # of 5 and 3 steps; one of 2 takes 15
    assert (lemma["verdict"] == "holds").all()


@pytest.mark.parametrize(
    ("name", "wrong", "statistics"),
    [
        ("blocks", lambda right: lambda attention, layers: attention, {"Lemma B.1: R layers"}),
        (
            "layers_to_half",
            lambda right: lambda n, window: float(np.log2(n)),
            {"Theorem 4.2: layers to half over 2R", "Theorem 4.2: layers to half, by R"},
        ),
        (
            "critical_point",
            lambda right: lambda depth, c: depth / c,
            {"Theorem 4.7: distance of the peak of L"},
        ),
        (
            "least_squares_of_steps",
            lambda right: lambda steps, distance: distance / steps,
            {"Theorem 4.7: squares of steps"},
        ),
        ("paths_through", lambda right: lambda layers, distance: layers**distance, {"Theorem 4.7: number of paths"}),
        (
            "segment_slack",
            lambda right: lambda query, key: theory.angles_between(query, key)[0] / 2,
            {"Lemma I.3: angle over its bound"},
        ),
        (
            "rope_logits",
            lambda right: lambda rotary: -right(rotary),
            {"Lemma 4.6: logits", "Lemma I.1: weight over its bound", "Theorem I.2: weight over its bound"},
        ),
    ],
)
def test_a_wrong_quantity_that_no_mutant_has_fails(monkeypatch, table, name, wrong, statistics):
    monkeypatch.setattr(theory, name, wrong(getattr(theory, name)))
    newly = with_verdict(made(draws=2), "fails") - FAILS
    assert statistics <= {statistic for statistic, _ in newly}
