"""This module shows what attention computes with, for every architecture that transformers' interface reaches.

A module of transformers that uses the attention interface asks it in every pass for the function of its attention, and
calls that with its queries and keys, after any rotation, its additive mask and its scaling. While modules are heard,
the interface hands out the same functions, each behind one that tells a listener what passes. So the attention of a
model keeps its name, which code of transformers asks for, and soft caps, sinks and grouped heads stay as they are.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import AttentionInterface

from position_card.core.runtime import InputError

HANDS_OUT = "get_interface"  # the method of the interface that modules ask for the function of their attention


@dataclass(frozen=True)
class AttentionInputs:
    """What the attention of one layer computes with, for a batch of B prompts of n tokens."""

    query: Tensor  # [B, H, n, d], as the softmax sees it
    key: Tensor  # [B, H or fewer, n, d], likewise
    mask: Tensor | None  # [B or 1, H or 1, n, n], added to the logits; None: causal attention
    scaling: float  # of the products of queries and keys

    def logits(self, causal: Tensor) -> Tensor:
        """Return what a softmax would turn into weights, float32 [B, H, n, n]; `causal` [n, n] says what is read."""
        key = self.key.repeat_interleave(self.query.shape[1] // self.key.shape[1], dim=1)
        logits = self.query.float() @ key.float().mT * self.scaling
        return logits.masked_fill(~causal, -torch.inf) if self.mask is None else logits + self.mask.float()

    def reads(self, causal: Tensor) -> Tensor:
        """Return which tokens read which in any head of the first prompt, [n, n]."""
        if self.mask is None:
            return causal
        return causal & (self.mask[0] > torch.finfo(self.mask.dtype).min / 2).any(0)


Listener = Callable[[AttentionInputs], None]

_listeners: dict[nn.Module, Listener] = {}
_watch = ExitStack()  # what the interface hands out meanwhile
_lock = Lock()  # of both


@contextmanager
def listening(listeners: Mapping[nn.Module, Listener]) -> Iterator[None]:
    """Have the attention modules named in `listeners` tell theirs what they compute with, while the context is open.

    Modules that do not use the interface tell nothing. The interface is one for all models of a process; it is as it
    was when the last of several contexts closes. Raises InputError where a module is heard already, in another thread.
    """
    with _lock:
        if _listeners.keys() & listeners.keys():
            raise InputError("this model is measured already, in another thread; wait for it, or copy the model")
        if not _listeners and listeners:
            _watch.enter_context(_watching())
        _listeners.update(listeners)
    try:
        yield
    finally:
        with _lock:
            for attention in listeners:
                del _listeners[attention]
            if not _listeners:
                _watch.close()


@contextmanager
def _watching() -> Iterator[None]:
    """Have the interface hand out functions that tell the listener of their module, then its own ones again."""
    original = getattr(AttentionInterface, HANDS_OUT)

    @wraps(original)
    def get_function(*args: Any, **keywords: Any) -> Callable[..., Any]:
        return _with_listener(original(*args, **keywords))

    setattr(AttentionInterface, HANDS_OUT, get_function)
    try:
        yield
    finally:
        setattr(AttentionInterface, HANDS_OUT, original)


def _with_listener(attention: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, which tells the listener of its module what it is given, by place or by name."""

    @wraps(attention)
    def function(*args: Any, **keywords: Any) -> Any:
        arguments = _signature(attention).bind(*args, **keywords).arguments
        module, query, key, *_ = arguments.values()
        if listener := _listeners.get(module):
            scaling = arguments.get("scaling")
            scaling = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
            listener(AttentionInputs(query, key, arguments.get("attention_mask"), scaling))
        return attention(*args, **keywords)

    return function


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)
