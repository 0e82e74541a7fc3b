"""Figures of Herasimchyk et al. 2026."""

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType as Colour
from numpy.typing import NDArray

from position_bias.drawing.style import COLOURS, COLUMN, PAGE, REFERENCE, colours_of

FIG1_PANELS = {
    "a": "(a) attention only",
    "b": "(b) residual-aware",
    "c": "(c) with content",
    "d": "(d) measured influence",
}


def fig1(profiles: pd.DataFrame) -> Figure:
    """Figures 1 and 2: the three rollout variants beside the measured influence, a row of panels for each model.

    `profiles` joins the tables of `comparison.compare`; lambda is that of Eq. 1 (Frobenius norms). One line a training
    seed, the first one bold; bands are bootstrap intervals over prompts. Every panel repeats (d) in grey, and the
    uniform profile as a dotted line.
    """
    shown = profiles[profiles["estimator"].isin(["frobenius", "none"])]
    models = _by(shown, "model")
    figure, rows = plt.subplots(
        len(models), 4, figsize=(PAGE, 0.45 + 1.35 * len(models)), sharex=True, sharey=True, squeeze=False
    )
    for row, (model, of_model) in zip(rows, models.items(), strict=True):
        for axes, (variant, of_variant) in zip(row, _by(of_model, "variant", FIG1_PANELS).items(), strict=True):
            _uniform(axes, of_variant["position"].max() + 1)
            if variant != "d":
                _measured(axes, of_model[of_model["variant"] == "d"])
            _curves(axes, of_variant, COLOURS[variant])
        row[0].set_ylabel(f"{model}\nshare of influence")
    for axes, title in zip(rows[0], FIG1_PANELS.values(), strict=True):
        axes.set_title(title)
    lowest = shown.loc[shown["variant"].isin(["b", "c", "d"]), "low"].min()
    rows[0][0].set_ylim(lowest / 4, 1)  # (a) falls far below what any model shows
    rows[0][0].legend(handlelength=1.2, loc="upper center")
    _token_positions(rows)
    return figure


def fig3(profiles: pd.DataFrame) -> Figure:
    """Figure 3: measured influence at the long length, one panel a data set, one colour a model. As `fig1`."""
    panels = _by(profiles[profiles["variant"] == "d"], "dataset")
    colours = colours_of(profiles["model"])
    figure, row = plt.subplots(1, len(panels), figsize=(PAGE, 2.0), sharex=True, sharey=True, squeeze=False)
    for axes, (dataset, of_dataset) in zip(row[0], panels.items(), strict=True):
        _uniform(axes, of_dataset["position"].max() + 1)
        for model, of_model in _by(of_dataset, "model").items():
            _curves(axes, of_model, colours[model], label=model)
        axes.set_title(dataset)
    row[0][0].set_ylabel("share of influence")
    row[0][0].legend(handlelength=1.2, loc="upper center")
    _token_positions(row)
    return figure


def training(profiles: pd.DataFrame) -> Figure:
    """What training does to the profile (ours): measured influence, and (b) dashed, before, during and after training.

    `profiles` as for `fig1`, one panel a model, first training seed.
    """
    shown = profiles[profiles["estimator"].isin(["frobenius", "none"]) & profiles["variant"].isin(["b", "d"])]
    shown = shown[shown["checkpoint"].map(_seed) == shown.groupby("model")["checkpoint"].transform("first").map(_seed)]
    steps = sorted(shown["checkpoint"].map(_step).unique())
    colours = dict(zip(steps, sns.color_palette("viridis", len(steps)), strict=True))
    panels = _by(shown, "model")
    figure, row = plt.subplots(1, len(panels), figsize=(PAGE, 2.0), sharex=True, sharey=True, squeeze=False)
    for axes, (model, of_model) in zip(row[0], panels.items(), strict=True):
        _uniform(axes, of_model["position"].max() + 1)
        for checkpoint, curves in _by(of_model, "checkpoint").items():
            step = _step(checkpoint)
            _curves(axes, curves[curves["variant"] == "d"], colours[step], label=f"step {step}")
            predicted = curves[curves["variant"] == "b"]
            axes.plot(predicted["position"] + 1, predicted["value"], "--", color=colours[step], linewidth=0.9)
        axes.set_title(model)
    row[0][0].set_ylabel("share of influence")
    row[0][0].legend(handlelength=1.2, loc="upper center")
    _token_positions(row)
    return figure


def _by(table: pd.DataFrame, column: str, order: Iterable[str] | None = None) -> dict[str, pd.DataFrame]:
    """Parts of `table` by the values of a column, in the order given or met."""
    parts = {str(value): part for value, part in table.groupby(column, sort=False)}
    return parts if order is None else {value: parts[value] for value in order}


def _seed(checkpoint: str) -> str:
    return checkpoint.split("/")[0]


def _step(checkpoint: str) -> int:
    return int(checkpoint.split("/step")[1])


def _curves(axes: Axes, profiles: pd.DataFrame, colour: Colour, label: str | None = None) -> None:
    """One curve with its band for each checkpoint, the first one bold."""
    for index, curve in enumerate(_by(profiles, "checkpoint").values()):
        position = curve["position"] + 1
        axes.fill_between(position, curve["low"], curve["high"], color=colour, alpha=0.25, linewidth=0)
        width = 1.2 if index == 0 else 0.6
        axes.plot(position, curve["value"], color=colour, linewidth=width, label=None if index else label)


def _measured(axes: Axes, influence: pd.DataFrame) -> None:
    for index, curve in enumerate(_by(influence, "checkpoint").values()):
        label = None if index else "measured (d)"
        axes.plot(curve["position"] + 1, curve["value"], color=REFERENCE, linewidth=0.6, zorder=1, label=label)


def _uniform(axes: Axes, n: int) -> None:
    axes.axhline(1 / n, color=REFERENCE, linestyle=":", linewidth=0.7, zorder=0, label="uniform")
    axes.set_xticks([1, n // 4, n // 2, 3 * n // 4, n])


def _token_positions(rows: NDArray[np.object_]) -> None:
    rows[0][0].set_yscale("log")
    for axes in rows[-1]:
        axes.set_xlabel("token position")


def fig4(panels: Mapping[str, Mapping[str, Sequence[Mapping[str, NDArray[np.float32]]]]]) -> Figure:
    """Figure 4: residual mixing lambda of every layer, one panel a data set.

    `panels` maps data set and model to one mapping for each training seed, from estimator to lambda [prompts,
    layers]. Solid: Eq. 1 (Frobenius norms), with a band of two standard deviations over prompts; dashed: the mean
    per-token ratio of the paper's first version.
    """
    width = COLUMN if len(panels) == 1 else PAGE
    colours = colours_of(model for models in panels.values() for model in models)
    figure, row = plt.subplots(1, len(panels), figsize=(width, 2.1), sharey=True, squeeze=False)
    for axes, (dataset, models) in zip(row[0], panels.items(), strict=True):
        for model, seeds in models.items():
            for index, mixing in enumerate(seeds):
                _mixing(axes, mixing, colours[model], label=model if index == 0 else None)
        axes.set_title(dataset)
        axes.set_xlabel("layer")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    row[0][0].set_ylabel(r"residual mixing $\lambda$")
    row[0][0].set_ylim(0, 1.35 * row[0][0].get_ylim()[1])  # room for the legend
    handles, labels = row[0][0].get_legend_handles_labels()
    handles += row[0][0].plot([], [], "-", color=REFERENCE) + row[0][0].plot([], [], "--", color=REFERENCE)
    row[0][-1].legend(handles, [*labels, "Frobenius ± 2 sd", "per token"], ncols=2, columnspacing=1)
    return figure


def _mixing(axes: Axes, mixing: Mapping[str, NDArray[np.float32]], colour: Colour, label: str | None) -> None:
    by_prompt = mixing["frobenius"].astype(float)
    layer = np.arange(1, by_prompt.shape[1] + 1)
    mean, spread = by_prompt.mean(0), 2 * by_prompt.std(0, ddof=1)
    axes.fill_between(layer, mean - spread, mean + spread, color=colour, alpha=0.25, linewidth=0)
    axes.plot(layer, mean, color=colour, label=label)
    axes.plot(layer, mixing["token"].astype(float).mean(0), "--", color=colour, linewidth=0.9)
