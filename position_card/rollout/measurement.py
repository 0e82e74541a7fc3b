"""What is measured of a decoder on prompts of one length, and the file that keeps it.

One pass over the prompts yields it (`language_models.measure`). Rollouts, tables, figures and cards are made from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from position_card.core import artifacts
from position_card.core.artifacts import TensorFile
from position_card.rollout.attention import Array

Floats = NDArray[np.float32]

BACKWARD = "backward"  # lambda of the backward pass, which is our addition
FORWARD = ("frobenius", "token")  # the estimators of lambda of the paper's versions 2 and 1
ESTIMATORS = (*FORWARD, BACKWARD)
KERNELS = ("toeplitz", "rotary")  # kernels of the logits: fitted, and of the mean query and key
# The same without the first token, which may be a sink: lambda by Frobenius norms, and the fitted kernel
FROBENIUS_APART, TOEPLITZ_APART = "frobenius-apart", "toeplitz-apart"
LARGEST = ("content", "gram")  # matrices that no rollout needs


@dataclass(frozen=True)
class Measurement:
    """What one pass over N prompts of n tokens yields, for L layers of H heads; float32 but for what says otherwise.

    In its file, tensors have the names of the fields, and those of a mapping are called FIELD/NAME.
    """

    documents: NDArray[np.int64]  # which document each prompt is of [N]
    windows: tuple[int | None, ...]  # of each layer: how many of the latest tokens a token reads; None: all before it
    mixing: Mapping[str, Floats]  # estimator -> lambda [N, L]; `backward` where attention and MLP follow one another
    loss: Floats  # nats a token, a mean over the last tokens of each prompt, or over those of `losses` [N]
    by_distance: Floats  # mean weight that tokens give to the one k before, over prompts, heads and tokens [L, n]
    kernels: Mapping[str, Floats]  # name -> g [L, H, n], as far as queries and keys can be seen
    attention: Floats | None = None  # mean attention weights, over prompts and heads [L, n, n], of short prompts
    influence: Floats | None = None  # [N, n], unless the backward pass was left out
    losses: Floats | None = None  # nats, of P tokens of each prompt one by one, where asked for [N, P]
    loss_positions: NDArray[np.int64] | None = None  # of these tokens [P]
    no_token: Floats | None = None  # share of attention that goes to no token [N, L], where rows do not sum to 1
    diagonal: Floats | None = None  # mean content logit on the diagonal [N, L, H], of families with ALiBi
    below: Floats | None = None  # and below it [N, L, H], likewise
    slopes: Array | None = None  # effective ALiBi slopes, float64 [H], likewise
    content: Floats | None = None  # mean content logits [L, H, n, n], likewise, where they were asked for
    recency: Floats | None = None  # of the cosines between the inputs of attention [N, L], where they were asked for
    gram: Floats | None = None  # mean cosines between the inputs of attention [L, n, n], likewise
    groups: NDArray[np.int64] | None = None  # the group of documents of each prompt, 0 to G - 1, where asked for [N]
    attention_of_groups: Floats | None = None  # `attention` of the prompts of each group [G, L, n, n]
    # Kernels of each group [G, L, H, n]; their mean over prompts is that of all, and the rotary one, of a product of
    # two means, is linear in the group's own
    kernels_of_groups: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def prompts(self) -> int:
        """How many prompts there are, N."""
        return len(self.documents)

    @property
    def units(self) -> NDArray[np.int64]:
        """What is resampled, of each prompt [N]: groups where they have means of their own, documents otherwise."""
        return self.documents if self.groups is None else self.groups

    @property
    def n(self) -> int:
        """How many tokens a prompt has."""
        return self.by_distance.shape[1]

    @property
    def layers(self) -> int:
        """How many layers the model has, L."""
        return len(self.windows)


def grouped(documents: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Divide the documents of prompts [N] into as many groups, or one each where they are fewer: the group of each [N].

    Groups have as many documents, or one more. Documents that lie near one another come into different groups.
    """
    return np.unique(documents, return_inverse=True)[1] % groups


def write(path: str | Path, measurement: Measurement, **labels: object) -> None:
    """Write a measurement, with labels that say what was measured; its windows and sizes are added to them."""
    tensors: dict[str, NDArray[Any]] = {}
    for part in fields(measurement):
        value = getattr(measurement, part.name)
        if isinstance(value, Mapping):
            tensors |= {f"{part.name}/{name}": array for name, array in value.items()}
        elif isinstance(value, np.ndarray):
            tensors[part.name] = value
    sizes = {"n": measurement.n, "prompts": measurement.prompts, "windows": list(measurement.windows)}
    artifacts.write_tensors(path, tensors, **{**labels, **sizes})


def read(path: str | Path, without: Sequence[str] = LARGEST) -> Measurement:
    """Read what `write` wrote, but not the fields `without`. Raises InputError where the file is not usable."""
    tensors = artifacts.read_tensors(path, without=without)
    nested: dict[str, Any] = {
        kind: {name: tensors.pop(f"{kind}/{name}") for name in names if f"{kind}/{name}" in tensors}
        for kind, names in (
            ("mixing", (*ESTIMATORS, FROBENIUS_APART)),
            ("kernels", (*KERNELS, TOEPLITZ_APART)),
            ("kernels_of_groups", (*KERNELS, TOEPLITZ_APART)),
        )
    }
    windows = tuple(artifacts.read_labels(path)["windows"])
    return Measurement(windows=windows, **nested | tensors)


def mixing(file: TensorFile) -> dict[str, Floats]:
    """Read lambda [N, L] by the estimators of the paper, and nothing else of the file of a measurement."""
    tensors = file.read(*(f"mixing/{estimator}" for estimator in FORWARD))
    return {estimator: tensors[f"mixing/{estimator}"] for estimator in FORWARD}
