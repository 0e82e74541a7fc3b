"""What cannot be read in a figure: texts that meet, are cut off or too small, panels that overlap or have no data.

A figure that is saved is looked at by an artist that is drawn last, so that what is judged is what stands in the file.
Places are in points (1/72 inch) from the lower left corner of the page. `tests/every_figure.py` judges those of a run.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from position_card.drawing import description, style
from position_card.drawing.style import COLUMN, PAGE, SMALLEST, TALLEST

SLACK = 0.75  # points: the box of a text has some room around its letters
ALIKE = 6.0  # points that formats may differ by: each rounds the heights of formulas up, which adds up in a legend

Box = tuple[float, float, float, float]  # left, bottom, right, top


class Written(NamedTuple):
    """A text of a figure, where it stands, its size in points, and the panel that it belongs to, if any."""

    words: str
    box: Box
    size: float
    panel: Artist | None

    def __str__(self) -> str:
        return f'text "{self.words}"'


class Panel(NamedTuple):
    """The axes of a figure, where they stand, the axes that they lie in as an inset, and whether they show any data."""

    name: str
    box: Box
    artist: Axes
    within: Artist | None
    has_data: bool

    def __str__(self) -> str:
        return self.name


class Sight(NamedTuple):
    """What a reader sees of a figure: what it is called, its width and height, its texts and its panels."""

    name: str
    width: float
    height: float
    texts: list[Written]
    panels: list[Panel]


class Witness(Artist):
    """An invisible part of a figure that remembers what was drawn, each time the figure is."""

    def __init__(self, figure: Figure) -> None:
        super().__init__()
        self.set(zorder=np.inf, in_layout=False)
        self.sights: list[Sight] = []
        figure.add_artist(self)

    def draw(self, renderer: RendererBase) -> None:
        figure = self.get_figure(root=True)
        assert isinstance(figure, Figure)
        self.sights.append(seen(figure, renderer))


def faults_of_files(figure: Figure, *paths: Path) -> list[str]:
    """Save a figure, and say what cannot be read in a file of it, or stands elsewhere than in the first one."""
    witness = Witness(figure)
    style.save(figure, *paths)
    first, *others = witness.sights
    apart = [f"unlike in {paths[0].suffix}, {text}" for sight in others for text in differences(first, sight)]
    return list(dict.fromkeys([*apart, *(fault for sight in (first, *others) for fault in faults(sight))]))


def drawn(figure: Figure) -> Sight:
    """What a figure shows on a screen. It is laid out twice, since ticks follow the size of their panel."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    figure.draw_without_rendering()
    return seen(figure, figure.canvas.get_renderer())  # type: ignore[attr-defined]


def seen(figure: Figure, renderer: RendererBase) -> Sight:
    """What a figure shows, as `renderer` has just drawn it."""
    points = 72 / figure.dpi
    texts: list[Written] = []
    panels: list[Panel] = []
    for artist, panel in description.visible(figure):
        if isinstance(artist, Text) and artist.get_text().strip():
            box = _box(artist.get_window_extent(renderer), points)
            texts.append(Written(description.words(artist), box, float(artist.get_fontsize()), panel))
        elif isinstance(artist, Axes):
            name = f"panel {len(panels) + 1}" + (f' ("{title}")' if (title := _title(artist)) else "")
            panels.append(Panel(name, _box(artist.get_window_extent(), points), artist, panel, _has_data(artist)))
    return Sight(
        str(figure.get_label()), float(figure.bbox.width) * points, float(figure.bbox.height) * points, texts, panels
    )


def faults(sight: Sight) -> list[str]:
    """What cannot be read, in words; nothing of a good figure."""
    return [*_of_the_page(sight), *_of_panels(sight), *_of_texts(sight)]


def differences(one: Sight, other: Sight) -> list[str]:
    """What another format has elsewhere, or not at all; nothing where both show the same."""
    panels = _moved(one.panels, other.panels)
    return panels or _moved(one.texts, other.texts)


def _moved(here: Sequence[Written | Panel], there: Sequence[Written | Panel]) -> list[str]:
    if missing := Counter(map(str, here)) - Counter(map(str, there)):
        return [f"{what} is missing" for what in missing]
    if added := Counter(map(str, there)) - Counter(map(str, here)):
        return [f"{what} is added" for what in added]
    distances = np.abs(np.subtract(_boxes(here), _boxes(there))).max(axis=1, initial=0)
    moved = zip(here, distances, strict=True)
    return [f"{what} stands {distance:.0f} points away" for what, distance in moved if not distance <= ALIKE]


def _of_the_page(sight: Sight) -> Iterator[str]:
    if not sight.name:
        yield "the figure has no label, which is its title and is read to those who cannot see it"
    elif max(sight.texts, key=lambda text: text.box[3]).words != sight.name:
        yield "the title of the figure does not stand at its top"
    width = sight.width / 72
    if not any(abs(width - printed) < 0.01 for printed in (COLUMN, PAGE)):
        yield f"the figure is {width:.3g} inches wide, and is printed at {COLUMN} or {PAGE}"
    if sight.height / 72 > TALLEST + 0.01:
        yield f"the figure is {sight.height / 72:.3g} inches high, and a page has {TALLEST:g}"
    for text in sight.texts:
        left, bottom, right, top = text.box
        if min(left, bottom, sight.width - right, sight.height - top) < -SLACK:
            yield f"{text} leaves the page"
        if text.size < SMALLEST:
            yield f"{text} has {text.size:.2g} points, and {SMALLEST:g} is the least"


def _of_texts(sight: Sight) -> Iterator[str]:
    texts = _boxes(sight.texts)
    for first, second in np.argwhere(np.triu(_meet(texts, texts), k=1)):
        yield f"{sight.texts[first]} meets {sight.texts[second]}"
    around = {id(panel.artist): panel.within for panel in sight.panels}
    for first, second in np.argwhere(_meet(texts, _boxes(sight.panels))):
        text, panel = sight.texts[first], sight.panels[second]
        if panel.artist not in _homes(text.panel, around):
            yield f"{text} lies on {panel}"


def _of_panels(sight: Sight) -> Iterator[str]:
    boxes = _boxes(sight.panels)
    around = {id(panel.artist): panel.within for panel in sight.panels}
    for first, second in np.argwhere(np.triu(_meet(boxes, boxes), k=1)):
        one, other = sight.panels[first], sight.panels[second]
        if one.artist not in _homes(other.artist, around) and other.artist not in _homes(one.artist, around):
            yield f"{one} overlaps {other}"
    for panel in sight.panels:
        if not panel.has_data:
            yield f"{panel} shows no data"


def _homes(panel: Artist | None, around: Mapping[int, Artist | None]) -> list[Artist]:
    """A panel, the one that it is an inset of, and so on."""
    homes = []
    while panel is not None:
        homes.append(panel)
        panel = around[id(panel)]
    return homes


def _has_data(axes: Axes) -> bool:
    """Whether some data lie within the limits; a line across the whole panel, such as one at 0, is none."""
    return any(_shows(artist, axes) for artist in axes.get_children() if artist.get_visible())


def _shows(artist: Artist, axes: Axes) -> bool:
    if isinstance(artist, AxesImage):
        return bool(np.isfinite(np.ma.filled(np.ma.asarray(artist.get_array(), dtype=float), np.nan)).any())
    if isinstance(artist, Line2D):
        on_axes = artist.get_transform().contains_branch_seperately(axes.transData)
        if on_axes != (True, True) and (not any(on_axes) or artist.get_marker() in ("None", "", " ", None)):
            return False  # a line across the panel, not a mark at the edge
        path = artist.get_transform().transform_path(artist.get_path())
        places = np.asarray(path.vertices, dtype=float)
        inside = axes.bbox.padded(0.5).count_contains(places) > 0 if len(places) else False
        return bool(inside or (len(places) > 1 and path.intersects_bbox(axes.bbox, filled=False)))
    if isinstance(artist, Collection):
        limits = artist.get_datalim(axes.transData)
        return bool(np.isfinite(limits.get_points()).all() and _touch(limits, axes.viewLim))
    if isinstance(artist, Patch) and artist is not axes.patch:
        data = artist.get_transform().contains_branch_seperately(axes.transData) == (True, True)
        box = artist.get_window_extent()
        return bool(data and np.isfinite(box.get_points()).all() and _touch(box, axes.bbox))
    return False


def _touch(one: Bbox, other: Bbox) -> bool:
    (x0, x1), (y0, y1) = sorted(one.intervalx), sorted(one.intervaly)
    (left, right), (low, high) = sorted(other.intervalx), sorted(other.intervaly)
    return bool(x0 <= right and left <= x1 and y0 <= high and low <= y1)


def _meet(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which boxes [n, 4] have more in common with which of the others [m, 4] than the room around letters: [n, m]."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    return np.asarray(((high - low) > SLACK).all(axis=2))


def _boxes(found: Sequence[Written | Panel]) -> NDArray[np.float64]:
    return np.array([what.box for what in found], dtype=float).reshape(-1, 4)


def _box(box: Bbox, points: float) -> Box:
    left, bottom, right, top = (float(edge) * points for edge in box.extents)
    return left, bottom, right, top


def _title(axes: Axes) -> str:
    """What a panel is called: its title, or what its axes say."""
    names = [axes.get_title(), axes.get_ylabel(), axes.get_xlabel()]
    return next((" ".join(name.split()) for name in names if name), "")
