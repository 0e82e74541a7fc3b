"""What would decide a claim that is undecided: how many seeds or prompts its open rows need, or why no number does."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, nctdtr

from position_bias.statistics import t_quantile

MISSED = 0.2  # how often rows are to be left open that could be decided, all of them together
SPREADS = 0.8  # share of the interval of the spread that a number is given for
MOST = 2000  # units that anybody would think of
TOO_FAR, TOO_NEAR = 10, 0.5  # times the units there are; standard errors from the nearest bound


class Needed(NamedTuple):
    """Units that a row needs: at the least spread that the data allow, at the observed one, at the largest."""

    least: float
    likely: float
    most: float


def units_needed(low: float, high: float, n: float, bounds: tuple[float, ...], open_rows: int, level: float) -> Needed:
    """The fewest units with which a row of an interval of `level` over `n` would be decided, infinite beyond MOST.

    The row is taken to lie where it was seen; its power against the nearest bound has to be 1 - MISSED / `open_rows`.
    """
    error = (high - low) / 2 / float(t_quantile((1 + level) / 2, n - 1))
    distance = min(abs((low + high) / 2 - bound) for bound in bounds)
    if distance < TOO_NEAR * error:
        return Needed(np.inf, np.inf, np.inf)
    ends = [np.sqrt((n - 1) / chdtri(n - 1, share)) for share in ((1 - SPREADS) / 2, (1 + SPREADS) / 2)]
    counts = np.arange(2, MOST + 1)
    threshold = t_quantile((1 + level) / 2, counts - 1)
    needed = []
    for spread in (ends[0], 1.0, ends[1]):
        shift = distance / (spread * error * np.sqrt(n)) * np.sqrt(counts)
        enough = nctdtr(counts - 1, shift, threshold) <= MISSED / open_rows
        needed.append(float(counts[enough.argmax()]) if enough.any() else np.inf)
    return Needed(*needed)


def range_needed(
    rows: Sequence[tuple[float, float, float, tuple[float, ...]]], unit: str, least: int, level: float
) -> str:
    """In words, what would decide the open `rows` (low, high, n, bounds) of a claim, in units of this name."""
    if not rows:
        return "none: there is no row that more of the same would decide"
    each = [units_needed(*row, len(rows), level) for row in rows]
    start, end = (max(getattr(row, name) for row in each) for name in ("least", "most"))
    if start > TOO_FAR * max(n for _, _, n, _ in rows):
        return f"none: no number of {unit} that can be had, since an effect lies at the edge of its margin"
    start, end = max(start, least), max(end, least)
    upto = f"more than {MOST:,}" if end == np.inf else f"{end:.0f}"
    return f"{start:.0f} {unit}" if start == end else f"{start:.0f} to {upto} {unit}"
