"""This module measures what another token would do: the second measure of influence, beside gradients.

`influence` says what an infinitely small change of a token's embedding does to the prediction of the next token. Here
the token is replaced by one that another prompt has at the same position, and what is measured is the total variation
distance between the two distributions of the next token. The embedding may also be moved a part of the way only, and a
token may be deleted.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from position_card.core.runtime import InputError, progress
from position_card.measures.passes import reuses
from position_card.probe import forward
from position_card.probe.precision import in_float32
from position_card.rollout.attention import Array

TokenIds = NDArray[np.int64]


def chosen_positions(n: int, first: int = 0) -> list[int]:
    """Return positions of n tokens to replace: the first one, some spread over the middle half, and the last.

    `first` is the number of start tokens before the text, of which the first is replaced, too.
    """
    spread = np.linspace(n // 4, n - n // 4 - 1, 8).round().astype(int)
    return sorted({0, first, *map(int, spread), n - 1})


def donors(prompts: TokenIds, positions: Sequence[int], seed: int) -> TokenIds:
    """Return a token to put at each position of each prompt: [N, P], drawn by `seed`.

    They are tokens that other prompts have at that position and that differ from the prompt's own. Where all prompts
    have the same token there, such as a start token, they are tokens that others have at the next position. Raises
    InputError where no prompt has another token.
    """
    generator = np.random.default_rng(seed)
    token_ids = np.empty((len(prompts), len(positions)), np.int64)
    for place, position in enumerate(positions):
        pool = prompts[:, position]
        if (pool == pool[0]).all():
            pool = prompts[:, min(position + 1, prompts.shape[1] - 1)]
        for row, own in enumerate(prompts[:, position]):
            others = np.delete(pool, row)
            others = others[others != own]
            if not len(others):
                raise InputError(
                    f"no prompt has another token at position {position}; give more prompts, or other text"
                )
            token_ids[row, place] = generator.choice(others, replace=False)
    return token_ids


def batches(prompts: TokenIds, tokens_per_batch: int, doing: str) -> Iterator[slice]:
    """Yield which of prompts [N, n] pass at once: as many as `tokens_per_batch` holds, and at least one.

    Progress says what it is `doing`, such as "deleting a token of", and how many prompts.
    """
    batch = max(1, tokens_per_batch // prompts.shape[1])
    starts = range(0, len(prompts), batch)
    for start in progress(starts, f"{doing} {len(prompts)} prompts of {prompts.shape[1]} tokens", len(starts)):
        yield slice(start, start + batch)


@in_float32
def changes(
    model: PreTrainedModel,
    prompts: TokenIds,
    positions: Sequence[int],
    others: TokenIds,
    tokens_per_batch: int,
    step: float = 1.0,
) -> Array:
    """Return the total variation between the predictions of the next token with and without each replacement.

    `prompts` are [N, n], and `others` [N, P] the tokens that replace those at `positions`, which count from 0; the
    result is float64 [N, P]. `step` is the part of the way that the embedding goes to that of the other token: 1
    replaces the token. What the model has computed of the tokens before a position is used again, where that changes
    nothing.
    """
    distances = np.empty(others.shape)
    reuses_prefix = _reuses(model, _embed(model, prompts[:1]))
    for rows in batches(prompts, tokens_per_batch, "replacing tokens of"):
        embeddings = _embed(model, prompts[rows])
        expected, cache = forward.next_token(model, embeddings, keep=reuses_prefix)
        for place in np.argsort(positions)[::-1]:
            position = positions[place]
            other = _embed(model, others[rows, place, None])
            embedding = embeddings[:, position : position + 1]
            embedding = embedding + step * (other - embedding)
            ending = torch.cat([embedding, embeddings[:, position + 1 :]], 1)
            changed = _with_ending(model, embeddings[:, :position], ending, cache)
            distances[rows, place] = total_variation(expected, changed).cpu()
    return distances


@in_float32
def deletion(model: PreTrainedModel, prompts: TokenIds, position: int, tokens_per_batch: int) -> Array:
    """Return the total variation between the predictions with and without the token at a position: float64 [N]."""
    distances = []
    for rows in batches(prompts, tokens_per_batch, "deleting a token of"):
        embeddings = _embed(model, prompts[rows])
        shorter = torch.cat([embeddings[:, :position], embeddings[:, position + 1 :]], 1)
        expected, changed = (forward.next_token(model, inputs)[0] for inputs in (embeddings, shorter))
        distances.append(total_variation(expected, changed).cpu().numpy())
    return np.concatenate(distances)


def total_variation(one: Tensor, other: Tensor) -> Tensor:
    """Return half of the summed absolute differences of two distributions, [B, V] twice -> [B], between 0 and 1."""
    return (one - other).abs().sum(-1) / 2


@torch.no_grad()
def _embed(model: PreTrainedModel, tokens: TokenIds) -> Tensor:
    return forward.embed(model, torch.from_numpy(tokens).to(forward.device(model)))


def _with_ending(model: PreTrainedModel, beginning: Tensor, ending: Tensor, cache: Cache | None) -> Tensor:
    """Return the distribution of the next token after two sequences of embeddings, float64 [B, V].

    A cache that begins with the tokens of `beginning` stands for it; what else it has is forgotten.
    """
    if cache is None or not beginning.shape[1]:
        return forward.next_token(model, torch.cat([beginning, ending], 1))[0]
    forward.crop(cache, beginning.shape[1])
    return forward.next_token(model, ending, cache, keep=True)[0]


def _reuses(model: PreTrainedModel, embeddings: Tensor) -> bool:
    """Try on a prompt [1, n, width] whether the model predicts the same where it goes back to a prefix."""
    half = embeddings.shape[1] // 2

    def again() -> Tensor:
        _, cache = forward.next_token(model, embeddings, keep=True)
        return _with_ending(model, embeddings[:, :half], embeddings[:, half:], cache)

    return reuses(lambda: forward.next_token(model, embeddings)[0], again, "every replacement")
