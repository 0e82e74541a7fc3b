import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.drawing import scorecard
from position_bias.verdicts.claim import KINDS, OURS, WHOSE
from position_bias.verdicts.rule import UNTESTABLE, WORDS
from tests.unit.drawing_checks import assert_legible

LONGEST = "with a norm after attention the distance beyond trained lengths does not grow."
NUMBERS = {"form": "all", "relation": ">", "bound": 0.0, "margin": 0.01, "measured": 0.123, "needs": "iterations"}
NUMBERS |= {"low": -0.1, "high": 0.34, "unit": "seed", "n": 6, "seen_before": 0}

pytestmark = pytest.mark.usefixtures("styled")


def table(*papers):
    verdicts = list(scorecard.LOOKS)
    return pd.DataFrame(
        [
            {
                "paper": paper,
                "item": f"Figure {i}",
                "title": f"{paper} claims {i}",
                "statement": f"{paper} says {i}",
                "whose": WHOSE[3 * i // claims],
                "kind": KINDS[i % 2],
                "scale": "laptop",
                "doubted": False,
                "verdict": verdicts[i % len(verdicts)],
                "settled": i % 2 == 0,
                **{f"rows: {word}": place for place, word in enumerate(WORDS)},
                **NUMBERS,
            }
            for paper, claims in papers
            for i in range(claims)
        ]
    )


def lines(figure):
    """What stands in each line, from the left, and the colour of its mark; column by column, from the top."""
    for axes in figure.axes:
        marks = {mark.get_ydata()[0]: to_rgb(mark.get_markerfacecolor()) for mark in axes.lines}
        assert axes.yaxis_inverted()
        for at in sorted({text.get_position()[1] for text in axes.texts}):
            beside = [text for text in axes.texts if text.get_position()[1] == at]
            yield (
                [
                    text.get_text().replace("\N{THIN SPACE}", " ")
                    for text in sorted(beside, key=lambda text: text.get_position()[0])
                ],
                marks.get(at),
            )


@pytest.mark.parametrize("papers", [[("a", 3)], [("a", 2), ("b", 9), ("c", 1), ("d", 3)]])
def test_the_overview_has_a_line_for_each_claim_of_a_paper_with_its_verdict_scale_and_effect(papers):
    claims = table(*papers)
    found, below = {}, {}
    for told, mark in lines(scorecard.overview(claims)):
        if told[0]:
            found[title := told[0]] = (told[1:], mark)
        else:
            below[title] = told[1]
    theirs = claims[claims["whose"] != OURS]
    headings = [told for told, (beside, _) in found.items() if not (beside or told.endswith("continued"))]
    assert len(found) - sum(told.endswith("continued") for told in found) == len(theirs) + len(headings)
    assert len(headings) == len(theirs.groupby(["paper", "kind", "whose"]))
    for claim in theirs.to_dict("records"):
        beside, mark = found[claim["title"]]
        untestable = claim["verdict"] == UNTESTABLE
        if claim["verdict"] == "undecided":
            assert (beside, below.pop(claim["title"])) == (
                ["undecided", "default"],
                "4 of 10 rows missing: .12 [-.1, .34] > .01",
            )
        else:
            assert beside == ["not testable", ""] if untestable else [claim["verdict"], "default", ".12 > .01"]
        assert mark == to_rgb(scorecard.LOOKS[claim["verdict"]].inside if claim["settled"] else "white")


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ({}, ".12 [-.1, .34] > .01"),
        ({"n": 4}, "4 seeds: .12 [-.1, .34] > .01"),
        ({"n": 4, "unit": "model"}, ".12 [-.1, .34] > .01"),
        ({"rows: not testable here": 2, "seen_before": 1}, "2 of 10 rows missing, seen before: .12 [-.1, .34] > .01"),
        ({"low": 0.1}, "3 of 8 rows open: .12 [.1, .34] > .01"),
        ({"low": 0.1, "rows: undecided": 0}, "only 1 of 5 rows hold: .12 [.1, .34] > .01"),
        ({"form": "exact", "unit": "none", "relation": "="}, ".12 [-.1, .34] = \u00b1.01"),
    ],
)
def test_what_is_undecided_says_why(numbers, told):
    rows = {f"rows: {word}": count for word, count in zip(WORDS, (1, 2, 2, 3, 0), strict=True)}
    (claim,) = table(("a", 1)).assign(verdict="undecided").to_dict("records")
    assert scorecard.left_open(claim | rows | numbers).replace("\N{THIN SPACE}", " ") == told


def test_the_picture_counts_verdicts_by_kind_without_those_that_do_not_count():
    verdicts = ["holds", "holds", "fails", "undecided", "holds"]
    claims = table(("a", 5)).assign(verdict=verdicts, whose="paper", kind=["theory"] * 3 + ["network"] * 2)
    claims["doubted"] = [False] * 4 + [True]
    told = scorecard.overview(claims).get_label()
    assert told.endswith("transformers claim. Verdicts on theory: 2 hold, 1 fail; networks: 1 undecided.")


def test_claims_of_one_kind_stand_together_by_verdict():
    figure = scorecard.overview(table(("a", 36)).assign(kind="theory", whose="paper"))
    places = {"holds": 0, "fails": 1, "erratum": 1, "no effect": 2, "undecided": 3, "not testable": 4}
    found = [places[told[1]] for told, _ in lines(figure) if told[0] and told[1:]]
    assert found == sorted(found)
    assert set(found) == set(places.values())


@pytest.mark.parametrize(
    ("numbers", "effect"),
    [
        ({}, ".12 > .01"),
        ({"relation": "<", "measured": -0.5}, "-.5 < -.01"),
        ({"relation": "=", "bound": 1.0, "measured": 1.04}, "1 = 1\u00b1.01"),
        ({"relation": "!=", "measured": 0.00004}, "4e-5 \u2260 \u00b1.01"),
        ({"form": "exact", "rows: holds": 3}, "3 of 13 rows"),
        ({"verdict": UNTESTABLE}, ""),
    ],
)
def test_an_effect_stands_beside_what_it_has_to_exceed(numbers, effect):
    (claim,) = table(("a", 1)).to_dict("records")
    assert scorecard.effect(claim | numbers).replace("\N{THIN SPACE}", " ") == effect


def test_long_statements_are_wrapped_and_the_pages_can_be_read():
    claims = table(("a", 20)).assign(statement=f"{LONGEST} {LONGEST}", item="Theorems 4.1-4.7")
    figure = scorecard.of_paper(claims, "a")
    told = " ".join(words[0].strip() for words, _ in lines(figure))
    assert told.count(f"Theorems 4.1-4.7: {LONGEST} {LONGEST}") == 20
    assert_legible(figure)
    claims = table(("structural", 32), ("emergence", 55), ("layernorm", 18), ("postnorm", 20))
    assert_legible(scorecard.overview(claims))


def test_no_column_ends_with_a_heading():
    claims = table(("a", 3), ("b", 3)).assign(whose="paper", kind="theory")
    first, second = (
        [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
        for axes in scorecard.overview(claims.iloc[[0, 1, 3, 4, 5]]).axes
    )
    assert (first, second) == (["a: theory"], ["b: theory"])
