"""Figures of Herasimchyk et al. 2026 and of its statements. Positions count from 0, as in the paper.

Trainings of a language model are told apart by the width of lines for each seed, and a shade for each kept step.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from position_bias.language_models.names import shown_name
from position_bias.structural import tables
from position_card.core.artifacts import TensorFile, Tensors
from position_card.drawing import rollouts
from position_card.drawing.intervals import from_to, line_with_marks
from position_card.drawing.looks import (
    REFERENCE,
    SKY,
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
from position_card.drawing.style import COLUMN
from position_card.rollout import measurement
from position_card.rollout.statistics import spearman

BOLD, THIN = 1.0, 0.5  # lines of the first training seed, and of further ones
STEP_MARKS = "osD^vP"  # of the steps of a training
ESTIMATORS = ("frobenius", "none")  # the paper's, and that of what does not depend on lambda

WHOLE, BEGINNING = "all tokens,\nlog scale", "the first tokens,\nlog scale"  # rows of panels
FIRST = 16  # tokens that have a panel of their own
FINE = (0.7, 0.4)  # the same where many share a panel
REPEATED = (0, (4, 2))  # dashes of a measurement that is shown beside each of its predictions
CONTENT = "(c) over (b)"

Content = NDArray[np.float32]

HEADS = {  # of a layer, and names of layers
    name: Look(f"{name} head", colour, marker, line, width=0.8)
    for name, colour, marker, line in zip(
        ("first", "middle", "last"), shades(range(3)).values(), "os^", ("-", "--", ":"), strict=True
    )
}

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
    """Figures 1 and 2: the three rollout variants over the measured influence, and what content changes in them.

    `profiles` joins the tables of `comparison.compare`; lambda is that of Eq. 1 (Frobenius norms). Each model has a row
    of panels: (a), (b) and (c), on one logarithmic scale, with (d) dashed, and (c) over (b). Every training seed has a
    line, and that of the first one is bold; bands are bootstrap intervals over documents. Uniform is dotted.
    """
    selection = profiles[profiles["estimator"].isin(ESTIMATORS)]
    models = _by(selection, "model")
    titles = {variant: VARIANTS[variant].name for variant in "abc"} | {CONTENT: CONTENT}
    changes = {model: content_over_none(of_model) for model, of_model in models.items()}
    largest = max(np.exp(np.abs(np.log(change["value"])).max()) for change in changes.values())
    label = f"Three rollouts over the measured influence; content changes rollout by a factor of at most {largest:.3g}"
    rows = {model: shown_name(model) for model in models}
    figure, grid = panels(label, 0.3 + 1.25 * len(models), titles, rows, x="token position", sharex=True)
    lowest = selection.loc[selection["variant"].isin(["b", "c", "d"]), "low"].min()
    for model, of_model in models.items():
        by_variant = _by(of_model, "variant")
        for variant in "abc":
            axes = grid[model, variant]
            rollouts.uniform(axes, by_variant[variant]["position"].max() + 1)
            for width, curve in seeds(by_variant["d"]):
                rollouts.band(axes, curve, VARIANTS["d"].colour)
                rollouts.line(axes, curve, VARIANTS["d"].colour, width, REPEATED)
            _curves(axes, by_variant[variant], VARIANTS[variant])
            rollouts.logarithmic(axes, lowest / 4, 1)  # (a) falls far below what any model shows
            axes.tick_params(labelleft=variant == "a")
        axes = grid[model, CONTENT]
        axes.axhline(1, color=REFERENCE, linewidth=0.7, zorder=0)
        for width, curve in seeds(changes[model]):
            rollouts.line(axes, curve, VARIANTS["c"].colour, width)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    figure.supylabel(f"{SHARE}, log scale")
    influence = Line2D([], [], color=VARIANTS["d"].colour, linestyle=REPEATED, label=VARIANTS["d"].name)
    legend(figure, [influence, rollouts.uniform_entry()], settings=_setting(selection))
    draws(figure, map(str, models))
    return figure


def content_over_none(profiles: pd.DataFrame) -> pd.DataFrame:
    """Return (c) over (b) of one model at each position: columns checkpoint, position, value."""
    keys = ["checkpoint", "position"]
    without, with_content = (profiles[profiles["variant"] == name].set_index(keys)["value"] for name in "bc")
    return (with_content / without.reindex(with_content.index)).reset_index()


def fig3(profiles: pd.DataFrame) -> Figure:
    """Figure 3: measured influence at the long length, by data set and model. As `fig1`.

    The first row has all tokens, with a linear inset, the second one the first tokens alone.
    """
    influence = profiles[profiles["variant"] == "d"]
    datasets, looks = _by(influence, "dataset"), _named_looks(influence["model"])
    label = "Measured influence of each token on the next prediction, for each data set"
    titles = {dataset: f"{dataset}\n{_prompts(of_dataset)}" for dataset, of_dataset in datasets.items()}
    rows = {name: name for name in (WHOLE, BEGINNING)}
    figure, grid = panels(label, 2.9, titles, rows, x="token position", sharey="row")
    for dataset, of_dataset in datasets.items():
        log, first = (grid[name, dataset] for name in rows)
        linear = rollouts.inset(log)
        n = of_dataset["position"].max() + 1
        for axes, reach in ((linear, n), (log, n), (first, FIRST)):
            if axes != linear:
                rollouts.uniform(axes, n)
            for _, look, of_model in curves(of_dataset, "model", looks):
                _curves(axes, of_model[of_model["position"] < reach], look, FINE)
        for place, (_, look, of_model) in enumerate(curves(of_dataset, "model", looks), 1):
            _, of_seed = seeds(of_model)[0]
            rollouts.few_marks(log, of_seed, look, place)
            beginning = of_seed[of_seed["position"] < FIRST]
            first.plot(beginning["position"], beginning["value"], **rollouts.only_marks(look))
        rollouts.linear(linear, 2)
        last = min(FIRST, n) - 1
        first.set_xticks([0, last // 2, last])
    early = influence.loc[influence["position"] < FIRST, ["low", "high"]].dropna().to_numpy()
    rollouts.logarithmic(log, influence["low"].min() / 1.5)
    rollouts.logarithmic(first, early.min() / 1.2, early.max() * 1.2)
    figure.supylabel(SHARE)
    settings = f"{_tokens(influence)}, {_training_seeds(influence)}"
    legend(figure, [*_entries(looks), rollouts.uniform_entry()], settings=settings)
    draws(figure, map(str, looks))
    return figure


def training(profiles: pd.DataFrame) -> Figure:
    """Our addition: measured influence, and (b) dashed, by step of training.

    `profiles` as for `fig1`; each model has a panel with its first training seed; the later, the darker.
    """
    selection = profiles[profiles["estimator"].isin(ESTIMATORS) & profiles["variant"].isin(["b", "d"])]
    models = {model: seeds(of_model)[0][1] for model, of_model in _by(selection, "model").items()}
    selection = pd.concat(models.values())
    looks = step_looks(selection["checkpoint"])
    label = f"Measured influence and residual-aware rollout after {_enumerated(looks)} steps of training"
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
    rollouts.logarithmic(axes, selection["low"].min() / 1.5)
    legend(figure, [*_entries(looks), *rollouts.entries()], settings=_setting(selection))
    draws(figure, selection["model"].unique())
    return figure


def fig4(measured: list[TensorFile]) -> Figure:
    """Figure 4: residual mixing lambda of every layer by Eq. 1 (Frobenius norms), on a logarithmic scale.

    Shown is the first data set, with a band of two standard deviations over prompts. Below stands by which factor other
    data sets, and the mean per-token ratio of the paper's first version, differ at most. The first training seed has
    marks.
    """
    datasets: dict[str, dict[str, list[Tensors]]] = {}
    for file in measured:
        of_dataset = datasets.setdefault(file.labels["dataset"], {})
        of_dataset.setdefault(file.labels["model"], []).append(measurement.mixing(file))
    dataset, models = next(iter(datasets.items()))
    looks = _named_looks(models)
    lambdas = {model: [mixing_by_layer(mixing) for mixing in by_seed] for model, by_seed in models.items()}
    falls = [float(spearman(mixing["frobenius"], mixing.index)) for by_seed in lambdas.values() for mixing in by_seed]
    label = f"Rank correlation of residual mixing with depth: {min(falls):.2f} to {max(falls):.2f}"
    figure, axes = plt.subplots(figsize=(COLUMN, 2.3), label=label)
    for model, by_seed in lambdas.items():
        for width, mixing in zip([BOLD, *[THIN] * len(by_seed)], by_seed, strict=False):
            _mixing(axes, mixing, looks[model], width)
    mixings = [mixing for by_seed in lambdas.values() for mixing in by_seed]
    layer_axis(axes, (len(mixing) for mixing in mixings))
    rollouts.logarithmic(axes, min(float(mixing["frobenius"].min()) for mixing in mixings) / 2)  # a band may go below 0
    axes.set_ylabel(r"residual mixing $\lambda$, log scale")
    by_dataset = [
        [mixing_by_layer(mixing)["frobenius"] for by_seed in of_models.values() for mixing in by_seed]
        for of_models in datasets.values()
    ]
    between = max(map(_largest_ratio, zip(*by_dataset, strict=True)))
    estimators = max(_largest_ratio((mixing["frobenius"], mixing["token"])) for mixing in mixings)
    prompts = from_to(len(mixing["frobenius"]) for by_seed in models.values() for mixing in by_seed)
    settings = (
        f"{dataset}, {prompts} prompts ± 2 sd, {_a_model(map(len, models.values()))}; "
        f"{len(datasets)} data sets differ by a factor of at most {between:.3g}, means over tokens by {estimators:.3g}"
    )
    legend(figure, _entries(looks, linestyle="-"), settings=settings)
    draws(figure, map(str, looks))
    return figure


def fig5(measured: list[TensorFile]) -> Figure:
    """Figure 5: mean content logits by distance, of the first, middle and last layer (rows) and head of each model.

    Each file is of one training of a model. Values are those of `content_by_distance`, less the background that cancels
    in the softmax (Prop. 4.5). If content were constant plus diagonal, all but those at distance 0 would be 0. The
    title says in how many heads these are farthest from it.
    """
    contents = {_named_training(file.labels): file.read("content")["content"] for file in measured}
    deviations = {
        (layer, name, head): content_by_distance(content[at_layer, at_head])
        for name, content in contents.items()
        for layer, at_layer in _representative(content.shape[0]).items()
        for head, at_head in _representative(content.shape[1]).items()
    }
    outstanding = sum(bool(np.abs(values[0]) > np.abs(values[1:]).max()) for values in deviations.values())
    share = f"{outstanding} of {len(deviations)} heads"
    label = f"Content logits are farthest from their background on the diagonal in {share}"
    rows = {layer: f"{layer} layer" for layer in HEADS if any(layer == of for of, *_ in deviations)}
    titles = {name: name for name in contents}
    size, x, y = 0.4 + 1.1 * len(rows), "distance to the key (tokens)", "logit above\nbackground"
    figure, grid = panels(label, size, titles, rows, x=x, y=y, sharex=True, sharey="col")
    for (layer, name), axes in grid.items():
        axes.axhline(0, color=REFERENCE, linewidth=0.7, zorder=0)
        for head, look in HEADS.items():
            if (layer, name, head) in deviations:
                values = deviations[layer, name, head]
                axes.plot(values, **line_with_marks(look, range(len(values))))
        bins = distance_bins(contents[name].shape[-1])
        axes.set_xticks(
            range(len(bins)), [f"{first}" if last == first + 1 else f"{first}-{last - 1}" for first, last in bins]
        )
        axes.tick_params(axis="x", labelrotation=90)
    figure.align_ylabels()
    heads = {head for *_, head in deviations}
    legend(figure, [look.entry() for head, look in HEADS.items() if head in heads])
    return figure


def distance_bins(n: int) -> list[tuple[int, int]]:
    """Return bins of the distances 0 to n - 1, each from its first one to before its end: 0, 1, 2 to 3, 4 to 7, ..."""
    starts = [0, *(2**power for power in range(n.bit_length()) if 2**power < n)]
    return list(pairwise([*starts, n]))


def content_by_distance(logits: Content) -> NDArray[np.float64]:
    """Return means of logits [n, n] over `distance_bins` of query less key, less their mean below the diagonal."""
    n = len(logits)
    distance = np.subtract.outer(np.arange(n), np.arange(n))
    values = logits.astype(np.float64)
    means = [values[(first <= distance) & (distance < last)].mean() for first, last in distance_bins(n)]
    return np.array(means) - values[distance > 0].mean()


def forces(table: pd.DataFrame) -> Figure:
    """Propositions 4.2-4.5: share of the last row on the first quarter of the tokens against each of four forces.

    `table` is `checks_theory.forces()`. The dots are one setting, which all panels share.
    """
    label = "Share of rollout on the first quarter of the tokens, as each of four forces varies"
    titles, below = ({force: texts[place] for force, texts in FORCES.items()} for place in (0, 1))
    y = "share of rollout on the\nfirst quarter of the tokens"
    figure, row = panels(label, 1.8, titles, x=below, y=y, sharey=True)
    colour = VARIANTS["b"].colour
    for force, axes in row.items():
        for mask, curve in table[table["varied"] == force].groupby("mask"):
            style, _ = MASKS[str(mask)]
            axes.plot(curve["at"], curve["value"], style, color=colour)
            same_setting = curve[curve["shared"]]
            axes.plot(same_setting["at"], same_setting["value"], "o", color=colour, markersize=3)
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
        selection = table[(table["schedule"] == schedule) & (table["upper"] >= LEAST_SHOWN / 10)]
        for _, look, curve in curves(selection, "attention", ATTENTION):
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


def _enumerated(steps: Iterable[int]) -> str:
    *front, last = (f"{step:,}" for step in steps)
    return f"{', '.join(front)} and {last}" if front else last


def seeds(table: pd.DataFrame, widths: tuple[float, float] = (BOLD, THIN)) -> list[tuple[float, pd.DataFrame]]:
    """The rows of each training seed, with the width of their lines: one for the first seed, one for all others."""
    parts = [part for _, part in table.groupby(table["checkpoint"].map(tables.training), sort=False)]
    first, rest = widths
    return list(zip([first, *[rest] * len(parts)], parts, strict=False))


def _entries(looks: Mapping[Any, Look], **look: Any) -> list[Line2D]:
    return [of_look.entry(**look) for of_look in looks.values()]


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
    """Return lambda of each layer, from 1: the mean over prompts by either estimator, and two deviations about Eq. 1's.

    `mixing` has lambda by each estimator, frobenius (Eq. 1) and token, `[prompts, layers]`. The table has the columns
    frobenius, low, high and token, and a row for each layer.
    """
    by_prompt = mixing["frobenius"].astype(float)
    mean, spread = by_prompt.mean(0), 2 * by_prompt.std(0, ddof=1)
    columns = {
        "frobenius": mean,
        "low": mean - spread,
        "high": mean + spread,
        "token": mixing["token"].astype(float).mean(0),
    }
    return pd.DataFrame(columns, index=np.arange(1, by_prompt.shape[1] + 1))


def _mixing(axes: Axes, lambdas: pd.DataFrame, look: Look, width: float) -> None:
    axes.fill_between(lambdas.index, lambdas["low"], lambdas["high"], color=look.colour, alpha=0.25, linewidth=0)
    axes.plot(lambdas.index, lambdas["frobenius"], color=look.colour, linewidth=width)
    if width == BOLD:
        axes.plot(lambdas.index, lambdas["frobenius"], **rollouts.only_marks(look))


def _largest_ratio(values: Iterable[pd.Series]) -> float:
    """Return by which factor curves differ at most from the first of them."""
    first, *rest = values
    return float(max((np.exp(np.abs(np.log(curve / first))).max() for curve in rest), default=1.0))


def _representative(size: int) -> dict[str, int]:
    """Return the first, the middle and the last of so many layers or heads, by the names of HEADS; fewer have fewer."""
    return {name: at for at, name in {size - 1: "last", (size - 1) // 2: "middle", 0: "first"}.items()}


def _named_training(labels: Mapping[str, str]) -> str:
    """The name of a model and the seed of its training."""
    seed = tables.training(labels["checkpoint"]).replace("seed", "training seed ")
    return f"{shown_name(labels['model'])}, {seed}"
