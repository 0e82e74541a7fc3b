"""This module folds the retrieval networks of `network`, with the same logits, so that they train fast.

Only the query row of the last layer is computed. W_Q W_K^T is one matrix where no rotation stands between them; then
the last layer asks for products and a mean of what the layer before puts out, which come from its attention and its own
input without projecting every token. And without residual connections the values of a layer are mixtures of the input
tokens times one product of W_V's: attention P of the layers so far, A_l ... A_1, is all that changes from layer to
layer, and logits are P x M x^T P^T. Networks with norms cannot be folded, and follow the formulas of `network`.

Axes: E members, S sequences, T tokens, d coordinates.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from position_bias.emergence.network import Stack, Weights, classify, encoded, project, represented, rotate


@dataclass(frozen=True)
class _Tokens:
    """The tokens that a layer reads: `x`, or what layers before make of it, `x + A x W_V` (`A x` without W_V).

    The last layer asks for one query, its products and one mean alone. They are computed from single rows, and no token
    is formed. Rows are multiplied by A as sums of elements, since the gradient of a matrix product would be an outer
    product for each sequence, which takes ten times as long.
    """

    x: Tensor  # [E, S, T, d]
    A: Tensor | None = None  # [E, S, T, T]
    W_V: Tensor | None = None  # [E, d, d]

    def formed(self) -> Tensor:
        """Every token, `[E, S, T, d]`."""
        if self.A is None:
            return self.x
        if self.W_V is None:
            return _times(self.A, self.x)
        return torch.baddbmm(_each(self.x), _each(self.A), _each(project(self.x, self.W_V))).view_as(self.x)

    def last(self) -> Tensor:
        """The last token, `[E, S, d]`."""
        own = self.x[:, :, -1]
        if self.A is None:
            return own
        read = _mean(self.A[:, :, -1], self.x)
        return read if self.W_V is None else torch.baddbmm(own, read, self.W_V)

    def products(self, queries: Tensor) -> Tensor:
        """Each token times its sequence's query, `[E, S, d]` -> `[E, S, T]`."""
        if self.A is None:
            return _products(queries, self.x)
        if self.W_V is None:
            return (self.A * _products(queries, self.x)[:, :, None]).sum(-1)
        read = _products(torch.bmm(queries, self.W_V.transpose(1, 2)), self.x)
        return _products(queries, self.x) + (self.A * read[:, :, None]).sum(-1)

    def mean(self, shares: Tensor) -> Tensor:
        """The mean of the tokens with `shares` [E, S, T], `[E, S, d]`."""
        if self.A is None:
            return _mean(shares, self.x)
        read = _mean((shares[..., None] * self.A).sum(-2), self.x)
        return read if self.W_V is None else torch.baddbmm(_mean(shares, self.x), read, self.W_V)


def label_logits(weights: Weights, stack: Stack, tokens: Tensor) -> Tensor:
    """Return the logits of the labels `[E, S, L]` for tokens `[E, S, T, d]`."""
    if stack.placement != "none":
        return classify(weights, represented(weights, stack, tokens)[0][:, :, -1])
    *before, (W_Q, W_K, W_V) = _folded(weights, stack)
    read = _Tokens(encoded(stack, tokens))
    for layer, (of_queries, of_keys, of_values) in enumerate(before, start=1):
        A = _attention(stack, read, of_queries, of_keys)
        if stack.residual:
            read = _Tokens(read.x, A, of_values)
        else:
            read = _Tokens(read.x, A if read.A is None else _times(A, read.A))
        if stack.rotation is not None or (stack.residual and layer < len(before)):
            read = _Tokens(read.formed())
    query = read.last()
    context = read.mean(_last_attention(stack, read, query, W_Q, W_K))
    return classify(weights, torch.baddbmm(query, context, W_V) if stack.residual else torch.bmm(context, W_V))


def _folded(weights: Weights, stack: Stack) -> list[tuple[Tensor, Tensor, Tensor]]:
    """W_Q / sqrt(d), W_K and W_V of each layer; without residual connections times the W_V of the layers before."""
    layers: list[tuple[Tensor, Tensor, Tensor]] = []
    for layer in range(stack.depth):
        W_Q, W_K, W_V = (weights[f"{name}{layer}"] for name in "qkv")
        if layers and not stack.residual:
            W_Q, W_K, W_V = (layers[-1][2] @ W for W in (W_Q, W_K, W_V))
        layers.append((W_Q / math.sqrt(W_Q.shape[-1]), W_K, W_V))
    return layers


def _attention(stack: Stack, read: _Tokens, W_Q: Tensor, W_K: Tensor) -> Tensor:
    """Attention of all queries, `[E, S, T, T]`."""
    x, P = read.x, read.A
    if stack.rotation is None:
        q, k = project(x, W_Q @ W_K.transpose(1, 2)), x
    else:
        q, k = (rotate(project(x, W), stack.rotation) for W in (W_Q, W_K))
    scores = _Scores.apply(_each(q), _each(k)).view(*x.shape[:3], -1)  # type: ignore[no-untyped-call]
    if P is not None:
        scores = _times(_times(P, scores), P.transpose(-1, -2))
    return functional.softmax(scores + stack.logits, -1)


def _last_attention(stack: Stack, read: _Tokens, last: Tensor, W_Q: Tensor, W_K: Tensor) -> Tensor:
    """Attention of the `last` token [E, S, d] alone, `[E, S, T]`."""
    if stack.rotation is None:
        scores = read.products(torch.bmm(last, W_Q @ W_K.transpose(1, 2)))
    else:
        query = rotate(torch.bmm(last, W_Q), stack.rotation[-1])
        scores = _products(query, rotate(project(read.formed(), W_K), stack.rotation))
    return functional.softmax(scores + stack.logits[:, :, -1], -1)


class _Scores(torch.autograd.Function):
    """All products of queries and keys, `[N, T, d]` twice -> `[N, T, T]`.

    Torch would give the gradient of the keys as a transpose, which everything after it is slow to read.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor) -> Tensor:
        ctx.save_for_backward(q, k)
        return torch.bmm(q, k.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        q, k = ctx.saved_tensors
        of_keys = torch.bmm(gradient.transpose(1, 2), q) if ctx.needs_input_grad[1] else None
        return torch.bmm(gradient, k), of_keys


def _times(A: Tensor, x: Tensor) -> Tensor:
    """A matrix a sequence, `[E, S, T, T]`, times its vectors or another, `[E, S, T, *]`."""
    return torch.bmm(_each(A), _each(x)).view(*A.shape[:3], -1)


def _products(rows: Tensor, x: Tensor) -> Tensor:
    """A row a sequence, `[E, S, d]`, times each of its vectors `[E, S, T, d]`, `[E, S, T]`."""
    return torch.bmm(_each(rows[:, :, None]), _each(x).transpose(1, 2)).view(x.shape[:3])


def _mean(shares: Tensor, x: Tensor) -> Tensor:
    """The sum of a sequence's vectors `[E, S, T, d]`, each times its share `[E, S, T]`, `[E, S, d]`."""
    return torch.bmm(_each(shares[:, :, None]), _each(x)).view(*x.shape[:2], x.shape[3])


def _each(x: Tensor) -> Tensor:
    """One matrix a sequence, `[E, S, T, *]` -> `[E S, T, *]`."""
    return x.reshape(-1, *x.shape[2:])
