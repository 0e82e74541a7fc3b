"""How alike content logits are within a region (Appendix E, Table 5): the diagonal, and what lies below it.

A region whose entries share one value has similarity 1, and one that spreads evenly over all bins has 0. A region with
fewer entries m than bins cannot reach 0: its similarity is at least 1 - log m / log bins.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr, rel_entr

from position_card.rollout.attention import Array

Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.floating[Any]]  # in the precision in which they were measured

BINS = 199
QUANTILES = (0.005, 0.995)  # of all layers and heads together: what the bins span


@dataclass(frozen=True)
class Way:
    """The choices that Table 5 leaves open."""

    causal: bool  # quantiles over the entries that the mask admits, not over whole matrices
    clip: bool  # entries out of range count in the end bin next to them; else they are dropped
    smoothing: float  # added to the count of every bin
    unit: float  # of the Jensen-Shannon divergence, in nats


# The bins leave out 1 % of all entries, but these are the extreme ones, and a shifted diagonal is extreme as a whole:
# dropped, such a head has no histogram. Clipped, it has one, which overrates how alike its entries are; `similarities`
# therefore say how many entries that concerns. The divergence in bits is 1 at most.
#
# The authors' repository (attention_stats.ipynb) drops them, and smoothing makes the empty histogram uniform: a head
# whose diagonal lies out of range has similarity 0 there. Its divergence is in nats, at most log 2.
WAYS = {
    "causal": Way(causal=True, clip=True, smoothing=0.0, unit=float(np.log(2))),
    "released": Way(causal=False, clip=False, smoothing=1e-12, unit=1.0),
}


def similarities(content: Values, way: str = "causal") -> dict[str, tuple[Array, Array]]:
    """Table 5 for mean content logits `[L, H, n, n]`, n >= 2, in one of WAYS.

    By region, its similarity in each layer and head, `[L, H]`, and the share of its entries out of range, likewise.
    `between` is of the two regions' histograms: 1 - Jensen-Shannon divergence (the paper's first version).
    """
    choice = WAYS[way]
    edges = bin_edges(content, choice.causal)
    below = np.tril_indices(content.shape[-1], -1)
    layers = []
    for layer in content:  # one at a time bounds the memory of what is in double precision, and of the bin numbers
        heads = layer.astype(np.float64)
        regions = np.diagonal(heads, axis1=-2, axis2=-1), heads[:, *below]
        histograms = [histogram(region, edges, choice.clip) for region in regions]
        p, q = (_probabilities(counts, choice.smoothing) for counts, _ in histograms)
        outside = [share for _, share in histograms]
        layers.append([homogeneity(p), homogeneity(q), 1 - jensen_shannon(p, q) / choice.unit, *outside])
    diagonal, lower, between, *out = np.array(layers).swapaxes(0, 1)
    undefined = np.full_like(between, np.nan)  # both regions have their own share
    return {"diagonal": (diagonal, out[0]), "below": (lower, out[1]), "between": (between, undefined)}


def bin_edges(content: Values, causal: bool) -> Array:
    """Return the BINS + 1 edges that a model's layers and heads share, from logits `[L, H, n, n]`.

    They are evenly spaced between QUANTILES of the entries j <= i, or of all entries where not `causal`.
    """
    n = content.shape[-1]
    entries = content[..., *np.tril_indices(n)] if causal else content.copy()
    low, high = _quantiles(entries.ravel())
    return np.linspace(low, high, BINS + 1)


def _quantiles(entries: Values) -> Array:
    """QUANTILES as np.quantile has them in double precision, without a copy of the entries, whose order is lost."""
    place = np.array(QUANTILES) * (len(entries) - 1)
    lower = np.floor(place).astype(int)
    upper = np.minimum(lower + 1, len(entries) - 1)
    entries.partition(np.unique([lower, upper]))
    low, high = entries[lower].astype(np.float64), entries[upper].astype(np.float64)
    share = place - lower
    return np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share))


def histogram(values: Array, edges: Array, clip: bool) -> tuple[Counts, Array]:
    """Counts `[R, bins]` of each row of values `[R, m]`, and the share `[R]` of the row that is out of range.

    A bin holds its upper edge and not its lower one, so that the lowest edge is out of range too.
    """
    rows, bins = len(values), len(edges) - 1
    bin = np.searchsorted(edges, values, side="left") - 1
    inside = (bin >= 0) & (bin < bins)
    number = bin.clip(0, bins - 1) + bins * np.arange(rows)[:, None]
    counts = np.bincount((number if clip else number[inside]).ravel(), minlength=rows * bins)
    return counts.reshape(rows, bins), 1 - inside.mean(axis=1)


def homogeneity(p: Array) -> Array:
    """Return 1 - Shannon entropy over the log of the number of bins, its largest value; `[..., bins]` -> `[...]`."""
    return np.maximum(1 - entr(p).sum(axis=-1) / np.log(p.shape[-1]), 0.0)  # rounding falls below


def jensen_shannon(p: Array, q: Array) -> Array:
    """Return the Jensen-Shannon divergence in nats, two of `[..., bins]` -> `[...]`: 0 if equal, log 2 if disjoint."""
    middle = (p + q) / 2
    divergence = (rel_entr(p, middle) + rel_entr(q, middle)).sum(axis=-1) / 2
    return np.clip(divergence, 0.0, np.log(2))  # rounding lies beyond


def _probabilities(counts: Counts, smoothing: float) -> Array:
    smoothed = counts + smoothing
    return smoothed / smoothed.sum(axis=-1, keepdims=True)
