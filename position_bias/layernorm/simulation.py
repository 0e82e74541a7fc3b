"""This module simulates causal decoders without positional encoding: without parameters, and with random weights.

Embeddings are exchangeable unless their moments are asked to depend on the position, so whatever else depends on it
comes from the causal mask. Axes: B sequences of a batch, L layers, n tokens, d coordinates, H heads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from position_bias.attention import Array
from position_bias.recency import mean_relative_position, recency, recency_weights, relative_recency
from position_bias.running import runtime

Norm = Literal["none", "rms", "layer"]
Common = Literal["sequence", "ones"]
MaskName = Literal["causal", "full"]
ByPosition = float | tuple[float, ...]  # one number for all tokens, or one for each

NORMS: tuple[Norm, ...] = ("none", "rms", "layer")
BATCH = 2**20  # numbers that a tensor of a batch holds, at most: it stays in the cache


@dataclass(frozen=True)
class Decoder:
    """Layers x <- rho x + softmax(s y y^T) y, with y the norm of x to length 1.

    The softmax is over earlier tokens and the token itself, or, with a full mask, over all of them. A score <y_i, y_j>
    is a cosine, and logits are LayerNorm's with 1/d for a strength of 1, with 1/sqrt(d) for one of sqrt(d).
    """

    tokens: int
    width: int
    layers: int
    residual: float  # rho
    strength: float  # s
    norm: Norm
    placement: Literal["pre", "post"] = "pre"  # post: the norm is of the sum, and the next layer's x is normed, too
    mask: MaskName = "causal"


@dataclass(frozen=True)
class Simulated:
    """Means over sequences in float64. Scores are without s, full and symmetric, as in `theory`."""

    scores: Array  # [L, n, n]
    errors: Array  # [L, n, n], standard errors of the mean scores
    recency: Array  # [sequences, L], of the scores of each sequence


def simulate(
    decoder: Decoder,
    alpha: ByPosition,
    sequences: int,
    seed: int,
    common: Common = "sequence",
    lengths: ByPosition = 1.0,
) -> Simulated:
    """Return what `sequences` random sequences of anisotropy `alpha` and `lengths` of embeddings score in every layer.

    Both may differ by position, as `theory.embedded` has them. `common` is the direction that tokens share: drawn anew
    for each sequence, or all ones. Decoders of one size see the same embeddings for the same seed, so that they compare
    in pairs.
    """
    n, width = decoder.tokens, decoder.width
    weights = torch.from_numpy(recency_weights(n).ravel()).float()
    scores = _Moments(decoder.layers, n)
    values = np.empty((sequences, decoder.layers))
    generator = torch.Generator().manual_seed(seed)
    done = 0
    for batch in _batches(sequences, n * max(n, width)):
        x = embeddings(batch, n, width, alpha, generator, common, lengths)
        for layer, S in enumerate(_scores(decoder, x)):
            scores.add(layer, done, S)
            values[done : done + batch, layer] = (S.view(batch, -1) @ weights).numpy()
        done += batch
    return Simulated(scores.mean, scores.errors(sequences), values)


def embeddings(
    batch: int,
    n: int,
    width: int,
    alpha: ByPosition,
    generator: torch.Generator,
    common: Common | Tensor = "sequence",
    lengths: ByPosition = 1.0,
) -> Tensor:
    """Draw vectors of some `lengths` and expected pairwise cosine `alpha`, `[batch, n, width]`, float32.

    Gaussian tokens plus sqrt(alpha / (1 - alpha)) times a common direction, normed, times their length. With an alpha
    for each token, two of them have the cosine sqrt(alpha_i alpha_j). A tensor `[width]` as `common` is the direction
    of all sequences.
    """
    shares = np.atleast_1d(alpha)
    shift = torch.from_numpy(np.sqrt(shares / (1 - shares))).float()[:, None]
    own = torch.randn(batch, n, width, generator=generator)
    if isinstance(common, Tensor):
        shared = common
    elif common == "sequence":
        shared = torch.randn(batch, 1, width, generator=generator)
    else:
        shared = torch.ones(width)
    directions = functional.normalize(own + shift * shared, dim=-1)
    return directions if lengths == 1.0 else torch.tensor(lengths)[..., None] * directions


def direction(x: Tensor, norm: Norm) -> Tensor:
    """Bring `x` [..., d] to length 1 by RMSNorm or LayerNorm, instead of sqrt(d); without a norm it stays."""
    if norm == "none":
        return x
    return functional.normalize(x - x.mean(-1, keepdim=True) if norm == "layer" else x, dim=-1)


def _scores(decoder: Decoder, x: Tensor) -> Iterator[Tensor]:
    """Scores of each layer, `[B, n, n]`."""
    mask = _mask(decoder.tokens) if decoder.mask == "causal" else torch.zeros(decoder.tokens, decoder.tokens)
    for left in reversed(range(decoder.layers)):
        y = direction(x, decoder.norm)
        S = y @ y.mT
        yield S
        if left:  # nobody scores what the last layer makes
            P = functional.softmax(torch.add(mask, S, alpha=decoder.strength), -1)
            x = decoder.residual * (y if decoder.placement == "post" else x) + P @ y


class _Moments:
    """Means and squared deviations of matrices `[L, n, n]`, batch by batch (Chan's update), in float64."""

    def __init__(self, layers: int, n: int) -> None:
        self.mean: Array = np.zeros((layers, n, n))
        self._squares: Array = np.zeros((layers, n, n))

    def add(self, layer: int, before: int, values: Tensor) -> None:
        """Count `values` [B, n, n] in, after `before` sequences."""
        batch = len(values)
        centre = values.mean(0)
        variance = (values - centre).square_().mean(0).double().numpy()  # torch.var_mean takes ten times as long
        mean = centre.double().numpy()
        step = mean - self.mean[layer]
        self.mean[layer] += step * batch / (before + batch)
        self._squares[layer] += batch * variance + step**2 * before * batch / (before + batch)

    def errors(self, count: int) -> Array:
        """Standard errors of the means over `count` sequences, `[L, n, n]`."""
        return np.sqrt(self._squares / (count - 1) / count)


# Random weights


@dataclass(frozen=True)
class Heads:
    """A multi-head decoder x <- rho x + attention(y) with y the norm of x, whose weights are random."""

    tokens: int
    width: int
    layers: int
    heads: int


def random_weights(
    tokens: int,
    width: int,
    layers: int,
    heads: int,
    anisotropy: float,
    residuals: Sequence[float],
    sequences: int,
    seeds: int,
) -> pd.DataFrame:
    """Return recency of decoders with Gaussian weights, for every norm, residual and seed; a row a number, in `value`.

    Columns norm, residual, seed, layer (from 1), head, quantity. Head 0 has the quantity `gram`: recency of the mean
    Gram matrix of what queries and keys are made of, cosines for RMSNorm and LayerNorm; without norm, over its mean
    absolute value below the diagonal. Heads from 1 on have `score`, recency of their mean logits over the mean absolute
    value of those, and `position`, `mean_relative_position` of their mean attention.

    W_Q, W_K, W_V and W_O have variance 1/d, embeddings length sqrt(d). A seed draws weights, the common direction of
    all tokens, and sequences; norms and residuals share them, so that they compare in pairs.
    """
    rows: list[dict[str, Any]] = []
    shape = Heads(tokens, width, layers, heads)
    for norm, residual, seed in product(NORMS, residuals, range(seeds)):
        means = _mean_of_random(shape, norm, residual, anisotropy, sequences, seed)
        for layer, (gram, logits, attention) in enumerate(means, start=1):
            at = {"norm": norm, "residual": residual, "seed": seed, "layer": layer}
            measure = relative_recency if norm == "none" else recency
            rows.append({**at, "head": 0, "quantity": "gram", "value": float(measure(gram))})
            for quantity, values in (
                ("score", relative_recency(logits)),
                ("position", mean_relative_position(attention)),
            ):
                rows += [
                    {**at, "head": head, "quantity": quantity, "value": float(value)}
                    for head, value in enumerate(values, start=1)
                ]
    return pd.DataFrame(rows)


def _mean_of_random(
    shape: Heads, norm: Norm, residual: float, alpha: float, sequences: int, seed: int
) -> list[tuple[Array, Array, Array]]:
    """Mean Gram matrix `[n, n]`, logits and attention `[H, n, n]` of each layer."""
    n, d, H = shape.tokens, shape.width, shape.heads
    generator = torch.Generator().manual_seed(runtime.seed(seed, "weights"))
    weights = torch.randn(shape.layers, 4, d, d, generator=generator) / d**0.5
    common = torch.randn(d, generator=generator)
    generator.manual_seed(runtime.seed(seed, "sequences"))
    sums = [(np.zeros((n, n)), np.zeros((H, n, n)), np.zeros((H, n, n))) for _ in range(shape.layers)]
    for batch in _batches(sequences, n * max(H * n, d)):
        x = d**0.5 * embeddings(batch, n, d, alpha, generator, common)
        for W, total in zip(weights, sums, strict=True):
            y = direction(x, norm)
            gram = y @ y.mT
            update, logits, P = _multi_head(y if norm == "none" else d**0.5 * y, W, H)
            x = residual * x + update
            for where, values in zip(total, (gram, logits, P), strict=True):
                where += values.sum(0).double().numpy()
    return [(gram / sequences, logits / sequences, P / sequences) for gram, logits, P in sums]


def _multi_head(y: Tensor, W: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """What attention writes `[B, n, d]`, its logits and its weights `[B, H, n, n]`; `W` [4, d, d] are q, k, v, o."""
    B, n, d = y.shape
    q, k, v = ((y @ weight).view(B, n, heads, -1).transpose(1, 2) for weight in W[:3])
    logits = q @ k.mT / (d // heads) ** 0.5
    P = functional.softmax(logits + _mask(n), -1)
    return (P @ v).transpose(1, 2).reshape(B, n, d) @ W[3], logits, P


def _mask(n: int) -> Tensor:
    return torch.full((n, n), -torch.inf).triu(1)


def _batches(sequences: int, each: int) -> Iterator[int]:
    """Sizes of batches of `sequences` that hold `each` numbers a tensor."""
    size = max(1, BATCH // each)
    for start in range(0, sequences, size):
        yield min(size, sequences - start)
