"""This module measures the influence of each input token on the next-token prediction (structural, Section 6.3)."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel


class Seen(NamedTuple):
    """What one forward and backward pass says of B prompts of n tokens; float32."""

    influence: Tensor  # [B, n]
    loss: Tensor  # nats a token, the mean over the latest tokens of each prompt [B]


def influence(model: PreTrainedModel, tokens: Tensor) -> Tensor:
    """Return || d p(y* | x) / d e_j ||_2 of every position j, for a batch of prompts: int64 [B, n] -> float32 [B, n].

    y* is the model's own most likely next token at the last position, e_j the input embedding of token j.
    The parameters of `model` should not require gradients: only the activations' are needed.
    """
    return _gradient_norms(*_embeddings_and_logits(model, tokens, 1))


def influence_and_loss(model: PreTrainedModel, tokens: Tensor, latest: int) -> Seen:
    """The influence, and in the same pass the cross entropy of the `latest` tokens, each given all before it.

    `latest` is at least 1 and less than n.
    """
    embeddings, logits = _embeddings_and_logits(model, tokens, latest + 1)
    said = logits[:, :-1].detach().float().transpose(1, 2)
    loss = cross_entropy(said, tokens[:, -latest:].to(said.device), reduction="none")
    return Seen(_gradient_norms(embeddings, logits), loss.mean(-1))


def _embeddings_and_logits(model: PreTrainedModel, tokens: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    """Embeddings [B, n, d], which gradients can be taken of, and the logits of the last `kept` positions."""
    embeddings = model.get_input_embeddings()(tokens).detach().requires_grad_()
    given = embeddings.clone()  # some models scale what they are given in place, which no leaf allows
    return embeddings, model(inputs_embeds=given, use_cache=False, logits_to_keep=kept).logits[:, -kept:]


def _gradient_norms(embeddings: Tensor, logits: Tensor) -> Tensor:
    most_likely = logits[:, -1].float().softmax(-1).amax(-1)
    (gradient,) = torch.autograd.grad(most_likely.sum(), embeddings)  # prompts do not interact: one backward pass
    return gradient.float().norm(dim=-1)
