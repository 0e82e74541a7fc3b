import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.drawing import scorecard
from position_bias.drawing.style import save
from position_bias.verdicts.claim import WHOSE
from position_bias.verdicts.pages import HEADINGS
from position_bias.verdicts.scorecard import VERDICTS

LONGEST = "with a norm after attention the distance beyond trained lengths does not grow."


pytestmark = pytest.mark.usefixtures("styled")


def table(*papers):
    verdicts = list(scorecard.LOOKS)
    return pd.DataFrame(
        [
            {
                "paper": paper,
                "item": f"Figure {i}",
                "statement": f"{paper} says {i}",
                "whose": WHOSE[3 * i // claims],
                "doubted": False,
                "verdict": verdicts[i % 4],
                "settled": i % 2 == 0,
                **{f"rows: {verdict}": place + i for place, verdict in enumerate(VERDICTS)},
            }
            for paper, claims in papers
            for i in range(claims)
        ]
    )


def written(axes):
    """What stands in a column, line by line from the top, numbers after what they stand beside."""
    texts = sorted(axes.texts, key=lambda text: (text.get_position()[1], text.get_ha() == "right"))
    return [text.get_text() for text in texts]


def marked(axes):
    """The colours of the marks, by what stands beside them, from the top."""
    marks = []
    for mark in axes.lines:
        beside = [text for text in axes.texts if text.get_position()[1] == mark.get_ydata()[0]]
        told = next(text.get_text() for text in beside if text.get_ha() == "left")
        marks.append((told, to_rgb(mark.get_markerfacecolor())))
    return marks


def check_column(axes, claims, told):
    """A column has the name of its paper, headings, and every claim with its rows and the mark of its verdict."""
    (paper,) = claims["paper"].unique()
    expected = [f"{paper}: {claims['settled'].sum()} of {len(claims)} settled"]
    for whose, of_whose in claims.groupby("whose", sort=False):
        expected.append(HEADINGS[whose])
        for claim in of_whose.itertuples():
            i = int(claim.item.split()[-1])
            expected += [told(claim), f"{i}/{i + 1}/{i + 2}"]
    assert " ".join(written(axes)) == " ".join(expected)
    looks = [scorecard.LOOKS[claim.verdict].inside if claim.settled else "white" for claim in claims.itertuples()]
    names = [told(claim) for claim in claims.itertuples()]
    assert marked(axes) == [(name, to_rgb(colour)) for name, colour in zip(names, looks, strict=True)]
    assert axes.yaxis_inverted()


@pytest.mark.parametrize("papers", [[("a", 3)], [("a", 12), ("b", 5)], [("a", 2), ("b", 9), ("c", 1), ("d", 3)]])
def test_the_overview_has_a_column_a_paper_with_every_claim_by_its_item(papers):
    claims = table(*papers)
    columns = scorecard.overview(claims).axes
    for axes, (_, of_paper) in zip(columns, claims.groupby("paper", sort=False), strict=True):
        check_column(axes, of_paper, lambda claim: claim.item)


def test_the_page_of_a_paper_has_every_claim_in_full():
    claims = table(("a", 12))
    (axes,) = scorecard.of_paper(claims, claims["paper"].iloc[0]).axes
    check_column(axes, claims, lambda claim: f"{claim.item}: {claim.statement}")


def test_a_hollow_mark_keeps_the_colour_of_its_verdict():
    for verdict, look in scorecard.LOOKS.items():
        hollow = scorecard._mark(verdict, settled=False)
        assert to_rgb(hollow.get_markeredgecolor()) == to_rgb(look.colour)
        assert to_rgb(hollow.get_markerfacecolor()) == to_rgb("white")


@pytest.mark.parametrize("number", [1, 30])
def test_long_statements_are_wrapped_and_the_page_can_be_read(tmp_path, number):
    claims = table(("a", number)).assign(statement=f"{LONGEST} {LONGEST}", item="Theorems 4.1-4.7")
    figure = scorecard.of_paper(claims, claims["paper"].iloc[0])
    told = " ".join(line.strip() for line in written(figure.axes[0]) if not line[0].isdigit())
    assert told.count(f"Theorems 4.1-4.7: {LONGEST} {LONGEST}") == number
    save(figure, tmp_path / "scorecard.png")


def test_the_overview_of_four_papers_can_be_read(tmp_path):
    claims = table(("structural", 32), ("emergence", 55), ("layernorm", 18), ("postnorm", 20))
    save(scorecard.overview(claims.assign(item="Theorems 4.1-4.7")), tmp_path / "scorecard.png")


def test_a_fifth_paper_stands_below_the_shortest_column(tmp_path):
    claims = table(("structural", 9), ("emergence", 12), ("layernorm", 3), ("postnorm", 6), ("retrieval", 2))
    figure = scorecard.overview(claims)
    assert [len(axes.lines) for axes in figure.axes] == [9, 12, 5, 6]
    told = written(figure.axes[2])
    assert told.index("layernorm: 2 of 3 settled") < told.index("retrieval: 1 of 2 settled")
    save(figure, tmp_path / "scorecard.png")
