"""Figures of Herasimchyk et al. 2026."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from position_bias.plots.style import COLOURS, COLUMN, MODELS, PAGE, REFERENCE

FIG1_PANELS = {
    "a": "(a) attention only",
    "b": "(b) residual-aware",
    "c": "(c) with content",
    "d": "(d) measured influence",
}


def fig1(profiles: pd.DataFrame) -> Figure:
    """Figure 1: the three rollout variants beside the measured influence, a row of panels for each trained model.

    `profiles` joins the tables of `comparison.compare`; lambda is that of Eq. 1 (Frobenius norms). Bands are the
    bootstrap intervals over prompts; every panel repeats (d) in grey, and the uniform profile as a dotted line.
    """
    shown = profiles[profiles["estimator"].isin(["frobenius", "none"])]
    models = list(shown.groupby(["model", "checkpoint"], sort=False))
    figure, rows = plt.subplots(
        len(models), 4, figsize=(PAGE, 0.45 + 1.35 * len(models)), sharex=True, sharey=True, squeeze=False
    )
    for row, (names, table) in zip(rows, models, strict=True):
        model, checkpoint = map(str, names)
        curves = dict(tuple(table.groupby("variant")))
        for axes, variant in zip(row, FIG1_PANELS, strict=True):
            _profile(axes, curves[variant], curves["d"], variant)
        row[0].set_ylabel(f"{model}, {checkpoint.split('/')[0]}\nshare of influence")
        row[0].set_yscale("log")
    for axes, title in zip(rows[0], FIG1_PANELS.values(), strict=True):
        axes.set_title(title)
    for axes in rows[-1]:
        axes.set_xlabel("token position")
    lowest = shown.loc[shown["variant"].isin(["b", "c", "d"]), "low"].min()
    rows[0][0].set_ylim(lowest / 4, 1)  # (a) falls far below what any model shows
    rows[0][0].legend(handlelength=1.2, loc="upper center")
    return figure


def _profile(axes: Axes, curve: pd.DataFrame, influence: pd.DataFrame, variant: str) -> None:
    position, n = curve["position"] + 1, len(curve)
    axes.axhline(1 / n, color=REFERENCE, linestyle=":", linewidth=0.7, zorder=0, label="uniform")
    if variant != "d":
        axes.plot(position, influence["value"], color=REFERENCE, linewidth=0.7, zorder=1, label="measured (d)")
    axes.fill_between(position, curve["low"], curve["high"], color=COLOURS[variant], alpha=0.3, linewidth=0)
    axes.plot(position, curve["value"], color=COLOURS[variant], zorder=2)
    axes.set_xticks([1, n // 4, n // 2, 3 * n // 4, n])


def fig4(panels: Mapping[str, Mapping[str, Sequence[Mapping[str, NDArray[np.float32]]]]]) -> Figure:
    """Figure 4: residual mixing lambda of every layer, one panel a data set.

    `panels` maps data set and model to one mapping for each training seed, from estimator to lambda [prompts,
    layers]. Solid: Eq. 1 (Frobenius norms), with a band of two standard deviations over prompts; dashed: the mean
    per-token ratio of the paper's first version.
    """
    width = COLUMN if len(panels) == 1 else PAGE
    figure, row = plt.subplots(1, len(panels), figsize=(width, 2.1), sharey=True, squeeze=False)
    for axes, (dataset, models) in zip(row[0], panels.items(), strict=True):
        for model, seeds in models.items():
            for index, mixing in enumerate(seeds):
                _mixing(axes, mixing, MODELS[model], label=model if index == 0 else None)
        axes.set_title(dataset)
        axes.set_xlabel("layer")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    row[0][0].set_ylabel(r"residual mixing $\lambda$")
    row[0][0].set_ylim(0, 1.35 * row[0][0].get_ylim()[1])  # room for the legend
    handles, labels = row[0][0].get_legend_handles_labels()
    handles += row[0][0].plot([], [], "-", color=REFERENCE) + row[0][0].plot([], [], "--", color=REFERENCE)
    row[0][-1].legend(handles, [*labels, "Frobenius ± 2 sd", "per token"], ncols=2)
    return figure


def _mixing(axes: Axes, mixing: Mapping[str, NDArray[np.float32]], colour: object, label: str | None) -> None:
    by_prompt = mixing["frobenius"].astype(float)
    layer = np.arange(1, by_prompt.shape[1] + 1)
    mean, spread = by_prompt.mean(0), 2 * by_prompt.std(0, ddof=1)
    axes.fill_between(layer, mean - spread, mean + spread, color=colour, alpha=0.25, linewidth=0)
    axes.plot(layer, mean, color=colour, label=label)
    axes.plot(layer, mixing["token"].astype(float).mean(0), "--", color=colour, linewidth=0.9)
