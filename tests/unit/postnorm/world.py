"""A world made by hand that is as the paper predicts, in which claims are judged; seeds share a part of each number."""

from itertools import product

import numpy as np
import pandas as pd

from position_bias.postnorm import checks
from tests import worlds
from tests.worlds import frame

TESTS = ["task", "scheme", "seed", "length", "quantity", "value", "trained"]  # columns of tables of trainings
DIMENSION = [*TESTS, "width"]
AVERAGING = [*TESTS, "decay", "weights", "eta"]
DEPTH = ["scheme", "seed", "deeper", "quantity", "value"]
STABILITY = ["scheme", "layers", "learning_rate", "seed", "iteration", "loss", "gradient_norm"]
LEVEL = 0.9
SEEDS = range(5)
SCHEMES = ("none", "pre", "pre-final", "post", "peri", "peri-init")
AFTER = ("post", "peri", "peri-init")
RISE = {"none": 0.03, "pre": 0.03, "pre-final": 0.025, "peri": 0.02, "peri-init": 0.018, "post": 0.015}


def set_complement(rng):
    """Gaps follow their laws, attention is uniform."""
    rows = []
    for (v, trained), scheme, seed in product(((16, 5), (32, 8)), SCHEMES, SEEDS):
        for s in range(1, v):
            beyond = max(0, s - trained) * RISE[scheme] * 16 / v
            law = np.sqrt(s * (v - s)) if scheme in AFTER else s
            noise = 1 + 0.002 * rng.normal(size=2)
            values = {
                "legal_tvd": (0.03 + 0.01 * seed + beyond * (scheme in AFTER)) * noise[0] * (s < v - 1),
                "tvd": 0.1 + 0.02 * seed + beyond + 0.001 * rng.normal(),
                "gap": (5 + seed) / law * noise[0],
                "largest_weight": 1 / s * noise[1],
            }
            rows += [(f"set-complement-{v}", scheme, seed, s, *value, trained) for value in values.items()]
    return frame(rows, *TESTS)


def languages(rng):
    rows = []
    for task, scheme, seed in product(("maximum-10", "dyck-2-3", "tomita-1"), ("pre", *AFTER), SEEDS):
        for length in range(1, 19):
            beyond = max(0, length - 6) * RISE[scheme]
            values = {"tvd": 0.1 + 0.02 * seed + beyond + 0.001 * rng.normal()}
            if task != "maximum-10" and length in (4, 10, 16):
                values["auc"] = 0.6 + 0.05 * seed - beyond / 2 + 0.001 * rng.normal()
            rows += [(task, scheme, seed, length, *value, 6) for value in values.items()]
    return frame(rows, *TESTS)


def widths(rng):
    """A task that needs 15 dimensions."""
    rows = []
    for scheme, width, seed, s in product(("none", "peri"), (7, 14, 15, 20), SEEDS, range(1, 16)):
        value = 0.1 + 0.03 * seed + 0.03 * max(0, 15 - width) + 0.01 * s + 0.0005 * rng.normal()
        rows.append(("set-complement-16", scheme, seed, s, "tvd", value, 5, width))
    return frame(rows, *DIMENSION)


def brackets(rng):
    """Deeper ones are harder, and less so with norms after attention."""
    rows = []
    for scheme, seed, deeper in product(("pre", *AFTER), SEEDS, (False, True)):
        harder = 5 * deeper * RISE[scheme] + 0.001 * rng.normal()
        rows.append((scheme, seed, deeper, "tvd", 0.1 + 0.02 * seed + harder))
        rows.append((scheme, seed, deeper, "auc", 0.9 - 0.02 * seed - harder))
    return frame(rows, *DEPTH)


def averages(rng):
    """BEMA gains a share that grows with v, the EMA half of it; where one answer is right, BEMA of eta 0.2 does not."""
    rows = []
    for (v, share), decay, seed in product({8: 0.3, 32: 0.5, 96: 0.7}.items(), (False, True), SEEDS):
        last = 0.2 + 0.02 * seed
        for weights, eta, gain in (("raw", 0, 0), ("ema", 0, share / 2), ("bema", 0.2, share), ("bema", 0.5, share)):
            value, key = last * (1 - gain) + 0.0005 * rng.normal(), (decay, weights, eta)
            rows.append((f"set-complement-{v}", "peri", seed, v // 4, "legal_tvd", value, v // 4, *key))
            if v == 8:
                rows.append(("maximum-10", "peri", seed, 10, "tvd", last if eta == 0.2 else value, 10, *key))
    return frame(rows, *AVERAGING)


def trainings(rng):
    """`post` breaks most, `peri` a little."""
    world = {}
    for layers, rate, scheme, seed in product((1, 8), (0.01, 0.3), SCHEMES, SEEDS):
        loss, norm = np.full(60, 2 - 0.1 * seed), np.exp(0.2 * seed + 0.01 * rng.normal(size=60))
        spikes, broken = {"post": (12, 9), "peri": (6, 4), "pre": (3, 0)}.get(scheme, (0, 0))
        loss[30 : 30 + spikes + seed % 2 * (spikes > 0)] += 1.5
        loss[60 - broken :] = np.nan
        norm[60 - broken :] = np.inf
        norm[40] *= 100 if scheme == "post" else 1
        world[scheme, layers, rate, seed] = loss, norm
    return stability_of(world)


def stability_of(curves):
    """Of (scheme, layers, rate, seed) -> loss and gradient norm by iteration."""
    rows = [(*key, i, *pair) for key, of in curves.items() for i, pair in enumerate(zip(*of, strict=True), 1)]
    return frame(rows, *STABILITY)


MAKERS = {
    "sets": set_complement,
    "languages": languages,
    "widths": widths,
    "brackets": brackets,
    "averages": averages,
    "trainings": trainings,
}
WORLD = {name: make(np.random.default_rng(seed)) for seed, (name, make) in enumerate(MAKERS.items())}


def swapped(one, other, of):
    return of.assign(scheme=of["scheme"].replace({one: other, other: one}))


def statistics(**given):
    """Of the tables that are given and of nothing else; of the whole world where none is."""
    given = given or WORLD
    columns = {"widths": DIMENSION, "brackets": DEPTH, "averages": AVERAGING, "trainings": STABILITY}
    tests = [given[name] for name in ("sets", "languages") if name in given] or [frame([], *TESTS)]
    others = (given.get(name, frame([], *of)) for name, of in columns.items())
    return checks.scheme_statistics(pd.concat(tests, ignore_index=True), *others)


def judged(**given):
    return worlds.judged("postnorm", statistics(**given), LEVEL)
