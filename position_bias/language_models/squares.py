"""A rollout in squares, from forward passes alone: influence as it would be if gradients had any direction.

Where the parts of a gradient that come back to a token from elsewhere have unrelated directions, their squared lengths
add. Where a gradient g sees all directions of a Jacobian J alike, J^T g has the squared length ||J||_F^2 ||g||^2 / d,
in a stream of width d. The mean of ||J z||^2 over random unit vectors z is ||J||_F^2 / d. J z needs no backward pass: z
travels forward, from the stream at a block's entry to the values, queries and keys of its token, and through the MLP.
So squared lengths p_j go back from the last token of the last block, without a number to fit, as

    p_j <- p_j ||z_j + J_MLP z_j||^2,        p_j <- p_j + sum_i p_i M_ij,
    M_ij = sum_h a_hij^2 (||W_O^h dv_hj||^2 + ||W_O^h (v_hj - o_hi)||^2 (q_hi . dk_hj)^2)

with attention weights a, what heads yield o = a v, and what z_j changes of values, dv, and of keys, dk; M_ii has what
comes back through the query of token i besides. All of M_ij goes as 1 / rms(x_j)^2.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.autograd import forward_ad
from transformers import PreTrainedModel

from position_bias.attention import Array
from position_bias.language_models import capture, mixing
from position_bias.language_models.directions import Directions, generator
from position_bias.language_models.layout import EXACT, Layout, first_of, hooked, stream_of

SQUARES, VALUES = "squares", "values alone"  # M, and what values alone bring back
HEADS, KEYS = "heads permuted", "keys permuted"  # M with the weights of other heads, or of other keys but the first
ATTENTION, UPDATE, STREAM, MLP = "attention", "update", "stream", "mlp"


@torch.no_grad()
def squared_rollouts(model: PreTrainedModel, layout: Layout, prompt: Tensor, asked: Directions) -> dict[str, Tensor]:
    """Return the profiles of `profiles`, float32 [n], of one prompt [1, n], from `asked.rollouts` draws of vectors.

    There are none where queries and keys cannot be seen, where attention and MLP do not follow one another, or where
    something follows the projection of the heads before the sum.
    """
    if not layout.products or any(layer.update.order != "sequential" for layer in layout.layers):
        return {}
    projections = _projections(model, layout, prompt)
    if not projections:
        return {}
    passed = _Passed(layout, projections, prompt[0], asked.seed)
    for draw in range(asked.rollouts):
        with forward_ad.dual_level(), passed.sending(model, draw):
            model(prompt, use_cache=False, logits_to_keep=1)
    means = {
        name: np.stack([of_layers[place].numpy() for place in sorted(of_layers)]) / asked.rollouts
        for name, of_layers in passed.sums.items()
    }
    drawn = np.random.default_rng(asked.seed)
    return {name: torch.from_numpy(profile.astype(np.float32)) for name, profile in profiles(means, drawn).items()}


def profiles(means: Mapping[str, Array], drawn: np.random.Generator) -> dict[str, Array]:
    """Return the rollout in squares and what it is compared with, [n] each, with the sum 1, from one prompt.

    `means` are arrays [L, n, n], M as it is and with parts of it permuted, and mean attention. They are also arrays
    [L, n], squared lengths of the stream and of the update, and what the MLP makes of a unit vector.
    """
    squares, mlp = means[SQUARES], means[MLP]
    lengths = means[STREAM]
    alike = np.exp(np.log(lengths[:, 1:]).mean(1, keepdims=True))  # of all tokens but the first
    first_alone, permuted = lengths.copy(), lengths.copy()
    first_alone[:, 1:] = alike
    permuted[:, 1:] = lengths[:, 1:][:, drawn.permutation(lengths.shape[1] - 1)]

    def of_lengths(others: Array) -> Array:
        return _squares(squares * (lengths / others)[:, None], mlp)

    no_sink = means[ATTENTION].copy()
    no_sink[:, 1:, 0] = 0
    return {
        SQUARES: _squares(squares, mlp),
        "without MLP": _squares(squares, np.ones_like(mlp)),
        VALUES: _squares(means[VALUES], np.ones_like(mlp)),
        "sums": _rolled(np.sqrt(squares), np.sqrt(mlp)),
        "without rms": of_lengths(np.broadcast_to(alike, lengths.shape)),
        "rms of the first token alone": of_lengths(first_alone),
        "rms permuted": of_lengths(permuted),
        **{name: _squares(means[name], mlp) for name in (HEADS, KEYS)},
        "attention rollout": _attention_rollout(means[ATTENTION], means[UPDATE], lengths),
        "attention rollout without the sink": _attention_rollout(
            no_sink / no_sink.sum(-1, keepdims=True), means[UPDATE][:, 1:], lengths[:, 1:]
        ),
    }


def _rolled(matrices: Array, mlp: Array) -> Array:
    """The last token of the last layer, on its way back through M [L, n, n] and through the MLP [L, n]."""
    row = np.eye(matrices.shape[1])[-1]
    for matrix, gain in zip(matrices[::-1], mlp[::-1], strict=True):
        row = row * gain
        row = row + row @ matrix
    return np.asarray(row / row.sum())


def _squares(matrices: Array, mlp: Array) -> Array:
    lengths = np.sqrt(_rolled(matrices, mlp))
    return np.asarray(lengths / lengths.sum())


def _attention_rollout(attention: Array, update: Array, stream: Array) -> Array:
    """R = (1 - lambda) I + lambda A through the attention of one prompt, with lambda by Frobenius norms (Eq. 1)."""
    odds = np.sqrt(update.sum(1) / stream.sum(1))[:, None]  # lambda over 1 - lambda
    return _rolled(odds[..., None] * attention, np.broadcast_to(1 / (1 + odds), attention.shape[:2]))


class _Passed:
    """What the blocks make of a unit vector at every token of one prompt, summed over draws."""

    def __init__(self, layout: Layout, projections: Sequence[Tensor], prompt: Tensor, seed: int) -> None:
        self.layout, self.projections, self.prompt, self.seed = layout, projections, prompt, seed
        self.sums: defaultdict[str, dict[int, Tensor]] = defaultdict(dict)  # quantity -> layer -> [n] or [n, n]
        self.draw = 0

    @contextmanager
    def sending(self, model: PreTrainedModel, draw: int) -> Iterator[None]:
        """Send a vector through each block of the forward pass inside the context, and see what arrives."""
        self.draw = draw
        hears = {layer.attention: partial(self.hear, place) for place, layer in enumerate(self.layout.layers)}
        with hooked(self._hooks()), capture.heard(model, hears):
            yield

    def _hooks(self) -> Iterator[Any]:
        for place, layer in enumerate(self.layout.layers):
            yield layer.block.register_forward_pre_hook(partial(self.enter, place), with_kwargs=True)
            yield layer.update.module.register_forward_hook(partial(self.update, place))
            yield layer.block.register_forward_hook(partial(self.leave, place))

    def enter(self, place: int, _module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        stream = stream_of(args, named)
        self.add(STREAM, place, mixing.squared_norms(stream).view(-1))
        unit = _unit(stream.shape[-2:], self.draw, generator(self.seed, f"unit {place}", self.draw, self.prompt))
        sent = forward_ad.make_dual(stream, unit.to(stream).view_as(stream))
        return ((sent, *args[1:]), named) if args else (args, {**named, "hidden_states": sent})

    def update(self, place: int, _module: nn.Module, _args: object, out: Any) -> Any:
        """The MLP gets the vector as it was at the entry, without what attention made of it."""
        update = forward_ad.unpack_dual(first_of(out)).primal
        self.add(UPDATE, place, mixing.squared_norms(update).view(-1) * self.layout.layers[place].update.scale ** 2)
        return (update, *out[1:]) if isinstance(out, tuple) else update

    def leave(self, place: int, _module: nn.Module, _args: object, out: Any) -> Any:
        made, vector = forward_ad.unpack_dual(first_of(out))
        self.add(MLP, place, mixing.squared_norms(vector).view(-1))
        return (made, *out[1:]) if isinstance(out, tuple) else made

    def hear(self, place: int, seen: capture.Seen) -> None:
        """What of M this draw says, with the weights of the layer as they are and permuted."""
        heads, n = seen.query.shape[1:3]
        causal = torch.ones(n, n, dtype=torch.bool, device=seen.query.device).tril()
        weights = forward_ad.unpack_dual(seen.logits(causal)).primal[0].softmax(-1)
        (q, dq), (k, dk), (v, dv) = (_of_heads(part, heads) for part in (seen.query, seen.key, seen.value))
        gram = self.projections[place] @ self.projections[place].mT

        def squared(vectors: Tensor) -> Tensor:
            return (vectors @ gram * vectors).sum(-1)

        yielded = weights @ v
        apart = squared(v)[:, None] - 2 * yielded @ gram @ v.mT + squared(yielded)[..., None]
        through_values = squared(dv)[:, None].expand_as(weights)
        through_keys = apart.clamp(min=0) * (seen.scaling * q @ dk.mT).square()
        shift = seen.scaling * dq @ k.mT
        through_query = squared((weights * (shift - (weights * shift).sum(-1, keepdim=True))) @ v).sum(0).diag()

        def brought(weights: Tensor) -> Tensor:
            return (weights.square() * (through_values + through_keys)).sum(0) + through_query

        permuting = generator(self.seed, f"permuted {place}", 0, self.prompt)
        self.add(SQUARES, place, brought(weights))
        self.add(VALUES, place, (weights.square() * through_values).sum(0))
        self.add(HEADS, place, brought(weights[torch.randperm(heads, generator=permuting)]))
        self.add(KEYS, place, brought(_other_keys(weights, permuting)))
        self.add(ATTENTION, place, weights.mean(0))

    def add(self, name: str, place: int, values: Tensor) -> None:
        self.sums[name][place] = self.sums[name].get(place, torch.zeros(())) + values.double().cpu()


def _unit(shape: Sequence[int], draw: int, drawn: Generator) -> Tensor:
    """A random unit vector for each token, [n, width]."""
    vectors = torch.randn(*shape, generator=drawn)
    return vectors / vectors.norm(dim=-1, keepdim=True)


def _of_heads(part: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """Queries, keys or values of one prompt and what the vectors change of them, [H, n, d] each."""
    primal, tangent = forward_ad.unpack_dual(part)
    shared = heads // part.shape[1]
    return primal[0].float().repeat_interleave(shared, 0), tangent[0].float().repeat_interleave(shared, 0)


def _other_keys(weights: Tensor, drawn: Generator) -> Tensor:
    """Weights [H, n, n] of which each row is permuted among the keys that it may read but the first, alike by head."""
    n = weights.shape[-1]
    late = torch.ones(n, n, dtype=torch.bool).triu(1)
    order = torch.rand(n, n, generator=drawn).masked_fill(late, 2.0)  # later keys stay last
    order[:, 0] = -1.0
    return weights.gather(-1, order.argsort(-1).to(weights.device).expand_as(weights))


def _projections(model: PreTrainedModel, layout: Layout, prompt: Tensor) -> list[Tensor]:
    """By what each head's output is brought into the stream, [H, d, width] a layer; none where more follows it.

    It is the last module of attention with a matrix, if that yields the update itself.
    """
    # of each attention: its last module with a matrix, the width of what that reads, and what it yields
    calls: dict[nn.Module, tuple[nn.Module, int, Tensor]] = {}
    updates: dict[nn.Module, Tensor] = {}

    def note(attention: nn.Module, module: nn.Module, args: tuple[Tensor, ...], out: Any) -> None:
        calls[attention] = module, args[0].shape[-1], first_of(out)

    def hooks() -> Iterator[Any]:
        for layer in layout.layers:
            for module in layer.attention.modules():
                if getattr(module, "weight", None) is not None and module.weight.ndim == 2:
                    yield module.register_forward_hook(partial(note, layer.attention))
            yield layer.update.module.register_forward_hook(
                lambda _module, _args, out, layer=layer: updates.update({layer.attention: first_of(out)})
            )

    with hooked(hooks()):
        model(prompt, use_cache=False, logits_to_keep=1)
    found = []
    for layer in layout.layers:
        (module, width, out), update = calls[layer.attention], updates[layer.attention]
        if out.shape != update.shape or not torch.allclose(out, update, rtol=EXACT):
            return []
        every = torch.eye(width).to(out)
        matrix = (module(every) - module(torch.zeros_like(every))).float()
        found.append(layer.update.scale * matrix.view(layout.heads, -1, out.shape[-1]))
    return found
