"""Figures and tables that people read have the name of a model, where files and other tables have its key."""

import pandas as pd

NAMES_SHOWN = {"bloom": "bloom-mini", "mpt": "mpt-mini", "falcon": "falcon-mini"}  # the small models of the default run


def shown_name(model: str) -> str:
    """Return what people read of a model: its name in the configuration, or another of a small model trained here."""
    return NAMES_SHOWN.get(model, model)


def with_shown_names(table: pd.DataFrame) -> pd.DataFrame:
    """Return the same table, whose column `model` has the names that people read."""
    return table.assign(model=table["model"].map(shown_name))
