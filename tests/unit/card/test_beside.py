"""Ratios of several models, and quotients of the first by the others."""

import re
from dataclasses import replace

import numpy as np
import pytest

from position_bias.card import beside
from position_bias.card.beside import Model
from position_bias.card.sentences import Interval
from position_bias.rollout.measurement import Measurement

N, PROMPTS, LEVEL = 12, 40, 0.9
MIDDLE = slice(3, 9)


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


def model(found, drawn="the same", untrained=None):
    prompts = {str(of.n): {"sha256": drawn, "entropy": 4.0} for of in found}
    return Model({of.n: of for of in found}, {"prompts": prompts, "model": {"untrained": untrained, "vocabulary": 256}})


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
    return {"mine": model([mine]), "copy": model([with_ends(mine, 2, 0.25)])}


def test_ratios_are_of_the_mean_influence_and_losses_are_means(two):
    table = beside.ratios(two, 50, LEVEL, 0)
    total = two["copy"].measured[N].influence.sum(0)
    assert value(table, "copy", "first / middle", "value") == pytest.approx(total[0] / total[MIDDLE].mean())
    assert value(table, "copy", "last / middle", "value") == pytest.approx(total[-1] / total[MIDDLE].mean())
    assert value(table, "mine", "loss", "value") == pytest.approx(two["mine"].measured[N].loss.mean())
    assert (table["low"] < table["value"]).all()
    assert (table["value"] < table["high"]).all()
    assert (table["prompts"] == PROMPTS).all()


def test_a_quotient_on_the_same_prompts_has_nothing_of_what_the_prompts_do_to_both(two):
    """The copy has the same influence but for its ends, which are multiplied: the quotient is the same in each draw."""
    table = beside.ratios(two, 50, LEVEL, 0)
    for quantity, expected in (("first / middle", 0.5), ("last / middle", 4)):
        bounds = [value(table, "copy", quantity, f"quotient {bound}") for bound in ("value", "low", "high")]
        np.testing.assert_allclose(bounds, expected)
        assert np.isnan(value(table, "mine", quantity, "quotient value"))
    assert np.isnan(value(table, "copy", "loss", "quotient value"))
    assert table["paired"].all()


def test_other_prompts_are_drawn_independently(two):
    two["copy"] = model(list(two["copy"].measured.values()), drawn="others")
    table = beside.ratios(two, 200, LEVEL, 0)
    low, high = (value(table, "copy", "first / middle", f"quotient {bound}") for bound in ("low", "high"))
    assert low < 0.5 < high
    assert set(table.loc[table["model"] == "copy", "paired"]) == {False}
    page = beside.page("a-beside-b", {"mine": "mine", "copy": "copy"}, "it", two, table, LEVEL)
    assert "mine and copy were not measured on the same prompts, as when their tokenizers differ" in page


def test_a_length_that_the_first_model_lacks_has_no_quotient(two):
    two["copy"] = model([measured(1), measured(2, 16)])
    table = beside.ratios(two, 20, LEVEL, 0)
    assert value(table, "copy", "first / middle", "value", 16) > 0
    assert np.isnan(value(table, "copy", "first / middle", "quotient value", 16))


def test_the_page_has_a_row_a_model_and_length_and_where_each_card_is(two):
    table = beside.ratios(two, 20, LEVEL, 0)
    page = beside.page("a-beside-b", {"mine": "./mine", "copy": "./copy"}, "it", two, table, LEVEL)
    assert page.startswith("# ./mine beside ./copy, on it\n")
    assert "(../../../figures/card/a-beside-b.png)" in page
    assert "## How does ./mine differ?" in page
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:4] == "| 12"]
    assert [row[1] for row in rows] == ["./mine", "./copy"]
    assert [bool(cell) for cell in rows[0]] == [True, True, True, True, False, True, False, True, True, True]
    assert rows[1][4] == "0.500 [0.500, 0.500]"
    assert rows[1][6] == "4.00 [4.00, 4.00]"
    assert rows[1][8:] == ["4", "5.55"]  # ln 256
    assert re.findall(r"^- \[(.*)\]\((.*)\)$", page, re.MULTILINE) == [
        ("./mine", "../mine/card.md"),
        ("./copy", "../copy/card.md"),
    ]
    assert "measured on the same prompts, as when" not in page
    assert "untrained copies" not in page


def test_the_page_says_what_training_changed_only_where_every_copy_agrees(two):
    """The ends of the copies are multiplied: the first token weighs 1/2 and 1/3 as much, the last 4 and 1 times."""
    mine = measured()
    two["copy"] = model([with_ends(mine, 2, 0.25)], untrained=0)
    two["other"] = model([with_ends(mine, 3, 1)], untrained=1)
    titles = {"mine": "mine", "copy": "mine-untrained-0", "other": "mine-untrained-1"}
    page = beside.page("a-beside-2-untrained", titles, "it", two, beside.ratios(two, 20, LEVEL, 0), LEVEL)
    first, last = (line for line in page.splitlines() if line.startswith("- The "))
    assert "What training changed, in prompts of 12 tokens:" in page
    assert " times in the 2 untrained copies: 0.333 to 0.5 times as much. " in first
    assert ": 1 to 4 times as much. " in last
    assert last.endswith(" after training, and training changed this by nothing that is separable.")
    assert "One copy says nothing" not in page
    del two["other"], titles["other"]
    page = beside.page("a-beside-1-untrained", titles, "it", two, beside.ratios(two, 20, LEVEL, 0), LEVEL)
    first, last = (line for line in page.splitlines() if line.startswith("- The "))
    assert " times in the untrained copy: 0.500 [0.500, 0.500] times as much. " in first
    assert " times in the untrained copy: 4.00 [4.00, 4.00] times as much. " in last
    assert "One copy says nothing of other random weights; card='{untrained: 3}' measures 3." in page


@pytest.mark.parametrize(
    ("trained", "untrained", "quotient", "said"),
    [
        (1, 1, 1, "It outweighs the middle in X already; training made this stronger."),
        (1, 1, -1, "It outweighs the middle in X already; training made this weaker."),
        (0, 1, -1, "It outweighs the middle in X; after training nothing separable of this is left."),
        (-1, 1, -1, "It outweighs the middle in X; after training it is the reverse."),
        (-1, -1, -1, "The middle outweighs it in X already; training made this stronger."),
        (-1, -1, 1, "The middle outweighs it in X already; training made this weaker."),
        (1, 0, 1, "It outweighs the middle after training, which gave it more weight; no bias is certain in X."),
        (0, 0, -1, "It is not separable from the middle after training, which gave it less weight; no bias is "),
        (1, 1, 0, "It outweighs the middle after training, and training changed this by nothing that is separable."),
    ],
)
def test_what_training_did_to_a_token_follows_from_three_sides(trained, untrained, quotient, said):
    assert beside.changed(trained, untrained, quotient, "X").startswith(said)


@pytest.mark.parametrize(
    ("bounds", "side"),
    [([(1.1, 2), (3, 4)], 1), ([(0.1, 0.2), (0.8, 0.9)], -1), ([(1.1, 2), (0.9, 2)], 0), ([(1.1, 2), (0.1, 0.9)], 0)],
)
def test_copies_share_a_side_where_all_of_their_intervals_do(bounds, side):
    assert beside.common_side([Interval(1.0, low, high) for low, high in bounds]) == side
