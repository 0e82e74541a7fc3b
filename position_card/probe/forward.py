"""Forward passes of a decoder: embeddings of tokens, logits of the last positions, and a cache of the tokens before.

Measures ask a model of transformers nothing else, so that what its interface changes is changed here alone.
"""

import copy

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache


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


@torch.no_grad()
def next_token(
    model: PreTrainedModel, inputs: Tensor, cache: Cache | None = None, *, keep: bool = False
) -> tuple[Tensor, Cache | None]:
    """Return the distribution of the next token, float64 [B, V], and a cache of all tokens that it follows.

    `inputs` are tokens, int64 [B, n], or embeddings [B, n, width]. They follow those of the `cache`, if there is one,
    and are added to it. The cache that is returned is None unless it is to be kept (`keep`).
    """
    args, arguments = _arguments(inputs)
    out = model(*args, **arguments, past_key_values=cache, use_cache=keep, logits_to_keep=1)
    return out.logits[:, -1].double().softmax(-1), out.past_key_values if keep else None


def repeat(cache: Cache, count: int) -> Cache:
    """Return a copy of the cache of one prompt for `count` prompts that begin alike."""
    copies = copy.deepcopy(cache)
    copies.batch_repeat_interleave(count)
    return copies


def crop(cache: Cache, length: int) -> None:
    """Have a cache forget all tokens but the first `length`, at most as many as it has."""
    cache.crop(length - cache.get_seq_length())  # minus the number of tokens to forget


def _arguments(inputs: Tensor) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """Return the arguments by place and by name that hand tokens or embeddings to a model."""
    if inputs.is_floating_point():
        return (), {"inputs_embeds": inputs.clone()}  # some models scale them in place, which no leaf allows
    return (inputs,), {}
