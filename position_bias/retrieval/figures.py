"""The figure of `retrieval`: what rollout predicts of the label that is named, beside what networks name."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.drawing.intervals import counted, error_bars, marks_by
from position_bias.drawing.looks import BLACK, BLUE, GREEN, ORANGE, REFERENCE, VERMILION, Look, legend
from position_bias.drawing.style import PAGE
from position_bias.retrieval.agreement import NETWORK, OBSERVED, agreement, as_shares, shallowest
from position_bias.statistics import means

LABEL = "Which label retrieval networks name where no item matches, and what rollouts predict"
LOOKS = {
    "share": Look("observed, no item matches", BLACK, "o", "-", width=1.8),
    "accuracy": Look("observed accuracy, an item matches", ORANGE, "D", ":"),
    "measured": Look("predicted by measured rollout", BLUE, "s", "--"),
    "arch": Look("predicted by rollout of the architecture", GREEN, "^", "-."),
    "frozen": Look("frozen attention, a diagnostic", VERMILION, "X", ":"),
}
HOLLOW = Look("in (a): with residual connections", BLACK, "o", "", filled=False)
GAPS = ("arch", "measured", "frozen")  # predictors whose gaps are shown
SLOPES = ("measured", "arch")
BIASED = "last"  # the study trained on answers at the last item


def prior(table: pd.DataFrame, level: float) -> Figure:
    """(a) Gaps of all networks; (b, c) gaps by slope of the decay mask; (d, e) profiles; (f) a counterexample.

    `table` joins tables of profiles (`agreement.COLUMNS`). Bars are t-intervals over seeds; hollow marks of (a) are
    networks with residual connections. All profiles are shares of what the positions have together.
    """
    found = agreement(table)
    few = shallowest(found)
    figure, panels = plt.subplots(2, 3, figsize=(PAGE, 4.2), label=LABEL)
    _gaps(panels[0, 0], found, level)
    wirings = {"plain": "without residual", "residual": "with residual"}
    for letter, axes, (study, wiring) in zip("bc", panels[0, 1:], wirings.items(), strict=True):
        _slopes(axes, few[few["study"] == study], level)
        axes.set_title(f"({letter}) decay mask, {wiring}")
    decays = few[(few["study"] == "residual") & (few["encoding"] == "decay")]
    slope = float(decays["slope"].max())
    steepest = str(decays.loc[decays["slope"] == slope, "network"].iloc[0])
    with_match, without = ("share", "accuracy", "measured"), ("share", "measured", "frozen")
    profiles = shallowest(table)
    for axes, study, network, quantities, title in (
        (panels[1, 0], "residual", steepest, with_match, f"(d) slope {slope:g}, with residual"),
        (panels[1, 1], "residual", "sin", with_match, "(e) sinusoids, with residual"),
        (panels[1, 2], BIASED, "none", without, "(f) trained on the last item"),
    ):
        _profiles(axes, profiles[(profiles["study"] == study) & (profiles["network"] == network)], quantities, level)
        axes.set_title(title)
    panels[1, 0].set_ylabel("share of all positions")
    legend(figure, [look.entry() for look in (*LOOKS.values(), HOLLOW)], settings=counted(table))
    return figure


def _gaps(axes: Axes, found: pd.DataFrame, level: float) -> None:
    """Observed against predicted gaps, a mark for each network and predictor."""
    axes.axline((0, 0), slope=1, color=REFERENCE, linewidth=0.8, linestyle=":")
    axes.axhline(0, color=REFERENCE, linewidth=0.6)
    axes.axvline(0, color=REFERENCE, linewidth=0.6)
    keys = [*NETWORK, "predictor"]
    seen = means(found, keys, "observed", level).rename(columns={"mean": "measured"})
    seen = seen.assign(predicted=means(found, keys, "gap", level)["mean"])
    for predictor in GAPS:
        look = LOOKS[predictor]
        for residual, of_kind in seen[seen["predictor"] == predictor].groupby("residual"):
            inside = "white" if residual else look.colour
            mark = {"fmt": look.marker, "markerfacecolor": inside, "markersize": 3.5}
            error_bars(axes, of_kind["predicted"], of_kind, look.colour, **mark)
    axes.set(title="(a) first less last, all networks", xlabel="predicted difference", ylabel="observed difference")


def _slopes(axes: Axes, found: pd.DataFrame, level: float) -> None:
    """Gaps against the slope of the decay mask; 0 is the causal mask alone."""
    axes.axhline(0, color=REFERENCE, linewidth=0.6)
    found = found[found["encoding"].isin(["none", "decay"])]
    observed = found[found["predictor"] == SLOPES[0]].assign(predictor=OBSERVED, gap=found["observed"])
    gaps = pd.concat([observed, found]).rename(columns={"gap": "value"})
    looks = {name: LOOKS[name] for name in (OBSERVED, *SLOPES)}
    marks_by(axes, gaps, "slope", level, "predictor", looks, 0.006)
    axes.set(xlabel="slope", ylabel="first less last")


def _profiles(axes: Axes, table: pd.DataFrame, quantities: tuple[str, ...], level: float) -> None:
    """Shares of the positions that each quantity of a network has, over seeds."""
    wide = table.pivot(index=["quantity", "seed"], columns="position", values="value")
    shares = pd.DataFrame(as_shares(wide.to_numpy()), wide.index, wide.columns).melt(ignore_index=False).reset_index()
    marks_by(axes, shares, "position", level, "quantity", {name: LOOKS[name] for name in quantities}, 0.15)
    axes.set_xlabel("position of the item")
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
