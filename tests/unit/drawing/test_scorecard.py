import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.drawing import scorecard
from position_bias.drawing.style import figure_style, save
from position_bias.verdicts.claim import WHOSE
from position_bias.verdicts.scorecard import HEADINGS, VERDICTS

LONGEST = "with a norm after attention the distance beyond trained lengths does not grow."


@pytest.fixture(autouse=True)
def styled():
    with figure_style():
        yield


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


@pytest.mark.parametrize("papers", [[("a", 3)], [("a", 12), ("b", 5)], [("a", 2), ("b", 9), ("c", 1)]])
def test_every_claim_has_its_lines_its_rows_and_the_mark_of_its_verdict(papers):
    claims = table(*papers)
    columns = [axes for axes in scorecard.scorecard(claims).axes if axes.get_visible()]
    lines = [line for axes in columns for line in written(axes)]
    marks = {}
    for axes in columns:
        assert axes.yaxis_inverted()
        for mark in axes.lines:
            beside = [text for text in axes.texts if text.get_position()[1] == mark.get_ydata()[0]]
            told = next(text.get_text() for text in beside if text.get_ha() == "left")
            marks[told] = to_rgb(mark.get_markerfacecolor())
    for paper, of_paper in claims.groupby("paper", sort=False):
        first = lines.index(f"{paper}: {of_paper['settled'].sum()} of {len(of_paper)} settled") + 1
        expected = []
        for whose, of_whose in of_paper.groupby("whose", sort=False):
            expected.append(HEADINGS[whose])
            for claim in of_whose.itertuples():
                i = int(claim.item.split()[-1])
                expected += [f"{claim.item}: {claim.statement}", f"{i}/{i + 1}/{i + 2}"]
        assert lines[first : first + len(expected)] == expected
        for claim in of_paper.itertuples():
            colour = scorecard.LOOKS[claim.verdict].inside if claim.settled else "white"
            assert marks[f"{claim.item}: {claim.statement}"] == to_rgb(colour)
    assert len(marks) == len(claims)


def test_a_hollow_mark_keeps_the_colour_of_its_verdict():
    for verdict, look in scorecard.LOOKS.items():
        hollow = scorecard._mark(verdict, settled=False)
        assert to_rgb(hollow.get_markeredgecolor()) == to_rgb(look.colour)
        assert to_rgb(hollow.get_markerfacecolor()) == to_rgb("white")


@pytest.mark.parametrize("papers", [[("a", 1)], [("a", 25), ("b", 30), ("c", 18), ("d", 22)]])
def test_long_statements_are_wrapped_and_the_page_can_be_read(tmp_path, papers):
    claims = table(*papers).assign(statement=LONGEST, item="Theorems 4.1-4.7")
    figure = scorecard.scorecard(claims)
    told = " ".join(line for axes in figure.axes for line in written(axes) if "/" not in line)
    assert told.count(f"Theorems 4.1-4.7: {LONGEST}") == len(claims)
    save(figure, tmp_path / "scorecard.png")


def test_columns_are_about_as_long():
    figure = scorecard.scorecard(table(("a", 20), ("b", 8), ("c", 6), ("d", 5)))
    assert [len(axes.lines) for axes in figure.axes] == [20, 19]
