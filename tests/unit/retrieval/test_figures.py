import numpy as np
import pytest

from position_bias.retrieval import figures
from tests.unit.drawing_checks import assert_legible
from tests.unit.retrieval import worlds

pytestmark = [pytest.mark.filterwarnings("error::UserWarning"), pytest.mark.usefixtures("styled")]


def lines(axes, colour):
    return [line for line in axes.lines if line.get_color() == colour and len(line.get_xdata()) > 2]


def test_gaps_stand_against_slopes_and_profiles_are_shares_of_what_the_positions_have_together():
    table = worlds.world(noise=0.01)
    figure = figures.prior(table, 0.95)
    agreeing, by_slope, _, *profiles = figure.axes
    (line,) = lines(by_slope, figures.LOOKS["share"].colour)
    shares = table[(table["study"] == "plain") & (table["quantity"] == "share")]
    for place, name in enumerate(worlds.SLOPES):
        own = shares[shares["network"] == name].pivot(index="seed", columns="position", values="value")
        gap = ((own[1] - own[8]) / own.sum(axis=1)).mean()
        assert line.get_ydata()[place] == pytest.approx(gap)
        assert line.get_xdata()[place] == pytest.approx(worlds.SLOPES[name], abs=0.01)
    for axes in profiles:
        (line,) = lines(axes, figures.LOOKS["measured"].colour)
        assert np.sum(line.get_ydata()) == pytest.approx(1)
    (accuracy,) = lines(profiles[0], figures.LOOKS["accuracy"].colour)
    assert np.sum(accuracy.get_ydata()) == pytest.approx(1)
    perfect = [line for line in agreeing.lines if line.get_marker() == "s"]
    for line in perfect:
        if line.get_color() == figures.LOOKS["measured"].colour:  # sinusoids and the last item are the wrong way round
            x, y = (np.asarray(values, float) for values in line.get_data())
            np.testing.assert_allclose(np.abs(y), np.abs(x))
    assert_legible(figure)
    assert_legible(figures.prior(table[table["seed"] == 0], 0.95))  # without intervals
