"""Hold the norm of the first token's residual stream, at the entry of every block, at what other tokens have there.

In many trained decoders the stream of the first token is hundreds of times as long as others (massive activations, Sun
et al. 2024), and most heads attend to it. A hook makes it as long as the others; its direction stays.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from position_card.probe import forward
from position_card.probe.layout import find_layout, hooked, stream_of
from position_card.rollout.attention import Array


@contextmanager
def holding_first_norm(model: PreTrainedModel, tokens: Tensor) -> Iterator[Array]:
    """Scale the first token's stream at the entry of every block to the mean norm of the other tokens there.

    The mean is over prompts `tokens`, int64 [B, n], as they pass once with the first token held in the blocks before.
    It is yielded, float64 [L], and stays as it is: no later token changes what an earlier one is scaled to. A pass that
    goes on from a cache has no first token, and nothing is scaled. Raises InputError where the blocks are not found.
    """
    hold = _Hold([layer.block for layer in find_layout(model, tokens[:1]).layers])
    with hooked(hold.handles(model)):
        with torch.no_grad():
            model(tokens, use_cache=False, logits_to_keep=1)
        hold.settled = True
        yield np.array([float(norm) for norm in hold.norms])


class _Hold:
    """The norms that the first token has at the entry of blocks: they settle in the first pass."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        self.blocks = blocks
        self.norms: list[Tensor] = []
        self.settled = self.begins = False

    def handles(self, model: PreTrainedModel) -> Iterator[Any]:
        """Register the hooks on a model and its blocks, and yield their handles."""
        yield model.register_forward_pre_hook(self.enter_model, with_kwargs=True)
        for place, block in enumerate(self.blocks):
            yield block.register_forward_pre_hook(partial(self.enter_block, place), with_kwargs=True)

    def enter_model(self, _model: nn.Module, _args: Any, arguments: dict[str, Any]) -> None:
        """Note whether the pass begins with the first token of a prompt, and not behind a cache."""
        cache = arguments.get(forward.CACHE)
        self.begins = cache is None or cache.get_seq_length() == 0

    def enter_block(
        self, place: int, _block: nn.Module, args: tuple[Any, ...], arguments: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return the arguments of a block with the first token at its norm; None where the pass has no first token.

        In the first pass this norm is found: the mean over the other tokens of all prompts.
        """
        if not self.begins:
            return None
        stream = stream_of(args, arguments)
        if not self.settled:
            self.norms.append(stream[:, 1:].detach().norm(dim=-1).mean())
        first = stream[:, :1]
        first = first * (self.norms[place] / first.norm(dim=-1, keepdim=True))
        held = torch.cat([first, stream[:, 1:]], 1)
        return ((held, *args[1:]), arguments) if args else (args, {**arguments, "hidden_states": held})
