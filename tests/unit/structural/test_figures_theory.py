import pytest

from position_bias.structural import checks_theory, figures_theory
from tests.unit.drawing_checks import assert_saved

pytestmark = pytest.mark.usefixtures("styled")


def test_a_panel_for_each_force_solid_causal_dashed_window():
    figure = figures_theory.forces(checks_theory.forces())
    panels = figure.axes
    assert [axes.get_title() for axes in panels] == [
        "4.2: depth",
        "4.3: residual mixing",
        "4.4: positional bias",
        "4.5: diagonal content",
    ]
    for axes in panels:
        causal, _, window, _ = axes.get_lines()
        assert (causal.get_linestyle(), window.get_linestyle()) == ("-", "--")
        assert (causal.get_ydata() >= window.get_ydata()).all()


def test_a_panel_for_each_schedule_with_dotted_bounds_around_each_curve():
    figure = figures_theory.dichotomy(checks_theory.dichotomy())
    assert ["not summable" in axes.get_title() for axes in figure.axes] == [False, True, True]
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        lines = axes.get_lines()[:6]
        assert [line.get_linestyle() for line in lines] == ["-", ":", ":", "--", ":", ":"]
        for curve, lower, upper in (lines[:3], lines[3:]):
            assert (lower.get_ydata() <= curve.get_ydata() * (1 + 1e-12)).all()
            assert (curve.get_ydata() <= upper.get_ydata() * (1 + 1e-12)).all()


def test_the_figure_can_be_read(tmp_path):
    assert_saved(figures_theory.forces(checks_theory.forces()), tmp_path)
