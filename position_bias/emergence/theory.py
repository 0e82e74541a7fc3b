"""Both sides of the statements of section 4 and appendices A-I of Wu et al. 2025, from attention layers.

A stack of attention layers is `[T, D, n, n]`: layer t = 0, ..., T - 1, then D independent draws. Its products
P^(t) = A^(t) ... A^(0) (Eq. 4) are those of t + 1 layers. Tokens i and j count from 1, as in the paper, and x = i - j
is their distance. Epsilon, the floor, is the smallest weight that a draw gives to any admitted token, `[D]`.

Where a proof needs another constant than it prints, both stand here; "printed" is in the name of the paper's one.
"""

from dataclasses import dataclass
from itertools import accumulate
from math import ceil, log, pi

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from position_bias.attention import (
    Array,
    Mask,
    alibi_bias,
    causal_mask,
    checked_length,
    content_free_attention,
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
    """Products of random queries and keys, drawn anew for each layer, `[layers, draws, n, n]`.

    Directions are uniform, norms are uniform up to `LARGEST_NORM` (A1).
    """
    shape = (_at_least(1, "layers", layers), _at_least(1, "draws", draws), checked_length(n), DIMENSION)
    rng = np.random.default_rng(seed)
    query, key = (_in_ball(rng, shape) for _ in range(2))
    return query @ key.swapaxes(-1, -2)


def _in_ball(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    direction = rng.normal(size=shape)
    norm = rng.uniform(0, LARGEST_NORM, size=(*shape[:-1], 1))
    return norm * direction / np.linalg.norm(direction, axis=-1, keepdims=True)


def products(attention: Array) -> Array:
    """P^(0), ..., P^(T-1) of attention layers `[T, ..., n, n]`, same shape (Eq. 4)."""
    return np.stack(list(accumulate(attention, lambda below, layer: layer @ below)))


def smallest_weight(attention: Array, mask: Mask) -> Array:
    """Epsilon of Lemma A.1 for each draw of `[T, D, n, n]`, `[D]`."""
    return attention[..., mask].min(axis=(0, -1))


# Theorems 4.1-4.3: masks


def causal_bound(floor: Array, n: int, layers: int) -> Array:
    """Theorem 4.1: log of C (1 - (j - 1) eps)^t for t < layers and j = 2..n, `[T, D, n - 1]`; C = 1 - eps."""
    return _log_bound(1 - floor, floor, np.arange(1, n), np.arange(layers))


def window_bound(floor: Array, n: int, window: int, layers: int, constant: Array) -> Array:
    """Theorem 4.2: log of C (1 - (j - 1) eps^R)^(t / 2R) for j = 2..n, `[T, D, n - 1]`, with C = `constant[D]`."""
    steps = walk_length(n, window)
    return _log_bound(constant, floor**steps, np.arange(1, n), np.arange(layers) / (2 * steps))


def window_constant(floor: Array, n: int, window: int) -> Array:
    """A constant with which Theorem 4.2 holds: C = (1 - eps) (1 - (n - 1) eps^R)^(-(R - 1) / 2R), `[D]`.

    Proof. Every row from the second on admits two tokens or more, so A^(0) gives no token j > 1 more than 1 - eps. Of
    the t layers above it, any R in a row give every earlier token at least eps^R, so they leave at most
    q = 1 - (j - 1) eps^R for the tokens from j on; and no layer raises the largest entry of a column. Hence
    P_ij <= (1 - eps) q^floor(t/R). Where t >= R, floor(t/R) >= t / 2R, and C = 1 - eps would do, as it would for t = 0.
    Where 0 < t < R, nothing of q is earned yet, while the bound already has q^(t/2R), which is at least
    (1 - (n - 1) eps^R)^((R-1)/2R): this C has to return. For R = 1 it is the constant of Theorem 4.1. It is below 1,
    because (n - 1) eps^(R-1) <= R (w - 1) / w^(R-1) < 2 - eps for R >= 2, as eps <= 1/w.
    """
    steps = walk_length(n, window)
    return (1 - floor) * (1 - (n - 1) * floor**steps) ** (-(steps - 1) / (2 * steps))


def walk_length(n: int, window: int) -> int:
    """R: the layers after which the last token can have read the first, ceil((n - 1) / (window - 1))."""
    if window < 2:
        raise ValueError(f"window = {window}: Theorem 4.2 needs at least 2, or no token reads another")
    return max(1, ceil((n - 1) / (window - 1)))


def prefix_bound(floor: Array, n: int, prefix: int, layers: int) -> Array:
    """Theorem 4.3: log of C (1 - (j - K) eps)^t for j = K + 1..n, `[T, D, n - K]`; C = 1 - eps, K = `prefix`."""
    return _log_bound(1 - floor, floor, np.arange(1, n - prefix + 1), np.arange(layers))


def _log_bound(constant: Array, loss: Array, earlier: npt.ArrayLike, exponent: npt.ArrayLike) -> Array:
    """Log of constant[D] (1 - earlier[J] loss[D])^exponent[T], `[T, D, J]`."""
    rate = np.log1p(-loss[:, None] * np.asarray(earlier))
    return np.log(constant)[:, None] + np.asarray(exponent)[:, None, None] * rate


def share_of_bound(products: Array, log_bound: Array) -> Array:
    """Largest P_ij over its bound for each draw, `[D]`; the bounds `[T, D, J]` are those of the last J tokens j."""
    beyond = products[..., -log_bound.shape[-1] :].max(axis=-2)  # over i
    return np.exp(_log(beyond) - log_bound).max(axis=(0, -1))


def mass_beyond(products: Array, centres: int) -> Array:
    """1 - P(z_i among the first `centres` tokens), `[..., n]`: summed, so that it stays exact however little it is."""
    return products[..., centres:].sum(axis=-1)


def mass_bound(floor: Array, layers: int, centres: int = 1, steps: int = 1) -> Array:
    """(1 - K eps^R)^floor((t + 1) / R), above the mass beyond K centre nodes, `[T, D]`; what the proofs of 4.1-4.3 use.

    R = `steps` layers reach the K = `centres` nodes from everywhere: 1 for causal and prefix masks, `walk_length` else.
    """
    blocks = np.arange(1, layers + 1) // steps
    return (1 - centres * floor**steps) ** blocks[:, None]


def prefix_ratio(attention: Array, products: Array, prefix: int, *, printed: bool) -> Array:
    """Appendix C: smallest P_ik / P_ik' over its bound, for prefix tokens k, k' and all i and t > 0, `[D]`.

    The bound is the smallest A^(0)_lk / A^(0)_lk' over the tokens l that i can stand on after layers 1..t: all l up to
    max(i, K). Printed is min(i, K). That forgets the tokens behind the prefix, which have weight at every finite t, and
    for i < K also some of the prefix, which keep theirs.
    """
    if prefix < 2:
        raise ValueError(f"prefix = {prefix}: shares can be compared from 2 prefix tokens on")
    n = attention.shape[-1]
    bound = np.minimum.accumulate(_ratios(attention[0], prefix), axis=-2)  # over l, [D, n, K (K - 1)]
    last = (np.minimum if printed else np.maximum)(np.arange(1, n + 1), prefix) - 1
    return (_ratios(products[1:], prefix) / bound[:, last]).min(axis=(0, -2, -1))


def prefix_share(attention: Array, prefix: int) -> Array:
    """Appendix C: kappa, the smallest A^(0)_lk / A^(0)_lk' over l, k, k' <= K, over K, `[D]`.

    In the limit token i stands on prefix tokens only, so the ratios of its shares are at least that, and they sum to 1.
    """
    return _ratios(attention[0, :, :prefix], prefix).min(axis=(-2, -1), initial=1.0) / prefix


def _ratios(weights: Array, prefix: int) -> Array:
    """weights_lk / weights_lk' of each pair of prefix tokens k != k', `[..., n, K (K - 1)]`."""
    shares = weights[..., :prefix]
    return (shares[..., :, None] / shares[..., None, :])[..., ~np.eye(prefix, dtype=bool)]


# What all pairs at one distance have in common


def by_distance(matrix: Array) -> tuple[Array, Array]:
    """Smallest and largest entry M_ij, j <= i, at each distance i - j = 0..n - 1, both `[..., n]`."""
    n = matrix.shape[-1]
    diagonals = [matrix.diagonal(-x, -2, -1) for x in range(n)]
    least = np.stack([entries.min(axis=-1) for entries in diagonals], axis=-1)
    most = np.stack([entries.max(axis=-1) for entries in diagonals], axis=-1)
    return least, most


def log_paths(depth: npt.ArrayLike, distance: npt.ArrayLike) -> Array:
    """Log of binom(t + x, x), the causal paths of t + 1 steps over a distance x (Appendix E); arguments broadcast."""
    t, x = np.asarray(depth, np.float64), np.asarray(distance, np.float64)
    return gammaln(t + x + 1) - gammaln(t + 1) - gammaln(x + 1)


# Lemma 4.4 and Theorem 4.5: the decay mask


def decay_attention(logits: Array, decay: float) -> Array:
    """Causal attention with the decay mask -(i - j) m on `logits[..., n, n]` (Eq. 2); m = `decay` > 0."""
    n = logits.shape[-1]
    return masked_softmax(logits + alibi_bias(n, [_positive("decay", decay)])[0], causal_mask(n))


def logit_range(logits: Array) -> Array:
    """I_max - I_min of Appendix D over the admitted pairs and all layers of each draw, `[D]`."""
    return np.ptp(logits[..., causal_mask(logits.shape[-1])], axis=(0, -1))


def decay_ceiling(spread: Array) -> Array:
    """C_max = e^(I_max - I_min), `[D]`: a normaliser is at least e^I_min, and the first row has no other term."""
    return np.exp(spread)


def decay_ceiling_printed(spread: Array, decay: float) -> Array:
    """C_max of Appendix D, over 1 + e^-m, `[D]`: it sums i + 1 terms where row i has i, too many for the first row."""
    return np.exp(spread) / (1 + np.exp(-decay))


def decay_floor(spread: Array, decay: float) -> Array:
    """C_min = (1 - e^-m) e^-(I_max - I_min) of Appendix D, `[D]`."""
    return -np.expm1(-decay) * np.exp(-spread)


def decay_ratio(attention: Array, decay: float) -> tuple[Array, Array]:
    """Lemma 4.4: smallest and largest A_ij e^((i-j) m) of each draw, both `[D]`."""
    least, most = by_distance(attention)
    scale = np.exp(decay * np.arange(attention.shape[-1]))
    return (least * scale).min(axis=(0, -1)), (most * scale).max(axis=(0, -1))


def path_ratio(products: Array, exponent: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Smallest and largest P_ij over a bound binom(t + x, x) C^(t+1) e^-exponent, both `[D]`.

    The smallest is over the bound from below, with C = `low[D]`, the largest over the one from above, with `high[D]`.
    `exponent` is that of each distance, and broadcasts to `[2, T, D, n]`: of the lower bound, then of the upper.
    """
    layers, n = len(products), products.shape[-1]
    depth = np.arange(layers)[:, None, None]
    least, most = by_distance(products)
    below, above = np.broadcast_to(exponent, (2, *least.shape))
    paths = log_paths(depth, np.arange(n))
    lower = paths + (depth + 1) * np.log(low)[:, None] - below
    upper = paths + (depth + 1) * np.log(high)[:, None] - above
    return np.exp(_log(least) - lower).min(axis=(0, -1)), np.exp(_log(most) - upper).max(axis=(0, -1))


def last_rows(attention: Array, layers: int) -> Array:
    """Last row of A, A^2, ..., of one layer A `[n, n]` repeated, over distance 0..n - 1, `[layers, n]`."""
    row, rows = attention[-1], []
    for _ in range(layers):
        rows.append(row[::-1])
        row = row @ attention
    return np.stack(rows)


def peak(profile: Array) -> int:
    """Distance at which `profile[n]` is largest: the greatest one, where several are to within `TIE`."""
    return int(np.flatnonzero(profile >= (1 - TIE) * profile.max())[-1])


def decay_peak(depth: float, decay: float) -> float:
    """Theorem 4.5: x* = t / (e^m - 1).

    Far from the first token a content-free row is the negative binomial distribution of t + 1 successes of probability
    1 - e^-m. Its mode is the floor of x*; where x* is an integer, x* - 1 ties with it. So a measured peak, which is the
    farthest of ties, is less than 1 from x*.
    """
    return depth / np.expm1(_positive("decay", decay))


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
    """Random queries and keys under the conditions of Lemma 4.6, or of Lemma I.1 for several `multiples`.

    Norms are uniform in `norms`; the angle of a query, and of a key, is uniform in a range of `slack`/2 to either side;
    the segments of a vector have the same norm but for a factor of 1 +- `unevenness`. The base angle is the largest one
    that the lemma's condition leaves, with the slack that Lemma I.3 proves where there are several segments.
    """
    shape = (_at_least(1, "layers", layers), _at_least(1, "draws", draws), _at_least(2, "n", n), len(multiples))
    if not 0 < norms[0] <= norms[1]:
        raise ValueError(f"norms = {norms}: both must be positive, the smaller first")
    rng = np.random.default_rng(seed)
    query, key = (_in_sector(rng, shape, _positive("slack", slack), norms, unevenness) for _ in range(2))
    if len(multiples) > 1:
        slack = float(segment_slack(query, key).max())
    if slack >= pi:
        raise ValueError(
            f"queries and keys are up to {slack:.3g} apart: less than pi must be; lower slack or unevenness"
        )
    angle = (pi - slack) / ((n - 1) * max(multiples))
    return Rotary(query, key, angle, np.array(multiples), slack)


def _in_sector(
    rng: np.random.Generator, shape: tuple[int, ...], slack: float, norms: tuple[float, float], unevenness: float
) -> Complex:
    norm = rng.uniform(*norms, size=(*shape[:-1], 1)) * rng.uniform(1 - unevenness, 1 + unevenness, size=shape)
    return norm * np.exp(1j * rng.uniform(-slack / 2, slack / 2, size=shape))


def angles_between(query: Complex, key: Complex) -> tuple[Array, Array]:
    """Angle of each query and key, `[..., n, n]`, and of each of their segments, `[..., n, n, d/2]`."""
    pairs = query[..., :, None, :] * key[..., None, :, :].conj()
    norms = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return np.arccos(np.clip(pairs.real.sum(-1) / norms, -1, 1)), np.abs(np.angle(pairs))


def segment_slack(query: Complex, key: Complex) -> Array:
    """Lemma I.3: (pi / 2) |phi| / sqrt(beta_q beta_k), above the angle of every segment, `[..., n, n]`.

    The betas of assumption A3 are the smallest share that any segment has in the norm of its vector.
    """
    smallest_query, smallest_key = (
        (np.abs(vectors) / np.linalg.norm(vectors, axis=-1, keepdims=True)).min() for vectors in (query, key)
    )
    return pi / 2 * angles_between(query, key)[0] / np.sqrt(smallest_query * smallest_key)


def rope_logits(rotary: Rotary) -> Array:
    """Products of queries and keys, each rotated by its position (Eq. 3), `[T, D, n, n]`."""
    turn = np.exp(1j * np.arange(rotary.n)[:, None] * rotary.angle * rotary.multiples)
    return ((rotary.query * turn) @ (rotary.key * turn).conj().swapaxes(-1, -2)).real


def rope_logit_range(rotary: Rotary, *, printed: bool) -> tuple[Array, Array]:
    """Appendix F, and I.2 for d > 2: bounds of the logits at distances 0..n - 1 from below and above, both `[D, n]`.

    The angle of query and key lies between |x - delta| theta and (x + delta) theta, as printed; but below delta it can
    be 0. Its cosine is multiplied by the smallest |q| |k| below, and by the largest above, as printed; but a negative
    cosine asks for the other one.
    """
    weakest, strongest = rotary.weakest[:, None, None], rotary.strongest[:, None, None]
    turned = np.arange(rotary.n)[:, None] * rotary.angle * rotary.multiples
    far = np.cos(turned + rotary.slack)
    near = np.cos(np.abs(turned - rotary.slack) if printed else np.maximum(turned - rotary.slack, 0))
    if printed:
        return (weakest * far).sum(axis=-1), (strongest * near).sum(axis=-1)
    lower = np.where(far >= 0, weakest, strongest) * far
    upper = np.where(near >= 0, strongest, weakest) * near
    return lower.sum(axis=-1), upper.sum(axis=-1)


@dataclass(frozen=True)
class Gaussian:
    """C_min e^(-c r) <= A_ij <= C_max e^(-c' r) for r = x^2 theta_1^2 sum alpha_l^2; each `[D]` (Lemmas 4.6, I.1)."""

    floor: Array
    slow: Array  # c' of the upper bound
    ceiling: Array
    fast: Array  # c of the lower bound


def rope_constants(rotary: Rotary) -> Gaussian:
    """Constants of Lemma 4.6, and of Lemma I.1, from the corrected step of Appendix F.

    With s the slack, 1 - y^2/2 <= cos y <= 1 - 2 y^2 / pi^2 up to pi, (x + s)^2 <= 2 x^2 + 2 s^2 and
    max(x - s, 0)^2 >= x^2/2 - s^2, a segment's logit lies between weakest - strongest (y^2 + s^2) and
    strongest - weakest (2 / pi^2) (y^2/2 - s^2), where y = x alpha_l theta_1. A row's normaliser has the logit of
    distance 0, and at most one of each distance.
    """
    weakest, strongest, segments = rotary.weakest, rotary.strongest, len(rotary.multiples)
    lowest = segments * (weakest - strongest * rotary.slack**2)  # at distance 0
    highest = segments * (strongest + weakest * 2 * rotary.slack**2 / pi**2)
    slow, fast = weakest / pi**2, strongest
    normaliser = highest + logsumexp(-slow[:, None] * rotary.reach, axis=-1)
    return Gaussian(np.exp(lowest - normaliser), slow, np.exp(highest - lowest), fast)


def gaussian_ratio(attention: Array, rotary: Rotary) -> tuple[Array, Array]:
    """Lemmas 4.6, I.1: smallest A_ij over its bound from below, and largest over that from above, both `[D]`."""
    constants = rope_constants(rotary)
    least, most = by_distance(attention)
    lower = constants.floor[:, None] * np.exp(-constants.fast[:, None] * rotary.reach)
    upper = constants.ceiling[:, None] * np.exp(-constants.slow[:, None] * rotary.reach)
    return (least / lower).min(axis=(0, -1)), (most / upper).max(axis=(0, -1))


def gaussian_path_ratio(products: Array, rotary: Rotary) -> tuple[Array, Array]:
    """Theorems 4.7, I.2: smallest P_ij over its bound from below, and largest over that from above, both `[D]`.

    The squares of t + 1 steps over a distance x sum to x^2 at most, and to x^2 / (t + 1) at least (Appendix G).
    """
    constants = rope_constants(rotary)
    below = np.broadcast_to(constants.fast[:, None] * rotary.reach, (len(products), *products.shape[1:-1]))
    layers = np.arange(1, len(products) + 1)[:, None, None]
    above = constants.slow[:, None] * rotary.reach / layers
    return path_ratio(products, np.stack([below, above]), constants.floor, constants.ceiling)


def paths_through(matrices: int, distance: int) -> int:
    """Causal paths over `distance` through a product of `matrices` (Eq. 12), from a power of a matrix of ones."""
    ones = np.tri(_at_least(0, "distance", distance) + 1, dtype=np.int64)
    return int(np.linalg.matrix_power(ones, _at_least(1, "matrices", matrices))[-1, 0])


def least_squares_of_steps(steps: int, distance: int) -> int:
    """Smallest sum of squares of `steps` whole steps over `distance` (Eq. 16), which is that of an even split."""
    each, more = divmod(distance, _at_least(1, "steps", steps))
    return (steps - more) * each**2 + more * (each + 1) ** 2


def rope_profile(depth: int, angle: float, distance: npt.ArrayLike) -> Array:
    """Theorem 4.7: L(x), the log of binom(t + x, x) e^(-x^2 theta_1^2), over `distance`; theta_1 is `angle`."""
    return log_paths(depth, distance) - (np.asarray(distance) * angle) ** 2


def critical_point(depth: float, coefficient: float) -> float:
    """Appendix H: the x with log((t + x) / x) = 2 `coefficient` x, where Stirling's L has its maximum.

    The coefficient is theta_1^2; printed is theta_1. With theta_1^2, L(x) - L(x - 1) changes sign at an x at most 1/2
    above this one, so the largest L at a whole distance is less than 1 from it. From t to t' > t, x grows by
    sqrt(t' / t) at most, whatever the coefficient, and by sqrt(t' (t' + 1) / t (t + 1)) where a coefficient is divided
    by t + 1: log(1 + r u) <= r log(1 + u) for r >= 1.
    """
    t, slope = _positive("depth", depth), 2 * _positive("coefficient", coefficient)
    furthest = np.sqrt(t / slope)  # log(1 + t/x) < t/x
    return float(brentq(lambda x: np.log1p(t / x) - slope * x, 1e-9 * furthest, furthest, xtol=1e-12))


def rope_attention(n: int, angle: float, strength: float) -> Array:
    """Content-free causal attention with RoPE, d = 2: logits |q| |k| cos((i - j) theta_1), `[n, n]`.

    Raises ValueError beyond half a turn, where Lemma 4.6 does not reach.
    """
    if not 0 < (n - 1) * angle <= pi * (1 + 1e-12):
        raise ValueError(f"angle = {angle}: {n} tokens must turn by more than 0 and at most pi, (n - 1) angle <= pi")
    position = np.arange(n)
    return masked_softmax(strength * np.cos(angle * (position[:, None] - position)), causal_mask(n))


# What the figure draws


@dataclass(frozen=True)
class Masking:
    """A mask of Theorems 4.1-4.3 with the nodes that it leads to."""

    name: str
    mask: Mask
    centres: int = 1  # K: the tokens to which context converges
    steps: int = 1  # R: layers that reach them from everywhere


def maskings(n: int) -> list[Masking]:
    """Causal, window and prefix masks that `n` tokens have room for."""
    windows = [Masking(f"window {w}", sliding_window_mask(n, w), steps=walk_length(n, w)) for w in WINDOWS if w < n]
    prefixes = [Masking(f"prefix {k}", prefix_mask(n, k), centres=k) for k in PREFIXES if k < n]
    return [Masking("causal", causal_mask(n)), *windows, *prefixes]


def convergence(tokens: int, layers: int, draws: int, seed: int) -> pd.DataFrame:
    """Mass beyond the centre nodes against depth: its largest value over tokens, for each mask of Theorems 4.1-4.3.

    One depth a row: mask, layers, value and bound of uniform attention, and low, high: its range over random attention.
    """
    contents = random_logits(layers, draws, tokens, seed)
    curves = []
    for masking in maskings(tokens):
        uniform = masked_softmax(np.zeros((layers, 1, tokens, tokens)), masking.mask)
        free, drawn = (
            mass_beyond(products(attention), masking.centres).max(axis=-1)
            for attention in (uniform, masked_softmax(contents, masking.mask))
        )
        floor = smallest_weight(uniform, masking.mask)
        curve = {
            "mask": masking.name,
            "layers": np.arange(1, layers + 1),
            "value": free[:, 0],
            "bound": mass_bound(floor, layers, masking.centres, masking.steps)[:, 0],
            "low": drawn.min(axis=1),
            "high": drawn.max(axis=1),
        }
        curves.append(pd.DataFrame(curve))
    return pd.concat(curves, ignore_index=True)


def decay_profiles(tokens: int) -> pd.DataFrame:
    """Last row of P^(t) over distance, content-free with decay mask `DECAY`, for each t of `DEPTHS`.

    One distance a row: depth (t), distance, value, peak (measured) and critical (Theorem 4.5).
    """
    rows = last_rows(content_free_attention(tokens, [DECAY])[0], max(DEPTHS) + 1)
    return pd.concat([_profile(rows[t], t, critical=decay_peak(t, DECAY)) for t in DEPTHS], ignore_index=True)


def rope_profiles(tokens: int) -> pd.DataFrame:
    """As `decay_profiles`, but content-free with RoPE, the whole sequence half a turn.

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
    """Theorem 4.5: where the last row of P^(t) is largest, content-free, for each m of `DECAYS` and t = 1, 2, ...

    One observation a row: decay (m), depth (t), peak (measured) and critical (predicted).
    """
    measured = []
    for m in DECAYS:
        rows = last_rows(content_free_attention(tokens, [m])[0], max(DEPTHS) + 1)
        measured += [
            {"decay": m, "depth": t, "peak": peak(rows[t]), "critical": decay_peak(t, m)}
            for t in range(1, max(DEPTHS) + 1)
        ]
    return pd.DataFrame(measured)


def rope_peaks(tokens: int) -> pd.DataFrame:
    """Theorem 4.7: where the last row of P^(t) is largest, content-free, for each turn of `TURNS` and t of `DEPTHS`.

    One observation a row: angle (theta_1), depth (t) and peak (measured).
    """
    measured = []
    for angle in _half_turn(tokens) * np.array(TURNS):
        rows = last_rows(rope_attention(tokens, angle, STRENGTH), max(DEPTHS) + 1)
        measured += [{"angle": angle, "depth": t, "peak": peak(rows[t])} for t in DEPTHS]
    return pd.DataFrame(measured)


def _half_turn(tokens: int) -> float:
    """The largest theta_1 that Lemma 4.6 admits."""
    return pi / (_at_least(2, "tokens", tokens) - 1)


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _at_least(smallest: int, name: str, value: int) -> int:
    if value < smallest:
        raise ValueError(f"{name} = {value}: must be at least {smallest}")
    return value


def _positive(name: str, value: float) -> float:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} = {value}: must be finite and above 0")
    return value
