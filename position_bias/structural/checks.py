"""These checks judge what Herasimchyk et al. 2026 claim of rollout and measured influence, by `comparison`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from position_bias.rollout.comparison import SAME_FOR_EVERY_ESTIMATOR
from position_bias.statistics import percentile_interval
from position_bias.structural.content import LABELS
from position_bias.verdicts.verdict import Prediction, row, table

# Columns: of the replicates of comparisons; of what one check compares; and of the tables of these
REPLICATES = [*LABELS, "estimator", "variant", "statistic", "replicate", "value"]
COMPARES = ["statistic", "variant", "minus"]
COMPARED = [*LABELS, *COMPARES, "estimator", "value", "low", "high"]
MEANS = {"first": "share of the first token"}  # what statistics with short names are
NOTHING = "none"  # which a statistic is taken from alone
OURS = "null profile, not in the paper"
PAPERS_ESTIMATOR = "frobenius"  # of lambda, in the text of the paper: rows of the other one speak of no claim


@dataclass(frozen=True)
class Check:
    """`statistic` of `variant`, less that of `minus` if one is named, lies where `prediction` says."""

    claim: str  # id of the claim that it speaks of, under the paper's estimator of lambda; or ""
    item: str
    statistic: str
    variant: str
    prediction: Prediction
    source: str
    minus: str | None = None

    @property
    def compares(self) -> tuple[str, str, str]:
        return self.statistic, self.variant, self.minus or NOTHING

    @property
    def quantity(self) -> str:
        one = f"{MEANS.get(self.statistic, self.statistic)} of ({self.variant})"
        return f"{one}, less that of ({self.minus})" if self.minus else one


# Half of the last digit that the paper prints of a distance, also a share of the mass or of the sequence length. Chosen
# after a first run had shown (b) and (c) to differ by 0.00008, with an interval that excludes 0.
PRINTED = 0.005

EXCEEDS = Prediction(">", 0, PRINTED)
ABOVE_1 = Prediction(">", 1)
DECREASING = Prediction("<", 0)
NEAR = Prediction("<", 0.1)
SMALL = Prediction("<", 0.215)  # Table 3 prints no distance of (b) or (c) above .21
RANKED_ALIKE = Prediction(">", 0, 0.05)  # of a rank correlation
MORE_OFTEN = Prediction(">", 0)  # of a share of comparisons

FIRST_MINIMUM = "influence, first / predicted minimum"
COLLAPSES = "Section 6.2: (a) collapses to the first token"
U_OF_MIXING = "Section 6.2: (b) is U-shaped"
U_SHAPED = "Section 6.3: measured influence is U-shaped"
PRESERVED = "Section 6.2: content reduces the primacy peak and preserves the U"
SHIFTS = "Section 6.2: content shifts mass to later tokens"
LARGER_MODELS = "Appendix C.3: content refines the fit, in larger models above all"
PERSISTS = "Appendix C.2: the U persists at the longer length and on every data set"
CLOSE = "Appendix C.3: distances are small on every data set (as small as the largest that Table 3 prints)"
RANKED = "our addition: tokens rank by (b) as they do by measured influence"
CLOSEST = "Appendix C.3: at the longer length (b) is the closest on most models and data sets"
COINCIDE = "Section 6.3: minima coincide (0.1 is our addition)"
MIXES_LESS = "Section 6.1: mixing decreases with depth"
ABNAR = "Abnar and Zuidema 2020 as the null"

CHECKS = (
    Check("structural-table-2", "Table 2", "wasserstein", "a", EXCEEDS, "Section 6.3: (b) is closer than (a)", "b"),
    Check("structural-table-2", "Table 2", "wasserstein", "a", EXCEEDS, "Section 6.3: (c) is closer than (a)", "c"),
    Check("structural-table-2-content", "Table 2", "wasserstein", "b", EXCEEDS, LARGER_MODELS, "c"),
    Check("structural-figure-1-a", "Figure 1", "first", "a", EXCEEDS, COLLAPSES, "d"),
    Check("structural-figure-1-b", "Figure 1", "first / middle", "b", ABOVE_1, U_OF_MIXING),
    Check("structural-figure-1-b", "Figure 1", "last / middle", "b", ABOVE_1, U_OF_MIXING),
    Check("structural-figure-1-content", "Figure 1", "first", "b", EXCEEDS, PRESERVED, "c"),
    Check("structural-figure-1-c", "Figure 1", "first / middle", "c", ABOVE_1, PRESERVED),
    Check("structural-figure-1-c", "Figure 1", "last / middle", "c", ABOVE_1, PRESERVED),
    Check("structural-figure-1-content", "Figure 1", "mean position", "c", EXCEEDS, SHIFTS, "b"),
    Check("structural-figure-1-d", "Figure 1", "first / middle", "d", ABOVE_1, U_SHAPED),
    Check("structural-figure-1-d", "Figure 1", "last / middle", "d", ABOVE_1, U_SHAPED),
    Check("structural-figure-1-d", "Figure 1", FIRST_MINIMUM, "b", ABOVE_1, U_SHAPED),
    Check("structural-figure-1-minimum", "Figure 1", "argmin distance", "b", NEAR, COINCIDE),
    Check(
        "structural-null-minimum",
        "Figure 1",
        "argmin distance",
        "uniform",
        EXCEEDS,
        "the null: a minimum at the first token",
        "b",
    ),
    Check("structural-figure-4", "Figure 4", "spearman with depth", "lambda", DECREASING, MIXES_LESS),
    Check("structural-null-half", "Table 2", "wasserstein", "half", EXCEEDS, ABNAR, "b"),
    Check("", "Table 2", "wasserstein", "uniform", EXCEEDS, OURS, "b"),
    Check("structural-null-last", "Table 2", "wasserstein", "last", EXCEEDS, OURS, "b"),
)

# On every data set: at the paper's length, at its longer one, and at every length that is measured.
ON_EVERY_DATASET = (
    Check("structural-table-3", "Table 3", "wasserstein", "b", SMALL, CLOSE),
    Check("structural-table-3", "Table 3", "wasserstein", "c", SMALL, CLOSE),
)
AT_LONG = (
    Check("structural-figure-3", "Figure 3", "first / middle", "d", ABOVE_1, PERSISTS),
    Check("structural-figure-3", "Figure 3", "last / middle", "d", ABOVE_1, PERSISTS),
)
AT_EVERY_LENGTH = (Check("structural-rank", "Tables 3 and 4", "spearman", "b", RANKED_ALIKE, RANKED),)

# Of a model before and during its training: is its profile a U then? The paper does not say.
DURING_TRAINING = tuple(
    Check("", "training", "first / middle", variant, ABOVE_1, "our addition: U-shaped before its training has ended")
    for variant in ("b", "d")
)


def checks(values: pd.DataFrame, scale: str, level: float, of: Sequence[Check] = CHECKS) -> pd.DataFrame:
    """Make every check in `of` on every comparison in `values`, under each estimator of lambda.

    `values` holds the replicates of `comparison.compare` under the columns LABELS; a check that does not involve
    lambda has one row. Returns a table in the schema of `verdict.COLUMNS`.
    """
    return judged(compared(values, level, of), scale, of)


def compared(values: pd.DataFrame, level: float, of: Sequence[Check] = CHECKS) -> pd.DataFrame:
    """What checks compare, with percentile intervals over prompts: columns COMPARED.

    `values` as for `checks`.
    """
    rows: list[dict[str, Any]] = []
    for labels, statistics in _by_comparison(values):
        for statistic, variant, minus in dict.fromkeys(check.compares for check in of):
            for estimator in _estimators(statistic, variant, minus, statistics):
                measured = _of(statistic, variant, estimator, statistics)
                if minus != NOTHING:
                    measured = measured - _of(statistic, minus, estimator, statistics)
                low, high = map(float, percentile_interval(measured[measured.index >= 0], level))
                what = {"statistic": statistic, "variant": variant, "minus": minus, "estimator": estimator}
                rows.append({**labels, **what, "value": float(measured.loc[-1]), "low": low, "high": high})
    return pd.DataFrame(rows, columns=COMPARED)


def judged(compared: pd.DataFrame, scale: str, of: Sequence[Check]) -> pd.DataFrame:
    """Verdicts in the schema of `verdict.COLUMNS` on a table of `compared`, which has all that checks `of` compare."""
    rows = [
        _row(check, found)
        for _, comparison in compared.groupby(LABELS, sort=False)
        for check in of
        for found in _found(check, comparison)
    ]
    return table("structural", scale, rows)


def closest(values: pd.DataFrame, scale: str, level: float) -> pd.DataFrame:
    """How often (b) is the closest of the three variants, less how often it is not, over all comparisons in `values`.

    A variant is closer where its distance is less by more than half of the last digit that the paper prints. Intervals
    are percentiles over the prompts, which are resampled in every comparison by itself.
    """
    distances = values[values["statistic"] == "wasserstein"]
    margins = [_closer(statistics) for _, statistics in _by_comparison(distances)]
    share = pd.concat(margins, axis=1).mean(axis=1)
    low, high = map(float, percentile_interval(share[share.index >= 0], level))
    quantity = (
        f"share where (b) is closest, less that where (a) or (c) is; {len(margins)} models, data sets and lengths"
    )
    value, count = float(share.loc[-1]), len(margins)
    rows = [row("structural-table-4", "Table 4", quantity, MORE_OFTEN, value, (low, high), count, CLOSEST)]
    return table("structural", scale, rows)


def _closer(statistics: pd.DataFrame) -> pd.Series:
    """1 where (b) is closer than (a) and (c), -1 where one of these is closer than (b), else 0; by replicate."""
    a, b, c = (_of("wasserstein", variant, PAPERS_ESTIMATOR, statistics) for variant in "abc")
    others = np.minimum(a, c)
    return (b < others - PRINTED).astype(int) - (others < b - PRINTED).astype(int)


def _by_comparison(values: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Labels of each comparison, and its statistics: replicates down, (statistic, variant, estimator) across."""
    for key, group in values.groupby(LABELS, sort=False):
        wide = group.pivot(index="replicate", columns=["statistic", "variant", "estimator"], values="value")
        yield dict(zip(LABELS, key, strict=True)), wide


def _estimators(statistic: str, variant: str, minus: str, statistics: pd.DataFrame) -> list[str]:
    """The estimators of lambda that this is compared under; one, where neither profile depends on lambda."""
    variants = [variant] if minus == NOTHING else [variant, minus]
    found = {name for each in variants for name in statistics[statistic][each].columns}
    return sorted(found - {SAME_FOR_EVERY_ESTIMATOR}) or [SAME_FOR_EVERY_ESTIMATOR]


def _found(check: Check, comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """What a check compares, under each estimator."""
    of_check = (comparison[COMPARES] == list(check.compares)).all(axis=1)
    return [{str(name): value for name, value in row.items()} for row in comparison[of_check].to_dict("records")]


def _row(check: Check, found: dict[str, Any]) -> dict[str, object]:
    estimator = found["estimator"]
    where = f"{found['model']} {found['checkpoint']}, {found['dataset']}, {found['n']} tokens"
    how = "" if estimator == SAME_FOR_EVERY_ESTIMATOR else f", lambda by {estimator}"
    quantity = f"{check.quantity}; {where}{how}"
    interval = found["low"], found["high"]
    claim = check.claim if estimator in (PAPERS_ESTIMATOR, SAME_FOR_EVERY_ESTIMATOR) else ""
    return row(claim, check.item, quantity, check.prediction, found["value"], interval, found["prompts"], check.source)


def _of(statistic: str, variant: str, estimator: str, statistics: pd.DataFrame) -> pd.Series:
    by_estimator = statistics[statistic][variant]
    return by_estimator[estimator if estimator in by_estimator else SAME_FOR_EVERY_ESTIMATOR]
