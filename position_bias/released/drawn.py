"""Rollouts of bloom-176b against its measured influence (d), which the authors drew, but released no numbers of.

Here the slopes and the scale of content are those of the authors' configurations (`released`) or those of the model
(`faithful`). The drawings of (a), (b) and (c) themselves tell whether the rollouts here are those that were drawn.
"""

from pathlib import Path

import pandas as pd

from position_bias import statistics
from position_bias.released import written
from position_bias.rollout.comparison import DISTANCE, INFLUENCE, SHAPE

SAID = ("first / middle", "last / middle", "argmin", "mean position")  # of each profile
AGAINST = ("wasserstein", "total variation", "argmin distance")  # of each rollout and (d)


def of_profiles(profiles: list[Path], curves: pd.DataFrame) -> pd.DataFrame:
    """A row for each rollout in these files, and one for (d): its shape, its distances to (d), and to its own drawing.

    `curves` has the columns variant, token and share. The last distance is NaN where slopes or content are not those of
    the authors' configurations.
    """
    by_token = curves.pivot(index="token", columns="variant", values="share")
    drawn = {str(name): by_token[name].to_numpy() for name in by_token}
    rows = []
    for key, of_variant in written.read_profiles(profiles).groupby(["variant", "slopes", "content"], sort=False):
        variant, slopes, content = map(str, key)
        profile = of_variant.sort_values("position")["value"].to_numpy(float)
        was_drawn = slopes == "released" and content != "faithful"
        rows.append(
            {
                **{"variant": variant, "slopes": slopes, "content": content},
                **{name: float(SHAPE[name](profile)) for name in SAID},
                **{name: float(DISTANCE[name](profile, drawn[INFLUENCE])) for name in AGAINST},
                "W to its drawing": float(statistics.wasserstein(profile, drawn[variant])) if was_drawn else None,
            }
        )
    shape = {name: float(SHAPE[name](drawn[INFLUENCE])) for name in SAID}
    return pd.DataFrame([*rows, {"variant": INFLUENCE, "slopes": "none", "content": "none", **shape}])
