"""Forward passes of a decoder: embeddings of tokens, logits of the last positions, and a cache of the tokens before.

Measures ask a model of transformers nothing else, so that what its interface changes is changed here alone.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, noop_context_fn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache
from transformers.modeling_outputs import CausalLMOutputWithPast

# What models of this version of transformers call the keys and values of tokens before: 5.24 renamed it
CACHE = next(name for name in ("cache", "past_key_values") if name in CausalLMOutputWithPast.__dataclass_fields__)

States: TypeAlias = Any  # what the module below a head yields: a ModelOutput or tuple, first the states [B, n, width]


def device(model: PreTrainedModel) -> torch.device:
    """Return the device of the input embeddings, where tokens have to be."""
    place: torch.device = model.get_input_embeddings().weight.device
    return place


def embed(model: PreTrainedModel, tokens: Tensor) -> Tensor:
    """Return the input embeddings [B, n, width] of tokens, int64 [B, n]."""
    embeddings: Tensor = model.get_input_embeddings()(tokens)
    return embeddings


def last_logits(model: PreTrainedModel, inputs: Tensor, count: int) -> Tensor:
    """Return the logits of the last `count` positions, [B, count, V], where `inputs` are all that the model reads.

    `inputs` are tokens, int64 [B, n], or embeddings [B, n, width], which stay as they are; n is at least `count`.
    """
    args, arguments = _arguments(inputs)
    logits: Tensor = model(*args, **arguments, use_cache=False, logits_to_keep=count).logits
    return logits[:, -count:]


@contextmanager
def collecting_states(model: PreTrainedModel) -> Iterator[list[States]]:
    """Collect what the module below the head yields in every pass of a model while the context is open.

    Nothing is collected of a model that has no such module, or whose module yields a bare tensor (ModernBERT).
    """
    states: list[States] = []
    decoder = model.get_decoder()
    if decoder is model:
        yield states
        return

    def collect(_module: nn.Module, _args: tuple[object, ...], out: States | Tensor) -> None:
        if not isinstance(out, Tensor):
            states.append(_like(out, out[0].detach()))

    handle = decoder.register_forward_hook(collect)
    try:
        yield states
    finally:
        handle.remove()


def logits_of_states(model: PreTrainedModel, tokens: Tensor, states: States, positions: NDArray[np.int64]) -> Tensor:
    """Return the logits [B, P, V] that a model gives at some `positions` [P] of `tokens`, int64 [B, n].

    The model itself turns into logits the `states` that the module below its head yields; nothing below the head runs.
    """
    decoder = model.get_decoder()
    compute, output = decoder.forward, _like(states, states[0][:, positions])
    decoder.forward = lambda *_args, **_arguments: output
    try:
        return last_logits(model, tokens[:, positions], output[0].shape[1])
    finally:
        decoder.forward = compute


def _like(out: States, states: Tensor) -> States:
    """Return an output of the same type as `out`, of these hidden states alone."""
    return (states,) if isinstance(out, tuple) else type(out)(last_hidden_state=states)


@torch.no_grad()
def next_token(
    model: PreTrainedModel, inputs: Tensor, cache: Cache | None = None, *, keep: bool = False
) -> tuple[Tensor, Cache | None]:
    """Return the distribution of the next token, float64 [B, V], and a cache of all tokens that it follows.

    `inputs` are tokens, int64 [B, n], or embeddings [B, n, width]. They follow those of the `cache`, if there is one,
    and are added to it. The cache that is returned is None unless it is to be kept (`keep`).
    """
    args, arguments = _arguments(inputs)
    out = model(*args, **arguments, **{CACHE: cache}, use_cache=keep, logits_to_keep=1)
    return out.logits[:, -1].double().softmax(-1), getattr(out, CACHE) if keep else None


@torch.no_grad()
def after_each(model: PreTrainedModel, cache: Cache, endings: Tensor) -> Tensor:
    """Return the distribution of the next token after a prompt and each of several endings, float64 [P, V].

    The `cache` is that of the prompt, and is as it was afterwards. The endings, int64 [P, c], stand behind it in one
    row. Each has the positions that follow the prompt, and a mask hides the others from it.
    """
    n, (count, length) = cache.get_seq_length(), endings.shape
    causal = torch.ones(length, length, device=endings.device).tril()
    reads = torch.block_diag(*[causal] * count).bool()
    reads = torch.cat([reads.new_ones(len(reads), n), reads], 1)
    last = list(range(length - 1, count * length, length))  # no tensor, since the head may lie on another GPU
    logits = model(
        endings.flatten()[None],
        attention_mask=_mask(model, reads),
        position_ids=torch.arange(n, n + length, device=endings.device).repeat(count)[None],
        use_cache=True,
        logits_to_keep=last,
        **{CACHE: cache},
    ).logits[0]
    crop(cache, n)
    return (logits if len(logits) == count else logits[last]).double().softmax(-1)


@torch.no_grad()
def log_probabilities(model: PreTrainedModel, tokens: Tensor, count: int, cache: Cache | None = None) -> Tensor:
    """Return the log-probabilities of what follows each of the last `count` tokens, float64 [B, count, V], in nats.

    `tokens`, int64 [B, n], follow those of the `cache`, if there is one, and are added to it.
    """
    out = model(tokens, **{CACHE: cache}, use_cache=cache is not None, logits_to_keep=count)
    return out.logits[:, -count:].double().log_softmax(-1)


@torch.no_grad()
def log_probabilities_in_tree(
    model: PreTrainedModel, tokens: Tensor, parents: Sequence[int], places: Sequence[int]
) -> Tensor:
    """Return the log-probabilities of what follows some tokens of a tree, float64 [p, V], in nats.

    Each of the tokens, int64 [T], follows the one at the place that `parents` [T] has of it, which is before its own;
    the first of a prompt has -1. All pass in one row. Each has the position that its depth is, and a mask hides from it
    all but those that it follows. `places` [p] are those of tokens whose successors are asked for.
    """
    reads = torch.eye(len(tokens), dtype=torch.bool)
    depths = [0] * len(parents)
    for place, parent in enumerate(parents):
        if parent >= 0:
            reads[place] |= reads[parent]
            depths[place] = depths[parent] + 1
    logits = model(
        tokens[None],
        attention_mask=_mask(model, reads.to(tokens.device)),
        position_ids=torch.tensor(depths, device=tokens.device)[None],
        use_cache=False,
        logits_to_keep=list(places),
    ).logits[0]
    return (logits if len(logits) == len(places) else logits[places]).double().log_softmax(-1)


def _mask(model: PreTrainedModel, reads: Tensor) -> Tensor:
    """Return what is added to the logits of attention where tokens read others as `reads` [n, m] says: [1, 1, n, m]."""
    dtype = embed(model, torch.zeros(1, dtype=torch.int64, device=reads.device)).dtype
    mask = torch.zeros(reads.shape, dtype=dtype, device=reads.device).masked_fill(~reads, torch.finfo(dtype).min)
    return mask[None, None]


@contextmanager
def recomputing(blocks: Sequence[nn.Module], keep: Sequence[Callable[..., Any]] = ()) -> Iterator[None]:
    """Have every one of the `blocks` keep its input alone, and run again in the backward pass.

    What operations of torch to `keep` have yielded is kept, too, so that these do not run again.
    """
    forwards = [block.forward for block in blocks]
    contexts = partial(create_selective_checkpoint_contexts, list(keep)) if keep else noop_context_fn
    try:
        for block, forward in zip(blocks, forwards, strict=True):
            block.forward = partial(checkpoint, forward, use_reentrant=False, context_fn=contexts)
        yield
    finally:
        for block, forward in zip(blocks, forwards, strict=True):
            block.forward = forward


def repeat(cache: Cache, count: int) -> Cache:
    """Return a copy of the cache of one prompt for `count` prompts that begin alike."""
    copies = copy.deepcopy(cache)
    copies.batch_repeat_interleave(count)
    return copies


def select(cache: Cache, rows: Tensor) -> Cache:
    """Return a copy of the cache of several prompts with these of them, int64 [B], of which one may come again."""
    selected = copy.deepcopy(cache)
    selected.batch_select_indices(rows.cpu())  # which fit layers on any GPU
    return selected


def crop(cache: Cache, length: int) -> None:
    """Have a cache forget all tokens but the first `length`, at most as many as it has."""
    cache.crop(length - cache.get_seq_length())  # minus the number of tokens to forget


def _arguments(inputs: Tensor) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """Return the arguments by place and by name that hand tokens or embeddings to a model."""
    if inputs.is_floating_point():
        return (), {"inputs_embeds": inputs.clone()}  # some models scale them in place, which no leaf allows
    return (inputs,), {}
