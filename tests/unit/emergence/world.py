"""A world made by hand that is as the paper says, in which claims are judged: network and pair -> seed -> gap."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias.emergence import checks, gaps
from position_bias.verdicts.registry import predictions

LEVEL = 0.95
PREDICTIONS = predictions(Path(__file__).parents[3] / "published/predictions.csv", "emergence")
PAIRS = ("first-middle", "first-last", "middle-last")
ENCODINGS = ("none", "rope", "decay")
BIASED = ("ends", "first", "middle", "last")
T = 17
SINK_MASKS = {
    "plain": ("causal",),
    "window": ("window5", "window9", "window13"),
    "prefix": ("prefix2", "prefix4", "prefix6"),
    "residual": ("causal",),
    "residual-window": ("window5", "window9", "window13"),
    "residual-prefix": ("prefix2", "prefix4", "prefix6"),
}
SHOWN = [  # residual connections with the Gaussian vocabulary alone
    (vocabulary, study, mask)
    for vocabulary, (study, masks) in product(("gaussian", "fixed"), SINK_MASKS.items())
    for mask in masks
    if vocabulary == "gaussian" or not study.startswith("residual")
]


def networks():
    """(vocabulary, study, mask, encoding, depth) with its number of seeds."""
    for vocabulary, plain, residual in (("gaussian", (2, 4, 6), (2, 4, 6)), ("fixed", (2, 4), (2, 4))):
        for encoding in ENCODINGS:
            for study, depths in (("plain", plain), ("residual", residual)):
                for depth in depths:
                    yield (vocabulary, study, "causal", encoding, depth), 5 if depth == 2 else 3
        for study, mask, encoding in product(BIASED, ("none", "causal"), ("none", "sin", "rope")):
            yield (vocabulary, study, mask, encoding, 2), 8 if study == "ends" else 5
        for of, study, mask in SHOWN:
            if of == vocabulary and study not in ("plain", "residual"):
                yield (vocabulary, study, mask, "none", 2), 5
    for encoding in ENCODINGS:
        yield ("isotropic", "plain", "causal", encoding, 2), 5


NETWORKS = dict(networks())


def central(network, pair):
    """A gap that behaves as the paper says."""
    vocabulary, study, mask, encoding, depth = network
    if study == "plain":
        primacy = {"none": 0.3, "rope": 0.2, "decay": 0.1}[encoding] + 0.03 * depth
        return {"first-middle": primacy, "first-last": primacy, "middle-last": 0.05}[pair]
    if study == "residual":
        by_depth = -0.02 * depth if vocabulary == "gaussian" and encoding == "decay" else 0.05 * depth
        last = 0.1 if encoding != "rope" or depth < 4 else -0.1  # deep RoPE alone loses the middle
        first = by_depth + {"none": 0.3, "rope": 0.2, "decay": 0.1}[encoding]
        return {"first-middle": 0.1, "first-last": first, "middle-last": last}[pair]
    if mask == encoding == "none":
        return 0.0
    if encoding in ("sin", "rope"):
        at = {"ends": (1, 0, 0.8), "first": (1, 0, 0), "middle": (0, 1, 0), "last": (0, 0, 1)}[study]
        first, middle, last = at
        return 0.3 * {"first-middle": first - middle, "first-last": first - last, "middle-last": middle - last}[pair]
    primacy = 0.2 + (0.01 * int(mask.removeprefix("window")) if mask.startswith("window") else 0)
    return {"first-middle": primacy, "first-last": primacy, "middle-last": 0.02}[pair]


def papers_world(networks=NETWORKS, seed=0):
    """Gaps with a part that the networks of a seed share, so that it matters which are compared."""
    rng = np.random.default_rng(seed)
    world = {}
    for network, seeds in networks.items():
        for pair in PAIRS:
            world[(*network, pair)] = {
                one: central(network, pair) + 0.001 * one + 0.0005 * rng.normal() for one in range(seeds)
            }
    return world


def labels(network):
    vocabulary, study, mask, encoding, depth = network
    bias = study if study in BIASED else "none"
    residual = study.startswith("residual") or study in BIASED
    omega = "training" if vocabulary == "fixed" else "none"  # of the classes in tests
    values = (vocabulary, study, bias, mask, encoding, residual, depth, omega)
    return dict(zip(gaps.CONFIGURATION, values, strict=True))


def gap_frame(world):
    rows = [
        {**labels(network), "seed": seed, "pair": pair, "gap": gap}
        for (*network, pair), by_seed in world.items()
        for seed, gap in by_seed.items()
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=7, ignore_index=True)


def accuracies(networks=NETWORKS):
    """Accuracy of the networks without residual connections: configuration -> seed -> accuracy by position."""
    rng = np.random.default_rng(1)
    return {
        network: {
            one: 0.6 - 0.1 * (network[0] == "fixed") + 0.05 * one + 0.002 * rng.normal(size=4) for one in range(seeds)
        }
        for network, seeds in networks.items()
        if network[1] in ("plain", "residual")
    }


def accuracy_frame(by_network):
    rows = [
        {**labels(network), "seed": seed, "answer": answer, "accuracy": value}
        for network, by_seed in by_network.items()
        for seed, values in by_seed.items()
        for answer, value in enumerate(values, 1)
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=8, ignore_index=True)


def centres_of(mask):
    """How many tokens all others read."""
    return int(mask.removeprefix("prefix")) if mask.startswith("prefix") else 1


def sinks_of(masks=SINK_MASKS, seeds=5):
    """Sink metric by (vocabulary, study, mask, state, seed), `[T]`: 0.6 at the centre of a trained network's mask."""
    rng = np.random.default_rng(2)
    world = {}
    for vocabulary, study, mask in SHOWN:
        if mask not in masks.get(study, ()):
            continue
        wider = 0.01 * int(mask.removeprefix("window")) if mask.startswith("window") else 0
        at = np.arange(T) < centres_of(mask)
        world[vocabulary, study, mask, "uniform", 0] = 0.2 * at
        for one in range(seeds):
            noise = 0.02 * one + 0.001 * rng.normal(size=T)
            world[vocabulary, study, mask, "trained", one] = 0.1 + (0.5 + wider) * at + noise
            world[vocabulary, study, mask, "untrained", one] = 0.1 + 0.15 * at + 0.5 * noise
    return world


def sink_frame(world):
    rows = []
    for (vocabulary, study, mask, state, seed), values in world.items():
        at = {**labels((vocabulary, study, mask, "none", 2)), "seed": seed, "state": state, "tau": 0.2}
        rows += [{**at, "token": token, "value": value} for token, value in enumerate(values, 1)]
        if study == "plain":  # networks of other encodings and depths, which the figure does not show
            for other in ({"encoding": "rope"}, {"depth": 4}):
                rows += [{**at, **other, "token": token, "value": 0.0} for token in range(1, T + 1)]
    return pd.DataFrame(rows).sample(frac=1, random_state=9, ignore_index=True)


EMPTY = {
    "gaps": gap_frame(papers_world()).iloc[:0],
    "accuracy": accuracy_frame(accuracies()).iloc[:0],
    "sinks": sink_frame(sinks_of()).iloc[:0],
}


def judged(scale="test", seen=None, **given):
    """Rows on the worlds that are given, of gaps, accuracy and sinks, and on nothing else; on all where none is."""
    given = given or {"gaps": papers_world(), "accuracy": accuracies(), "sinks": sinks_of()}
    frames = {"gaps": gap_frame, "accuracy": accuracy_frame, "sinks": sink_frame}
    tables = {name: frame(given[name]) if name in given else EMPTY[name] for name, frame in frames.items()}
    return checks.checks(checks.NetworkTables(**tables), PREDICTIONS, scale, LEVEL, seen)
