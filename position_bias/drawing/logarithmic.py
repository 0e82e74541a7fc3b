"""Ticks of logarithmic axes, the same in every figure."""

from math import ceil, floor, log10

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import MaxNLocator, NullFormatter

ENOUGH = 3  # labels of an axis
OF_A_DECADE = [1], [1, 3], [1, 2, 5]  # places of labels, from the fewest on


def log_ticks(axis: Axis) -> None:
    """Label a logarithmic axis, whose limits are set, so that labels keep apart and there are at least two of them.

    Powers of ten, or else the fewest places of every decade that give three labels; within a small part of a decade,
    two round numbers.
    """
    axis.set_minor_formatter(NullFormatter())
    low, high = sorted(axis.get_view_interval())
    powers = 10.0 ** np.arange(floor(log10(low)), ceil(log10(high)) + 1)
    for places in OF_A_DECADE:
        ticks = np.outer(powers, places).ravel()
        inside = ticks[(low <= ticks) & (ticks <= high)]
        if len(inside) >= ENOUGH:
            break
    else:
        ticks = np.asarray(MaxNLocator(5).tick_values(low, high))
        inside = ticks[(low <= ticks) & (ticks <= high)][[0, -1]]
    if len(places) > 1:
        axis.set_ticks(inside, [f"{tick:g}" for tick in inside])
