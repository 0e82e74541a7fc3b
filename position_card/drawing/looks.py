"""How figures tell things apart: one name, colour, mark and line for each thing, in every figure that shows it.

Colours of one paper differ from each other, and what shares a panel also differs by mark or line, for print without
colours. Numbers, such as depths, take shades of one scale: the larger, the darker.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.typing import ColorType

from position_card.drawing.style import TALLEST, TYPE

BLACK, REFERENCE = "black", "0.45"  # REFERENCE is what is there to compare with
# the palette "colorblind" of seaborn, without its light pink
BLUE, ORANGE, GREEN, VERMILION, PINK = "#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"
BROWN, GREY, YELLOW, SKY = "#ca9161", "#949494", "#ece133", "#56b4e9"
INDIGO, ROSE, OLIVE, WINE, TEAL = "#332288", "#cc6677", "#999933", "#882255", "#44aa99"
VIOLET, TAN, AMBER = "#5243a8", "#b88a6c", "#ecab2e"

SEQUENTIAL = "viridis_r"  # of numbers: the larger, the darker
DIVERGING = LinearSegmentedColormap.from_list("around 0", [AMBER, "white", INDIGO])  # of numbers around 0
HIDDEN_KEYS = "0.85"  # keys of a map that the mask hides
TITLE = 0.83  # of the page is as wide as a title may be in plain letters; it is printed in bold ones
AROUND = 6 / 72  # inches that the layout leaves above and below it, and other entries outside panels
DEEPEST = 10  # layers, the dark end of the shades of depth


class Look(NamedTuple):
    """What something is called, its colour, its mark and whether that is filled, and its line."""

    name: str
    colour: ColorType
    marker: str = "o"
    line: str = "-"
    filled: bool = True
    width: float = 1.2

    @property
    def inside(self) -> ColorType:
        """The colour of the inside of its mark."""
        return self.colour if self.filled else "white"

    def entry(self, **look: Any) -> Line2D:
        """Return its line and mark for a legend; `look` is what else they look like."""
        style = {"linestyle": self.line, "linewidth": self.width, "marker": self.marker, "markersize": 3.5}
        return Line2D([], [], color=self.colour, label=self.name, **{**style, "markerfacecolor": self.inside, **look})


VARIANTS = {  # of the rollout, and the measurement that they predict: Herasimchyk et al. 2026
    "a": Look("(a) attention only", BLACK),
    "b": Look("(b) residual-aware", BLUE),
    "c": Look("(c) with content", SKY),
    "d": Look("(d) measured influence", VERMILION),
}
MEASURES = {  # of position bias in any decoder, in every figure of them
    "influence": Look("gradients", VARIANTS["d"].colour, "o"),
    "replacement": Look("replacement", BLACK, "D", "--", filled=False),
    "recall": Look("recall, eighths of the places", GREEN, "s", "-."),
}
MODELS = {  # language models: a colour for each family, the smaller one hollow
    "bloom": Look("bloom", INDIGO, "o"),
    "bloom-176b": Look("bloom-176b", INDIGO, "o"),
    "bloom-7b1": Look("bloom-7b1", INDIGO, "o", "--", filled=False),
    "mpt": Look("mpt", ROSE, "s"),
    "mpt-30b": Look("mpt-30b", ROSE, "s"),
    "mpt-7b": Look("mpt-7b", ROSE, "s", "--", filled=False),
    "falcon": Look("falcon", OLIVE, "^"),
    "falcon-rw-7b": Look("falcon-rw-7b", OLIVE, "^"),
}
OTHER_MODELS = tuple(  # of models that a configuration adds
    Look("", colour, marker, line)
    for line in ("-", "--", ":")
    for colour, marker in ((WINE, "D"), (TEAL, "v"), (BROWN, "P"), (SKY, "X"), (BLACK, "p"))
)
NORMS = {  # where a network normalises, in both papers on norms; RMSNorm, unless a name says otherwise
    "none": Look("no norm", BLACK, "o", width=2.0),  # wide, since it shows below others
    "pre": Look("pre", ORANGE, "s"),
    "pre-layer": Look("pre-LayerNorm", PINK, "<"),
    "pre-final": Look("pre + final", VERMILION, "v"),
    "post": Look("post", GREEN, "^"),
    "peri": Look("peri", BLUE, "D"),
    "peri-init": Look("peri-init", SKY, "P"),
}
PAIRS = {  # of positions whose accuracy is compared: Wu et al. 2025
    "first-middle": Look("first vs.\nmiddle", BLUE, "s"),
    "first-last": Look("first vs.\nlast", VERMILION, "o"),
    "middle-last": Look("middle vs.\nlast", PINK, "^"),
}
MASKS = {  # families of masks of the same paper
    "none": Look("no mask", "0.78"),
    "causal": Look("causal mask", GREEN),
    "window": Look("sliding window", ORANGE),
    "prefix": Look("prefix mask", SKY),
}
ENCODINGS = {"none": "no encoding", "sin": "sinusoidal", "rope": "RoPE", "decay": "decay mask"}  # panels, in order
CENTRE = YELLOW  # nodes of a graph of a mask that every token reads, as in the paper


def present(names: Iterable[str], looks: Mapping[str, Look]) -> dict[str, Look]:
    """Return the looks of the names that occur, in the order of `looks`; a name without a look is a mistake.

    Raises ValueError for such a name.
    """
    occurring = set(names)
    if unknown := sorted(occurring - set(looks)):
        raise ValueError(f"{unknown[0]!r} has no look in this figure; it knows {', '.join(looks)}")
    return {name: look for name, look in looks.items() if name in occurring}


def model_looks(names: Iterable[str]) -> dict[str, Look]:
    """Return the looks of models, in the order in which they are named.

    One that MODELS does not know has one of OTHER_MODELS, which follows from its name, or the next whose marker is
    free, or the next that is free.
    """
    distinct_names = list(dict.fromkeys(names))
    name_by_place: dict[int, str] = {}
    for name in sorted(set(distinct_names) - set(MODELS)):
        first = zlib.crc32(name.encode())
        places = [(first + step) % len(OTHER_MODELS) for step in range(len(OTHER_MODELS))]
        markers = {OTHER_MODELS[place].marker for place in name_by_place}
        free = [place for place in places if place not in name_by_place]
        name_by_place[
            next((place for place in free if OTHER_MODELS[place].marker not in markers), [*free, places[0]][0])
        ] = name
    looks_by_name = {name: OTHER_MODELS[place]._replace(name=name) for place, name in name_by_place.items()}
    return {name: MODELS.get(name) or looks_by_name[name] for name in distinct_names}


def shades(values: Iterable[float]) -> dict[float, ColorType]:
    """Return a colour for each number, the larger the darker, evenly spread; a single one has the middle shade."""
    distinct_values = sorted(set(values))
    steps = len(distinct_values) - 1
    return {value: _shade(index / steps if steps else 0.5) for index, value in enumerate(distinct_values)}


def depth_colour(depth: int) -> ColorType:
    """Return a colour for each number of layers, the same in every figure."""
    return _shade((np.sqrt(depth) - 1) / (np.sqrt(DEEPEST) - 1))


def depth_look(depth: int) -> Look:
    """Return the colour and mark of a number of layers, the same in every figure."""
    name = "1 layer" if depth == 1 else f"{depth} layers"
    return Look(name, depth_colour(depth), "ovs^DPX<*>"[(depth - 1) % DEEPEST])


def _shade(share: float) -> ColorType:
    """Return a colour of the scale between its pale end, which paper would swallow, and its dark end."""
    return mpl.colormaps[SEQUENTIAL](0.2 + 0.78 * min(max(share, 0.0), 1.0))


def side_by_side(looks: Mapping[Any, Look], step: float) -> list[tuple[Any, Look, float]]:
    """Return every name, its look, and how far its marks stand aside, `step` apart and around 0."""
    middle = (len(looks) - 1) / 2
    return [(name, look, (index - middle) * step) for index, (name, look) in enumerate(looks.items())]


@cache
def width(text: str, points: float = TYPE) -> float:
    """Return how many inches a text takes in the type of a figure."""
    across, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=points), ismath="$" in text)
    return float(across) / 72


def wrapped(text: str, inches: float, points: float = TYPE) -> list[str]:
    """Break a text into lines of whole words, none wider than that in the type of a figure."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width(longer, points) > inches:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def balanced(text: str, inches: float) -> list[str]:
    """Break a text into as few lines as `wrapped` does, about equally long."""
    lines = wrapped(text, inches)
    while len(narrower := wrapped(text, inches := 0.95 * inches)) == len(lines) > 1:
        lines = narrower
    return lines


def legend(
    figure: Figure | SubFigure, above: Sequence[Artist] = (), below: Sequence[Artist] = (), settings: str = ""
) -> None:
    """Write the label of the figure as its title, with entries, `above` all panels, and settings and entries `below`.

    A figure grows by the height of what is written, as far as the page goes; a subfigure does not.
    """
    root = figure.figure
    title = balanced(str(root.get_label()), TITLE * root.get_figwidth())
    settings_lines = balanced(settings, 0.95 * root.get_figwidth())
    legends = [_outside(figure, "upper center", title, above)]
    legends[0].get_title().set_fontweight("bold")
    if settings or below:
        legends.append(_outside(figure, "lower center", settings_lines, below))
    if isinstance(figure, Figure):
        height = sum(float(block.get_window_extent().height) / figure.dpi + AROUND for block in legends)
        figure.set_figheight(min(TALLEST, figure.get_figheight() + height))


def _outside(figure: Figure | SubFigure, side: str, title: Sequence[str], entries: Sequence[Artist]) -> Legend:
    """Write a title with entries below it, in as few lines as the page is wide enough for, outside all panels."""
    place: Any = f"outside {side}"
    for columns in range(max(len(entries), 1), 0, -1):
        block = figure.legend(
            handles=list(entries),
            loc=place,
            ncols=columns,
            handlelength=1.8,
            columnspacing=1.2,
            title="\n".join(title) or None,
        )
        block.get_title().set_multialignment("center")
        if columns == 1 or block.get_window_extent().width <= figure.bbox.width:
            break
        block.remove()
    return block
