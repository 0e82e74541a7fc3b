"""Networks in the settings of the released code, whose gaps have the size and sign that the paper says."""

import numpy as np
import pandas as pd

from position_bias.emergence import released_code
from position_bias.emergence.accuracy_gaps import CONFIGURATION
from position_bias.verdicts.registry import predictions
from tests.worlds import PREDICTED, frame

ASKED = predictions(PREDICTED, "emergence")
ITERATIONS = (0, 1000, 2000, 3000)
SEEDS = range(20, 25)


def curves(encoding="none", depth=2, copied=(0.1, 0.2, 0.6, 0.9), gaps=(0, 0.1, 0.3, 0.2), seed=20):
    """The tests of one network."""
    network = ("gaussian", "plain", "none", "causal", encoding, False, depth, "none", seed)
    tests = {"in_context": copied, "first-last": gaps}
    along = {(*network, at, name): of[place] for name, of in tests.items() for place, at in enumerate(ITERATIONS)}
    return frame(along, *CONFIGURATION, "seed", "iteration", "quantity")


def world(amplified=0.05, lost=()):
    """Every network with five seeds: each further two layers add to the gap, and a decay mask takes from it."""
    low = {"none": 0.0, "rope": -0.1, "decay": -0.2}
    noise = dict(zip(SEEDS, (-0.002, -0.001, 0, 0.001, 0.002), strict=True))
    return pd.concat(
        curves(
            encoding,
            depth,
            copied=(0.1, 0.2, 0.25, 0.2) if (encoding, depth, seed) in lost else (0.1, 0.2, 0.6, 0.9),
            gaps=np.array([0, 0.1, 0.3, 0.2]) + low[encoding] + noise[seed] * (depth == 4) + amplified * depth / 2,
            seed=seed,
        )
        for encoding in low
        for depth in (2, 4, 6)
        for seed in SEEDS
    )


def judged(table):
    return released_code.released_code_checks(table, ASKED, 0.95)
