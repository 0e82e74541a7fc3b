"""What a figure says of itself: whose numbers it draws. It is written into its PNG, so that others can ask it.

A name is a scale and what was trained, measured or worked out: "paper: gaussian/plain/causal/none/depth2".
"""

from collections.abc import Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

from matplotlib.figure import Figure
from PIL import Image

KEY = "Draws"  # of the texts of a PNG
_NAMES: WeakKeyDictionary[Figure, tuple[tuple[str, str], ...]] = WeakKeyDictionary()


def draws(figure: Figure, names: Iterable[str], scale: str = "") -> None:
    """Remember the `names` of what a figure draws, as those of networks, and its scale: "" is that of the run.

    Names of an earlier call stay, and none is kept twice.
    """
    _NAMES[figure] = tuple(dict.fromkeys((*_NAMES.get(figure, ()), *((scale, name) for name in names))))


def names_in(figure: Figure, run_scale: str) -> list[str]:
    """Return the names of what `draws` was told of a figure, in a run of this scale."""
    return [f"{scale or run_scale}: {name}" for scale, name in _NAMES.get(figure, ())]


def drawn_in(image: Path) -> set[str]:
    """Return what the figure draws that was saved in a PNG."""
    with Image.open(image) as file:
        return {*filter(None, str(file.info.get(KEY, "")).split("; "))}
