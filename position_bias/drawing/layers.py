"""The axis of layers, the same in every figure."""

from collections.abc import Iterable

from matplotlib.axes import Axes

FEW = 7  # layers that all have a tick
PARTS = 4  # of the axis between ticks, about


def layer_axis(axes: Axes, layers: Iterable[int]) -> None:
    """An axis from the first layer, which is 1, to the last of `layers`, both with a tick; a few more between."""
    last = max(layers)
    axes.set_xlim(0.5, last + 0.5)
    axes.set_xticks(range(1, last + 1) if last <= FEW else [1, *_multiples(last)])
    axes.set_xlabel("layer")


def _multiples(last: int) -> list[int]:
    """Multiples of the step that divides `last` into about four parts, or numbers counted back from a prime."""
    steps = [step for step in range(2, last) if last % step == 0]
    if steps:
        step = min(steps, key=lambda step: abs(last / step - PARTS))
        return list(range(step, last + 1, step))
    step = round(last / PARTS)
    return sorted(range(last, step, -step))
