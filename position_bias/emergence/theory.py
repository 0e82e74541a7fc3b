"""This module has both sides of the statements of section 4 and appendices A-I of Wu et al. 2025.

A stack of attention layers is `[T, D, n, n]`: layer t = 0, ..., T - 1, then D independent draws. Its products
P^(t) = A^(t) ... A^(0) (Eq. 4) are those of t + 1 layers. Tokens i and j count from 1, as in the paper, and x = i - j
is their distance. Epsilon, the floor, is the smallest weight that a draw gives to any admitted token, `[D]`.

Where a proof needs another constant than it prints, both stand here; "printed" is in the name of the paper's one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil, log, pi

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from position_card.rollout.attention import (
    Array,
    Mask,
    alibi_bias,
    causal_mask,
    content_free_attention,
    layer_products,
    masked_softmax,
    prefix_mask,
    sliding_window_mask,
)

Complex = npt.NDArray[np.complex128]

DIMENSION = 8  # of random queries and keys
LARGEST_NORM = 1.5  # of random queries and keys: assumption A1 with bounded inputs
TIE = 1e-9  # relative: distances whose weights differ by less are one peak

WINDOWS = (2, 4, 8)
PREFIXES = (2, 4)
DECAY = -log(0.8)  # m of the paper's experiments (Appendix J)
DECAYS = (0.1, DECAY, 0.5, 1.0)
DEPTHS = (1, 2, 4, 8)  # t
TURNS = (1.0, 0.75, 0.5)  # of a sequence by RoPE, in half turns
STRENGTH = 100.0  # |q| |k| of content-free RoPE; at 25, peaks of deep, slow rows run into the first of 400 tokens


# Attention layers and their products


def random_logits(layers: int, draws: int, n: int, seed: int) -> Array:
    """Draw products of random queries and keys, anew for each layer, `[layers, draws, n, n]`.

    Directions are uniform, norms are uniform up to `LARGEST_NORM` (A1).
    """
    rng = np.random.default_rng(seed)

    def in_ball() -> Array:
        direction = rng.normal(size=(layers, draws, n, DIMENSION))
        norm = rng.uniform(0, LARGEST_NORM, size=(layers, draws, n, 1))
        return norm * direction / np.linalg.norm(direction, axis=-1, keepdims=True)

    query, key = in_ball(), in_ball()
    return query @ key.swapaxes(-1, -2)


products = layer_products  # P^(0), ..., P^(T-1) of attention layers `[T, ..., n, n]` (Eq. 4)


def smallest_weight(attention: Array, mask: Mask) -> Array:
    """Epsilon of Lemma A.1 for each draw of `[T, D, n, n]`, `[D]`."""
    return attention[..., mask].min(axis=(0, -1))


# Theorems 4.1-4.3: masks


def prefix_bound(floor: Array, n: int, prefix: int, layers: int) -> Array:
    """Theorem 4.3: return log of C (1 - (j - K) eps)^t for j = K + 1..n, `[T, D, n - K]`; C = 1 - eps, K = `prefix`.

    A causal mask is that of one prefix token: the bound for K = 1 is that of Theorem 4.1.
    """
    return _log_bound(1 - floor, floor, np.arange(1, n - prefix + 1), np.arange(layers))


def window_bound(floor: Array, n: int, window: int, layers: int) -> Array:
    """Theorem 4.2: return log of C (1 - (j - 1) eps^R)^(t / 2R) for j = 2..n, `[T, D, n - 1]`; C: `window_constant`."""
    steps, constant = walk_length(n, window), window_constant(floor, n, window)
    return _log_bound(constant, floor**steps, np.arange(1, n), np.arange(layers) / (2 * steps))


def window_constant(floor: Array, n: int, window: int) -> Array:
    """Return a constant with which Theorem 4.2 holds: C = (1 - eps) (1 - (n - 1) eps^R)^(-(R - 1) / 2R), `[D]`.

    The paper says that there is one, and prints none. Proof. Every row from the second on admits two tokens or more, so
    A^(0) gives no token j > 1 more than 1 - eps. Of the t layers above it, any R in a row give every earlier token at
    least eps^R, so they leave at most q = 1 - (j - 1) eps^R for the tokens from j on; and no layer raises the largest
    entry of a column. Hence P_ij <= (1 - eps) q^floor(t/R). Where t >= R, floor(t/R) >= t / 2R, and C = 1 - eps would
    do, as it would for t = 0. Where 0 < t < R, nothing of q is earned yet, while the bound already has q^(t/2R), which
    is at least (1 - (n - 1) eps^R)^((R-1)/2R): this C has to return. For R = 1 it is the constant of Theorem 4.1. It is
    below 1, because (n - 1) eps^(R-1) <= R (w - 1) / w^(R-1) < 2 - eps for R >= 2, as eps <= 1/w.
    """
    steps = walk_length(n, window)
    return (1 - floor) * (1 - (n - 1) * floor**steps) ** (-(steps - 1) / (2 * steps))


def first_steps_bound(floor: Array, n: int, window: int) -> Array:
    """Appendix B for t < R: return the log of (1 - eps)^((t + 1) / R) for each j = 2..n, `[R, D, n - 1]`."""
    steps = walk_length(n, window)
    bound = np.log1p(-floor)[:, None] * (np.arange(1, steps + 1) / steps)[:, None, None]
    return np.broadcast_to(bound, (steps, len(floor), n - 1))


def blocks(attention: Array, layers: int) -> Array:
    """Return products of `layers` layers in a row (Lemma B.1), `[T // layers, D, n, n]`: of the first, of the next, ...

    Layers that are left over at the end are not looked at. Raises ValueError for no layers.
    """
    if layers < 1:
        raise ValueError(f"layers = {layers}: must be at least 1")
    whole = len(attention) // layers
    runs = attention[: whole * layers].reshape(whole, layers, *attention.shape[1:])
    return products(runs.swapaxes(0, 1))[-1]


def mass_without_content(n: int, window: int, layers: int) -> Array:
    """Return the largest 1 - P(first token) after 1, 2, ... layers of uniform attention through a window, `[layers]`.

    Summed from what lies beyond the first token, so that it stays exact however little that is.
    """
    return np.fromiter(islice(_masses_without_content(n, window), layers), np.float64)


def layers_to_half(n: int, window: int) -> float:
    """Return how many layers, not always whole, give every token half its mass on the first, with uniform attention.

    It takes about 2R = 2 (n - 1) / (w - 1) layers, as a layer moves a token (w - 1) / 2 places towards the first one on
    average. What is lost among the first w tokens, where steps are shorter, is of the order of log w.
    """
    masses = _masses_without_content(n, window)
    layers, previous, mass = 0, 1.0, 1.0
    while mass > 0.5:
        layers, previous, mass = layers + 1, mass, next(masses)
    return layers - (0.5 - mass) / (previous - mass)


def _masses_without_content(n: int, window: int) -> Iterator[float]:
    attention = masked_softmax(np.zeros((n, n)), sliding_window_mask(n, window))
    masses = np.ones(n)
    masses[0] = 0.0
    while True:
        masses = attention @ masses
        yield float(masses.max())


def rate(curve: Array) -> float:
    """By how much the log of `curve[T]` falls a layer, from the middle of its layers to the last."""
    middle = len(curve) // 2
    return float(np.log(curve[middle] / curve[-1]) / (len(curve) - 1 - middle))


def walk_length(n: int, window: int) -> int:
    """Return R: the layers after which the last token can have read the first, ceil((n - 1) / (window - 1))."""
    return max(1, ceil((n - 1) / (window - 1)))


def _log_bound(constant: Array, loss: Array, earlier: npt.ArrayLike, exponent: npt.ArrayLike) -> Array:
    """Log of constant[D] (1 - earlier[J] loss[D])^exponent[T], `[T, D, J]`. Raises ValueError for a base <= 0."""
    loss_of_layers = loss[:, None] * np.asarray(earlier)
    if loss_of_layers.max() >= 1:
        raise ValueError(f"a layer would take {loss_of_layers.max():.3g} of the mass; the theorem asks for less than 1")
    return np.log(constant)[:, None] + np.asarray(exponent)[:, None, None] * np.log1p(-loss_of_layers)


def share_of_bound(products: Array, log_bound: Array) -> Array:
    """Largest P_ij over its bound for each draw, `[D]`; the bounds `[T, D, J]` are those of the last J tokens j."""
    masses = products[..., -log_bound.shape[-1] :].max(axis=-2)  # over i
    return np.exp(_log(masses) - log_bound).max(axis=(0, -1))


def mass_beyond(products: Array, centres: int) -> Array:
    """Return 1 - P(z_i among the first `centres` tokens), `[..., n]`: summed, to stay exact however little it is."""
    return products[..., centres:].sum(axis=-1)


def mass_bound(floor: Array, layers: int, centres: int = 1, steps: int = 1) -> Array:
    """Return (1 - K eps^R)^floor((t + 1) / R), above the mass beyond K centres, `[T, D]`; see the proofs of 4.1-4.3.

    R = `steps` layers reach the K = `centres` nodes from everywhere: 1 for causal and prefix masks, `walk_length` else.
    """
    blocks = np.arange(1, layers + 1) // steps
    return (1 - centres * floor**steps) ** blocks[:, None]


def prefix_ratio(attention: Array, products: Array, prefix: int, *, as_printed: bool) -> Array:
    """Appendix C: return the smallest P_ik / P_ik' over its bound, for prefix tokens k, k' and all i and t > 0, `[D]`.

    The bound is the smallest A^(0)_lk / A^(0)_lk' over the tokens l that i can stand on after layers 1..t: all l up to
    max(i, K). The paper prints min(i, K) (`as_printed`). That forgets the tokens behind the prefix, which have weight
    at every finite t, and for i < K also some of the prefix, which keep theirs.
    """
    n = attention.shape[-1]
    bound = np.minimum.accumulate(_ratios(attention[0], prefix), axis=-2)  # over l, [D, n, K (K - 1)]
    last = (np.minimum if as_printed else np.maximum)(np.arange(1, n + 1), prefix) - 1
    return (_ratios(products[1:], prefix) / bound[:, last]).min(axis=(0, -2, -1))


def prefix_share(attention: Array, prefix: int) -> Array:
    """Appendix C: return kappa, the smallest A^(0)_lk / A^(0)_lk' over l, k, k' <= K, over K, `[D]`.

    In the limit token i stands on prefix tokens only, so the ratios of its shares are at least that, and they sum to 1.
    """
    return _ratios(attention[0, :, :prefix], prefix).min(axis=(-2, -1), initial=1.0) / prefix


def _ratios(weights: Array, prefix: int) -> Array:
    """weights_lk / weights_lk' of each pair of prefix tokens k != k', `[..., n, K (K - 1)]`."""
    shares = weights[..., :prefix]
    return (shares[..., :, None] / shares[..., None, :])[..., ~np.eye(prefix, dtype=bool)]


# What all pairs at one distance have in common


def by_distance(matrix: Array) -> tuple[Array, Array]:
    """Return the smallest and largest entry M_ij, j <= i, at each distance i - j = 0..n - 1, both `[..., n]`."""
    n = matrix.shape[-1]
    diagonals = [matrix.diagonal(-x, -2, -1) for x in range(n)]
    smallest = np.stack([entries.min(axis=-1) for entries in diagonals], axis=-1)
    largest = np.stack([entries.max(axis=-1) for entries in diagonals], axis=-1)
    return smallest, largest


def log_paths(depth: npt.ArrayLike, distance: npt.ArrayLike) -> Array:
    """Return log of binom(t + x, x), for causal paths of t + 1 steps over a distance x (Appendix E). It broadcasts."""
    t, x = np.asarray(depth, np.float64), np.asarray(distance, np.float64)
    return gammaln(t + x + 1) - gammaln(t + 1) - gammaln(x + 1)


# Lemma 4.4 and Theorem 4.5: the decay mask


def decay_attention(logits: Array, decay: float) -> Array:
    """Return causal attention with the decay mask -(i - j) m on `logits[..., n, n]` (Eq. 2); m = `decay` > 0."""
    n = logits.shape[-1]
    return masked_softmax(logits + alibi_bias(n, [decay])[0], causal_mask(n))


def logit_range(logits: Array) -> Array:
    """I_max - I_min of Appendix D over the admitted pairs and all layers of each draw, `[D]`."""
    return np.ptp(logits[..., causal_mask(logits.shape[-1])], axis=(0, -1))


def decay_ceiling(spread: Array) -> Array:
    """Return C_max = e^(I_max - I_min), `[D]`: a normaliser is at least e^I_min, and row 1 has no other term."""
    return np.exp(spread)


def decay_ceiling_printed(spread: Array, decay: float) -> Array:
    """Return C_max of Appendix D, over 1 + e^-m, `[D]`: it sums i + 1 terms where row i has i; row 1 has too few."""
    return np.exp(spread) / (1 + np.exp(-decay))


def decay_floor(spread: Array, decay: float) -> Array:
    """Return C_min = (1 - e^-m) e^-(I_max - I_min) of Appendix D, `[D]`."""
    return -np.expm1(-decay) * np.exp(-spread)


def decay_ratio(attention: Array, decay: float) -> tuple[Array, Array]:
    """Lemma 4.4: return the smallest and largest A_ij e^((i-j) m) of each draw, both `[D]`."""
    smallest, largest = by_distance(attention)
    scale = np.exp(decay * np.arange(attention.shape[-1]))
    return (smallest * scale).min(axis=(0, -1)), (largest * scale).max(axis=(0, -1))


def path_bounds(layers: int, exponent: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return logs of binom(t + x, x) C^(t+1) e^-exponent for t < layers: C = `low[D]`, C = `high[D]`; `[T, D, n]` each.

    `exponent` is that of each distance, and broadcasts to `[2, T, D, n]`: of the lower bound, then of the upper.
    """
    n = exponent.shape[-1]
    depth = np.arange(layers)[:, None, None]
    lower, upper = np.broadcast_to(exponent, (2, layers, len(low), n))
    paths = log_paths(depth, np.arange(n))
    return paths + (depth + 1) * np.log(low)[:, None] - lower, paths + (depth + 1) * np.log(high)[:, None] - upper


def path_ratio(smallest: Array, largest: Array, log_lower: Array, log_upper: Array) -> tuple[Array, Array]:
    """Return the smallest P_ij over its bound from below, and the largest over that from above, both `[D]`.

    `smallest` and `largest` are the extremes of P_ij at each distance and depth (`by_distance`), `[T, D, n]` as
    the logs of their bounds.
    """
    return np.exp(_log(smallest) - log_lower).min(axis=(0, -1)), np.exp(_log(largest) - log_upper).max(axis=(0, -1))


def last_rows(attention: Array, layers: int) -> Array:
    """Return the last row of A, A^2, ..., of one layer A `[n, n]` repeated, over distance 0..n - 1, `[layers, n]`."""
    row, rows = attention[-1], []
    for _ in range(layers):
        rows.append(row[::-1])
        row = row @ attention
    return np.stack(rows)


def peak(profile: Array) -> int:
    """Return the distance at which `profile[n]` is largest: the greatest one, where several are to within `TIE`."""
    return int(np.flatnonzero(profile >= (1 - TIE) * profile.max())[-1])


def decay_peak(depth: float, decay: float) -> float:
    """Theorem 4.5: return x* = t / (e^m - 1).

    Far from the first token a content-free row is the negative binomial distribution of t + 1 successes of probability
    1 - e^-m. Its mode is the floor of x*; where x* is an integer, x* - 1 ties with it. So a measured peak, which is the
    farthest of ties, is x* rounded down.
    """
    return float(depth / np.expm1(decay))


# Lemma 4.6, Theorem 4.7 and Appendix I: RoPE


@dataclass(frozen=True)
class Rotary:
    """Queries and keys before rotation, a complex number for each two dimensions, `[T, D, n, d/2]`, and the angles."""

    query: Complex
    key: Complex
    angle: float  # theta_1
    multiples: Array  # alpha_l, [d/2]: segment l turns by alpha_l theta_1 a token
    slack: float  # delta theta_1: no segment's query and key are farther apart than this

    @property
    def n(self) -> int:
        """How many tokens there are."""
        return self.query.shape[-2]

    @property
    def reach(self) -> Array:
        """x^2 theta_1^2 sum_l alpha_l^2 over distance x, `[n]`."""
        return (np.arange(self.n) * self.angle) ** 2 * (self.multiples**2).sum()

    @property
    def weakest(self) -> Array:
        """Smallest |q_l| |k_l| of each draw, `[D]`."""
        return np.abs(self.query).min(axis=(0, 2, 3)) * np.abs(self.key).min(axis=(0, 2, 3))

    @property
    def strongest(self) -> Array:
        """Largest |q_l| |k_l| of each draw, `[D]`."""
        return np.abs(self.query).max(axis=(0, 2, 3)) * np.abs(self.key).max(axis=(0, 2, 3))


def random_rotary(
    layers: int,
    draws: int,
    n: int,
    seed: int,
    *,
    slack: float,
    norms: tuple[float, float],
    multiples: tuple[float, ...] = (1.0,),
    unevenness: float = 0.0,
) -> Rotary:
    """Draw random queries and keys under the conditions of Lemma 4.6, or of Lemma I.1 for several `multiples`.

    Norms are uniform in `norms`; the angle of a query, and of a key, is uniform in a range of `slack`/2 to either side;
    the segments of a vector have the same norm but for a factor of 1 +- `unevenness`. The base angle is the largest one
    that the lemma's condition leaves, with the slack that Lemma I.3 proves where there are several segments.
    """
    shape = (layers, draws, n, len(multiples))
    rng = np.random.default_rng(seed)

    def in_sector() -> Complex:
        norm = rng.uniform(*norms, size=(*shape[:-1], 1)) * rng.uniform(1 - unevenness, 1 + unevenness, size=shape)
        return norm * np.exp(1j * rng.uniform(-slack / 2, slack / 2, size=shape))

    query, key = in_sector(), in_sector()
    widest = float(segment_slack(query, key).max()) if len(multiples) > 1 else slack
    angle = (pi - widest) / ((n - 1) * max(multiples))
    return Rotary(query, key, angle, np.array(multiples), widest)


def angles_between(query: Complex, key: Complex) -> tuple[Array, Array]:
    """Return the angle of each query and key, `[..., n, n]`, and of each of their segments, `[..., n, n, d/2]`."""
    pairs = query[..., :, None, :] * key[..., None, :, :].conj()
    norms = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return np.arccos(np.clip(pairs.real.sum(-1) / norms, -1, 1)), np.abs(np.angle(pairs))


def segment_slack(query: Complex, key: Complex) -> Array:
    """Lemma I.3: return (pi / 2) |phi| / sqrt(beta_q beta_k), above the angle of every segment, `[..., n, n]`.

    The betas of assumption A3 are the smallest share that any segment has in the norm of its vector.
    """
    smallest_query, smallest_key = (
        (np.abs(vectors) / np.linalg.norm(vectors, axis=-1, keepdims=True)).min() for vectors in (query, key)
    )
    return pi / 2 * angles_between(query, key)[0] / np.sqrt(smallest_query * smallest_key)


def rope_logits(rotary: Rotary) -> Array:
    """Return the products of queries and keys, each rotated by its position (Eq. 3), `[T, D, n, n]`."""
    turn = np.exp(1j * np.arange(rotary.n)[:, None] * rotary.angle * rotary.multiples)
    return ((rotary.query * turn) @ (rotary.key * turn).conj().swapaxes(-1, -2)).real


def rope_logit_range(rotary: Rotary) -> tuple[Array, Array]:
    """Bound the logits at distances 0..n - 1 from below and above, both `[D, n]`: Appendix F corrected, and I.2.

    The angle of query and key lies between (x - delta) theta, or 0 below delta, and (x + delta) theta. Its cosine is
    multiplied by the smallest |q| |k| below and by the largest above where it is positive; where it is negative, the
    other way round.
    """
    weakest, strongest = rotary.weakest[:, None, None], rotary.strongest[:, None, None]
    angles = np.arange(rotary.n)[:, None] * rotary.angle * rotary.multiples
    far, near = np.cos(angles + rotary.slack), np.cos(np.maximum(angles - rotary.slack, 0))
    lower = np.where(far >= 0, weakest, strongest) * far
    upper = np.where(near >= 0, strongest, weakest) * near
    return lower.sum(axis=-1), upper.sum(axis=-1)


def single_constants(logits: Array, rotary: Rotary) -> tuple[Array, Array]:
    """Appendix F: return what its C_min, and its C_max, must be at least, over what it may be at most, both `[D]`.

    It bounds logits by C_min cos((x + delta) theta) and C_max cos(|x - delta| theta), with one C_min and one C_max for
    all distances, so both quotients would be at most 1. Where the cosine is positive, it keeps C_min down and C_max up;
    where it is negative, the other way round. Constants may differ between layers; the worst layer is returned. For two
    dimensions, and a slack below pi / 4: a larger one may leave no distance for one of the two.
    """
    angles, (smallest, largest) = np.arange(rotary.n) * rotary.angle, by_distance(logits)
    far, near = np.cos(angles + rotary.slack), np.cos(np.abs(angles - rotary.slack))
    minimum, maximum = smallest / far, largest / near
    lower = minimum[..., far < 0].max(axis=-1) / minimum[..., far > 0].min(axis=-1)
    upper = maximum[..., near > 0].max(axis=-1) / maximum[..., near < 0].min(axis=-1)
    return lower.max(axis=0), upper.max(axis=0)


@dataclass(frozen=True)
class Gaussian:
    """C_min e^(-c r) <= A_ij <= C_max e^(-c' r) for r = x^2 theta_1^2 sum alpha_l^2; each `[D]` (Lemmas 4.6, I.1)."""

    floor: Array
    slow: Array  # c' of the upper bound
    ceiling: Array
    fast: Array  # c of the lower bound


def rope_constants(rotary: Rotary) -> Gaussian:
    """Return the constants of Lemma 4.6, and of Lemma I.1, from the corrected step of Appendix F.

    Let s be the slack and y = x alpha_l theta_1. Then 1 - y^2/2 <= cos y <= 1 - 2 y^2 / pi^2 up to pi; (x + s)^2 <= 2
    x^2 + 2 s^2; and max(x - s, 0)^2 >= x^2/2 - s^2. So a segment's logit lies between weakest - strongest (y^2 + s^2)
    and strongest - weakest (2 / pi^2) (y^2/2 - s^2). A row's normaliser has the logit of distance 0, and at most one of
    each distance.
    """
    weakest, strongest, segments = rotary.weakest, rotary.strongest, len(rotary.multiples)
    lowest = segments * (weakest - strongest * rotary.slack**2)  # at distance 0
    highest = segments * (strongest + weakest * 2 * rotary.slack**2 / pi**2)
    slow, fast = weakest / pi**2, strongest
    normaliser = highest + logsumexp(-slow[:, None] * rotary.reach, axis=-1)
    return Gaussian(np.exp(lowest - normaliser), slow, np.exp(highest - lowest), fast)


def gaussian_ratio(products: Array, layers: int, rotary: Rotary) -> tuple[Array, Array]:
    """Theorems 4.7, I.2: return the smallest P_ij over its lower bound, the largest over its upper one, both `[D]`.

    `products` [T, D, n, n] are of 1, 2, ..., T = `layers` layers, or with `layers` 1 each of a single layer, for Lemmas
    4.6 and I.1. The squares of t + 1 steps over a distance x sum to x^2 at most, and to x^2 / (t + 1) at least
    (Appendix G).
    """
    constants = rope_constants(rotary)
    lower = np.broadcast_to(constants.fast[:, None] * rotary.reach, (layers, len(constants.fast), rotary.n))
    upper = constants.slow[:, None] * rotary.reach / np.arange(1, layers + 1)[:, None, None]
    bounds = path_bounds(layers, np.stack([lower, upper]), constants.floor, constants.ceiling)
    return path_ratio(*by_distance(products), *bounds)


def paths_through(matrices: int, distance: int) -> int:
    """Count causal paths over `distance` through a product of `matrices` (Eq. 12), by a power of a matrix of ones."""
    return int(np.linalg.matrix_power(np.tri(distance + 1, dtype=np.int64), matrices)[-1, 0])


def least_squares_of_steps(steps: int, distance: int) -> int:
    """Smallest sum of squares of `steps` whole steps over `distance` (Eq. 16), which is that of an even split."""
    quotient, remainder = divmod(distance, steps)
    return (steps - remainder) * quotient**2 + remainder * (quotient + 1) ** 2


def rope_profile(depth: int, angle: float, distance: npt.ArrayLike) -> Array:
    """Theorem 4.7: return L(x), the log of binom(t + x, x) e^(-x^2 theta_1^2), over `distance`; theta_1 is `angle`."""
    return log_paths(depth, distance) - (np.asarray(distance) * angle) ** 2


def critical_point(depth: float, coefficient: float) -> float:
    """Appendix H: return the x with log((t + x) / x) = 2 `coefficient` x, where Stirling's L has its maximum.

    The coefficient is theta_1^2; printed is theta_1. With theta_1^2, L(x) - L(x - 1) changes sign at an x at most 1/2
    above this one, so the largest L at a whole distance is less than 1 from it. From t to t' > t, x grows by
    sqrt(t' / t) at most, whatever the coefficient, and by sqrt(t' (t' + 1) / t (t + 1)) where a coefficient is divided
    by t + 1: log(1 + r u) <= r log(1 + u) for r >= 1.
    """
    slope = 2 * coefficient
    furthest = np.sqrt(depth / slope)  # log(1 + t/x) < t/x
    return float(brentq(lambda x: np.log1p(depth / x) - slope * x, 1e-9 * furthest, furthest, xtol=1e-12))


def rope_attention(n: int, angle: float, strength: float) -> Array:
    """Return content-free causal attention with RoPE, d = 2: logits |q| |k| cos((i - j) theta_1), `[n, n]`.

    Lemma 4.6 does not reach beyond half a turn, (n - 1) theta_1 <= pi.
    """
    position = np.arange(n)
    return masked_softmax(strength * np.cos(angle * (position[:, None] - position)), causal_mask(n))


@dataclass(frozen=True)
class QuarterTurn:
    """Last rows of P^(0), P^(1), ... of content-free RoPE attention, over the distances up to a quarter of a turn.

    The sequence makes half a turn, the most that Lemma 4.6 admits. The last row and all that it reads within a quarter
    then have almost the same normaliser. So the constants of a bound are almost the same from below and above.
    """

    rows: Array  # [T, X + 1]
    squared_angles: Array  # (x theta)^2, [X + 1]
    strength: float  # |q| |k|
    least: float  # weight that one of the last X + 1 tokens gives itself, at least
    most: float  # and at most

    def bounds(self) -> tuple[Array, Array]:
        """Return logs of binom(t + x, x) C^(t+1) e^(-c x^2 theta^2), and with c' / (t + 1), `[T, 1, X + 1]` each.

        Up to a quarter turn 1 - y^2 / 2 <= cos y <= 1 - 4 y^2 / pi^2. So c = |q| |k| / 2 and c' = 4 |q| |k| / pi^2
        suffice; C is the least and the largest weight of a token on itself. All bounds are attained at x = 0, the
        upper one, but for rounding, at a quarter turn of one layer, too.
        """
        layers = np.arange(1, len(self.rows) + 1)[:, None, None]
        lower = np.broadcast_to(self.strength / 2 * self.squared_angles, (len(layers), 1, len(self.squared_angles)))
        upper = 4 * self.strength / pi**2 * self.squared_angles / layers
        low, high = np.array([self.least]), np.array([self.most])
        return path_bounds(len(layers), np.stack([lower, upper]), low, high)

    def coefficients(self) -> Array:
        """Return c of binom(t + x, x) e^(-c x^2 theta^2) at each depth that joins the ends, x = 0 and a quarter, `[T]`.

        The steeper attention is, the nearer it comes to |q| |k| (t + 1) (1 - cos(y / (t + 1))) / y^2, y a quarter turn,
        as an even split of the distance outweighs all other paths.
        """
        depth, furthest = np.arange(len(self.rows)), len(self.squared_angles) - 1
        decrease = np.log(self.rows[:, 0] / self.rows[:, -1])
        return (decrease + log_paths(depth, furthest)) / self.squared_angles[-1]


def quarter_turn(tokens: int, layers: int) -> QuarterTurn:
    """Follow content-free RoPE attention of `STRENGTH` with `tokens` tokens through 1, 2, ... `layers` layers."""
    angle, furthest = _half_turn(tokens), (tokens - 1) // 2
    attention = rope_attention(tokens, angle, STRENGTH)
    on_diagonal = attention.diagonal()[-furthest - 1 :]
    squared_angles = np.square(angle * np.arange(furthest + 1, dtype=np.float64))
    rows = last_rows(attention, layers)[:, : furthest + 1]
    return QuarterTurn(rows, squared_angles, STRENGTH, float(on_diagonal.min()), float(on_diagonal.max()))


# What the figure draws


def convergence(tokens: int, layers: int, draws: int, seed: int) -> pd.DataFrame:
    """Return the mass beyond the centre nodes against depth: its largest value over tokens, for each mask of Theorems
    4.1-4.3.

    One depth a row: mask, layers, value and bound of uniform attention, and low, high: its range over random attention.
    """
    contents = random_logits(layers, draws, tokens, seed)
    windows, prefixes = ([size for size in sizes if size < tokens] for sizes in (WINDOWS, PREFIXES))
    # by name: the mask, K centre nodes to which context converges, R layers that reach them from everywhere
    masks = {"causal": (causal_mask(tokens), 1, 1)}
    masks |= {f"window {w}": (sliding_window_mask(tokens, w), 1, walk_length(tokens, w)) for w in windows}
    masks |= {f"prefix {k}": (prefix_mask(tokens, k), k, 1) for k in prefixes}
    curves = []
    for name, (mask, centres, steps) in masks.items():
        uniform = masked_softmax(np.zeros((layers, 1, tokens, tokens)), mask)
        free, with_content = (
            mass_beyond(products(attention), centres).max(axis=-1)
            for attention in (uniform, masked_softmax(contents, mask))
        )
        curve = {
            "mask": name,
            "layers": np.arange(1, layers + 1),
            "value": free[:, 0],
            "bound": mass_bound(smallest_weight(uniform, mask), layers, centres, steps)[:, 0],
            "low": with_content.min(axis=1),
            "high": with_content.max(axis=1),
        }
        curves.append(pd.DataFrame(curve))
    return pd.concat(curves, ignore_index=True)


def decay_profiles(tokens: int) -> pd.DataFrame:
    """Return the last row of P^(t) over distance, content-free with decay mask `DECAY`, for each t of `DEPTHS`.

    One distance a row: depth (t), distance, value, peak (measured) and critical (Theorem 4.5).
    """
    rows = last_rows(content_free_attention(tokens, [DECAY])[0], max(DEPTHS) + 1)
    return pd.concat([_profile(rows[t], t, critical=decay_peak(t, DECAY)) for t in DEPTHS], ignore_index=True)


def rope_profiles(tokens: int) -> pd.DataFrame:
    """Return what `decay_profiles` does, but with RoPE, the whole sequence half a turn.

    Critical is that of L with the exponent of an even split, c x^2 theta_1^2 / (t + 1), and printed that with the
    exponent of Theorem 4.7, c x^2 theta_1^2 at every depth; c = |q| |k| / 2, as in cos y >= 1 - y^2 / 2.
    """
    angle = _half_turn(tokens)
    rows = last_rows(rope_attention(tokens, angle, STRENGTH), max(DEPTHS) + 1)
    c = STRENGTH / 2 * angle**2
    profiles = [
        _profile(rows[t], t, critical=critical_point(t, c / (t + 1)), printed=critical_point(t, c)) for t in DEPTHS
    ]
    return pd.concat(profiles, ignore_index=True)


def _profile(row: Array, depth: int, **points: float) -> pd.DataFrame:
    return pd.DataFrame({"depth": depth, "distance": np.arange(len(row)), "value": row, "peak": peak(row), **points})


def decay_peaks(tokens: int) -> pd.DataFrame:
    """Theorem 4.5: return where the last row of P^(t) of `tokens` tokens is largest, and where the theorem expects it.

    Attention is content-free with a decay mask. One row for each slope m of `DECAYS` and each t from 1 to the largest
    of `DEPTHS`: decay (m), depth (t), peak and critical. Peak is the measured distance from the last token (`peak`),
    and critical is x* (`decay_peak`), not rounded.
    """
    peaks = []
    for m in DECAYS:
        rows = last_rows(content_free_attention(tokens, [m])[0], max(DEPTHS) + 1)
        peaks += [
            {"decay": m, "depth": t, "peak": peak(rows[t]), "critical": decay_peak(t, m)}
            for t in range(1, max(DEPTHS) + 1)
        ]
    return pd.DataFrame(peaks)


def rope_peaks(tokens: int) -> pd.DataFrame:
    """Theorem 4.7: find where the last row of P^(t) is largest, without content, for each of `TURNS` and `DEPTHS`.

    One observation a row: angle (theta_1), depth (t) and peak (measured).
    """
    peaks = []
    for angle in _half_turn(tokens) * np.array(TURNS):
        rows = last_rows(rope_attention(tokens, angle, STRENGTH), max(DEPTHS) + 1)
        peaks += [{"angle": angle, "depth": t, "peak": peak(rows[t])} for t in DEPTHS]
    return pd.DataFrame(peaks)


def _half_turn(tokens: int) -> float:
    """The largest theta_1 that Lemma 4.6 admits."""
    return pi / (tokens - 1)


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(values)
