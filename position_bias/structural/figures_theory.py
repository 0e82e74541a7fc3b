"""Figures of the statements of Herasimchyk et al. 2026: four forces at finite depth, a dichotomy at infinite depth."""

from typing import Literal

import pandas as pd
from matplotlib.figure import Figure

from position_bias.drawing.looks import REFERENCE, SKY, VARIANTS, WINE, Look, legend
from position_bias.drawing.panels import curves, panels

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
    return figure
