"""This module simulates causal decoders without positional encoding: without parameters, and with random weights.

Embeddings are exchangeable unless their moments are asked to depend on the position, so whatever else depends on it
comes from the causal mask. Axes: B sequences of a batch, L layers, n tokens, d coordinates, H heads.

Tables have theory beside simulations without parameters. Their intervals are those of means over sequences, which are
independent. All settings of a table see the same embeddings, so that curves compare in pairs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtri
from torch import Tensor
from torch.nn import functional

from position_bias.layernorm import theory
from position_card.core import runtime
from position_card.measures.recency import mean_relative_position, mean_size, recency, recency_weights, relative_recency
from position_card.rollout.attention import Array, causal_mask, full_mask
from position_card.rollout.statistics import mean_and_interval

Norm = Literal["none", "rms", "layer"]
Common = Literal["sequence", "ones"]
MaskName = Literal["causal", "full"]
ByPosition = float | tuple[float, ...]  # one number for all tokens, or one for each

NORMS: tuple[Norm, ...] = ("none", "rms", "layer")
BATCH = 2**20  # numbers that a tensor of a batch holds, at most: it stays in the cache
ESTIMATE_COLUMNS = ("measured", "low", "high")
RESIDUALS = (0.0, 1.0)  # without and as usual
WIDER_RESIDUALS = (0.0, 0.5, 1.0, 2.0)
ALIKE = "alike"
ANISOTROPIES, LENGTHS = (0.0, 0.8), (0.5, 2.0)  # at the ends of profiles; the former those of the first version's grid
PROFILES = (ALIKE, "anisotropy rises", "anisotropy falls", "length rises", "length falls")  # of embeddings by position
PROFILE_ANISOTROPY = 0.2  # where it is alike at every position
MASKS: tuple[MaskName, ...] = ("causal", "full")


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
class SimulationResult:
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
) -> SimulationResult:
    """Return what `sequences` random sequences of anisotropy `alpha` and `lengths` of embeddings score in every layer.

    Both may differ by position, as in `theory.gram_of_embeddings`. `common` is the direction that tokens share: drawn
    anew for each sequence, or all ones. Decoders of one size see the same embeddings for the same seed, so that they
    compare in pairs.
    """
    n, width = decoder.tokens, decoder.width
    weights = torch.from_numpy(recency_weights(n).ravel()).float()
    scores = _Moments(decoder.layers, n)
    values = np.empty((sequences, decoder.layers))
    generator = torch.Generator().manual_seed(seed)
    count = 0
    for batch in _batches(sequences, n * max(n, width)):
        x = embeddings(batch, n, width, alpha, generator, common, lengths)
        for layer, S in enumerate(_scores(decoder, x)):
            scores.add(layer, count, S)
            values[count : count + batch, layer] = (S.view(batch, -1) @ weights).numpy()
        count += batch
    return SimulationResult(scores.mean, scores.errors(sequences), values)


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
    independent = torch.randn(batch, n, width, generator=generator)
    if isinstance(common, Tensor):
        common_direction = common
    elif common == "sequence":
        common_direction = torch.randn(batch, 1, width, generator=generator)
    else:
        common_direction = torch.ones(width)
    directions = functional.normalize(independent + shift * common_direction, dim=-1)
    return directions if lengths == 1.0 else torch.tensor(lengths)[..., None] * directions


def direction(x: Tensor, norm: Norm) -> Tensor:
    """Bring `x` [..., d] to length 1 by RMSNorm or LayerNorm, instead of sqrt(d); without a norm it stays."""
    if norm == "none":
        return x
    return functional.normalize(x - x.mean(-1, keepdim=True) if norm == "layer" else x, dim=-1)


def _scores(decoder: Decoder, x: Tensor) -> Iterator[Tensor]:
    """Scores of each layer, `[B, n, n]`."""
    mask = _mask(decoder.tokens) if decoder.mask == "causal" else torch.zeros(decoder.tokens, decoder.tokens)
    for remaining in reversed(range(decoder.layers)):
        y = direction(x, decoder.norm)
        S = y @ y.mT
        yield S
        if remaining:  # nobody scores what the last layer makes
            P = functional.softmax(torch.add(mask, S, alpha=decoder.strength), -1)
            x = decoder.residual * (y if decoder.placement == "post" else x) + P @ y


class _Moments:
    """Means and squared deviations of matrices `[L, n, n]`, batch by batch (Chan's update), in float64."""

    def __init__(self, layers: int, n: int) -> None:
        self.mean: Array = np.zeros((layers, n, n))
        self._squares: Array = np.zeros((layers, n, n))

    def add(self, layer: int, earlier: int, values: Tensor) -> None:
        """Count `values` [B, n, n] of a layer in, after `earlier` sequences."""
        batch = len(values)
        centre = values.mean(0)
        variance = (values - centre).square_().mean(0).double().numpy()  # torch.var_mean takes ten times as long
        mean = centre.double().numpy()
        step = mean - self.mean[layer]
        self.mean[layer] += step * batch / (earlier + batch)
        self._squares[layer] += batch * variance + step**2 * earlier * batch / (earlier + batch)

    def errors(self, count: int) -> Array:
        """Standard errors of the means over `count` sequences, `[L, n, n]`."""
        return np.sqrt(self._squares / (count - 1) / count)


# Theory beside simulation, as tables


@dataclass(frozen=True)
class Sampling:
    """How much is simulated, and the level of the intervals."""

    tokens: int
    width: int
    strength: float
    sequences: int
    seed: int
    level: float

    @property
    def half_width(self) -> float:
        """Return half of an interval in standard errors of a mean over many sequences, by the normal distribution."""
        return float(ndtri((1 + self.level) / 2))

    def run(
        self,
        norm: Norm,
        residual: float,
        alpha: float,
        layers: int,
        placement: Literal["pre", "post"] = "pre",
        common: Common = "sequence",
    ) -> SimulationResult:
        """Run one decoder on embeddings of anisotropy `alpha` (`simulate`)."""
        decoder = Decoder(self.tokens, self.width, layers, residual, self.strength, norm, placement)
        return simulate(decoder, alpha, self.sequences, self.seed, common)

    def run_profile(self, profile: str, mask: MaskName, residual: float, layers: int) -> SimulationResult:
        """Run one decoder with RMSNorm on embeddings whose `moments` are those of a profile."""
        alphas, lengths = moments(profile, self.tokens)
        decoder = Decoder(self.tokens, self.width, layers, residual, self.strength, "rms", mask=mask)
        return simulate(decoder, alphas, self.sequences, self.seed, lengths=lengths)

    def expected_of_profile(self, profile: str, mask: MaskName, residual: float, layers: int) -> Array:
        """Return the recency of each layer of the same decoder by the recursion, `[layers]`."""
        alphas, lengths = (np.broadcast_to(values, self.tokens) for values in moments(profile, self.tokens))
        pairs = {"causal": causal_mask, "full": full_mask}[mask](self.tokens)
        gram = theory.gram_of_embeddings(alphas, lengths)
        return recency(theory.recursion(gram, pairs, residual, self.strength, layers, "pre"))


def moments(profile: str, n: int) -> tuple[ByPosition, ByPosition]:
    """Return anisotropies and lengths of embeddings in a profile: one number for all of n tokens, or one for each.

    Anisotropy goes evenly from one of ANISOTROPIES to the other, length by even factors from one of LENGTHS to the
    other; what does not change with the position is PROFILE_ANISOTROPY and 1.
    """
    ranges = {"anisotropy": np.linspace(*ANISOTROPIES, n), "length": np.geomspace(*LENGTHS, n)}
    moment, _, trend = profile.partition(" ")
    values = {name: tuple(map(float, ends if trend == "rises" else ends[::-1])) for name, ends in ranges.items()}
    return (
        values[moment] if moment == "anisotropy" else PROFILE_ANISOTROPY,
        values[moment] if moment == "length" else 1.0,
    )


def score_maps(
    tokens: int, width: int, layers: int, strength: float, alphas: Sequence[float], sequences: int, seed: int
) -> dict[str, Array]:
    """Return mean scores `[layers, tokens, tokens]` with residual 1, by norm/anisotropy, of every norm."""
    maps = {}
    for norm, alpha in product(NORMS, alphas):
        decoder = Decoder(tokens, width, layers, 1.0, strength, norm)
        maps[f"{norm}/{alpha:g}"] = simulate(decoder, alpha, sequences, seed).scores
    return maps


def closed_form_rows(sampling: Sampling, alphas: Sequence[float]) -> pd.DataFrame:
    """Return layer-2 scores of the last token with each earlier one: the closed form at this width, and measured.

    Columns norm (none, rms), residual, anisotropy, position (of the key, from 1), predicted, measured, low, high.
    """
    n, curves, norms = sampling.tokens, [], NORMS[:2]
    for norm, residual, alpha in product(norms, RESIDUALS, alphas):
        decoder = sampling.run(norm, residual, alpha, layers=2)
        closed_form = theory.second_scores(
            n, alpha, residual, sampling.strength, norm=norm == "rms", width=sampling.width
        )
        means, half = decoder.scores[1, -1, :-1], sampling.half_width * decoder.errors[1, -1, :-1]
        curve = {"norm": norm, "residual": residual, "anisotropy": alpha, "position": np.arange(1, n)}
        scores = {
            "predicted": closed_form[-1, :-1],
            "measured": means,
            "low": means - half,
            "high": means + half,
        }
        curves.append(pd.DataFrame({**curve, **scores}))
    return pd.concat(curves, ignore_index=True)


def evenly(step: float, last: float) -> list[float]:
    """Return 0, `step`, twice that and so on up to `last`, each as its decimals are read: 0.3, not 3 x 0.1."""
    return [round(count * step, 12) for count in range(math.floor(round(last / step, 9)) + 1)]


def anisotropy_curves(sampling: Sampling, alphas: Sequence[float], points: Sequence[float]) -> pd.DataFrame:
    """Return recency of layer-2 scores with norm against anisotropy, for residuals 0, 1/2, 1 and 2.

    Columns residual, anisotropy, predicted (the closed form at this width), limit (at infinite width), measured, low,
    high. Measured are only the anisotropies in `points`; elsewhere stands NaN.
    """
    rows: list[dict[str, Any]] = []
    for residual, alpha in product(WIDER_RESIDUALS, sorted({*alphas, *points})):
        closed_form, limit = (
            recency(theory.second_scores(sampling.tokens, alpha, residual, sampling.strength, norm=True, width=width))
            for width in (sampling.width, None)
        )
        row = {"residual": residual, "anisotropy": alpha, "predicted": float(closed_form), "limit": float(limit)}
        if alpha in points:
            values = sampling.run("rms", residual, alpha, layers=2).recency[:, 1]
            row |= zip(ESTIMATE_COLUMNS, map(float, mean_and_interval(values, sampling.level)), strict=True)
        rows.append(row)
    return pd.DataFrame(rows, columns=["residual", "anisotropy", "predicted", "limit", *ESTIMATE_COLUMNS])


def depth_curves(sampling: Sampling, alpha: float, layers: int) -> pd.DataFrame:
    """Return recency of the scores of each layer: the recursion, and measured.

    Columns norm (none, pre, post: RMSNorm), residual, layer (from 1), predicted, measured, low, high. Without norm the
    scale of scores changes with depth: theirs is recency over the mean absolute value of the mean scores below the
    diagonal, on both sides; the interval takes that scale as it was measured.
    """
    curves = []
    for placement, residual in product(theory.PLACEMENTS, RESIDUALS):
        scores = theory.gram_recursion(sampling.tokens, alpha, residual, sampling.strength, layers, placement)
        if placement == "none":
            decoder = sampling.run("none", residual, alpha, layers)
            by_recursion, values = relative_recency(scores), decoder.recency / mean_size(decoder.scores)
        else:
            by_recursion = recency(scores)
            values = sampling.run("rms", residual, alpha, layers, placement).recency
        _, low, high = mean_and_interval(values, sampling.level)
        means = [of_layer.mean() for of_layer in values.T]  # rounds otherwise than the mean over rows
        curve = {"norm": placement, "residual": residual, "layer": np.arange(1, layers + 1)}
        recencies = {"predicted": by_recursion, "measured": means, "low": low, "high": high}
        curves.append(pd.DataFrame({**curve, **recencies}))
    return pd.concat(curves, ignore_index=True)


def moments_curves(sampling: Sampling, layers: int) -> pd.DataFrame:
    """Return recency of the scores of each layer with RMSNorm and residual 1, by mask and profile of the embeddings.

    Columns mask (causal, full), profile (of PROFILES), layer (from 1), predicted (by the recursion), measured, low,
    high.
    """
    rows = []
    for mask, profile in product(MASKS, PROFILES):
        values = sampling.run_profile(profile, mask, 1.0, layers).recency
        mean, low, high = mean_and_interval(values, sampling.level)
        by_recursion = sampling.expected_of_profile(profile, mask, 1.0, layers)
        columns = {"predicted": by_recursion, "measured": mean, "low": low, "high": high}
        rows.append(pd.DataFrame({"mask": mask, "profile": profile, "layer": np.arange(1, layers + 1), **columns}))
    return pd.concat(rows, ignore_index=True)


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
            recency_of_gram = relative_recency if norm == "none" else recency
            rows.append({**at, "head": 0, "quantity": "gram", "value": float(recency_of_gram(gram))})
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
            for matrices, values in zip(total, (gram, logits, P), strict=True):
                matrices += values.sum(0).double().numpy()
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


def _batches(sequences: int, numbers: int) -> Iterator[int]:
    """Yield the sizes of batches of `sequences` sequences, where a tensor takes so many `numbers` for each of them."""
    size = max(1, BATCH // numbers)
    for start in range(0, sequences, size):
        yield min(size, sequences - start)
