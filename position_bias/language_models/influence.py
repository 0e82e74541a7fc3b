"""This module measures the influence of each input token on the next-token prediction (structural, Section 6.3)."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel


def influence_and_loss(
    model: PreTrainedModel, tokens: Tensor, latest: int, target: str | int = "p"
) -> tuple[Tensor, Tensor]:
    """Return || d p(y* | x) / d e_j ||_2 of every position j, float32 [B, n], and the `loss` [B], from the same pass.

    `tokens` are a batch of prompts, int64 [B, n]. y* is the model's own most likely next token at the last position,
    e_j the input embedding of token j. Another `target` than its probability is differentiated where one is named
    (`differentiated`). The parameters of `model` should not require gradients: only the activations'
    are needed.
    """
    embeddings, logits = prediction(model, tokens, latest)
    said = differentiated(logits[:, -1].float(), target)
    (gradient,) = torch.autograd.grad(said.sum(), embeddings)  # prompts do not interact: one backward pass
    return gradient.float().norm(dim=-1), _cross_entropy(logits, tokens)


def differentiated(logits: Tensor, target: str | int) -> Tensor:
    """What influence is the gradient of, [B], from the logits [B, V] of the next token.

    "p": the probability of the most likely token; "log-p": its logarithm; "contrast": its logit less that of the
    second; a number: the probability of the token with that id.
    """
    match target:
        case "p":
            return logits.softmax(-1).amax(-1)
        case "log-p":
            return logits.log_softmax(-1).amax(-1)
        case "contrast":
            first, second = logits.topk(2).values.unbind(-1)
            return first - second
        case int():
            return logits.softmax(-1)[:, target]
    raise ValueError(f"target {target!r} is none of p, log-p, contrast and the id of a token")


def prediction(model: PreTrainedModel, tokens: Tensor, latest: int) -> tuple[Tensor, Tensor]:
    """Return input embeddings [B, n, width] that require gradients, and logits of the last `latest` + 1 positions."""
    embeddings = model.get_input_embeddings()(tokens).detach().requires_grad_()
    given = embeddings.clone()  # some models scale what they are given in place, which no leaf allows
    return embeddings, model(inputs_embeds=given, use_cache=False, logits_to_keep=latest + 1).logits[:, -latest - 1 :]


@torch.no_grad()
def loss(model: PreTrainedModel, tokens: Tensor, latest: int) -> Tensor:
    """Return the mean cross entropy of the `latest` tokens, each given all before it, in nats: [B, n] -> float32 [B].

    `latest` is at least 1 and less than n.
    """
    logits = model(tokens, use_cache=False, logits_to_keep=latest + 1).logits[:, -latest - 1 :]
    return _cross_entropy(logits, tokens)


def _cross_entropy(logits: Tensor, tokens: Tensor) -> Tensor:
    """Of the last tokens [B, n], from the logits of as many positions and of one more."""
    said = logits[:, :-1].detach().float()
    expected = tokens[:, -said.shape[1] :]
    # Flattened, since a sum over classes that are not neighbours in memory loses up to 3e-4 nats to rounding.
    return cross_entropy(said.flatten(0, 1), expected.flatten(), reduction="none").view_as(expected).mean(-1)
