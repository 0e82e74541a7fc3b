"""The first words of a prompt beside its middle in pretrained decoders, by three measures.

Our addition to Herasimchyk et al. 2026.
"""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from position_bias.language_models.names import shown_name
from position_bias.verdicts.registry import PRETRAINED
from position_card.drawing.intervals import marks_across
from position_card.drawing.looks import MEASURES, REFERENCE, Look, legend, side_by_side
from position_card.drawing.panels import log_ticks
from position_card.drawing.shown import draws
from position_card.drawing.style import PAGE


class MeasureRows(NamedTuple):
    """How a measure looks, and which rows of checks are its: their statistic, and how their setting ends."""

    look: Look
    statistic: str
    setting: str


TEXT = "dataset = scientific-packages; n = 256"  # the one on which all decoders were measured
BEGINNINGS = {  # by the names that predictions give them
    "gradient": MeasureRows(MEASURES["influence"]._replace(name="gradients, first word"), ": log first / middle", TEXT),
    "replacement": MeasureRows(
        MEASURES["replacement"]._replace(name="replacement, first word"), ": log first / middle", TEXT
    ),
    "recall": MeasureRows(
        MEASURES["recall"]._replace(name="recall, first eighth"),
        ": log first eighth / middle",
        "dataset = words; n = 128",
    ),
}
ASIDE = 0.22  # lines between the marks of one decoder


def measures(checks: pd.DataFrame) -> Figure:
    """Draw a line for each decoder with a mark for each measure: the beginning over the middle half of a prompt.

    `checks` is the table of verdicts, with the schema of `judge.COLUMNS` and its keys; its logarithms of ratios are
    drawn as ratios. Bars are 95 % intervals over documents or contexts. A place without a mark says nothing: where a
    decoder recalls too little, recall has no row.
    """
    rows = {name: _of(checks, name, measure) for name, measure in BEGINNINGS.items()}
    order = list(rows["gradient"].sort_values("measured")["model"])
    size = PAGE, 0.6 + 0.3 * len(order)
    figure, axes = plt.subplots(figsize=size, label=_finding(rows))
    looks = {name: measure.look for name, measure in BEGINNINGS.items()}
    for name, look, aside in side_by_side(looks, ASIDE):
        places = [order.index(model) - aside for model in rows[name]["model"]]
        ratios = rows[name][["measured", "low", "high"]].apply(np.exp)
        marks_across(axes, places, ratios, "measured", look)
    axes.axvline(1, color=REFERENCE, linewidth=0.7, zorder=0)
    axes.set_xscale("log")
    axes.autoscale_view()
    log_ticks(axes.xaxis)
    axes.set(xlabel="beginning over middle half, log scale", ylim=(-0.6, len(order) - 0.4))
    axes.set_yticks(range(len(order)), [shown_name(model) for model in order])
    axes.tick_params(axis="y", length=0)
    entries = [look.entry(linestyle="") for look in looks.values()]
    legend(figure, entries, settings="bars: 95 % intervals over documents or contexts; no mark: recalls too little")
    draws(figure, order, PRETRAINED)
    return figure


def _of(checks: pd.DataFrame, name: str, measure: MeasureRows) -> pd.DataFrame:
    """The rows of a measure that have a value."""
    alone = (checks["network"] == name) & checks["other"].fillna("").eq("") & checks["measured"].notna()
    statistic = checks["statistic"].astype(str).str.endswith(measure.statistic)
    return checks[alone & statistic & checks["setting"].astype(str).str.endswith(measure.setting)]


def _finding(rows: dict[str, pd.DataFrame]) -> str:
    """From where to where the ratio of each measure goes."""
    told = []
    for name, of_measure in rows.items():
        ratios = np.exp(of_measure["measured"])
        told.append(f"{BEGINNINGS[name].look.name.partition(',')[0]} {ratios.min():.1f} to {ratios.max():.1f}")
    return f"Beginning of a prompt over its middle in pretrained decoders: {', '.join(told)}"
