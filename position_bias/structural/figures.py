"""Figures of Herasimchyk et al. 2026 and of its statements. Positions count from 0, as in the paper.

Trainings of a language model are told apart by the width of lines for each seed, and a shade for each kept step.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from position_bias.language_models.names import shown_name
from position_bias.structural import tables
from position_card.core.artifacts import TensorFile, Tensors
from position_card.drawing import rollouts
from position_card.drawing.intervals import from_to
from position_card.drawing.looks import (
    DIVERGING,
    REFERENCE,
    SKY,
    UNREAD,
    VARIANTS,
    WINE,
    Look,
    legend,
    model_looks,
    shades,
)
from position_card.drawing.panels import curves, layer_axis, panels
from position_card.drawing.rollouts import SHARE
from position_card.drawing.shown import draws
from position_card.drawing.style import COLUMN, PAGE
from position_card.rollout import measurement

BOLD, THIN = 1.0, 0.5  # lines of the first training seed, and of further ones
STEP_MARKS = "osD^vP"  # of the steps of a training
ESTIMATORS = ("frobenius", "none")  # the paper's, and that of what does not depend on lambda

WHOLE, BEGINNING = "all tokens,\nlog scale", "the first tokens,\nlog scale"  # rows of panels
NARROW = 1.0  # inches of a panel that has no room for an inset
FIRST = 16  # tokens that have a panel of their own
FINE = (0.7, 0.4)  # the same where many share a panel
REPEATED = (0, (4, 2))  # dashes of a measurement that is shown again beside its predictions

SHOWN = 0.99  # share of the deviations that the colours of a model span
MODELS_ACROSS = 3

Content = NDArray[np.float32]

FORCES = {  # what a panel varies: its title, its axis
    "depth": ("4.2: depth", "layers"),
    "lambda": ("4.3: residual mixing", r"$\lambda$ of every layer"),
    "slope": ("4.4: positional bias", "ALiBi slope"),
    "diagonal": ("4.5: diagonal content", "logit on the diagonal"),
}
MASKS: dict[str, tuple[Literal["-", "--"], str]] = {"causal": ("-", "causal"), "window": ("--", "sliding window")}

SCHEDULES = {
    "c/t^2": r"$\lambda_t = c / t^2$: summable",
    "c/t": r"$\lambda_t = c / t$: not summable",
    "c": r"$\lambda_t = c$: not summable",
}
ATTENTION = {"no positional bias": Look("no positional bias", WINE), "ALiBi": Look("ALiBi", SKY, line="--")}
LEAST_SHOWN = 1e-3


def fig1(profiles: pd.DataFrame) -> Figure:
    """Figures 1 and 2: the three rollout variants beside the measured influence, a row of panels for each model.

    `profiles` joins the tables of `comparison.compare`; lambda is that of Eq. 1 (Frobenius norms). All panels have one
    logarithmic scale, and repeat (d), dashed; the inset of each is linear, with limits of its own, as the paper draws
    it. Every training seed has a line, and that of the first one is bold; bands are bootstrap intervals over documents.
    Every panel has the uniform profile as a dotted line.
    """
    shown = profiles[profiles["estimator"].isin(ESTIMATORS)]
    models, titles = _by(shown, "model"), {variant: look.name for variant, look in VARIANTS.items()}
    label = "Influence of each token on the next prediction: three rollouts and the measurement"
    rows = {model: shown_name(model) for model in models}
    figure, grid = panels(label, 0.3 + 1.25 * len(models), titles, rows, x="token position", sharex=True)
    lowest = shown.loc[shown["variant"].isin(["b", "c", "d"]), "low"].min()
    for model, of_model in models.items():
        by_variant = _by(of_model, "variant")
        for variant, look in VARIANTS.items():
            log = grid[model, variant]
            rollouts.uniform(log, by_variant[variant]["position"].max() + 1)
            if variant != "d":
                for width, curve in seeds(by_variant["d"]):
                    rollouts.line(log, curve, VARIANTS["d"].colour, width, REPEATED)
            _curves(log, by_variant[variant], look)
            if PAGE / len(titles) > NARROW:
                linear = rollouts.inset(log)
                _curves(linear, by_variant[variant], look)
                rollouts.linear(linear, 2)
            rollouts.logarithmic(log, lowest / 4, 1)  # (a) falls far below what any model shows
            log.tick_params(labelleft=variant == "a")
    figure.supylabel(f"{SHARE}, log scale")
    repeated = "measured influence (d), repeated"
    entries = [Line2D([], [], color=VARIANTS["d"].colour, linestyle=REPEATED, label=repeated), rollouts.uniform_entry()]
    legend(figure, entries, settings=_setting(shown))
    draws(figure, map(str, models))
    return figure


def fig3(profiles: pd.DataFrame) -> Figure:
    """Figure 3: measured influence at the long length, by data set and model. As `fig1`.

    The first row has all tokens, with a linear inset, the second one the first tokens alone.
    """
    measured = profiles[profiles["variant"] == "d"]
    datasets, looks = _by(measured, "dataset"), _named_looks(measured["model"])
    label = "Measured influence of each token on the next prediction, for each data set"
    titles = {dataset: f"{dataset}\n{_prompts(of_dataset)}" for dataset, of_dataset in datasets.items()}
    rows = {name: name for name in (WHOLE, BEGINNING)}
    figure, grid = panels(label, 2.9, titles, rows, x="token position", sharey="row")
    for dataset, of_dataset in datasets.items():
        log, first = (grid[name, dataset] for name in rows)
        linear = rollouts.inset(log)
        n = of_dataset["position"].max() + 1
        for axes, shown in ((linear, n), (log, n), (first, FIRST)):
            if axes != linear:
                rollouts.uniform(axes, n)
            for _, look, of_model in curves(of_dataset, "model", looks):
                _curves(axes, of_model[of_model["position"] < shown], look, FINE)
        for place, (_, look, of_model) in enumerate(curves(of_dataset, "model", looks), 1):
            _, of_seed = seeds(of_model)[0]
            rollouts.few_marks(log, of_seed, look, place)
            beginning = of_seed[of_seed["position"] < FIRST]
            first.plot(beginning["position"], beginning["value"], **rollouts.only_marks(look))
        rollouts.linear(linear, 2)
        last = min(FIRST, n) - 1
        first.set_xticks([0, last // 2, last])
    early = measured.loc[measured["position"] < FIRST, ["low", "high"]].dropna().to_numpy()
    rollouts.logarithmic(log, measured["low"].min() / 1.5)
    rollouts.logarithmic(first, early.min() / 1.2, early.max() * 1.2)
    figure.supylabel(SHARE)
    settings = f"{_tokens(measured)}, {_training_seeds(measured)}"
    legend(figure, [*_entries(looks), rollouts.uniform_entry()], settings=settings)
    draws(figure, map(str, looks))
    return figure


def training(profiles: pd.DataFrame) -> Figure:
    """Our addition: measured influence, and (b) dashed, before, during and after training.

    `profiles` as for `fig1`; each model has a panel with its first training seed; the later, the darker.
    """
    shown = profiles[profiles["estimator"].isin(ESTIMATORS) & profiles["variant"].isin(["b", "d"])]
    models = {model: seeds(of_model)[0][1] for model, of_model in _by(shown, "model").items()}
    shown = pd.concat(models.values())
    looks = step_looks(shown["checkpoint"])
    label = "Measured influence and residual-aware rollout before, during and after training"
    titles, y = {model: shown_name(model) for model in models}, f"{SHARE}, log scale"
    figure, row = panels(label, 1.9, titles, x="token position", y=y, sharex=True, sharey=True)
    for axes, of_model in zip(row.values(), models.values(), strict=True):
        rollouts.uniform(axes, of_model["position"].max() + 1)
        for place, (checkpoint, of_step) in enumerate(_by(of_model, "checkpoint").items(), 1):
            look, variants = looks[tables.step(checkpoint)], _by(of_step, "variant")
            rollouts.line(axes, variants["d"], look.colour, BOLD)
            rollouts.band(axes, variants["d"], look.colour)
            rollouts.few_marks(axes, variants["d"], look, place)
            rollouts.line(axes, variants["b"], look.colour, 0.9, "--")
    rollouts.logarithmic(axes, shown["low"].min() / 1.5)
    legend(figure, [*_entries(looks), *rollouts.entries()], settings=_setting(shown))
    draws(figure, shown["model"].unique())
    return figure


def fig4(measured: list[TensorFile]) -> Figure:
    """Figure 4: residual mixing lambda of every layer, by data set, on a logarithmic scale.

    Solid: Eq. 1 (Frobenius norms), with a band of two standard deviations over prompts; dashed: the mean per-token
    ratio of the paper's first version. The first training seed has marks.
    """
    datasets: dict[str, dict[str, list[Tensors]]] = {}
    for file in measured:
        of_dataset = datasets.setdefault(file.labels["dataset"], {})
        of_dataset.setdefault(file.labels["model"], []).append(measurement.mixing(file))
    by_model = [by_seed for models in datasets.values() for by_seed in models.values()]
    every = [mixing for by_seed in by_model for mixing in by_seed]
    looks = _named_looks(model for models in datasets.values() for model in models)
    label = "Residual mixing by layer, by two estimators"
    titles, y = {dataset: dataset for dataset in datasets}, r"residual mixing $\lambda$, log scale"
    figure, row = panels(label, 2.1, titles, y=y, width=COLUMN if len(datasets) == 1 else PAGE, sharey=True)
    for dataset, axes in row.items():
        for model, by_seed in datasets[dataset].items():
            for width, mixing in zip([BOLD, *[THIN] * len(by_seed)], by_seed, strict=False):
                _mixing(axes, mixing, looks[model], width)
        shapes = [mixing["frobenius"].shape for by_seed in datasets[dataset].values() for mixing in by_seed]
        axes.set_title(f"{dataset}\n{from_to(prompts for prompts, _ in shapes)} prompts")
        layer_axis(axes, (layers for _, layers in shapes))
    lowest = min(values.mean(0).min() for mixing in every for values in mixing.values())
    rollouts.logarithmic(axes, float(lowest) / 2)  # a band may reach below 0
    estimators = [
        Line2D([], [], color=REFERENCE, label="Frobenius ± 2 sd"),
        Line2D([], [], color=REFERENCE, linestyle="--", linewidth=0.9, label="per token"),
    ]
    legend(figure, [*_entries(looks, linestyle="-"), *estimators], settings=_a_model(map(len, by_model)))
    draws(figure, map(str, looks))
    return figure


def fig5(measured: list[TensorFile]) -> Figure:
    """Figure 5: mean content logits of the first, middle and last layer (down) and head (across) of each model.

    Each file is of one training of a model. Each panel shows the deviation from its head's mean below the diagonal,
    the background that cancels in the softmax (Prop. 4.5), and says in its corner how far the diagonal lies off it on
    average; grey is that mean. If content were constant plus diagonal, panels would be grey but for one line. Rows
    are queries.
    """
    across = min(MODELS_ACROSS, len(measured))
    down = -(-len(measured) // across)
    panel = (PAGE / MODELS_ACROSS - 0.5) / 3
    width = COLUMN if across == 1 else PAGE
    label = "Mean content logits of the first, middle and last layer and head of each model"
    figure = plt.figure(figsize=(width, down * (3 * panel + 1.0)), label=label)
    parts = figure.subfigures(down, across, squeeze=False).flat
    for part, file in zip(parts, measured, strict=False):
        labels, content = file.labels, file.read("content")["content"]
        layers, heads = (sorted({0, (size - 1) // 2, size - 1}) for size in content.shape[:2])
        deviations = np.stack([[_deviation(content[layer, head]) for head in heads] for layer in layers])
        limit = float(np.nanquantile(np.abs(deviations), SHOWN)) or 1.0  # content may be constant
        rows = part.subplots(len(layers), len(heads), sharex=True, sharey=True, squeeze=False)
        for row, layer, of_layer in zip(rows, layers, deviations, strict=True):
            for axes, head, deviation in zip(row, heads, of_layer, strict=True):
                image = _panel(axes, deviation, limit)
                axes.set_title(f"head {head + 1}" if layer == layers[0] else "")
            row[0].set_ylabel(f"layer {layer + 1}\nquery", labelpad=1)
        for axes in rows[-1]:
            axes.set_xlabel("key", labelpad=-6)
        training_seed = tables.training(labels["checkpoint"]).replace("seed", "training seed ")
        part.suptitle(f"{shown_name(labels['model'])}, {training_seed}")
        bar = part.colorbar(image, ax=rows, location="bottom", extend="both", fraction=0.06, aspect=25)
        bar.set_label("logits above background")
        bar.outline.set_linewidth(0.4)
    legend(figure)
    return figure


def forces(table: pd.DataFrame) -> Figure:
    """Propositions 4.2-4.5: share of the last row on the first quarter of the tokens against each of four forces.

    `table` is `checks_theory.forces()`. The dots are one setting, which all panels share.
    """
    label = "Share of rollout on the first quarter of the tokens, as each of four forces varies"
    titles, below = ({varied: texts[place] for varied, texts in FORCES.items()} for place in (0, 1))
    y = "share of rollout on the\nfirst quarter of the tokens"
    figure, row = panels(label, 1.8, titles, x=below, y=y, sharey=True)
    colour = VARIANTS["b"].colour
    for varied, axes in row.items():
        for mask, curve in table[table["varied"] == varied].groupby("mask"):
            style, _ = MASKS[str(mask)]
            axes.plot(curve["at"], curve["value"], style, color=colour)
            shared = curve[curve["shared"]]
            axes.plot(shared["at"], shared["value"], "o", color=colour, markersize=3)
    axes.set_ylim(0, 1)
    row["slope"].set_xscale("log", base=2)
    row["slope"].set_xticks([2**-8, 2**-4, 1], ["1/256", "1/16", "1"])
    row["slope"].minorticks_off()
    row["diagonal"].set_xticks([-4, -2, 0, 2, 4])
    masks = [Look(name, colour, "", style).entry() for style, name in MASKS.values()]
    legend(figure, [*masks, Look("setting of all panels", colour).entry(linestyle="", markersize=3)])
    draws(figure, [f"Proposition 4.{number}" for number in (2, 3, 4, 5)])
    return figure


def dichotomy(table: pd.DataFrame) -> Figure:
    """Theorem 5.5: mass beyond the first token against depth, between its two bounds (dotted), by schedule.

    `table` is `checks_theory.dichotomy()`.
    """
    label = "Mass beyond the first token by depth, between its bounds, for three mixing schedules"
    x, y = "depth (layers)", "1 - P(first token)"
    figure, row = panels(label, 2.1, SCHEDULES, x=x, y=y, sharex=True, sharey=True)
    for schedule, axes in row.items():
        shown = table[(table["schedule"] == schedule) & (table["upper"] >= LEAST_SHOWN / 10)]
        for _, look, curve in curves(shown, "attention", ATTENTION):
            axes.plot(curve["depth"], curve["value"], look.line, color=look.colour)
            for bound in ("lower", "upper"):
                axes.plot(curve["depth"], curve[bound], ":", color=look.colour, linewidth=0.9)
    axes.set(xscale="log", yscale="log", ylim=(LEAST_SHOWN, 1.3))
    bounds = Look("bounds of Theorem 5.5", REFERENCE, "", ":", width=0.9)
    legend(figure, [look.entry(marker="") for look in (*ATTENTION.values(), bounds)])
    draws(figure, ["Theorem 5.5", "Theorem 5.5(i)", "Theorem 5.5(ii)"])
    return figure


def step_looks(checkpoints: pd.Series) -> dict[int, Look]:
    """The look of every step that is kept: the later, the darker."""
    colours = shades(checkpoints.map(tables.step))
    return {
        int(step): Look(f"step {step:,}", colour, STEP_MARKS[place % len(STEP_MARKS)])
        for place, (step, colour) in enumerate(colours.items())
    }


def seeds(table: pd.DataFrame, widths: tuple[float, float] = (BOLD, THIN)) -> list[tuple[float, pd.DataFrame]]:
    """The rows of each training seed, with the width of their lines: one for the first seed, one for all others."""
    parts = [part for _, part in table.groupby(table["checkpoint"].map(tables.training), sort=False)]
    first, others = widths
    return list(zip([first, *[others] * len(parts)], parts, strict=False))


def _entries(looks: Mapping[Any, Look], **look: Any) -> list[Line2D]:
    return [each.entry(**look) for each in looks.values()]


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
    datasets = ", ".join(profiles["dataset"].unique())
    return f"{datasets}, {_tokens(profiles)}, {_prompts(profiles)}, {_training_seeds(profiles)}"


def _named_looks(models: Iterable[str]) -> dict[str, Look]:
    """The looks of models, with the names that people read."""
    return {model: look._replace(name=shown_name(model)) for model, look in model_looks(models).items()}


def _tokens(profiles: pd.DataFrame) -> str:
    return f"{int(profiles['position'].max()) + 1} tokens"


def _prompts(profiles: pd.DataFrame) -> str:
    return f"{from_to(profiles['prompts'])} prompts of {from_to(profiles['resampled'], 'document')}"


def _training_seeds(profiles: pd.DataFrame) -> str:
    return _a_model(profiles["checkpoint"].map(tables.training).groupby(profiles["model"]).nunique())


def _a_model(numbers: Iterable[int]) -> str:
    """How many training seeds every model of a figure has."""
    return f"{from_to(numbers, 'training seed')} for each model"


def mixing_by_layer(mixing: Tensors) -> pd.DataFrame:
    """Lambda of each layer, from 1: the mean over prompts by either estimator, and two deviations about Eq. 1's."""
    by_prompt = mixing["frobenius"].astype(float)
    mean, spread = by_prompt.mean(0), 2 * by_prompt.std(0, ddof=1)
    columns = {
        "frobenius": mean,
        "low": mean - spread,
        "high": mean + spread,
        "token": mixing["token"].astype(float).mean(0),
    }
    return pd.DataFrame(columns, index=np.arange(1, by_prompt.shape[1] + 1))


def _mixing(axes: Axes, mixing: Tensors, look: Look, width: float) -> None:
    found = mixing_by_layer(mixing)
    axes.fill_between(found.index, found["low"], found["high"], color=look.colour, alpha=0.25, linewidth=0)
    axes.plot(found.index, found["frobenius"], color=look.colour, linewidth=width)
    if width == BOLD:
        axes.plot(found.index, found["frobenius"], **rollouts.only_marks(look))
    axes.plot(found.index, found["token"], "--", color=look.colour, linewidth=0.7)


def _deviation(logits: Content) -> NDArray[np.float64]:
    """Logits [n, n] less their mean below the diagonal; NaN above the diagonal."""
    n = len(logits)
    causal = logits.astype(np.float64)
    causal[np.triu_indices(n, 1)] = np.nan
    return causal - causal[np.tril_indices(n, -1)].mean()


def _panel(axes: Axes, deviation: NDArray[np.float64], limit: float) -> AxesImage:
    n = len(deviation)
    colours = mpl.colormaps[DIVERGING].with_extremes(bad=UNREAD)
    # "none" embeds n x n pixels in PDF and SVG, sharp at every size; rasterizing would embed what the screen shows.
    image = axes.imshow(deviation, cmap=colours, vmin=-limit, vmax=limit, interpolation="none")
    shift = np.diagonal(deviation).mean()
    axes.text(0.97, 0.98, f"${shift:+.2f}$", ha="right", va="top", transform=axes.transAxes)
    axes.set_xticks([0, n - 1], ["0", str(n - 1)])
    axes.set_yticks([0, n - 1], ["0", str(n - 1)])
    axes.tick_params(length=2)
    return image
