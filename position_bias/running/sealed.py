"""A sealed file holds arrays and labels in safetensors, with a checksum of each: no bit of it changes unnoticed.

Labels are what JSON can hold, and say what the arrays were measured on, or where a training stood.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from position_bias.running.runtime import InputError, whole_file

Arrays = dict[str, np.ndarray]
Labels = dict[str, Any]
KEY = "artifact"  # of the metadata; one key, since safetensors writes several in any order


class UnusableError(InputError):
    """Nobody should use a file of results; the reason follows "it"."""

    def __init__(self, path: str | Path, reason: str) -> None:
        self.reason = " ".join(reason.split())
        remedy = f"rebuild it with: snakemake --cores 1 --force {path}"
        super().__init__(f"artifact {path} is not usable: it {self.reason}; {remedy}")


def write(path: str | Path, arrays: Mapping[str, np.ndarray], labels: Mapping[str, Any]) -> None:
    """Write arrays and labels, whole or not at all; the same content gives the same bytes."""
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    described: Labels = {"labels": labels, "sums": {name: _checksum(array) for name, array in ordered.items()}}
    described["sum"] = _sum_of(described)
    with whole_file(path) as partial:
        save_file(ordered, partial, {KEY: json.dumps(described)})


def read(path: str | Path, *names: str, without: Sequence[str] = ()) -> tuple[Labels, Arrays]:
    """Return the labels and the arrays `names`, or all but those `without` where none is named.

    Raises UnusableError where the file is missing, cut short or not as it was written, or lacks an array.
    """
    with _opened(path) as (file, described):
        wanted = names or sorted({*described["sums"], *file.keys()} - set(without))
        if missing := set(wanted) - set(file.keys()):
            raise UnusableError(path, f"lacks {', '.join(sorted(missing))}")
        arrays = {name: file.get_tensor(name) for name in wanted}
    for name, array in arrays.items():
        if _checksum(array) != described["sums"].get(name):
            raise UnusableError(path, f"holds {name}, which has changed since it was written")
    return described["labels"], arrays


def read_labels(path: str | Path) -> Labels:
    """Return the labels alone. Raises as `read` does."""
    with _opened(path) as (_, described):
        labels: Labels = described["labels"]
        return labels


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[Any, Labels]]:
    """The open file, and what `write` wrote beside the arrays: labels, and the checksum of each array."""
    try:
        with safe_open(path, framework="numpy") as file:
            described: Labels = json.loads(file.metadata()[KEY])
            if described.pop("sum") != _sum_of(described):
                raise UnusableError(path, "has labels that have changed since they were written")
            yield file, described
    except (OSError, SafetensorError) as error:
        raise UnusableError(path, f"cannot be read ({error})") from error
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise UnusableError(path, "has no labels that this workflow wrote") from error


def _checksum(array: np.ndarray) -> str:
    digest = hashlib.blake2b(f"{array.dtype}{array.shape}".encode(), digest_size=16)
    digest.update(array.data)
    return digest.hexdigest()


def _sum_of(described: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(described).encode(), digest_size=16).hexdigest()
