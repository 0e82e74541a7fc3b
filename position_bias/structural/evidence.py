"""What is kept in evidence/ of long trainings of language models."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from position_bias.running.artifacts import TensorFile
from position_bias.structural.checks import compared

DIGITS = {"value": 7, "low": 7, "high": 7, "loss": 6}


def evidence(
    profiles: pd.DataFrame,
    statistics: pd.DataFrame,
    replicates: list[pd.DataFrame],
    mixing: list[TensorFile],
    content: list[TensorFile],
    losses: pd.DataFrame,
    runs: pd.DataFrame,
    scale: str,
    level: float,
) -> dict[str, pd.DataFrame]:
    """What is measured and predicted at every kept step, rounded: the tables by the names of their files."""
    found = {
        "profiles": profiles,
        "statistics": statistics,
        "compared": pd.concat(compared(values, level) for values in replicates),
        "mixing": pd.concat(_means(mixing, ("frobenius", "token"), ("layer",))),
        "content": pd.concat(_means(content, ("diagonal", "below"), ("layer", "head"))),
        "losses": losses,
        "runs": runs,
    }
    return {name: table.round(DIGITS).assign(scale=scale) for name, table in found.items()}


def _means(files: Iterable[TensorFile], names: Sequence[str], axes: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Means over prompts of the arrays `names` [prompts, *axes] of measurements, one row per number."""
    for file in files:
        for name, values in file.read(*names).items():
            mean = values.mean(0)
            indices = dict(zip(axes, np.indices(mean.shape).reshape(len(axes), -1), strict=True))
            yield pd.DataFrame({**file.labels, "quantity": name, **indices, "value": mean.ravel()})
