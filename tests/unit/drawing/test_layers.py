import matplotlib.pyplot as plt
import pytest

from position_bias.drawing.layers import layer_axis


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
