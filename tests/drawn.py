"""What a figure must show: that the data which are drawn are those that were given, and that files can be read."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import ArrayLike, NDArray

from tests import legibility

Array = NDArray[np.float64]


class Panel(NamedTuple):
    """What a panel must show; of what is None, anything may be there."""

    numbers: Sequence[ArrayLike] | None = None  # all along y, in any order
    along: Sequence[ArrayLike] | None = None  # all along x
    lines: Mapping[tuple[Any, str], ArrayLike] = {}  # colour and style -> y of the only line of as many points
    bars: Mapping[tuple[Any, int], float] | None = None  # colour and place -> height of all bars
    levels: Sequence[float] | None = None  # heights of all lines that cross the panel
    shade: tuple[float, float] | None = None  # from where to where a part of it is shaded
    image: ArrayLike | None = None  # NaN where nothing is drawn
    limit: float | None = None  # of the colours of the image, on either side of 0
    whole: bool = False  # whether all of its numbers are in view


def of(rows, **keys):
    """The rows with these values."""
    return rows[np.all([rows[name] == value for name, value in keys.items()], axis=0)]


def assert_shown(axes: Axes, panel: Panel) -> None:
    """What is given is drawn, and nothing else."""
    for given, along in ((panel.numbers, 1), (panel.along, 0)):
        if given is not None:
            assert_drawn(axes, *given, along=along)
    for (colour, style), values in panel.lines.items():
        (line,) = curves(axes, colour, style, np.size(values))
        np.testing.assert_allclose(line, np.ravel(values), rtol=1e-9, atol=1e-12)
    if panel.bars is not None:
        found = {
            (to_rgb(bar.get_facecolor()), round(bar.get_x() + bar.get_width() / 2)): bar.get_height()
            for bar in axes.patches
            if isinstance(bar, Rectangle)
        }
        expected = {(to_rgb(colour), place): height for (colour, place), height in panel.bars.items()}
        assert found.keys() == expected.keys()
        np.testing.assert_allclose([found[key] for key in expected], [*expected.values()])
    if panel.levels is not None:
        crossing = [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]
        np.testing.assert_allclose(crossing, panel.levels)
    if panel.shade is not None:
        (shade,) = (part for part in axes.patches if isinstance(part, Rectangle) and not stands_in_data(part, axes))
        assert (shade.get_x(), shade.get_x() + shade.get_width()) == panel.shade
    if panel.image is not None:
        shown = np.ma.filled(np.ma.asarray(axes.images[0].get_array(), dtype=float), np.nan)
        np.testing.assert_allclose(shown, panel.image, atol=1e-6)
    if panel.limit is not None:
        np.testing.assert_allclose(axes.images[0].get_clim(), (-panel.limit, panel.limit))
    if panel.whole:
        assert axes.get_ylim()[1] >= np.nanmax(numbers(axes))


def panels(part: Figure | Axes) -> Any:
    """The panels of a figure, or the one that is given, each with its insets."""
    for axes in part.axes if isinstance(part, Figure) else [part]:
        yield from (axes, *axes.child_axes)


def numbers(part: Figure | Axes, along: int = 1) -> Array:
    """All numbers of data that a panel or a figure shows along y (0: along x), without levels that cross the panel."""
    found: list[Any] = []
    for axes in panels(part):
        of_data = [it for it in (*axes.lines, *axes.patches) if stands_in_data(it, axes)]
        found += [it.get_data()[along] for it in of_data if it in [*axes.lines]]
        found += [[it.get_height()] for it in of_data if it in [*axes.patches]]
        for it in axes.collections:
            if isinstance(it, PathCollection):
                found.append(it.get_offsets()[:, along])
            elif it.get_array() is None:  # bars of intervals, and bands
                found += [path.vertices[:, along] for path in it.get_paths()]
    return np.concatenate([np.asarray(values, float).ravel() for values in found]) if found else np.empty(0)


def stands_in_data(artist: Line2D | Patch, axes: Axes) -> bool:
    """Whether it is of data, and no level or shade that crosses the panel."""
    return bool(artist.get_transform().contains_branch_seperately(axes.transData) == (True, True))


def assert_drawn(part: Figure | Axes, *given: ArrayLike, along: int = 1) -> None:
    """Every number that is given is drawn in this panel or figure, and every number that is drawn is given."""
    drawn = numbers(part, along)
    wanted = np.concatenate([np.asarray(values, float).ravel() for values in given] or [np.empty(0)])
    for values, others, what in ((wanted, drawn, "given and not drawn"), (drawn, wanted, "drawn and not given")):
        values, others = (np.unique(some[np.isfinite(some)]) for some in (values, others))
        away = np.abs(values[:, None] - others).min(axis=1, initial=np.inf)
        assert (away <= 1e-9 * (1 + np.abs(values))).all(), f"{what}: {values[away > 1e-9 * (1 + np.abs(values))]}"


def curves(axes: Axes, colour: Any = None, style: str = "", points: int = 0) -> list[Array]:
    """Values of the lines of data, or of those of a colour, a style and a number of points, in the order of drawing."""
    return [
        np.asarray(line.get_ydata(), float)
        for line in axes.lines
        if stands_in_data(line, axes)
        and (colour is None or to_rgb(line.get_color()) == to_rgb(colour))
        and line.get_linestyle() == (style or line.get_linestyle())
        and len(line.get_ydata()) == (points or len(line.get_ydata()))
    ]


def assert_saved(figure: Figure, folder: Any) -> None:
    """The figure is written in every format, and can be read in each."""
    paths = [folder / f"figure.{suffix}" for suffix in ("pdf", "svg", "png")]
    assert legibility.faults_of_files(figure, *paths) == []
    assert all(path.stat().st_size > 1000 for path in paths)


def assert_legible(figure: Figure) -> None:
    """The figure can be read as it is drawn on a screen."""
    assert legibility.faults(legibility.drawn(figure)) == []
