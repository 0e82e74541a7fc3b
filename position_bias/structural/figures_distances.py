"""Which rollouts of pretrained decoders are nearer to influence than a uniform profile, and which lambda is nearer.

Our addition to Herasimchyk et al. 2026. Distances are the Wasserstein distance and total variation.
"""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from position_bias.language_models.names import shown_name
from position_bias.verdicts.registry import PRETRAINED
from position_bias.verdicts.rule import HOLDS
from position_card.drawing.intervals import from_to, marks_across
from position_card.drawing.looks import BLACK, BLUE, PINK, REFERENCE, Look, legend, side_by_side
from position_card.drawing.panels import panels
from position_card.drawing.shown import draws

LATER = "pretrained, later: "  # how the names of these statistics begin
ROLLOUTS = {  # by the names that predictions give them
    "content-free": Look("content-free (b)", BLUE, "o"),
    "measured": Look("mean attention", PINK, "^"),
    "rotary": Look("by distance", BLUE, "s", filled=False),
}
LAMBDA = {"token": Look("lambda by token less lambda by norms", BLACK, "D")}
WASSERSTEIN, VARIATION, BY_LAMBDA = "W to influence", "total variation to influence", "W to influence by lambda"
PANELS = {
    WASSERSTEIN: "W, rollout less uniform",
    VARIATION: "total variation,\nrollout less uniform",
    BY_LAMBDA: "W by distance,\nlambda by token less by norms",
}
ASIDE = 0.22  # lines between the marks of one decoder


def distances(checks: pd.DataFrame) -> Figure:
    """Three panels with a line for each decoder and text: what is below 0 is nearer to the measured influence.

    `checks` is the table of verdicts, with the schema of `judge.COLUMNS` and its keys. Bars are 95 % bootstrap
    intervals over documents. A place without a mark was not measured: the tables of evidence/ lack total variation.
    """
    rows = checks[checks["statistic"].astype(str).str.startswith(LATER) & checks["measured"].notna()]
    rows = rows.assign(quantity=rows["statistic"].str.removeprefix(LATER))
    text = rows["setting"].str.extract(r"dataset = (?P<dataset>[^;]+)")["dataset"]
    rows = rows.assign(decoder=rows["model"].map(shown_name) + "\n" + text)
    models = rows["model"].unique().tolist()
    rows = rows.sort_values("model", key=lambda column: column.map(models.index), kind="stable")
    decoders = list(rows["decoder"].drop_duplicates())
    figure, row = panels(_finding(rows), 0.5 + 0.42 * len(decoders), PANELS, x="difference of distances", sharey=True)
    for quantity, axes in row.items():
        looks = LAMBDA if quantity == BY_LAMBDA else ROLLOUTS
        _differences(axes, rows[rows["quantity"] == quantity], looks, decoders)
    next(iter(row.values())).set_yticks([-place for place in range(len(decoders))], decoders)
    documents = f"n = {from_to(rows['n'].astype(int), 'document')}; bars are 95 % bootstrap intervals over documents"
    note = " All had been seen before." if (rows["seen_before"] > 0).all() else ""
    settings = f"{documents}. Where no mark stands, nothing was measured.{note}"
    legend(figure, [look.entry(linestyle="") for look in (*ROLLOUTS.values(), *LAMBDA.values())], settings=settings)
    draws(figure, rows["model"].unique(), PRETRAINED)
    return figure


def _finding(rows: pd.DataFrame) -> str:
    """In how many decoders each rollout is nearer than a uniform profile by W, on every text."""
    of_distance = rows[rows["quantity"] == WASSERSTEIN]
    nearer = of_distance.assign(nearer=of_distance["verdict"] == HOLDS).groupby(["network", "model"])["nearer"].all()
    counts = [f"{look.name} in {int(nearer.xs(network).sum())}" for network, look in ROLLOUTS.items()]
    models = of_distance["model"].nunique()
    return f"Of {models} decoders, a rollout is nearer to influence than a uniform profile: {', '.join(counts)}"


def _differences(axes: Axes, rows: pd.DataFrame, looks: Mapping[str, Look], decoders: list[str]) -> None:
    for network, look, aside in side_by_side(looks, ASIDE):
        of_network = rows[rows["network"] == network]
        places = [-aside - decoders.index(name) for name in of_network["decoder"]]
        marks_across(axes, places, of_network, "measured", look, markersize=3.5)
    axes.axvline(0, color=REFERENCE, linewidth=0.7, zorder=0)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.set_ylim(0.6 - len(decoders), 0.6)
    axes.tick_params(axis="y", length=0)
