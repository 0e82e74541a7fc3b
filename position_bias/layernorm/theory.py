"""This module has expected scores of the parameter-free causal decoder: closed forms of layer 2, and a recursion.

Tokens are unit vectors x_i with E <x_i, x_j> = alpha, the anisotropy. A layer scores s <y_i, y_j> with y the norm of x,
attends causally with P = softmax, and leaves rho x + P y: s is the strength, rho the residual. Theory takes scores and
squared norms at their expectations, which is exact in the limit of infinite width. The theorem (layer 2) is the
paper's; we added the derivations. Tokens i and j count from 1 in formulas.

Score matrices are Gram matrices of what queries and keys are made of: full, symmetric, and without the factor s. Above
the diagonal stands what the causal mask hides.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from position_card.rollout.attention import Array, Mask, causal_mask, masked_softmax

Placement = Literal["none", "pre", "post"]

PLACEMENTS: tuple[Placement, ...] = ("none", "pre", "post")


# Layers 1 and 2


def first_weights(n: int, alpha: float, strength: float) -> tuple[Array, Array]:
    """Return layer-1 attention of token i to itself, a_i, and to each earlier token, b_i, both `[n]`.

    The logits are s and s alpha, so with E = e^(s (1 - alpha)) they are E / (E + i - 1) and 1 / (E + i - 1).
    """
    E = np.exp(strength * (1 - alpha))
    b = 1 / (E + np.arange(n))
    return E * b, b


def pull(n: int, alpha: float, strength: float, width: int | None) -> Array:
    """Return c_i: what attention to the i - 1 earlier tokens adds to the token's own share, `[n]`; 0 at infinite width.

    Tokens that happen to lie along x_i score higher. To first order in 1/d, P_ik gains s <x_i, x_k - E x_k> b_i; as x_k
    varies by (1 - alpha) / d in every direction, the sum over k is c_i x_i with c_i = s (1 - alpha) (i - 1) b_i / d.
    """
    _, b = first_weights(n, alpha, strength)
    return np.zeros(n) if width is None else strength * (1 - alpha) / width * np.arange(n) * b


def squared_norms(n: int, alpha: float, rho: float, strength: float, width: int | None = None) -> Array:
    """Return q_j, the expected squared norms of what layer 1 leaves, `[n]`: strictly decreasing at infinite width.

    Common to all tokens is (1 + rho)^2 alpha. The rest of the tokens is uncorrelated, so their squared weights add up:
    (rho + a_j)^2 + (j - 1) b_j^2. Its last part, (E^2 + j - 1) / (E + j - 1)^2, falls with j because E >= 1.
    """
    (a, b), c = first_weights(n, alpha, strength), pull(n, alpha, strength, width)
    total = 1 + rho + c
    return total**2 * alpha + (1 - alpha) * ((rho + a + c) ** 2 + np.arange(n) * b**2)


def second_scores(n: int, alpha: float, rho: float, strength: float, *, norm: bool, width: int | None = None) -> Array:
    """Return layer-2 scores S, `[n, n]`, without or with a norm; `width` adds the first correction for finite width.

    Without: (1 + rho)^2 alpha + (1 - alpha) (1 + rho) b_i for j < i, which knows nothing of j. With: that over
    sqrt(q_i q_j), which grows strictly with j (the theorem). Corrected, a_i gains c_i, and with it the sum 1 + rho of a
    token's weights.
    """
    (_, b), q = first_weights(n, alpha, strength), squared_norms(n, alpha, rho, strength, width)
    total = 1 + rho + pull(n, alpha, strength, width)
    later = np.maximum.outer(np.arange(n), np.arange(n))
    earlier = np.minimum.outer(np.arange(n), np.arange(n))
    products = total[earlier] * (total[later] * alpha + (1 - alpha) * b[later])
    np.fill_diagonal(products, q)
    return products / np.sqrt(np.outer(q, q)) if norm else products


# Deeper layers


def gram_recursion(n: int, alpha: float, rho: float, strength: float, layers: int, norm: Placement) -> Array:
    """Return scores of every layer, `[layers, n, n]`, of embeddings that are alike at every position (`recursion`).

    Layers 1 and 2 are the closed forms.
    """
    return recursion(gram_of_embeddings(np.full(n, alpha), np.ones(n)), causal_mask(n), rho, strength, layers, norm)


def gram_of_embeddings(alphas: Array, lengths: Array) -> Array:
    """Return the expected inner products of embeddings, whose anisotropy and length depend on the position, `[n, n]`.

    `alphas` and `lengths` are `[n]`. Token i has the length l_i, and a share alpha_i (0 to 1) of its square lies
    along a direction that all tokens have in common. So two different tokens have the expected product
    l_i l_j sqrt(alpha_i alpha_j), and a token with itself has l_i^2.
    """
    common = np.sqrt(alphas) * lengths
    gram = np.outer(common, common)
    np.fill_diagonal(gram, lengths**2)
    return gram


def recursion(gram: Array, mask: Mask, rho: float, strength: float, layers: int, norm: Placement) -> Array:
    """Return scores of every layer, `[layers, n, n]`, by recursion on the Gram matrix G of the residual stream.

    `gram` is that of the embeddings, and `mask` says which keys a query may read. Let D be the square roots of the
    diagonal of G. Then y has the Gram matrix D^-1 G D^-1, and the stream becomes M x. M is rho + P D^-1 (pre), or (rho
    + P) D^-1 (post, where the norm is of the sum); without norm, D = 1.
    """
    n = len(gram)
    self_weight = rho * np.eye(n)
    scores = np.empty((layers, n, n))
    for layer in range(layers):
        size = np.ones(n) if norm == "none" else np.sqrt(np.diagonal(gram))
        scores[layer] = gram / np.outer(size, size)
        attention = masked_softmax(strength * scores[layer], mask)
        stream = scores[layer] if norm == "post" else gram
        mixing = self_weight + (attention if norm == "post" else attention / size)
        gram = mixing @ stream @ mixing.T
    return scores


def second_scores_of_averages(later: npt.ArrayLike, earlier: npt.ArrayLike, alpha: float) -> Array:
    """Score token i = `later` on j = `earlier` in layer 2 with norm, where layers only average: s = 0, rho = 0.

    sqrt((alpha + (1 - alpha) / i) / (alpha + (1 - alpha) / j)), so sqrt(j / i) at alpha = 0.
    """
    i, j = np.asarray(later, np.float64), np.asarray(earlier, np.float64)
    return np.sqrt((alpha + (1 - alpha) / i) / (alpha + (1 - alpha) / j))


def third_scores_of_averages(ratio: npt.ArrayLike) -> Array:
    """Return layer-3 scores with norm at r = j / i, s = 0, rho = 0, alpha = 0, many tokens: 2 sqrt(r) - r."""
    r = np.asarray(ratio, np.float64)
    return 2 * np.sqrt(r) - r


def third_products_of_averages(later: npt.ArrayLike, earlier: npt.ArrayLike) -> Array:
    """Return the scores of layer 3 without norm: (2 + ln(i / j)) / i, which falls with j; i = `later`, j = `earlier`.

    Exactly it is (2 + H_i - H_j - H_j / j) / i with harmonic numbers H.
    """
    i, j = np.asarray(later, np.float64), np.asarray(earlier, np.float64)
    return (2 + np.log(i / j)) / i
