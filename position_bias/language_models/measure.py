"""The measuring pass: one forward and backward pass a batch that yields every quantity of Section 6 of `structural`.

Hooks reduce each layer's tensors as they pass by, so that no layer's tensors outlive it. What an interval needs
is kept for each prompt; means over prompts are kept of what would be too large. A long measurement keeps what it has
seen on disk, and goes on from there.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as computed_twice
from transformers import PreTrainedModel

from position_bias.language_models import content, gram, mixing
from position_bias.language_models.families import Layer, family_of, layers_of, query_and_key
from position_bias.language_models.influence import influence
from position_bias.recency import FIRST_ROW
from position_bias.running import checkpoint
from position_bias.running.runtime import InputError, log, progress

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Measurement:
    """What one pass over N prompts of n tokens yields, for L layers of H heads; all float32."""

    mixing: dict[str, Floats]  # estimator -> lambda [N, L]
    diagonal: Floats | None  # mean content logit on the diagonal [N, L, H], of families with ALiBi
    below: Floats | None  # and below it [N, L, H], likewise
    influence: Floats  # [N, n]
    recency: Floats  # of the cosines between the inputs of attention [N, L]
    content: Floats | None  # mean content logits [L, H, n, n], where matrices are kept, likewise
    attention: Floats | None  # mean attention weights, over prompts and heads [L, n, n], where matrices are kept
    gram: Floats | None  # mean cosines between the inputs of attention [L, n, n], likewise

    @property
    def content_logits(self) -> dict[str, Floats]:
        """All that is known of the content logits, by name: nothing of a family without ALiBi."""
        known = {"diagonal": self.diagonal, "below": self.below, "mean": self.content}
        return {name: values for name, values in known.items() if values is not None}


@dataclass(frozen=True)
class Resumption:
    """Where a measurement keeps what it has seen, so that the same one goes on from there after a kill."""

    path: Path
    run: object  # all that decides what is measured, but for the prompts; JSON tells two runs apart by it
    every: int  # prompts


def measure(
    model: PreTrainedModel,
    prompts: NDArray[np.int64],
    tokens_per_batch: int,
    *,
    matrices_up_to: int = sys.maxsize,
    activation_checkpointing: bool = False,
    resumption: Resumption | None = None,
) -> Measurement:
    """Measure `model` on `prompts` [N, n], as many at a time as `tokens_per_batch` holds (at least one).

    Mean matrices, [L, H, n, n] at the largest, are kept of prompts of `matrices_up_to` tokens at most.
    `activation_checkpointing` keeps the residual stream between the layers alone and computes the rest again in the
    backward pass: a third more work, for memory that does not grow with the number of layers. With a `resumption`, an
    interrupted measurement ends with the same bits as an uninterrupted one. Raises InputError for too few tokens or
    more than the model takes, where a GPU's memory is too small, or where a measured value is not finite.
    """
    model.eval().requires_grad_(False)
    count, n = prompts.shape
    longest = family_of(model.config).longest(model.config)
    if n <= FIRST_ROW:
        raise InputError(f"config: lengths.*.tokens = {n}, but recency needs more than {FIRST_ROW}; give more tokens")
    if n > longest:
        raise InputError(f"config: lengths.*.tokens = {n}, but this {model.config.model_type!r} model takes {longest}")
    batch = max(1, tokens_per_batch // n)
    device = model.get_input_embeddings().weight.device
    with (
        recording(model, n <= matrices_up_to) as record,
        recomputing(model) if activation_checkpointing else nullcontext(),
    ):
        done = _resume(record, prompts, resumption)
        starts, batches = range(done, count, batch), -(-count // batch)
        for start in progress(starts, f"measuring {count} prompts of {n} tokens", batches, -(-done // batch)):
            tokens = torch.from_numpy(prompts[start : start + batch]).to(device)
            try:
                record.keep("influence", influence(model, tokens).cpu())
            except torch.OutOfMemoryError as error:
                raise InputError(_out_of_memory(start // batch, tokens, activation_checkpointing)) from error
            end = start + len(tokens)
            if resumption and (end == count or end // resumption.every > start // resumption.every):
                state = checkpoint.State(end, {}, record.tensors())
                checkpoint.write(resumption.path, _run(resumption, prompts), state)
    measurement = record.measurement(count)
    _require_finite(measurement)
    return measurement


class Record:
    """What has been seen so far: for each prompt on the CPU, and sums over prompts where a layer computes them."""

    def __init__(self, model: PreTrainedModel, matrices: bool) -> None:
        self.config = model.config
        self.layers, self.heads, _ = family_of(model.config).sizes(model.config)
        self.matrices = matrices
        self.listening = False
        self.residual: dict[int, Tensor] = {}  # squared token norms of x, from a block's entry to its update
        self.batch: defaultdict[str, list[Tensor]] = defaultdict(list)  # one [B, ...] a layer, of the batch under way
        self.prompts: defaultdict[str, list[Tensor]] = defaultdict(list)  # one [B, L, ...] a batch
        self.sums: dict[str, Tensor] = {}  # quantity/layer -> a sum over prompts

    def begin(self) -> None:
        self.batch.clear()
        self.listening = True

    def end(self) -> None:
        """Put a batch away. Layers that the backward pass computes again are then not recorded."""
        self.listening = False
        for name, layers in self.batch.items():
            self.keep(name, torch.stack([layer.cpu() for layer in layers], dim=1))

    def keep(self, name: str, values: Tensor) -> None:
        self.prompts[name].append(values)

    def enter_block(self, layer: int, residual: Tensor) -> None:
        self.residual[layer] = mixing.squared_norms(residual)

    def read(self, layer: int, inputs: Tensor) -> None:
        unit = gram.unit_vectors(inputs)
        self.batch["recency"].append(gram.recency(unit))
        if self.matrices:
            n = unit.shape[1]
            gram.add_cosines(self._sum("gram", layer, (n, n), unit), unit)

    def project(self, layer: int, fused: Tensor) -> None:
        query, key = (part.float() for part in query_and_key(fused.detach(), self.config))
        self.batch["diagonal"].append(content.diagonal_mean(query, key))
        self.batch["below"].append(content.below_diagonal_mean(query, key))
        if self.matrices:
            n = query.shape[1]
            content.add_logits(self._sum("content", layer, (self.heads, n, n), query), query, key)

    def attend(self, layer: int, weights: Tensor) -> None:
        if self.matrices:
            added = weights.detach().float().sum((0, 1))
            self._sum("attention", layer, added.shape, added).add_(added)

    def update(self, layer: int, update: Tensor) -> None:
        residual, added = self.residual.pop(layer), mixing.squared_norms(update)
        self.batch["frobenius"].append(mixing.frobenius(residual, added))
        self.batch["token"].append(mixing.token(residual, added))

    def _sum(self, name: str, layer: int, shape: tuple[int, ...], beside: Tensor) -> Tensor:
        """The sum of a quantity in a layer, on the device of the tensor `beside` which it will be added to."""
        place = f"{name}/{layer}"
        if place not in self.sums:
            self.sums[place] = torch.zeros(shape, device=beside.device)
        self.sums[place] = self.sums[place].to(beside.device)  # elsewhere after a resumption
        return self.sums[place]

    def tensors(self) -> dict[str, Tensor]:
        """All that `restore` needs."""
        by_prompt = {f"prompts/{name}": torch.cat(batches) for name, batches in self.prompts.items()}
        return by_prompt | {f"sums/{place}": total.cpu() for place, total in self.sums.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            kind, _, place = name.partition("/")
            if kind == "prompts":
                self.prompts[place] = [tensor]
            else:
                self.sums[place] = tensor

    def measurement(self, prompts: int) -> Measurement:
        return Measurement(
            mixing={estimator: self._by_prompt(estimator) for estimator in mixing.ESTIMATORS},
            diagonal=self._by_prompt("diagonal") if "diagonal" in self.prompts else None,
            below=self._by_prompt("below") if "below" in self.prompts else None,
            influence=self._by_prompt("influence"),
            recency=self._by_prompt("recency"),
            content=self._mean("content", prompts),
            attention=self._mean("attention", prompts * self.heads),
            gram=self._mean("gram", prompts),
        )

    def _by_prompt(self, name: str) -> Floats:
        return torch.cat(self.prompts[name]).numpy()

    def _mean(self, name: str, count: int) -> Floats | None:
        """A sum of every layer over `count`, [L, ...], where it was kept."""
        places = [f"{name}/{layer}" for layer in range(self.layers)]
        if not all(place in self.sums for place in places):
            return None
        return (torch.stack([self.sums[place].cpu() for place in places]) / count).numpy()


@contextmanager
def recording(model: PreTrainedModel, matrices: bool) -> Iterator[Record]:
    """Record what passes through the layers of `model`, mean matrices or none, while the context is open."""
    record = Record(model, matrices)
    handles = [
        model.register_forward_pre_hook(lambda _module, _args: record.begin()),
        model.register_forward_hook(lambda _module, _args, _out: record.end()),
        *(handle for index, layer in enumerate(layers_of(model)) for handle in _listen(record, index, layer)),
    ]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def recomputing(model: PreTrainedModel) -> Iterator[None]:
    """Have every block of `model` keep its input alone, and run again in the backward pass."""
    blocks = [layer.block for layer in layers_of(model)]
    forwards = [block.forward for block in blocks]
    try:
        for block, forward in zip(blocks, forwards, strict=True):
            block.forward = partial(computed_twice, forward, use_reentrant=False)
        yield
    finally:
        for block, forward in zip(blocks, forwards, strict=True):
            block.forward = forward


def _listen(record: Record, index: int, layer: Layer) -> list[Any]:
    """Hooks on the modules of a layer; a tensor is the first argument, or the one named hidden_states."""

    def before(hear: Callable[[int, Tensor], None]) -> Any:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if record.listening:
                hear(index, args[0] if args else kwargs["hidden_states"])

        return hook

    def after(hear: Callable[[int, Tensor], None], part: int | None = None) -> Any:
        def hook(_module: nn.Module, _args: tuple[Any, ...], out: Any) -> None:
            if record.listening:
                hear(index, out if part is None else out[part])

        return hook

    projection = layer.query_key_value
    return [
        layer.block.register_forward_pre_hook(before(record.enter_block), with_kwargs=True),
        layer.attention.register_forward_pre_hook(before(record.read), with_kwargs=True),
        *([projection.register_forward_hook(after(record.project))] if projection is not None else []),
        layer.attention.register_forward_hook(after(record.attend, part=1)),
        layer.output.register_forward_hook(after(record.update)),
    ]


def _run(resumption: Resumption, prompts: NDArray[np.int64]) -> str:
    return checkpoint.fingerprint(resumption.run, {"prompts": prompts})


def _resume(record: Record, prompts: NDArray[np.int64], resumption: Resumption | None) -> int:
    """Put back what an interrupted run of this measurement had seen; the number of prompts it had."""
    if resumption is None:
        return 0
    state = checkpoint.resumed(resumption.path, _run(resumption, prompts), "measuring")
    if state is None:
        return 0
    record.restore(state.tensors)
    log.info("measuring: resumed after prompt %d of %d", state.step, len(prompts))
    return state.step


def _out_of_memory(batch: int, tokens: Tensor, activation_checkpointing: bool) -> str:
    prompts, n = tokens.shape
    remedies = ["lower measure.tokens_per_batch"] if prompts > 1 else []
    remedies += [] if activation_checkpointing else ["set measure.activation_checkpointing to true"]
    remedies += ["give the model more GPUs (gpus)"]
    return (
        f"out of GPU memory on batch {batch + 1}, {prompts} x {n} tokens; {', or '.join(remedies)}; "
        "then run it again: what the last checkpoint has is not measured anew"
    )


def _require_finite(measurement: Measurement) -> None:
    quantities = {f"lambda ({name})": value for name, value in measurement.mixing.items()}
    quantities |= {"influence": measurement.influence, "recency of the Gram": measurement.recency}
    if measurement.diagonal is not None and measurement.below is not None:
        quantities |= {"diagonal content": measurement.diagonal, "content below the diagonal": measurement.below}
    for name, value in quantities.items():
        if not np.isfinite(value).all():
            prompt = int(np.argwhere(~np.isfinite(value))[0][0])
            raise InputError(f"measured {name} of prompt {prompt} is not finite; check the model's weights and dtype")
