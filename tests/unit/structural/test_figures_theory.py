import pytest

from position_bias.drawing import style
from position_bias.structural import checks_theory, figures_theory


@pytest.fixture(autouse=True)
def drawing():
    with style.figure_style():
        yield


def labels(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_a_panel_for_each_force_solid_causal_dashed_window():
    figure = figures_theory.forces(checks_theory.forces())
    panels = figure.axes
    assert [axes.get_title() for axes in panels] == [
        "4.2: depth",
        "4.3: residual mixing",
        "4.4: positional bias",
        "4.5: diagonal content",
    ]
    assert all(axes.get_xlabel() for axes in panels)
    assert "first quarter" in panels[0].get_ylabel()
    assert labels(figure) == ["causal", "sliding window", "setting of all panels"]
    for axes in panels:
        causal, _, window, _ = axes.get_lines()
        assert (causal.get_linestyle(), window.get_linestyle()) == ("-", "--")
        assert (causal.get_ydata() >= window.get_ydata()).all()
    assert figure.get_figwidth() == style.PAGE


def test_a_panel_for_each_schedule_with_dotted_bounds_around_each_curve():
    figure = figures_theory.dichotomy(checks_theory.dichotomy())
    assert ["not summable" in axes.get_title() for axes in figure.axes] == [False, True, True]
    assert labels(figure) == ["no positional bias", "ALiBi", "bounds of Theorem 5.5"]
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        lines = axes.get_lines()[:6]
        assert [line.get_linestyle() for line in lines] == ["-", ":", ":", "--", ":", ":"]
        for curve, lower, upper in (lines[:3], lines[3:]):
            assert (lower.get_ydata() <= curve.get_ydata() * (1 + 1e-12)).all()
            assert (curve.get_ydata() <= upper.get_ydata() * (1 + 1e-12)).all()


def test_files_do_not_change_from_run_to_run(tmp_path):
    table = checks_theory.forces()
    for name in ("one.svg", "two.svg"):
        style.save(figures_theory.forces(table), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
