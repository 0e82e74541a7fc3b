"""How well predictions agree with the labels that networks name without a match: order, distance, sign, slope.

Tables of profiles have COLUMNS: those of `profiles.table`, and study, residual and depth besides. All numbers are taken
by seed, since seeds are what is independent.
"""

import numpy as np
import pandas as pd

from position_bias.attention import Array
from position_bias.statistics import spearman, wasserstein

NETWORK = ["study", "residual", "depth", "network", "encoding", "slope"]
COLUMNS = [*NETWORK, "seed", "quantity", "position", "value"]
OBSERVED = "share"
WIRINGS = {"plain": "without residual connections", "residual": "with residual connections"}  # studies without bias
# Predictor -> what it knows. A diagnostic uses more of the trained network than a prior does; both were added after a
# look at the results of a trial.
PREDICTORS = {
    "uniform": "null",
    "single": "null",
    "half": "null",
    "a": "data-free",
    "arch": "data-free",
    "b": "from data",
    "c": "from data",
    "measured": "from data",
    "values": "diagnostic",
    "frozen": "diagnostic",
    "accuracy": "observed",  # where an item matches; other observations are compared with the share, too
    "bursty": "observed",  # on sequences like those of training
}


def as_shares(profiles: Array) -> Array:
    """Profiles `[..., n]` over their sum; NaN where that is not above 0: nothing of the sequence is named then."""
    whole = profiles.sum(-1, keepdims=True)
    return np.divide(profiles, whole, out=np.full(profiles.shape, np.nan), where=whole > 0)


def agreement(table: pd.DataFrame) -> pd.DataFrame:
    """A row a network, seed and predictor: columns NETWORK, seed, predictor, and numbers.

    `gap` is the share of the first label less that of the last, `observed` that of the labels named; `right` is 1 where
    both have the same sign, else 0. `spearman` is NaN for constant profiles, `wasserstein` is over n - 1.
    """
    wide = table.pivot(index=[*NETWORK, "seed"], columns=["quantity", "position"], values="value")
    observed = as_shares(wide[OBSERVED].to_numpy())
    frames = []
    for predictor in PREDICTORS:
        predicted = as_shares(wide[predictor].to_numpy())
        gap, seen = (profile[:, 0] - profile[:, -1] for profile in (predicted, observed))
        numbers = {
            "gap": gap,
            "observed": seen,
            "spearman": spearman(predicted, observed),
            "wasserstein": wasserstein(predicted, observed),
            "right": np.where(np.isnan(gap) | np.isnan(seen), np.nan, np.sign(gap) == np.sign(seen)),
        }
        frames.append(pd.DataFrame(numbers, index=wide.index).reset_index().assign(predictor=predictor))
    return pd.concat(frames, ignore_index=True)


def over_networks(found: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """The mean of a statistic over networks, `[seeds, predictors]`; NaN for a seed that lacks one of the networks."""
    by_network = found.pivot(index=["predictor", *NETWORK], columns="seed", values=statistic)
    return pd.DataFrame({name: rows.mean(skipna=False) for name, rows in by_network.groupby(level="predictor")})


def crossings(found: pd.DataFrame, gap: str) -> pd.Series:
    """The slope of the decay mask at which `gap` goes from above 0 to below, by seed; NaN where it does not.

    `found` has networks of one study, depth and predictor; the slope 0 is the causal mask alone. Between two slopes the
    gap is taken as linear.
    """
    by_slope = found[found["encoding"].isin(["none", "decay"])].pivot(index="seed", columns="slope", values=gap)
    slopes = by_slope.columns.to_numpy(float)
    return pd.Series({seed: crossing(slopes, row.to_numpy()) for seed, row in by_slope.iterrows()}, dtype=float)


def crossing(slopes: Array, gaps: Array) -> float:
    """Where the line through `gaps` at ascending `slopes` first goes from above 0 to 0 or below, or NaN."""
    for left in range(len(slopes) - 1):
        before, after = gaps[left], gaps[left + 1]
        if before > 0 >= after:
            return float(slopes[left] + (slopes[left + 1] - slopes[left]) * before / (before - after))
    return float("nan")


def shallowest(found: pd.DataFrame) -> pd.DataFrame:
    """The rows of the networks with the fewest layers: those whose slopes are many."""
    return found[found["depth"] == found["depth"].min()]
