"""This module measures what another text would change: the second measure of influence, beside gradients.

`influence` says what an infinitely small change of a token's embedding does to the prediction of the next token. Here
the embeddings of a window of a prompt go a part of the way to those of the tokens that another prompt has there, and
what is measured is the total variation distance between the two distributions of the next token. The whole way
replaces the text of the window; a small part of it is what gradients foretell.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from position_card.core.runtime import InputError, progress
from position_card.measures.passes import MORE_GPUS, reuses, within_memory
from position_card.probe import forward
from position_card.probe.precision import in_float32
from position_card.probe.streaming import with_streaming
from position_card.rollout.attention import Array
from position_card.rollout.parts import words

TokenIds = NDArray[np.int64]

PIECE = 256  # tokens that pass at once behind a cache: their attention to all that it has lies in memory


class Responses(NamedTuple):
    """What a prediction does as each of W windows of N prompts goes S steps towards each of D donors."""

    total_variation: Array  # float64 [N, W, S, D], from 0 to 1: between the predictions before and after
    log_probability: Array  # float64 [N, W, S, D], nats: change of that of the token that was likeliest before


def chosen_positions(n: int, first: int = 0) -> list[int]:
    """Return positions of n tokens to replace: the first one, some spread over the middle half, and the last.

    `first` is the number of start tokens before the text, of which the first is replaced, too.
    """
    return sorted({first, *(word.start for word in words(n))})


def donors(prompts: TokenIds, count: int, seed: int) -> TokenIds:
    """Return the tokens that take the place of each prompt's own, from `count` donors: [N, n] -> [N, count, n].

    Donors are other prompts, in a random order by `seed`. Where a donor has the prompt's own token, the next prompt in
    that order which has another one there gives it. Where all prompts have the same token, such as a start token, they
    give the token at the next position. Raises InputError where there are too few prompts, or none has another token.
    """
    if count >= len(prompts):
        raise InputError(f"{count} donors need {count + 1} prompts or more, and there are {len(prompts)}; give more")
    generator = np.random.default_rng(seed)
    alike = (prompts == prompts[0]).all(0)
    following = np.hstack([prompts[:, 1:], prompts[:, -1:]])
    candidates = np.where(alike, following, prompts)
    tokens = np.empty((len(prompts), count, prompts.shape[1]), np.int64)
    for row, prompt in enumerate(prompts):
        donor_prompts = candidates[generator.permutation(np.delete(np.arange(len(prompts)), row))]
        differs = donor_prompts != prompt
        if not differs.any(0).all():
            raise InputError(
                f"no prompt has another token at position {differs.any(0).argmin()}; give more prompts, or other text"
            )
        for place in range(count):
            nearest = (np.roll(differs, -place, 0).argmax(0) + place) % len(donor_prompts)
            tokens[row, place] = np.take_along_axis(donor_prompts, nearest[None], 0)[0]
    return tokens


@within_memory(f"while tokens were replaced; {MORE_GPUS}, or let fewer tokens pass at once")
@in_float32
@with_streaming
def responses(
    model: PreTrainedModel,
    prompts: TokenIds,
    windows: Sequence[slice],
    donors: TokenIds,
    steps: Sequence[float],
    tokens_per_batch: int,
) -> Responses:
    """Move the embeddings of windows of prompts [N, n] towards those of the tokens of `donors` [N, D, n].

    All tokens of a window go the same of the `steps`, parts of the way: 1 replaces its text. As many prompts, and then
    as many of their changed copies, pass at a time as `tokens_per_batch` holds. What the model has computed of the
    tokens before a window is used again, where that changes nothing. Raises InputError where memory is too small.
    """
    (count, n), shape = prompts.shape, (len(steps), donors.shape[1])
    effects = np.empty((2, count, len(windows), *shape))
    bounds = [window.indices(n)[:2] for window in windows]
    size = max(1, tokens_per_batch // n)
    begins = range(0, count, size)
    predict = partial(_predict_and_try, start=_trial_start(n, bounds))
    for begin in progress(begins, f"moving words of {count} prompts of {n} tokens", len(begins)):
        group = slice(begin, begin + size)
        embeddings, donor_embeddings = _embed(model, prompts[group]), _embed(model, donors[group])
        prediction, cache = predict(model, embeddings)
        predict = partial(forward.next_token, keep=cache is not None)
        parts = torch.tensor(steps, dtype=embeddings.dtype, device=embeddings.device)[:, None, None, None]
        rows = torch.arange(len(embeddings), device=embeddings.device).repeat_interleave(len(steps) * donors.shape[1])
        likeliest = prediction.argmax(-1)[rows, None]
        for place in sorted(range(len(windows)), key=lambda place: bounds[place], reverse=True):
            start, stop = bounds[place]
            before = embeddings[:, None, None, start:stop]
            moved = (before + parts * (donor_embeddings[:, None, :, start:stop] - before)).flatten(0, 2)
            endings = torch.cat([moved, embeddings[rows, stop:]], 1)
            at_once = max(1, tokens_per_batch // (n - start))
            pairs = zip(rows.split(at_once), endings.split(at_once), strict=True)
            changed = torch.cat(
                [_with_endings(model, embeddings[part, :start], ending, cache, part) for part, ending in pairs]
            )
            logs = (changed.gather(1, likeliest) / prediction[rows].gather(1, likeliest)).log()[:, 0]
            for measure, values in enumerate((total_variation(prediction[rows], changed), logs)):
                effects[measure, group, place] = values.cpu().numpy().reshape(-1, *shape)
    return Responses(*effects)


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """Return half of the summed absolute differences of two distributions, [B, V] twice -> [B], between 0 and 1."""
    return (p - q).abs().sum(-1) / 2


@torch.no_grad()
def _embed(model: PreTrainedModel, tokens: TokenIds) -> Tensor:
    return forward.embed(model, torch.from_numpy(np.ascontiguousarray(tokens)).to(forward.device(model)))


def _with_endings(
    model: PreTrainedModel, beginnings: Tensor, endings: Tensor, cache: Cache | None, rows: Tensor
) -> Tensor:
    """Return the distribution of the next token after beginnings [B, s, width] and their endings, float64 [B, V].

    In a cache, these `rows` [B] stand for the beginnings; what else they have is forgotten. PIECE tokens of the endings
    pass at once.
    """
    if cache is None or not beginnings.shape[1]:
        return forward.next_token(model, torch.cat([beginnings, endings], 1))[0]
    forward.crop(cache, beginnings.shape[1])
    selected = forward.select(cache, rows)
    *_, prediction = (forward.next_token(model, piece, selected, keep=True)[0] for piece in endings.split(PIECE, 1))
    return prediction


def _trial_start(n: int, bounds: Sequence[tuple[int, int]]) -> int:
    """Return after how many of n tokens it is tried whether a prefix is of use: three quarters of them.

    Where endings pass in pieces it is the shortest prefix that the windows with these bounds need: rotations that
    depend on how long a text is may be right in late pieces alone.
    """
    late = 3 * n // 4
    return min((start for start, _ in bounds if start), default=late) if n > PIECE else late


def _predict_and_try(model: PreTrainedModel, embeddings: Tensor, start: int) -> tuple[Tensor, Cache | None]:
    """Return what `forward.next_token` does of prompts [B, n, width], and their cache where a prefix of it is of use.

    That is tried on the first prompt: it ends twice as it does, after the `start` of it.
    """
    rows = torch.zeros(2, dtype=torch.int64, device=embeddings.device)
    outcome: list[tuple[Tensor, Cache | None]] = []

    def predict() -> Tensor:
        outcome.append(forward.next_token(model, embeddings, keep=True))
        return outcome[0][0][:1]

    def predict_from_prefix() -> Tensor:
        cache = forward.select(outcome[0][1], rows[:1])  # a copy, since what follows forgets its end
        return _with_endings(model, embeddings[rows, :start], embeddings[rows, start:], cache, rows)[:1]

    if reuses(predict, predict_from_prefix, "every replacement"):
        return outcome[0]
    return forward.next_token(model, embeddings)
