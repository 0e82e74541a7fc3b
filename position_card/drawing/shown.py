"""What a figure says of itself: whose numbers it draws. It is written into the file, so that others can ask it."""

from collections.abc import Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

from matplotlib.figure import Figure
from PIL import Image

KEY = "Draws"  # of the texts of a PNG
_DRAWN: WeakKeyDictionary[Figure, tuple[str, ...]] = WeakKeyDictionary()


def draws(figure: Figure, names: Iterable[str]) -> None:
    """Remember what a figure draws: names as in "paper: gaussian/plain/causal/none/depth2", a scale and a network."""
    _DRAWN[figure] = tuple(dict.fromkeys((*drawn(figure), *names)))


def drawn(figure: Figure) -> tuple[str, ...]:
    """Return what `draws` was told of a figure."""
    return _DRAWN.get(figure, ())


def drawn_in(image: Path) -> set[str]:
    """Return what the figure draws that was saved in a PNG."""
    with Image.open(image) as opened:
        return {*filter(None, str(opened.info.get(KEY, "")).split("; "))}
