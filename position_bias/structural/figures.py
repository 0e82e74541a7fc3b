"""Figures of Herasimchyk et al. 2026. Positions count from 0, as in the paper."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType as Colour
from numpy.typing import NDArray

from position_bias.drawing.layers import layer_axis
from position_bias.drawing.logarithmic import log_ticks
from position_bias.drawing.looks import REFERENCE, VARIANTS, Look, legend, model_looks, shades
from position_bias.drawing.style import COLUMN, PAGE, TALLEST
from position_bias.running.artifacts import TensorFile, Tensors
from position_bias.structural import tables

SHARE = "share of influence"
UNIFORM: dict[str, Any] = {"color": REFERENCE, "linestyle": ":", "linewidth": 0.7}
MARKS = 5  # of a line, about
STEP_MARKS = "osD^v"  # of the steps of a training
FIRST = 16  # tokens that have a panel of their own
BOLD, THIN = 1.0, 0.5  # lines of the first training seed, and of further ones
REPEATED = (0, (4, 2))  # dashes of a measurement that is shown again beside its predictions


def fig1(profiles: pd.DataFrame) -> Figure:
    """Figures 1 and 2: the three rollout variants beside the measured influence, two rows of panels for each model.

    `profiles` joins the tables of `comparison.compare`; lambda is that of Eq. 1 (Frobenius norms). The first row is
    linear, each panel with limits of its own, as the paper draws it; the second has one logarithmic scale, and repeats
    (d), dashed, in every panel. One line a training seed, the first one bold; bands are bootstrap intervals over
    prompts. Every panel has the uniform profile as a dotted line.
    """
    shown = profiles[profiles["estimator"].isin(["frobenius", "none"])]
    models = _by(shown, "model")
    figure, grid = plt.subplots(
        2 * len(models),
        len(VARIANTS),
        figsize=(PAGE, min(0.7 + 1.95 * len(models), TALLEST)),
        sharex=True,
        squeeze=False,
        height_ratios=[0.8, 1] * len(models),
        label="Share of influence of every token: three predictions beside the measurement, two rows for each model",
    )
    lowest = shown.loc[shown["variant"].isin(["b", "c", "d"]), "low"].min()
    for rows, (model, of_model) in zip(grid.reshape(-1, 2, len(VARIANTS)), models.items(), strict=True):
        measured = of_model[of_model["variant"] == "d"]
        for (variant, of_variant), (linear, log) in zip(
            _by(of_model, "variant", VARIANTS).items(), rows.T, strict=True
        ):
            for axes in (linear, log):
                _uniform(axes, of_variant["position"].max() + 1)
                if variant != "d" and axes is log:
                    _curves(axes, measured, VARIANTS["d"].colour, bands=False, dashes=REPEATED)
                _curves(axes, of_variant, VARIANTS[variant].colour)
            linear.set_ylim(bottom=0)
            linear.yaxis.set_major_locator(MaxNLocator(3))
            _logarithmic(log, lowest / 4, 1)  # (a) falls far below what any model shows
            log.tick_params(labelleft=variant == "a")
        for axes, scale in zip(rows[:, 0], ("linear", "log scale"), strict=True):
            axes.set_ylabel(f"{model}\n{scale}")
    for axes, look in zip(grid[0], VARIANTS.values(), strict=True):
        axes.set_title(look.name)
    for axes in grid[-1]:
        axes.set_xlabel("token position")
    figure.supylabel(SHARE)
    entries = [
        Line2D([], [], color=VARIANTS["d"].colour, linestyle=REPEATED, label="measured influence (d), repeated"),
        Line2D([], [], label="uniform", **UNIFORM),
    ]
    legend(figure, entries, title=_setting(shown))
    return figure


def fig3(profiles: pd.DataFrame) -> Figure:
    """Figure 3: measured influence at the long length, a column a data set, a colour a model. As `fig1`.

    The first row is linear, the second logarithmic, the third has the first tokens alone.
    """
    measured = profiles[profiles["variant"] == "d"]
    panels, looks = _by(measured, "dataset"), model_looks(measured["model"])
    figure, grid = plt.subplots(
        3,
        len(panels),
        figsize=(PAGE, 4.6),
        sharey="row",
        squeeze=False,
        label="Measured influence of every token, a column for each data set: linear, logarithmic, the first tokens",
    )
    for column, of_dataset in zip(grid.T, panels.values(), strict=True):
        n = of_dataset["position"].max() + 1
        first = of_dataset[of_dataset["position"] < FIRST]
        for axes, shown in zip(column, (of_dataset, of_dataset, first), strict=True):
            _uniform(axes, n)
            for model, of_model in _by(shown, "model").items():
                _curves(axes, of_model, looks[model].colour, (0.7, 0.4))
        for model, of_model in _by(first, "model").items():
            one = next(iter(_by(of_model, "checkpoint").values()))
            column[2].plot(one["position"], one["value"], looks[model].marker, **_mark(looks[model]))
        for place, (model, of_model) in enumerate(_by(of_dataset, "model").items(), 1):
            one = next(iter(_by(of_model, "checkpoint").values()))
            _few_marks(column[1], one, looks[model], place)
        last = min(FIRST, n) - 1
        column[2].set_xticks([0, last // 2, last])
        column[2].set_xlabel("token position")
    early = measured.loc[measured["position"] < FIRST, ["low", "high"]].dropna().to_numpy()
    for axes, (dataset, of_dataset) in zip(grid[0], panels.items(), strict=True):
        axes.set_title(f"{dataset}\n{_numbers(of_dataset)}")
    for axes in grid[1]:
        _logarithmic(axes, measured["low"].min() / 1.5)
    grid[0][0].set_ylim(bottom=0)
    for axes in grid[2]:
        _logarithmic(axes, early.min() / 1.2, early.max() * 1.2)
    for axes, scale in zip(grid[:, 0], ("linear", "log scale", "the first tokens,\nlog scale"), strict=True):
        axes.set_ylabel(scale)
    figure.supylabel(SHARE)
    entries = [look.entry() for look in looks.values()]
    legend(figure, [*entries, Line2D([], [], label="uniform", **UNIFORM)], title=_training_seeds(measured))
    return figure


def training(profiles: pd.DataFrame) -> Figure:
    """Our addition: measured influence, and (b) dashed, before, during and after training.

    `profiles` as for `fig1`, one panel a model, first training seed; the later, the darker.
    """
    shown = profiles[profiles["estimator"].isin(["frobenius", "none"]) & profiles["variant"].isin(["b", "d"])]
    first = shown.groupby("model")["checkpoint"].transform("first")
    shown = shown[shown["checkpoint"].map(tables.training) == first.map(tables.training)]
    colours = shades(shown["checkpoint"].map(tables.step))
    marks = itertools.cycle(STEP_MARKS)
    looks = {step: Look(f"step {step}", colour, next(marks)) for step, colour in colours.items()}
    panels = _by(shown, "model")
    figure, row = plt.subplots(
        1,
        len(panels),
        figsize=(PAGE, 2.3),
        sharex=True,
        sharey=True,
        squeeze=False,
        label="Measured influence and the rollout with residuals before, during and after training, a panel a model",
    )
    for axes, (model, of_model) in zip(row[0], panels.items(), strict=True):
        _uniform(axes, of_model["position"].max() + 1)
        for place, (checkpoint, curves) in enumerate(_by(of_model, "checkpoint").items(), 1):
            look = looks[tables.step(checkpoint)]
            measured = curves[curves["variant"] == "d"]
            _curves(axes, measured, look.colour)
            _few_marks(axes, measured, look, place)
            predicted = curves[curves["variant"] == "b"]
            axes.plot(predicted["position"], predicted["value"], "--", color=look.colour, linewidth=0.9)
        axes.set_title(model)
        axes.set_xlabel("token position")
    _logarithmic(row[0][0], shown["low"].min() / 1.5)
    row[0][0].set_ylabel(f"{SHARE}, log scale")
    steps = [look.entry() for look in looks.values()]
    kinds = [
        Line2D([], [], color=REFERENCE, label="measured (d)"),
        Line2D([], [], color=REFERENCE, linestyle="--", linewidth=0.9, label="predicted (b)"),
        Line2D([], [], label="uniform", **UNIFORM),
    ]
    legend(figure, [*steps, *kinds], title=_setting(shown))
    return figure


def fig4(mixing: list[TensorFile]) -> Figure:
    """Draw `residual_mixing` of the files of lambda, by the data set and the model that their labels name."""
    panels: dict[str, dict[str, list[Tensors]]] = {}
    for file in mixing:
        of_dataset = panels.setdefault(file.labels["dataset"], {})
        of_dataset.setdefault(file.labels["model"], []).append(file.read())
    return residual_mixing(panels)


def residual_mixing(panels: Mapping[str, Mapping[str, Sequence[Mapping[str, NDArray[np.float32]]]]]) -> Figure:
    """Figure 4: residual mixing lambda of every layer, one panel a data set, on a logarithmic scale.

    `panels` maps data set and model to one mapping for each training seed, from estimator to lambda [prompts,
    layers]. Solid: Eq. 1 (Frobenius norms), with a band of two standard deviations over prompts; dashed: the mean
    per-token ratio of the paper's first version. The first seed has marks.
    """
    width = COLUMN if len(panels) == 1 else PAGE
    looks = model_looks(model for models in panels.values() for model in models)
    figure, row = plt.subplots(
        1,
        len(panels),
        figsize=(width, 2.6),
        sharey=True,
        squeeze=False,
        label="Residual mixing in every layer by two estimators, a panel for each data set",
    )
    for axes, (dataset, models) in zip(row[0], panels.items(), strict=True):
        for model, seeds in models.items():
            for index, mixing in enumerate(seeds):
                _mixing(axes, mixing, looks[model], first=index == 0)
        prompts = {len(seed["frobenius"]) for seeds in models.values() for seed in seeds}
        axes.set_title(f"{dataset}\n{_range(prompts)} prompts")
        layer_axis(axes, (seed["frobenius"].shape[1] for seeds in models.values() for seed in seeds))
    row[0][0].set_yscale("log")
    lowest = min(
        values.mean(0).min()
        for models in panels.values()
        for seeds in models.values()
        for seed in seeds
        for values in seed.values()
    )
    row[0][0].set_ylim(bottom=float(lowest) / 2)  # a band may reach below 0
    row[0][0].set_ylabel(r"residual mixing $\lambda$, log scale")
    log_ticks(row[0][0].yaxis)
    estimators = [
        Line2D([], [], color=REFERENCE, label="Frobenius ± 2 sd"),
        Line2D([], [], color=REFERENCE, linestyle="--", linewidth=0.9, label="per token"),
    ]
    numbers = [len(seeds) for models in panels.values() for seeds in models.values()]
    legend(figure, [*(look.entry(linestyle="-") for look in looks.values()), *estimators], title=_a_model(numbers))
    return figure


def _by(table: pd.DataFrame, column: str, order: Iterable[str] | None = None) -> dict[str, pd.DataFrame]:
    """Parts of `table` by the values of a column, in the order given or met."""
    parts = {str(value): part for value, part in table.groupby(column, sort=False)}
    return parts if order is None else {value: parts[value] for value in order}


def _curves(
    axes: Axes,
    profiles: pd.DataFrame,
    colour: Colour,
    widths: tuple[float, float] = (BOLD, THIN),
    bands: bool = True,
    dashes: Any = "-",
) -> None:
    """One curve with its band for each checkpoint; `widths` are those of the first one and of the others."""
    for index, curve in enumerate(_by(profiles, "checkpoint").values()):
        if bands:
            axes.fill_between(curve["position"], curve["low"], curve["high"], color=colour, alpha=0.25, linewidth=0)
        axes.plot(curve["position"], curve["value"], color=colour, linewidth=widths[min(index, 1)], linestyle=dashes)


def _mark(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "markerfacecolor": look.inside, "markersize": 2.5}


def _few_marks(axes: Axes, curve: pd.DataFrame, look: Look, place: int) -> None:
    """Some marks on a curve, which those of another place do not hide."""
    n = len(curve)
    some = curve.iloc[place * n // 20 :: max(1, n // MARKS)]
    axes.plot(some["position"], some["value"], look.marker, **_mark(look))


def _uniform(axes: Axes, n: int) -> None:
    axes.axhline(1 / n, zorder=0, **UNIFORM)
    axes.set_xticks([0, n // 2, n - 1])


def _logarithmic(axes: Axes, lowest: float, highest: float | None = None) -> None:
    axes.set_yscale("log")
    axes.set_ylim(lowest, highest)
    log_ticks(axes.yaxis)


def _setting(profiles: pd.DataFrame) -> str:
    """What a figure on one data set is of."""
    return f"{', '.join(profiles['dataset'].unique())}, {_numbers(profiles)}, {_training_seeds(profiles)}"


def _numbers(profiles: pd.DataFrame) -> str:
    n = int(profiles["position"].max()) + 1
    return f"{n} tokens, {_range(profiles['prompts'])} prompts"


def _training_seeds(profiles: pd.DataFrame) -> str:
    return _a_model(profiles["checkpoint"].map(tables.training).groupby(profiles["model"]).nunique())


def _a_model(seeds: Iterable[int]) -> str:
    """How many training seeds every model of a figure has."""
    told = _range(seeds)
    return f"{told} training seed{'' if told == '1' else 's'} a model"


def _range(numbers: Iterable[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def _mixing(axes: Axes, mixing: Mapping[str, NDArray[np.float32]], look: Look, first: bool) -> None:
    by_prompt = mixing["frobenius"].astype(float)
    layer = np.arange(1, by_prompt.shape[1] + 1)
    mean, spread = by_prompt.mean(0), 2 * by_prompt.std(0, ddof=1)
    axes.fill_between(layer, mean - spread, mean + spread, color=look.colour, alpha=0.25, linewidth=0)
    axes.plot(layer, mean, color=look.colour, linewidth=BOLD if first else THIN)
    if first:
        axes.plot(layer, mean, look.marker, **_mark(look))
    axes.plot(layer, mixing["token"].astype(float).mean(0), "--", color=look.colour, linewidth=0.7)
