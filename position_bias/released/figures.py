"""Figures of the five big models of Herasimchyk et al. 2026, from the numbers that its authors released.

Positions count from 0, as in the paper.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter
from matplotlib.typing import ColorType as Colour

from position_bias.released.models import DRAWN_MODEL, PRIMARY, TREND
from position_bias.released.variants import ROUNDING, read_profiles
from position_card.core import artifacts
from position_card.drawing import rollouts
from position_card.drawing.intervals import line_with_marks
from position_card.drawing.looks import (
    ORANGE,
    REFERENCE,
    VARIANTS,
    Look,
    legend,
    model_looks,
    shades,
)
from position_card.drawing.panels import curves, layer_axis, panels
from position_card.drawing.shown import draws
from position_card.drawing.style import SMALLEST
from position_card.rollout.attention import Array
from position_card.rollout.parts import middle_half
from position_card.rollout.statistics import mean_position

PANELS = {"a": "(a) attention only, log scale", **{variant: VARIANTS[variant].name for variant in "bc"}}
SLOPES: dict[str, Literal["-", "--"]] = {"released": "-", "faithful": "--"}  # rule -> line
CONTENT = {
    "none": VARIANTS["b"]._replace(name="(b), no content"),
    "released": VARIANTS["c"]._replace(name="(c), released content", marker="^"),
    "faithful": Look("(c), faithful content", ORANGE, "s"),
}
ALLOWED = "where (d) may lie"
FIGURE_OF = {1: ("bloom-176b", "mpt-7b"), 2: ("bloom-7b1", "mpt-30b", "falcon-rw-7b")}  # of the paper -> its models
U_SHAPED = 1.1  # times the mean of the middle half have both ends of a U, as the predictions say
MIDDLE: dict[str, Any] = {"color": "0.6", "linewidth": 2.5, "solid_capstyle": "butt", "zorder": 1}
WITHOUT_INTERVAL = "Published schedules: no interval."
LEAST = 1e-12  # share of influence below which a long profile is not followed


def fig1(profiles: list[Path], table: pd.DataFrame) -> Figure:
    """Figures 1 and 2: the three rollout variants in each model, and what printed distances say of (d).

    `profiles` are at one length on one data set; `table` is that of `variants`. Every panel has limits of its own; (b)
    and (c) are linear, as the paper draws them, and (a), which is nearly all on the first token, logarithmic. Solid
    lines and full dots: released slopes; dashed and hollow: faithful ones, where they differ. No numbers of the
    measured influence (d) were released: in the last panel its mean position must lie on a bar of each variant, the
    variant's own mean (dot) give or take the distance that the paper prints. The panel shows where those of (b) and (c)
    are; the bar of (a) may go beyond.
    """
    profile_rows = read_profiles(profiles)
    profile_rows, table = (rows[rows["slopes"].isin(SLOPES)] for rows in (profile_rows, table))
    table = table[table["dataset"].isin(profile_rows["dataset"])]
    models = {model: model for model in profile_rows["model"].unique()}
    label = "Predicted influence of each token in big models, and where the measured mean may lie"
    x = {**dict.fromkeys(PANELS, "token position"), ALLOWED: "mean position"}
    height = 0.4 + 1.3 * len(models)
    figure, grid = panels(label, height, {**PANELS, ALLOWED: ALLOWED}, models, x=x)
    for model in models:
        of_model = profile_rows[profile_rows["model"] == model]
        for variant in PANELS:
            _variant(grid[model, variant], of_model[of_model["variant"] == variant])
        _decades(grid[model, "a"])
        _allowed(grid[model, ALLOWED], table[table["model"] == model])
    figure.supylabel(rollouts.SHARE)
    n = int(profile_rows["position"].max()) + 1
    slopes = [
        Look(f"{rule} slopes", "black", line=line, filled=rule == "released").entry(markersize=2.5)
        for rule, line in SLOPES.items()
    ]
    contents = [look.entry(marker="", linewidth=1) for look in CONTENT.values()]
    settings = f"{', '.join(profile_rows['dataset'].unique())}, {n} tokens"
    legend(figure, [*contents, *slopes, rollouts.uniform_entry()], settings=settings)
    return figure


def _variant(axes: Axes, profiles: pd.DataFrame) -> None:
    attention_only = (profiles["variant"] == "a").any()
    for _, curve in profiles.groupby(["slopes", "content"], sort=False):
        slopes, content = curve[["slopes", "content"]].iloc[0]
        look = VARIANTS["a"] if attention_only else CONTENT[content]
        axes.plot(curve["position"], curve["value"], SLOPES[slopes], color=look.colour, linewidth=1)
    rollouts.uniform(axes, int(profiles["position"].max()) + 1)
    if not attention_only:
        rollouts.linear(axes)


def as_released(profiles: pd.DataFrame, drawn: pd.DataFrame) -> Figure:
    """Figures 1 and 2 of the big models as their authors configured them, and the influence that they drew of one.

    `profiles` are those of evidence/structural/released/, at one length on one data set; `drawn` has the columns
    variant, token and share. All panels are logarithmic, so that an end can be compared with the middle; (b) and (c)
    have the same limits. What claims are judged by is written into the panels: the share of the first token of (a),
    the ends of (b) and (c) over the mean of the middle half, a level, and what content does to (b).
    """
    models = {model: f"Figure {figure}\n{model}" for figure, names in FIGURE_OF.items() for model in names}
    shares: dict[tuple[str, str], Array] = {
        (str(model), str(variant)): rows.sort_values("position")["value"].to_numpy(float)
        for (model, variant), rows in profiles.groupby(["model", "variant"])
    }
    of_d = drawn[drawn["variant"] == "d"].sort_values("token")["share"].to_numpy(float)
    label = f"Of {len(models)} big models, rollout is a U in {_with_ends(shares, 'b')} with residual mixing (b) "
    label += f"and in {_with_ends(shares, 'c')} with content (c)"
    titles = {variant: VARIANTS[variant].name for variant in "abc"}
    figure, grid = panels(label, 0.6 + 1.0 * len(models), titles, models, x="token position")
    ends = np.concatenate([of_d, *(profile for (_, variant), profile in shares.items() if variant != "a")])
    for (model, variant), axes in grid.items():
        profile = shares[model, variant]
        axes.plot(profile, color=VARIANTS[variant].colour, linewidth=1)
        rollouts.uniform(axes, len(profile))
        if variant == "a":
            _decades(axes)
            axes.text(0.06, 0.06, f"first token {profile[0]:.3f}", transform=axes.transAxes, fontsize=SMALLEST)
            continue
        rollouts.logarithmic(axes, 0.8 * ends.min(), 6 * ends.max())
        _middle(axes, profile)
        axes.plot([0, len(profile) - 1], profile[[0, -1]], "o", color=VARIANTS[variant].colour, markersize=2.2)
        first, last = _ends(profile)
        remark = f"first {first:.3g}, last {last:.3g} times middle"
        if variant == "c":
            of_b = shares[model, "b"]
            shift = float(mean_position(profile) - mean_position(of_b))
            remark += f"\nless (b): first {profile[0] - of_b[0]:+.3f}, mean {shift:+.3f}"
        axes.text(0.5, 0.98, remark, transform=axes.transAxes, ha="center", va="top", fontsize=SMALLEST)
        if model == DRAWN_MODEL:
            axes.plot(of_d, color=VARIANTS["d"].colour, linewidth=0.9, linestyle="--")
    figure.supylabel(f"{rollouts.SHARE}, log scale")
    n = len(of_d)
    settings = f"{', '.join(profiles['dataset'].unique())}, {n} tokens. n = 1 rollout for each model and variant. "
    settings += WITHOUT_INTERVAL
    influence = Look(f"(d) measured influence of {DRAWN_MODEL}, as drawn", VARIANTS["d"].colour, line="--")
    middle = Line2D([], [], label="mean of the middle half", **MIDDLE)
    legend(figure, [influence.entry(marker=""), middle, rollouts.uniform_entry()], settings=settings)
    draws(figure, models, "paper")
    return figure


def _with_ends(shares: Mapping[tuple[str, str], Array], variant: str) -> int:
    """How many models have a U in a variant: both ends above the mean of the middle half, by a tenth at least."""
    of_variant = [profile for (_, name), profile in shares.items() if name == variant]
    return sum(min(_ends(profile)) > U_SHAPED for profile in of_variant)


def _ends(profile: Array) -> tuple[float, float]:
    """Return the shares of the first and of the last token in a profile `[n]` over the mean of its middle half."""
    middle = profile[middle_half(len(profile))].mean()
    return float(profile[0] / middle), float(profile[-1] / middle)


def _middle(axes: Axes, profile: Array) -> None:
    """The mean of the middle half, over that half."""
    half = middle_half(len(profile))
    axes.plot([half.start, half.stop - 1], 2 * [profile[half].mean()], **MIDDLE)


def mixing_as_released(mixing: pd.DataFrame, statistics: pd.DataFrame) -> Figure:
    """Figure 4 of the big models: lambda over tenths of the depth, by data set, and its rank correlation with depth.

    Both tables are those of evidence/structural/released/. The correlation is over all layers; the mark is of the data
    set that the claim is judged on, and strokes of the others.
    """
    looks = model_looks(mixing["model"].drop_duplicates())
    trends = statistics[statistics["statistic"] == TREND]
    datasets = list(mixing["dataset"].unique())
    of_primary = trends[trends["dataset"] == PRIMARY]
    decreasing = int((of_primary["value"] < 0).sum())
    label = f"Residual mixing falls with depth in {decreasing} of {len(of_primary)} big models"
    titles = {dataset: dataset for dataset in datasets} | {TREND: "rank correlation\nwith depth"}
    x = dict.fromkeys(datasets, "tenth of the layers") | {TREND: "over all layers"}
    figure, row = panels(label, 2.2, titles, x=x, y=r"residual mixing $\lambda$")
    for dataset in datasets:
        axes = row[dataset]
        for _, look, curve in curves(mixing[mixing["dataset"] == dataset], "model", looks):
            axes.plot(curve["tenth"], curve["value"], **line_with_marks(look._replace(width=0.8), range(len(curve))))
        axes.set(ylim=(0, 1.08 * mixing["value"].max()), xticks=[1, 4, 7, 10])
        axes.tick_params(labelleft=dataset == datasets[0])
    _trends(row[TREND], trends, looks)
    legend(figure, [look.entry(linewidth=0.8) for look in looks.values()], settings=_layers(mixing))
    draws(figure, looks, "paper")
    return figure


def _trends(axes: Axes, trends: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """The rank correlation of each model, a line each: its mark and number on the data set of the claim."""
    for place, (name, look) in enumerate(looks.items()):
        by_dataset = trends[trends["model"] == name].set_index("dataset")["value"]
        other_datasets = by_dataset.drop(PRIMARY)
        axes.plot(other_datasets, [-place] * len(other_datasets), "|", color=look.colour, markersize=7, zorder=1)
        value = by_dataset[PRIMARY]
        mark: dict[str, Any] = {"color": look.colour, "markerfacecolor": look.inside, "markersize": 4}
        axes.plot([value], [-place], look.marker, **mark)
        axes.text(value, 0.24 - place, f"{value:+.2f}", ha="center", va="bottom", fontsize=SMALLEST)
    axes.axvline(0, color=REFERENCE, linewidth=0.7, zorder=0)
    axes.set(xlim=(-1.25, 1.25), ylim=(0.6 - len(looks), 0.9), xticks=[-1, 0, 1])
    axes.set_yticks([-place for place in range(len(looks))], list(looks))
    axes.tick_params(axis="y", length=0)


def _layers(mixing: pd.DataFrame) -> str:
    layers = mixing.groupby("model", sort=False)["layers"].first()
    phrases = ", ".join(f"{count} layers in {model}" for model, count in layers.items())
    return f"n = {phrases}. Correlation: marks {PRIMARY}, strokes the others. {WITHOUT_INTERVAL}"


def _decades(axes: Axes) -> None:
    """A logarithmic axis over very many decades, with few ticks."""
    lowest = np.log10(axes.dataLim.y0)
    axes.set_yscale("log")
    axes.set_ylim(10**lowest, 10)
    axes.set_yticks([10.0**power for power in MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(lowest, 0) if power <= 0])
    axes.minorticks_off()


def _allowed(axes: Axes, table: pd.DataFrame) -> None:
    """A bar for each variant, rule of slopes and content: mean position, give or take the printed distance."""
    ends = []
    for row, variant in enumerate("abc"):
        bars = table if variant == "c" else table.drop_duplicates("slopes").assign(content="none")
        bars = bars.drop_duplicates([f"mean position {variant}", "content"])  # slopes agree for some models
        means, distances = bars[[f"mean position {variant}", f"printed W({variant}, d)"]].to_numpy(float).T
        heights = -row - 0.2 * (np.arange(len(bars)) - (len(bars) - 1) / 2)
        rules = zip(bars["slopes"], bars["content"], strict=True)
        for mean, reach, height, (slopes, content) in zip(means, distances + ROUNDING, heights, rules, strict=True):
            colour = VARIANTS["a"].colour if variant == "a" else CONTENT[content].colour
            fill = colour if slopes == "released" else "white"
            bar = np.clip([mean - reach, mean + reach], 0, 1)
            axes.plot(bar, [height, height], color=colour, linewidth=1.2, marker="|", markersize=4)
            axes.plot([mean], [height], "o", color=colour, markerfacecolor=fill, markersize=2.5)
            ends += [] if variant == "a" else [*bar]
    axes.set_yticks([0, -1, -2], [f"({variant})" for variant in "abc"])
    axes.set_ylim(-2.6, 0.5)
    room = 0.08 * (max(ends) - min(ends))
    axes.set_xlim(max(0, min(ends) - room), min(1, max(ends) + room))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)


def fig4(mixing: list[Path]) -> Figure:
    """Figure 4: residual mixing lambda of every layer, by data set and model.

    The schedules are in files MODEL/DATASET/lambda.csv.
    """
    schedules = pd.concat(
        artifacts.read_table(path, ["layer", "lambda"]).assign(model=path.parts[-3], dataset=path.parts[-2])
        for path in mixing
    )
    looks, datasets = model_looks(schedules["model"]), {dataset: dataset for dataset in schedules["dataset"].unique()}
    label = "Residual mixing by layer in big models, for each data set"
    figure, row = panels(label, 2.1, datasets, y=r"residual mixing $\lambda$", sharex=True, sharey=True)
    for dataset, axes in row.items():
        for _, look, curve in curves(schedules[schedules["dataset"] == dataset], "model", looks):
            marks = range(0, len(curve), max(1, len(curve) // 8))
            axes.plot(curve["layer"] + 1, curve["lambda"], **line_with_marks(look._replace(width=0.8), marks))
        layer_axis(axes, schedules["layer"] + 1)
    axes.set_ylim(0, 1)
    legend(figure, [look.entry(linewidth=0.8) for look in looks.values()])
    return figure


def lengths(samples: pd.DataFrame, sums: pd.DataFrame) -> Figure:
    """How the predicted profile changes with the number of tokens (ours), by model.

    Above, the profile of (c), released slopes and content, from the last token back: all lengths follow one curve,
    except at their first token, a dot where it has enough influence to be seen; lengths whose first token has not share
    a line. Below, the mean distance to the last token, by every variant in `sums`, beside that of a uniform profile
    (dotted). Both tables are those of `profiles.follow_lengths`.
    """
    models = {model: model for model in samples["model"].unique()}
    label = "Predicted influence at many lengths, and its mean distance from the end, in big models"
    rows = {"above": "share of influence,\n(c) as released", "below": "mean distance\nfrom the end"}
    axes_options: Any = {"sharex": "row", "sharey": "row", "height_ratios": [1.2, 1]}
    figure, grid = panels(label, 3.0, models, rows, **axes_options)
    curves_of_c = samples[(samples["variant"] == "c") & (samples["slopes"] == "released")]
    means = sums[sums["statistic"] == "mean distance"]
    first = curves_of_c[curves_of_c["distance"] == curves_of_c["n"] - 1]
    ending = sorted(first.loc[first["value"] > LEAST, "n"].unique())
    longer = sorted(set(curves_of_c["n"]) - set(ending))
    colours = shades([*ending, *longer[:1]])
    for model in models:
        upper, lower = (grid[row, model] for row in rows)
        for n in [*longer[-1:], *reversed(ending)]:  # the shorter, the further to the front
            curve = curves_of_c[(curves_of_c["model"] == model) & (curves_of_c["n"] == n)]
            colour = colours[n if n in ending else longer[0]]
            upper.plot(curve["distance"] + 1, curve["value"], color=colour, linewidth=1)
            if n in ending:
                upper.plot(curve["distance"].iloc[-1:] + 1, curve["value"].iloc[-1:], "o", color=colour, markersize=3)
        _distances(lower, means[means["model"] == model])
    for axes in (upper, lower):
        axes.set(xscale="log", yscale="log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
    upper.set(ylim=(LEAST, 1))
    upper.set_xlim(right=2 * curves_of_c.loc[curves_of_c["value"] > LEAST, "distance"].max())
    lower.set_ylim(means["value"].min() / 2, 2 * means["value"].max())
    middle = list(models)[len(models) // 2]
    grid["above", middle].set_xlabel("tokens from the end")
    grid["below", middle].set_xlabel("tokens of the sequence")
    _length_legends(figure, colours, longer)
    return figure


def _distances(axes: Axes, sums: pd.DataFrame) -> None:
    for _, curve in sums.groupby(["variant", "slopes", "content"], sort=False):
        slopes, content = curve[["slopes", "content"]].iloc[0]
        look = CONTENT[content]._replace(line=SLOPES[slopes], width=0.8, filled=slopes == "released")
        axes.plot(curve["n"], curve["value"], **line_with_marks(look, range(len(curve))))
    numbers = sums["n"].drop_duplicates().sort_values()
    axes.plot(numbers, (numbers - 1) / 2, **rollouts.UNIFORM)


def _length_legends(figure: Figure, colours: dict[float, Colour], longer: list[int]) -> None:
    """Draw the legends of lengths, of content and of slopes below a figure.

    `colours` has the colour of a curve by its number of tokens; the numbers in `longer` share that of the first.
    """
    names = {n: f"{n:,} tokens" for n in colours}
    if longer:
        last = f" to {longer[-1]:,}" if len(longer) > 1 else ""
        names[longer[0]] = f"{longer[0]:,}{last} tokens"
    of_lengths = [Line2D([], [], color=colour, label=names[n]) for n, colour in colours.items()]
    contents = [look.entry(linewidth=0.8) for look in CONTENT.values()]
    slopes = [Look(f"{rule} slopes", "black", "", line).entry() for rule, line in SLOPES.items()]
    legend(figure, of_lengths, [*contents, *slopes, rollouts.uniform_entry()])
