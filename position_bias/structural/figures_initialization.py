"""The U at initialization: both ends over the middle, by the deviation of random weights. Our addition."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.verdicts.registry import PRETRAINED
from position_card.drawing.intervals import count_label, from_to
from position_card.drawing.looks import BLACK, REFERENCE, Look, legend, shades
from position_card.drawing.panels import log_ticks, panels
from position_card.drawing.shown import draws
from position_card.rollout.statistics import group_means

FIRST = "log first word / middle"
PANELS = {FIRST: "first word", "log last word / middle": "last word"}  # by the names of statistics
INFLUENCE = "influence"
MARKS = "osD^v"
LINES = {
    INFLUENCE: Look("influence, measured", BLACK, ""),
    "closed form": Look("closed form with measured lambda", BLACK, "", "--"),
    "independent paths": Look("independent paths, likewise", BLACK, "", ":"),
}


def initialization(values: pd.DataFrame, level: float) -> Figure:
    """Draw the first and the last word over the middle by the deviation times the root of the width; a line is a depth.

    `values` have the columns `initialization.VALUES`. Ratios are geometric means over networks, with Student's
    intervals of their logarithms.
    """
    selection = values[values["statistic"].isin(PANELS)].assign(at=values["deviation"] * np.sqrt(values["width"]))
    means = group_means(selection, ["statistic", "network", "layers", "at"], "value", level)
    means[["mean", "low", "high"]] = np.exp(means[["mean", "low", "high"]])
    means = means.sort_values("at", kind="stable")
    figure, row = panels(_finding(means), 2.4, PANELS, x=r"deviation $\sigma$ of the weights times $\sqrt{width}$")
    looks = {
        layers: Look(f"{layers:g} layers", colour, mark)
        for (layers, colour), mark in zip(shades(values["layers"]).items(), MARKS, strict=False)
    }
    for statistic, axes in row.items():
        _panel(axes, means[means["statistic"] == statistic], looks)
    row[FIRST].set_ylabel("influence over that of the middle,\nlog scale")
    entries = [look.entry() for look in (*looks.values(), *LINES.values())]
    deviations = ", ".join(f"{deviation:g}" for deviation in sorted(set(values["deviation"])))
    settings = f"{count_label(values)} of each depth and \N{GREEK SMALL LETTER SIGMA} ({deviations}), "
    settings += f"{from_to(values['prompts'], 'prompt')} of {from_to(values['n'])} tokens; "
    settings += f"bars: {100 * level:g} % intervals over networks"
    legend(figure, entries, settings=settings)
    draws(figure, values["model"].unique(), PRETRAINED)
    return figure


def _panel(axes: Axes, means: pd.DataFrame, looks: dict[float, Look]) -> None:
    for layers, look in looks.items():
        for network, line in LINES.items():
            curve = means[(means["layers"] == layers) & (means["network"] == network)]
            mark = look.marker if network == INFLUENCE else ""
            axes.plot(curve["at"], curve["mean"], line.line, marker=mark, color=look.colour, markersize=3.5)
            if network == INFLUENCE:
                axes.vlines(curve["at"], curve["low"], curve["high"], color=look.colour, linewidth=0.9)
    axes.axhline(1, color=REFERENCE, linewidth=0.7)
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        log_ticks(axis)


def _finding(means: pd.DataFrame) -> str:
    """Between which numbers the first word lies as measured, and as the closed form has it."""
    of_first = means[means["statistic"] == FIRST].groupby("network")["mean"].agg(["min", "max"])
    spans = {network: " to ".join(map(_two_digits, of_first.loc[network])) for network in LINES}
    return (
        f"With random weights the first word has {spans[INFLUENCE]} times the influence of the middle, "
        f"by deviation and depth; a closed form says {spans['closed form']}"
    )


def _two_digits(ratio: float) -> str:
    """A ratio with two digits: 1.7, 100, 5,800."""
    return f"{float(f'{ratio:.2g}'):,.0f}" if ratio >= 99.5 else f"{ratio:.2g}"
