"""The registries of published/, tables of text: what is claimed, and what is predicted of which statistic.

published/claims.csv lists what the papers claim, and published/additions.csv what we add, each with the question that
it answers. In published/predictions.csv a row says that of one network, or of one less another, a statistic lies above
or below a bound by more than a margin, within the margin of it (=), or beyond it on either side (!=). Margins are fixed
before the run that they judge; the history of the file shows it. A fault of any ends in one line that names the row.
"""

import csv
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product, zip_longest
from pathlib import Path
from string import Formatter
from typing import Any, Literal, get_args

from position_card.core.runtime import InputError

WHOSE = ("paper", "secondary source")  # read in the paper's text; known only from what others write of it
OURS = "ours"  # whose additions are
TRUTH = {"true": True, "false": False}
AND = " and "  # between several values of one cell
NOTHING = "nothing"
NEEDS = (NOTHING, "iterations", "prompts", "pretrained models", "lengths")  # what a claim can speak about
PRETRAINED = "pretrained"  # the scale of real decoders that are smaller than the paper's
DEFAULT = "default"  # the scale of the default run
SCALES = ("test", DEFAULT, "longer", PRETRAINED, "paper")  # of rows of checks, the smallest first
LONG = SCALES[2:]  # those of more than the default run
SEED, MODEL, ERRATA = "seed", "model", "errata"
FORMS = ("all", "most", "can", "ordering", "equal", "absent", "exact")  # what a claim asks of its rows
UNITS = (SEED, MODEL, "none")  # what it generalises over
KINDS = ("theory", "printed", ERRATA, "network", "pretrained")  # what it speaks of


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, or an addition of ours. The fields are the columns of the registries."""

    id: str  # unique; rows of tables of checks that speak of the claim carry it
    paper: str
    item: str  # figure, table, theorem or section
    place: str  # where the claim stands in its source; additions have none
    title: str  # in at most 45 characters, for who has not read the paper
    statement: str  # in our words
    whose: str  # one of WHOSE, or OURS
    needs: str  # of NEEDS, joined by AND: what of the paper's scale its statement is about; nothing: any will do
    table: str  # of checks, below results/tables/: structural/checks
    shown: str  # the figures or tables that show it, targets of the workflow, joined by " and "
    form: str  # one of FORMS, as the next two written down before the runs that judge it
    unit: str  # one of UNITS
    kind: str  # one of KINDS
    rows: str  # its comparisons with their margins, in words
    published: str = ""  # id of what the paper prints for it, in published/values.csv
    doubted: bool = False  # the paper may not say so: its source may doubt it, or we read it so; nobody is held to it
    # what would test it, where the default run could not have shown the effect: rows of longer runs alone speak of it
    would_test: str = ""
    question: str = ""  # which an addition answers

    def met_at(self, scale: str) -> bool:
        """Whether rows at this scale are about what the claim is about, and can therefore settle it.

        What we claim of pretrained models is about any; the paper speaks of its own.
        """
        of_any = self.whose == OURS and self.needs == "pretrained models" and scale == PRETRAINED
        return self.needs == NOTHING or scale == SCALES[-1] or of_any


COLUMN_VALUES = {"whose": WHOSE, "needs": NEEDS, "doubted": tuple(TRUTH)}  # values of columns
COLUMN_VALUES |= {"form": FORMS, "unit": UNITS, "kind": KINDS}
OF_ADDITIONS = (  # the columns of the registry of additions
    *("id", "paper", "item", "question", "title", "statement"),
    *("needs", "table", "shown", "form", "unit", "kind", "rows"),
)
OF_CLAIMS = tuple(field.name for field in fields(Claim) if field.name != "question")  # of that of claims


def every_claim(path: str | Path) -> tuple[Claim, ...]:
    """Read every claim of the papers, in the order of the file.

    Raises InputError, which names the row, where the file is no such table, a cell that needs a value is empty, a value
    is none of those that its column may have, or an id is there twice.
    """
    return tuple(
        Claim(**row | {"doubted": TRUTH[row["doubted"]]})
        for row in _registry_rows(path, "claims", OF_CLAIMS, {*OF_CLAIMS} - {"published", "would_test"})
    )


def every_addition(path: str | Path) -> tuple[Claim, ...]:
    """Read every addition of ours, in the order of the file. Raises InputError as `every_claim` does."""
    rows = _registry_rows(path, "additions", OF_ADDITIONS, OF_ADDITIONS)
    return tuple(Claim(**row, place="", whose=OURS) for row in rows)


def _registry_rows(
    path: str | Path, subject: str, columns: Sequence[str], required: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a registry, by column. Raises InputError as `every_claim` does.

    `subject` is what the registry lists, for messages; `required` are the columns that must not be empty.
    """
    ids: set[str] = set()
    for _, row in _rows(path, subject, columns, required):
        for column, values in COLUMN_VALUES.items():
            if unknown := [value for value in row.get(column, values[0]).split(AND) if value not in values]:
                raise InputError(f"{row['id']} in {path} has {column} {unknown[0]}; use one of: {', '.join(values)}")
        if row["id"] in ids:
            raise InputError(f"{path} has {row['id']} twice; an id names one line")
        ids.add(row["id"])
        yield row


def shows(targets: str, target: str) -> bool:
    """Whether a target of the workflow, a figure or table, is one of the `targets` of a cell `Claim.shown`."""
    return target in targets.split(AND)


def claim_tables(claims: Iterable[Claim]) -> list[str]:
    """Return the names of the tables of checks whose rows speak of the claims, each once, in their order."""
    return list(dict.fromkeys(claim.table for claim in claims))


# Predictions

OR = "|"  # between networks that the same is predicted of
Relation = Literal[">", "<", "=", "!="]  # the last: beyond the margin on either side


@dataclass(frozen=True)
class Prediction:
    """What is predicted of a statistic. The fields are the columns of the registry, in their order."""

    paper: str  # the wing whose statistic it is
    statistic: str  # its name
    claim: str  # id of the claim or addition that the prediction speaks of, or ""
    network: str  # the column of the statistic's table, or several, joined by OR
    other: str  # the column that is subtracted, or several; or ""
    relation: Relation
    bound: float
    margin: float  # a deviation from the bound that nobody would call one
    item: str  # figure, table, section or proposition
    words: str  # what is measured; {network}, {other} and the names of the statistic's setting are filled in
    source: str  # who predicts it, and where
    seen: str = ""  # which of its numbers were seen before it was written, so that they confirm nothing


PREDICTION_COLUMNS = tuple(field.name for field in fields(Prediction))
NUMBERS = ("bound", "margin")
REQUIRED = {"paper", "statistic", "network", "relation", "item", "words", "source"}


def predictions(path: str | Path, paper: str) -> dict[str, list[Prediction]]:
    """Return the predictions of a wing by their statistic, in the order of the file.

    A row on several networks, or pairs of networks, becomes a prediction for each. Raises InputError, which names the
    row, where the file is no table of predictions.
    """
    by_statistic: dict[str, list[Prediction]] = {}
    for row in every_prediction(path):
        if row.paper == paper:
            pairs = product(row.network.split(OR), row.other.split(OR))
            one_each = [replace(row, network=network, other=other) for network, other in pairs]
            by_statistic.setdefault(row.statistic, []).extend(one_each)
    return by_statistic


def every_prediction(path: str | Path) -> list[Prediction]:
    """Read every row of published/predictions.csv, in its order. Raises InputError as `predictions` does."""
    return [_prediction(place, row) for place, row in _rows(path, "predictions", PREDICTION_COLUMNS, REQUIRED)]


def _prediction(place: str, row: dict[str, str]) -> Prediction:
    """Return a row of the registry as a prediction; its bound and margin become numbers, 0 where their cells are empty.

    Raises InputError where the relation is none, a number is none, or the words do not fit `str.format`. `place` says
    where the row stands.
    """
    if row["relation"] not in get_args(Relation):
        raise InputError(f"{place} has relation {row['relation']}; use one of: {', '.join(get_args(Relation))}")
    try:
        numbers: dict[str, Any] = {name: float(row[name] or 0) for name in NUMBERS}
        list(Formatter().parse(row["words"]))
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error
    return Prediction(**row | numbers)


def _rows(
    path: str | Path, subject: str, columns: Sequence[str], required: Collection[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each row of a table of `subject` stands, for messages, and its cells by column.

    Empty cells at its end may be left out. Raises InputError where the file is no such table, or a row lacks
    what is `required`.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path} is not a table of {subject}: {' '.join(str(error).split())}") from error
    if header != [*columns]:
        raise InputError(f"{path} has columns {', '.join(header)}; a table of {subject} has {', '.join(columns)}")
    for number, cells in enumerate(lines, 2):
        place = f"row {number} of {path}"
        if len(cells) > len(columns):
            raise InputError(f"{place} has {len(cells)} cells, not {len(columns)}")
        row = dict(zip_longest(columns, cells, fillvalue=""))
        if empty := [column for column in columns if column in required and not row[column]]:
            raise InputError(f"{place} has nothing in column {', '.join(empty)}")
        yield place, row
