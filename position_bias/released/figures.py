"""Figures of the five big models of Herasimchyk et al. 2026, from the numbers that its authors released."""

from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType as Colour
from numpy.typing import NDArray

from position_bias.drawing.looks import legend
from position_bias.drawing.style import COLOURS, PAGE, REFERENCE, colours_of
from position_bias.released.variants import ROUNDING

PANELS = {"a": "(a) attention only", "b": "(b) residual-aware", "c": "(c) with content"}
SLOPES: dict[str, Literal["-", "--"]] = {"released": "-", "faithful": "--"}  # rule -> line
CONTENT_COLOURS: dict[str, Colour] = {
    "none": COLOURS["b"],
    "released": COLOURS["c"],
    "faithful": sns.color_palette("colorblind")[1],
}
ALLOWED = "where (d) may lie"
LOWEST = 2e-4  # share of influence below which (a) is not followed
LEAST = 1e-9  # share of influence below which a long profile is not followed


def fig1(profiles: pd.DataFrame, table: pd.DataFrame) -> Figure:
    """Figures 1 and 2: the three rollout variants, a row of panels a model, and what printed distances say of (d).

    `profiles` is that of `released.written.read_profiles`, at one length on one data set; `table` that of
    `released.variants`. Solid lines and full dots: released slopes; dashed and hollow: faithful ones, where they
    differ. The measured influence (d) was not released: in the last panel its mean position must lie on a bar of each
    variant, the variant's own mean (dot) give or take the distance that the paper prints.
    """
    models = list(dict.fromkeys(profiles["model"]))
    figure, rows = plt.subplots(
        len(models), 4, figsize=(PAGE, 0.6 + 1.35 * len(models)), squeeze=False, width_ratios=[1, 1, 1, 0.9]
    )
    profiles, table = (shown[shown["slopes"].isin(SLOPES)] for shown in (profiles, table))
    table = table[table["dataset"].isin(profiles["dataset"])]
    for row, model in zip(rows, models, strict=True):
        of_model = profiles[profiles["model"] == model]
        for axes, variant in zip(row, PANELS, strict=False):
            _variant(axes, of_model[of_model["variant"] == variant])
            axes.sharey(rows[0][0])
            axes.sharex(rows[0][0])
        _allowed(row[3], table[table["model"] == model])
        row[0].set_ylabel(f"{model}\nshare of influence")
    for axes, title in zip(rows[0], [*PANELS.values(), ALLOWED], strict=True):
        axes.set_title(title)
    n = int(profiles["position"].max()) + 1
    rows[0][0].set_xticks([1, n // 4, n // 2, 3 * n // 4, n])
    rows[0][0].set_yscale("log")
    rows[0][0].set_ylim(LOWEST, 2)
    _outer_labels(rows)
    legend(figure, _entries())
    return figure


def _variant(axes: Axes, profiles: pd.DataFrame) -> None:
    for _, curve in profiles.groupby(["slopes", "content"], sort=False):
        slopes, content = curve[["slopes", "content"]].iloc[0]
        colour = COLOURS["a"] if curve["variant"].iloc[0] == "a" else CONTENT_COLOURS[content]
        axes.plot(curve["position"] + 1, curve["value"], SLOPES[slopes], color=colour)
    axes.axhline(1 / (profiles["position"].max() + 1), color=REFERENCE, linestyle=":", linewidth=0.7, zorder=0)


def _allowed(axes: Axes, table: pd.DataFrame) -> None:
    """A bar for each variant, rule of slopes and content: mean position, give or take the printed distance."""
    for at, variant in enumerate("abc"):
        bars = table if variant == "c" else table.drop_duplicates("slopes").assign(content="none")
        bars = bars.drop_duplicates([f"mean position {variant}", "content"])  # slopes agree for some models
        means, printed = bars[[f"mean position {variant}", f"printed W({variant}, d)"]].to_numpy(float).T
        heights = -at - 0.2 * (np.arange(len(bars)) - (len(bars) - 1) / 2)
        rules = zip(bars["slopes"], bars["content"], strict=True)
        for mean, reach, height, (slopes, content) in zip(means, printed + ROUNDING, heights, rules, strict=True):
            colour = COLOURS["a"] if variant == "a" else CONTENT_COLOURS[content]
            inside = colour if slopes == "released" else "white"
            axes.plot(np.clip([mean - reach, mean + reach], 0, 1), [height, height], color=colour, linewidth=1.2)
            axes.plot([mean], [height], "o", color=colour, markerfacecolor=inside, markersize=3, clip_on=False)
    axes.set_yticks([0, -1, -2], [f"({variant})" for variant in "abc"])
    axes.set_ylim(-2.6, 0.5)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1])
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)


def _outer_labels(rows: NDArray[Any]) -> None:
    for axes in rows[:, 1:3].flat:
        axes.tick_params(labelleft=False)
    for axes in rows[:-1].flat:
        axes.tick_params(labelbottom=False)
    for axes in rows[-1, :3]:
        axes.set_xlabel("token position")
    rows[-1, 3].set_xlabel("mean position")


def _entries() -> list[Line2D]:
    inside = {"released": "black", "faithful": "white"}
    styles = [
        Line2D(
            [], [], color="black", linestyle=line, marker="o", markersize=3, mfc=inside[rule], label=f"{rule} slopes"
        )
        for rule, line in SLOPES.items()
    ]
    contents = {name: f"{name} content" for name in ("released", "faithful")}
    return styles + [Line2D([], [], color=CONTENT_COLOURS[name], label=label) for name, label in contents.items()]


def fig4(mixing: pd.DataFrame) -> Figure:
    """Figure 4: residual mixing lambda of every layer, one panel a data set, one colour a model.

    `mixing` has columns model, dataset, layer (from 0) and lambda.
    """
    datasets = list(dict.fromkeys(mixing["dataset"]))
    colours = colours_of(mixing["model"])
    figure, row = plt.subplots(1, len(datasets), figsize=(PAGE, 2.3), sharex=True, sharey=True, squeeze=False)
    for axes, dataset in zip(row[0], datasets, strict=True):
        for model, curve in mixing[mixing["dataset"] == dataset].groupby("model", sort=False):
            axes.plot(curve["layer"] + 1, curve["lambda"], color=colours[str(model)], linewidth=1)
        axes.set_title(dataset)
        axes.set_xlabel("layer")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    row[0][0].set_ylabel(r"residual mixing $\lambda$")
    row[0][0].set_ylim(0, 1)
    legend(figure, [Line2D([], [], color=colour, label=model) for model, colour in colours.items()])
    return figure


def lengths(samples: pd.DataFrame, sums: pd.DataFrame) -> Figure:
    """How the predicted profile changes with the number of tokens (ours), a column a model.

    Above, the profile of (c), released slopes and content, from the last token back, one colour a length. Below, the
    mean distance to the last token, by every variant in `sums`, beside that of a uniform profile (dotted). Both tables
    are those of `released.profiles.along_lengths`, with a column model.
    """
    models, numbers = list(dict.fromkeys(samples["model"])), sorted(samples["n"].unique())
    colours = dict(zip(numbers, sns.color_palette("viridis", len(numbers)), strict=True))
    figure, rows = plt.subplots(
        2, len(models), figsize=(PAGE, 3.6), sharex="row", sharey="row", squeeze=False, height_ratios=[1.2, 1]
    )
    shown = samples[(samples["variant"] == "c") & (samples["slopes"] == "released")]
    for (above, below), model in zip(rows.T, models, strict=True):
        for n, curve in shown[shown["model"] == model].groupby("n"):
            width = 1 + numbers.index(n) / 3  # the shorter, the thinner and further to the front
            above.plot(curve["distance"] + 1, curve["value"], color=colours[n], linewidth=width, zorder=2 + 1 / width)
        _distances(below, sums[(sums["model"] == model) & (sums["statistic"] == "mean distance")])
        above.set_title(model)
    for axes in rows[:, 0]:
        axes.set_xscale("log")
        axes.set_yscale("log")
    rows[0][0].set_ylim(LEAST, 1)
    distances = sums.loc[sums["statistic"] == "mean distance", "value"]
    rows[1][0].set_ylim(distances.min() / 2, 2 * distances.max())
    rows[0][0].set_xlim(right=shown.loc[shown["value"] > LEAST, "distance"].max())
    rows[0][0].set_ylabel("share of influence,\n(c) as released")
    rows[1][0].set_ylabel("mean distance\nfrom the end")
    rows[0][len(models) // 2].set_xlabel("tokens from the end")
    rows[1][len(models) // 2].set_xlabel("tokens of the sequence")
    _length_legends(figure, colours)
    return figure


def _distances(axes: Axes, sums: pd.DataFrame) -> None:
    for _, curve in sums.groupby(["variant", "slopes", "content"], sort=False):
        variant, slopes, content = curve[["variant", "slopes", "content"]].iloc[0]
        colour = COLOURS["b"] if variant == "b" else CONTENT_COLOURS[content]
        axes.plot(curve["n"], curve["value"], SLOPES[slopes], color=colour, linewidth=1)
    numbers = sums["n"].drop_duplicates().sort_values()
    axes.plot(numbers, (numbers - 1) / 2, ":", color=REFERENCE, linewidth=0.7, zorder=0)


def _length_legends(figure: Figure, colours: dict[int, Colour]) -> None:
    above = [Line2D([], [], color=colour, label=_power(n)) for n, colour in colours.items()]
    legend(figure, above)
    names = {"b": "(b)", "released": "(c), released content", "faithful": "(c), faithful content"}
    keys = [Line2D([], [], color=CONTENT_COLOURS["none"], label=names["b"])]
    keys += [Line2D([], [], color=CONTENT_COLOURS[name], label=names[name]) for name in ("released", "faithful")]
    keys += [Line2D([], [], color="black", linestyle=line, label=f"{rule} slopes") for rule, line in SLOPES.items()]
    legend(figure, keys, "outside lower center")


def _power(n: int) -> str:
    exponent = int(n).bit_length() - 1
    return f"$2^{{{exponent}}}$" if n == 2**exponent else f"{n}"
