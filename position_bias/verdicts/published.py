"""Registries of published/ are tables of text, read row by row. A fault ends in one line that names the row."""

import csv
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from position_bias.running.runtime import InputError


def rows(
    path: str | Path, what: str, columns: Sequence[str], needed: Collection[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each row of a table of `what` stands, for messages, and its cells by column.

    Empty cells at its end may be left out. Raises InputError where the file is no such table, or a row lacks
    what is `needed`.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path} is not a table of {what}: {' '.join(str(error).split())}") from error
    if header != list(columns):
        raise InputError(f"{path} has columns {', '.join(header)}; a table of {what} has {', '.join(columns)}")
    for number, cells in enumerate(lines, 2):
        where = f"row {number} of {path}"
        if len(cells) > len(columns):
            raise InputError(f"{where} has {len(cells)} cells, not {len(columns)}")
        row = dict(zip_longest(columns, cells, fillvalue=""))
        if empty := [column for column in columns if column in needed and not row[column]]:
            raise InputError(f"{where} has nothing in column {', '.join(empty)}")
        yield where, row
