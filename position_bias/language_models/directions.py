"""How influence adds up is seen by changing the directions of gradients on their way back, and nothing else.

A gradient is a vector. What comes back to a token from later ones adds in sums where it points the same way, and in
squares where its directions are unrelated. So the gradient at the end of every block, which is where the next one
begins, is changed token by token. Lengths stay, and so do all weights; the model's architecture need not be known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor, nn
from transformers import PreTrainedModel

from position_bias.language_models.influence import differentiated, prediction
from position_bias.language_models.layout import first_of, hooked
from position_bias.running import runtime


@dataclass(frozen=True)
class Directions:
    """Which changes are made, from how many draws each, by which seed."""

    ways: tuple[str, ...]  # of CHANGES
    draws: int
    seed: int
    terms: bool = False  # whether what comes back through attention is taken apart as well (`terms`)
    rollouts: int = 0  # draws from which influence is predicted by forward passes alone (`squares`)


def _signs(gradient: Tensor, generator: Generator) -> Tensor:
    """Each token's gradient times 1 or -1: only what it has to do with that of another token is gone."""
    return gradient * (2 * torch.randint(0, 2, (len(gradient), 1), generator=generator) - 1).to(gradient)


def _same(gradient: Tensor, generator: Generator) -> Tensor:
    """Each token's length, in one direction for all tokens."""
    return _lengths(gradient) * _unit(1, gradient, generator)


def _unrelated(gradient: Tensor, generator: Generator) -> Tensor:
    """Each token's length, in a direction of its own."""
    return _lengths(gradient) * _unit(len(gradient), gradient, generator)


def _rotated(gradient: Tensor, generator: Generator) -> Tensor:
    """All gradients turned together, so that angles between tokens stay and those to the weights go."""
    width = gradient.shape[-1]
    turn, upper = torch.linalg.qr(torch.randn(width, width, generator=generator))
    return gradient @ (turn * upper.diagonal().sign()).to(gradient)  # these signs make every rotation equally likely


CHANGES: Mapping[str, Callable[[Tensor, Generator], Tensor]] = {
    "signs": _signs,
    "same": _same,
    "unrelated": _unrelated,
    "rotated": _rotated,
}


def changed_influence(
    model: PreTrainedModel, blocks: Sequence[nn.Module], tokens: Tensor, asked: Directions, target: str | int = "p"
) -> dict[str, Tensor]:
    """Return the influence of every position under each way of changing directions, float32 [B, draws, n].

    `tokens` are prompts [B, n], and influence and `target` are as in `influence_and_loss`. What is drawn for a prompt
    depends on the seed, the way, the draw and the prompt alone, not on what is measured before it or beside it.
    """
    if not asked.ways:
        return {}
    change: Callable[[Tensor], Tensor]

    def listen(_module: nn.Module, _args: object, out: object) -> None:
        first_of(out).register_hook(lambda gradient: change(gradient))

    with hooked(block.register_forward_hook(listen) for block in blocks):
        embeddings, logits = prediction(model, tokens, 1)
    said = differentiated(logits[:, -1].float(), target).sum()
    found = {}
    for way in asked.ways:
        drawn = []
        for draw in range(asked.draws):
            change = partial(_change, way, [generator(asked.seed, way, draw, prompt) for prompt in tokens])
            (gradient,) = torch.autograd.grad(said, embeddings, retain_graph=True)
            drawn.append(gradient.float().norm(dim=-1))
        found[way] = torch.stack(drawn, 1)
    return found


def _change(way: str, generators: Sequence[Generator], gradient: Tensor) -> Tensor:
    """The gradients of a batch, [B, n, width], changed prompt by prompt."""
    of_prompts = gradient.float().view(len(generators), -1, gradient.shape[-1])
    changed = [CHANGES[way](one, generator) for one, generator in zip(of_prompts, generators, strict=True)]
    return torch.stack(changed).view(gradient.shape).to(gradient.dtype)


def generator(seed: int, way: str, draw: int, prompt: Tensor) -> Generator:
    """What random numbers of one draw for one prompt [n] come from, whatever is drawn before or beside it."""
    return Generator().manual_seed(runtime.seed(seed, way, draw, *prompt.tolist()))


def _lengths(gradient: Tensor) -> Tensor:
    return gradient.norm(dim=-1, keepdim=True)


def _unit(vectors: int, gradient: Tensor, generator: Generator) -> Tensor:
    drawn = torch.randn(vectors, gradient.shape[-1], generator=generator).to(gradient)
    return drawn / _lengths(drawn)
