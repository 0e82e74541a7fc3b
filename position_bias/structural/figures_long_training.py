"""What longer training does to a language model: influence, residual mixing, content and rollout, step by step.

Our addition to Herasimchyk et al. 2026, from tables of evidence/: the shade tells the kept step, the later, the darker.
The first training seed has bold lines, marks and intervals; further seeds have thin lines. Positions count from 0,
layers from 1.
"""

from collections.abc import Iterator, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.language_models.names import shown_name
from position_bias.structural.figures import BOLD, ESTIMATORS, THIN, seeds, step_looks
from position_bias.structural.tables import step, training
from position_card.drawing import rollouts
from position_card.drawing.intervals import from_to
from position_card.drawing.looks import GREY, REFERENCE, VARIANTS, Look, legend, side_by_side
from position_card.drawing.panels import layer_axis, log_ticks
from position_card.drawing.shown import draws
from position_card.drawing.style import PAGE

FIRST_TOKENS = 12  # that the small panel shows
INFLUENCE = VARIANTS["d"]
SHAPES = {  # statistics of the measured influence, by variant and name
    ("d", "first / middle"): INFLUENCE._replace(name="(d) first / middle", marker="o"),
    ("d", "last / middle"): INFLUENCE._replace(name="(d) last / middle", marker="s", line="--"),
    ("b", "influence, first / predicted minimum"): INFLUENCE._replace(
        name="(d) first / where (b) is lowest", marker="^", line=":", filled=False
    ),
}
DISTANCES = {
    ("a", "wasserstein"): VARIANTS["a"]._replace(marker="D"),
    ("half", "wasserstein"): Look(r"$\lambda$ = 1/2", GREY, "v"),
    ("b", "wasserstein"): VARIANTS["b"]._replace(marker="o"),
    ("c", "wasserstein"): VARIANTS["c"]._replace(marker="s"),
}


def long_training(
    profiles: pd.DataFrame, statistics: pd.DataFrame, mixing: pd.DataFrame, content: pd.DataFrame, losses: pd.DataFrame
) -> Figure:
    """Six panels of one model, by its tables in evidence/structural/.

    Above, a line for each kept step: measured influence (d) and rollout (b), dashed; residual mixing (Eq. 1) of every
    layer; mean content logit on the diagonal less that below it, the mean over heads, and every head as a dot. Below,
    along the steps: ratios of measured influence, above 1 where it is U-shaped; Wasserstein distance of rollouts to it;
    held-out loss. Bands and bars are the intervals of the tables.
    """
    label = "Influence, residual mixing, content and rollouts at steps of a longer training"
    figure, grid = plt.subplots(2, 3, figsize=(PAGE, 3.7), width_ratios=(1.3, 1, 1), label=label)
    looks = step_looks(profiles["checkpoint"])
    steps = list(looks)
    _influence(grid[0, 0], profiles, looks)
    _mixing(grid[0, 1], mixing, looks)
    _content(grid[0, 2], content, looks)
    _along(grid[1, 0], statistics, SHAPES, steps, "ratio of measured\ninfluence, log scale")
    grid[1, 0].axhline(1, color=REFERENCE, linestyle=":", linewidth=0.7, zorder=0)
    _along(grid[1, 1], statistics, DISTANCES, steps, "Wasserstein distance\nto (d), log scale")
    _loss(grid[1, 2], losses, steps)
    entries = [*(look.entry() for look in looks.values()), *rollouts.entries("uniform influence")]
    first, trainings = profiles.iloc[0], from_to([profiles["checkpoint"].map(training).nunique()], "training seed")
    measured_on = f"{first['dataset']}, {first['n']} tokens, {first['prompts']} prompts"
    settings = f"{shown_name(first['model'])}, {measured_on}, {trainings}"
    legend(figure, entries, [look.entry() for look in {**SHAPES, **DISTANCES}.values()], settings)
    for scale, of_scale in profiles.groupby("scale"):
        draws(figure, of_scale["model"].unique(), str(scale))
    return figure


def _steps(table: pd.DataFrame, looks: Mapping[int, Look]) -> Iterator[tuple[float, int, Look, pd.DataFrame]]:
    """The rows of each step of each training seed: the width of the seed's lines, the place of the step, its look."""
    for width, of_seed in seeds(table):
        for place, (kept_step, look) in enumerate(looks.items()):
            yield width, place, look, of_seed[of_seed["checkpoint"].map(step) == kept_step]


def _influence(axes: Axes, profiles: pd.DataFrame, looks: Mapping[int, Look]) -> None:
    selection = profiles[profiles["estimator"].isin(ESTIMATORS) & profiles["variant"].isin(["b", "d"])]
    rollouts.uniform(axes, int(selection["position"].max()) + 1)
    for width, place, look, of_step in _steps(selection, looks):
        rollout, influence = (of_step[of_step["variant"] == variant] for variant in "bd")
        rollouts.line(axes, rollout, look.colour, 0.7 * width, "--")
        rollouts.line(axes, influence, look.colour, 0.5 * width)
        if width == BOLD:
            rollouts.band(axes, influence, look.colour)
            rollouts.few_marks(axes, influence, look, place + 1)
    rollouts.logarithmic(axes, selection["value"].min() / 1.5)
    axes.set_xlabel("token position")
    axes.set_ylabel("share of influence,\nlog scale")
    _, first_seed = seeds(selection[selection["variant"] == "d"])[0]
    _beginning(axes.inset_axes((0.27, 0.6, 0.45, 0.4)), first_seed[first_seed["position"] < FIRST_TOKENS], looks)


def _beginning(axes: Axes, influence: pd.DataFrame, looks: Mapping[int, Look]) -> None:
    """The measured influence of the first tokens, which the whole prompt leaves no room for."""
    for _, _, look, of_step in _steps(influence, looks):
        axes.plot(of_step["position"], of_step["value"], look.marker + "-", color=look.colour, linewidth=0.8, ms=2)
    axes.set_yscale("log")
    axes.set_yticks([], minor=True)
    axes.set_yticks([])
    axes.set_xticks([0, FIRST_TOKENS - 1])
    axes.tick_params(pad=1)
    axes.set_title("first tokens of (d)", pad=2)


def _mixing(axes: Axes, mixing: pd.DataFrame, looks: Mapping[int, Look]) -> None:
    selection = mixing[mixing["quantity"] == "frobenius"]
    for width, _, look, of_step in _steps(selection.sort_values("layer", kind="stable"), looks):
        _line(axes, of_step["layer"] + 1, of_step["value"], look, width)
    layer_axis(axes, selection["layer"] + 1)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(r"residual mixing $\lambda$")


def _content(axes: Axes, content: pd.DataFrame, looks: Mapping[int, Look]) -> None:
    keys = ["checkpoint", "layer", "head"]
    wide = content.pivot(index=keys, columns="quantity", values="value")
    shift = (wide["diagonal"] - wide["below"]).rename("value").reset_index()
    axes.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0)
    middle = (len(looks) - 1) / 2
    for width, place, look, of_step in _steps(shift, looks):
        means = of_step.groupby("layer")["value"].mean()
        shift_right = 1 + 0.12 * (place - middle)
        _line(axes, means.index.to_series() + shift_right, means, look, width)
        if width == BOLD:
            axes.plot(
                of_step["layer"] + shift_right, of_step["value"], ".", color=look.colour, markersize=1.5, alpha=0.7
            )
    layer_axis(axes, content["layer"] + 1)
    axes.set_ylabel("content logit, diagonal\nless below it")


def _along(
    axes: Axes, statistics: pd.DataFrame, looks: Mapping[tuple[str, str], Look], steps: Sequence[int], label: str
) -> None:
    """Statistics of variants at every kept step, with their intervals, on a logarithmic scale."""
    selection = statistics[statistics["estimator"].isin(ESTIMATORS)]
    look_of = {f"{variant} {statistic}": look for (variant, statistic), look in looks.items()}
    for (variant, statistic), (_, look, aside) in zip(looks, side_by_side(look_of, 0.08), strict=True):
        of_look = selection[(selection["variant"] == variant) & (selection["statistic"] == statistic)]
        for width, of_seed in seeds(of_look):
            places = of_seed["checkpoint"].map(step).map(steps.index) + aside
            in_order = of_seed.assign(at=places).sort_values("at")
            _line(axes, in_order["at"], in_order["value"], look, width)
            if width == BOLD:
                axes.vlines(in_order["at"], in_order["low"], in_order["high"], color=look.colour, linewidth=0.8)
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
    axes.set_ylabel(label)
    _step_axis(axes, steps)


def _loss(axes: Axes, losses: pd.DataFrame, steps: Sequence[int]) -> None:
    held_out = losses[losses["split"] == "test"]
    for place, (_, of_seed) in enumerate(held_out.groupby("seed", sort=True)):
        places = of_seed["step"].map(steps.index)
        _line(axes, places, of_seed["loss"], Look("", "black", "o"), THIN if place else BOLD)
    axes.set_ylabel("held-out loss (nats)")
    _step_axis(axes, steps)


def _line(axes: Axes, places: pd.Series, values: pd.Series, look: Look, width: float) -> None:
    (line,) = axes.plot(places, values, look.line, color=look.colour, linewidth=width)
    if width == BOLD:
        line.set(marker=look.marker, markersize=3, markerfacecolor=look.inside)


def _step_axis(axes: Axes, steps: Sequence[int]) -> None:
    axes.set_xticks(np.arange(len(steps)), [f"{kept_step:,}" for kept_step in steps])
    axes.set_xlim(-0.4, len(steps) - 0.6)
    axes.set_xlabel("kept training step")
