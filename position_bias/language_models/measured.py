"""What was measured of a decoder, as a file holds it between the job that measures and those that compute and draw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_bias.running import artifacts

Array = NDArray[np.float64]

MIXINGS, KERNELS = ("frobenius", "token", "backward"), ("toeplitz", "rotary")


@dataclass(frozen=True)
class Measured:
    """What was measured of a decoder on N prompts of n tokens, for L layers of H heads; all float64."""

    mixing: Mapping[str, Array]  # estimator -> lambda [N, L]
    influence: Array  # [N, n]
    loss: Array  # nats a token, of the last tokens of each prompt [N]
    by_distance: Array  # mean weight that tokens give to the one k before [L, n]
    attention: Array | None  # mean attention [L, n, n], where it was kept
    kernels: Mapping[str, Array]  # name -> g [L, H, n]
    windows: tuple[int | None, ...]  # of each layer
    offset: Array | None  # mean diagonal less mean below-diagonal content logit [N, L, H], of a model with ALiBi
    slopes: Array | None  # effective ALiBi slopes [H], likewise

    @property
    def prompts(self) -> int:
        return self.influence.shape[0]

    @property
    def n(self) -> int:
        return self.influence.shape[1]


def write(path: str | Path, lengths: Mapping[int, Any], **facts: object) -> None:
    """Write what was measured at every length, each a `Measured` or what has its fields, and `facts` for JSON.

    Tensors are called LENGTH/QUANTITY, LENGTH/mixing/ESTIMATOR and LENGTH/kernels/NAME.
    """
    tensors: dict[str, NDArray[Any] | None] = {}
    for n, found in lengths.items():
        for name in ("influence", "loss", "by_distance", "attention", "offset", "slopes"):
            tensors[f"{n}/{name}"] = getattr(found, name)
        for kind in ("mixing", "kernels"):
            tensors |= {f"{n}/{kind}/{name}": values for name, values in getattr(found, kind).items()}
    there = {name: values for name, values in tensors.items() if values is not None}
    windows = {str(n): list(found.windows) for n, found in lengths.items()}
    artifacts.write_tensors(path, there, windows=windows, facts=facts)


def read(path: str | Path) -> tuple[dict[int, Measured], dict[str, Any]]:
    """What was measured, by length from the shortest on, and the facts. Raises InputError where it cannot be read."""
    labels, tensors = artifacts.read_labels(path), artifacts.read_tensors(path)
    values = {name: np.asarray(tensor, dtype=np.float64) for name, tensor in tensors.items()}

    def under(prefix: str) -> dict[str, Array]:
        return {name.removeprefix(prefix): array for name, array in values.items() if name.startswith(prefix)}

    found = {}
    for n, windows in sorted((int(n), windows) for n, windows in labels["windows"].items()):
        found[n] = Measured(
            mixing=_ordered(under(f"{n}/mixing/"), MIXINGS),
            influence=values[f"{n}/influence"],
            loss=values[f"{n}/loss"],
            by_distance=values[f"{n}/by_distance"],
            attention=values.get(f"{n}/attention"),
            kernels=_ordered(under(f"{n}/kernels/"), KERNELS),
            windows=tuple(windows),
            offset=values.get(f"{n}/offset"),
            slopes=values.get(f"{n}/slopes"),
        )
    return found, labels["facts"]


def attention_table(measured: Measured) -> pd.DataFrame:
    """Mean attention by distance as a tidy table: (layer, distance, value, n), layer 1 the first."""
    layers, n = measured.by_distance.shape
    layer, distance = np.divmod(np.arange(layers * n), n)
    return pd.DataFrame({"layer": layer + 1, "distance": distance, "value": measured.by_distance.ravel(), "n": n})


def _ordered(found: dict[str, Array], order: Sequence[str]) -> dict[str, Array]:
    """In the order of measuring: names in a file are sorted."""
    return {name: found[name] for name in order if name in found}
