import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.drawing import scorecard
from position_bias.drawing.style import figure_style
from position_bias.verdicts.claim import WHOSE

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
                "whose": WHOSE[i % 3],
                "verdict": verdicts[i % 4],
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
    held = [(claims[claims["paper"] == paper]["verdict"] == "holds").sum() for paper, _ in papers]
    expected = [f"{paper}: {n} of {of} hold" for (paper, of), n in zip(papers, held, strict=True)]
    assert [axes.get_title("left") for axes in panels] == expected
    for axes, (_, of_paper) in zip(panels, claims.groupby("paper", sort=False), strict=True):
        stated = [("ours: " if row.whose == "ours" else "") + row.statement for row in of_paper.itertuples()]
        assert [text.get_text() for text in axes.texts][::2] == stated
        marks = [to_rgb(line.get_markerfacecolor()) for line in axes.lines]
        assert marks == [to_rgb(scorecard.LOOKS[verdict].colour) for verdict in of_paper["verdict"]]
        heights = [line.get_ydata()[0] for line in axes.lines]
        assert heights == sorted(heights)
        assert axes.yaxis_inverted()


def test_statements_of_full_length_do_not_run_into_the_items():
    claims = table(("a", 6), ("b", 6)).assign(statement=LONGEST, whose="paper", item="Theorems 4.1-4.7")
    figure = scorecard.scorecard(claims)
    figure.canvas.draw()
    for axes in figure.axes:
        for statement, item in zip(axes.texts[::2], axes.texts[1::2], strict=True):
            assert statement.get_window_extent().x1 < item.get_window_extent().x0
    plt.close(figure)
