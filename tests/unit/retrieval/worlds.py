"""Profiles made by hand, of networks whose agreement with every predictor is known."""

from itertools import product

import numpy as np
import pandas as pd

from position_bias.retrieval.agreement import COLUMNS, PREDICTORS

SEEDS = range(5)
SLOPES = {"none": 0.0, "decay-0.05": 0.05, "decay-0.1": 0.1, "decay-0.2": 0.2, "decay-0.4": 0.4}
POSITIONS = np.arange(1, 9)


def tilted(gap):
    """Shares of 8 positions that sum to 1, first less last `gap`."""
    return 1 / 8 - gap * (POSITIONS - 4.5) / 7


def gap_at(slope, turns):
    """A gap that changes its sign at the slope `turns`."""
    return 0.2 * (turns - slope) / (turns + slope)


def world(measured=lambda study, network, gap: gap, frozen=lambda gap: gap, noise=1e-3):
    """Networks whose gap turns at .1 without and .08 with residual connections.

    `measured` says what measured rollout predicts in place of the gap; sinusoids and training on the last item are
    predicted the wrong way round. The architecture knows the sign, and turns at .15.
    """
    rng = np.random.default_rng(1)
    rows = []
    for (study, turns), seed in product((("plain", 0.1), ("residual", 0.08)), SEEDS):
        for network in (*SLOPES, "rope", "sin"):
            gap = gap_at(SLOPES.get(network, 0.0), turns * (1 + 10 * noise * rng.normal()))
            predicted = {name: 3 * gap_at(SLOPES.get(network, 0.0), 0.15) for name in PREDICTORS}
            predicted |= {"measured": -gap if network == "sin" else measured(study, network, gap), "uniform": 0.0}
            predicted |= {"frozen": frozen(gap)}
            rows += _of_network(study, network, seed, gap, predicted)
    for seed in SEEDS:
        gap = 0.1 + noise * rng.normal()
        predicted = dict.fromkeys(PREDICTORS, -gap) | {"frozen": frozen(gap), "uniform": 0.0}
        rows += _of_network("last", "none", seed, gap, predicted)
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_network(study, network, seed, gap, predicted):
    """Rows of one network and seed, as tuples."""
    shares = {"share": 0.6 * tilted(gap), "accuracy": tilted(gap) * 4, "bursty": tilted(gap)}
    of_layers = {"lambda": [0.3, 0.4], "initial lambda": [0.2, 0.2]}
    found = {**{name: tilted(value) for name, value in predicted.items()}, **shares, **of_layers}
    label = (study, study != "plain", 2, network, network.split("-")[0], SLOPES.get(network, 0.0), seed)
    return [
        (*label, quantity, position, value)
        for quantity, values in found.items()
        for position, value in enumerate(values, start=1)
    ]
