"""What the measuring pass found of the Gram in language models, as a table."""

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from position_bias.running.artifacts import TensorFile

UNTRAINED, OF_HUB = "untrained (step 0)", "of the hub"


def recency_of_models(grams: Iterable[TensorFile]) -> pd.DataFrame:
    """Return recency of every measured Gram, one row per number.

    Columns model, seed, state (of training), document, prompt, layer (from 1), value.
    """
    tables = []
    for gram in grams:
        seed, state = _seed_and_state(gram.labels["checkpoint"])
        found = gram.read("recency", "documents")
        prompts, layers = found["recency"].shape
        columns = {
            "model": gram.labels["model"],
            "seed": seed,
            "state": state,
            "document": np.repeat(found["documents"], layers),
            "prompt": np.repeat(np.arange(prompts), layers),
            "layer": np.tile(np.arange(1, layers + 1), prompts),
            "value": found["recency"].ravel().astype(float),
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _seed_and_state(checkpoint: str) -> tuple[str, str]:
    if checkpoint == "hub":
        return checkpoint, OF_HUB
    seed, step = re.findall(r"\d+", checkpoint)
    return seed, f"trained (step {step})" if int(step) else UNTRAINED
