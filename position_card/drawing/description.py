"""A figure in words, for readers who cannot see it: how many panels it has, and what is written in it."""

import re
from collections.abc import Iterator

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, Tick
from matplotlib.figure import Figure
from matplotlib.text import Text

NUMBER = re.compile("[-\u2212$\\\\{}\\d.,^+±/%kM]+|(.*times)?10.*")  # a tick


def describe(figure: Figure) -> str:
    """Describe a figure that was drawn: its label, how many panels it has, and all texts in it but numbers."""
    parts, label = [part for part, _ in visible(figure)], figure.get_label()
    texts_in_order = dict.fromkeys(words(part) for part in parts if isinstance(part, Text))
    texts = "; ".join(text for text in texts_in_order if text not in ("", label) and not NUMBER.fullmatch(text))
    number = sum(isinstance(part, Axes) for part in parts)
    panels = "1 panel" if number == 1 else f"{number} panels"
    return f"{label}. {panels}, with the texts: {texts}"


def words(text: Text) -> str:
    """Return what a text says, in one line."""
    line = " ".join(text.get_text().split())
    return re.sub(r"\$\\mathdefault\{(.*)\}\$", r"\1", line)


def visible(artist: Artist, panel: Artist | None = None) -> Iterator[tuple[Artist, Artist | None]]:
    """Yield an artist that is drawn and all parts of it that are, each with the axes that it belongs to."""
    if not artist.get_visible():
        return
    yield artist, panel
    within = artist if isinstance(artist, Axes) else panel
    for part in artist.get_children():
        if isinstance(artist, Axes) and isinstance(part, Axis) and not artist.axison:
            continue
        if isinstance(artist, Axis) and isinstance(part, Tick) and not _in_view(artist, part):
            continue
        yield from visible(part, within)


def _in_view(axis: Axis, tick: Tick) -> bool:
    """Say whether a tick is drawn: an axis keeps some beyond its ends."""
    low, high = sorted(axis.get_transform().transform(axis.get_view_interval()))
    slack = 1e-6 * (high - low)
    return bool(low - slack <= axis.get_transform().transform([tick.get_loc()])[0] <= high + slack)
