"""This module measures the influence of each input token on the next-token prediction (structural, Section 6.3)."""

import torch
from torch import Tensor
from transformers import PreTrainedModel


def influence(model: PreTrainedModel, tokens: Tensor) -> Tensor:
    """Return || d p(y* | x) / d e_j ||_2 of every position j, for a batch of prompts: int64 [B, n] -> float32 [B, n].

    y* is the model's own most likely next token at the last position, e_j the input embedding of token j.
    The parameters of `model` should not require gradients: only the activations' are needed.
    """
    embeddings = model.get_input_embeddings()(tokens).detach().requires_grad_()
    given = embeddings.clone()  # some models scale what they are given in place, which no leaf allows
    logits = model(inputs_embeds=given, use_cache=False, logits_to_keep=1).logits[:, -1]
    most_likely = logits.float().softmax(-1).amax(-1)
    (gradient,) = torch.autograd.grad(most_likely.sum(), embeddings)  # prompts do not interact: one backward pass
    return gradient.float().norm(dim=-1)
