"""This module shows what attention computes with, for every architecture that transformers' interface reaches.

A module of transformers that uses the attention interface calls one registered function with its queries and keys,
after any rotation, its additive mask and its scaling. The function that is registered here hands all of it to the eager
attention that the module's own file defines, and tells a listener what passed. So soft caps, sinks and grouped heads
stay as they are.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

WATCHED = "position-bias"  # the name of this function among the attention functions of transformers
OWN = "eager_attention_forward"  # the name that every file of transformers gives its own


@dataclass(frozen=True)
class AttentionInputs:
    """What the attention of one layer computes with, for a batch of B prompts of n tokens."""

    query: Tensor  # [B, H, n, d], as the softmax sees it
    key: Tensor  # [B, H or fewer, n, d], likewise
    mask: Tensor | None  # [B or 1, H or 1, n, n], added to the logits; None: causal attention
    scaling: float  # of the products of queries and keys

    def logits(self, causal: Tensor) -> Tensor:
        """What a softmax would turn into weights, float32 [B, H, n, n]; `causal` [n, n] says what may be read."""
        key = self.key.repeat_interleave(self.query.shape[1] // self.key.shape[1], dim=1)
        logits = self.query.float() @ key.float().mT * self.scaling
        return logits.masked_fill(~causal, -torch.inf) if self.mask is None else logits + self.mask.float()

    def reads(self, causal: Tensor) -> Tensor:
        """Return which tokens read which in any head of the first prompt, [n, n]."""
        if self.mask is None:
            return causal
        return causal & (self.mask[0] > torch.finfo(self.mask.dtype).min / 2).any(0)


Hear = Callable[[AttentionInputs], None]

_listeners: dict[nn.Module, Hear] = {}


def uses_interface(attention: nn.Module) -> bool:
    """Whether an attention module calls the function that its configuration names."""
    names = vars(sys.modules[type(attention).__module__])
    return OWN in names and "ALL_ATTENTION_FUNCTIONS" in names


@contextmanager
def heard(model: PreTrainedModel, listeners: Mapping[nn.Module, Hear]) -> Iterator[None]:
    """Have the attention modules named in `listeners` tell theirs what they compute with, while the context is open.

    All modules must use the interface. The attention of `model` is eager meanwhile, and what it was before afterwards.
    """
    before = model.config._attn_implementation
    try:
        _listeners.update(listeners)
        model.set_attn_implementation(WATCHED)
        yield
    finally:
        model.set_attn_implementation(before)
        for attention in listeners:
            del _listeners[attention]


def _watched(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *args: Any, **named: Any
) -> tuple[Tensor, Tensor]:
    if hear := _listeners.get(module):
        scaling = named.get("scaling")
        hear(AttentionInputs(query, key, mask, query.shape[-1] ** -0.5 if scaling is None else float(scaling)))
    own: Callable[..., tuple[Tensor, Tensor]] = vars(sys.modules[type(module).__module__])[OWN]
    return own(module, query, key, value, mask, *args, **named)


ALL_ATTENTION_FUNCTIONS.register(WATCHED, _watched)
ALL_MASK_ATTENTION_FUNCTIONS.register(WATCHED, eager_mask)
