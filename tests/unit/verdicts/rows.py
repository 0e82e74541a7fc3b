"""Rows of checks with a value and an interval of our choice, and the claim that they speak of."""

import pandas as pd

from position_bias.verdicts.judge import INTERVAL, Statistic, judge, own_interval, table
from position_bias.verdicts.registry import Claim, Prediction

ABOVE = (">", 0.0, 0.01)
TABLE = "emergence/checks"
CLAIM = Claim(
    "rises", "emergence", "Figure 2", "Section 5", "Title", "it rises", "paper", "nothing", TABLE, "figures/x.pdf",
    "all", "seed", "network", "it rises", "a"
)  # fmt: skip


def check(measured, half, n=5, prediction=ABOVE, quantity="gap", claim="rises", item="Figure 2", model=""):
    asked = Prediction("emergence", item, claim, quantity, "", *prediction, item, quantity, "Section 5")
    ends = pd.DataFrame({quantity: [measured, measured - half, measured + half]}, index=INTERVAL)
    (found,) = judge(
        [Statistic(item, ends, {"model": model} if model else {}, estimate=own_interval(n))], {item: [asked]}
    )
    return found


def at(scale, *rows):
    return table("emergence", scale, rows)


UP, DOWN, NULL, OPEN = (0.2, 0.05), (-0.2, 0.05), (0.0, 0.008), (0.0, 0.1)
UP_ROW, DOWN_ROW, OPEN_ROW = check(*UP), check(*DOWN), check(*OPEN)
OTHER_UP = check(0.2, 0.05, quantity="another gap")
