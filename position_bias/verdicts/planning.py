"""What would decide an undecided claim: how many seeds or documents its open rows need, or why no number does."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, nctdtr

from position_bias.verdicts.rule import LEAST_SEEDS
from position_card.rollout.statistics import t_quantile

MISSED = 0.2  # how often rows are to be left open that could be decided, all of them together
SPREADS = 0.8  # share of the interval of the spread that a number is given for
MOST_UNITS = 2000  # units that anybody would think of
TOO_FAR = 10  # times the units there are
NEVER = "none: "  # how the words begin where no number of units would do
RANGE = (
    f"{NEVER}a row is a range of known numbers, some on either side of an edge, and sampling more does not narrow it"
)
CONTRADICTION = f"{NEVER}if each row lay where it was seen, measurements of one model would still contradict each other"

ROW = ("low", "high", "n", "bound", "margin")
Row = tuple[float, float, float, float, float]  # of ROW


class UnitsNeeded(NamedTuple):
    """Units that a row needs: at the least spread that the data allow, at the observed one, at the largest."""

    least: float
    likely: float
    most: float


def units_needed(row: Row, open_rows: int, level: float, strict: float) -> UnitsNeeded:
    """Return the fewest units with which an open row would be decided.

    The row has an interval of `level`, and would be decided by one of `strict`. It is taken to lie where it was
    measured. Its power against the nearest edge of the margin has to be 1 - MISSED / `open_rows`, so that all open rows
    together are decided with a probability of 1 - MISSED at least. More than MOST_UNITS is infinite.
    """
    low, high, n, bound, margin = row
    error = (high - low) / 2 / float(t_quantile((1 + level) / 2, n - 1))
    distance = abs(abs((low + high) / 2 - bound) - margin)  # to the nearest edge
    ends = [np.sqrt((n - 1) / chdtri(n - 1, share)) for share in ((1 - SPREADS) / 2, (1 + SPREADS) / 2)]
    fewest = []
    for spread in (ends[0], 1.0, ends[1]):
        effect = distance / (spread * error * np.sqrt(n))

        def enough(units: int, effect: float = effect) -> bool:  # once enough, more of them are, too
            threshold = t_quantile((1 + strict) / 2, units - 1)
            return bool(nctdtr(units - 1, effect * np.sqrt(units), threshold) <= MISSED / open_rows)

        last = 2  # doubled, since far beyond what is enough nctdtr knows no answer
        while last < MOST_UNITS and not enough(last):
            last = min(2 * last, MOST_UNITS)
        counts = range(2, last + 1)
        first = bisect_left(counts, True, key=enough)
        fewest.append(float(counts[first]) if first < len(counts) else np.inf)
    return UnitsNeeded(*fewest)


def range_needed(rows: Sequence[Row], unit: str, level: float, strict: float) -> str:
    """Return in words how many units would decide all the open `rows` of a claim, or why no number does (NEVER).

    `unit` is the name of the units; levels are as in `units_needed`. The range is over SPREADS of the interval of the
    spread.
    """
    of_rows = [units_needed(row, len(rows), level, strict) for row in rows]
    start, end = (max(getattr(row, name) for row in of_rows) for name in ("least", "most"))
    if start > TOO_FAR * max(row[2] for row in rows):
        return f"{NEVER}it would take over {TOO_FAR} times as many {unit}"
    start, end = max(start, LEAST_SEEDS), max(end, LEAST_SEEDS)
    upto = f"more than {MOST_UNITS:,}" if end == np.inf else f"{end:.0f}"
    return f"{start:.0f} {unit}" if start == end else f"{start:.0f} to {upto} {unit}"
