"""Tables that figures of postnorm are drawn from, on numbers by hand, and what they say besides their data."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.postnorm import figures, theory
from tests.drawn import curves
from tests.figures.postnorm import LOOKS, bema, law, resharpening, stability

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("name", theory.LAWS)
def test_the_constant_of_a_law_is_fitted_at_trained_lengths(name):
    s = np.arange(1, 8)
    gap = np.where(s <= 3, theory.law_gap(name, s, 8, 5.0), 99)
    rows = pd.DataFrame({"scheme": "none", "quantity": "gap", "length": s, "trained": 3, "value": gap})
    others = rows.assign(scheme="pre", value=7.0), rows.assign(quantity="tvd", value=7.0)
    assert figures.fitted_constant(pd.concat([rows, *others]), "none", name, 8) == pytest.approx(5)


def test_medians_are_over_seeds_as_far_as_all_are_finite():
    rows = {1: (1, 5, 2), 2: (4, 4, 9), 3: (1, NAN, 1), 4: (INF, 1, 1), 5: (3, 2, 1)}
    given = [(seed, at, value) for at, values in rows.items() for seed, value in enumerate(values)]
    table = pd.DataFrame(given, columns=["seed", "iteration", "loss"]).sample(frac=1, random_state=0)
    found = figures.along_training(table, "loss")
    assert found.to_dict("index") == {
        1: {"median": 2, "low": 1, "high": 5},
        2: {"median": 4, "low": 4, "high": 9},
        5: {"median": 2, "low": 1, "high": 3},
    }


def test_the_highest_gradient_is_of_trainings_that_stay_finite():
    rows = [(0, 1.0, 3.0), (0, 1.0, 7.0), (1, NAN, 1.0), (1, 1.0, 9.0), (2, 1.0, INF), (3, 2.0, 4.0)]
    table = pd.DataFrame(rows, columns=["seed", "loss", "gradient_norm"])
    assert figures.highest_gradients(table).to_dict() == {0: 7, 3: 4}


@pytest.mark.usefixtures("styled")
def test_scaled_gaps_are_flat_where_their_law_holds():
    figure, _ = resharpening()
    for row, v in zip(np.reshape(figure.axes, (2, 3)), (16, 32), strict=True):
        for scheme, look in LOOKS.items():
            (over_s,), (over_root,), (weight,) = (curves(axes, look.colour, look.line, v - 1) for axes in row)
            flat, other = (over_s, over_root) if law(scheme) == theory.DISPERSED else (over_root, over_s)
            np.testing.assert_allclose(flat, 7, rtol=0.01)  # on average over seeds
            assert np.ptp(other) > 1
            np.testing.assert_allclose(weight, 1, rtol=0.01)


@pytest.mark.usefixtures("styled")
def test_marks_of_averages_tell_the_rates_apart():
    figure, panels = bema()
    for axes, panel in zip(figure.axes, panels, strict=True):
        for place, look in enumerate(figures.RATES.values()):
            marks = [line for line in axes.lines if line.get_marker() == look.marker and line.get_markersize() > 2]
            means = panel.numbers[place]["mean"]
            np.testing.assert_allclose(np.ravel([line.get_ydata() for line in marks]), means)


@pytest.mark.usefixtures("styled")
def test_crosses_mark_trainings_that_break():
    figure, _ = stability()
    crosses = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "x"]
    places = {(line.axes, to_rgb(line.get_color()), bool(line.get_xdata()[0] > 0.05)) for line in crosses}
    colours = [to_rgb(LOOKS[scheme].colour) for scheme in ("post", "peri")]
    assert places == set(product(figure.axes[2::3], colours, (False, True)))  # at either rate
