import pandas as pd
import pytest

from position_bias.drawing.intervals import marks_by
from position_bias.drawing.looks import Look
from position_bias.drawing.panels import curves, panels

LOOKS = {"post": Look("post", "green"), "pre": Look("pre", "orange", line="--"), "peri": Look("peri", "blue")}
TABLE = pd.DataFrame(
    {"norm": ["pre", "pre", "post", "post"], "seed": [0, 1] * 2, "layer": [1] * 4, "value": [1.0, 3.0, 5.0, 6.0]}
)


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
