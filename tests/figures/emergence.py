"""Tables that figures of emergence are given, with random numbers, and what each panel must show of them."""

import itertools
from functools import partial

import numpy as np
import pandas as pd

from position_bias.emergence import accuracy_gaps, figures, figures_attention, theory
from position_bias.emergence.task import RetrievalTask
from position_card.drawing.looks import PAIRS, depth_look, shades
from position_card.rollout.attention import causal_mask
from tests.drawn import Panel, of
from tests.measurements import file

NAMES, ENCODINGS = tuple(PAIRS), ("none", "rope", "decay")
OF_PAIRS = [(1, 2), (2, 1), (1, 4), (4, 1), (2, 4), (4, 2)]
NUMBERS = [("loss", 0, 0), *(("accuracy", *pair) for pair in OF_PAIRS)]
NUMBERS += [(quantity, answer, 0) for quantity in ("accuracy", "in_context") for answer in range(1, 5)]
LEVEL, TASK, CHANCES = 0.95, {}, [RetrievalTask().chance, RetrievalTask().copying_chance]
N, TAUS = 17, (0.15, 0.2, 0.25, 0.3)
WINDOWS = ("window5", "window9", "window13")


def table(value, **levels):
    """A row for every combination, with a random number."""
    found = pd.DataFrame(itertools.product(*levels.values()), columns=[*levels])
    return found.assign(**{value: np.random.default_rng(len(found)).uniform(0.3, 0.6, len(found))})


def trained(seeds=3, iterations=(2000,), **levels):
    """A table of training of networks that differ in `levels`."""
    network = {"vocabulary": ["gaussian"], "omega": ["none"], "study": ["plain"], "bias": ["none"], "mask": ["causal"]}
    network |= {"encoding": ENCODINGS, "residual": [False], "depth": [2], **levels}
    found = table("value", **network, seed=range(seeds), iteration=iterations, number=NUMBERS)
    found[["quantity", "answer", "twin"]] = pd.DataFrame(found.pop("number").tolist())
    return found


def depth_colour(depth):
    return depth_look(depth).colour


def both(seeds=3, **levels):
    """What a run trained, and what evidence/ keeps of the same networks after longer training: its table of curves."""
    kept = trained(seeds + 1, iterations=[50_000, 100_000], **levels)
    return trained(seeds, **levels), [accuracy_gaps.curves(kept).assign(scale="paper")]


def bars_of_gaps(longest, column, colour, shorter=None, **keys):
    """Every mean with its interval, and every seed, of what was trained longest; a paler mean of the shorter training.

    Each bar has its colour and stands with its pair.
    """
    (means, by_seed), bars = (of(table, **keys) for table in longest), {}
    drawn = [means[["gap", "low", "high"]], by_seed["gap"]]
    for table, shade in ((means, colour), (shorter, lambda value: figures.pale(colour(value)))):
        if table is not None:
            named = of(table, **keys)[[column, "pair", "gap"]].itertuples(index=False, name=None)
            bars |= {(shade(value), NAMES.index(pair)): gap for value, pair, gap in named}
            drawn.append(of(table, **keys)["gap"])
    if shorter is not None:  # whose intervals are drawn where they are all there is
        alone = of(shorter, **keys)
        drawn.append(alone.loc[~alone[column].isin(means[column]), ["low", "high"]])
    return Panel(drawn, bars=bars)


def at_end(curves):
    return accuracy_gaps.at_end(curves, LEVEL)


def fig2(seeds, wirings):
    """Of the second wiring, if any, nothing is kept."""
    tests = [both(seeds, residual=[wired], depth=depths, study=[STUDY[wired]]) for wired, depths in wirings.items()]
    own, kept = pd.concat([own for own, _ in tests]), tests[0][1]
    longest, shorter = at_end(kept[0]), at_end(accuracy_gaps.curves(own))[0]
    panels = [
        bars_of_gaps(longest, "depth", depth_colour, shorter, residual=residual, encoding=name)
        for residual, name in itertools.product(wirings, ENCODINGS)
    ]
    return figures.fig2(own, kept, LEVEL), panels


STUDY = {False: "plain", True: "residual"}


def by_bias():
    """The figure has its own order of encodings. Nothing is kept of one encoding, and that says so."""
    own, (kept,) = both(5, encoding=("rope", "none", "sin"), mask=["causal", "none"], bias=["ends"], residual=[True])
    kept = kept[kept["encoding"] != "sin"]
    panels = [
        bars_of_gaps(
            at_end(kept),
            "mask",
            lambda mask: figures.mask_look(mask).colour,
            at_end(accuracy_gaps.curves(own))[0],
            encoding=name,
        )
        for name in ("none", "sin", "rope")
    ]
    return figures.by_bias(own, [kept], LEVEL, TASK), panels


def windows():
    """Masks of one family, and nothing that was trained longer."""
    own = trained(mask=WINDOWS, study=["window"], encoding=["none"])
    colours = dict(zip(WINDOWS, shades(range(3)).values(), strict=True))
    panel = bars_of_gaps(at_end(accuracy_gaps.curves(own)), "mask", colours.get, encoding="none")
    return figures.by_bias(own, [], LEVEL, TASK), [panel]


def ceilings(sizes):
    """Gaps of these sizes: a line stands at the largest that is possible, where a bar comes near it."""
    tests = trained(encoding=["none"], bias=["first"])
    for size, (a, b) in zip(sizes, OF_PAIRS[::2], strict=True):
        for answer, twin, accuracy in ((a, b, 0.4 + size), (b, a, 0.4)):
            tests.loc[(tests["answer"] == answer) & (tests["twin"] == twin), "value"] = accuracy
    near = [sign for sign in (-1, 1) if any(sign * size > 0.4 for size in sizes)]
    levels = [0, *(sign * 4 / 7 * 31 / 32 for sign in near)]
    return figures.by_bias(tests, [], LEVEL, TASK), [Panel(levels=levels)]


def lines_of_gaps(longest, shorter, **keys):
    """Every mean with its interval, and every seed; the means of the shorter training, in paler lines."""
    (means, by_seed), before = (of(table, **keys) for table in longest), of(shorter, **keys)
    lines = {(look.colour, "-"): of(means, pair=pair)["gap"] for pair, look in PAIRS.items()}
    lines |= {(figures.pale(look.colour), "-"): of(before, pair=pair)["gap"] for pair, look in PAIRS.items()}
    return Panel([means[["gap", "low", "high"]], by_seed["gap"], before["gap"]], lines=lines)


def by_depth():
    """Of the deepest networks nothing is kept."""
    own, (kept,) = both(depth=(2, 4, 10))
    kept = kept[kept["depth"] < 10]
    answers = accuracy_gaps.by_position(trained(4, depth=(2, 4))).assign(scale="paper")
    longest, shorter = at_end(kept), at_end(accuracy_gaps.curves(own))[0]
    accuracy, before = (accuracy_gaps.accuracies(table, LEVEL) for table in (answers, accuracy_gaps.by_position(own)))
    above, below = [], []
    for name in ENCODINGS:
        above.append(lines_of_gaps(longest, shorter, encoding=name))
        long, short = (of(table, encoding=name) for table in (accuracy, before))
        lines = {(depth_colour(depth), "-"): of(long, depth=depth)["accuracy"] for depth in (2, 4)}
        lines |= {(figures.pale(depth_colour(depth)), "-"): of(short, depth=depth)["accuracy"] for depth in (2, 4, 10)}
        below.append(Panel([long[["accuracy", "low", "high"]], short["accuracy"]], lines=lines, levels=CHANCES))
    return figures.by_depth(own, [kept], [answers], LEVEL, TASK), [*above, *below]


def released_code():
    """Both settings beside each other; the released one has fewer depths yet."""
    printed, released = (accuracy_gaps.curves(trained(depth=depths)).assign(scale="paper") for depths in ((2, 4), (2,)))
    sides, panels = [at_end(table) for table in (printed, released)], []
    for name, (means, by_seed) in itertools.product(ENCODINGS, sides):
        panels.append(Panel([of(means, encoding=name)[["gap", "low", "high"]], of(by_seed, encoding=name)["gap"]]))
    return figures.printed_and_released([printed], [released], LEVEL), panels


def along_training():
    """One gap, with the marks of each depth; of other gaps, of loss and of accuracy nothing is shown."""
    tests = trained(iterations=[0, 100, 1000, 2000], depth=[2, 4])
    learning, panels = accuracy_gaps.learning(tests, "first-last", LEVEL), []
    for encoding in ENCODINGS:
        shown = of(learning, encoding=encoding)
        lines = {(depth_colour(depth), "-"): of(shown, depth=depth)["gap"] for depth in (2, 4)}
        panels.append(Panel([shown[["gap", "low", "high"]]], lines=lines, levels=[0]))
    return figures.along_training(tests, LEVEL), panels


def long_training(depths, seeds):
    """A depth that the long training has is not shown of the older one."""
    both = table("gap", depth=(*depths, 5), seed=range(seeds), iteration=(0, 500, 1000, 2000, 4000), pair=NAMES)
    short, tests = (
        trained(depth=(2, 3), encoding=["none", "rope"]),
        both.rename(columns={"pair": "quantity", "gap": "value"}),
    )
    older = tests.assign(value=tests["value"].where(tests["depth"] != depths[0], 99.0))
    names = {"vocabulary": "gaussian", "study": "plain", "mask": "causal", "encoding": "none"}
    kept = of(tests, depth=depths[0]).assign(**names)
    figure = figures.long_and_short_training(kept, older, short, LEVEL, last=2)
    ends, by_seed = accuracy_gaps.gaps_over_last_tests(of(both, pair="first-last"), 2, LEVEL)
    after_short = of(at_end(accuracy_gaps.curves(short))[0], encoding="none", pair="first-last")
    columns = ["gap", "low", "high"]
    panels = {"first vs. last, at the end": Panel([by_seed["gap"], ends[columns], after_short[columns]])}
    for pair, look in PAIRS.items():
        of_pair, shade = of(both, pair=pair), (2000, 4000) if pair == "first-last" else None
        means = of_pair.groupby(["depth", "iteration"])["gap"].mean()
        panels[look.name.replace("\n", " ")] = Panel([of_pair["gap"], means], shade=shade)
    return figure, [panels[axes.get_title()] for axes in figure.axes]


# Attention


def maps():
    """Of the network without encoding; twice the weight of uniform attention is 1."""
    weights = np.random.default_rng(0).uniform(size=(2, 2, 2, N, N)) * causal_mask(N)
    weights /= weights.sum(-1, keepdims=True)
    labels = {
        "vocabulary": "fixed",
        "residual": False,
        "members": [{"encoding": "rope", "seed": 0}, {"encoding": "none", "seed": 3}],
    }
    figure = figures_attention.maps(file(labels, mean=weights[0], example=weights[1]), 2000, 500)
    readable = np.where(causal_mask(N), np.arange(1, N + 1)[:, None], np.nan)
    with np.errstate(divide="ignore"):
        shown = np.maximum(np.log2(weights[:, 1].reshape(4, N, N) * readable), -6)
    return figure, [*(Panel(image=image, limit=3) for image in shown), None]


def sinks(masks, taus=TAUS, seeds=3):
    """Each mask has higher values than the one before; another encoding and fresh directions are not shown."""
    states = {"trained": range(seeds), "untrained": range(seeds), "uniform": [0]}
    shown = table("value", mask=masks, state=[*states], tau=taus, token=range(1, N + 1), seed=range(seeds))
    shown = shown[[seed in states[state] for seed, state in zip(shown["seed"], shown["state"], strict=True)]]
    shown = shown.assign(value=shown["value"] * (1 + shown["mask"].map(masks.index)), encoding="none", omega="training")
    others = [shown.assign(**{name: other, "value": 7.0}) for name, other in (("encoding", "rope"), ("omega", "fresh"))]
    network = {"vocabulary": "fixed", "study": "plain", "bias": "none", "residual": False, "depth": 2}
    return pd.concat([shown, *others]).assign(**network), shown.assign(**network)


RUNS = [pd.DataFrame({"iterations": [100_000]})]


def sinks_of_networks(masks, taus=TAUS, seeds=3, longer=False):
    """A column a mask and a row a threshold, the main one first. Longer training has the same values, halved."""
    given, shown = sinks(masks, taus, seeds)
    kept = [given.assign(scale="paper", value=given["value"] / 2)] if longer else []
    means, panels = accuracy_gaps.summary(shown, ["mask", "tau", "state", "token"], "value", LEVEL), []
    longest = means.assign(**{name: means[name] / (2 if longer else 1) for name in ("value", "low", "high")})
    for tau, mask in itertools.product([0.2, *(tau for tau in taus if tau != 0.2)], masks):
        states = ("trained", "untrained", "uniform")
        trained, *others = (of(longest, mask=mask, tau=tau, state=state) for state in states)
        colour, short = figures.mask_look(mask).colour, of(means, mask=mask, tau=tau, state="trained")
        bars = {(colour, row.token): row.value for row in trained.itertuples()}
        bars |= {(figures.pale(colour), row.token): row.value for row in short.itertuples() if longer}
        lines = {(colour, "None"): other["value"] for colour, other in zip(("white", "black"), others, strict=True)}
        drawn = [trained[["value", "low", "high"]], *lines.values(), *([short["value"]] if longer else [])]
        panels.append(Panel(drawn, lines=lines, bars=bars, whole=True))
    runs = RUNS if longer else []
    return figures_attention.sinks_of_networks(given, kept, runs, LEVEL, 0.2, 2000), panels


def theorems():
    convergence, *profiles = theory.convergence(16, 80, 3, 0), theory.decay_profiles(300), theory.rope_profiles(300)
    peaks = theory.decay_peaks(300)
    figure = figures_attention.theorems(convergence, *profiles, peaks)
    shown = convergence[convergence["mask"].isin(figures_attention.MASK_LINES)]
    shown = shown[shown["layers"] <= figures_attention.LAYERS_SHOWN]
    panels = [Panel([shown[["value", "bound", "low", "high"]]])]
    for rows, critical in zip(profiles, (["critical"], ["critical", "printed"]), strict=True):
        near = rows[rows["distance"] <= 2 * rows["peak"].max()]
        ends = near.groupby("depth")[critical].first()  # which stand on the profiles
        panels.append(Panel([near["value"]], [near["distance"], ends[ends.round().le(near["distance"].max())]]))
    return figure, [*panels, Panel([peaks[["critical", "peak"]]])]


FIGURES = {
    "fig2, one seed": partial(fig2, 1, {False: (2,), True: (2, 3)}),
    "fig2, deep": partial(fig2, 3, {True: (2, 10)}),
    "by_bias": by_bias,
    "by_bias, small gaps": partial(ceilings, (0.3, 0.3, 0.3)),
    "by_bias, large gaps": partial(ceilings, (0.5, 0.5, 0.5)),
    "by_bias, large gaps either way": partial(ceilings, (0.5, -0.5, 0.5)),
    "by_depth": by_depth,
    "windows": windows,
    "released_code": released_code,
    "along_training": along_training,
    "long_training": partial(long_training, (2, 4), 3),
    "long_training, one seed": partial(long_training, (6,), 1),
    "maps": maps,
    "sinks, one mask": partial(sinks_of_networks, ("causal",), (0.2,), 1),
    "sinks": partial(sinks_of_networks, WINDOWS),
    "sinks, longer": partial(sinks_of_networks, WINDOWS, longer=True),
    "theorems": theorems,
}
