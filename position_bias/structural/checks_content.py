"""These checks judge what Herasimchyk et al. 2026 assume of content (Appendix E) and attention (Assumption 4.1).

The paper's numbers are lost from the text at hand, so we chose the bounds. An interval reaches from the lowest
layer to the highest: these are all layers, not a sample, and the means over prompts carry no interval of their own. A
check thus holds where it holds in every layer, and fails where it fails in every layer.

What single prompts leave in a mean hides the structure of content: similarity grows with the number of prompts. With
fewer than the paper averages over, its claim about similarity is not testable. Assumption 4.1 is: a mean over few
prompts has more violations, not fewer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from position_bias.structural.content import ALL, LABELS
from position_bias.verdicts.verdict import Prediction, row, table


@dataclass(frozen=True)
class Check:
    """`column` of a table, of one region where the table has several, lies where `prediction` says in every layer."""

    claim: str  # id of the claim that it speaks of, in the variant that the paper means
    item: str
    quantity: str
    column: str
    prediction: Prediction
    source: str
    region: str | None = None
    prompts: int = 0  # least number that the claim is about


PAPERS_WAY, PAPERS_KERNEL = "causal", "measured"  # those that the claims are about; rows of others speak of none
PAPERS_PROMPTS = 1000
ALIKE = Prediction(">", 0.5)
MOST = Prediction(">", 0.9)
SIMILAR = "Appendix E: similarity is moderate to high (0.5 is our addition)"

SIMILARITY = tuple(
    Check("structural-table-5", "Table 5", quantity, "value", ALIKE, SIMILAR, region, PAPERS_PROMPTS)
    for quantity, region in (
        ("similarity within the diagonal", "diagonal"),
        ("similarity below the diagonal", "below"),
    )
)
KERNELS = (
    Check(
        "structural-assumption-4-1",
        "Assumption 4.1",
        "share of triples violated",
        "violations",
        Prediction("<", 0.05),
        "Section 4: violations are rare (0.05 is our addition)",
    ),
    Check(
        "structural-assumption-4-1",
        "Assumption 4.1",
        "prefix mass missing over all triples",
        "shortfall",
        Prediction("<", 1e-3),
        "Section 4: violations are small (1e-3 is our addition)",
    ),
)


def checks(similarity: pd.DataFrame, kernels: pd.DataFrame, shifts: pd.DataFrame, scale: str) -> pd.DataFrame:
    """Return verdicts on `content.similarity`, `kernels` and `shifts`, in the schema of `verdict.COLUMNS`.

    Each way of Table 5 and each kernel has its own; `measured` is the value of all layers together, `n` their number.
    The share of heads that shift the diagonal the same way has an interval over prompts, and `n` is their number.
    """
    rows = [
        *_rows(SIMILARITY, similarity, "way", PAPERS_WAY),
        *_rows(KERNELS, kernels, "kernel", PAPERS_KERNEL),
        *_shift_rows(shifts),
    ]
    return table("structural", scale, rows)


def _shift_rows(shifts: pd.DataFrame) -> Iterator[dict[str, object]]:
    source = "Section 6.1: the diagonal has one global shift (0.9 is our addition)"
    for found in shifts.to_dict("records"):
        where = f"{found['model']} {found['checkpoint']}, {found['dataset']}, {found['n']} tokens"
        quantity = f"share of heads whose content shifts the diagonal the same way; {where}"
        interval = (found["low"], found["high"])
        yield row("structural-shift", "Section 6.1", quantity, MOST, found["share"], interval, found["prompts"], source)


def _rows(of: tuple[Check, ...], values: pd.DataFrame, variants: str, papers: str) -> Iterator[dict[str, object]]:
    """Rows of every variant in the column `variants`; the claims are about the variant that is named `papers`."""
    for (*labels, variant), rows in values.groupby([*LABELS, variants], sort=False):
        for check in of:
            claim = check.claim if variant == papers else ""
            of_region, where = _of_region(rows, check.region), dict(zip(LABELS, labels, strict=True))
            yield _row(claim, check, of_region, f"{variants} {variant}", where)


def _of_region(rows: pd.DataFrame, region: str | None) -> pd.DataFrame:
    return rows if region is None else rows[rows["region"] == region]


def _row(claim: str, check: Check, rows: pd.DataFrame, variant: str, labels: dict[str, Any]) -> dict[str, object]:
    overall = rows["layer"] == ALL
    layers = rows.loc[~overall, check.column]
    where = f"{labels['model']} {labels['checkpoint']}, {labels['dataset']}, {labels['n']} tokens"
    return row(
        claim,
        check.item,
        f"{check.quantity}; {where}, {labels['prompts']} prompts, {variant}; range over layers",
        check.prediction,
        float(rows.loc[overall, check.column].iloc[0]),
        (float(layers.min()), float(layers.max())),
        len(layers),
        check.source,
        testable=labels["prompts"] >= check.prompts,
    )
