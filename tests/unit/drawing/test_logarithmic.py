import matplotlib.pyplot as plt
import numpy as np
import pytest

from position_bias.drawing.logarithmic import log_ticks
from position_bias.drawing.looks import legend
from position_bias.drawing.style import PAGE, figure_style
from tests.unit.drawing_checks import assert_legible


@pytest.mark.parametrize("low", [2.3e-3, 0.9])
def test_labels_of_any_range_keep_apart_and_are_two_or_more(low):
    with figure_style():
        figure, rows = plt.subplots(3, 3, figsize=(PAGE, 4.5), label="Diagonals")
        for axes, decades in zip(rows.flat, np.linspace(0.2, 3.4, 9), strict=True):
            ends = [low, low * 10**decades]
            axes.loglog(ends, ends)
            axes.set(xlabel="distance", ylabel="weight")
            for axis in (axes.xaxis, axes.yaxis):
                log_ticks(axis)
                low_end, high_end = axis.get_view_interval()
                shown = [place for place in axis.get_majorticklocs() if low_end <= place <= high_end]
                assert len(shown) >= 2
                assert not any(label.get_text() for label in axis.get_minorticklabels())
        legend(figure)
        assert_legible(figure)
