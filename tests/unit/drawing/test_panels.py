import pandas as pd
import pytest

from position_bias.drawing.intervals import marks_by
from position_bias.drawing.looks import Look
from position_bias.drawing.panels import curves, panels

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
