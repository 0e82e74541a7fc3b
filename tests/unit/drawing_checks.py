"""What tests of figures share: what stands in a panel, that it is what was given, and that files can be read."""

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from position_bias.drawing import legibility, style
from position_bias.statistics import mean_and_interval


def curves(axes, colour=None, style=None, points=None):
    """Values of the lines of data, or of those of a colour, a style and a number of points, in the order of drawing."""
    return [
        np.asarray(line.get_ydata(), float)
        for line in axes.lines
        if line.get_transform().contains_branch_seperately(axes.transData) == (True, True)
        and (colour is None or to_rgb(line.get_color()) == to_rgb(colour))
        and line.get_linestyle() == (style or line.get_linestyle())
        and len(line.get_ydata()) == (points or len(line.get_ydata()))
    ]


def assert_drawn(found, given):
    """The curves of a panel are those that were given, each once, in any order; nothing else is drawn."""
    found, given = ([np.asarray(values, float) for values in curves] for curves in (found, given))
    assert sorted(map(len, found)) == sorted(map(len, given))
    for values in given:
        same = [len(one) == len(values) and np.allclose(one, values, equal_nan=True) for one in found]
        assert any(same), values
        del found[same.index(True)]


def bars(axes, colour=None):
    """Ends of the error bars, or of those of a colour, from left to right."""
    segments = [
        ends
        for found in axes.collections
        if isinstance(found, LineCollection) and (colour is None or to_rgb(found.get_color()[0]) == to_rgb(colour))
        for ends in found.get_segments()
    ]
    return np.array([(low, high) for (_, low), (_, high) in sorted(segments, key=lambda ends: ends[0][0])])


def interval(values):
    return np.array(mean_and_interval(values, 0.95)[1:]).T


def assert_saved_alike(draw, folder):
    """The figure is legible in every format, which `save` checks, and has the same bytes when drawn again."""
    formats = ("pdf", "svg", "png")
    for name in ("once", "again"):
        style.save(draw(), *(folder / name / f"figure.{suffix}" for suffix in formats))
    for suffix in formats:
        once, again = ((folder / name / f"figure.{suffix}").read_bytes() for name in ("once", "again"))
        assert once == again
        assert len(once) > 1000


def assert_legible(figure):
    """Nothing that is checked of a figure as it is saved is at fault; it is not saved, which takes longer."""
    figure.draw_without_rendering()
    figure.draw_without_rendering()  # again, since ticks follow the size of their panel
    assert legibility.faults(legibility.seen(figure, figure.canvas.get_renderer())) == []
