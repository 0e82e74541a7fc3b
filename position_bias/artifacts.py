"""Artifacts on disk: tensors in safetensors, tables in CSV or parquet; written whole, checked when read."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from position_bias.runtime import InputError, whole_file

Tensors = dict[str, np.ndarray]


def write_tensors(path: str | Path, tensors: Mapping[str, np.ndarray], **labels: object) -> None:
    """Write named arrays, and labels that say what they were measured on (model, dataset, n, ...).

    Raises InputError if a floating array holds a NaN or an infinity.
    """
    if fault := _not_finite(tensors):
        raise InputError(f"{path} is not written: {fault}; check what it was computed from")
    with whole_file(path) as partial:
        metadata = {"labels": json.dumps(labels)}  # under one name: safetensors writes several in any order
        save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()}, partial, metadata)


def read_tensors(path: str | Path, *names: str) -> Tensors:
    """Read the arrays `names`, or all where none is named.

    Raises InputError if the file is missing, cut short, lacks an array or holds one that is not finite.
    """
    with _opened(path) as file:
        if missing := set(names) - set(file.keys()):
            raise _unreadable(path, f"it lacks {', '.join(sorted(missing))}")
        tensors = {name: file.get_tensor(name) for name in names or file.keys()}
    if fault := _not_finite(tensors):
        raise _unreadable(path, fault)
    return tensors


def read_labels(path: str | Path) -> dict[str, Any]:
    """The labels that `write_tensors` was given. Raises InputError as `read_tensors` does."""
    with _opened(path) as file:
        labels: dict[str, Any] = json.loads((file.metadata() or {}).get("labels", "{}"))
    return labels


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, str(error)) from error


def write_table(path: str | Path, table: pd.DataFrame) -> None:
    """Write a tidy table as the suffix says, .csv (floats to full precision), .parquet or .md (to four digits)."""
    with whole_file(path) as partial:
        match Path(path).suffix:
            case ".csv":
                table.to_csv(partial, index=False, lineterminator="\n")
            case ".parquet":
                table.to_parquet(partial, index=False)
            case ".md":
                partial.write_text(table.to_markdown(index=False, floatfmt=".4g") + "\n", encoding="utf-8")
            case suffix:
                raise ValueError(f"no table format for suffix {suffix!r}: use .csv, .parquet or .md")


def read_table(path: str | Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a .csv or .parquet table. Raises InputError if it cannot be read, is empty, or lacks one of `columns`."""
    try:
        table = pd.read_parquet(path) if Path(path).suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as error:  # pandas' and pyarrow's parsing errors are ValueErrors
        raise _unreadable(path, str(error)) from error
    if missing := [column for column in columns if column not in table]:
        raise _unreadable(path, f"it lacks column {', '.join(missing)}")
    if table.empty:
        raise _unreadable(path, "it has no rows")
    return table


def read_tables(paths: Sequence[str | Path], columns: Sequence[str]) -> pd.DataFrame:
    """The rows of several tables, in order; each is read as by `read_table`."""
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
