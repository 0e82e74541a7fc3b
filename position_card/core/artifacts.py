"""Artifacts on disk are tensors in safetensors and tables in CSV or parquet; written whole, checked when read.

Tensors are sealed: a file has a checksum of each and of its labels, so that no bit of it changes unnoticed. Pages of
parquet have checksums, too. Tables in CSV are for people to read and edit: another number in the place of a number, or
whole lines gone, no reader can tell.
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
from pyarrow import parquet
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from position_card.core.runtime import InputError, whole_file

Tensors = dict[str, np.ndarray]
Labels = dict[str, Any]
KEY = "artifact"  # of the metadata of safetensors; one key, since several would be written in any order

STATISTIC = "statistic"  # the column that names what a value is; some statistics are undefined
# Columns that hold finite numbers in every table that has them; those of `low`, `high` and `measured` may be missing.
NUMBERS = frozenset(
    {"value", "low", "high", "measured", "position", "n", "head", "seed", "step", "iteration", "lambda"}
)


class UnusableError(InputError):
    """Nobody should use a file of results; the reason follows "it"."""

    def __init__(self, path: str | Path, reason: str) -> None:
        self.reason = " ".join(reason.split())
        remedy = f"rebuild it with: snakemake --cores 1 --force {path}"
        super().__init__(f"artifact {path} is not usable: it {self.reason}; {remedy}")


def seal(path: str | Path, arrays: Mapping[str, np.ndarray], labels: Mapping[str, Any]) -> None:
    """Write arrays and labels that JSON can hold, whole or not at all; the same content gives the same bytes."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata: Labels = {"labels": labels, "sums": {name: _checksum(array) for name, array in contiguous.items()}}
    metadata["sum"] = _sum_of(metadata)
    with whole_file(path) as partial:
        save_file(contiguous, partial, {KEY: json.dumps(metadata)})


def unseal(path: str | Path, *names: str, without: Sequence[str] = ()) -> tuple[Labels, Tensors]:
    """Return the labels and the arrays `names`, or all but those `without` where none is named.

    Raises UnusableError where the file is missing, cut short or not as it was written, or lacks an array.
    """
    with _open_checked(path) as (file, metadata):
        chosen_names = names or sorted({*metadata["sums"], *file.keys()} - set(without))
        if missing := set(chosen_names) - set(file.keys()):
            raise UnusableError(path, f"lacks {', '.join(sorted(missing))}")
        arrays = {name: file.get_tensor(name) for name in chosen_names}
    for name, array in arrays.items():
        if _checksum(array) != metadata["sums"].get(name):
            raise UnusableError(path, f"holds {name}, which has changed since it was written")
    return metadata["labels"], arrays


def read_labels(path: str | Path) -> Labels:
    """Return the labels alone. Raises as `unseal` does."""
    with _open_checked(path) as (_, metadata):
        labels: Labels = metadata["labels"]
        return labels


@contextmanager
def _open_checked(path: str | Path) -> Iterator[tuple[Any, Labels]]:
    """Yield the open file, and what `seal` wrote beside the arrays: labels, and the checksum of each array."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata: Labels = json.loads(file.metadata()[KEY])
            if metadata.pop("sum") != _sum_of(metadata):
                raise UnusableError(path, "has labels that have changed since they were written")
            yield file, metadata
    except (OSError, SafetensorError) as error:
        raise UnusableError(path, f"cannot be read ({error})") from error
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise UnusableError(path, "has no labels that this workflow wrote") from error


def _checksum(array: np.ndarray) -> str:
    digest = hashlib.blake2b(f"{array.dtype}{array.shape}".encode(), digest_size=16)
    digest.update(array.data)
    return digest.hexdigest()


def _sum_of(metadata: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(metadata).encode(), digest_size=16).hexdigest()


def write_tensors(path: str | Path, tensors: Mapping[str, np.ndarray], **labels: object) -> None:
    """Write named arrays, and labels that say what they were measured on (model, dataset, n, ...).

    Raises InputError if a floating array holds a NaN or an infinity.
    """
    if fault := _not_finite(tensors):
        raise InputError(f"{path} is not written, since it {fault}; check what it was computed from")
    seal(path, tensors, labels)


def read_tensors(path: str | Path, *names: str, without: Sequence[str] = ()) -> Tensors:
    """Read the arrays `names`, or all but those `without` where none is named.

    Raises InputError if the file is missing, cut short or not as it was written, lacks an array or holds one that is
    not finite.
    """
    _, tensors = unseal(path, *names, without=without)
    if fault := _not_finite(tensors):
        raise UnusableError(path, fault)
    return tensors


@dataclass(frozen=True)
class TensorFile:
    """A file of `write_tensors`, read as far as it is asked for. Reading raises InputError as `read_tensors` does."""

    path: str

    @property
    def labels(self) -> dict[str, Any]:
        """Labels by name, which say what its tensors were measured on: model, dataset, n and so on."""
        return read_labels(self.path)

    def read(self, *names: str) -> Tensors:
        """Read the arrays of these names, or all where none is named."""
        return read_tensors(self.path, *names)


def write_table(path: str | Path, table: pd.DataFrame) -> None:
    """Write a tidy table as .csv (floats to full precision) or .parquet. Raises ValueError for another suffix."""
    with whole_file(path) as partial:
        match Path(path).suffix:
            case ".csv":
                table.to_csv(partial, index=False, lineterminator="\n")
            case ".parquet":
                table.to_parquet(partial, index=False, write_page_checksum=True)
            case suffix:
                raise ValueError(f"no table format for suffix {suffix!r}: use .csv or .parquet")


def read_table(path: str | Path, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Read a .csv or .parquet table that has `columns`; its columns in NUMBERS hold numbers.

    A statistic may have no value, as ratios to 0 have none; any other row has one. Raises InputError if the table
    cannot be read, is empty, lacks a column, or has text, an infinity or nothing where a number belongs.
    """
    try:
        table = _parsed(Path(path))
    except Exception as error:  # of a damaged file, parsers raise errors of every kind
        raise UnusableError(path, f"cannot be read ({error})") from error
    if missing := [column for column in columns if column not in table]:
        raise UnusableError(path, f"lacks column {', '.join(missing)}")
    if table.empty:
        raise UnusableError(path, "has no rows")
    for column in NUMBERS.intersection(table):
        if not pd.api.types.is_numeric_dtype(table[column]):
            raise UnusableError(path, f"holds something other than numbers in column {column}")
        if np.isinf(table[column]).any():
            raise UnusableError(path, f"holds an infinity in column {column}")
    if "value" in table and STATISTIC not in table and (rows := int(table["value"].isna().sum())):
        raise UnusableError(path, f"has no value in {rows} rows")
    return table


def _parsed(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        table = pd.read_parquet(path, page_checksum_verification=True)
        if len(table) != parquet.read_metadata(path).num_rows:  # this number has no checksum, but stands there twice
            raise ValueError("its parts name two numbers of rows")
        return table
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        raise ValueError("its last line is cut short")
    return pd.read_csv(io.StringIO(text))


def read_tables(paths: Sequence[str | Path], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Read the rows of several tables, in order; each is read as by `read_table`."""
    return pd.concat([read_table(path, columns) for path in paths], ignore_index=True)


def _not_finite(tensors: Mapping[str, np.ndarray]) -> str:
    """Describe the first array with values that are not finite; "" where there is none."""
    for name, value in tensors.items():
        if np.issubdtype(value.dtype, np.floating) and (bad := np.count_nonzero(~np.isfinite(value))):
            return f"holds {bad} values in {name} that are not finite"
    return ""
