"""This module counts how often, and by how much, attention breaks Assumption 4.1: later tokens read later ones."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from position_card.rollout.attention import Array, alibi_bias, causal_mask, masked_softmax

TOLERANCE = 1e-6  # prefix mass: means of float32 attention carry rounding of 1e-7


class Monotonicity(NamedTuple):
    """Violations of stochastic monotonicity among `triples` of two tokens i < i' and a cutoff k <= i."""

    triples: int
    violated: int
    missing: float  # prefix mass that row i lacks to reach row i', summed over the violated triples

    @property
    def rate(self) -> float:
        """Share of the triples that are violated."""
        return self.violated / max(self.triples, 1)

    @property
    def gap(self) -> float:
        """Mean mass missing where violated; NaN where nothing is."""
        return self.missing / self.violated if self.violated else float("nan")

    @property
    def shortfall(self) -> float:
        """Mean mass missing over all triples: rate times gap."""
        return self.missing / max(self.triples, 1)


def monotonicity(attention: npt.ArrayLike, tolerance: float = TOLERANCE) -> Monotonicity:
    """Compare the prefix masses of all rows of one kernel `[n, n]`, renormalised, token i reading token j.

    Row i' > i is to have at most the mass of row i on the first k tokens, for each k = 1..i: n (n^2 - 1) / 6
    triples. The authors' notebook counts all cutoffs up to n, 3 n / (n + 1) times as many; none of those it adds can be
    violated, so its rates of the same kernel are a third of these.
    """
    weights = np.asarray(attention, np.float64)
    prefix = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    n = len(prefix)
    violated, missing = 0, 0.0
    for i in range(n - 1):
        lacking = prefix[i + 1 :, : i + 1] - prefix[i, : i + 1]  # [i', k]
        lacking = lacking[lacking > tolerance]
        violated += lacking.size
        missing += float(lacking.sum())
    return Monotonicity(n * (n * n - 1) // 6, violated, missing)


def pooled(layers: Iterable[Monotonicity]) -> Monotonicity:
    """Pool all triples of several layers as one set."""
    return Monotonicity(*map(sum, zip(*layers, strict=True)))


def released_kernel(attention: npt.ArrayLike, slopes: npt.ArrayLike) -> Array:
    """Make the kernel `[n, n]` that the authors' notebook tests, from attention `[n, n]` and ALiBi slopes `[H]`.

    It takes mean attention weights for logits: softmax(weights + ALiBi) over causal keys, averaged over heads. Weights
    lie within [0, 1] and hardly move a softmax, so this says more about ALiBi than about attention. The authors have
    the weights of each head. Here every head gets the mean over heads, which is what a measurement keeps, under
    its own slope. They also use the slopes 2^(-8 h / H) for every model; `slopes` are the model's own.
    """
    weights = np.asarray(attention, np.float64)
    n = len(weights)
    return masked_softmax(weights + alibi_bias(n, slopes), causal_mask(n)).mean(axis=0)
