"""Artifacts on disk are tensors in safetensors and tables in CSV or parquet; written whole, checked when read.

Tensors and their labels carry checksums, pages of parquet too: no bit of them changes unnoticed. Tables in CSV are for
people to read and edit: another number in the place of a number, or whole lines gone, no reader can tell.
"""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from position_bias.running.runtime import InputError, whole_file

Tensors = dict[str, np.ndarray]

STATISTIC = "statistic"  # the column that names what a value is; some statistics are undefined
# Columns that hold finite numbers in every table that has them; those of `low`, `high` and `measured` may be missing.
NUMBERS = frozenset(
    {"value", "low", "high", "measured", "position", "n", "head", "seed", "step", "iteration", "lambda"}
)


def write_tensors(path: str | Path, tensors: Mapping[str, np.ndarray], **labels: object) -> None:
    """Write named arrays, and labels that say what they were measured on (model, dataset, n, ...).

    Raises InputError if a floating array holds a NaN or an infinity.
    """
    if fault := _not_finite(tensors):
        raise InputError(f"{path} is not written: {fault}; check what it was computed from")
    arrays = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    described = {"labels": labels, "sums": {name: _checksum(array) for name, array in arrays.items()}}
    described["sum"] = _sum_of(described)
    with whole_file(path) as partial:  # one metadata key: safetensors writes several in any order
        save_file(arrays, partial, {"artifact": json.dumps(described)})


def read_tensors(path: str | Path, *names: str, without: Sequence[str] = ()) -> Tensors:
    """Read the arrays `names`, or all but those `without` where none is named.

    Raises InputError if the file is missing, cut short or not as it was written, lacks an array or holds one that is
    not finite.
    """
    with _opened(path) as file:
        sums = _described(path, file)["sums"]
        wanted = names or sorted({*sums, *file.keys()} - set(without))
        if missing := set(wanted) - set(file.keys()):
            raise _unreadable(path, f"it lacks {', '.join(sorted(missing))}")
        tensors = {name: file.get_tensor(name) for name in wanted}
    for name, value in tensors.items():
        if _checksum(value) != sums.get(name):
            raise _unreadable(path, f"{name} has changed since it was written")
    if fault := _not_finite(tensors):
        raise _unreadable(path, fault)
    return tensors


def read_labels(path: str | Path) -> dict[str, Any]:
    """Read the labels that `write_tensors` was given. Raises InputError as `read_tensors` does."""
    with _opened(path) as file:
        labels: dict[str, Any] = _described(path, file)["labels"]
    return labels


@dataclass(frozen=True)
class TensorFile:
    """A file of `write_tensors`, read as far as it is asked for. Reading raises InputError as `read_tensors` does."""

    path: str

    @property
    def labels(self) -> dict[str, Any]:
        """What its tensors were measured on."""
        return read_labels(self.path)

    def read(self, *names: str) -> Tensors:
        """The arrays of these names, or all where none is named."""
        return read_tensors(self.path, *names)


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, str(error)) from error


def _described(path: str | Path, file: Any) -> dict[str, Any]:
    """What `write_tensors` wrote beside the arrays: labels, and the checksum of each array."""
    try:
        described: dict[str, Any] = json.loads(file.metadata()["artifact"])
        unchanged = described.pop("sum") == _sum_of(described)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(path, "it has no labels that this workflow wrote") from error
    if not unchanged:
        raise _unreadable(path, "its labels have changed since they were written")
    return described


def _checksum(array: np.ndarray) -> str:
    digest = hashlib.blake2b(f"{array.dtype}{array.shape}".encode(), digest_size=16)
    digest.update(array.data)
    return digest.hexdigest()


def _sum_of(described: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(described).encode(), digest_size=16).hexdigest()


def write_table(path: str | Path, table: pd.DataFrame) -> None:
    """Write a tidy table as the suffix says, .csv (floats to full precision), .parquet or .md (to four digits)."""
    with whole_file(path) as partial:
        match Path(path).suffix:
            case ".csv":
                table.to_csv(partial, index=False, lineterminator="\n")
            case ".parquet":
                table.to_parquet(partial, index=False, write_page_checksum=True)
            case ".md":
                partial.write_text(table.to_markdown(index=False, floatfmt=".4g") + "\n", encoding="utf-8")
            case suffix:
                raise ValueError(f"no table format for suffix {suffix!r}: use .csv, .parquet or .md")


def read_table(path: str | Path, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Read a .csv or .parquet table that has `columns`; its columns in NUMBERS hold numbers.

    A statistic may have no value, as ratios to 0 have none; any other row has one. Raises InputError if the table
    cannot be read, is empty, lacks a column, or has text, an infinity or nothing where a number belongs.
    """
    try:
        table = _parsed(Path(path))
    except Exception as error:  # of a damaged file, parsers raise errors of every kind
        raise _unreadable(path, str(error)) from error
    if missing := [column for column in columns if column not in table]:
        raise _unreadable(path, f"it lacks column {', '.join(missing)}")
    if table.empty:
        raise _unreadable(path, "it has no rows")
    for column in NUMBERS.intersection(table):
        if not pd.api.types.is_numeric_dtype(table[column]):
            raise _unreadable(path, f"column {column} holds something other than numbers")
        if np.isinf(table[column]).any():
            raise _unreadable(path, f"column {column} holds an infinity")
    if "value" in table and STATISTIC not in table and (rows := int(table["value"].isna().sum())):
        raise _unreadable(path, f"column value is empty in {rows} rows")
    return table


def _parsed(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path, page_checksum_verification=True)
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        raise ValueError("its last line is cut short")
    return pd.read_csv(io.StringIO(text))


def read_tables(paths: Sequence[str | Path], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Read the rows of several tables, in order; each is read as by `read_table`."""
    return pd.concat([read_table(path, columns) for path in paths], ignore_index=True)


def _not_finite(tensors: Mapping[str, np.ndarray]) -> str:
    """Which array holds values that are not finite, and how many; "" where none does."""
    for name, value in tensors.items():
        if np.issubdtype(value.dtype, np.floating) and (bad := np.count_nonzero(~np.isfinite(value))):
            return f"{name} holds {bad} values that are not finite"
    return ""


def _unreadable(path: str | Path, why: str) -> InputError:
    reason = " ".join(why.split())
    return InputError(f"artifact {path} is not usable: {reason}; rebuild it with: snakemake --cores 1 --force {path}")
