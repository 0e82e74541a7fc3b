import pytest

from position_bias.emergence import figures_theory, theory
from tests.unit.drawing_checks import assert_drawn, assert_saved

pytestmark = pytest.mark.usefixtures("styled")


def tables(tokens, layers, draws, far):
    """Convergence, profiles of either encoding, and peaks."""
    convergence = theory.convergence(tokens, layers, draws, 0)
    return convergence, theory.decay_profiles(far), theory.rope_profiles(far), theory.decay_peaks(far)


def test_the_theorems_are_drawn_as_their_tables_have_them(tmp_path):
    convergence, decay, rope, peaks = given = tables(16, 80, 3, 300)
    figure = figures_theory.theorems(*given)
    masks, *profiles, dots = figure.axes
    shown = convergence[convergence["mask"].isin(figures_theory.SHOWN)]
    shown = shown[shown["layers"] <= figures_theory.LAYERS_SHOWN]
    assert_drawn(masks, shown[["value", "bound", "low", "high"]])
    for axes, table, critical in zip(profiles, (decay, rope), (["critical"], ["critical", "printed"]), strict=True):
        near = table[table["distance"] <= 2 * table["peak"].max()]
        assert_drawn(axes, near["value"])  # on which the critical points stand
        ends = near.groupby("depth")[critical].first()
        places = ends[ends.round().le(near["distance"].max())]
        assert_drawn(axes, near["distance"], places, along=0)
    assert_drawn(dots, peaks[["critical", "peak"]])
    assert_saved(figure, tmp_path)
