"""How a figure tells its curves apart: a name, a colour and a mark each, side by side, and a legend outside panels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType as Colour

_PALETTE = sns.color_palette("colorblind")
NO_NORM, PRE, FINAL, POST = "black", _PALETTE[1], _PALETTE[3], _PALETTE[2]  # RMSNorm, where both kinds are shown
PRE_LAYER, PERI, PERI_INIT = _PALETTE[4], _PALETTE[0], _PALETTE[9]


class Look(NamedTuple):
    """What something is called, its colour and mark, and the width of its line."""

    name: str
    colour: Colour
    marker: str
    width: float = 1.2

    def line(self) -> Line2D:
        """For the legend of a figure without marks."""
        return Line2D([], [], color=self.colour, linewidth=self.width, label=self.name)

    def mark(self, **mark: Any) -> Line2D:
        """For the legend of a figure with marks and lines between them; `mark` is what else they look like."""
        look = {"markersize": 3.5, "linewidth": 1.0, **mark}
        return Line2D([], [], color=self.colour, marker=self.marker, label=self.name, **look)


def present(names: Iterable[str], looks: Mapping[str, Look]) -> dict[str, Look]:
    """The looks of the names that occur, in the order of `looks`; a name without a look is a mistake.

    Raises ValueError for such a name.
    """
    found = set(names)
    if unknown := sorted(found - set(looks)):
        raise ValueError(f"{unknown[0]!r} has no look in this figure; it knows {', '.join(looks)}")
    return {name: look for name, look in looks.items() if name in found}


def side_by_side(looks: Mapping[str, Look], step: float) -> list[tuple[str, Look, float]]:
    """Every name, its look, and how far its marks stand aside, `step` apart and around 0."""
    middle = (len(looks) - 1) / 2
    return [(name, look, (index - middle) * step) for index, (name, look) in enumerate(looks.items())]


def legend(figure: Figure, handles: Sequence[Line2D], where: Any = "outside upper center") -> None:
    """One line of entries outside all panels."""
    figure.legend(handles=list(handles), loc=where, ncols=len(handles), handlelength=1.6, columnspacing=1.4)
