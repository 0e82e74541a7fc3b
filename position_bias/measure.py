"""The measuring pass: one forward and backward pass a batch that yields every quantity of Section 6 of `structural`.

Hooks reduce each layer's tensors as they pass by, so that no layer's tensors outlive it. What an interval needs
is kept for each prompt; means over prompts are kept of what would be too large.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from position_bias import content, gram, mixing
from position_bias.influence import influence
from position_bias.language_models.families import Layer, family_of, layers_of, query_and_key
from position_bias.recency import FIRST_ROW
from position_bias.runtime import InputError, progress

Floats = NDArray[np.float32]

MATRICES_UP_TO = 256  # tokens; beyond, [L, H, n, n] mean matrices are not kept


@dataclass(frozen=True)
class Measurement:
    """What one pass over N prompts of n tokens yields, for L layers of H heads; all float32."""

    mixing: dict[str, Floats]  # estimator -> lambda [N, L]
    diagonal: Floats  # mean content logit on the diagonal [N, L, H]
    below: Floats  # and below it [N, L, H]
    influence: Floats  # [N, n]
    recency: Floats  # of the cosines between the inputs of attention [N, L]
    content: Floats | None  # mean content logits [L, H, n, n], for n <= MATRICES_UP_TO
    attention: Floats | None  # mean attention weights, over prompts and heads [L, n, n], likewise
    gram: Floats | None  # mean cosines between the inputs of attention [L, n, n], likewise


def measure(model: PreTrainedModel, prompts: NDArray[np.int64], tokens_per_batch: int) -> Measurement:
    """Measure `model` on `prompts` [N, n], as many at a time as `tokens_per_batch` holds (at least one).

    Raises InputError for too few tokens or more than the model takes, or where a measured value is not finite.
    """
    model.eval().requires_grad_(False)
    count, n = prompts.shape
    longest = family_of(model.config).longest(model.config)
    if n <= FIRST_ROW:
        raise InputError(f"config: lengths.*.tokens = {n}, but recency needs more than {FIRST_ROW}; give more tokens")
    if n > longest:
        raise InputError(f"config: lengths.*.tokens = {n}, but this {model.config.model_type!r} model takes {longest}")
    batch = max(1, tokens_per_batch // n)
    starts = range(0, count, batch)
    with recording(model, n) as record:
        rows = [
            influence(model, torch.from_numpy(prompts[start : start + batch]).to(model.device)).cpu()
            for start in progress(starts, f"measuring {count} prompts of {n} tokens", len(starts))
        ]
    measurement = record.measurement(torch.cat(rows), count)
    _require_finite(measurement)
    return measurement


class Record:
    """What the hooks have seen so far. Lists hold one tensor a batch and layer, in the order they came."""

    def __init__(self, model: PreTrainedModel, n: int) -> None:
        self.config = model.config
        self.layers, self.heads, _ = family_of(model.config).sizes(model.config)
        self.residual: dict[int, Tensor] = {}  # squared token norms of x, from a block's entry to its update
        self.mixing: dict[str, list[Tensor]] = {name: [] for name in mixing.ESTIMATORS}
        self.diagonal: list[Tensor] = []
        self.below: list[Tensor] = []
        self.recency: list[Tensor] = []
        self.content: Tensor | None = None
        self.attention: Tensor | None = None
        self.gram: Tensor | None = None
        if n <= MATRICES_UP_TO:
            self.content = torch.zeros(self.layers, self.heads, n, n, device=model.device)
            self.attention = torch.zeros(self.layers, n, n, device=model.device)
            self.gram = torch.zeros(self.layers, n, n, device=model.device)

    def enter_block(self, layer: int, residual: Tensor) -> None:
        self.residual[layer] = mixing.squared_norms(residual)

    def read(self, layer: int, inputs: Tensor) -> None:
        unit = gram.unit_vectors(inputs)
        self.recency.append(gram.recency(unit))
        if self.gram is not None:
            gram.add_cosines(self.gram[layer], unit)

    def project(self, layer: int, fused: Tensor) -> None:
        query, key = (part.float() for part in query_and_key(fused.detach(), self.config))
        self.diagonal.append(content.diagonal_mean(query, key))
        self.below.append(content.below_diagonal_mean(query, key))
        if self.content is not None:
            content.add_logits(self.content[layer], query, key)

    def attend(self, layer: int, weights: Tensor) -> None:
        if self.attention is not None:
            self.attention[layer] += weights.detach().float().sum((0, 1))

    def update(self, layer: int, update: Tensor) -> None:
        residual, added = self.residual.pop(layer), mixing.squared_norms(update)
        self.mixing["frobenius"].append(mixing.frobenius(residual, added))
        self.mixing["token"].append(mixing.token(residual, added))

    def measurement(self, influence: Tensor, prompts: int) -> Measurement:
        return Measurement(
            mixing={name: self._by_prompt(values) for name, values in self.mixing.items()},
            diagonal=self._by_prompt(self.diagonal),
            below=self._by_prompt(self.below),
            influence=influence.numpy(),
            recency=self._by_prompt(self.recency),
            content=None if self.content is None else (self.content / prompts).cpu().numpy(),
            attention=None if self.attention is None else (self.attention / (prompts * self.heads)).cpu().numpy(),
            gram=None if self.gram is None else (self.gram / prompts).cpu().numpy(),
        )

    def _by_prompt(self, values: list[Tensor]) -> Floats:
        """Join what came batch by batch, layer by layer: [B, ...] each -> [N, L, ...]."""
        batches = [torch.stack(values[i : i + self.layers], dim=1) for i in range(0, len(values), self.layers)]
        return torch.cat(batches).cpu().numpy()


@contextmanager
def recording(model: PreTrainedModel, n: int) -> Iterator[Record]:
    """Record what passes through the layers of `model`, for prompts of n tokens, while the context is open."""
    record = Record(model, n)
    handles = [handle for index, layer in enumerate(layers_of(model)) for handle in _listen(record, index, layer)]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


def _listen(record: Record, index: int, layer: Layer) -> list[Any]:
    def on_block(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        record.enter_block(index, args[0] if args else kwargs["hidden_states"])

    def on_projection(_module: nn.Module, args: tuple[Any, ...], out: Tensor) -> None:
        record.read(index, args[0])
        record.project(index, out)

    return [
        layer.block.register_forward_pre_hook(on_block, with_kwargs=True),
        layer.query_key_value.register_forward_hook(on_projection),
        layer.attention.register_forward_hook(lambda _module, _args, out: record.attend(index, out[1])),
        layer.output.register_forward_hook(lambda _module, _args, out: record.update(index, out)),
    ]


def _require_finite(measurement: Measurement) -> None:
    quantities = {f"lambda ({name})": value for name, value in measurement.mixing.items()}
    quantities |= {"influence": measurement.influence, "diagonal content": measurement.diagonal}
    quantities |= {"content below the diagonal": measurement.below, "recency of the Gram": measurement.recency}
    for name, value in quantities.items():
        if not np.isfinite(value).all():
            prompt = int(np.argwhere(~np.isfinite(value))[0][0])
            raise InputError(f"measured {name} of prompt {prompt} is not finite; check the model's weights and dtype")
