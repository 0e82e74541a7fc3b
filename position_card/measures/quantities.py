"""What one pass measures of a batch of prompts, each quantity in a few lines of torch.

Influence and loss are of the whole model (structural, Section 6.3); residual mixing lambda (structural, Eq. 1), content
logits (structural, Section 6.1) and cosines between the vectors that attention reads (layernorm) are of a layer.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from position_card.measures.recency import FIRST_ROW
from position_card.probe import forward

POSITIONS = 128  # whose logits are brought to float32 at once


def influence_and_loss(
    model: PreTrainedModel, tokens: Tensor, latest: int, target: str | int = "p"
) -> tuple[Tensor, Tensor]:
    """Return || d p(y* | x) / d e_j ||_2 of every position j, float32 [B, n], and the `loss` [B], from the same pass.

    `tokens` are a batch of prompts, int64 [B, n]. y* is the model's own most likely next token at the last position,
    e_j the input embedding of token j. Another `target` than its probability is differentiated where one is named
    (`differentiated`). The parameters of `model` should not require gradients: only those of activations are needed.
    """
    embeddings, logits = prediction(model, tokens, latest)
    values = differentiated(logits[:, -1].float(), target)
    (gradient,) = torch.autograd.grad(values.sum(), embeddings)  # prompts do not interact: one backward pass
    return gradient.float().norm(dim=-1), _cross_entropy(logits, tokens)


def differentiated(logits: Tensor, target: str | int) -> Tensor:
    """Return the target that influence is the gradient of, [B], from the logits [B, V] of the next token.

    "p": the probability of the most likely token; "log-p": its logarithm; "contrast": its logit less that of the
    second; a number: the probability of the token with that id. Raises ValueError for any other target.
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
    embeddings = forward.embed(model, tokens).detach().requires_grad_()
    return embeddings, forward.last_logits(model, embeddings, latest + 1)


@torch.no_grad()
def loss(model: PreTrainedModel, tokens: Tensor, latest: int) -> Tensor:
    """Return the mean cross entropy of the `latest` tokens, each given all before it, in nats: [B, n] -> float32 [B].

    `latest` is at least 1 and less than n.
    """
    return _cross_entropy(forward.last_logits(model, tokens, latest + 1), tokens)


@torch.no_grad()
def losses_of_states(
    model: PreTrainedModel, tokens: Tensor, positions: NDArray[np.int64], states: forward.States
) -> Tensor:
    """Return those `losses` [B, P] that are of some positions [P], from 1 on, of prompts with these hidden states.

    The states are those below the head; POSITIONS tokens pass it at a time.
    """
    parts = []
    for begin in range(0, len(positions), POSITIONS):
        block = positions[begin : begin + POSITIONS]
        targets = tokens[:, block]
        logits = forward.logits_of_states(model, tokens, states, block - 1).float()
        parts.append(cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets))
    return torch.cat(parts, 1)


@torch.no_grad()
def losses(model: PreTrainedModel, tokens: Tensor) -> Tensor:
    """Return the cross entropy of each token but the first, given all before it, in nats: [B, n] -> [B, n - 1].

    Prompts pass one by one, since their logits are large.
    """
    rows = []
    for prompt in tokens:
        logits = forward.last_logits(model, prompt[None], len(prompt))[0, :-1]
        pairs = zip(logits.split(POSITIONS), prompt[1:].split(POSITIONS), strict=True)
        rows.append(torch.cat([cross_entropy(part.float(), targets, reduction="none") for part, targets in pairs]))
    return torch.stack(rows)


def _cross_entropy(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the mean cross entropy [B] of the last tokens of [B, n], from logits that begin one position earlier."""
    predictions = logits[:, :-1].detach().float()
    targets = tokens[:, -predictions.shape[1] :]
    # Flattened, since a sum over classes that are not neighbours in memory loses up to 3e-4 nats to rounding.
    return cross_entropy(predictions.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets).mean(-1)


def squared_norms(stream: Tensor) -> Tensor:
    """Return the squared norm of each token's vector in float32: [B, n, width] -> [B, n]."""
    return stream.detach().float().square().sum(-1)


def frobenius_mixing(residual: Tensor, update: Tensor) -> Tensor:
    """Take Eq. 1 (version 2 of the paper): ||a||_F / (||x||_F + ||a||_F) of a whole sequence.

    `residual` and `update` hold the squared token norms [B, n] of x and a; returns [B].
    """
    x, a = residual.sum(-1).sqrt(), update.sum(-1).sqrt()
    return a / (x + a)


def token_mixing(residual: Tensor, update: Tensor) -> Tensor:
    """Take the mean over tokens of ||a_i|| / (||x_i|| + ||a_i||): version 1 and the released code.

    Arguments and result are as of `frobenius_mixing`.
    """
    x, a = residual.sqrt(), update.sqrt()
    return (a / (x + a)).mean(-1)


def backward_mixing(past: Tensor, entry: Tensor) -> Tensor:
    """Take the share of a gradient that comes back through attention. It is our addition, and no forward prediction.

    `past` is the gradient of a scalar at x + a, `entry` that at x, so that their difference came through attention:
    ||entry - past||_F / (||past||_F + ||entry - past||_F), [B, n, width] twice -> [B].
    """
    past, through = past.flatten(1), (entry - past).flatten(1)
    return through.norm(dim=-1) / (past.norm(dim=-1) + through.norm(dim=-1))


# Proposition 4.5 models content logits as a constant plus an offset on the diagonal. The constant cancels in the
# softmax, so the mean on the diagonal less the mean below it is all that a rollout needs.


def diagonal_mean(query: Tensor, key: Tensor) -> Tensor:
    """Return the mean of the logits q_i.k_i / sqrt(d) over tokens: [B, n, H, d] twice -> [B, H]."""
    return (query * key).sum((1, 3)) / (query.shape[1] * math.sqrt(query.shape[-1]))


def below_diagonal_mean(query: Tensor, key: Tensor) -> Tensor:
    """Return the mean of the logits q_i.k_j / sqrt(d) over j < i, in O(n d): [B, n, H, d] twice -> [B, H]; 0 for n = 1.

    sum_i q_i . (k_1 + ... + k_{i-1}) needs only a running sum of keys.
    """
    n, head_dim = query.shape[1], query.shape[-1]
    earlier_keys = key.cumsum(1)[:, :-1]
    pairs = max(n * (n - 1) // 2, 1)
    return (query[:, 1:] * earlier_keys).sum((1, 3)) / (pairs * math.sqrt(head_dim))


def add_logits(total: Tensor, query: Tensor, key: Tensor) -> None:
    """Add the content logits of a batch, summed over its prompts, to `total` [H, n, n].

    One product [H, n, B d] x [H, B d, n] sums over prompts and head dimension at once: the mean over prompts
    needs no logits of a single prompt.
    """
    query_by_head = query.permute(2, 1, 0, 3).flatten(2)
    key_by_head = key.permute(2, 0, 3, 1).flatten(1, 2)
    total.baddbmm_(query_by_head, key_by_head, alpha=1 / math.sqrt(query.shape[-1]))


# LayerNorm turns the cosines of what attention reads to recent keys (layernorm; there they are the scores of a layer).


def unit_vectors(inputs: Tensor) -> Tensor:
    """Bring the inputs of queries and keys `[B, n, d]` to norm 1, float32."""
    return functional.normalize(inputs.detach().float(), dim=-1)


def add_cosines(total: Tensor, unit: Tensor) -> None:
    """Add the cosines of a batch `[B, n, d]`, summed over its prompts, to `total` [n, n]."""
    flat = unit.transpose(0, 1).flatten(1)
    total.addmm_(flat, flat.T)


def cosine_recency(unit: Tensor) -> Tensor:
    """Take the recency (`recency.recency`) of the cosines of each prompt, in O(n d): [B, n, d] -> [B].

    n must exceed FIRST_ROW. A row's mean over a quarter of its keys is its product with the mean key, which takes a
    running sum.
    """
    rows = torch.arange(FIRST_ROW, unit.shape[1], device=unit.device)
    quarter = (rows // 4).clamp(min=1)
    sums = functional.pad(unit.cumsum(1), (0, 0, 1, 0))  # sums[:, j] is that of the keys before j
    difference = sums[:, rows] - sums[:, rows - quarter] - sums[:, quarter]
    return ((unit[:, FIRST_ROW:] * difference).sum(-1) / quarter).mean(-1)
