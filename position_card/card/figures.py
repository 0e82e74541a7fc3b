"""The figure of a position card: the answer on top, then influence and replacement, then what explains them.

Several models have a row each of residual mixing, influence beside what rollouts predict, and attention.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from position_card.card.profiles import BASELINES, EIGHTHS, ENDS, QUESTIONS, RECALL, REPLACEMENT, Interval
from position_card.drawing.intervals import error_bars
from position_card.drawing.looks import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    INDIGO,
    OLIVE,
    PINK,
    REFERENCE,
    TEAL,
    VARIANTS,
    Look,
    balanced,
    legend,
    present,
    shades,
)
from position_card.drawing.panels import layer_axis, log_ticks
from position_card.drawing.style import PAGE
from position_card.rollout.parts import middle_half, parts_of_places
from position_card.rollout.variants import INFLUENCE, SAME_FOR_EVERY_ESTIMATOR

MIXINGS = {  # estimators of residual mixing, by marks, and by colours that no rollout has
    "frobenius": Look(r"$\lambda$, whole prompt", INDIGO, "o", width=1.0),
    "token": Look(r"$\lambda$, mean over tokens", TEAL, "s", width=1.0, filled=False),
    "backward": Look(r"$\lambda$ from gradients (for comparison)", OLIVE, "^", width=1.0, filled=False),
}
CURVES = {  # in the order of the legend; profile.csv has the other rollouts and baselines
    "influence": Look("measured by gradients", VARIANTS["d"].colour, "", width=2.0),
    "b": Look("residual-aware rollout (b)", BLUE, "", width=1.4),
    "mean-query-key": Look("rollout of mean query and key", BLUE, "", "--"),
    "mean-attention": Look("rollout of mean attention", PINK, "", width=0.8),
    "uniform": Look("uniform", REFERENCE, "", width=0.6),
}
REPLACEMENT_LOOK = Look("measured by replacement, with the same middle", BLACK, "D", "")
SINK = 2.0  # times as much as before: then the mean attention to the farthest token is named
UNIFORM: dict[str, Any] = {"color": "0.65", "linestyle": "--", "linewidth": 1.2, "zorder": 3}  # in front
MIDDLE: dict[str, Any] = {"color": "0.94", "linewidth": 0, "zorder": 0}  # the half that the ends are compared with
MEAN: dict[str, Any] = {"color": BLACK, "linestyle": "-", "linewidth": 1.2}
ABOVE: dict[str, Any] = {"handlelength": 1.8, "loc": "lower center", "bbox_to_anchor": (0.4, 1.0)}  # a panel's legend
TIMES = "\N{MULTIPLICATION SIGN}"
ESTIMATOR = "frobenius"  # of the lambda that the rollouts are drawn with
PANELS = (1.0, 1.6, 1.1)  # how wide they are, relative to each other
ROW, INFLUENCE_ROW, ANSWER_ROW = 1.95, 1.9, 1.75  # inches: the height of panels of a model, from the last row on
TITLE_ROOM = 0.1  # inches
RECALL_LABEL = "probability of the right word"
ROOM = 0.75  # of the width of a panel and its share of the margins, for a title
Tables = Mapping[str, pd.DataFrame]  # those of the card of one model, by name


def card(tables: Tables, title: str, text: str) -> Figure:
    """Draw the card of one model: what it finds again, what its predictions depend on, and what explains that.

    The answer is on top, where it was measured: what it answers by the place of a document, and recall by place. Below
    are influence by gradients with what rollouts predict of it, and the effect of replacement, which has its mean in
    the middle half where influence has it. Last come residual mixing by layer, mean attention by distance, and the loss
    by position. All are of the longest prompts; bands and bars are bootstrap intervals of the tables. Beside the names
    of measures is what both ends have over the middle, with the interval that `statistics` has of it.
    """
    tables = _of_longest(tables)
    answers = [(draw, tables[kind], width) for kind, draw, width in ANSWERS if kind in tables]
    heights = [*[ANSWER_ROW] * bool(answers), INFLUENCE_ROW, ROW]
    whole = Figure(figsize=(PAGE, sum(heights) + TITLE_ROOM), label=title)
    FigureCanvasAgg(whole)  # in no window, since a notebook may have others open
    *above, middle, below = whole.subfigures(len(heights), 1, squeeze=False, height_ratios=heights).flat
    for part in above:
        of_answers = part.subplots(1, len(answers), squeeze=False, width_ratios=[width for *_, width in answers])
        for axes, (draw, table, _) in zip(of_answers.flat, answers, strict=True):
            draw(axes, table, tables["statistics"])
    axes = middle.subplots()
    _influence(axes, tables)
    _influence_limits([axes], [tables])
    axes.set_title(f"What the prediction depends on: {_prompts(tables)} of {text}", loc="left")
    _legend_beside(axes, _influence_entries([tables], tables["statistics"]))
    draws = [(_lambda, tables["layers"], 1.0), (_attention, tables["distances"], 1.1)]
    draws += [(_loss, tables["loss"], 0.8)] if "loss" in tables else []
    panels = below.subplots(1, len(draws), squeeze=False, width_ratios=[width for *_, width in draws])
    for panel, (draw_panel, table, _) in zip(panels.flat, draws, strict=True):
        draw_panel(panel, table)
    _lambda_limits(panels[0, :1], [tables])
    for axis in (panels[0, 1].xaxis, panels[0, 1].yaxis):
        log_ticks(axis)
    _legends_above(panels[0, 0], panels[0, 1], [tables])
    legend(whole)
    return whole


def comparison(models: Mapping[str, Tables], text: str) -> Figure:
    """Draw residual mixing, influence and attention of several models, a row for each of them by its name.

    Panels of a column share the scale of their ordinates; what is drawn of each model is what `card` draws.
    """
    models = {name: _of_longest(tables) for name, tables in models.items()}
    tables_of_models = list(models.values())
    figure = Figure(figsize=(PAGE, 1.0 + ROW * len(models)), label=f"Position cards of {', '.join(models)}, on {text}")
    FigureCanvasAgg(figure)
    rows = figure.subplots(len(models), 3, squeeze=False, sharey="col", width_ratios=PANELS)
    for row, (name, tables) in zip(rows, models.items(), strict=True):
        _lambda(row[0], tables["layers"])
        _influence(row[1], tables)
        _annotate_ends(row[1], tables)
        width = ROOM * PAGE * PANELS[1] / sum(PANELS)
        row[1].set_title("\n".join(balanced(f"{name}: {_prompts(tables)}", width)))
        _attention(row[2], tables["distances"])
        for axes in row:
            axes.tick_params(labelleft=True)
    _lambda_limits(rows[:, 0], tables_of_models)
    _influence_limits(rows[:, 1], tables_of_models)
    for axes in rows[:, 2]:
        log_ticks(axes.xaxis)
        log_ticks(axes.yaxis)
    _legends_above(rows[0, 0], rows[0, 2], tables_of_models)
    legend(figure, below=_influence_entries(tables_of_models))
    return figure


def _of_longest(tables: Tables) -> Tables:
    """Return the rows of the longest prompts; statistics are of several lengths, each measure of its longest."""
    statistics = {"statistics": tables["statistics"]} if "statistics" in tables else {}
    return {kind: table[table["n"] == table["n"].max()] for kind, table in tables.items()} | statistics


def _prompts(tables: Tables) -> str:
    """Say how many prompts influence is of, and how long they are."""
    profile = tables["profile"]
    return f"{profile['prompts'].max()} prompts of {profile['position'].max() + 1} tokens"


def _influence_entries(tables_of_models: Sequence[Tables], statistics: pd.DataFrame | None = None) -> list[Line2D]:
    """Return lines and marks of influence for a legend; with what both ends have over the middle by `statistics`."""
    variants = {variant for tables in tables_of_models for variant in tables["profile"]["variant"]}
    looks = present(variants & {*CURVES}, CURVES)
    looks_of_entries = [
        look._replace(name=_with_ends(look.name, statistics, name, ENDS)) for name, look in looks.items()
    ]
    if any("replacement" in tables for tables in tables_of_models):
        looks_of_entries.insert(
            1, REPLACEMENT_LOOK._replace(name=_with_ends(REPLACEMENT_LOOK.name, statistics, REPLACEMENT, ENDS))
        )
    return [look.entry() for look in looks_of_entries]


def _with_ends(label: str, statistics: pd.DataFrame | None, variant: str, ends: Sequence[str]) -> str:
    """Return a label with what both ends have over the middle by a measure below it, where this is known."""
    if statistics is None:
        return label
    intervals_by_end = {} if variant in BASELINES else {end: _intervals(statistics, variant, end) for end in ends}
    lines = [
        f"{end.removesuffix(' / middle')} {TIMES}{of}"
        for end, intervals in intervals_by_end.items()
        for of in intervals
    ]
    return "\n".join([label.replace(", ", ",\n"), *lines])


def _intervals(statistics: pd.DataFrame, variant: str, statistic: str) -> list[Interval]:
    """Return what `statistics` has of the longest prompts; nothing where it is not known."""
    rows = statistics[(statistics["variant"] == variant) & (statistics["statistic"] == statistic)]
    rows = rows[rows["estimator"] == SAME_FOR_EVERY_ESTIMATOR].dropna(subset="value")
    return [
        Interval(*map(float, row)) for row in rows[rows["n"] == rows["n"].max()][["value", "low", "high"]].to_numpy()
    ]


def _legend_beside(axes: Axes, entries: Sequence[Artist]) -> None:
    axes.legend(handles=list(entries), loc="center left", bbox_to_anchor=(1.0, 0.5))


def _legends_above(lambdas: Axes, attention: Axes, tables_of_models: Sequence[Tables]) -> None:
    kinds = present((kind for tables in tables_of_models for kind in set(tables["layers"]["estimator"])), MIXINGS)
    lambdas.legend(handles=[look.entry() for look in kinds.values()], **ABOVE)
    handles, labels = zip(*_attention_entries(tables_of_models), strict=True)
    attention.legend(handles, labels, handler_map={tuple: HandlerTuple(ndivide=None, pad=0)}, **ABOVE)


def _lambda(axes: Axes, layers: pd.DataFrame) -> None:
    for estimator, look in present(layers["estimator"], MIXINGS).items():
        rows = layers[layers["estimator"] == estimator]
        axes.fill_between(rows["layer"], rows["low"], rows["high"], color=look.colour, alpha=0.2, linewidth=0)
        axes.plot(
            rows["layer"],
            rows["value"],
            look.line,
            color=look.colour,
            linewidth=look.width,
            marker=look.marker,
            markersize=3,
            markerfacecolor=look.colour if look.filled else "none",
        )
    axes.set_ylabel(r"$\lambda$ = |a| / (|x| + |a|)")
    layer_axis(axes, layers["layer"])


def _influence(axes: Axes, tables: Tables) -> None:
    profiles = _visible_rows(tables["profile"])
    for variant, look in present(profiles["variant"], CURVES).items():
        rows = profiles[profiles["variant"] == variant]
        position = rows["position"]
        if variant != "uniform":
            axes.fill_between(position, rows["low"], rows["high"], color=look.colour, alpha=0.2, linewidth=0)
        front = 1.5 if variant == INFLUENCE else 2.0
        axes.plot(position, rows["value"], look.line, color=look.colour, linewidth=look.width, zorder=front)
    of_middle = middle_half(int(profiles["position"].max()) + 1)
    axes.axvspan(of_middle.start - 0.5, of_middle.stop - 0.5, **MIDDLE)
    influence = _measured_influence(tables)
    last, mean = len(influence) - 1, influence[of_middle].mean()
    axes.hlines(mean, of_middle.start, of_middle.stop - 1, color=BLACK, linewidth=0.8, zorder=3)
    axes.plot([0, last], influence[[0, last]], "o", color=CURVES[INFLUENCE].colour, markersize=3.5, zorder=1.5)
    if "replacement" in tables:
        rows = tables["replacement"].rename(columns={"value": "measured"})
        inside = rows["position"].between(of_middle.start, of_middle.stop - 1)
        scale = mean / rows.loc[inside, "measured"].mean()
        rows[["measured", "low", "high"]] *= scale
        error_bars(
            axes, rows["position"], rows, REPLACEMENT_LOOK.colour, fmt=REPLACEMENT_LOOK.marker, markersize=3, zorder=3
        )
    axes.set_yscale("log")
    axes.set_xlabel("token position")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_ylabel("share of influence")


def _measured_influence(tables: Tables) -> NDArray[np.float64]:
    """Return measured influence by position, [n]."""
    profile = tables["profile"]
    return profile[profile["variant"] == INFLUENCE].set_index("position")["value"].to_numpy()


def _annotate_ends(axes: Axes, tables: Tables) -> None:
    """Say beside the first and the last token what influence they have over the middle half, by `statistics`."""
    influence = _measured_influence(tables)
    of_middle, last = middle_half(len(influence)), len(influence) - 1
    below_all = influence[: of_middle.start].min()  # of the line near the first token
    for end, place, height, aside, (side, edge) in (
        (ENDS[0], 0, below_all, (3, -5), ("left", "top")),
        (ENDS[1], last, influence[last], (-5, 3), ("right", "bottom")),
    ):
        for interval in _intervals(tables["statistics"], INFLUENCE, end):
            annotation = axes.annotate(
                f"{TIMES}{interval.value:.3g}",
                (place, height),
                xytext=aside,
                textcoords="offset points",
                ha=side,
                va=edge,
                color=CURVES[INFLUENCE].colour,
                zorder=4,
            )
            annotation.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5})


def _visible_rows(profiles: pd.DataFrame) -> pd.DataFrame:
    return profiles[profiles["estimator"].isin([ESTIMATOR, "none"]) & profiles["variant"].isin(CURVES)]


def _attention(axes: Axes, attention: pd.DataFrame) -> None:
    beyond = attention[(attention["distance"] > 0) & (attention["value"] > 0)]
    layers = sorted(beyond["layer"].unique())
    colours = shades(layers)
    uniform = uniform_attention(int(attention["distance"].max()) + 1)
    axes.plot(np.arange(1, len(uniform)), uniform[1:], **UNIFORM)
    for layer in layers:
        rows = beyond[beyond["layer"] == layer]
        axes.plot(rows["distance"], rows["value"], color=colours[layer], linewidth=0.6)
    if len(layers) > 1:
        mean = attention[attention["distance"] > 0].groupby("distance")["value"].mean()
        axes.plot(mean.index, np.where(mean > 0, mean, np.nan), **MEAN)
        _sink(axes, mean)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("distance (tokens)")
    axes.set_ylabel("mean attention")


def _sink(axes: Axes, mean: pd.Series) -> None:
    """Name the right end, where only the first token is so far behind, if attention there is much above the middle."""
    if mean.iloc[-1] > SINK * mean.iloc[len(mean) // 2]:
        place = (mean.index[-1], mean.iloc[-1])
        axes.annotate("sink: first token", place, (-4, 6), textcoords="offset points", ha="right", va="bottom")


def _questions(axes: Axes, answers: pd.DataFrame, statistics: pd.DataFrame) -> None:
    """Draw the probability of the answer by the place of the document that holds it: each question, and the means."""
    by_number = answers[answers["place"].str.isdigit()]
    by_place = by_number.pivot(index="place", columns="record", values="log_probability").sort_index(
        key=lambda of: of.astype(int)
    )
    places, means = by_place.index.astype(int).to_numpy(), np.exp(by_place.mean(axis=1)).to_numpy()
    axes.plot(places, np.exp(by_place), color=GREY, linewidth=0.5)
    axes.plot(places, means, color=GREEN, marker="o", markersize=4, linewidth=2.0)
    axes.set_yscale("log")
    axes.set_ylim(bottom=axes.get_ylim()[0] / 10)  # room for what the ends have over the middle
    axes.set_xlim(places[0] - 0.4, places[-1] + 0.4)
    axes.set_xticks([1, (1 + places[-1]) / 2, places[-1]], ["first", "middle", "last"])
    log_ticks(axes.yaxis)
    axes.set_xlabel("place of the document")
    axes.set_ylabel("probability of the answer")
    axes.set_title(f"What it answers: {by_place.shape[1]} questions", loc="left")
    for end, place, side in zip(ENDS, (0.0, 1.0), ("left", "right"), strict=True):
        for interval in _intervals(statistics, QUESTIONS, end):
            style: dict[str, Any] = {"ha": side, "va": "bottom", "color": GREEN}
            axes.text(place, 0.02, f"{TIMES}{interval.value:.3g}", transform=axes.transAxes, **style)


def _recall(axes: Axes, recall: pd.DataFrame, statistics: pd.DataFrame) -> None:
    """Draw the probability of the right word by place, with its means at both ends and in the middle half."""
    place, probability = recall["place"].to_numpy(), recall["probability"].to_numpy()
    axes.fill_between(place, recall["probability low"], recall["probability high"], color=GREEN, alpha=0.2, linewidth=0)
    axes.plot(
        place, probability, color=GREEN, linewidth=1.0, label=_with_ends(RECALL_LABEL, statistics, RECALL, EIGHTHS)
    )
    axes.plot(place, recall["accuracy"], "o", color=GREY, markersize=2, label="share of right words (accuracy)")
    axes.plot(place, recall["prior"], color=REFERENCE, linewidth=0.8, linestyle="-.", label="prior")
    parts = parts_of_places(len(place))
    of_middle = place[parts["middle"]]
    axes.axvspan(of_middle[0] - 0.5, of_middle[-1] + 0.5, **MIDDLE)
    for part in parts.values():
        among, mean = place[part], probability[part].mean()
        axes.hlines(mean, among[0] - 0.4, among[-1] + 0.4, color=BLACK, linewidth=1.5, zorder=3)
    axes.plot([], [], color=BLACK, linewidth=1.5, label="mean of eighth, of middle half")
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("place of the passage (tokens)")
    axes.set_ylabel("share, or probability")
    contexts, n = int(recall["prompts"].max()), int(recall["n"].max())
    axes.set_title(f"What it finds again: random words in {contexts} contexts of {n:,} tokens", loc="left")
    handles, _ = axes.get_legend_handles_labels()
    _legend_beside(axes, handles)


def _attention_entries(tables_of_models: Sequence[Tables]) -> list[tuple[Any, str]]:
    """Handles and names of the lines of attention, those of layers in three of their shades."""
    depths = {int(tables["distances"]["layer"].max()) for tables in tables_of_models}
    deepest, equal_depths = max(depths), len(depths) == 1
    label = f"layers 1 to {deepest}" if equal_depths else "first to last layer"
    shade_lines = tuple(Line2D([], [], color=colour, linewidth=0.9) for colour in shades(range(3)).values())
    of_layers = (shade_lines, f"{label}, light to dark") if deepest > 1 else (shade_lines[1], "layer 1")
    mean = [(Line2D([], [], **MEAN), "mean of layers")] if deepest > 1 else []
    return [of_layers, *mean, (Line2D([], [], **UNIFORM), "uniform attention")]


def _lambda_limits(panels: Iterable[Axes], tables_of_models: Sequence[Tables]) -> None:
    top = max(tables["layers"]["high"].max() for tables in tables_of_models)
    for axes in panels:
        axes.set_ylim(0, 1.08 * top)


def _influence_limits(panels: Iterable[Axes], tables_of_models: Sequence[Tables]) -> None:
    """Give all panels one scale of influence, with room for the measurements: rollouts may lie far from them."""
    profiles = pd.concat([_visible_rows(tables["profile"]) for tables in tables_of_models])
    reference = profiles[profiles["variant"].isin([INFLUENCE, "uniform"])]
    low, high = reference["low"].min() / 5, 3 * reference["high"].max()
    for axes in panels:
        axes.set_ylim(low, max(high, axes.get_ylim()[1]))
    for axes in panels:
        log_ticks(axes.yaxis)


def _loss(axes: Axes, loss: pd.DataFrame) -> None:
    """Draw the loss of each position."""
    position = loss["position"]
    axes.fill_between(position, loss["low"], loss["high"], color=INDIGO, alpha=0.2, linewidth=0)
    axes.plot(position, loss["value"], color=INDIGO, linewidth=1.0)
    axes.set_ylim(0, 1.05 * loss["high"].max())
    axes.set_xlabel("token position")
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylabel("loss (nats)")


# What a card answers first: the table that each panel is drawn of, from left to right, and how wide it is.
ANSWERS: tuple[tuple[str, Callable[[Axes, pd.DataFrame, pd.DataFrame], None], float], ...] = (
    (QUESTIONS, _questions, 1.0),
    (RECALL, _recall, 2.0),
)


def uniform_attention(n: int) -> NDArray[np.float64]:
    """Return the mean weight [n] at each distance of tokens that attend to themselves and all earlier ones alike.

    The mean of 1 / (i + 1) over the queries i >= d: (H_n - H_d) / (n - d), with harmonic numbers H. It falls with
    distance, because only late tokens have others far behind them.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    return (harmonic[n] - harmonic[:n]) / np.arange(n, 0, -1)
