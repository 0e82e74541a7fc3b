"""What Herasimchyk et al. 2026 claim of rollout and measured influence, as statistics of `comparison`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from position_bias.claims.verdict import Prediction, row, table
from position_bias.comparison import SAME_FOR_EVERY_ESTIMATOR
from position_bias.statistics import percentile_interval

PAPER = "structural"
LABELS = ("model", "checkpoint", "dataset", "n", "prompts")  # what a comparison was made on
OURS = "null profile, not in the paper"


@dataclass(frozen=True)
class Claim:
    """`statistic` of `variant`, less that of `minus` if one is named, lies where `prediction` says."""

    item: str
    statistic: str
    variant: str
    prediction: Prediction
    source: str
    minus: str | None = None

    @property
    def quantity(self) -> str:
        one = f"{self.statistic} of ({self.variant})"
        return f"{one} - ({self.minus})" if self.minus else one


# Half of the last digit that the paper prints of a distance, also a share of the mass or of the sequence length. Chosen
# after a first run had shown (b) and (c) to differ by 0.00008, with an interval that excludes 0.
PRINTED = 0.005

EXCEEDS = Prediction(">", 0, negligible=PRINTED)
ABOVE_1 = Prediction(">", 1)
DECREASING = Prediction("<", 0)

FIRST_MINIMUM = "influence, first / predicted minimum"
U_SHAPED = "Section 6.3: measured influence is U-shaped"
PRESERVED = "Section 6.2: content reduces the primacy peak and preserves the U"
LARGER_MODELS = "Appendix C.3: content refines the fit, in larger models above all"

CLAIMS = (
    Claim("Table 2", "wasserstein", "a", EXCEEDS, "Section 6.3: (b) is closer than (a)", minus="b"),
    Claim("Table 2", "wasserstein", "a", EXCEEDS, "Section 6.3: (c) is closer than (a)", minus="c"),
    Claim("Table 2", "wasserstein", "b", EXCEEDS, LARGER_MODELS, minus="c"),
    Claim("Figure 1", "first", "a", EXCEEDS, "Section 6.2: (a) collapses to the first token", minus="d"),
    Claim("Figure 1", "first / middle", "b", ABOVE_1, "Section 6.2: (b) is U-shaped"),
    Claim("Figure 1", "last / middle", "b", ABOVE_1, "Section 6.2: (b) is U-shaped"),
    Claim("Figure 1", "first", "b", EXCEEDS, PRESERVED, minus="c"),
    Claim("Figure 1", "first / middle", "c", ABOVE_1, PRESERVED),
    Claim("Figure 1", "last / middle", "c", ABOVE_1, PRESERVED),
    Claim("Figure 1", "mean position", "c", EXCEEDS, "Section 6.2: content shifts mass to later tokens", minus="b"),
    Claim("Figure 1", "first / middle", "d", ABOVE_1, U_SHAPED),
    Claim("Figure 1", "last / middle", "d", ABOVE_1, U_SHAPED),
    Claim("Figure 1", FIRST_MINIMUM, "b", ABOVE_1, U_SHAPED),
    Claim("Figure 1", "argmin distance", "b", Prediction("<", 0.1), "Section 6.3: minima coincide (0.1 is ours)"),
    Claim("Figure 1", "argmin distance", "uniform", EXCEEDS, "the null: a minimum at the first token", minus="b"),
    Claim("Figure 4", "spearman with depth", "lambda", DECREASING, "Section 6.1: mixing decreases with depth"),
    Claim("Table 2", "wasserstein", "half", EXCEEDS, "Abnar and Zuidema 2020 as the null", minus="b"),
    Claim("Table 2", "wasserstein", "uniform", EXCEEDS, OURS, minus="b"),
    Claim("Table 2", "wasserstein", "last", EXCEEDS, OURS, minus="b"),
)


# Of a model before and during its training: is its profile a U then? The paper does not say.
DURING_TRAINING = tuple(
    Claim("training", "first / middle", variant, ABOVE_1, "ours: U-shaped already before its training has ended")
    for variant in ("b", "d")
)


def checks(values: pd.DataFrame, scale: str, level: float, claims: Sequence[Claim] = CLAIMS) -> pd.DataFrame:
    """Pass every one of `claims` on every comparison in `values`, under each estimator of lambda.

    `values` holds the replicates of `comparison.compare` under the columns LABELS; a claim that does not involve
    lambda has one row. Returns a table in the schema of `verdict.COLUMNS`.
    """
    rows = [
        _row(claim, estimator, labels, statistics, level)
        for labels, statistics in _by_comparison(values)
        for claim in claims
        for estimator in _estimators(claim, statistics)
    ]
    return table(PAPER, scale, rows)


def _by_comparison(values: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Labels of each comparison, and its statistics: replicates down, (statistic, variant, estimator) across."""
    for key, group in values.groupby(list(LABELS), sort=False):
        wide = group.pivot(index="replicate", columns=["statistic", "variant", "estimator"], values="value")
        yield dict(zip(LABELS, key, strict=True)), wide


def _estimators(claim: Claim, statistics: pd.DataFrame) -> list[str]:
    """The estimators of lambda that a claim is passed under; one, where neither of its profiles depends on lambda."""
    variants = [claim.variant] + ([claim.minus] if claim.minus else [])
    found = {name for variant in variants for name in statistics[claim.statistic][variant].columns}
    return sorted(found - {SAME_FOR_EVERY_ESTIMATOR}) or [SAME_FOR_EVERY_ESTIMATOR]


def _row(
    claim: Claim, estimator: str, labels: dict[str, Any], statistics: pd.DataFrame, level: float
) -> dict[str, object]:
    measured = _of(claim.statistic, claim.variant, estimator, statistics)
    if claim.minus:
        measured = measured - _of(claim.statistic, claim.minus, estimator, statistics)
    low, high = map(float, percentile_interval(measured[measured.index >= 0], level))
    where = f"{labels['model']} {labels['checkpoint']}, {labels['dataset']}, {labels['n']} tokens"
    how = "" if estimator == SAME_FOR_EVERY_ESTIMATOR else f", lambda by {estimator}"
    quantity = f"{claim.quantity}; {where}{how}"
    value = float(measured.loc[-1])
    return row(claim.item, quantity, claim.prediction, value, (low, high), labels["prompts"], claim.source)


def _of(statistic: str, variant: str, estimator: str, statistics: pd.DataFrame) -> pd.Series:
    by_estimator = statistics[statistic][variant]
    return by_estimator[estimator if estimator in by_estimator else SAME_FOR_EVERY_ESTIMATOR]
