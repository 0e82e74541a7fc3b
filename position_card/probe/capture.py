"""This module shows what attention computes with, for every architecture that transformers' interface reaches.

A module of transformers that uses the attention interface asks it in every pass for the function of its attention, and
calls that with its queries and keys, after any rotation, its additive mask and its scaling. While modules are heard,
the interface hands out the same functions, each behind one that tells a listener what passes. So the attention of a
model keeps its name, which code of transformers asks for, and soft caps, sinks and grouped heads stay as they are.
Something else may also compute the attention of a module meanwhile.
"""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, wraps
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import AttentionInterface

from position_card.core.runtime import InputError

MASK = "attention_mask"  # the argument of such a function
HANDS_OUT = "get_interface"  # the method of the interface that modules ask for the function of their attention


@dataclass(frozen=True)
class AttentionInputs:
    """What the attention of one layer computes with, for a batch of B prompts of n tokens."""

    query: Tensor  # [B, H, n, d], as the softmax sees it
    key: Tensor  # [B, H or fewer, n, d], likewise
    mask: Tensor | None  # [B or 1, H or 1, n, n], added to the logits; None: causal attention
    scaling: float  # of the products of queries and keys
    value: Tensor | None = None  # [B, H or fewer, n, d], likewise

    def logits(self, causal: Tensor) -> Tensor:
        """Return what a softmax would turn into weights, float32 [B, H, n, n]; `causal` [n, n] says what is read."""
        key = self.key.repeat_interleave(self.query.shape[1] // self.key.shape[1], dim=1)
        logits = self.query.float() @ key.float().mT * self.scaling
        return logits.masked_fill(~causal, -torch.inf) if self.mask is None else logits + self.mask.float()

    def reads(self, causal: Tensor) -> Tensor:
        """Return which tokens (rows) read which (columns) in any head of the first prompt, bool [n, n].

        `causal`, bool [n, n], says the same of causal attention, beyond which the mask admits nothing.
        """
        if self.mask is None:
            return causal
        return causal & (self.mask[0] > torch.finfo(self.mask.dtype).min / 2).any(0)

    def reads_of_rows(self, rows: slice) -> Tensor:
        """Return which keys some rows read by the mask in any head of the first prompt, [r, n]."""
        assert self.mask is not None
        return (self.mask[0, :, rows] > torch.finfo(self.mask.dtype).min / 2).any(0)

    def block(self, rows: slice, keys: slice) -> "AttentionInputs":
        """Return the same of some rows and keys alone."""
        mask = None if self.mask is None else self.mask[..., rows, keys]
        value = None if self.value is None else self.value[:, :, keys]
        return AttentionInputs(self.query[:, :, rows], self.key[:, :, keys], mask, self.scaling, value)


@dataclass(frozen=True)
class AttentionCall:
    """A call of the function that computes the attention of a module."""

    module: nn.Module
    inputs: AttentionInputs
    function: Callable[..., Any]
    bound: inspect.BoundArguments

    def eager(self, inputs: AttentionInputs) -> tuple[Tensor, Tensor | None]:
        """Call the function as the module calls it, with these inputs: the output [B, n, H, d], and the weights."""
        arguments = dict(self.bound.arguments)
        _, query, key, value, *_ = arguments
        arguments |= {query: inputs.query, key: inputs.key, value: inputs.value}
        if MASK in arguments:
            arguments[MASK] = inputs.mask
        bound = inspect.BoundArguments(self.bound.signature, OrderedDict(arguments))
        out, weights = self.function(*bound.args, **bound.kwargs)
        return out, weights

    def in_float32(self) -> "AttentionCall":
        """Return the same call with inputs in float32."""
        inputs = self.inputs
        parts = (inputs.query, inputs.key, inputs.mask, inputs.value)
        query, key, mask, value = (None if part is None else part.detach().float() for part in parts)
        assert query is not None
        assert key is not None
        return replace(self, inputs=AttentionInputs(query, key, mask, inputs.scaling, value))


Listener = Callable[[AttentionInputs], None]
Substitute = Callable[[AttentionCall], tuple[Tensor, Tensor | None]]

_listeners: dict[nn.Module, Listener] = {}
_substitutes: dict[nn.Module, Substitute] = {}
_watch = ExitStack()  # what the interface hands out meanwhile
_lock = Lock()  # of all three


@contextmanager
def listening(listeners: Mapping[nn.Module, Listener]) -> Iterator[None]:
    """Have the attention modules named in `listeners` tell theirs what they compute with, while the context is open.

    Modules that do not use the interface tell nothing. The interface is one for all models of a process; it is as it
    was when the last of several contexts closes. Raises InputError where a module is heard already, in another thread.
    """
    with _entered(_listeners, listeners):
        yield


@contextmanager
def substituting(substitutes: Mapping[nn.Module, Substitute]) -> Iterator[None]:
    """Have substitutes compute the attention of these modules while the context is open; else as `listening`."""
    with _entered(_substitutes, substitutes):
        yield


@contextmanager
def _entered(entries: dict[nn.Module, Any], additions: Mapping[nn.Module, Any]) -> Iterator[None]:
    """Add others to the entries of a dictionary while the context is open, and watch the interface meanwhile."""
    with _lock:
        if entries.keys() & additions.keys():
            raise InputError("this model is measured already, in another thread; wait for it, or copy the model")
        if not _listeners and not _substitutes and additions:
            _watch.enter_context(_watching())
        entries.update(additions)
    try:
        yield
    finally:
        with _lock:
            for attention in additions:
                del entries[attention]
            if not _listeners and not _substitutes:
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
    """Return the same function, which tells the listener of its module what it is given, by place or by name.

    The substitute of the module, if it has one, computes in its place.
    """

    @wraps(attention)
    def function(*args: Any, **keywords: Any) -> Any:
        bound = _signature(attention).bind(*args, **keywords)
        arguments = bound.arguments
        module, query, key, value, *_ = arguments.values()
        listener, substitute = _listeners.get(module), _substitutes.get(module)
        if listener or substitute:
            scaling = arguments.get("scaling")
            scaling = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
            inputs = AttentionInputs(query, key, arguments.get(MASK), scaling, value)
            if listener:
                listener(inputs)
            if substitute:
                return substitute(AttentionCall(module, inputs, attention, bound))
        return attention(*args, **keywords)

    return function


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)
