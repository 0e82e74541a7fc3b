"""The verdict on a claim: what was predicted, what was measured, and whether the interval settles it.

Predictions and tolerances are fixed before the run that they judge; where one was chosen after seeing an earlier run,
the claim says so. A verdict is computed from artifacts and never typed.
"""

from collections.abc import Iterable

import pandas as pd

from position_bias.verdicts.rule import UNTESTABLE

PREDICTION = ("relation", "bound", "margin")  # the columns of a prediction

# The schema of every table of checks.
COLUMNS = (
    "claim",  # id in published/claims.csv of the claim that the row speaks of; empty where it speaks of none
    "paper",
    "item",  # figure, table, section or proposition
    "quantity",
    *PREDICTION,
    "measured",
    "low",
    "high",
    "n",  # observations behind the interval: documents, seeds, layers or comparisons
    "scale",
    "verdict",
    "identity",  # true where networks of any weights have this value, so that the row supports no claim
    "known",  # true where low and high are known numbers and no interval: nothing was sampled
    "left_out",  # seeds without a value: they diverged in training, or the quantity is not defined for them
    "seen_before",  # seeds behind the interval whose results we knew before the rules of verdicts were fixed
    "source",  # who predicts it, and where
)
# What tells rows apart: rows of two trainings that are alike in all of these are of the same quantity.
KEYS = (
    "statistic",  # its name in published/predictions.csv
    "network",
    "other",  # network that is subtracted, or ""
    "setting",  # what else tells it apart
    "model",  # whose it is, where it is of a language model: its seeds and data sets are not further models
)


def table(paper: str, scale: str, rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """Make rows of the judge on one paper a table in the common schema, with their keys."""
    complete = [{"paper": paper, "scale": scale, **row} for row in rows]
    return pd.DataFrame(complete, columns=[*COLUMNS, *KEYS])


def keys(rows: pd.DataFrame) -> pd.Series:
    """What tells the quantities of rows apart, as one text for each."""
    cells = rows[list(KEYS)].astype(object).fillna("")
    return pd.Series(["\n".join(row) for row in cells.itertuples(index=False, name=None)], index=rows.index)


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A table of checks for people: without the keys, which its sentences say."""
    return table.drop(columns=list(KEYS), errors="ignore")


def tested(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a measurement: what a long run leaves out is not reported as missing a second time."""
    return table[table["verdict"] != UNTESTABLE]
