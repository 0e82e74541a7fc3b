"""Figures of Herasimchyk et al. 2026. Positions count from 0, as in the paper."""

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from position_bias.drawing import rollouts
from position_bias.drawing.intervals import from_to
from position_bias.drawing.layers import layer_axis
from position_bias.drawing.looks import REFERENCE, VARIANTS, Look, legend, model_looks
from position_bias.drawing.rollouts import SHARE
from position_bias.drawing.style import COLUMN, PAGE, TALLEST
from position_bias.rollout import measurement
from position_bias.running.artifacts import TensorFile, Tensors
from position_bias.structural import tables
from position_bias.structural.trainings import BOLD, ESTIMATORS, THIN, seeds, step_looks

FIRST = 16  # tokens that have a panel of their own
FINE = (0.7, 0.4)  # the same where many share a panel
REPEATED = (0, (4, 2))  # dashes of a measurement that is shown again beside its predictions


def fig1(profiles: pd.DataFrame) -> Figure:
    """Figures 1 and 2: the three rollout variants beside the measured influence, two rows of panels for each model.

    `profiles` joins the tables of `comparison.compare`; lambda is that of Eq. 1 (Frobenius norms). The first row is
    linear, each panel with limits of its own, as the paper draws it; the second has one logarithmic scale, and repeats
    (d), dashed, in every panel. One line a training seed, the first one bold; bands are bootstrap intervals over
    prompts. Every panel has the uniform profile as a dotted line.
    """
    shown = profiles[profiles["estimator"].isin(ESTIMATORS)]
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
        profiles_of = _by(of_model, "variant")
        for (variant, look), (linear, log) in zip(VARIANTS.items(), rows.T, strict=True):
            for axes in (linear, log):
                rollouts.uniform(axes, profiles_of[variant]["position"].max() + 1)
            if variant != "d":
                for width, curve in seeds(profiles_of["d"]):
                    rollouts.line(log, curve, VARIANTS["d"].colour, width, REPEATED)
            for axes in (linear, log):
                _curves(axes, profiles_of[variant], look)
            rollouts.linear(linear)
            rollouts.logarithmic(log, lowest / 4, 1)  # (a) falls far below what any model shows
            log.tick_params(labelleft=variant == "a")
        for axes, scale in zip(rows[:, 0], ("linear", "log scale"), strict=True):
            axes.set_ylabel(f"{model}\n{scale}")
    for axes, look in zip(grid[0], VARIANTS.values(), strict=True):
        axes.set_title(look.name)
    for axes in grid[-1]:
        axes.set_xlabel("token position")
    figure.supylabel(SHARE)
    repeated = "measured influence (d), repeated"
    entries = [Line2D([], [], color=VARIANTS["d"].colour, linestyle=REPEATED, label=repeated), rollouts.uniform_entry()]
    legend(figure, entries, title=_setting(shown))
    return figure


def fig3(profiles: pd.DataFrame) -> Figure:
    """Figure 3: measured influence at the long length, a column a data set, a colour a model. As `fig1`.

    The first row is linear, the second logarithmic, the third has the first tokens alone.
    """
    measured = profiles[profiles["variant"] == "d"]
    panels, looks = _by(measured, "dataset"), model_looks(measured["model"])
    label = "Measured influence of every token, a column for each data set: linear, logarithmic, the first tokens"
    figure, grid = plt.subplots(3, len(panels), figsize=(PAGE, 4.6), sharey="row", squeeze=False, label=label)
    for column, (dataset, of_dataset) in zip(grid.T, panels.items(), strict=True):
        n = of_dataset["position"].max() + 1
        models = _by(of_dataset, "model")
        for axes, shown in zip(column, (n, n, FIRST), strict=True):
            rollouts.uniform(axes, n)
            for model, of_model in models.items():
                _curves(axes, of_model[of_model["position"] < shown], looks[model], FINE)
        for place, (model, of_model) in enumerate(models.items(), 1):
            _, one = seeds(of_model)[0]
            rollouts.few_marks(column[1], one, looks[model], place)
            beginning = one[one["position"] < FIRST]
            column[2].plot(beginning["position"], beginning["value"], **rollouts.only_marks(looks[model]))
        last = min(FIRST, n) - 1
        column[2].set_xticks([0, last // 2, last])
        column[2].set_xlabel("token position")
        column[0].set_title(f"{dataset}\n{_numbers(of_dataset)}")
    early = measured.loc[measured["position"] < FIRST, ["low", "high"]].dropna().to_numpy()
    grid[0][0].set_ylim(bottom=0)
    rollouts.logarithmic(grid[1][0], measured["low"].min() / 1.5)
    rollouts.logarithmic(grid[2][0], early.min() / 1.2, early.max() * 1.2)
    for axes, scale in zip(grid[:, 0], ("linear", "log scale", "the first tokens,\nlog scale"), strict=True):
        axes.set_ylabel(scale)
    figure.supylabel(SHARE)
    entries = [look.entry() for look in looks.values()]
    legend(figure, [*entries, rollouts.uniform_entry()], title=_training_seeds(measured))
    return figure


def training(profiles: pd.DataFrame) -> Figure:
    """Our addition: measured influence, and (b) dashed, before, during and after training.

    `profiles` as for `fig1`, one panel a model, first training seed; the later, the darker.
    """
    shown = profiles[profiles["estimator"].isin(ESTIMATORS) & profiles["variant"].isin(["b", "d"])]
    panels = {model: seeds(of_model)[0][1] for model, of_model in _by(shown, "model").items()}
    shown = pd.concat(panels.values())
    looks = step_looks(shown["checkpoint"])
    label = "Measured influence and the rollout with residuals before, during and after training, a panel a model"
    figure, row = plt.subplots(
        1, len(panels), figsize=(PAGE, 2.3), sharex=True, sharey=True, squeeze=False, label=label
    )
    for axes, (model, of_model) in zip(row[0], panels.items(), strict=True):
        rollouts.uniform(axes, of_model["position"].max() + 1)
        for place, (checkpoint, curves) in enumerate(_by(of_model, "checkpoint").items(), 1):
            look, variants = looks[tables.step(checkpoint)], _by(curves, "variant")
            rollouts.line(axes, variants["d"], look.colour, BOLD)
            rollouts.band(axes, variants["d"], look.colour)
            rollouts.few_marks(axes, variants["d"], look, place)
            rollouts.line(axes, variants["b"], look.colour, 0.9, "--")
        axes.set_title(model)
        axes.set_xlabel("token position")
    rollouts.logarithmic(row[0][0], shown["low"].min() / 1.5)
    row[0][0].set_ylabel(f"{SHARE}, log scale")
    legend(figure, [*(look.entry() for look in looks.values()), *rollouts.entries()], title=_setting(shown))
    return figure


def fig4(measured: list[TensorFile]) -> Figure:
    """Draw `residual_mixing` of measurements, by the data set and the model that their labels name."""
    panels: dict[str, dict[str, list[Tensors]]] = {}
    for file in measured:
        of_dataset = panels.setdefault(file.labels["dataset"], {})
        of_dataset.setdefault(file.labels["model"], []).append(measurement.mixing(file))
    return residual_mixing(panels)


def residual_mixing(panels: Mapping[str, Mapping[str, Sequence[Mapping[str, NDArray[np.float32]]]]]) -> Figure:
    """Figure 4: residual mixing lambda of every layer, one panel a data set, on a logarithmic scale.

    `panels` maps data set and model to one mapping for each training seed, from estimator to lambda [prompts,
    layers]. Solid: Eq. 1 (Frobenius norms), with a band of two standard deviations over prompts; dashed: the mean
    per-token ratio of the paper's first version. The first seed has marks.
    """
    looks = model_looks(model for models in panels.values() for model in models)
    width = COLUMN if len(panels) == 1 else PAGE
    label = "Residual mixing in every layer by two estimators, a panel for each data set"
    figure, row = plt.subplots(1, len(panels), figsize=(width, 2.6), sharey=True, squeeze=False, label=label)
    for axes, (dataset, models) in zip(row[0], panels.items(), strict=True):
        for model, by_seed in models.items():
            for index, mixing in enumerate(by_seed):
                _mixing(axes, mixing, looks[model], first=index == 0)
        prompts, layers = zip(
            *(mixing["frobenius"].shape for by_seed in models.values() for mixing in by_seed), strict=True
        )
        axes.set_title(f"{dataset}\n{from_to(prompts)} prompts")
        layer_axis(axes, layers)
    of_models = [by_seed for models in panels.values() for by_seed in models.values()]
    lowest = min(values.mean(0).min() for by_seed in of_models for mixing in by_seed for values in mixing.values())
    rollouts.logarithmic(row[0][0], float(lowest) / 2)  # a band may reach below 0
    row[0][0].set_ylabel(r"residual mixing $\lambda$, log scale")
    estimators = [
        Line2D([], [], color=REFERENCE, label="Frobenius ± 2 sd"),
        Line2D([], [], color=REFERENCE, linestyle="--", linewidth=0.9, label="per token"),
    ]
    entries = [*(look.entry(linestyle="-") for look in looks.values()), *estimators]
    legend(figure, entries, title=_a_model(map(len, of_models)))
    return figure


def _by(table: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Parts of `table` by the values of a column, in the order met."""
    return {str(value): part for value, part in table.groupby(column, sort=False)}


def _curves(axes: Axes, profiles: pd.DataFrame, look: Look, widths: tuple[float, float] = (BOLD, THIN)) -> None:
    """One curve with its band for each training seed; `widths` are those of the first one and of the others."""
    for width, curve in seeds(profiles, widths):
        rollouts.band(axes, curve, look.colour)
        rollouts.line(axes, curve, look.colour, width)


def _setting(profiles: pd.DataFrame) -> str:
    """What a figure on one data set is of."""
    return f"{', '.join(profiles['dataset'].unique())}, {_numbers(profiles)}, {_training_seeds(profiles)}"


def _numbers(profiles: pd.DataFrame) -> str:
    n = int(profiles["position"].max()) + 1
    return f"{n} tokens, {from_to(profiles['prompts'])} prompts"


def _training_seeds(profiles: pd.DataFrame) -> str:
    return _a_model(profiles["checkpoint"].map(tables.training).groupby(profiles["model"]).nunique())


def _a_model(numbers: Iterable[int]) -> str:
    """How many training seeds every model of a figure has."""
    return f"{from_to(numbers, 'training seed')} a model"


def _mixing(axes: Axes, mixing: Mapping[str, NDArray[np.float32]], look: Look, first: bool) -> None:
    by_prompt = mixing["frobenius"].astype(float)
    layer = np.arange(1, by_prompt.shape[1] + 1)
    mean, spread = by_prompt.mean(0), 2 * by_prompt.std(0, ddof=1)
    axes.fill_between(layer, mean - spread, mean + spread, color=look.colour, alpha=0.25, linewidth=0)
    axes.plot(layer, mean, color=look.colour, linewidth=BOLD if first else THIN)
    if first:
        axes.plot(layer, mean, **rollouts.only_marks(look))
    axes.plot(layer, mixing["token"].astype(float).mean(0), "--", color=look.colour, linewidth=0.7)
