"""Three measures of position bias on one window, and the curve between two of them, in pretrained decoders.

Our addition to Herasimchyk et al. 2026. Every number is a ratio: an effect at the beginning over that of the middle.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.language_models.names import shown_name
from position_bias.verdicts.registry import PRETRAINED
from position_card.drawing.intervals import error_bars, from_to, marks_across
from position_card.drawing.looks import MEASURES, REFERENCE, legend, model_looks, side_by_side
from position_card.drawing.panels import log_ticks, panels
from position_card.drawing.shown import draws
from position_card.drawing.style import PAGE

STEP = r"step of ([\d.]+) %"  # of networks whose effects are total variation
OF_EIGHTH = {  # trained decoders; copies with random weights are hollow
    "gradient": MEASURES["influence"]._replace(name="gradients (a step of 1 %)"),
    "replacement": MEASURES["replacement"]._replace(name="replacement (the whole step)", filled=True),
    "recall": MEASURES["recall"]._replace(name="recall"),
}
PALE = 0.35  # opacity of copies with random weights
ASIDE = 0.22  # lines between the marks of one model
FIRST_WORD = "first word / middle"
ENDS = {FIRST_WORD: "first word", "first eighth / middle": "first eighth of the prompt"}


def three_measures(table: pd.DataFrame, n: int) -> Figure:
    """A line for each decoder: its first eighth over the middle by three measures, and those of random weights, pale.

    `table` has the columns `curve.OF_TABLE`; shown are prompts of `n` tokens, and contexts of as many words, and of a
    decoder that has no such prompts its shortest ones.
    """
    table = _of_length(table, n)
    selection = _of_steps(table[table["statistic"] == "first eighth / middle"])
    ends = {selection["step"].min(): "gradient", selection["step"].max(): "replacement"}
    measure = selection["step"].map(ends).fillna(selection["network"].where(selection["network"] == "recall"))
    selection = selection.assign(measure=measure).dropna(subset=["measure", "value"])
    models = list(selection.loc[selection["measure"] != "recall", "model"].drop_duplicates())
    selection = selection[selection["model"].isin(models)]
    figure, axes = plt.subplots(figsize=(PAGE, 0.9 + 0.5 * len(models)), label=_finding(selection, len(models)))
    places = dict(zip(models, range(len(models)), strict=True))
    for name, look, aside in side_by_side(OF_EIGHTH, ASIDE):
        for weights, opacity in (("trained", 1.0), ("random", PALE)):
            rows = selection[(selection["measure"] == name) & (selection["weights"] == weights)]
            at = rows["model"].map(places).astype(float) + aside
            inside = look.colour if weights == "trained" else "white"
            marks_across(axes, at, rows, "value", look, markerfacecolor=inside, alpha=opacity)
    _ratio(axes, "x")
    axes.set(xlabel="effect of the first eighth over that of the middle, log scale", ylim=(len(models) - 0.5, -0.5))
    axes.set_yticks(range(len(models)), [shown_name(model) for model in models])
    units = f"n = {from_to(selection['documents'].astype(int))} documents or contexts"
    note = f"{units}; bars: 95 % intervals; pale: random weights; no mark: recalls too little"
    legend(figure, [look.entry(linestyle="") for look in OF_EIGHTH.values()], settings=note)
    draws(figure, models, PRETRAINED)
    return figure


def curve(table: pd.DataFrame, n: int) -> Figure:
    """Two panels with a line for each decoder: the effect of the beginning over the middle, by the size of the step.

    `table` as for `three_measures`.
    """
    table = _of_length(table, n)
    of_ends = table["statistic"].isin(ENDS) & (table["weights"] == "trained")
    selection = _of_steps(table[of_ends]).dropna(subset=["step", "value"])
    looks = model_looks(selection["model"])
    whole = selection[selection["step"] == selection["step"].max()]
    figure, row = panels(
        _primacy_at_both_ends(selection, whole),
        2.6,
        ENDS,
        x="way to another text, %, log scale",
        y="effect over that of the middle,\nlog scale",
        sharey=True,
    )
    for statistic, axes in row.items():
        for place, (model, look) in enumerate(looks.items()):
            rows = selection[(selection["statistic"] == statistic) & (selection["model"] == model)].sort_values("step")
            at = rows["step"] * 1.06 ** (place - (len(looks) - 1) / 2)
            axes.plot(at, rows["value"], color=look.colour, linestyle=look.line, linewidth=0.9)
            bars = rows.rename(columns={"value": "measured"})
            error_bars(axes, at, bars, look.colour, fmt=look.marker, markersize=3.5, markerfacecolor=look.inside)
        axes.set_xscale("log")
        axes.set_xticks(steps := sorted(selection["step"].unique()), [f"{step:g}" for step in steps])
        axes.minorticks_off()
        _ratio(axes, "y")
    documents = f"n = {from_to(whole['documents'].astype(int))} documents; bars: 95 % intervals"
    legend(figure, [look._replace(name=shown_name(model)).entry() for model, look in looks.items()], settings=documents)
    draws(figure, looks, PRETRAINED)
    return figure


def _of_length(table: pd.DataFrame, n: int) -> pd.DataFrame:
    """The rows of prompts of `n` tokens; of a decoder that has none as its text moves, those of its shortest ones."""
    moved = table[table["network"].str.match(STEP)]
    lengths = moved.groupby("model")["n"].agg(lambda of_model: n if (of_model == n).any() else of_model.min())
    return table[table["n"] == table["model"].map(lengths)]


def _of_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column `step`: the part of the way in percent, missing of all that has none."""
    return rows.assign(step=rows["network"].str.extract(f"^{STEP}$")[0].astype(float))


def _finding(selection: pd.DataFrame, decoders: int) -> str:
    """In how many of the decoders that are drawn the first eighth outweighs the middle, by each measure."""
    above = selection[(selection["weights"] == "trained") & (selection["low"] > 1)].groupby("measure").size()
    counts = [f"by {'gradients' if name == 'gradient' else name} in {above.get(name, 0)}" for name in OF_EIGHTH]
    window = f"The first eighth of {from_to(selection['n'])} tokens outweighs the middle"
    return f"{window} {', '.join(counts)} of {decoders} decoders"


def _primacy_at_both_ends(selection: pd.DataFrame, whole: pd.DataFrame) -> str:
    """In how many decoders the first word outweighs the middle after the least step, and after the whole one."""
    least = selection[selection["step"] == selection["step"].min()]
    above = [rows[(rows["statistic"] == FIRST_WORD) & (rows["low"] > 1)]["model"].nunique() for rows in (least, whole)]
    first, last = f"a push of {least['step'].min():g} %", "another text"
    return (
        f"The first word outweighs the middle in {above[0]} of {selection['model'].nunique()} decoders by {first}, "
        f"in {above[1]} by {last} (prompts of {from_to(selection['n'])} tokens)"
    )


def _ratio(axes: Axes, of: str) -> None:
    """A logarithmic axis of ratios, with a line at that of the middle itself."""
    line, scale, axis = (
        (axes.axvline, axes.set_xscale, axes.xaxis) if of == "x" else (axes.axhline, axes.set_yscale, axes.yaxis)
    )
    line(1, color=REFERENCE, linestyle=":", linewidth=0.8, zorder=0)
    scale("log")
    log_ticks(axis)
