"""The measuring pass for a decoder of any architecture: one forward and backward pass a batch.

It measures what `measure` does of the families that it knows, with the same numbers but for the rounding of influence.
Besides, it measures the loss, and what rollouts of models without ALiBi need: mean attention by distance, kernels of
the logits, and lambda of the backward pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from position_bias.language_models import capture, content, families, kernels, mixing, passes
from position_bias.language_models.influence import influence_and_loss
from position_bias.language_models.layout import Layout, find_layout, first_of, stream_of, weights_of
from position_bias.language_models.passes import Floats, Resumption, Tally

MATRICES_UP_TO = 1024  # tokens; beyond, mean attention is kept by distance only
PREDICTED = 4  # tokens at the end of each prompt, whose loss says whether the model can predict the text
BACKWARD = "backward"  # the third lambda, beside the estimators of `mixing`


@dataclass(frozen=True)
class DecoderMeasurement:
    """What one pass over N prompts of n tokens yields, for L layers of H heads; all float32.

    Kernels are those of `kernels`, by name: `toeplitz` where queries and keys can be seen and explain the weights,
    `rotary` where besides positions enter by rotation.
    """

    mixing: dict[str, Floats]  # estimator -> lambda [N, L]; `backward` where attention and MLP follow one another
    influence: Floats  # [N, n]
    loss: Floats  # nats a token, of the last PREDICTED tokens of each prompt [N]
    by_distance: Floats  # mean weight that tokens give to the one k before, over prompts, heads and tokens [L, n]
    attention: Floats | None  # mean attention weights, over prompts and heads [L, n, n], for n <= MATRICES_UP_TO
    kernels: dict[str, Floats]  # g [L, H, n]
    windows: tuple[int | None, ...]  # of each layer
    offset: Floats | None  # mean diagonal less mean below-diagonal content logit [N, L, H], of families with ALiBi
    slopes: NDArray[np.float64] | None  # effective ALiBi slopes [H], likewise


def measure_decoder(
    model: PreTrainedModel,
    prompts: NDArray[np.int64],
    tokens_per_batch: int,
    *,
    activation_checkpointing: bool = False,
    resumption: Resumption | None = None,
) -> DecoderMeasurement:
    """Measure `model` on `prompts` [N, n], as many at a time as `tokens_per_batch` holds (at least one).

    The first prompt tells the layout of the model, and proves it (`find_layout`). `activation_checkpointing` and
    `resumption` are those of `measure`. Raises InputError where the layout is refused, where a GPU's memory is too
    small, or where a measured value is not finite.
    """
    model.eval().requires_grad_(False)
    device = model.get_input_embeddings().weight.device
    layout = find_layout(model, torch.from_numpy(prompts[:1]).to(device))
    record = _Record(layout, families.known_alibi(model.config), prompts.shape[1])
    blocks = [layer.block for layer in layout.layers]
    with record.listening(model), passes.recomputing(blocks) if activation_checkpointing else nullcontext():
        passes.run(
            prompts,
            tokens_per_batch,
            partial(record.see, model),
            record.tally,
            device=device,
            section="card",
            activation_checkpointing=activation_checkpointing,
            resumption=resumption,
        )
    return record.measurement(model, len(prompts))


class _Record:
    """Listens to the layers, and reduces what passes by so that no layer's tensors outlive it."""

    def __init__(self, layout: Layout, alibi: families.Alibi | None, n: int) -> None:
        self.layout, self.alibi, self.n = layout, alibi, n
        self.backward = all(layer.update.order != "parallel" for layer in layout.layers)
        self.tally = Tally()
        self.hears = False  # layers that are computed again, for the backward pass, go unheard
        self.residual: dict[int, Tensor] = {}  # squared token norms of x, from a block's entry to its update
        self.gradient: dict[int, Tensor] = {}  # at x + u, from there back to the block's entry

    def see(self, model: PreTrainedModel, tokens: Tensor) -> None:
        self.hears = True
        found = influence_and_loss(model, tokens, min(PREDICTED, self.n - 1))
        self.tally.keep("influence", found.influence)
        self.tally.keep("loss", found.loss)
        self.tally.put_away()

    @contextmanager
    def listening(self, model: PreTrainedModel) -> Iterator[None]:
        """Hear the layers of `model` while the context is open."""
        layers = list(enumerate(self.layout.layers))
        handles = [handle for place, layer in layers for handle in self._hooks_of(model, place)]
        handles.append(model.register_forward_hook(lambda *_: setattr(self, "hears", False)))
        listeners = {layer.attention: partial(self.read, place) for place, layer in layers}
        try:
            with capture.heard(model, listeners) if self.layout.products else nullcontext():
                yield
        finally:
            for handle in handles:
                handle.remove()

    def _hooks_of(self, model: PreTrainedModel, place: int) -> Iterator[Any]:
        layer = self.layout.layers[place]

        yield layer.block.register_forward_pre_hook(
            lambda _module, args, named: self.enter(place, stream_of(args, named)), with_kwargs=True
        )
        yield layer.attention.register_forward_hook(lambda _module, _args, out: self.attend(place, out))
        yield layer.update.module.register_forward_hook(lambda _module, _args, out: self.update(place, out))
        if self.alibi:
            projection = layer.attention.get_submodule(self.alibi.query_key_value)
            yield projection.register_forward_hook(lambda _module, _args, out: self.project(place, out, model.config))

    def enter(self, place: int, stream: Tensor) -> None:
        if not self.hears:
            return
        self.residual[place] = mixing.squared_norms(stream)
        if self.backward and stream.requires_grad:
            stream.register_hook(partial(self.return_to_entry, place))

    def read(self, place: int, seen: capture.Seen) -> None:
        if not self.hears:
            return
        layer = self.layout.layers[place]
        query, key = seen.query.detach(), seen.key.detach()
        for name, sums in zip(("rows", "distances"), kernels.logit_sums(query, key, layer.window), strict=True):
            self.tally.add(name, place, seen.scaling * sums.double())
        if self.layout.rotary:
            summed = (part.float().sum(0, keepdim=True) for part in (query, key))
            still = layer.rotation.undo(*summed) if layer.rotation else summed
            for name, part in zip(("query", "key"), still, strict=True):
                self.tally.add(name, place, part[0].mean(-2).double())

    def attend(self, place: int, out: Any) -> None:
        if not self.hears:
            return
        weights = weights_of(out, self.n)
        assert weights is not None
        total = weights.detach().float().sum((0, 1))
        if self.n <= MATRICES_UP_TO:
            self.tally.add("attention", place, total)
        else:
            self.tally.add("by distance", place, _distance_sums(total))

    def project(self, place: int, fused: Tensor, config: Any) -> None:
        if not self.hears:
            return
        query, key = (part.float() for part in families.query_and_key(fused.detach(), config))
        self.tally.note("diagonal", place, content.diagonal_mean(query, key))
        self.tally.note("below", place, content.below_diagonal_mean(query, key))

    def update(self, place: int, out: Any) -> None:
        if not self.hears:
            return
        update, scale = first_of(out), self.layout.layers[place].update.scale
        residual, added = self.residual.pop(place), mixing.squared_norms(update) * scale**2
        added = added.view_as(residual)
        self.tally.note("frobenius", place, mixing.frobenius(residual, added))
        self.tally.note("token", place, mixing.token(residual, added))
        if self.backward and update.requires_grad:
            update.register_hook(partial(self.return_to_update, place))

    def return_to_update(self, place: int, gradient: Tensor) -> None:
        self.gradient[place] = gradient.detach().float() / self.layout.layers[place].update.scale

    def return_to_entry(self, place: int, gradient: Tensor) -> None:
        past = self.gradient.pop(place).view(gradient.shape)
        self.tally.note(BACKWARD, place, mixing.backward(past, gradient.detach().float()))

    def measurement(self, model: PreTrainedModel, prompts: int) -> DecoderMeasurement:
        layers, heads = self.layout.layers, self.layout.heads
        estimators = [*mixing.ESTIMATORS, *([BACKWARD] if self.backward else [])]
        kept = {f"lambda ({name})": self.tally.of_prompts(name) for name in estimators}
        kept |= {name: self.tally.of_prompts(name) for name in ("influence", "loss")}
        if self.alibi:
            kept |= {name: self.tally.of_prompts(name) for name in ("diagonal", "below")}
        passes.require_finite(kept)
        attention = self.tally.means("attention", len(layers), prompts * heads)
        if attention is None:
            sums = self.tally.means("by distance", len(layers), prompts * heads)
        else:
            sums = np.stack([_distance_sums(torch.from_numpy(layer)).numpy() for layer in attention])
        assert sums is not None
        return DecoderMeasurement(
            mixing={name: kept[f"lambda ({name})"] for name in estimators},
            influence=kept["influence"],
            loss=kept["loss"],
            by_distance=(sums / np.arange(self.n, 0, -1)).astype(np.float32),
            attention=attention,
            kernels=self._kernels(prompts),
            windows=tuple(layer.window for layer in layers),
            offset=kept["diagonal"] - kept["below"] if self.alibi else None,
            slopes=families.effective_slopes(model.config) if self.alibi else None,
        )

    def _kernels(self, prompts: int) -> dict[str, Floats]:
        if not self.layout.products:
            return {}
        layers = list(enumerate(self.layout.layers))
        sums = {place: values.double().cpu() / prompts for place, values in self.tally.sums.items()}
        found = {
            "toeplitz": [
                kernels.fitted_kernel(sums[f"rows/{at}"].numpy(), sums[f"distances/{at}"].numpy(), layer.window)
                for at, layer in layers
            ]
        }
        if self.layout.rotary:
            found["rotary"] = [
                kernels.rotary_kernel(sums[f"query/{at}"], sums[f"key/{at}"], layer.scaling, self.n, layer.rotation)
                for at, layer in layers
            ]
        return {name: np.stack(of_layers).astype(np.float32) for name, of_layers in found.items()}


def _distance_sums(attention: Tensor) -> Tensor:
    """Sums over tokens of the weights [n, n] that they give to the one k before: [n]."""
    return kernels.skewed(attention.flip(-1)[None])[0].sum(0)
