import numpy as np
import pytest

from position_bias.emergence import checks_theory, theory
from position_bias.verdicts.verdict import COLUMNS

SETTING = {"tokens": 16, "layers": 120, "draws": 6, "seed": 3, "peak_tokens": 400, "scale": "test"}


@pytest.fixture(scope="module")
def table():
    return checks_theory.table(**SETTING)


def failed(table):
    return table[table["verdict"] == "fails"]


def test_every_statement_has_a_verdict(table):
    assert list(table.columns) == list(COLUMNS)
    assert list(dict.fromkeys(table["item"])) == [
        "Theorem 4.1",
        "Theorem 4.2",
        "Lemma B.1",
        "Theorem 4.3",
        "Lemma 4.4",
        "Theorem 4.5",
        "Lemma 4.6",
        "Theorem 4.7",
        "Lemma I.3",
        "Lemma I.1",
        "Theorem I.2",
    ]
    assert set(table["paper"]) == {"emergence"}
    assert set(table["scale"]) == {"test"}
    assert set(table["verdict"]) == {"holds", "fails"}
    assert not table.duplicated(["claim", "item", "quantity"]).any()
    assert (table["low"] <= table["measured"]).all()
    assert (table["measured"] <= table["high"]).all()


REFUTED = ("emergence-theorem-4-2-rate", "emergence-theorem-4-7")  # what the text claims beside its bounds


def test_what_fails_is_as_printed_or_a_claim_of_the_text_or_shorter_than_the_theorem_supposes(table):
    fails = failed(table)
    excused = fails["quantity"].str.contains("as printed|17 tokens") | fails["claim"].isin(REFUTED)
    assert excused.all()
    corrected = table["quantity"].str.contains("corrected")
    assert corrected.sum() >= 10
    assert (table.loc[corrected, "verdict"] == "holds").all()


def test_what_fails_is_known(table):
    assert failed(table).groupby("item")["quantity"].nunique().to_dict() == {
        "Theorem 4.2": 1,  # its rate
        "Theorem 4.3": 2,  # the minimum of Appendix C, for two prefixes
        "Lemma 4.4": 1,
        "Theorem 4.5": 2,  # the constant, and 17 tokens
        "Lemma 4.6": 2,  # one C_min, one C_max
        "Theorem 4.7": 5,  # one c, Eq. 12, Eq. 16, Appendix H, and how fast its peak grows
    }
    of_papers = failed(table)["claim"] != ""
    assert failed(table)[of_papers]["quantity"].str.contains("as printed").sum() == 9


def test_bounds_that_say_something_lie_below_one_half(table):
    biting = table[table["quantity"].str.contains("largest bound|largest upper bound")]
    assert len(biting) == 2
    assert (biting["high"] < 0.5).all()
    assert (biting["claim"] == "").all()


def test_identities_are_marked_and_support_nothing(table):
    """Columns of a prefix weigh the same without content: the quotients are 1, whatever the theorem says of them."""
    marked = table["source"].str.contains("an identity")
    assert (table.loc[marked, "claim"] == "").all()
    np.testing.assert_allclose(table.loc[marked, ["low", "high"]], 1, rtol=1e-12)
    of_prefixes = table["quantity"].str.contains("smallest P_ik") & table["quantity"].str.contains("uniform")
    assert marked.equals(of_prefixes)
    assert marked.sum() == 6


def test_the_worst_draw_is_judged(table):
    for relation, worst in (("<", "high"), (">", "low")):
        judged = table[table["relation"] == relation]
        assert (judged["measured"] == judged[worst]).all()
    equal = table[table["relation"] == "="]
    away = (equal[["low", "high"]].sub(equal["bound"], axis=0)).abs().max(axis=1)
    assert ((equal["measured"] - equal["bound"]).abs() == away).all()
    drawn = table[table["quantity"].str.contains("random attention")]
    assert set(drawn["n"]) == {SETTING["draws"]}
    assert ((drawn["low"] < drawn["high"]) | (drawn["high"] == 0)).all()  # 0: what no walk reaches


def test_a_row_that_speaks_of_a_theorem_and_of_its_printed_constant_stands_once_for_each(table):
    about = table.drop(columns="claim")
    twice = table[about.duplicated(keep=False)].groupby(["item", "quantity"])["claim"].agg(tuple)
    own = {name: f"emergence-theorem-{name[-3:].replace('.', '-')}" for name in ("Theorem 4.1", "Theorem 4.3")}
    own |= dict.fromkeys(("Lemma 4.4", "Theorem 4.5"), "emergence-theorem-4-5")
    assert {item for item, _ in twice.index} == set(own)
    assert all(claims == (own[item], "emergence-appendix-a-e") for (item, _), claims in twice.items())
    assert all("as printed" in quantity for _, quantity in twice.index)


def test_the_table_comes_from_its_numbers(table):
    assert checks_theory.table(**SETTING).equals(table)
    other = checks_theory.table(**{**SETTING, "seed": 4})
    assert not other.equals(table)
    assert other["verdict"].equals(table["verdict"])


def test_too_few_tokens_are_named():
    with pytest.raises(ValueError, match="tokens = 6: windows and prefixes need at least 7"):
        checks_theory.table(**{**SETTING, "tokens": 6})


def test_lemma_b_1_is_judged_where_there_are_layers_enough_for_its_walks():
    few = checks_theory.table(**{**SETTING, "layers": 10})
    windows = few.loc[few["item"] == "Lemma B.1", "quantity"].str.extract(r"window (\d)")[0]
    assert set(windows) == {"4", "8"}  # of 5 and 3 steps; one of 2 takes 15
    assert (few.loc[few["item"] == "Lemma B.1", "verdict"] == "holds").all()


@pytest.mark.parametrize(("factor", "seen"), [(np.nan, "nan"), (0.0, "inf")])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_is_not_finite_is_no_row(monkeypatch, factor, seen):
    right = theory.decay_floor
    monkeypatch.setattr(theory, "decay_floor", lambda spread, m: right(spread, m) * factor)
    with pytest.raises(ValueError, match=rf"Lemma 4\.4, smallest A_ij .*: {seen} is no number that can be judged"):
        checks_theory.table(**SETTING)


def newly_failed(monkeypatch, table, name, corrupted):
    """Items with a row that holds, but does not once a function of the theory is replaced."""
    monkeypatch.setattr(theory, name, corrupted)
    broken = checks_theory.table(**SETTING)
    return set(table.loc[(table["verdict"] == "holds") & (broken["verdict"] == "fails"), "item"])


@pytest.mark.parametrize(
    ("name", "corrupted", "items"),
    [
        ("products", lambda layers: np.stack([layers[0]] * len(layers)), {"Theorem 4.1", "Theorem 4.2", "Theorem 4.3"}),
        ("window_constant", lambda floor, n, window: 0.8 * (1 - floor), {"Theorem 4.2"}),
        ("blocks", lambda attention, layers: attention, {"Lemma B.1"}),
        ("layers_to_half", lambda n, window: float(np.log2(n)), {"Theorem 4.2"}),
        ("decay_ceiling", lambda spread: np.exp(spread / 2) / 2, {"Lemma 4.4", "Theorem 4.5"}),
        ("decay_floor", lambda spread, m: np.exp(-m) + 0 * spread, {"Lemma 4.4", "Theorem 4.5"}),
        ("peak", lambda profile: int(profile.argmin()), {"Theorem 4.5", "Theorem 4.7"}),
        ("decay_peak", lambda depth, m: (depth + 1) / np.expm1(m), {"Theorem 4.5"}),
        ("critical_point", lambda depth, c: depth / c, {"Theorem 4.7"}),
        ("least_squares_of_steps", lambda steps, distance: distance, {"Theorem 4.7"}),
        ("paths_through", lambda matrices, distance: matrices**distance, {"Theorem 4.7"}),
        ("segment_slack", lambda query, key: theory.angles_between(query, key)[0] / 2, {"Lemma I.3"}),
        ("prefix_share", lambda attention, prefix: np.full(attention.shape[1], 2 / prefix), {"Theorem 4.3"}),
    ],
)
def test_a_wrong_quantity_fails(monkeypatch, table, name, corrupted, items):
    assert items <= newly_failed(monkeypatch, table, name, corrupted)


def test_wrong_rotations_fail(monkeypatch, table):
    right = theory.rope_logits
    assert {"Lemma 4.6", "Lemma I.1", "Theorem I.2"} <= newly_failed(
        monkeypatch, table, "rope_logits", lambda rotary: -right(rotary)
    )
