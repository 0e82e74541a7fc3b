"""One look for every figure: sizes of a printed column, a colour-blind-safe palette, files without dates or chance."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.figure import Figure

from position_bias.running.runtime import whole_file

COLUMN, PAGE = 3.3, 6.8  # inches: width of one column, and of the text

_PALETTE = sns.color_palette("colorblind")
COLOURS = {  # one quantity, one colour, in every figure
    "a": _PALETTE[7],
    "b": _PALETTE[0],
    "c": _PALETTE[2],
    "d": _PALETTE[3],
}
REFERENCE = "0.45"  # grey of what is there to compare with

_SETTINGS: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "lines.linewidth": 1.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 200,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "position-bias",  # ids that do not change from run to run
    "mathtext.fontset": "dejavusans",
}


def colours_of(models: Iterable[str]) -> dict[str, Any]:
    """A colour for each model, by the order in which they are named."""
    names = list(dict.fromkeys(models))
    return dict(zip(names, sns.color_palette("colorblind", len(names)), strict=True))


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw inside this context."""
    with mpl.rc_context({**mpl.rcParamsDefault, **_SETTINGS, "backend": "agg"}):
        yield
        plt.close("all")


def save(figure: Figure, *paths: str | Path) -> None:
    """Write `figure` in the format of each suffix (.pdf, .svg, .png), whole and without a date."""
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}
    for path in map(Path, paths):
        with whole_file(path) as partial:
            figure.savefig(partial, metadata=undated[path.suffix])
