"""A world made by hand that is as the paper says, in which claims are judged: of gaps, accuracy and sinks."""

from itertools import product

import numpy as np

from position_bias.emergence import checks
from tests import worlds

LEVEL = 0.95
PAIRS = ("first-middle", "first-last", "middle-last")
ENCODINGS = ("none", "rope", "decay")
NETWORK = checks.Configuration._fields
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
    """(network, pair, seed) -> gap, with a part that the networks of a seed share: it matters which are compared."""
    rng = np.random.default_rng(seed)
    return {
        (*network, pair, one): central(network, pair) + 0.001 * one + 0.0005 * rng.normal()
        for network, seeds in networks.items()
        for pair in PAIRS
        for one in range(seeds)
    }


def accuracies(networks=NETWORKS):
    """(network, seed, position of the answer) -> accuracy."""
    rng = np.random.default_rng(1)
    return {
        (*network, one, answer): 0.6 - 0.1 * (network[0] == "fixed") + 0.05 * one + 0.002 * rng.normal()
        for network, seeds in networks.items()
        if network[1] in ("plain", "residual")
        for one in range(seeds)
        for answer in range(1, 5)
    }


def centres_of(mask):
    """How many tokens all others read."""
    return int(mask.removeprefix("prefix")) if mask.startswith("prefix") else 1


def sinks_of(masks=SINK_MASKS, seeds=5):
    """(vocabulary, study, mask, state, seed, token) -> sink metric: 0.6 at the centre of a trained network's mask."""
    rng, world = np.random.default_rng(2), {}
    shown = [key for key in SHOWN if key[2] in masks.get(key[1], ())]
    for key, token in product(shown, range(1, T + 1)):
        mask, at = key[2], token <= centres_of(key[2])
        wider = 0.01 * int(mask.removeprefix("window")) if mask.startswith("window") else 0
        world[*key, "uniform", 0, token] = 0.2 * at
        world[*key, "uniform, later queries", 0, token] = 0.01 * at
        for one in range(seeds):
            noise = 0.02 * one + 0.001 * rng.normal()
            world[*key, "trained", one, token] = 0.1 + (0.5 + wider) * at + noise
            world[*key, "trained, later queries", one, token] = 0.05 + 0.5 * at + noise
            world[*key, "untrained", one, token] = 0.1 + 0.15 * at + 0.5 * noise
    return world


def labelled(table):
    """A table of networks with the other columns of a configuration."""
    study, biased = table["study"], table["study"].isin(BIASED)
    omega = (table["vocabulary"] == "fixed").map({True: "training", False: "none"})  # of the classes in tests
    residual = biased | study.map(lambda name: name.startswith("residual")).astype(bool)
    return table.assign(bias=study.where(biased, "none"), residual=residual, omega=omega)


def gap_frame(world):
    return labelled(worlds.frame(world, *NETWORK, "pair", "seed")).rename(columns={"value": "gap"})


def tables(gaps=(), accuracy=(), sinks=()):
    """What claims are judged on. Networks of other encodings and depths have sinks, too, which no claim is about."""
    alone = {(*key[:3], "none", 2, *key[3:]): value for key, value in dict(sinks).items()}
    others = {
        (*key[:3], *shape, *key[5:]): 0.0
        for key, shape in product(alone, (("rope", 2), ("none", 4)))
        if key[1] == "plain"
    }
    return checks.NetworkTables(
        gaps=gap_frame(dict(gaps)),
        accuracy=labelled(worlds.frame(dict(accuracy), *NETWORK, "seed", "answer")).rename(
            columns={"value": "accuracy"}
        ),
        sinks=labelled(worlds.frame(alone | others, *NETWORK, "state", "seed", "token")).assign(tau=0.2),
    )


WORLD = {"gaps": papers_world(), "accuracy": accuracies(), "sinks": sinks_of()}


def statistics(seen=None, **given):
    """Of the worlds that are given, of gaps, accuracy and sinks, and of nothing else; of all where none is."""
    return checks.network_statistics(tables(**given or WORLD), seen)


def judged(scale="test", seen=None, **given):
    return worlds.judged("emergence", statistics(seen, **given), LEVEL, scale)
