"""Figures and tables that people read have the name of a model, where files and other tables have its key."""

import pandas as pd

NAMES_SHOWN = {
    "bloom": "bloom-mini",  # the small models of the default run
    "mpt": "mpt-mini",
    "falcon": "falcon-mini",
    "smollm2-135m": "SmolLM2",  # pretrained decoders
    "stories15m": "stories15M",
    "gemma-3-270m": "Gemma 3",
    "qwen2.5-coder-0.5b": "Qwen2.5-Coder",
}


def shown_name(model: str) -> str:
    """Return what people read of a model: its name in the configuration, or that by which it is known."""
    return NAMES_SHOWN.get(model, model)


def with_shown_names(table: pd.DataFrame) -> pd.DataFrame:
    """Return the same table, whose column `model` has the names that people read."""
    return table.assign(model=table["model"].map(shown_name))
