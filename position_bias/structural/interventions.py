"""What is done to single tokens of a decoder's prompts, and what it changes: the second measure, and tests of one.

A token is replaced by another, or moved a part of the way to it; the change is the total variation between the
predictions. Influence by gradients is measured again where another token comes first, and where the first token stands
in the middle: does it belong to the place, or to the token? And it is measured at the entry of every layer, where a
rollout has its share, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from transformers import PreTrainedModel

from position_card.measures.quantities import influence_and_loss
from position_card.measures.replacement import TokenIds, chosen_positions, donors, responses
from position_card.rollout.attention import Array
from position_card.rollout.measurement import BY_LAYER, MOVED, OTHER_FIRST, REPLACED, STEPS
from position_card.rollout.parts import middle_position


def parts(
    model: PreTrainedModel, prompts: TokenIds, count: int, first: int, batch: int, seed: int
) -> Mapping[str, Callable[[], Array]]:
    """What makes each change to prompts [N, n], by its name: replacements [N, P] at the `chosen_positions`, float64.

    All else is done to the first `count` of the prompts, with the same other tokens, unless that is 0: smaller steps
    are [count, P], influence [count, n], and by layer [count, L, n]. `batch` is how many tokens pass at once. Raises
    InputError where no prompt has another token at a position.
    """
    positions = chosen_positions(prompts.shape[1], first)
    others = donors(prompts, 1, seed)
    of_all = {REPLACED: partial(_changes, model, prompts, positions, others, batch, 1.0)}
    if not count:
        return of_all
    others, prompts = others[:count], prompts[:count]
    steps = {name: partial(_changes, model, prompts, positions, others, batch, step) for name, step in STEPS.items()}
    with_another, moved = prompts.copy(), prompts.copy()
    with_another[:, first] = others[:, 0, first]
    middle = middle_position(prompts.shape[1])
    moved[:, first:middle], moved[:, middle] = prompts[:, first + 1 : middle + 1], prompts[:, first]
    return {
        **of_all,
        **steps,
        OTHER_FIRST: partial(_influence, model, with_another, batch),
        MOVED: partial(_influence, model, moved, batch),
        BY_LAYER: partial(_influence_by_layer, model, prompts, batch),
    }


def _changes(
    model: PreTrainedModel, prompts: TokenIds, positions: Sequence[int], others: TokenIds, batch: int, step: float
) -> Array:
    windows = [slice(position, position + 1) for position in positions]
    return responses(model, prompts, windows, others, [step], batch).total_variation[..., 0, 0]


def _batches(prompts: TokenIds, batch: int) -> Iterator[TokenIds]:
    at_once = max(1, batch // prompts.shape[1])
    for start in range(0, len(prompts), at_once):
        yield prompts[start : start + at_once]


def _influence(model: PreTrainedModel, prompts: TokenIds, batch: int) -> Array:
    device = model.get_input_embeddings().weight.device
    tokens = (torch.from_numpy(some).to(device) for some in _batches(prompts, batch))
    return np.concatenate([influence_and_loss(model, part, 1)[0].double().cpu().numpy() for part in tokens])


def _influence_by_layer(model: PreTrainedModel, prompts: TokenIds, batch: int) -> Array:
    """The norm of the gradient of the largest probability of the next token at the entry of each layer: [N, L, n]."""
    return np.concatenate([_entries_of_layers(model, some) for some in _batches(prompts, batch)])


def _entries_of_layers(model: PreTrainedModel, prompts: TokenIds) -> Array:
    embed = model.get_input_embeddings()
    embeddings = embed(torch.from_numpy(prompts).to(embed.weight.device)).detach().requires_grad_()
    out = model(inputs_embeds=embeddings.clone(), use_cache=False, logits_to_keep=1, output_hidden_states=True)
    most_likely = out.logits[:, -1].float().softmax(-1).amax(-1).sum()
    entries = out.hidden_states[:-1]  # what the last layer leaves is the entry of none
    norms = [gradient.double().norm(dim=-1) for gradient in torch.autograd.grad(most_likely, entries)]
    return np.asarray(torch.stack(norms, 1).cpu())
