"""What tests of figures share: that the data which are drawn are those that were given, and that files can be read."""

import numpy as np
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from position_bias.statistics import mean_and_interval
from tests import legibility


def panels(part):
    """The panels of a figure, or the one that is given, each with its insets."""
    for axes in part.axes if isinstance(part, Figure) else [part]:
        yield from (axes, *axes.child_axes)


def numbers(part, along=1):
    """All numbers of data that a panel or a figure shows along y (0: along x), without levels that cross the panel."""
    found = []
    for axes in panels(part):
        of_data = [it for it in (*axes.lines, *axes.patches) if stands_in_data(it, axes)]
        found += [it.get_data()[along] for it in of_data if it in [*axes.lines]]
        found += [[it.get_height()] for it in of_data if it in [*axes.patches]]
        for it in axes.collections:
            if isinstance(it, PathCollection):
                found.append(it.get_offsets()[:, along])
            elif it.get_array() is None:  # bars of intervals, and bands
                found += [path.vertices[:, along] for path in it.get_paths()]
        found += [np.ma.compressed(image.get_array()) for image in axes.images]
    return np.concatenate([np.asarray(values, float).ravel() for values in found]) if found else np.empty(0)


def stands_in_data(artist, axes):
    return artist.get_transform().contains_branch_seperately(axes.transData) == (True, True)


def assert_drawn(part, *given, along=1):
    """Every number that is given is drawn in this panel or figure, and every number that is drawn is given."""
    drawn = numbers(part, along)
    given = np.concatenate([np.asarray(values, float).ravel() for values in given])
    for values, others, what in ((given, drawn, "given and not drawn"), (drawn, given, "drawn and not given")):
        values, others = (np.unique(some[np.isfinite(some)]) for some in (values, others))
        away = np.abs(values[:, None] - others).min(axis=1, initial=np.inf)
        assert (away <= 1e-9 * (1 + np.abs(values))).all(), f"{what}: {values[away > 1e-9 * (1 + np.abs(values))]}"


def curves(axes, colour=None, style=None, points=None):
    """Values of the lines of data, or of those of a colour, a style and a number of points, in the order of drawing."""
    return [
        np.asarray(line.get_ydata(), float)
        for line in axes.lines
        if stands_in_data(line, axes)
        and (colour is None or to_rgb(line.get_color()) == to_rgb(colour))
        and line.get_linestyle() == (style or line.get_linestyle())
        and len(line.get_ydata()) == (points or len(line.get_ydata()))
    ]


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


def assert_saved(figure, folder):
    """The figure is written in every format, and can be read in each."""
    paths = [folder / f"figure.{suffix}" for suffix in ("pdf", "svg", "png")]
    assert legibility.faults_of_files(figure, *paths) == []
    assert all(path.stat().st_size > 1000 for path in paths)


def assert_legible(figure):
    """The figure can be read; it is not saved, which takes longer."""
    assert legibility.faults(legibility.drawn(figure)) == []
