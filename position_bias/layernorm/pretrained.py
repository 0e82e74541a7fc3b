"""What the measuring pass found of the Gram in language models, as a table."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from position_bias.running.artifacts import TensorFile

UNTRAINED, OF_HUB = "untrained (step 0)", "of the hub"


def recency_of_models(grams: Iterable[TensorFile]) -> pd.DataFrame:
    """The rows of `recency_table` of every measured Gram."""
    return pd.concat(
        [recency_table(file.labels, **file.read("recency", "documents")) for file in grams], ignore_index=True
    )


def recency_table(
    labels: Mapping[str, Any], recency: npt.NDArray[np.float32], documents: npt.NDArray[np.int64]
) -> pd.DataFrame:
    """Return recency of the Gram `[prompts, layers]` of one model, one row per number.

    `labels` are those of the artifact, `documents` tell which document each prompt is of. Columns model, seed, state
    (of training), document, prompt, layer (from 1), value.
    """
    seed, state = _seed_and_state(labels["checkpoint"])
    prompts, layers = recency.shape
    return pd.DataFrame(
        {
            "model": labels["model"],
            "seed": seed,
            "state": state,
            "document": np.repeat(documents, layers),
            "prompt": np.repeat(np.arange(prompts), layers),
            "layer": np.tile(np.arange(1, layers + 1), prompts),
            "value": recency.ravel().astype(float),
        }
    )


def _seed_and_state(checkpoint: str) -> tuple[str, str]:
    if checkpoint == "hub":
        return checkpoint, OF_HUB
    seed, step = re.findall(r"\d+", checkpoint)
    return seed, f"trained (step {step})" if int(step) else UNTRAINED
