"""The registry of claims: what the papers claim, and what is ours beside it, as published/claims.csv lists them."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from position_bias.running.runtime import InputError

OURS = "ours"
WHOSE = ("paper", "secondary source", OURS)  # read in the paper's text; known only from what others write of it; ours
TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, or ours beside it. The fields are the columns of the registry, in their order."""

    id: str  # unique; rows of tables of checks that speak of the claim carry it
    paper: str
    item: str  # figure, table, theorem or section
    place: str  # where the claim stands in its source
    statement: str  # in our words
    whose: str  # one of WHOSE
    table: str  # of checks, below results/tables/: structural/checks
    shown: str  # the figure or table that shows it, a target of the workflow
    published: str = ""  # id of what the paper prints for it, in published/values.csv
    ranges: bool = False  # low and high are a range over settings or layers, and no interval: it is not widened


COLUMNS = tuple(field.name for field in fields(Claim))
MAY_BE_EMPTY = ("published",)


def registry(path: str | Path) -> tuple[Claim, ...]:
    """Every claim, in the order of the file. Raises InputError where the file is no such table."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InputError(f"{path} is not a table of claims: {' '.join(str(error).split())}") from error
    if tuple(header) != COLUMNS:
        raise InputError(f"{path} has columns {', '.join(header)}; a table of claims has {', '.join(COLUMNS)}")
    claims = tuple(_claim(path, number, cells) for number, cells in enumerate(lines, 2))
    ids = [claim.id for claim in claims]
    if twice := next((name for place, name in enumerate(ids) if name in ids[:place]), ""):
        raise InputError(f"{path} has claim {twice} twice; an id names one claim")
    return claims


def tables(claims: Iterable[Claim]) -> list[str]:
    """The tables of checks whose rows speak of the claims, each once."""
    return list(dict.fromkeys(claim.table for claim in claims))


def _claim(path: str | Path, number: int, cells: list[str]) -> Claim:
    if len(cells) != len(COLUMNS):
        raise InputError(f"row {number} of {path} has {len(cells)} cells, not {len(COLUMNS)}")
    row: dict[str, Any] = dict(zip(COLUMNS, cells, strict=True))
    if empty := [column for column, cell in row.items() if not cell and column not in MAY_BE_EMPTY]:
        raise InputError(f"row {number} of {path} has nothing in column {', '.join(empty)}")
    for column, known in {"whose": WHOSE, "ranges": tuple(TRUTH)}.items():
        if row[column] not in known:
            raise InputError(f"claim {row['id']} in {path} has {column} {row[column]}; use one of: {', '.join(known)}")
    return Claim(**row | {"ranges": TRUTH[row["ranges"]]})
