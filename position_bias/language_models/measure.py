"""The measuring pass: one forward and backward pass a batch that yields every quantity of Section 6 of `structural`.

Hooks reduce each layer's tensors as they pass by, so that no layer's tensors outlive it. What an interval needs
is kept for each prompt; means over prompts are kept of what would be too large. A long measurement keeps what it has
seen on disk, and goes on from there.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from position_bias.language_models import content, gram, mixing, passes
from position_bias.language_models.families import Layer, family_of, layers_of, query_and_key, sizes
from position_bias.language_models.influence import influence
from position_bias.language_models.passes import Floats, Resumption, Tally
from position_bias.recency import FIRST_ROW
from position_bias.running.runtime import InputError

NAMES = {  # what a message calls the quantities of prompts
    **{estimator: f"lambda ({estimator})" for estimator in mixing.ESTIMATORS},
    "influence": "influence",
    "recency": "recency of the Gram",
    "diagonal": "diagonal content",
    "below": "content below the diagonal",
}


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
        """Return all that is known of the content logits, by name: nothing of a family without ALiBi."""
        known = {"diagonal": self.diagonal, "below": self.below, "mean": self.content}
        return {name: values for name, values in known.items() if values is not None}


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
    record = Record(model, n <= matrices_up_to)
    blocks = [layer.block for layer in layers_of(model)]

    def see(tokens: Tensor) -> None:
        record.tally.keep("influence", influence(model, tokens))

    with record.hearing(model), passes.recomputing(blocks) if activation_checkpointing else nullcontext():
        passes.run(
            prompts,
            tokens_per_batch,
            see,
            record.tally,
            device=model.get_input_embeddings().weight.device,
            section="measure",
            activation_checkpointing=activation_checkpointing,
            resumption=resumption,
        )
    return record.measurement(count)


class Record:
    """Listens to the layers, and reduces what passes by: mean matrices too, where these are kept."""

    def __init__(self, model: PreTrainedModel, matrices: bool) -> None:
        self.config = model.config
        self.layers, self.heads, _ = sizes(model.config)
        self.matrices = matrices
        self.listening = False
        self.residual: dict[int, Tensor] = {}  # squared token norms of x, from a block's entry to its update
        self.tally = Tally()

    @contextmanager
    def hearing(self, model: PreTrainedModel) -> Iterator[None]:
        """Record what passes through the layers of `model` while the context is open."""
        handles = [
            model.register_forward_pre_hook(lambda _module, _args: self.begin()),
            model.register_forward_hook(lambda _module, _args, _out: self.end()),
            *(handle for index, layer in enumerate(layers_of(model)) for handle in _listen(self, index, layer)),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def begin(self) -> None:
        self.listening = True

    def end(self) -> None:
        """Put a batch away. Layers that the backward pass computes again are then not recorded."""
        self.listening = False
        self.tally.put_away()

    def enter_block(self, layer: int, residual: Tensor) -> None:
        self.residual[layer] = mixing.squared_norms(residual)

    def read(self, layer: int, inputs: Tensor) -> None:
        unit = gram.unit_vectors(inputs)
        self.tally.note("recency", layer, gram.recency(unit))
        if self.matrices:
            n = unit.shape[1]
            gram.add_cosines(self.tally.total("gram", layer, (n, n), unit), unit)

    def project(self, layer: int, fused: Tensor) -> None:
        query, key = (part.float() for part in query_and_key(fused.detach(), self.config))
        self.tally.note("diagonal", layer, content.diagonal_mean(query, key))
        self.tally.note("below", layer, content.below_diagonal_mean(query, key))
        if self.matrices:
            n = query.shape[1]
            content.add_logits(self.tally.total("content", layer, (self.heads, n, n), query), query, key)

    def attend(self, layer: int, weights: Tensor) -> None:
        if self.matrices:
            self.tally.add("attention", layer, weights.detach().float().sum((0, 1)))

    def update(self, layer: int, update: Tensor) -> None:
        residual, added = self.residual.pop(layer), mixing.squared_norms(update)
        self.tally.note("frobenius", layer, mixing.frobenius(residual, added))
        self.tally.note("token", layer, mixing.token(residual, added))

    def measurement(self, prompts: int) -> Measurement:
        """What was seen of so many prompts. Raises InputError where a value of a prompt is not finite."""
        known = {name: self.tally.of_prompts(name) for name in NAMES if name in self.tally.prompts}
        passes.require_finite({NAMES[name]: values for name, values in known.items()})
        return Measurement(
            mixing={estimator: known[estimator] for estimator in mixing.ESTIMATORS},
            diagonal=known.get("diagonal"),
            below=known.get("below"),
            influence=known["influence"],
            recency=known["recency"],
            content=self.tally.means("content", self.layers, prompts),
            attention=self.tally.means("attention", self.layers, prompts * self.heads),
            gram=self.tally.means("gram", self.layers, prompts),
        )


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
