"""What the measuring pass found of the Gram in language models, as a table."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd


def recency_table(labels: Mapping[str, Any], recency: npt.NDArray[np.float32]) -> pd.DataFrame:
    """Recency of the Gram `[prompts, layers]` of one model, a row a number.

    `labels` are those of the artifact. Columns model, seed, step, prompt, layer (from 1), value.
    """
    seed, step = map(int, re.findall(r"\d+", labels["checkpoint"]))
    prompts, layers = recency.shape
    return pd.DataFrame(
        {
            "model": labels["model"],
            "seed": seed,
            "step": step,
            "prompt": np.repeat(np.arange(prompts), layers),
            "layer": np.tile(np.arange(1, layers + 1), prompts),
            "value": recency.ravel().astype(float),
        }
    )
