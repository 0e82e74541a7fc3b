"""The measuring pass: one forward and backward pass a batch, of a decoder of any architecture.

The first prompt tells the layout of the model, and proves it (`layout`). Hooks then reduce each layer's tensors as they
pass by, so that no layer's tensors outlive it. What an interval needs is kept for each prompt; means over prompts are
kept of what would be too large. A long measurement keeps what it has seen on disk, and goes on from there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from position_card.core.runtime import InputError
from position_card.measures import kernels, passes, quantities
from position_card.measures.passes import Resumption, Tally
from position_card.measures.recency import FIRST_ROW
from position_card.models import families
from position_card.models.opening import longest
from position_card.probe import capture
from position_card.probe.layout import Layout, find_layout, first_of, hooked, stream_of, tolerance, weights_of
from position_card.rollout.attention import Array
from position_card.rollout.measurement import BACKWARD, ESTIMATORS, FROBENIUS_APART, TOEPLITZ_APART, Floats, Measurement

MIXINGS = (*ESTIMATORS, FROBENIUS_APART)
MATRICES_UP_TO = 1024  # tokens; beyond, mean attention is kept by distance only
PREDICTED = 4  # tokens at the end of each prompt, whose loss says whether the model can predict the text
OF_PROMPTS = {  # what a message calls the quantities that are kept of each prompt
    **{estimator: f"lambda ({estimator})" for estimator in MIXINGS},
    "influence": "influence",
    "loss": "loss",
    "no_token": "the attention to no token",
    "diagonal": "diagonal content",
    "below": "content below the diagonal",
    "recency": "recency of the Gram",
}


@dataclass(frozen=True)
class Quantities:
    """What is measured beside lambda, mean attention, kernels and loss."""

    influence: bool = True  # and lambda of the backward pass; without them there is no backward pass
    target: str | int = "p"  # what influence is the gradient of (`quantities.differentiated`)
    content: bool = False  # mean content logits of every pair of tokens, of families with ALiBi
    gram: bool = False  # cosines between the inputs of attention, and their recency
    apart: bool = False  # lambda and the fitted kernel without the first token, too, which may be a sink
    matrices_up_to: int = MATRICES_UP_TO  # tokens of a prompt; of longer ones, no matrix [n, n] is kept


def measure_decoder(
    model: PreTrainedModel,
    prompts: NDArray[np.int64],
    tokens_per_batch: int,
    *,
    documents: NDArray[np.int64] | None = None,
    quantities: Quantities = Quantities(),
    activation_checkpointing: bool = False,
    resumption: Resumption | None = None,
    section: str | None = "measure",
) -> Measurement:
    """Measure `model` on `prompts` [N, n], as many at a time as `tokens_per_batch` holds (at least one).

    `documents` [N] says which document each prompt is of; where it does not, each is of its own.
    `activation_checkpointing` keeps the residual stream between the layers alone and computes the rest again in the
    backward pass: a third more work, for memory that does not grow with the number of layers. With a `resumption`, an
    interrupted measurement ends with the same bits as an uninterrupted one, on a CPU. `section` is where the
    configuration has what a message tells to change; None where the caller has it.

    Raises InputError for too few tokens or more than the model takes, where its layout is refused, where a GPU's memory
    is too small, or where a measured value is not finite.
    """
    model.eval().requires_grad_(False)
    count, n = prompts.shape
    _require_length(model, n, quantities)
    device = model.get_input_embeddings().weight.device
    with passes.within_memory(f"while the layout of the model was found, with 1 x {n} tokens; {passes.MORE_GPUS}"):
        layout = find_layout(model, torch.from_numpy(prompts[:1]).to(device))
    record = _Record(model, layout, quantities, n)
    blocks = [layer.block for layer in layout.layers]
    with record.listening(), passes.recomputing(blocks) if activation_checkpointing else nullcontext():
        passes.run(
            prompts,
            tokens_per_batch,
            record.measure_batch,
            record.tally,
            device=device,
            section=section,
            activation_checkpointing=activation_checkpointing,
            resumption=resumption,
        )
    return record.measurement(np.arange(count) if documents is None else documents)


def _require_length(model: PreTrainedModel, n: int, quantities: Quantities) -> None:
    """Raise InputError where prompts of n tokens are too short for what is asked, or too long for the model."""
    most = longest(model.config)
    if quantities.gram and n <= FIRST_ROW:
        raise InputError(f"config: lengths.*.tokens = {n}, but recency needs more than {FIRST_ROW}; give more tokens")
    if most is not None and n > most:
        raise InputError(f"config: lengths.*.tokens = {n}, but this {model.config.model_type!r} model takes {most}")


class _Record:
    """Listens to the layers, and reduces what passes by."""

    def __init__(self, model: PreTrainedModel, layout: Layout, quantities: Quantities, n: int) -> None:
        self.model, self.layout, self.quantities, self.n = model, layout, quantities, n
        self.matrices = n <= quantities.matrices_up_to
        self.alibi = families.family_of(model.config)
        self.backward = quantities.influence and all(layer.update.order != "parallel" for layer in layout.layers)
        self.tally = Tally()
        self.hears = False  # layers that are computed again, for the backward pass, go unheard
        self.residual: dict[int, Tensor] = {}  # squared token norms of x, from a block's entry to its update
        self.gradient: dict[int, Tensor] = {}  # at x + u, from there back to the block's entry

    def measure_batch(self, tokens: Tensor) -> None:
        """Measure a batch of prompts [B, n]."""
        self.hears, latest = True, min(PREDICTED, self.n - 1)
        if self.quantities.influence:
            influence, lost = quantities.influence_and_loss(self.model, tokens, latest, self.quantities.target)
            self.tally.add_prompts("influence", influence)
        else:
            lost = quantities.loss(self.model, tokens, latest)
        self.tally.add_prompts("loss", lost)
        self.tally.end_batch()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear the layers of the model while the context is open."""
        layers = list(enumerate(self.layout.layers))
        handles = [handle for place, _ in layers for handle in self._hooks(place)]
        handles.append(self.model.register_forward_hook(lambda *_: setattr(self, "hears", False)))
        listeners = {layer.attention: partial(self.read, place) for place, layer in layers}
        with hooked(handles), capture.heard(listeners) if self.layout.products else nullcontext():
            yield

    def _hooks(self, place: int) -> Iterator[Any]:
        layer = self.layout.layers[place]

        def before(module: nn.Module, hear: Callable[[int, Tensor], None]) -> Any:
            def hook(_module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
                if self.hears:
                    hear(place, stream_of(args, named))

            return module.register_forward_pre_hook(hook, with_kwargs=True)

        def after(module: nn.Module, hear: Callable[[int, Any], None]) -> Any:
            def hook(_module: nn.Module, _args: tuple[Any, ...], out: Any) -> None:
                if self.hears:
                    hear(place, out)

            return module.register_forward_hook(hook)

        yield before(layer.block, self.enter)
        if self.quantities.gram:
            yield before(layer.attention, self.compare)
        yield after(layer.attention, self.attend)
        yield after(layer.update.module, self.update)
        if self.alibi:
            yield after(layer.attention.get_submodule(self.alibi.query_key_value), self.project)

    def enter(self, place: int, stream: Tensor) -> None:
        self.residual[place] = quantities.squared_norms(stream)
        if self.backward and stream.requires_grad:
            stream.register_hook(partial(self.return_to_entry, place))

    def compare(self, place: int, inputs: Tensor) -> None:
        unit = quantities.unit_vectors(inputs)
        self.tally.add_layer("recency", place, quantities.cosine_recency(unit))
        if self.matrices:
            quantities.add_cosines(self.tally.total("gram", place, (self.n, self.n), unit), unit)

    def read(self, place: int, seen: capture.AttentionInputs) -> None:
        if not self.hears:
            return
        layer = self.layout.layers[place]
        query, key = seen.query.detach(), seen.key.detach()
        for name, sums in zip(("rows", "distances"), kernels.logit_sums(query, key, layer.window), strict=True):
            self.tally.add(name, place, seen.scaling * sums.double())
        if self.quantities.apart:
            self.tally.add("first", place, seen.scaling * kernels.first_logits(query, key).double())
        if self.layout.rotary:
            summed = (part.float().sum(0, keepdim=True) for part in (query, key))
            still = layer.rotation.undo(*summed) if layer.rotation else summed
            for name, part in zip(("query", "key"), still, strict=True):
                self.tally.add(name, place, part[0].mean(-2).double())

    def attend(self, place: int, out: Any) -> None:
        weights = weights_of(out, self.n)
        assert weights is not None
        weights = weights.detach().float()
        self.tally.add_layer("no_token", place, 1 - weights.sum(-1).mean((1, 2)))
        total = weights.sum((0, 1))
        if self.matrices:
            self.tally.add("attention", place, total)
        else:
            self.tally.add("by distance", place, _distance_sums(total))

    def project(self, place: int, fused: Tensor) -> None:
        query, key = (part.float() for part in families.query_and_key(fused.detach(), self.model.config))
        self.tally.add_layer("diagonal", place, quantities.diagonal_mean(query, key))
        self.tally.add_layer("below", place, quantities.below_diagonal_mean(query, key))
        if self.quantities.content and self.matrices:
            total = self.tally.total("content", place, (self.layout.heads, self.n, self.n), query)
            quantities.add_logits(total, query, key)

    def update(self, place: int, out: Any) -> None:
        update, scale = first_of(out), self.layout.layers[place].update.scale
        added = quantities.squared_norms(update) * scale**2
        residual = self.residual.pop(place).to(added.device)  # of several GPUs, it was seen on that of the block before
        added = added.view_as(residual)
        self.tally.add_layer("frobenius", place, quantities.frobenius_mixing(residual, added))
        self.tally.add_layer("token", place, quantities.token_mixing(residual, added))
        if self.quantities.apart:
            self.tally.add_layer(FROBENIUS_APART, place, quantities.frobenius_mixing(residual[:, 1:], added[:, 1:]))
        if self.backward and update.requires_grad:
            update.register_hook(partial(self.return_to_update, place))

    def return_to_update(self, place: int, gradient: Tensor) -> None:
        self.gradient[place] = gradient.detach().float() / self.layout.layers[place].update.scale

    def return_to_entry(self, place: int, gradient: Tensor) -> None:
        past = self.gradient.pop(place).view(gradient.shape).to(gradient.device)
        self.tally.add_layer(BACKWARD, place, quantities.backward_mixing(past, gradient.detach().float()))

    def measurement(self, documents: NDArray[np.int64]) -> Measurement:
        """Return what was seen. Raises InputError where a value of a prompt is not finite."""
        known = {name: self.tally.by_prompt(name) for name in OF_PROMPTS if name in self.tally.prompts}
        passes.require_finite({OF_PROMPTS[name]: values for name, values in known.items()})
        if np.abs(known["no_token"]).max() <= tolerance(self.model.dtype, 1):
            del known["no_token"]
        mixings = {estimator: known.pop(estimator) for estimator in MIXINGS if estimator in known}
        attention, by_distance = self._attention(len(documents))
        return Measurement(
            documents=documents,
            windows=tuple(layer.window for layer in self.layout.layers),
            mixing=mixings,
            attention=attention,
            by_distance=by_distance,
            kernels=self._kernels(len(documents)),
            slopes=families.effective_slopes(self.model.config),
            content=self._mean("content", len(documents)),
            gram=self._mean("gram", len(documents)),
            **known,
        )

    def _mean(self, name: str, count: int) -> Floats | None:
        return self.tally.means(name, len(self.layout.layers), count)

    def _attention(self, prompts: int) -> tuple[Floats | None, Floats]:
        """Mean attention, where it was kept, and the mean by distance."""
        count = prompts * self.layout.heads
        attention, sums = self._mean("attention", count), self._mean("by distance", count)
        if attention is not None:
            sums = np.stack([_distance_sums(torch.from_numpy(layer)).numpy() for layer in attention])
        assert sums is not None
        return attention, (sums / np.arange(self.n, 0, -1)).astype(np.float32)

    def _kernels(self, prompts: int) -> dict[str, Floats]:
        if not self.layout.products:
            return {}

        def mean(name: str, place: int) -> Tensor:
            return self.tally.sums[f"{name}/{place}"].double().cpu() / prompts

        found: defaultdict[str, list[Array]] = defaultdict(list)
        for place, layer in enumerate(self.layout.layers):
            sums = mean("rows", place).numpy(), mean("distances", place).numpy()
            found["toeplitz"].append(kernels.fitted_kernel(*sums, layer.window))
            if self.quantities.apart:
                without_first = kernels.fitted_without_first(*sums, mean("first", place).numpy(), layer.window)
                found[TOEPLITZ_APART].append(without_first)
            if self.layout.rotary:
                vectors = mean("query", place), mean("key", place)
                found["rotary"].append(kernels.rotary_kernel(*vectors, layer.scaling, self.n, layer.rotation))
        return {name: np.stack(of_layers).astype(np.float32) for name, of_layers in found.items()}


def _distance_sums(attention: Tensor) -> Tensor:
    """Sums over tokens of the weights [n, n] that they give to the one k before: [n]."""
    return kernels.skewed(attention.flip(-1)[None])[0].sum(0)
