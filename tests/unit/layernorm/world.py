"""A world made by hand that is as predicted. Seeds share much of each number, so that it matters which are compared."""

from itertools import product

import numpy as np

from position_bias.emergence import accuracy_gaps
from position_bias.layernorm import checks
from tests import worlds
from tests.worlds import frame

LEVEL = 0.9
SEEDS, HEADS, LAYERS = range(5), (1, 2, 3, 4), (1, 2, 3)
NORMED = ("pre-layer", "pre-rms", "post-layer")
PAIRS = ("first-middle", "first-last", "middle-last")
STUDIES = ("residual", "pre-norm", "post-norm")


def random_weights(rng):
    """(norm, residual, seed, layer, head, quantity) -> value; half the heads of most seeds score one way."""
    world = {}
    for norm, residual, seed, layer in product(("none", "rms", "layer"), (0.0, 1.0), SEEDS, LAYERS):
        key = (norm, residual, seed, layer)
        gram = 0.0 if layer == 1 else -0.05 * (layer - 2) if norm == "none" else 0.2
        world[*key, 0, "gram"] = gram + 0.001 * rng.normal()
        for head in HEADS:
            odd_one = (layer, seed, head) in ((3, 0, 1), (3, 1, 3))
            sign = (-1) ** ((head > 2) + odd_one)
            world[*key, head, "score"] = 0.15 * sign + 0.01 * rng.normal()
            world[*key, head, "position"] = 0.5 + 0.04 * (-1) ** head + 0.001 * rng.normal()
    return world


def trained(rng):
    """(norm, seed, state, layer, head, quantity) -> value: what was claimed would settle it, settles it."""
    world = {}
    for norm, seed, state in product(("none", *NORMED), SEEDS, ("untrained", "trained")):
        world[norm, seed, state, 0, 0, "loss"] = 3.5 - (state == "trained") - 0.1 * seed
        for layer in LAYERS:
            recent = state == "trained" and layer > 1 and norm != "none"
            key = (norm, seed, state, layer)
            world[*key, 0, "gram"] = 0.2 * recent + 0.02 * seed + 0.001 * rng.normal()
            for head in HEADS:
                shared = 0.002 * (seed - 2)
                world[*key, head, "position"] = (
                    0.5 + 0.08 * recent + shared + 0.03 * (-1) ** head + 0.0005 * rng.normal()
                )
                world[*key, head, "score"] = 9.0
    return world


STATES = TRAINED, UNTRAINED = "trained (step 300)", "untrained (step 0)"


def models(rng):
    """(model, seed, state, document, layer) -> recency of the Gram."""
    return {
        (model, seed, state, document, layer): (0.2 if state == TRAINED else 0.1)
        + 0.01 * document
        + 0.1 * seed
        + 0.01 * rng.normal()
        if layer > 1
        else -5.0
        for model, seed, state, document, layer in product(("bloom", "mpt"), (0, 1), STATES, range(6), LAYERS)
    }


def retrieval(rng):
    """(study, depth, seed, iteration, quantity) -> value; studies of norms have 2 layers alone."""
    centre = {"residual": 0.2, "pre-norm": -0.1, "post-norm": -0.05}
    world = {}
    for study, depth, seed, iteration, pair in product(STUDIES, (2, 4), SEEDS, (0, 500), (*PAIRS, "accuracy")):
        if depth == 2 or study == "residual":
            value = (centre[study] if iteration else 7.0) + 0.01 * seed + 0.001 * rng.normal()
            world[study, depth, seed, iteration, pair] = value
    return world


WORLD = {
    name: make(np.random.default_rng(seed))
    for seed, (name, make) in enumerate(
        {"random": random_weights, "trained": trained, "models": models, "curves": retrieval}.items()
    )
}


def curves_of(world):
    found = frame(world, "study", "depth", "seed", "iteration", "quantity")
    fixed = {"vocabulary": "gaussian", "bias": "none", "mask": "causal", "encoding": "none", "residual": True}
    return found.assign(**fixed, omega="none")[[*accuracy_gaps.CONFIGURATION, "seed", "iteration", "quantity", "value"]]


def statistics(**changed):
    """Of the worlds that are given and of nothing else; of all where none is. Trained networks are always there."""
    of = changed or WORLD
    return checks.norm_statistics(
        frame(of.get("random", {}), "norm", "residual", "seed", "layer", "head", "quantity"),
        frame(of.get("trained", WORLD["trained"]), "norm", "seed", "state", "layer", "head", "quantity"),
        frame(of.get("models", {}), "model", "seed", "state", "document", "layer"),
        curves_of(of.get("curves", {})),
    )


def judged(**changed):
    return worlds.judged("layernorm", statistics(**changed), LEVEL)
