"""This module tells how a layer of any architecture turns its queries and keys, by the call that turns them."""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import RLock, get_ident
from typing import Any

import torch
from torch import Tensor, nn

_lock = RLock()  # of the functions that are replaced
ROTATE = "apply_rotary_pos_emb"  # the name that files of transformers give to the function that turns them

QueryKey = tuple[Tensor, Tensor]  # queries [B, H, n, d] and keys of as many or fewer heads


@dataclass(frozen=True)
class Rotation:
    """How one layer turns queries and keys by their positions, 0 to n - 1 for some n."""

    function: Callable[..., QueryKey]
    settings: Mapping[str, Any]  # all arguments but queries and keys, cos and sin among them
    width: int  # coordinates of a head that are handed to the function; the others do not turn

    @property
    def device(self) -> torch.device:
        """The device where queries and keys have to be."""
        return self.settings["cos"].device

    def turn(self, query: Tensor, key: Tensor) -> QueryKey:
        """Return queries and keys as the softmax sees them."""
        return self._apply(query, key, self.settings)

    def undo(self, query: Tensor, key: Tensor) -> QueryKey:
        """Return queries and keys as they were before they were turned."""
        cosine, sine = self.settings["cos"], self.settings["sin"]
        squared = cosine.float().square() + sine.float().square()  # above 1 where a long context is scaled
        return self._apply(query, key, {**self.settings, "cos": cosine / squared, "sin": -sine / squared})

    def _apply(self, query: Tensor, key: Tensor, settings: Mapping[str, Any]) -> QueryKey:
        """Rotate the first `width` coordinates of queries and keys with these settings, and leave the others."""
        rotated = self.function(query[..., : self.width], key[..., : self.width], **settings)
        pairs = zip(rotated, (query, key), strict=True)
        query, key = (torch.cat([part, whole[..., self.width :]], -1) for part, whole in pairs)
        return query, key


@contextmanager
def listening(attentions: Iterable[nn.Module], tell: Callable[[Rotation, QueryKey, QueryKey], None]) -> Iterator[None]:
    """Call `tell` at each rotation in these attention modules while the context is open.

    It is given the rotation, and queries and keys before and after it. The function that rotates is replaced in the
    files of transformers meanwhile, by one thread at a time. Rotations of other threads are not seen, nor are functions
    of another name or without arguments cos and sin.
    """
    files = {sys.modules[type(attention).__module__] for attention in attentions}
    with _lock:
        functions = {file: vars(file)[ROTATE] for file in files if ROTATE in vars(file)}
        try:
            for file, function in functions.items():
                setattr(file, ROTATE, partial(_turn, function, tell, get_ident()))
            yield
        finally:
            for file, function in functions.items():
                setattr(file, ROTATE, function)


def _turn(
    function: Callable[..., QueryKey], tell: Callable[..., None], thread: int, *args: Any, **keywords: Any
) -> QueryKey:
    result = function(*args, **keywords)
    if get_ident() != thread:
        return result
    (_, query), (_, key), *rest = inspect.signature(function).bind(*args, **keywords).arguments.items()
    settings = dict(rest)
    if {"cos", "sin"} <= set(settings):
        tell(Rotation(function, settings, query.shape[-1]), (query, key), result)
    return result
