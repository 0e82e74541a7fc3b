"""These checks put bloom-176b beside the claims of Herasimchyk et al. 2026, by curves that its authors drew.

One drawn curve of each rollout and of the measured influence is all that is known, and no prompt behind it: what is
read from them has no interval, so it is shown, and speaks of no claim. Table 2 is the exception: by the triangle
inequality (b) and (c) stay closer than (a) unless the influence lies .28 of the length from what was drawn, so that the
drawn distances are taken as known. The authors' configurations gave (a), (b) and
(c) the slopes 2^(-8 h / heads), content without the factor 1/sqrt(head_dim), and lambda by the estimator of their first
version.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from position_bias.rollout.comparison import DISTANCE, INFLUENCE, SHAPE
from position_bias.rollout.last_row import last_row
from position_bias.structural.checks import OVER, STANDARD
from position_bias.verdicts.judge import GIVEN, Statistic, given, judge, published, table
from position_bias.verdicts.registry import Predicted

LAYERS, HEADS = 70, 112
SETTING = {"model": "bloom-176b", "checkpoint": "as drawn", "dataset": "fineweb-edu", "estimator": "token"}


def checks(curves: pd.DataFrame, predictions: Mapping[str, list[Predicted]]) -> pd.DataFrame:
    """Rows of `judge.COLUMNS`, without verdict but for Table 2; `curves` has the columns variant, token and share."""
    asked = (statistic for statistic in statistics(curves) if statistic.name in predictions)
    return table("structural", "paper", judge(asked, predictions))


def statistics(curves: pd.DataFrame) -> Iterator[Statistic]:
    """What is asked at the standard length, of drawn profiles and of the nulls: networks across, GIVEN down."""
    by_token = curves.pivot(index="token", columns="variant", values="share")
    n = len(by_token)
    drawn = {str(name): by_token[name].to_numpy() for name in by_token}
    half = last_row(n, np.full(LAYERS, 0.5), 2.0 ** (-8 * np.arange(1, HEADS + 1) / HEADS))
    profiles = {**drawn, "half": half, "uniform": np.full(n, 1 / n), "last": np.eye(n)[-1]}
    others = {network: profile for network, profile in profiles.items() if network != INFLUENCE}
    values = {name: {network: shape(profile) for network, profile in profiles.items()} for name, shape in SHAPE.items()}
    for name, distance in DISTANCE.items():
        values[name] = {network: distance(profile, drawn[INFLUENCE]) for network, profile in others.items()}
    far = values["wasserstein"].pop("a")
    closer = {("a", variant): [float(far - values["wasserstein"][variant])] for variant in "bc"}
    pairs = pd.DataFrame([*closer.values()], index=pd.Index(closer, tupleize_cols=False)).T
    yield Statistic(f"{STANDARD}: wasserstein", pairs, {**SETTING, "n": n}, published)
    for name, by_network in values.items():
        without_interval = pd.DataFrame(by_network, index=GIVEN[:1], dtype=float).reindex(GIVEN)
        shown = without_interval.map(np.log) if OVER in name else without_interval
        yield Statistic(f"{STANDARD}: {name}", shown, {**SETTING, "n": n}, given(1), speaks=False)
