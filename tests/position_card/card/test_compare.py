"""Ratios of several models, and quotients of the first by the others."""

from dataclasses import replace

import numpy as np
import pytest

from position_card.card import compare
from position_card.card.card import Card
from position_card.card.compare import ratios
from position_card.card.measurements import Measurements
from position_card.rollout.measurement import Measurement

N, PROMPTS, LEVEL = 12, 40, 0.9
MIDDLE = slice(3, 9)
NOT_PAIRED = "not measured on the same prompts"


def measured(seed=0, n=N, prompts=PROMPTS):
    rng = np.random.default_rng(seed)
    of_prompt = rng.uniform(0.5, 2, (prompts, 1))  # what a prompt does to all of its tokens
    return Measurement(
        documents=np.arange(prompts),
        mixing={"frobenius": np.ones((prompts, 1))},
        influence=of_prompt * rng.uniform(0.5, 1, (prompts, n)),
        loss=rng.uniform(3, 6, prompts),
        by_distance=np.ones((1, n)),
        kernels={},
        windows=(None,),
    )


def model(name, found, drawn="the same", untrained=None, replicates=50):
    facts = {"prompts": {str(of.n): {"sha256": drawn, "entropy": 4.0} for of in found}, "name": name, "text": "it"}
    facts["model"] = {"untrained": untrained, "vocabulary": 256}
    return Card(Measurements({of.n: of for of in found}, facts), replicates, LEVEL)


def page_of(cards):
    return compare.comparison_page(cards, [f"../{card.name}" for card in cards], compare.ratios(cards))


def with_ends(of, first, last):
    influence = of.influence.copy()
    influence[:, 0] *= first
    influence[:, -1] *= last
    return replace(of, influence=influence)


def value(table, name, quantity, column, n=N):
    (found,) = table[(table["model"] == name) & (table["quantity"] == quantity) & (table["n"] == n)][column]
    return found


@pytest.fixture
def two():
    mine = measured()
    return {"mine": model("mine", [mine]), "copy": model("copy", [with_ends(mine, 2, 0.25)])}


def test_ratios_are_geometric_means_as_in_the_card_and_losses_means(two):
    table = ratios(list(two.values()))
    influence = two["copy"].measurements.lengths[N].influence
    of_middle = influence[:, MIDDLE].prod(1) ** (1 / 6)
    statistics = two["copy"].lengths[N].statistics.set_index(["variant", "statistic"])
    for end, place in (("first / middle", 0), ("last / middle", -1)):
        expected = (influence[:, place] / of_middle).prod() ** (1 / PROMPTS)
        assert value(table, "copy", end, "value") == pytest.approx(expected)
        for bound in ("value", "low", "high"):
            assert value(table, "copy", end, bound) == statistics.loc[("influence", end), bound]
    assert value(table, "mine", "loss", "value") == pytest.approx(two["mine"].measurements.lengths[N].loss.mean())
    assert (table["low"] < table["value"]).all()
    assert (table["value"] < table["high"]).all()
    assert (table["prompts"] == PROMPTS).all()


def test_a_quotient_on_the_same_prompts_does_not_vary_with_them(two):
    """The copy has the same influence but for its ends, which are multiplied: the quotient is the same in each draw."""
    table = ratios(list(two.values()))
    for quantity, expected in (("first / middle", 0.5), ("last / middle", 4)):
        bounds = [value(table, "copy", quantity, f"quotient {bound}") for bound in ("value", "low", "high")]
        np.testing.assert_allclose(bounds, expected)
        assert np.isnan(value(table, "mine", quantity, "quotient value"))
    assert np.isnan(value(table, "copy", "loss", "quotient value"))
    assert table["paired"].all()


def test_other_prompts_are_drawn_independently(two):
    two["copy"] = model("copy", list(two["copy"].measurements.lengths.values()), drawn="others")
    table = ratios(list(two.values()))
    low, high = (value(table, "copy", "first / middle", f"quotient {bound}") for bound in ("low", "high"))
    assert low < 0.5 < high
    assert set(table.loc[table["model"] == "copy", "paired"]) == {False}
    page = page_of(list(two.values()))
    assert NOT_PAIRED in page


def test_a_length_that_the_first_model_lacks_has_no_quotient(two):
    two["copy"] = model("copy", [measured(1), measured(2, 16)])
    table = ratios(list(two.values()))
    assert value(table, "copy", "first / middle", "value", 16) > 0
    assert np.isnan(value(table, "copy", "first / middle", "quotient value", 16))


def test_the_page_has_a_row_a_model_and_length(two):
    page = page_of(list(two.values()))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:4] == "| 12"]
    assert [row[1] for row in rows] == ["mine", "copy"]
    assert [bool(cell) for cell in rows[0]] == [True, True, True, True, False, True, False, True, True, True]
    assert rows[1][4] == "0.500 [0.500, 0.500]"
    assert rows[1][6] == "4.00 [4.00, 4.00]"
    assert rows[1][8:] == ["4", "5.55"]  # ln 256
    assert [f"](../{name}/card.md)" in page for name in two] == [True, True]
    assert NOT_PAIRED not in page
