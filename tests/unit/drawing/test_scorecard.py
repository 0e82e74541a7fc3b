import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.drawing import scorecard
from position_bias.drawing.style import figure_style
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


@pytest.mark.parametrize("papers", [[("a", 3)], [("a", 12), ("b", 5)], [("a", 2), ("b", 9), ("c", 1)]])
def test_every_claim_has_its_line_and_the_mark_of_its_verdict(papers):
    claims = table(*papers)
    figure = scorecard.scorecard(claims)
    panels = [axes for axes in figure.axes if axes.get_title("left")]
    settled = [claims[claims["paper"] == paper]["settled"].sum() for paper, _ in papers]
    expected = [f"{paper}: {n} of {of} settled" for (paper, of), n in zip(papers, settled, strict=True)]
    assert [axes.get_title("left") for axes in panels] == expected
    for axes, (_, of_paper) in zip(panels, claims.groupby("paper", sort=False), strict=True):
        shown = [text.get_text() for text in axes.texts]
        assert [text for text in shown if text in HEADINGS.values()] == [
            HEADINGS[whose] for whose in dict.fromkeys(of_paper["whose"])
        ]
        lines = [text for text in shown if text not in HEADINGS.values()]
        assert lines[::3] == of_paper["statement"].tolist()
        assert lines[1::3] == [f"{i}/{i + 1}/{i + 2}" for i in range(len(of_paper))]
        for mark, claim in zip(axes.lines, of_paper.itertuples(), strict=True):
            colour = scorecard.LOOKS[claim.verdict].colour if claim.settled else "white"
            assert to_rgb(mark.get_markerfacecolor()) == to_rgb(colour)
        heights = [line.get_ydata()[0] for line in axes.lines]
        assert heights == sorted(heights)
        assert axes.yaxis_inverted()


def test_a_hollow_mark_keeps_the_colour_of_its_verdict():
    for verdict, look in scorecard.LOOKS.items():
        hollow = scorecard._mark(verdict, settled=False)
        assert to_rgb(hollow.get_markeredgecolor()) == to_rgb("0.6" if look.colour == "white" else look.colour)


def test_statements_of_full_length_do_not_run_into_the_numbers_or_items():
    claims = table(("a", 6), ("b", 6)).assign(statement=LONGEST, item="Theorems 4.1-4.7")
    figure = scorecard.scorecard(claims)
    figure.canvas.draw()
    for axes in figure.axes:
        texts = [text for text in axes.texts if text.get_text() not in HEADINGS.values()]
        for statement, numbers, item in zip(texts[::3], texts[1::3], texts[2::3], strict=True):
            assert statement.get_window_extent().x1 < numbers.get_window_extent().x0
            assert numbers.get_window_extent().x1 < item.get_window_extent().x0
    plt.close(figure)
