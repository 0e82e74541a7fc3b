"""The figure of a training run: how much both ends of a prompt have over its middle, by training step."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from position_card.card.profiles import EIGHTHS, ENDS, RECALL, REPLACEMENT
from position_card.drawing.intervals import line_with_marks
from position_card.drawing.looks import MEASURES, REFERENCE, legend
from position_card.drawing.panels import curves, log_ticks, panels
from position_card.rollout.variants import INFLUENCE

STATISTICS = {INFLUENCE: ENDS, REPLACEMENT: ENDS, RECALL: EIGHTHS}  # of each measure: at the first and the last place
LEVEL: dict[str, Any] = {"color": REFERENCE, "linestyle": ":", "linewidth": 0.8, "zorder": 0}
FAR = 100  # times the first step after 0 lies the last one: then steps are on a logarithmic axis


def training_run(table: pd.DataFrame, run: str, text: str) -> Figure:
    """Draw what the first and the last place have over the middle by each measure, with intervals, by training step.

    `table` has the columns step, variant, statistic, value, low and high. What has no value, as recall too near to
    chance, is not drawn.
    """
    finite = table[table["value"].notna()]
    rows_by_measure = {
        measure: rows
        for measure, statistics in STATISTICS.items()
        if len(rows := finite[(finite["variant"] == measure) & finite["statistic"].isin(statistics)])
    }
    titles = {"first": "first over middle", "last": "last over middle"}
    settings: dict[str, Any] = {"x": "training step", "y": "times the middle", "sharex": True}
    title = f"{run}: both ends of a prompt over its middle, by training step, on {text}"
    figure, axes_of = panels(title, 2.2, titles, **settings)
    for place, axes in enumerate(axes_of.values()):
        axes.axhline(1.0, **LEVEL)
        ends = pd.concat(
            rows[rows["statistic"] == STATISTICS[measure][place]] for measure, rows in rows_by_measure.items()
        )
        for _, look, rows in curves(ends, "variant", MEASURES):
            axes.vlines(rows["step"], rows["low"], rows["high"], color=look.colour, linewidth=0.8)
            axes.plot(rows["step"], rows["value"], **line_with_marks(look, range(len(rows))))
        _scales(axes, table["step"], ends)
    legend(figure, below=[MEASURES[measure].entry() for measure in rows_by_measure])
    return figure


def _scales(axes: Axes, steps: Iterable[int], rows: pd.DataFrame) -> None:
    """Let the axes have all numbers in view: weights on a logarithmic one, and steps where they lie far apart."""
    distinct_steps = np.unique([*steps])
    after = distinct_steps[distinct_steps > 0]
    if after[-1] >= FAR * after[0]:
        axes.set_xscale("symlog", linthresh=after[0])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_yscale("log")
    lowest = rows["low"].where(rows["low"] > 0, rows["value"].where(rows["value"] > 0)).min()
    axes.set_ylim(0.8 * min(lowest, 1.0), 1.25 * max(rows["high"].max(), 1.0))
    log_ticks(axes.yaxis)
