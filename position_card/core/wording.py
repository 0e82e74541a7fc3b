"""Parts of sentences that cards, figures and scorecards say alike: lists of names, and counts of things."""

from collections.abc import Sequence


def enumeration(names: Sequence[str]) -> str:
    """Join names with commas, and `and` before the last."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun, such as 1 head or 2 heads."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
