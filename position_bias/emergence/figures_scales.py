"""Figures that show the same networks of Wu et al. 2025 after short training and after the paper's (our addition).

Tables have a column `scale`, and hold every network at the two scales that it is shown at.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from position_bias.emergence.checks import read_long_runs, read_run
from position_bias.emergence.figures import BIASES, GAP, VOCABULARIES, WIRING, mask_look
from position_bias.emergence.figures_attention import ROUNDED, token_axis
from position_bias.emergence.gaps import summary
from position_bias.emergence.runs import rounding_decides
from position_card.drawing.intervals import from_to, marked
from position_card.drawing.looks import BLUE, ENCODINGS, PAIRS, REFERENCE, VERMILION, Look, legend, side_by_side
from position_card.drawing.panels import panels
from position_card.drawing.style import PAGE, TYPE

PLAIN = f"{WIRING[False]} connections"  # of most networks
LINE = 0.15  # inches that a network takes, or the heading of several
AROUND = 0.65  # inches of axes and titles
ABREAST = 3  # panels of sinks in a row
PANEL = 1.5  # inches of one
SCALES = {
    "short": Look("short training", VERMILION, "o", "--", filled=False),
    "long": Look("the paper's training", BLUE, "s"),
}
UNIFORM = Look("exactly uniform attention", REFERENCE, "", ":")


class Shown(NamedTuple):
    """A network, by what tells it from others in a table; how it is tested is none of that."""

    vocabulary: str
    study: str
    bias: str
    mask: str
    encoding: str
    residual: bool
    depth: int


NETWORK = [*Shown._fields]


def at_both(short: pd.DataFrame, long: pd.DataFrame) -> pd.DataFrame:
    """The rows of two tables of networks that both have, with a column `scale`: short or long."""
    both = short[NETWORK].drop_duplicates().merge(long[NETWORK].drop_duplicates())
    parts = zip(SCALES, (short, long), strict=True)
    return pd.concat([table.merge(both).assign(scale=name) for name, table in parts], ignore_index=True)


def scales(curves: list[Path], sinks: list[Path], evidence: list[Path], threshold: float, level: float) -> Figure:
    """Draw `gaps` of the networks that this run and evidence/ both have."""
    short, long = read_run(curves, sinks, threshold), read_long_runs(evidence, threshold)["paper"]
    return gaps(at_both(short.gaps, long.gaps), level)


def scales_sinks(curves: list[Path], sinks: list[Path], evidence: list[Path], threshold: float, level: float) -> Figure:
    """Draw `sinks_at_both` of the networks that this run and evidence/ both have."""
    short, long = read_run(curves, sinks, threshold), read_long_runs(evidence, threshold)["paper"]
    return sinks_at_both(at_both(short.sinks, long.sinks), level)


def gaps(by_seed: pd.DataFrame, level: float) -> Figure:
    """Accuracy gap of each pair, a line for each network: mean, t-interval over seeds, and every seed, at both scales.

    Networks that are trained or wired alike stand together, below a heading. `by_seed` has columns NETWORK, scale,
    seed, pair and gap. Raises ValueError where it is empty.
    """
    lines = _lines(_networks(by_seed))
    line_of = {network: line for line, (_, network) in enumerate(lines) if network}
    label = "Accuracy gaps of the same networks after short training and after the paper's training"
    titles = {pair: look.name.replace("\n", " ") for pair, look in PAIRS.items()}
    figure, row = panels(label, AROUND + LINE * len(lines), titles, sharey=True)
    for pair, axes in row.items():
        for look, aside, table in _scales(by_seed[by_seed["pair"] == pair], 0.34):
            means = summary(table, NETWORK, "gap", level)
            at = _places(means, line_of) + aside
            mark: dict[str, Any] = {"color": look.colour, "markerfacecolor": look.inside, "markersize": 3, "zorder": 4}
            axes.hlines(at, means["low"], means["high"], color=look.colour, linewidth=0.9, zorder=3)
            axes.plot(table["gap"], _places(table, line_of) + 1.75 * aside, "|", color=look.colour, markersize=3)
            axes.plot(means["gap"], at, look.marker, **mark)
        axes.axvline(0, color="black", linewidth=0.6, zorder=0)
        for line, (_, network) in enumerate(lines[1:], start=1):
            axes.axhline(line - 0.5, color=REFERENCE, linewidth=0.2 if network else 0.8, zorder=0)
        axes.margins(x=0.08)
        axes.locator_params(axis="x", nbins=4)  # so that their numbers do not touch
    left = row["first-middle"]
    left.set_yticks(range(len(lines)), [text for text, _ in lines])
    left.set_ylim(len(lines) - 0.5, -0.5)
    for text, (_, network) in zip(left.get_yticklabels(), lines, strict=True):
        text.set_fontweight("normal" if network else "bold")
    row["first-last"].set_xlabel(f"{GAP}  (right: bias to earlier)")
    legend(figure, [look.entry(linestyle="") for look in SCALES.values()], settings=_seeds(by_seed))
    return figure


def sinks_at_both(by_seed: pd.DataFrame, level: float) -> Figure:
    """The sink metric of every token at one threshold, a panel for each network, at both scales.

    `by_seed` has columns NETWORK, scale, seed, state, tau, token and value. Raises ValueError where it is empty.
    """
    networks = _networks(by_seed)
    columns = min(ABREAST, len(networks))
    rows = -(-len(networks) // columns)
    label = "Attention sinks of the same networks after short training and after the paper's training"
    size = (PAGE, AROUND + PANEL * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False, label=label)
    for axes, network in zip(grid.flat, networks, strict=False):
        _sink_panel(axes, by_seed[(by_seed[NETWORK] == list(network)).all(axis=1)], level)
        axes.set_title(_title(network))
        if rounding_decides(network.mask, by_seed["tau"].iloc[0]):
            axes.text(1, 1, ROUNDED.replace("\n", " "), transform=axes.transAxes, ha="right", va="top")
    grid[0, 0].set_ylim(bottom=0)
    for axes in grid.flat[len(networks) :]:
        axes.remove()
    for axes in grid.flat[max(0, len(networks) - columns) : len(networks)]:  # below which there is none
        axes.tick_params(which="both", labelbottom=True)
        axes.set_xlabel("token read (key)")
    figure.supylabel(f"attention sink, $\\tau = {by_seed['tau'].iloc[0]:g}$ (share of queries)", fontsize=TYPE)
    entries = [look.entry() for look in (*SCALES.values(), UNIFORM)]
    legend(figure, entries, settings=_seeds(by_seed[by_seed["state"] == "trained"]))
    return figure


def _sink_panel(axes: Axes, table: pd.DataFrame, level: float) -> None:
    for look, aside, trained in _scales(table[table["state"] == "trained"], 0.3):
        means = summary(trained, ["token"], "value", level).sort_values("token")
        at = means["token"] + aside
        axes.vlines(at, means["low"], means["high"], color=look.colour, linewidth=0.8)
        axes.plot(at, means["value"], **marked(look._replace(width=0.8), range(len(means))))
    uniform = table[table["state"] == "uniform"].groupby("token")["value"].mean()
    axes.plot(uniform.index, uniform, UNIFORM.line, color=UNIFORM.colour, zorder=0)
    token_axis(axes, int(table["token"].max()))


def _scales(table: pd.DataFrame, step: float) -> Iterator[tuple[Look, float, pd.DataFrame]]:
    """The look of each scale, how far its marks stand aside, `step` apart, and its rows."""
    for scale, look, aside in side_by_side(SCALES, step):
        yield look, aside, table[table["scale"] == scale]


def _networks(table: pd.DataFrame) -> list[Shown]:
    """The networks of a table, each once, in its order. Raises ValueError where there is none."""
    found = [*map(Shown._make, table[NETWORK].drop_duplicates().itertuples(index=False, name=None))]
    if not found:
        raise ValueError("no network is there at both scales; evidence/ must have one that this run trains, too")
    return found


def _lines(networks: list[Shown]) -> list[tuple[str, Shown | None]]:
    """What is written beside each line, and its network: headings, which have none, and below them their networks."""
    lines: list[tuple[str, Shown | None]] = []
    for heading in dict.fromkeys(map(_heading, networks)):
        lines.append((heading, None))
        lines += [(_name(network), network) for network in networks if _heading(network) == heading]
    return lines


def _places(table: pd.DataFrame, line_of: Mapping[Shown, int]) -> np.ndarray:
    return np.array(
        [line_of[Shown._make(row)] for row in table[NETWORK].itertuples(index=False, name=None)], dtype=float
    )


def _name(network: Shown) -> str:
    """What tells a network from others below its heading: mask, encoding, depth, and vocabulary."""
    return ", ".join([_layers(network), *_vocabulary(network)])


def _title(network: Shown) -> str:
    """What tells a network from all others; how it differs from most is on a second line."""
    heading = _heading(network)
    unlike = [heading] if heading != PLAIN else []
    return ",\n".join(filter(None, (_layers(network), ", ".join([*unlike, *_vocabulary(network)]))))


def _layers(network: Shown) -> str:
    encoding = [ENCODINGS[network.encoding]] if network.encoding != "none" else []
    return ", ".join([mask_look(network.mask).name, *encoding, f"{network.depth} layers"])


def _vocabulary(network: Shown) -> list[str]:
    return [VOCABULARIES[network.vocabulary]] if network.vocabulary != "gaussian" else []


def _heading(network: Shown) -> str:
    if network.bias != "none":
        return f"trained on {BIASES[network.bias]}"
    return f"{WIRING[network.residual]} connections"


def _seeds(table: pd.DataFrame) -> str:
    """How many seeds the networks have at each scale."""
    return "; ".join(
        f"{look.name}: {from_to(of_scale.groupby(NETWORK)['seed'].nunique())} seeds"
        for look, _, of_scale in _scales(table, 0)
    )
