import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from position_card.drawing.intervals import marks_by
from position_card.drawing.looks import Look, legend
from position_card.drawing.panels import curves, layer_axis, log_ticks, panels
from position_card.drawing.style import PAGE, figure_style
from tests.drawn import assert_legible

TITLES = {"left": "Left", "right": "Right"}
LOOKS = {"post": Look("post", "green"), "pre": Look("pre", "orange", line="--"), "peri": Look("peri", "blue")}
TABLE = pd.DataFrame(
    {"norm": ["pre", "pre", "post", "post"], "seed": [0, 1] * 2, "layer": [1] * 4, "value": [1.0, 3.0, 5.0, 6.0]}
)


def texts(found):
    return {name: (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) for name, axes in found.items()}


def test_a_row_has_titles_and_one_label_on_the_left():
    figure, row = panels("A figure", 2, TITLES, x="layer", y="recency", sharey=True)
    assert texts(row) == {"left": ("Left", "layer", "recency"), "right": ("Right", "layer", "")}
    assert list(row.values()) == figure.axes
    assert figure.get_label() == "A figure"


def test_a_grid_is_labelled_at_its_edges_and_by_column():
    labels = {"left": "loss", "right": "gradient"}
    _, grid = panels("", 2, TITLES, {1: "1 layer", 8: "8 layers"}, x={"right": "rate"}, y=labels)
    assert texts(grid) == {
        (1, "left"): ("Left", "", "1 layer\nloss"),
        (1, "right"): ("Right", "", "gradient"),
        (8, "left"): ("", "", "8 layers\nloss"),
        (8, "right"): ("", "rate", "gradient"),
    }


def test_rows_of_a_table_come_in_the_order_of_looks():
    found = [(name, look, list(rows["value"])) for name, look, rows in curves(TABLE, "norm", LOOKS)]
    assert found == [("post", LOOKS["post"], [5, 6]), ("pre", LOOKS["pre"], [1, 3])]
    with pytest.raises(ValueError, match="'rms' has no look"):
        list(curves(TABLE.replace("pre", "rms"), "norm", LOOKS))


def test_marks_of_two_names_stand_side_by_side_with_their_seeds():
    _, row = panels("", 2, {"only": ""})
    shown = {name: LOOKS[name] for name in ("post", "pre")}
    marks_by(row["only"], TABLE, "layer", 0.95, "norm", shown, 0.2, seeds_aside=0.05)
    post, post_seeds, pre, pre_seeds = row["only"].lines
    assert (post.get_xdata(), post.get_ydata(), post.get_linestyle()) == (pytest.approx([0.9]), [5.5], "-")
    assert (pre.get_xdata(), pre.get_ydata(), pre.get_linestyle()) == (pytest.approx([1.1]), [2], "--")
    assert list(post_seeds.get_ydata()) == [5, 6]
    assert list(pre_seeds.get_xdata()) == pytest.approx([1.15, 1.15])


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (1, [1]),
        (8, [1, 2, 4, 6, 8]),
        (13, [1, 4, 7, 10, 13]),
        (32, [1, 8, 16, 24, 32]),
        (70, [1, 14, 28, 42, 56, 70]),
    ],
)
def test_the_first_and_the_last_layer_have_ticks(last, expected):
    _, axes = plt.subplots()
    layer_axis(axes, range(1, last + 1))
    assert list(axes.get_xticks()) == expected
    assert axes.get_xlim() == (0.5, last + 0.5)
    assert axes.get_xlabel() == "layer"
    plt.close("all")


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
