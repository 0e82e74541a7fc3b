"""Tables that figures of emergence are given, with random numbers, and what each panel must show of them."""

import itertools
from functools import partial

import numpy as np
import pandas as pd

from position_bias.emergence import figures, figures_attention, figures_scales, gaps, theory
from position_bias.emergence.figures_scales import NETWORK
from position_bias.emergence.task import RetrievalTask
from position_card.drawing.looks import PAIRS, depth_look
from position_card.rollout.attention import causal_mask
from tests.drawn import Panel
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


def of(rows, **keys):
    """The rows with these values."""
    return rows[np.all([rows[name] == value for name, value in keys.items()], axis=0)]


def depth_colour(depth):
    return depth_look(depth).colour


def bars_of_gaps(means, by_seed, column, colour, **keys):
    """Every mean with its interval, and every seed; each bar has its colour and stands with its pair."""
    means, by_seed = of(means, **keys), of(by_seed, **keys)
    bars = {
        (colour(value), NAMES.index(pair)): gap
        for value, pair, gap in zip(means[column], means["pair"], means["gap"], strict=True)
    }
    return Panel([means[["gap", "low", "high"]], by_seed["gap"]], bars=bars)


def fig2(seeds, wirings):
    tests = pd.concat([trained(seeds, residual=[residual], depth=depths) for residual, depths in wirings.items()])
    rows = itertools.product(wirings, ENCODINGS)
    given = gaps.at_end(tests, LEVEL)
    panels = [bars_of_gaps(*given, "depth", depth_colour, residual=residual, encoding=name) for residual, name in rows]
    return figures.fig2(tests, LEVEL), panels


def by_bias():
    """The figure has its own order of encodings."""
    tests = trained(5, encoding=("rope", "none", "sin"), mask=["causal", "none"], bias=["ends"], residual=[True])
    given = gaps.at_end(tests, LEVEL)
    masks = [
        bars_of_gaps(*given, "mask", lambda mask: figures.mask_look(mask).colour, encoding=name)
        for name in ("none", "sin", "rope")
    ]
    return figures.by_bias(tests, LEVEL, TASK), masks


def ceilings(sizes):
    """Gaps of these sizes: a line stands at the largest that is possible, where a bar comes near it."""
    tests = trained(encoding=["none"], bias=["first"])
    for size, (a, b) in zip(sizes, OF_PAIRS[::2], strict=True):
        for answer, twin, accuracy in ((a, b, 0.4 + size), (b, a, 0.4)):
            tests.loc[(tests["answer"] == answer) & (tests["twin"] == twin), "value"] = accuracy
    near = [sign for sign in (-1, 1) if any(sign * size > 0.4 for size in sizes)]
    return figures.by_bias(tests, LEVEL, TASK), [Panel(levels=[0, *(sign * 4 / 7 * 31 / 32 for sign in near)])]


def by_depth():
    depths = (2, 4, 10)
    tests = trained(depth=depths)
    (means, by_seed), accuracy = gaps.at_end(tests, LEVEL), gaps.accuracies(tests, LEVEL)
    above, below = [], []
    for name in ENCODINGS:
        of_gaps, of_answers = of(means, encoding=name), of(accuracy, encoding=name)
        lines = {(look.colour, "-"): of(of_gaps, pair=pair)["gap"] for pair, look in PAIRS.items()}
        above.append(Panel([of_gaps[["gap", "low", "high"]], of(by_seed, encoding=name)["gap"]], lines=lines))
        lines = {(depth_colour(depth), "-"): of(of_answers, depth=depth)["accuracy"] for depth in depths}
        below.append(Panel([of_answers[["accuracy", "low", "high"]]], lines=lines, levels=CHANCES))
    return figures.by_depth(tests, LEVEL, TASK), [*above, *below]


def along_training():
    tests = trained(iterations=[0, 100, 1000, 2000], depth=[2, 4])
    learning, panels = gaps.learning(tests, LEVEL), []
    rows = [("loss",), ("accuracy", "in_context"), *((pair,) for pair in PAIRS)]
    for names, encoding in itertools.product(rows, ENCODINGS):
        shown = learning[learning["quantity"].isin(names) & (learning["encoding"] == encoding)]
        lines = {
            (depth_colour(depth), style): of(shown, quantity=name, depth=depth)["value"]
            for depth, (name, style) in itertools.product((2, 4), zip(names, ("-", "--"), strict=False))
        }
        levels = {"loss": [], "accuracy": CHANCES}.get(names[0], [0])
        panels.append(Panel([shown[["value", "low", "high"]]], lines=lines, levels=levels))
    return figures.along_training(tests, LEVEL, TASK), panels


def long_training(depths, seeds):
    """A depth that the long training has is not shown of the older one."""
    both = table("gap", depth=(*depths, 5), seed=range(seeds), iteration=(0, 500, 1000, 2000, 4000), pair=NAMES)
    short, tests = (
        trained(depth=(2, 3), encoding=["none", "rope"]),
        both.rename(columns={"pair": "quantity", "gap": "value"}),
    )
    older = tests.assign(value=tests["value"].where(tests["depth"] != depths[0], 99.0))
    figure = figures.long_and_short_training(of(tests, depth=depths[0]), older, short, LEVEL, last=2)
    ends, by_seed = gaps.lasting(of(both, pair="first-last"), 2, LEVEL)
    at_end = of(gaps.at_end(short, LEVEL)[0], encoding="none", pair="first-last")
    columns = ["gap", "low", "high"]
    panels = {"first vs. last, at the end": Panel([by_seed["gap"], ends[columns], at_end[columns]])}
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
    labels = {"vocabulary": "fixed", "residual": False, "members": [{"encoding": "rope"}, {"encoding": "none"}]}
    figure = figures_attention.maps(file(labels, mean=weights[0], example=weights[1]))
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


def sinks_of_networks(masks, taus=TAUS, seeds=3):
    """A column a mask and a row a threshold, the main one first."""
    given, shown = sinks(masks, taus, seeds)
    means, panels = gaps.summary(shown, ["mask", "tau", "state", "token"], "value", LEVEL), []
    for tau, mask in itertools.product([0.2, *(tau for tau in taus if tau != 0.2)], masks):
        trained, *others = (of(means, mask=mask, tau=tau, state=state) for state in ("trained", "untrained", "uniform"))
        bars = {(figures.mask_look(mask).colour, row.token): row.value for row in trained.itertuples()}
        lines = {(colour, "None"): other["value"] for colour, other in zip(("white", "black"), others, strict=True)}
        drawn = [trained[["value", "low", "high"]], *lines.values()]
        panels.append(Panel(drawn, lines=lines, bars=bars, whole=True))
    return figures_attention.sinks_of_networks(given, LEVEL, 0.2), panels


def theorems():
    convergence, *profiles = theory.convergence(16, 80, 3, 0), theory.decay_profiles(300), theory.rope_profiles(300)
    peaks = theory.decay_peaks(300)
    figure = figures_attention.theorems(convergence, *profiles, peaks)
    shown = convergence[convergence["mask"].isin(figures_attention.SHOWN)]
    shown = shown[shown["layers"] <= figures_attention.LAYERS_SHOWN]
    panels = [Panel([shown[["value", "bound", "low", "high"]]])]
    for rows, critical in zip(profiles, (["critical"], ["critical", "printed"]), strict=True):
        near = rows[rows["distance"] <= 2 * rows["peak"].max()]
        ends = near.groupby("depth")[critical].first()  # which stand on the profiles
        panels.append(Panel([near["value"]], [near["distance"], ends[ends.round().le(near["distance"].max())]]))
    return figure, [*panels, Panel([peaks[["critical", "peak"]]])]


# Both scales

NETWORKS = (
    ("gaussian", "plain", "none", "causal", "none", False, 2),
    ("gaussian", "plain", "none", "causal", "rope", False, 4),
    ("fixed", "last", "last", "causal", "none", True, 2),
    ("gaussian", "window", "none", "window5", "none", False, 2),
    ("fixed", "plain", "none", "causal", "decay", False, 2),
    ("fixed", "plain", "none", "causal", "rope", False, 2),
)


def at_both(value, networks=NETWORKS, **levels):
    """A table of networks at both scales, with three seeds and with five."""
    tables = [table(value, network=networks, seed=range(seeds), **levels) for seeds in (3, 5)]
    for found in tables:
        found[NETWORK] = pd.DataFrame(found.pop("network").tolist())
    return figures_scales.at_both(*tables)


def gaps_at_both():
    both, panels = at_both("gap", pair=NAMES), []
    for pair in NAMES:
        means = gaps.summary(of(both, pair=pair), ["scale", *NETWORK], "gap", LEVEL)
        panels.append(Panel(along=[of(both, pair=pair)["gap"], means[["gap", "low", "high"]]]))
    return figures_scales.gaps(both, LEVEL), panels


def sinks_at_both():
    both, panels = at_both("value", state=("trained", "uniform"), token=range(1, N + 1)).assign(tau=0.2), []
    for network in NETWORKS:
        mine = of(both, **dict(zip(NETWORK, network, strict=True)))
        means = gaps.summary(of(mine, state="trained"), ["scale", "token"], "value", LEVEL)
        uniform = of(mine, state="uniform").groupby("token")["value"].mean()
        lines = {
            (look.colour, look.line): of(means, scale=scale)["value"] for scale, look in figures_scales.SCALES.items()
        }
        lines[figures_scales.UNIFORM.colour, ":"] = uniform
        panels.append(Panel([means[["value", "low", "high"]], uniform], lines=lines, whole=True))
    return figures_scales.sinks_at_both(both, LEVEL), panels


FIGURES = {
    "fig2, one seed": partial(fig2, 1, {False: (2,), True: (2, 3)}),
    "fig2, deep": partial(fig2, 3, {True: (2, 10)}),
    "by_bias": by_bias,
    "by_bias, small gaps": partial(ceilings, (0.3, 0.3, 0.3)),
    "by_bias, large gaps": partial(ceilings, (0.5, 0.5, 0.5)),
    "by_bias, large gaps either way": partial(ceilings, (0.5, -0.5, 0.5)),
    "by_depth": by_depth,
    "along_training": along_training,
    "long_training": partial(long_training, (2, 4), 3),
    "long_training, one seed": partial(long_training, (6,), 1),
    "maps": maps,
    "sinks, one mask": partial(sinks_of_networks, ("causal",), (0.2,), 1),
    "sinks": partial(sinks_of_networks, WINDOWS),
    "theorems": theorems,
    "gaps at both scales": gaps_at_both,
    "sinks at both scales": sinks_at_both,
}
