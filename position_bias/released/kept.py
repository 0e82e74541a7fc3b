"""What evidence/ keeps of the released numbers: profiles, what is said of them, and where the numbers came from.

The lambda and content of single layers and heads stay where they were released.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias import statistics
from position_bias.released import written
from position_bias.released.models import MODELS, PRIMARY
from position_bias.rollout.comparison import SHAPE

SCALE = "paper"
TREND = "spearman with depth"  # of lambda
SHIFT = "shift"  # of heads: the share whose diagonal has the sign of the mean over all heads of all layers
POSITIVE = "positive shift"  # the share of heads with a positive one
DIGITS = 7  # of values that evidence/ keeps


def tables(
    profiles: list[Path],
    mixing: list[Path],
    content: list[Path],
    variants: pd.DataFrame,
    drawn: pd.DataFrame,
    source: pd.DataFrame,
) -> dict[str, pd.DataFrame]:
    """The tables of evidence/structural/released/, each with the scale of the released models.

    `profiles` are at one length, of every model, data set and variant; `mixing` and `content` of every model and data
    set. `variants` and `drawn` are the tables of these names, and `source` says what the numbers were read from.
    """
    shown = written.read_profiles(profiles)
    of_authors = (shown["slopes"] == "released") & (shown["content"] != "faithful")
    kept = shown[of_authors & (shown["dataset"] == PRIMARY)]
    rows = [*_shapes(shown), *_schedules(mixing, content, int(shown["n"].iloc[0]))]
    made = {
        "statistics": pd.DataFrame(rows),
        "profiles": kept[["model", "dataset", "n", "variant", "position", "value"]],
        "distances": variants,
        "drawn": drawn,
        "source": source,
    }
    return {name: _rounded(table).assign(scale=SCALE) for name, table in made.items()}


def _shapes(profiles: pd.DataFrame) -> Iterator[dict[str, object]]:
    """What is said of each profile, with the slopes that its model is judged by."""
    for key, profile in profiles.groupby(written.LABELS, sort=False):
        labels = dict(zip(written.LABELS, key, strict=True))
        if labels["slopes"] not in MODELS[str(labels["model"])].rules:
            continue
        shares = profile.sort_values("position")["value"].to_numpy(float)
        of_profile = {name: labels[name] for name in ("model", "dataset", "n")}
        rules = {"network": labels["variant"], "slopes": labels["slopes"], "content": labels["content"]}
        for name, shape in SHAPE.items():
            yield {**of_profile, "statistic": name, **rules, "value": float(shape(shares))}


def _schedules(mixing: list[Path], content: list[Path], n: int) -> Iterator[dict[str, object]]:
    """How lambda changes with depth, and how heads shift the diagonal, of each model and data set."""
    for of_layers, of_heads in zip(mixing, content, strict=True):
        schedule = written.read_schedule(of_layers, of_heads)
        labels = {"model": of_layers.parts[-3], "dataset": of_layers.parts[-2], "n": n}
        layers = np.arange(len(schedule.mixing))
        positive = schedule.diagonal > 0
        found = {
            (TREND, "lambda"): statistics.spearman(layers, schedule.mixing),
            (SHIFT, "heads"): (positive == (schedule.diagonal.mean() > 0)).mean(),
            (POSITIVE, "heads"): positive.mean(),
        }
        for (name, network), value in found.items():
            rules = {"network": network, "slopes": "none", "content": "none"}
            yield {**labels, "statistic": name, **rules, "value": float(value)}


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers to DIGITS significant digits, so that a table is small and the same on every machine."""
    numbers = table.select_dtypes("float").columns
    return table.assign(**{name: [float(f"{value:.{DIGITS}g}") for value in table[name]] for name in numbers})
