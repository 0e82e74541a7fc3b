"""The registry of predictions: what is predicted of which statistic, as published/predictions.csv lists it.

A prediction is a row: of one network, or of one less another, a statistic lies above or below a bound by more than a
margin, within the margin of it (=), or beyond it on either side (!=). Margins are fixed before the run that they judge;
the history of the file shows it.
"""

from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from string import Formatter
from typing import Any

from position_bias.running.runtime import InputError
from position_bias.verdicts import published
from position_bias.verdicts.rule import Relation, Word, word_of_interval

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
    relation: Relation
    bound: float
    margin: float  # a deviation from the bound that nobody would call one
    item: str  # figure, table, section or proposition
    words: str  # what is measured; {network}, {other} and the names of the statistic's setting are filled in
    source: str  # who predicts it, and where
    seen: str = ""  # which of its numbers were seen before it was written, so that they confirm nothing

    def verdict(self, low: float, high: float) -> Word:
        """What an interval says by itself; a quantity that is not defined at this scale has one of NaN."""
        return word_of_interval(self.relation, self.bound, self.margin, low, high)


COLUMNS = tuple(field.name for field in fields(Predicted))
NUMBERS = ("bound", "margin")
NEEDED = ("paper", "statistic", "network", "relation", "item", "words", "source")


def predictions(path: str | Path, paper: str) -> dict[str, list[Predicted]]:
    """The predictions of a wing by statistic, one for each network or pair of networks, in the order of the file.

    Raises InputError where the file is no table of predictions; the line names the row.
    """
    by_statistic: dict[str, list[Predicted]] = {}
    for row in registry(path):
        if row.paper == paper:
            pairs = product(row.network.split(OR), row.other.split(OR))
            each = [replace(row, network=network, other=other) for network, other in pairs]
            by_statistic.setdefault(row.statistic, []).extend(each)
    return by_statistic


def registry(path: str | Path) -> list[Predicted]:
    """Every row of the file, in its order. Raises InputError as `predictions` does."""
    return [_checked(where, row) for where, row in published.rows(path, "predictions", COLUMNS, NEEDED)]


def _checked(where: str, row: dict[str, str]) -> Predicted:
    if row["relation"] not in RELATIONS:
        raise InputError(f"{where} has relation {row['relation']}; use one of: {', '.join(RELATIONS)}")
    try:
        numbers: dict[str, Any] = {name: float(row[name] or 0) for name in NUMBERS}
        list(Formatter().parse(row["words"]))
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
    return Predicted(**row | numbers)
