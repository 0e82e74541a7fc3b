"""The axis of layers, the same in every figure."""

from collections.abc import Iterable

from matplotlib.axes import Axes


def layer_axis(axes: Axes, layers: Iterable[int]) -> None:
    """An axis from the first layer, which is 1, to the last of `layers`, both with a tick; about five more between."""
    last = max(layers)
    step = max(1, round(last / 5))
    axes.set_xlim(0.5, last + 0.5)
    axes.set_xticks([1, *reversed(range(last, step, -step))] if step > 1 else range(1, last + 1))
    axes.set_xlabel("layer")
