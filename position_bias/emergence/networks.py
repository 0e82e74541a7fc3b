"""The paper's attention-only networks (Section 5, App. J) are stacks of members that share depth and wiring.

A member has single-head attention layers with square W_Q, W_K, W_V and no biases, then a ReLU MLP of three layers and a
linear read-out on the query, the last token. Where a study asks for it, layers normalise as in `norms`, with LayerNorm
(our addition: the paper's networks have no norms).

First stand the formulas as one would write them down; `label_logits` computes the same logits so that they train fast.
Only the query row of the last layer is computed. W_Q W_K^T is one matrix where no rotation stands between them; then
the last layer asks for products and a mean of what the layer before puts out, which come from its attention and its own
input without projecting every token. And without residual connections the values of a layer are mixtures of the input
tokens times one product of W_V's: attention P of the layers so far, A_l ... A_1, is all that changes from layer to
layer, and logits are P x M x^T P^T. Networks with norms cannot be folded, and follow the formulas.

Axes: E members, S sequences, T tokens, d coordinates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from position_bias.emergence.runs import Network
from position_bias.emergence.task import RetrievalTask
from position_bias.small_networks import norms
from position_bias.small_networks.ensemble import Parameters, generators, uniform
from position_bias.small_networks.settings import Placement
from position_card.rollout import attention

MLP = 3  # hidden layers of the classifier

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class NetworkStack:
    """What the members of a stack share (depth, wiring, rotation, norms), and the positional part of each."""

    depth: int
    residual: bool
    logits: Tensor  # [E, 1, T, T] added to the attention logits: -inf where the mask forbids, decay elsewhere
    sinusoids: Tensor | None  # [E, 1, T, d] sinusoids added to the tokens, zeros for members without
    rotation: Tensor | None  # [T, d/2] complex, RoPE's
    placement: Placement  # of LayerNorm


def stack(
    task: RetrievalTask,
    networks: Sequence[Network],
    depth: int,
    residual: bool,
    device: str,
    dtype: torch.dtype = torch.float32,
    placement: Placement = "none",
) -> NetworkStack:
    """Return the stack of `networks`, of which all use RoPE or none does.

    Norms need residual connections: without these, there is no sum to place them by. Raises ValueError for a mask or
    encoding that does not fit the task.
    """
    with_sinusoids = [network.encoding == "sin" for network in networks]
    logits = np.stack([attention_logits(task, network) for network in networks])
    sinusoids = rotation = None
    if any(with_sinusoids):
        encoding = attention.sinusoidal_encoding(task.tokens, task.width)
        of_members = np.stack([has_sinusoids * encoding for has_sinusoids in with_sinusoids])
        sinusoids = torch.from_numpy(of_members)[:, None].to(device, dtype)
    if networks[0].encoding == "rope":
        angles = torch.from_numpy(attention.rotary_angles(task.tokens, task.width))
        rotation = torch.polar(torch.ones_like(angles), angles).to(device, dtype.to_complex())
    return NetworkStack(
        depth, residual, torch.from_numpy(logits)[:, None].to(device, dtype), sinusoids, rotation, placement
    )


def attention_logits(task: RetrievalTask, network: Network) -> attention.Array:
    """What a network's mask and decay add to its attention logits, `[T, T]`. Raises ValueError as `stack` does."""
    towards_earlier = np.minimum(attention.alibi_bias(task.tokens, [network.slope])[0], 0)  # Eq. 2: 0 for later tokens
    return np.where(mask(task, network), towards_earlier if network.encoding == "decay" else 0.0, -np.inf)


def mask(task: RetrievalTask, network: Network) -> attention.Mask:
    """Return which tokens (columns) a query (row) may read, bool `[T, T]`. Raises ValueError as `stack` does."""
    match network.mask:
        case "none":
            return attention.full_mask(task.tokens)
        case "causal":
            return attention.causal_mask(task.tokens)
        case "window":
            return attention.sliding_window_mask(task.tokens, network.reach)
        case "prefix":
            return attention.prefix_mask(task.tokens, network.reach)


def initial(
    task: RetrievalTask, depth: int, seeds: Sequence[int], device: str, placement: Placement = "none"
) -> Parameters:
    """Return untrained weights, a member for each seed, float32: uniform within d^(-1/2) of 0, gains 1.

    A network of another mask, encoding or norm starts from the same weights.
    """
    d, L = task.width, task.labels
    by_member = generators(seeds, "weights")
    shapes: dict[str, tuple[int, ...]] = {f"{name}{layer}": (d, d) for layer in range(depth) for name in "qkv"}
    for layer in range(MLP):
        shapes |= {f"mlp{layer}": (d, d), f"mlp{layer}_bias": (1, d)}
    shapes |= {"readout": (d, L), "readout_bias": (1, L)}
    gains = [f"{place}_gain{layer}" for layer in range(depth) for place in norms.NORMALISED[placement]]
    unit_gains = {name: torch.ones(len(seeds), d, device=device) for name in gains}
    return {name: uniform(by_member, shape, d, device) for name, shape in shapes.items()} | unit_gains


def add_sinusoids(stack: NetworkStack, tokens: Tensor) -> Tensor:
    """Return the tokens `[E, S, T, d]` with the sinusoids of the members that have them."""
    return tokens if stack.sinusoids is None else tokens + stack.sinusoids


def represent(weights: Weights, stack: NetworkStack, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the tokens after all layers, `[E, S, T, d]`, and the attention of every layer, `[E, depth, S, T, T]`.

    `tokens` are those of the task, `[E, S, T, d]`. This is the formula that `label_logits` computes faster.
    """
    x = add_sinusoids(stack, tokens)
    maps: list[Tensor] = []
    for layer in range(stack.depth):

        def block(y: Tensor, layer: int = layer) -> Tensor:
            q, k, v = (project(y, weights[f"{name}{layer}"]) for name in "qkv")
            if stack.rotation is not None:
                q, k = rotate(q, stack.rotation), rotate(k, stack.rotation)
            maps.append(functional.softmax(q @ k.transpose(-1, -2) / math.sqrt(y.shape[-1]) + stack.logits, -1))
            return maps[-1] @ v

        def norm_of(place: str, layer: int = layer) -> norms.Apply:
            return lambda y: norms.normalise(y, weights[f"{place}_gain{layer}"], "layer")

        x = norms.add_block(x, block, stack.placement, norm_of) if stack.residual else block(x)
    return x, torch.stack(maps, 1)


def classify(weights: Weights, query: Tensor) -> Tensor:
    """Return the logits of the labels `[E, S, L]`: three-layer MLP and read-out on the query `[E, S, d]` (App. J)."""
    for layer in range(MLP):
        query = functional.relu(torch.baddbmm(weights[f"mlp{layer}_bias"], query, weights[f"mlp{layer}"]))
    return torch.baddbmm(weights["readout_bias"], query, weights["readout"])


def project(x: Tensor, W: Tensor) -> Tensor:
    """Multiply `x` [E, S, T, d] by each member's `W` [E, d, d]."""
    return torch.bmm(x.flatten(1, 2), W).view(x.shape)


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Turn pairs of neighbouring coordinates of `x` [..., T, d] by the angles of `rotation` [T, d/2], complex."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(-2)


# The same logits, folded so that they train fast


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

    def all_tokens(self) -> Tensor:
        """Every token, `[E, S, T, d]`."""
        if self.A is None:
            return self.x
        if self.W_V is None:
            return _times(self.A, self.x)
        return torch.baddbmm(_flat(self.x), _flat(self.A), _flat(project(self.x, self.W_V))).view_as(self.x)

    def last(self) -> Tensor:
        """The last token, `[E, S, d]`."""
        values = self.x[:, :, -1]
        if self.A is None:
            return values
        mean_values = _mean(self.A[:, :, -1], self.x)
        return mean_values if self.W_V is None else torch.baddbmm(values, mean_values, self.W_V)

    def products(self, queries: Tensor) -> Tensor:
        """Each token times its sequence's query, `[E, S, d]` -> `[E, S, T]`."""
        if self.A is None:
            return _products(queries, self.x)
        if self.W_V is None:
            return (self.A * _products(queries, self.x)[:, :, None]).sum(-1)
        of_tokens = _products(torch.bmm(queries, self.W_V.transpose(1, 2)), self.x)
        return _products(queries, self.x) + (self.A * of_tokens[:, :, None]).sum(-1)

    def mean(self, shares: Tensor) -> Tensor:
        """The mean of the tokens with `shares` [E, S, T], `[E, S, d]`."""
        if self.A is None:
            return _mean(shares, self.x)
        mean_values = _mean((shares[..., None] * self.A).sum(-2), self.x)
        return mean_values if self.W_V is None else torch.baddbmm(_mean(shares, self.x), mean_values, self.W_V)


def label_logits(weights: Weights, stack: NetworkStack, tokens: Tensor) -> Tensor:
    """Return the logits of the labels `[E, S, L]` for tokens `[E, S, T, d]`."""
    if stack.placement != "none":
        return classify(weights, represent(weights, stack, tokens)[0][:, :, -1])
    *earlier, (W_Q, W_K, W_V) = _folded(weights, stack)
    state = _Tokens(add_sinusoids(stack, tokens))
    for layer, (of_queries, of_keys, of_values) in enumerate(earlier, start=1):
        A = _attention(stack, state, of_queries, of_keys)
        if stack.residual:
            state = _Tokens(state.x, A, of_values)
        else:
            state = _Tokens(state.x, A if state.A is None else _times(A, state.A))
        if stack.rotation is not None or (stack.residual and layer < len(earlier)):
            state = _Tokens(state.all_tokens())
    query = state.last()
    context = state.mean(_last_attention(stack, state, query, W_Q, W_K))
    return classify(weights, torch.baddbmm(query, context, W_V) if stack.residual else torch.bmm(context, W_V))


def _folded(weights: Weights, stack: NetworkStack) -> list[tuple[Tensor, Tensor, Tensor]]:
    """W_Q / sqrt(d), W_K and W_V of each layer; without residual connections times the W_V of the layers before."""
    layers: list[tuple[Tensor, Tensor, Tensor]] = []
    for layer in range(stack.depth):
        W_Q, W_K, W_V = (weights[f"{name}{layer}"] for name in "qkv")
        if layers and not stack.residual:
            W_Q, W_K, W_V = (layers[-1][2] @ W for W in (W_Q, W_K, W_V))
        layers.append((W_Q / math.sqrt(W_Q.shape[-1]), W_K, W_V))
    return layers


def _attention(stack: NetworkStack, state: _Tokens, W_Q: Tensor, W_K: Tensor) -> Tensor:
    """Attention of all queries, `[E, S, T, T]`."""
    x, P = state.x, state.A
    if stack.rotation is None:
        q, k = project(x, W_Q @ W_K.transpose(1, 2)), x
    else:
        q, k = (rotate(project(x, W), stack.rotation) for W in (W_Q, W_K))
    scores = _Scores.apply(_flat(q), _flat(k)).view(*x.shape[:3], -1)  # type: ignore[no-untyped-call]
    if P is not None:
        scores = _times(_times(P, scores), P.transpose(-1, -2))
    return functional.softmax(scores + stack.logits, -1)


def _last_attention(stack: NetworkStack, state: _Tokens, last: Tensor, W_Q: Tensor, W_K: Tensor) -> Tensor:
    """Attention of the `last` token [E, S, d] alone, `[E, S, T]`."""
    if stack.rotation is None:
        scores = state.products(torch.bmm(last, W_Q @ W_K.transpose(1, 2)))
    else:
        query = rotate(torch.bmm(last, W_Q), stack.rotation[-1])
        scores = _products(query, rotate(project(state.all_tokens(), W_K), stack.rotation))
    return functional.softmax(scores + stack.logits[:, :, -1], -1)


class _Scores(torch.autograd.Function):
    """All products of queries and keys, `[N, T, d]` twice -> `[N, T, T]`.

    Torch would give the gradient of the keys as a transpose, which everything after it is slow to read.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor) -> Tensor:
        """Return the products of queries and keys, `[N, T, T]`."""
        ctx.save_for_backward(q, k)
        return torch.bmm(q, k.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the gradients at queries and keys from that at the products; None at keys that need none."""
        q, k = ctx.saved_tensors
        of_keys = torch.bmm(gradient.transpose(1, 2), q) if ctx.needs_input_grad[1] else None
        return torch.bmm(gradient, k), of_keys


def _times(A: Tensor, x: Tensor) -> Tensor:
    """A matrix a sequence, `[E, S, T, T]`, times its vectors or another, `[E, S, T, *]`."""
    return torch.bmm(_flat(A), _flat(x)).view(*A.shape[:3], -1)


def _products(rows: Tensor, x: Tensor) -> Tensor:
    """A row a sequence, `[E, S, d]`, times each of its vectors `[E, S, T, d]`, `[E, S, T]`."""
    return torch.bmm(_flat(rows[:, :, None]), _flat(x).transpose(1, 2)).view(x.shape[:3])


def _mean(shares: Tensor, x: Tensor) -> Tensor:
    """The sum of a sequence's vectors `[E, S, T, d]`, each times its share `[E, S, T]`, `[E, S, d]`."""
    return torch.bmm(_flat(shares[:, :, None]), _flat(x)).view(*x.shape[:2], x.shape[3])


def _flat(x: Tensor) -> Tensor:
    """Return one matrix for each sequence of each member: `[E, S, T, *]` -> `[E S, T, *]`."""
    return x.reshape(-1, *x.shape[2:])
