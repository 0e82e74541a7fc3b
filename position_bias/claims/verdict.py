"""The verdict on a claim: what was predicted, what was measured, and whether the interval settles it.

Predictions and tolerances are fixed before the run that they judge; where one was chosen after seeing an earlier run,
the claim says so. A verdict is computed from artifacts and never typed.
"""

import math
from dataclasses import dataclass
from typing import Literal

import pandas as pd

Verdict = Literal["holds", "fails", "not separable", "not testable here"]

# The schema of every table of checks and of the scorecard.
COLUMNS = (
    "paper",
    "item",  # figure, table, section or proposition
    "quantity",
    "predicted",
    "measured",
    "low",
    "high",
    "n",  # observations behind the interval: prompts, seeds, layers or comparisons
    "scale",
    "verdict",
    "source",  # who predicts it, and where
)


@dataclass(frozen=True)
class Prediction:
    """A measured quantity is predicted to lie above or below `bound`, by more than is negligible."""

    relation: Literal[">", "<"]
    bound: float
    negligible: float = 0.0  # a deviation from the bound that nobody would call one

    def __str__(self) -> str:
        sign = "+" if self.relation == ">" else "-"
        margin = f" {sign} {self.negligible:g}" if self.negligible else ""
        return f"{self.relation} {self.bound:g}{margin}"

    def verdict(self, low: float, high: float) -> Verdict:
        """Settled where the whole interval [low, high] lies on one side of the bound, and not merely next to it.

        A quantity that is not defined at this scale has an interval of NaN, and cannot be tested. Raises ValueError
        where low > high.
        """
        if math.isnan(low) or math.isnan(high):
            return "not testable here"
        if low > high:
            raise ValueError(f"[{low}, {high}] is not an interval")
        above, below = low > self.bound + self.negligible, high < self.bound - self.negligible
        if not above and not below:
            return "not separable"
        return "holds" if above == (self.relation == ">") else "fails"


def table(rows: list[dict[str, object]]) -> pd.DataFrame:
    """Verdict rows as a table in the common schema. Raises ValueError where a row does not fit it."""
    for row in rows:
        if set(row) != set(COLUMNS):
            raise ValueError(f"a verdict row has columns {sorted(row)}, not {sorted(COLUMNS)}")
    return pd.DataFrame(rows, columns=list(COLUMNS))
