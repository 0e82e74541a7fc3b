"""The measuring pass: one forward and backward pass a batch, of a decoder of any architecture.

The first prompt shows the layout of the model, and proves it (`layout`). Hooks then reduce each layer's tensors as they
pass by, so that no layer's tensors outlive it. Quantities with intervals are kept for each prompt; of larger ones, only
the mean over prompts is kept and, where that is asked for, the means over groups of documents. A long measurement
writes checkpoints, and goes on from the last one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from position_card.core.runtime import InputError, log
from position_card.measures import kernels, passes, quantities
from position_card.measures.passes import Resumption, Tally
from position_card.measures.recency import FIRST_ROW
from position_card.models import families
from position_card.models.opening import longest
from position_card.probe import capture, forward
from position_card.probe.layout import Layout, find_layout, first_of, hooked, is_close, stream_of, tolerance, weights_of
from position_card.probe.long_layout import find_long_layout
from position_card.probe.streaming import KERNELS, LONG, Listener, Streaming
from position_card.rollout.attention import Array
from position_card.rollout.measurement import (
    BACKWARD,
    ESTIMATORS,
    FROBENIUS_APART,
    TOEPLITZ_APART,
    Floats,
    Measurement,
    grouped,
)

MIXINGS = (*ESTIMATORS, FROBENIUS_APART)
MATRICES_UP_TO = 1024  # tokens; beyond, mean attention is kept by distance only
LOSS_TOKENS = 4  # tokens at the end of each prompt, whose loss says whether the model can predict the text
MOST_LOSSES = 32  # of a prompt, where losses by position are asked for: the head costs as much as layers do
OF_PROMPTS = {  # what a message calls the quantities that are kept of each prompt
    **{estimator: f"lambda ({estimator})" for estimator in MIXINGS},
    "influence": "influence",
    "loss": "loss",
    "losses": "loss by position",
    "no_token": "the attention to no token",
    "diagonal": "diagonal content",
    "below": "content below the diagonal",
    "recency": "recency of the Gram",
}


@dataclass(frozen=True)
class Quantities:
    """The quantities that are measured, besides lambda, mean attention, kernels and loss, which always are."""

    influence: bool = True  # and lambda of the backward pass; without them there is no backward pass
    target: str | int = "p"  # what influence is the gradient of (`quantities.differentiated`)
    content: bool = False  # mean content logits of every pair of tokens, of families with ALiBi
    gram: bool = False  # cosines between the inputs of attention, and their recency
    losses_from: int | None = None  # the first token that may have its loss measured; None: only the last ones have
    apart: bool = False  # lambda and the fitted kernel without the first token, too, which may be a sink
    groups: int = 0  # of documents, whose means of attention and kernels are kept besides those of all; 0: none
    matrices_up_to: int = MATRICES_UP_TO  # tokens of a prompt; of longer ones, no matrix [n, n] is kept
    streamed_from: int = LONG  # tokens of a prompt; from there on, no matrix of a head lies in memory where that can be


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
    device = forward.device(model)
    streaming, long_layout = Streaming(model), None
    with passes.within_memory(f"while the layout of the model was found, with 1 x {n} tokens; {passes.MORE_GPUS}"):
        tokens = torch.from_numpy(prompts[:1]).to(device)
        if n >= quantities.streamed_from:
            long_layout = find_long_layout(model, streaming, tokens)
        layout = long_layout or find_layout(model, tokens)
    documents = np.arange(count) if documents is None else documents
    groups = grouped(documents, quantities.groups) if quantities.groups else None
    record = _Record(model, layout, quantities, n, groups)
    blocks = [layer.block for layer in layout.layers]
    recomputed = activation_checkpointing or long_layout is not None
    with (
        record.listening(),
        streaming.attending(quantities.streamed_from, record.listener_of) if long_layout else nullcontext(),
        forward.recomputing(blocks, keep=KERNELS if long_layout else ()) if recomputed else nullcontext(),
    ):
        passes.run(
            prompts,
            tokens_per_batch,
            record.measure_batch,
            record.tally,
            device=device,
            section=section,
            remedies=[] if recomputed else [f"set {passes.key('activation_checkpointing', section)} to true"],
            resumption=resumption,
        )
    return record.measurement(documents)


def _require_length(model: PreTrainedModel, n: int, quantities: Quantities) -> None:
    """Raise InputError where prompts of n tokens are too short for what is asked, or too long for the model."""
    limit = longest(model.config)
    if quantities.gram and n <= FIRST_ROW:
        raise InputError(f"config: lengths.*.tokens = {n}, but recency needs more than {FIRST_ROW}; give more tokens")
    if limit is not None and n > limit:
        raise InputError(f"config: lengths.*.tokens = {n}, but this {model.config.model_type!r} model takes {limit}")


class _Record:
    """Hooks on the layers of a model, which reduce the tensors of each layer to tallied quantities as they pass by."""

    def __init__(
        self,
        model: PreTrainedModel,
        layout: Layout,
        quantities: Quantities,
        n: int,
        groups: NDArray[np.int64] | None,
    ) -> None:
        self.model, self.layout, self.quantities, self.n, self.groups = model, layout, quantities, n, groups
        self.prompts_of: dict[str, Any] = {}  # suffix of a sum -> the prompts of the current batch that it is of
        self.matrices = n <= quantities.matrices_up_to
        first = quantities.losses_from
        self.loss_positions = None if first is None else loss_positions(n, first)
        self.alibi = families.family_of(model.config)
        self.backward = quantities.influence and all(layer.update.order != "parallel" for layer in layout.layers)
        self.tally = Tally()
        self.listens = False  # False while layers are computed again for the backward pass
        self.residual: dict[int, Tensor] = {}  # squared token norms of x, from a block's entry to its update
        self.gradient: dict[int, Tensor] = {}  # at x + u, from there back to the block's entry
        self.places = {layer.attention: place for place, layer in enumerate(layout.layers)}
        self.given: dict[int, Tensor] = {}  # share of attention that goes to tokens [B], of the rows that have passed

    def measure_batch(self, tokens: Tensor) -> None:
        """Measure a batch of prompts [B, n]."""
        self.listens, latest = True, min(LOSS_TOKENS, self.n - 1)
        self.prompts_of = self._prompts_of_sums(len(tokens))
        with forward.collecting_states(self.model) as states:
            if self.quantities.influence:
                influence, losses = quantities.influence_and_loss(self.model, tokens, latest, self.quantities.target)
                self.tally.add_prompts("influence", influence)
            else:
                losses = quantities.loss(self.model, tokens, latest)
        if self.loss_positions is not None:
            by_position = losses_by_position(self.model, tokens, self.loss_positions, states, losses, latest)
            self.tally.add_prompts("losses", by_position)
            losses = by_position.mean(-1)
        self.tally.add_prompts("loss", losses)
        self.tally.end_batch()

    def _prompts_of_sums(self, count: int) -> dict[str, Any]:
        """Return the prompts of the current batch that each sum is of: all of them, and those of each group."""
        prompts: dict[str, Any] = {"": slice(None)}
        if self.groups is not None:
            first = sum(map(len, self.tally.prompts["loss"]))
            of_batch = self.groups[first : first + count]
            prompts |= {_of_group(group): np.flatnonzero(of_batch == group).tolist() for group in np.unique(of_batch)}
        return prompts

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keep the hooks on the model while the context is open."""
        layers = list(enumerate(self.layout.layers))
        handles = [handle for place, _ in layers for handle in self._register_hooks(place)]
        handles.append(self.model.register_forward_hook(lambda *_: setattr(self, "listens", False)))
        listeners = {layer.attention: partial(self.add_products, place) for place, layer in layers}
        with hooked(handles), capture.listening(listeners) if self.layout.products else nullcontext():
            yield

    def _register_hooks(self, place: int) -> Iterator[Any]:
        layer = self.layout.layers[place]

        def before(module: nn.Module, listener: Callable[[int, Tensor], None]) -> Any:
            def hook(_module: nn.Module, args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
                if self.listens:
                    listener(place, stream_of(args, arguments))

            return module.register_forward_pre_hook(hook, with_kwargs=True)

        def after(module: nn.Module, listener: Callable[[int, Any], None]) -> Any:
            def hook(_module: nn.Module, _args: tuple[Any, ...], out: Any) -> None:
                if self.listens:
                    listener(place, out)

            return module.register_forward_hook(hook)

        yield before(layer.block, self.enter_block)
        if self.quantities.gram:
            yield before(layer.attention, self.add_input_cosines)
        yield after(layer.attention, self.add_attention)
        yield after(layer.update.module, self.add_update)
        if self.alibi:
            yield after(layer.attention.get_submodule(self.alibi.query_key_value), self.add_content_logits)

    def enter_block(self, place: int, stream: Tensor) -> None:
        """Keep the squared norms of the residual stream that enters a block, until attention has added to it."""
        self.residual[place] = quantities.squared_norms(stream)
        if self.backward and stream.requires_grad:
            stream.register_hook(partial(self.add_backward_mixing, place))

    def add_input_cosines(self, place: int, inputs: Tensor) -> None:
        """Tally the cosines between the inputs [B, n, width] of attention in layer `place`, and their recency."""
        unit = quantities.unit_vectors(inputs)
        self.tally.add_layer("recency", place, quantities.cosine_recency(unit))
        if self.matrices:
            quantities.add_cosines(self.tally.total("gram", place, (self.n, self.n), unit), unit)

    def add_products(self, place: int, inputs: capture.AttentionInputs) -> None:
        """Add sums of the logits of a layer, and its queries and keys before rotation, which kernels are made from."""
        if not self.listens:
            return
        layer = self.layout.layers[place]
        for suffix, prompts in self.prompts_of.items():
            query, key = inputs.query.detach()[prompts], inputs.key.detach()[prompts]
            for name, sums in zip(("rows", "distances"), kernels.logit_sums(query, key, layer.window), strict=True):
                self.tally.add(name + suffix, place, inputs.scaling * sums.double())
            if self.quantities.apart:
                self.tally.add("first" + suffix, place, inputs.scaling * kernels.first_logits(query, key).double())
            if self.layout.rotary:
                sums_of_batch = (part.float().sum(0, keepdim=True) for part in (query, key))
                before_rotation = layer.rotation.undo(*sums_of_batch) if layer.rotation else sums_of_batch
                for name, part in zip(("query", "key"), before_rotation, strict=True):
                    self.tally.add(name + suffix, place, part[0].mean(-2).double())

    def add_attention(self, place: int, out: Any) -> None:
        """Add the attention weights among the outputs of an attention module; one that is streamed has none there."""
        if (weights := weights_of(out, self.n)) is not None:
            self.add_weights(place, 0, 0, weights)

    def listener_of(self, attention: nn.Module) -> Listener | None:
        """Return what takes the weights of a module whose attention is streamed."""
        place = self.places.get(attention)
        return partial(self.add_weights, place) if self.listens and place is not None else None

    def add_weights(self, place: int, begin: int, first: int, weights: Tensor) -> None:
        """Add attention weights [B, H, r, k] of rows from `begin` and keys from `first`, as a matrix or by distance."""
        sums = weights.detach().float().sum(1)  # over heads, [B, r, k]
        rows, keys = slice(begin, begin + sums.shape[1]), slice(first, first + sums.shape[2])
        weight = self.given.pop(place, 0) + sums.sum((1, 2)) / (weights.shape[1] * self.n)
        if rows.stop == self.n:
            self.tally.add_layer("no_token", place, 1 - weight)
        else:
            self.given[place] = weight
        if not self.matrices:
            by_distance = _distance_sums(sums.sum(0))
            self.tally.total("by distance", place, (self.n,), by_distance)[: len(by_distance)] += by_distance
            return
        for suffix, prompts in self.prompts_of.items():
            total = sums[prompts].sum(0)
            self.tally.total("attention" + suffix, place, (self.n, self.n), total)[rows, keys] += total

    def add_content_logits(self, place: int, fused: Tensor) -> None:
        """Add the content logits of a layer, from the output of its fused projection."""
        query, key = (part.float() for part in families.query_and_key(fused.detach(), self.model.config))
        self.tally.add_layer("diagonal", place, quantities.diagonal_mean(query, key))
        self.tally.add_layer("below", place, quantities.below_diagonal_mean(query, key))
        if self.quantities.content and self.matrices:
            total = self.tally.total("content", place, (self.layout.heads, self.n, self.n), query)
            quantities.add_logits(total, query, key)

    def add_update(self, place: int, out: Any) -> None:
        """Add residual mixing of a layer, from the norms of the residual stream and of what attention adds to it."""
        update, scale = first_of(out), self.layout.layers[place].update.scale
        squares = quantities.squared_norms(update) * scale**2
        residual = self.residual.pop(place).to(
            squares.device
        )  # of several GPUs, it was seen on that of the block before
        squares = squares.view_as(residual)
        self.tally.add_layer("frobenius", place, quantities.frobenius_mixing(residual, squares))
        self.tally.add_layer("token", place, quantities.token_mixing(residual, squares))
        if self.quantities.apart:
            self.tally.add_layer(FROBENIUS_APART, place, quantities.frobenius_mixing(residual[:, 1:], squares[:, 1:]))
        if self.backward and update.requires_grad:
            update.register_hook(partial(self.take_gradient_at_update, place))

    def take_gradient_at_update(self, place: int, gradient: Tensor) -> None:
        """Keep the gradient behind attention, until that at the entry of the block is known."""
        self.gradient[place] = gradient.detach().float() / self.layout.layers[place].update.scale

    def add_backward_mixing(self, place: int, gradient: Tensor) -> None:
        """Add residual mixing of the backward pass, from the gradients at the entry of a block and behind attention."""
        past = self.gradient.pop(place).view(gradient.shape).to(gradient.device)
        self.tally.add_layer(BACKWARD, place, quantities.backward_mixing(past, gradient.detach().float()))

    def measurement(self, documents: NDArray[np.int64]) -> Measurement:
        """Return the measurement of all prompts. Raises InputError where a value of a prompt is not finite."""
        by_prompt = {name: self.tally.by_prompt(name) for name in OF_PROMPTS if name in self.tally.prompts}
        passes.require_finite({OF_PROMPTS[name]: values for name, values in by_prompt.items()})
        if np.abs(by_prompt["no_token"]).max() <= tolerance(self.model.dtype, 1):
            del by_prompt["no_token"]
        mixings = {estimator: by_prompt.pop(estimator) for estimator in MIXINGS if estimator in by_prompt}
        attention, by_distance = self._attention(len(documents))
        sizes = {} if self.groups is None else {_of_group(g): size for g, size in enumerate(np.bincount(self.groups))}
        kernels_of_sets = self._kernels({"": len(documents), **sizes})
        return Measurement(
            documents=documents,
            windows=tuple(layer.window for layer in self.layout.layers),
            mixing=mixings,
            attention=attention,
            by_distance=by_distance,
            kernels={name: of_sets[0] for name, of_sets in kernels_of_sets.items()},
            groups=self.groups,
            attention_of_groups=self._attention_of_groups(sizes),
            kernels_of_groups={name: of_sets[1:] for name, of_sets in kernels_of_sets.items()} if sizes else {},
            slopes=families.effective_slopes(self.model.config),
            content=self._mean("content", len(documents)),
            gram=self._mean("gram", len(documents)),
            loss_positions=self.loss_positions,
            **by_prompt,
        )

    def _mean(self, name: str, count: int) -> Floats | None:
        return self.tally.means(name, len(self.layout.layers), count)

    def _attention(self, prompts: int) -> tuple[Floats | None, Floats]:
        """Return the mean attention, None for long prompts, and the mean by distance."""
        count = prompts * self.layout.heads
        attention, sums = self._mean("attention", count), self._mean("by distance", count)
        if attention is not None:
            sums = np.stack([_distance_sums(torch.from_numpy(layer)).numpy() for layer in attention])
        assert sums is not None
        return attention, (sums / np.arange(self.n, 0, -1)).astype(np.float32)

    def _attention_of_groups(self, sizes: Mapping[str, int]) -> Floats | None:
        """Return the mean attention of each group [G, L, n, n]; None without groups, and of long prompts."""
        if not sizes or not self.matrices:
            return None
        means = (self._mean(f"attention{suffix}", size * self.layout.heads) for suffix, size in sizes.items())
        return np.stack([mean for mean in means if mean is not None])

    def _kernels(self, prompts_of: Mapping[str, int]) -> dict[str, Floats]:
        """Fit the kernels of every layer, by name [S, L, H, n], as far as queries and keys can be seen.

        They are of S sets of prompts, first of all of them: the suffix of its sums -> how many prompts each has.
        """
        if not self.layout.products:
            return {}
        places = range(len(self.layout.layers))
        of_layers = [self._kernels_of_layer(place, prompts_of) for place in places]
        return {
            name: np.stack([of_layer[name] for of_layer in of_layers], 1).astype(np.float32) for name in of_layers[0]
        }

    def _kernels_of_layer(self, place: int, prompts_of: Mapping[str, int]) -> dict[str, Array]:
        """Fit the kernels of a layer [S, H, n], all of which are linear in what a set of prompts brings.

        The rotary kernel of the mean query q and key k is a product. That of a set is linear in its own q' and k',
        g(q', k) + g(q, k') - g(q, k), and leaves out the product of what these differ by from q and k.
        """
        layer = self.layout.layers[place]

        def mean(name: str, suffix: str) -> Tensor:
            return self.tally.sums[f"{name}{suffix}/{place}"].double().cpu() / prompts_of[suffix]

        def rotary(query: Tensor, key: Tensor) -> Array:
            return kernels.rotary_kernel(query, key, layer.scaling, self.n, layer.rotation)

        estimates: defaultdict[str, list[Array]] = defaultdict(list)
        for suffix in prompts_of:
            sums = mean("rows", suffix).numpy(), mean("distances", suffix).numpy()
            estimates["toeplitz"].append(kernels.fitted_kernel(*sums, layer.window))
            if self.quantities.apart:
                first = mean("first", suffix).numpy()
                estimates[TOEPLITZ_APART].append(kernels.fitted_without_first(*sums, first, layer.window))
        if self.layout.rotary:
            whole, *of_groups = ((mean("query", suffix), mean("key", suffix)) for suffix in prompts_of)
            of_all = rotary(*whole)
            linear = (rotary(query, whole[1]) + rotary(whole[0], key) - of_all for query, key in of_groups)
            estimates["rotary"] = [of_all, *linear]
        return {name: np.stack(of_sets) for name, of_sets in estimates.items()}


def _of_group(group: int) -> str:
    """The suffix of sums over the prompts of a group."""
    return f" of group {group}"


def loss_positions(n: int, first: int) -> NDArray[np.int64]:
    """Return the positions [P] of n tokens whose losses are measured: evenly spaced from `first` on, up to the last."""
    apart = -(-(n - first) // MOST_LOSSES)
    return np.arange(first + (n - 1 - first) % apart, n, apart)


def losses_by_position(
    model: PreTrainedModel,
    tokens: Tensor,
    positions: NDArray[np.int64],
    states: list[forward.States],
    latest_losses: Tensor,
    latest: int,
) -> Tensor:
    """Return the losses of the tokens at some `positions` [P] of prompts, int64 [B, n], in nats, float32 [B, P].

    They come from the hidden `states` of one pass of these tokens (`forward.collecting_states`) where the head turns
    these into the losses of that pass: the mean over its `latest` tokens is known, `latest_losses` [B]. Where it does
    not, or where no states were collected, the model passes once more, as the log says.
    """
    n = tokens.shape[1]
    places = np.union1d(positions, np.arange(n - latest, n))
    reason = "the model shows no hidden states below its head"
    if states:
        try:
            losses = quantities.losses_of_states(model, tokens, places, states[-1])
            if is_close(losses[:, -latest:].mean(-1), latest_losses):
                return losses[:, np.isin(places, positions)]
            reason = "the head alone gives others"
        except passes.UNABLE as error:
            reason = f"the head cannot be asked alone ({error!r})"
    log.info("losses take a pass of their own: %s", reason)
    return quantities.losses(model, tokens)[:, positions - 1]


def _distance_sums(attention: Tensor) -> Tensor:
    """Sum the weights that the last r of n tokens give to the one k before: [r, n] -> [n]."""
    return kernels.skewed(attention.flip(-1)[None])[0].sum(0)
