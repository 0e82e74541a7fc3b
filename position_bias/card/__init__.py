"""The position card of any decoder: `measure` measures a model in memory, and its card is drawn, shown and saved.

`spans` measures what the spans of one prompt weigh. Both are found when they are asked for, since torch takes seconds
that the help of the command must not cost.
"""


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in ("measure", "spans", "Card"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'card' if name == 'Card' else 'call'}"), name)
