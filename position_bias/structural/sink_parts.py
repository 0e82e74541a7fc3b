"""What a decoder does with its prompts by three measures, as it is and where the norm of its first token is held."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from position_bias.structural.sink import CONDITIONS, OWN_NORM
from position_card.core.runtime import progress
from position_card.measures.quantities import influence_and_loss
from position_card.measures.recall import measure_recall
from position_card.measures.replacement import TokenIds, donors, responses
from position_card.probe import forward
from position_card.probe.first_norm import holding_first_norm
from position_card.rollout.attention import Array
from position_card.rollout.parts import eighths, words

REFERENCE = 8  # prompts whose other tokens say which norm the first one is given


def parts(
    model: PreTrainedModel,
    prompts: TokenIds,
    contexts: TokenIds,
    vocabulary: TokenIds,
    cue: int,
    before: Sequence[int],
    batch: int,
    seed: int,
) -> Mapping[str, Callable[[], NDArray[Any]]]:
    """What makes each part, MEASURE/CONDITION, of prompts [N, n] whose start tokens are `before`: arrays of float64.

    "influence" [N, n + 1] is that of each token by gradients, and then the loss of the second half of a prompt, in nats
    a token; "attention" [N] the weight of all later tokens on the first one, a mean over layers and heads;
    "replacement" [N, 6 + 8] the total variation where `words`, and then `eighths`, have the text of another prompt;
    "recall" [3, C, P] the fields of `RecallScores` on contexts of words of the `vocabulary`. "norms" [3, L] are means
    at the entry of blocks: of the first token, of others, and of the first one where it is held. `batch` is how many
    tokens pass at once. Raises InputError as the measures do.
    """
    model.eval().requires_grad_(False)
    other_texts, reference = donors(prompts, 1, seed), _tokens(model, prompts[:REFERENCE])
    windows = [*words(prompts.shape[1], len(before)), *eighths(prompts.shape[1], len(before))]

    def replacement() -> Array:
        return responses(model, prompts, windows, other_texts, [1.0], batch).total_variation[..., 0, 0]

    def recall() -> Array:
        return np.stack(measure_recall(model, contexts, vocabulary, cue, batch, before=before))

    def measure_under(measure: Callable[[], Array], condition: str) -> Array:
        with nullcontext() if condition == OWN_NORM else holding_first_norm(model, reference):
            return measure()

    measures: dict[str, Callable[[], Array]] = {
        "influence": partial(_influence, model, prompts),
        "attention": partial(_attention, model, prompts),
        "replacement": replacement,
        "recall": recall,
    }
    return {
        f"{name}/{condition}": partial(measure_under, measure, condition)
        for name, measure in measures.items()
        for condition in CONDITIONS
    } | {"norms": partial(_norms, model, reference)}


def _tokens(model: PreTrainedModel, prompts: TokenIds) -> Tensor:
    return torch.from_numpy(prompts).to(forward.device(model))


def _batches(model: PreTrainedModel, prompts: TokenIds, doing: str) -> Iterator[Tensor]:
    """Yield each prompt as a batch, [1, n]."""
    description = f"{doing} {len(prompts)} prompts of {prompts.shape[1]} tokens"
    return progress(_tokens(model, prompts).split(1), description, len(prompts))


def _influence(model: PreTrainedModel, prompts: TokenIds) -> Array:
    half = prompts.shape[1] // 2
    influences = (
        influence_and_loss(model, prompt, half) for prompt in _batches(model, prompts, "measuring influence of")
    )
    return (
        torch.cat([torch.cat([influence, loss[:, None]], 1) for influence, loss in influences]).double().cpu().numpy()
    )


@torch.no_grad()
def _attention(model: PreTrainedModel, prompts: TokenIds) -> Array:
    """Return the mean attention weight of later tokens on the first one, in each prompt, float64 [N].

    The mean is over heads, and over the layers that return weights.
    """
    means = []
    for prompt in _batches(model, prompts, "measuring attention of"):
        weights = model(prompt, use_cache=False, logits_to_keep=1, output_attentions=True).attentions
        means.append(torch.stack([layer[0, :, 1:, 0].float().mean() for layer in weights]).mean())
    return torch.stack(means).double().cpu().numpy()


@torch.no_grad()
def _norms(model: PreTrainedModel, tokens: Tensor) -> Array:
    *entries, _ = model(tokens, use_cache=False, logits_to_keep=1, output_hidden_states=True).hidden_states
    norms = torch.stack([entry.double().norm(dim=-1) for entry in entries])  # [L, B, n]
    with holding_first_norm(model, tokens) as held:
        return np.stack([norms[:, :, 0].mean(1).cpu().numpy(), norms[:, :, 1:].mean((1, 2)).cpu().numpy(), held])
