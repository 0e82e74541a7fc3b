"""The layout of a model for prompts so long that its attention is streamed.

It is found and proved on the first tokens of a prompt, as that of any prompt. On these tokens, streamed attention must
give the logits of the model's own, and, where layers are computed again, its gradients. Windows and rotations are then
read at the whole length, from one forward pass in which every module tries on this prompt how its attention is
streamed.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from position_card.core.runtime import log
from position_card.probe import forward, rotation
from position_card.probe.layout import IRREGULAR, Layout, find_layout, hooked, is_close, refusal, tolerance
from position_card.probe.rotation import QueryKey, Rotation
from position_card.probe.streaming import Streaming

PROVED = 256  # tokens on which the layout is proved: two blocks of rows
GRADIENT = 10  # times the tolerance of what is computed forwards: sums are longer


def find_long_layout(model: PreTrainedModel, streaming: Streaming, tokens: Tensor) -> Layout | None:
    """Return the layout of a model at the length of `tokens` [1, n], more than PROVED; None where it is not streamed.

    The log says then why. Raises InputError as `find_layout` does.
    """
    beginning = tokens[:, :PROVED]
    layout = find_layout(model, beginning)
    if fault := _fault(model, streaming, layout, beginning):
        log.info("no matrix of attention is spared in %d tokens: %s", tokens.shape[1], fault)
        return None
    return _at_length(model, streaming, layout, tokens)


def _fault(model: PreTrainedModel, streaming: Streaming, layout: Layout, tokens: Tensor) -> str | None:
    """Say why attention cannot be streamed, as tried on a few tokens; None where it can."""
    logits, gradient = _differentiated(model, tokens)
    with forward.recomputing([layer.block for layer in layout.layers]), streaming.attending(shortest=1):
        streamed_logits, streamed_gradient = _differentiated(model, tokens)
    n = tokens.shape[1]
    if any((layer.attention, n) not in streaming.ways for layer in layout.layers):
        return "not all of its layers use the attention interface of transformers"
    if not is_close(streamed_logits, logits):
        return "the logits of its prediction are others"
    difference = (streamed_gradient.float() - gradient.float()).abs().max()
    if difference > GRADIENT * tolerance(gradient.dtype) * gradient.float().abs().max():
        return "the gradient of its prediction is another"
    return None


@torch.enable_grad()
def _differentiated(model: PreTrainedModel, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits after a prompt, and the gradient of the largest probability at its embeddings."""
    embeddings = forward.embed(model, tokens).detach().requires_grad_()
    logits = forward.last_logits(model, embeddings, 1)[:, -1]
    (gradient,) = torch.autograd.grad(logits.float().softmax(-1).amax(), embeddings)
    return logits.detach(), gradient


@torch.no_grad()
def _at_length(model: PreTrainedModel, streaming: Streaming, layout: Layout, tokens: Tensor) -> Layout:
    """Return the layout with windows and rotations as they are at the length of `tokens` [1, n]."""
    rotations: dict[int, Rotation] = {}
    running = [0]

    def enter(place: int, *_: Any) -> None:
        running[0] = place

    def take_rotation(turning: Rotation, before: QueryKey, after: QueryKey) -> None:
        if all(map(is_close, turning.undo(*after), before)):
            rotations[running[0]] = turning

    def hooks() -> Iterator[Any]:
        for place, layer in enumerate(layout.layers):
            yield layer.block.register_forward_pre_hook(partial(enter, place))

    attentions: list[nn.Module] = [layer.attention for layer in layout.layers]
    embeddings = forward.embed(model, tokens)
    with hooked(hooks()), rotation.listening(attentions, take_rotation), streaming.attending(shortest=1):
        forward.last_logits(model, embeddings, 1)
    ways = [streaming.ways[attention, tokens.shape[1]] for attention in attentions]
    if not all(way.regular for way in ways):
        raise refusal(model, IRREGULAR)
    layers = (
        replace(layer, window=way.window, rotation=rotations.get(place) if layer.rotation else None)
        for place, (layer, way) in enumerate(zip(layout.layers, ways, strict=True))
    )
    return replace(layout, layers=tuple(layers))
