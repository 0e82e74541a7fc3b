"""One look for every figure: the sizes of a printed page, one size of type, files without dates or chance."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from position_card.core.runtime import whole_file
from position_card.drawing import shown
from position_card.drawing.description import describe

COLUMN, PAGE = 3.3, 6.8  # inches: the widths that figures are printed at, of one column and of the text
TALLEST = 9.0  # inches: the height of the text of a page
TYPE: float = 7  # points, of all that is written: figures are printed at the size that they are drawn at
SMALLEST = 6.0  # points, of any text; subscripts are smaller
NARROWEST = 5 / 7  # of TYPE, in figures that are drawn narrower than a page

_SETTINGS: Any = {
    "font.size": TYPE,
    **dict.fromkeys(("axes.titlesize", "axes.labelsize", "figure.titlesize", "legend.fontsize"), "medium"),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.title_fontsize", "figure.labelsize"), "medium"),
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
    "savefig.dpi": 240,
    "text.hinting": "none",  # letters are as wide in every format
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "position-bias",  # ids that do not change from run to run
    "mathtext.fontset": "dejavusans",
}


def print_at(width: float | None, transparent: bool) -> None:
    """Draw the figures of this process for a page of `width` inches, or the usual one, with or without a white ground.

    To be called before the modules of figures are imported, since these take the sizes of a page from here.
    """
    global PAGE, COLUMN, TYPE, SMALLEST
    _SETTINGS["savefig.transparent"] = transparent
    if width is not None and width < PAGE:
        share = max(width / PAGE, NARROWEST)
        PAGE, COLUMN = width, min(COLUMN, width)
        TYPE, SMALLEST = TYPE * share, SMALLEST * share
        _SETTINGS.update({"font.size": TYPE, "savefig.bbox": "tight", "savefig.pad_inches": 0.02})


@contextmanager
def figure_style() -> Iterator[None]:
    """Set the style of figures that are drawn and saved in this context, without a window; close them at its end."""
    with mpl.rc_context({**mpl.rcParamsDefault, **_SETTINGS, "backend": "agg"}):
        yield
        plt.close("all")


@contextmanager
def session_style() -> Iterator[None]:
    """Draw inside this context where somebody else draws, too: their figures stay open, and so does their window."""
    with mpl.rc_context({**mpl.rcParamsDefault, **_SETTINGS, "backend": mpl.rcParams["backend"]}):
        yield


def save(figure: Figure, *paths: str | Path, run_scale: str = "") -> None:
    """Write `figure` in the format of each suffix (.pdf, .svg, .png), whole, without a date, with its label as a title.

    Panels and texts stand in the same places in all formats and runs. A PNG says what it draws (`shown`), in a run of
    this scale.
    """
    if "savefig.bbox" in _SETTINGS:
        _turn_labels(figure)
    with mpl.rc_context({"figure.constrained_layout.use": False}):  # else savefig lays a figure without engine out
        _lay_out(figure)
        words = describe(figure)
        for path in map(Path, paths):
            with whole_file(path) as partial:
                metadata = _metadata(str(figure.get_label()), words, path.suffix)
                if path.suffix == ".png" and (names := shown.names_in(figure, run_scale)):
                    metadata[shown.KEY] = "; ".join(names)
                figure.savefig(partial, metadata=metadata)


def _metadata(title: str, words: str, suffix: str) -> dict[str, str | None]:
    """Return what readers are told of a figure that they cannot see; no date."""
    match suffix:
        case ".pdf":
            return {"Title": title, "Subject": words, "CreationDate": None}
        case ".svg":
            return {"Title": title, "Description": words, "Date": None}
        case _:
            return {"Title": title, "Description": words}


def _turn_labels(figure: Figure) -> None:
    """Let the labels of ticks along x stand upright in panels where they would meet."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_visible()]
        if any(left.x1 > right.x0 for left, right in pairwise(sorted(boxes, key=lambda box: float(box.x0)))):
            axes.tick_params(axis="x", which="both", labelrotation=90)


def _lay_out(figure: Figure) -> None:
    """Place panels once and for all, to a millionth of the page.

    Each format would place them anew. The solver of the layout adds in an order that depends on addresses in memory, so
    that the last digits vary from run to run, and names in SVG files are made from all digits.
    """
    engine = figure.get_layout_engine()
    if engine is None:
        figure.draw_without_rendering()
    else:
        engine.execute(figure)
        engine.execute(figure)  # again, since ticks follow the size of their panel
        figure.set_layout_engine(None)
    for part in figure.subfigs:
        part.bbox_relative.set_points(np.round(part.bbox_relative.get_points(), 6))
    for axes in figure.axes:
        left, bottom, width, height = (round(part, 6) for part in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))
