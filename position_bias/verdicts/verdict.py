"""The verdict on a claim: what was predicted, what was measured, and whether the interval settles it.

Predictions and tolerances are fixed before the run that they judge; where one was chosen after seeing an earlier run,
the claim says so. A verdict is computed from artifacts and never typed.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pandas as pd

Relation = Literal[">", "<", "="]
Verdict = Literal["holds", "fails", "not separable", "not testable here"]

PREDICTION = ("relation", "bound", "margin")  # the columns of a prediction

# The schema of every table of checks.
COLUMNS = (
    "claim",  # id in published/claims.csv of the claim that the row speaks of; empty where it speaks of none
    "paper",
    "item",  # figure, table, section or proposition
    "quantity",
    *PREDICTION,
    "measured",
    "low",
    "high",
    "n",  # observations behind the interval: prompts, seeds, layers or comparisons
    "scale",
    "verdict",
    "identity",  # true where networks of any weights have this value, so that the row supports no claim
    "left_out",  # seeds without a value: they diverged in training, or the quantity is not defined for them
    "seen_before",  # seeds behind the interval whose results we knew before the rules of verdicts were fixed
    "source",  # who predicts it, and where
)
# What tells rows apart, in tables that the judge makes: rows of two trainings that are alike in these four are of the
# same quantity. A row without a statistic is like no other.
KEYS = (
    "statistic",  # its name in published/predictions.csv
    "network",
    "other",  # network that is subtracted, or ""
    "setting",  # what else tells it apart
)


@dataclass(frozen=True)
class Prediction:
    """A measured quantity is predicted to lie above or below `bound` by more than `margin`, or within it of `bound`."""

    relation: Relation
    bound: float
    margin: float = 0.0  # a deviation from the bound that nobody would call one

    def slack(self, low: float, high: float) -> float:
        """Return by how much all of [low, high] keeps to the prediction; below 0, by how much it does not."""
        above, below = low - self.bound, self.bound - high
        match self.relation:
            case ">":
                return above - self.margin
            case "<":
                return below - self.margin
            case "=":
                return self.margin + min(above, below)

    def verdict(self, low: float, high: float) -> Verdict:
        """Settle it where the whole interval [low, high] lies on one side of the bound, and not merely next to it.

        An equality holds where the whole interval lies within the margin. A quantity that is not defined at
        this scale has an interval of NaN, and cannot be tested. Raises ValueError where low > high.
        """
        if math.isnan(low) or math.isnan(high):
            return "not testable here"
        if low > high:
            raise ValueError(f"[{low}, {high}] is not an interval")
        above, below = low > self.bound + self.margin, high < self.bound - self.margin
        if not above and not below:
            within = self.bound - self.margin <= low and high <= self.bound + self.margin
            return "holds" if self.relation == "=" and within else "not separable"
        return "holds" if self.relation == (">" if above else "<") else "fails"


def row(
    claim: str,
    item: str,
    quantity: str,
    prediction: Prediction,
    measured: float,
    interval: tuple[float, float],
    n: int,
    source: str,
    testable: bool = True,
    identity: bool = False,
    left_out: int = 0,
) -> dict[str, object]:
    """What `prediction` makes of a measured value and its interval; nothing, where it is not `testable` here.

    `claim` is the id in published/claims.csv of the claim that the row speaks of, or "" where it speaks of none.
    """
    low, high = interval
    return {
        "claim": claim,
        "item": item,
        "quantity": quantity,
        "relation": prediction.relation,
        "bound": float(prediction.bound),
        "margin": float(prediction.margin),
        "measured": measured,
        "low": low,
        "high": high,
        "n": n,
        "verdict": prediction.verdict(low, high) if testable else "not testable here",
        "identity": identity,
        "left_out": left_out,
        "seen_before": 0,
        "source": source,
    }


def table(paper: str, scale: str, rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """Make verdict rows on one paper a table in the common schema. Raises ValueError where one does not fit it."""
    complete = [{"paper": paper, "scale": scale, **row} for row in rows]
    for found in complete:
        if set(found) - set(KEYS) != set(COLUMNS):
            raise ValueError(f"a verdict row has columns {sorted(found)}, not {sorted(COLUMNS)}")
    keys = [name for name in KEYS if any(name in found for found in complete)]
    return pd.DataFrame(complete, columns=[*COLUMNS, *keys])


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A table of checks for people: without the keys, which its sentences say."""
    return table.drop(columns=list(KEYS), errors="ignore")


def tested(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a measurement: what a long run leaves out is not reported as missing a second time."""
    return table[table["verdict"] != "not testable here"]
