import pytest

from position_bias.structural import checks_theory, figures_theory
from tests.unit.drawing_checks import assert_drawn, assert_legible, assert_saved

pytestmark = pytest.mark.usefixtures("styled")


def test_each_force_has_a_panel_with_its_curves(tmp_path):
    table = checks_theory.forces()
    figure = figures_theory.forces(table)
    for axes, varied in zip(figure.axes, figures_theory.FORCES, strict=True):
        assert_drawn(axes, table.loc[table["varied"] == varied, "value"])
    assert_saved(figure, tmp_path)


def test_each_schedule_has_a_panel_with_its_curves_between_their_bounds():
    table = checks_theory.dichotomy()
    figure = figures_theory.dichotomy(table)
    for axes, schedule in zip(figure.axes, figures_theory.SCHEDULES, strict=True):
        shown = table[(table["schedule"] == schedule) & (table["upper"] >= figures_theory.LEAST_SHOWN / 10)]
        assert_drawn(axes, shown[["value", "lower", "upper"]])
        assert_drawn(axes, shown["depth"], along=0)
    assert_legible(figure)
