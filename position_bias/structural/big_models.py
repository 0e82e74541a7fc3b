"""These checks judge the five big models of Herasimchyk et al. 2026 by lambda and content that its authors released.

Rollouts follow from these without sampling, so what is said of them is known, and needs no interval. Judged are the
configurations of the authors, with their slopes and their content, on the data set of Figure 1. Their lambda is by the
estimator of the paper's first version. Other data sets, and the models' own slopes and content, stand beside them in
evidence/structural/released/, and speak of no claim.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from position_bias.structural.checks import OVER, STANDARD
from position_bias.verdicts.judge import Statistic, judge, published, table
from position_bias.verdicts.registry import Predicted

COLUMNS = ["model", "dataset", "n", "statistic", "network", "slopes", "content", "value"]
OF_FIGURE_1 = "fineweb-edu"  # the data set
SETTING = {"checkpoint": "as released", "estimator": "token"}
SHIFT = "shift"  # called "released shift" there: what is asked of it was written after it had been seen


def checks(kept: Iterable[pd.DataFrame], predictions: Mapping[str, list[Predicted]]) -> pd.DataFrame:
    """Verdicts in the schema of `judge.COLUMNS` on tables with the COLUMNS; none where there is no table."""
    asked = (one for values in kept for one in statistics(values) if one.name in predictions)
    return table("structural", "paper", judge(asked, predictions))


def statistics(kept: pd.DataFrame) -> Iterator[Statistic]:
    """What is asked of each model at the standard length: networks across, and the one value that is known."""
    kept = kept[COLUMNS]
    as_released = (kept["slopes"] != "faithful") & (kept["slopes"] != "doubled") & (kept["content"] != "faithful")
    judged = kept[as_released & (kept["dataset"] == OF_FIGURE_1)]
    for key, rows in judged.groupby(["model", "dataset", "n", "statistic"], sort=False):
        model, dataset, n, name = map(str, key)
        setting: dict[str, Any] = {"model": model, "dataset": dataset, "n": int(n), **SETTING}
        values = rows.pivot(index="n", columns="network", values="value")
        shown = values.map(np.log) if OVER in name else values
        yield Statistic(f"released {name}" if name == SHIFT else f"{STANDARD}: {name}", shown, setting, published)
