"""Pretrained decoders: influence by gradients and replacement, beside rollouts, copies, drawn profiles, and recall.

Our addition to Herasimchyk et al. 2026. Effects are over their mean in the middle half of the prompt: a position like
those stands at 1. Positions count from 0, layers from 1.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.verdicts.registry import PRETRAINED
from position_bias.verdicts.rule import FAILS, HOLDS, NO_EFFECT, UNDECIDED
from position_card.drawing import rollouts
from position_card.drawing.intervals import error_bars
from position_card.drawing.looks import BLACK, BLUE, BROWN, GREEN, ORANGE, REFERENCE, VARIANTS, Look, legend
from position_card.drawing.panels import layer_axis, log_ticks, panels
from position_card.drawing.shown import draws
from position_card.drawing.style import COLUMN, PAGE
from position_card.rollout.parts import middle_half

INFLUENCE = VARIANTS["d"].colour
TRAINED = {
    "gradient": Look("measured: gradients", INFLUENCE),
    "replacement": Look("measured: replacement", BLACK, "o", ""),
    "rotary": Look("rollout: mean query, key", BLUE, "s", "--"),
    "measured": Look("rollout: mean attention", BROWN, "^", ":"),
}
COPIES = {
    ("copy", "gradient"): Look("gradients, own deviation", INFLUENCE, "s"),
    ("copy", "replacement"): Look("replacement, own deviation", BLACK, "o", ""),
    ("usual", "gradient"): Look("gradients, .02", INFLUENCE, "D", "--", filled=False),
    ("usual", "replacement"): Look("replacement, .02", BLACK, "v", "", filled=False),
}
SHARES = {
    "attention": Look("attention paid to it", BLACK, "v", ":"),
    "rollout": Look("rollout from there on", BROWN, "^", "--"),
    "influence": Look("influence there", INFLUENCE, "o"),
}
DRAWN = {  # by the authors, but (a): all of it is on the first token
    "b": VARIANTS["b"]._replace(marker="s", line="--"),
    "c": VARIANTS["c"]._replace(marker="^", line=":"),
    "d": VARIANTS["d"],
}
MEASURES = {
    "gradient": Look("influence by gradients", ORANGE),
    "replacement": Look("influence by replacement", BLACK, "o", ""),
    "recall": Look("recall", GREEN),
}
ALL_PLACES = 20  # from so many places on, a measure is a line with a band, and else marks with bars
SAID: dict[str, str] = {  # of the first word's effect by gradients less that by replacement, in logarithms
    HOLDS: "gradients give the first word more than replacement does",
    FAILS: "gradients give the first word less than replacement does",
    NO_EFFECT: "gradients give the first word no more than replacement does",
    UNDECIDED: "it is open whether gradients give the first word more than replacement does",
}
CLAIM = ("pretrained, ours: log first / middle", "gradient", "replacement")


def pretrained(
    profiles: pd.DataFrame, shares: pd.DataFrame, curves: pd.DataFrame, checks: pd.DataFrame, dataset: str, n: int
) -> Figure:
    """Draw three panels of each model, and one of bloom-176b as its authors drew it; verdicts make the title.

    Of each model: what was measured of it, with rollouts; the same of copies with random weights; and the first token's
    share by layer. `profiles` and `shares` are those of `structural.pretrained`, `curves` the table of drawn profiles,
    `checks` the verdicts. Those on `n` tokens of `dataset` are of what is drawn. Bands and bars are bootstrap intervals
    over documents.
    """
    models = list(dict.fromkeys(profiles["model"]))
    rows = (3 * len(models) + 2) // 2
    figure, grid = plt.subplots(rows, 2, figsize=(PAGE, 0.2 + 2.4 * rows), squeeze=False)
    free = iter(grid.flat)
    for model in models:
        of_model = profiles[profiles["model"] == model]
        _effects(next(free), of_model[of_model["weights"] == "hub"].set_index("measure"), TRAINED, model)
        copies = of_model.set_index(["weights", "measure"]).sort_index()
        _effects(next(free), copies, COPIES, f"{model}, random weights")
        _shares(next(free), shares[shares["model"] == model], f"{model}, first token")
    _drawn(next(free), curves)
    for empty in free:
        empty.remove()
    figure.set_label(finding(_on_text(checks, dataset, n), models))
    legend(figure)
    draws(figure, models, PRETRAINED)
    return figure


def finding(checks: pd.DataFrame, models: Iterable[str]) -> str:
    """What the verdicts say of the two measures at the first word, in a sentence for each verdict that a model has."""
    keys = checks[["statistic", "network", "other"]].apply(tuple, axis=1)
    rows = checks[(keys == CLAIM) & checks["model"].isin(list(models))]
    lines = []
    for verdict, of_word in rows.groupby("verdict", sort=False):
        ratios = zip(of_word["model"], *np.exp(of_word[["measured", "low", "high"]].to_numpy().T), strict=True)
        numbers = ", ".join(f"{model} {ratio:.2g} times [{low:.2g}, {high:.2g}]" for model, ratio, low, high in ratios)
        count = f"in {len(of_word)} of {len(rows)} models " if len(rows) > 1 else ""
        lines.append(f"{count}{SAID.get(str(verdict), SAID[UNDECIDED])}, on the same prompts: {numbers}")
    said = "; ".join(lines)
    return f"{said[:1].upper()}{said[1:]}"


def _on_text(judged: pd.DataFrame, dataset: str, n: int) -> pd.DataFrame:
    """The verdicts on prompts of `n` tokens of a data set."""
    return judged[judged["setting"].astype(str).str.endswith(f"dataset = {dataset}; n = {n}")]


def _effects(axes: Axes, curves: pd.DataFrame, looks: Mapping[Any, Look], title: str) -> None:
    """Effects by position, over those of the middle: bands where every position is known, else bars."""
    _middle(axes, int(curves["position"].max()) + 1)
    for name, look in looks.items():
        curve = curves.loc[[name]]
        every = len(curve) > curve["position"].max()
        marker = "" if every else look.marker
        style: dict[str, Any] = {"color": look.colour, "linestyle": look.line, "markerfacecolor": look.inside}
        axes.plot(curve["position"], curve["value"], marker=marker, markersize=3.5, linewidth=0.9, **style)
        if every:
            rollouts.band(axes, curve, look.colour)
            rollouts.few_marks(axes, curve, look, list(looks).index(name) + 1)
        else:
            axes.vlines(curve["position"], curve["low"], curve["high"], color=look.colour, linewidth=0.8)
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
    axes.set(title=title, xlabel="token position", ylabel="effect over that of the middle,\nlog scale")
    axes.legend(handles=[look.entry() for look in looks.values()], loc="upper center", ncols=1)


def _middle(axes: Axes, n: int) -> None:
    """The mean of the middle, dotted, and ticks of n positions."""
    axes.axhline(1, **rollouts.UNIFORM)
    axes.set_xticks([0, n // 2, n - 1])


def _shares(axes: Axes, shares: pd.DataFrame, title: str) -> None:
    """The first token's share, by layer."""
    for name, look in SHARES.items():
        curve = shares[shares["share"] == name]
        style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "linestyle": look.line, "markersize": 2.5}
        axes.plot(curve["layer"], curve["value"], linewidth=0.9, **style)
        if curve["low"].notna().all():
            axes.fill_between(curve["layer"], curve["low"], curve["high"], color=look.colour, alpha=0.25, linewidth=0)
    layer_axis(axes, shares["layer"])
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
    axes.set(title=title, ylabel="share of the first token,\nlog scale")
    axes.legend(handles=[look.entry() for look in SHARES.values()], loc="center", bbox_to_anchor=(0.69, 0.38))


def _drawn(axes: Axes, curves: pd.DataFrame) -> None:
    """bloom-176b: (b), (c) and the measured influence, as the authors drew them."""
    n = int(curves["token"].max())
    _middle(axes, n)
    for place, (variant, look) in enumerate(DRAWN.items()):
        curve = curves[curves["variant"] == variant].sort_values("token")
        share = curve["share"].to_numpy()
        over = pd.DataFrame({"position": curve["token"].to_numpy() - 1, "value": share / share[middle_half(n)].mean()})
        rollouts.line(axes, over, look.colour, 1.0, look.line)
        rollouts.few_marks(axes, over, look, place)
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
    axes.set(title="bloom-176b, as its authors drew it", xlabel="token position")
    axes.legend(handles=[look.entry() for look in DRAWN.values()])


def recall(profiles: pd.DataFrame) -> Figure:
    """Draw a row for each measure and a column for each decoder; every value is over its mean in the middle half.

    `profiles` have the columns `recall.PROFILES`. Bands and bars are bootstrap intervals, of influence over documents
    and of recall over contexts.
    """
    models = {model: model for model in profiles["model"]}
    rows = {name: f"{look.name.replace(' by ', chr(10) + 'by ')},\nover the middle" for name, look in MEASURES.items()}
    label = "Influence and recall at each place of the prompt, in pretrained decoders"
    size, width = 0.5 + 1.5 * len(MEASURES), COLUMN if len(models) == 1 else PAGE
    figure, grid = panels(label, size, models, rows, x="place in the prompt", width=width, sharex=True)
    for (measure, model), axes in grid.items():
        curves = profiles[(profiles["measure"] == measure) & (profiles["model"] == model)]
        _curves(axes, [curve for _, curve in curves.groupby("n")], MEASURES[measure])
        axes.set(xticks=[0, 0.5, 1], xticklabels=["first", "middle", "last"])
    legend(figure)
    draws(figure, models, PRETRAINED)
    return figure


def _curves(axes: Axes, curves: Iterable[pd.DataFrame], look: Look) -> None:
    """The profile of a measure at each length of the prompt, the longest drawn thickest."""
    axes.axhline(1, color=REFERENCE, linestyle=":", linewidth=0.7)
    for place, curve in enumerate(curves):
        known = curve[curve["value"] > 0]
        if len(curve) >= ALL_PLACES:
            axes.plot(known["place"], known["value"], color=look.colour, linewidth=0.7 + 0.5 * place)
            low = known["low"].clip(lower=known["value"].min() / 2)
            axes.fill_between(known["place"], low, known["high"], color=look.colour, alpha=0.2, linewidth=0)
        else:
            rows = known.rename(columns={"value": "measured"})
            error_bars(axes, rows["place"], rows, look.colour, fmt=look.marker or "o", markersize=3.5)
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
