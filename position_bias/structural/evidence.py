"""What is kept in evidence/ of long trainings of language models."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias.structural.checks import STANDARD, contrasts, variant_differences
from position_bias.structural.content import LABELS, table5
from position_bias.structural.tables import step, training
from position_bias.verdicts.registry import predictions
from position_card.core.artifacts import TensorFile, Tensors
from position_card.rollout.measurement import mixing

DIGITS = {"value": 7, "low": 7, "high": 7, "loss": 6, "p05": 7, "p95": 7, "outside": 7}


def evidence(
    profiles: pd.DataFrame,
    statistics: pd.DataFrame,
    replicates: list[pd.DataFrame],
    measured: list[TensorFile],
    losses: pd.DataFrame,
    runs: pd.DataFrame,
    predicted: Path,
    scale: str,
    level: float,
) -> dict[str, pd.DataFrame]:
    """What is measured and predicted at every kept step, rounded: the tables by the names of their files.

    What is compared at every step is what the registry of predictions, `predicted`, asks of the last one.
    """
    of_standard = contrasts(predictions(predicted, "structural"), STANDARD)
    tables = {
        "profiles": profiles,
        "statistics": statistics,
        "compared": pd.concat(variant_differences(values, level, of_standard) for values in replicates),
        "mixing": pd.concat(_means(file, mixing(file), ("layer",)) for file in measured),
        "content": pd.concat(_means(file, file.read("diagonal", "below"), ("layer", "head")) for file in measured),
        "similarity": table5(_last(measured)),
        "losses": losses,
        "runs": runs,
    }
    return {name: table.round(DIGITS).assign(scale=scale) for name, table in tables.items()}


def _last(measured: Sequence[TensorFile]) -> list[TensorFile]:
    """Those of the last step of each training."""
    last: dict[tuple[str, str], TensorFile] = {}
    for file in sorted(measured, key=lambda file: step(file.labels["checkpoint"])):
        last[file.labels["model"], training(file.labels["checkpoint"])] = file
    return [*last.values()]


def _means(file: TensorFile, arrays: Tensors, axes: Sequence[str]) -> pd.DataFrame:
    """Means over prompts of arrays [prompts, *axes] of a measurement, by their names, one row per number."""
    labels = {name: file.labels[name] for name in LABELS if name != "prompts"}
    tables = []
    for name, values in arrays.items():
        mean = values.mean(0)
        indices = dict(zip(axes, np.indices(mean.shape).reshape(len(axes), -1), strict=True))
        tables.append(pd.DataFrame({**labels, "quantity": name, **indices, "value": mean.ravel()}))
    return pd.concat(tables)
