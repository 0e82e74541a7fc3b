"""The position card of any decoder: where in a prompt words count.

`measure` measures a model in memory and returns its `Card`, which is drawn, shown and saved; `load` opens one that was
saved. `documents` measures where in a prompt the documents belong that hold an answer. What they refuse, they refuse by
an `InputError`, in one line with the remedy. They are imported when they are asked for, since torch takes seconds that
the help of the command must not cost.
"""

from importlib import import_module
from typing import Any

__all__ = ["Card", "InputError", "documents", "load", "measure"]

_MODULES = {"measure": "card.call", "documents": "card.call", "Card": "card.card", "load": "card.card"}
_MODULES |= {"InputError": "core.runtime"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
