import numpy as np
import pytest

from position_bias.retrieval import figures
from tests.unit.drawing_checks import assert_legible
from tests.unit.retrieval import worlds

pytestmark = [pytest.mark.filterwarnings("error::UserWarning"), pytest.mark.usefixtures("styled")]


@pytest.fixture
def panels():
    return figures.prior(worlds.world(noise=0.01), 0.95).axes


def lines(axes, colour):
    return [line for line in axes.lines if line.get_color() == colour and len(line.get_xdata()) > 2]


def test_the_figure_is_legible_and_says_how_many_seeds():
    figure = figures.prior(worlds.world(noise=0.01), 0.95)
    assert_legible(figure)


def test_one_seed_has_no_bars_and_is_drawn():
    table = worlds.world()
    assert_legible(figures.prior(table[table["seed"] == 0], 0.95))


def test_gaps_stand_against_slopes(panels):
    table = worlds.world(noise=0.01)
    (line,) = lines(panels[1], figures.LOOKS["share"].colour)
    shares = table[(table["study"] == "plain") & (table["quantity"] == "share")]
    for place, name in enumerate(worlds.SLOPES):
        own = shares[shares["network"] == name].pivot(index="seed", columns="position", values="value")
        gap = ((own[1] - own[8]) / own.sum(axis=1)).mean()
        assert line.get_ydata()[place] == pytest.approx(gap)
        assert line.get_xdata()[place] == pytest.approx(worlds.SLOPES[name], abs=0.01)


def test_profiles_are_shares_of_what_the_positions_have_together(panels):
    for axes in panels[3:]:
        (line,) = lines(axes, figures.LOOKS["measured"].colour)
        assert np.sum(line.get_ydata()) == pytest.approx(1)
    (accuracy,) = lines(panels[3], figures.LOOKS["accuracy"].colour)
    assert np.sum(accuracy.get_ydata()) == pytest.approx(1)
    assert panels[3].get_title() == "(c) slope 0.4, with residual"


def test_a_perfect_prediction_lies_on_the_diagonal(panels):
    for line in panels[0].lines:
        if line.get_color() == figures.LOOKS["measured"].colour and line.get_marker() == "s":
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
                assert y in (pytest.approx(x), pytest.approx(-x))  # sinusoids and the last item are the wrong way round
