"""What comes back through attention is taken apart, layer by layer: through which terms, and how it adds up.

A second backward pass has queries and keys as constants, and is given the measured gradients again at the end of every
block. So what it finds in a layer is of that layer alone: at the layer's entry, the part of the measured gradient that
comes back through values. Where the gradient at each token of the layer's update has a random sign, the parts that come
back from different tokens add in squares on average; where each head's output has one, too, so do those of heads; and
random directions of the same lengths tell what the Frobenius norm of the weights would bring back.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from transformers import PreTrainedModel

from position_bias.language_models import capture
from position_bias.language_models.directions import CHANGES, Directions, generator
from position_bias.language_models.influence import differentiated, prediction
from position_bias.language_models.layout import Layout, first_of, hooked, stream_of

# How the gradient at the update is changed, and whether heads have signs of their own
PASSES = {"values": (None, False), "queries": ("signs", False), "heads": ("signs", True), "random": ("unrelated", True)}


class _Layers:
    """The gradients of one prompt at every layer, and what the backward pass under way does to them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.measured: dict[int, Tensor] = {}  # at the entry of each block, by the first backward pass
        self.past: dict[int, Tensor] = {}  # at x + u, where what comes back through attention has not been added yet
        self.found: dict[int, Tensor] = {}  # what came back through attention, [n, width]
        self.way: str | None = None  # how the gradient at the update is changed
        self.by_head = False  # whether that of each head has signs, too
        self.drawn = Generator()

    def hooks(self) -> Iterator[Any]:
        """Have every gradient of a forward pass come by here."""
        for place, layer in enumerate(self.layout.layers):
            yield layer.block.register_forward_pre_hook(partial(self.enter, place), with_kwargs=True)
            yield layer.update.module.register_forward_hook(partial(self.update, place))

    def enter(self, place: int, _module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        stream_of(args, named).register_hook(partial(self.at_entry, place))

    def update(self, place: int, _module: nn.Module, _args: object, out: object) -> None:
        first_of(out).register_hook(partial(self.at_update, place))

    def at_entry(self, place: int, gradient: Tensor) -> Tensor:
        self.found[place] = (gradient - self.past[place].view_as(gradient))[0]
        return self.measured.setdefault(place, gradient)

    def at_update(self, place: int, gradient: Tensor) -> Tensor | None:
        self.past[place] = gradient / self.layout.layers[place].update.scale
        if self.way is None:
            return None
        return CHANGES[self.way](gradient.view(-1, gradient.shape[-1]), self.drawn).view_as(gradient)

    def at_heads(self, gradient: Tensor) -> Tensor | None:
        if not self.by_head:
            return None
        drawn = torch.randint(0, 2, (*gradient.shape[:-1], 1), generator=self.drawn)
        return gradient * (2 * drawn - 1).to(gradient)

    def squares(self) -> Tensor:
        """Squared lengths of what came back through attention, [L, n]."""
        return torch.stack([self.found[place].float().square().sum(-1).cpu() for place in sorted(self.found)])


def terms(
    model: PreTrainedModel, layout: Layout, prompt: Tensor, asked: Directions, target: str | int = "p"
) -> dict[str, Tensor]:
    """Return squared lengths of gradients of one prompt [1, n] at every layer and token, float32 [L, n].

    `attention` is what comes back through all of attention, `values` through values alone; `queries`, `heads` and
    `random` are means over draws of the same with signs by token, with signs by token and head, and with random
    directions as well, unless something follows attention before the sum. `past` is the gradient at x + u, `across`
    twice its product with what comes back through attention, and `mlp` what comes back through the MLP. Queries and
    keys have to be seen, and attention and MLP to follow one another.
    """
    layers = _Layers(layout)
    ends: list[Tensor] = []

    def end(_module: nn.Module, _args: object, out: object) -> None:
        first_of(out).register_hook(ends.append)

    with hooked([*layers.hooks(), layout.layers[-1].block.register_forward_hook(end)]):
        embeddings, logits = prediction(model, prompt, 1)
    _back(embeddings, logits, target, keep=False)
    found = {"attention": layers.squares()}
    past = [layers.past[place].float().view_as(ends[0])[0] for place in range(len(layout.layers))]
    after = [*(layers.measured[place] for place in range(1, len(past))), ends[0]]
    through = [layers.found[place].float() for place in range(len(past))]
    found["past"] = torch.stack([one.square().sum(-1).cpu() for one in past])
    found["across"] = torch.stack([2 * (a * b).sum(-1).cpu() for a, b in zip(past, through, strict=True)])
    found["mlp"] = torch.stack([(a - b.float()[0]).square().sum(-1).cpu() for a, b in zip(past, after, strict=True)])
    with hooked(layers.hooks()), capture.values_alone(layers.at_heads):
        embeddings, logits = prediction(model, prompt, 1)
    followed = any(layer.update.module not in set(layer.attention.modules()) for layer in layout.layers)
    for name, (way, by_head) in PASSES.items():
        if name == "random" and followed:
            continue
        draws = range(asked.draws if way else 1)
        total = torch.zeros_like(found["past"])
        for draw in draws:
            layers.way, layers.by_head = way, by_head
            layers.drawn = generator(asked.seed, name, draw, prompt[0])
            _back(embeddings, logits, target, keep=True)
            total += layers.squares()
        found[name] = total / len(draws)
    return found


def _back(embeddings: Tensor, logits: Tensor, target: str | int, *, keep: bool) -> None:
    torch.autograd.grad(differentiated(logits[:, -1].float(), target).sum(), embeddings, retain_graph=keep)
