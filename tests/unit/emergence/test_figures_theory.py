import numpy as np
import pytest

from position_bias.emergence import figures_theory, theory
from tests.unit.drawing_checks import assert_saved

pytestmark = pytest.mark.usefixtures("styled")

TABLES = (
    theory.convergence(16, 80, 3, 0),
    theory.decay_profiles(300),
    theory.rope_profiles(300),
    theory.decay_peaks(300),
)


@pytest.fixture
def figure():
    return figures_theory.theorems(*TABLES)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_convergence_lies_below_its_dotted_bounds(figure):
    axes = figure.axes[0]
    assert texts(axes) == ["prefix 4", "causal", "window 4", "window 2", "dotted: bounds"]
    lines = axes.get_lines()
    for curve, bound in zip(lines[::2], lines[1::2], strict=True):
        assert (curve.get_color(), bound.get_linestyle()) == (bound.get_color(), ":")
        assert (curve.get_ydata() <= bound.get_ydata() * (1 + 1e-12)).all()


def test_critical_points_stand_on_the_curves(figure):
    for axes, marks in zip(figure.axes[1:3], ("o", "ov"), strict=True):
        drawn = [line for line in axes.get_lines() if len(line.get_xdata())]
        curves = [line for line in drawn if line.get_linestyle() == "-"]
        assert texts(axes) == [f"$t$ = {t}" for t in theory.DEPTHS]
        for curve in curves:
            points = [line for line in drawn if line not in curves and line.get_color() == curve.get_color()]
            assert [point.get_marker() for point in points] == list(marks)
            for point in points:
                nearest = np.interp(point.get_xdata(), curve.get_xdata(), curve.get_ydata())
                assert point.get_ydata() == pytest.approx(nearest, rel=0.2)


def test_measured_peaks_are_dots_less_than_1_from_their_line(figure):
    assert texts(figure.axes[3]) == [f"$m$ = {m:.2g}" for m in theory.DECAYS]
    lines = figure.axes[3].get_lines()
    for line, dots in zip(lines[::2], lines[1::2], strict=True):
        assert (np.abs(line.get_ydata() - dots.get_ydata()) < 1).all()


def test_few_tokens_leave_out_what_does_not_fit():
    few = (theory.convergence(4, 9, 2, 0), theory.decay_profiles(20), theory.rope_profiles(20), theory.decay_peaks(20))
    assert texts(figures_theory.theorems(*few).axes[0]) == ["causal", "window 2", "dotted: bounds"]


def test_the_figure_can_be_read(figure, tmp_path):
    assert_saved(figure, tmp_path)
