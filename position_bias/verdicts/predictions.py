"""The registry of predictions: what is predicted of which statistic, as published/predictions.csv lists it.

A prediction is a row: of one network, or of one less another, a statistic lies above or below a bound by more than a
margin, or within the margin of it. Margins are fixed before the run that they judge; the history of the file shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from string import Formatter
from typing import Any

import pandas as pd

from position_bias.running.runtime import InputError
from position_bias.verdicts.verdict import Prediction

OR = "|"  # between networks that the same is predicted of
RELATIONS = (">", "<", "=", "!=")


@dataclass(frozen=True)
class Predicted:
    """A row of the registry. The fields are its columns, in their order."""

    paper: str  # the wing whose statistic it is
    statistic: str  # its name
    claim: str  # id in published/claims.csv of the claim that the prediction speaks of, or ""
    network: str  # the column of the statistic's table, or several, joined by OR
    other: str  # the column that is subtracted, or several; or ""
    relation: str  # one of RELATIONS
    bound: float
    margin: float  # a deviation from the bound that nobody would call one
    item: str  # figure, table, section or proposition
    words: str  # what is measured; {network}, {other} and the names of the statistic's setting are filled in
    source: str  # who predicts it, and where
    seen: str = ""  # which of its numbers were seen before it was written, so that they confirm nothing

    @property
    def prediction(self) -> Prediction:
        return Prediction(self.relation, self.bound, self.margin)  # type: ignore[arg-type]  # one of RELATIONS


COLUMNS = tuple(field.name for field in fields(Predicted))
NUMBERS = ("bound", "margin")
NEEDED = ("paper", "statistic", "network", "relation", "item", "words", "source")


def predictions(path: str | Path, paper: str) -> dict[str, list[Predicted]]:
    """The predictions of a wing by statistic, one for each network or pair of networks, in the order of the file.

    Raises InputError where the file is no table of predictions; the line names the row.
    """
    found: dict[str, list[Predicted]] = {}
    for row in registry(path):
        if row.paper == paper:
            found.setdefault(row.statistic, []).extend(_each(row))
    return found


def registry(path: str | Path) -> list[Predicted]:
    """Every row of the file, in its order. Raises InputError as `predictions` does."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a table of predictions: {' '.join(str(error).split())}") from error
    if tuple(table) != COLUMNS:
        raise InputError(
            f"{path} has columns {', '.join(map(str, table))}; a table of predictions has {', '.join(COLUMNS)}"
        )
    return [_checked(path, number, row) for number, row in enumerate(table.to_dict("records"), 2)]


def _checked(path: str | Path, number: int, row: dict[Any, Any]) -> Predicted:
    where = f"row {number} of {path}"
    if empty := [column for column in NEEDED if not row[column]]:
        raise InputError(f"{where} has nothing in column {', '.join(empty)}")
    if row["relation"] not in RELATIONS:
        raise InputError(f"{where} has relation {row['relation']}; use one of: {', '.join(RELATIONS)}")
    try:
        numbers = {name: float(row[name] or 0) for name in NUMBERS}
        list(Formatter().parse(row["words"]))
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
    return Predicted(**{**row, **numbers})


def _each(row: Predicted) -> Iterator[Predicted]:
    """The same prediction of every network, and of every pair, that the row names."""
    for network in row.network.split(OR):
        for other in row.other.split(OR):
            yield replace(row, network=network, other=other)
