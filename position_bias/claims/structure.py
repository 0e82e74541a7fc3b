"""What Herasimchyk et al. 2026 assume of content (Appendix E) and of attention (Assumption 4.1), judged layer by layer.

The paper's numbers are lost from the text at hand, so the bounds are ours. An interval reaches from the lowest layer
to the highest: layers are all that there are, no sample, and the means over prompts carry no interval of their own. A
claim thus holds where it holds in every layer, and fails where it fails in every layer.

What single prompts leave in a mean hides the structure of content: similarity grows with the number of prompts. With
fewer than the paper averages over, its claim about similarity is not testable. Assumption 4.1 is: a mean over few
prompts has more violations, not fewer.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from position_bias.claims.verdict import Prediction, row, table
from position_bias.structure import ALL, LABELS

PAPER = "structural"


@dataclass(frozen=True)
class Claim:
    """`column` of a table, of one region where the table has several, lies where `prediction` says in every layer."""

    item: str
    quantity: str
    column: str
    prediction: Prediction
    source: str
    region: str | None = None
    prompts: int = 0  # least number that the claim is about


PAPERS_PROMPTS = 1000
ALIKE = Prediction(">", 0.5)
SIMILAR = "Appendix E: similarity is moderate to high (0.5 is ours)"

SIMILARITY = (
    Claim("Table 5", "similarity within the diagonal", "value", ALIKE, SIMILAR, "diagonal", PAPERS_PROMPTS),
    Claim("Table 5", "similarity below the diagonal", "value", ALIKE, SIMILAR, "below", PAPERS_PROMPTS),
)
KERNELS = (
    Claim(
        "Assumption 4.1",
        "share of triples violated",
        "violations",
        Prediction("<", 0.05),
        "Section 4: violations are rare (0.05 is ours)",
    ),
    Claim(
        "Assumption 4.1",
        "prefix mass missing over all triples",
        "shortfall",
        Prediction("<", 1e-3),
        "Section 4: violations are small (1e-3 is ours)",
    ),
)


def checks(similarity: pd.DataFrame, kernels: pd.DataFrame, scale: str) -> pd.DataFrame:
    """Verdicts on the tables of `structure.similarity` and `structure.kernels`, in the schema of `verdict.COLUMNS`.

    Each way of Table 5 and each kernel has its own; `measured` is the value of all layers together, `n` their number.
    """
    return table(PAPER, scale, _rows(SIMILARITY, similarity, "way") + _rows(KERNELS, kernels, "kernel"))


def _rows(claims: tuple[Claim, ...], values: pd.DataFrame, variant: str) -> list[dict[str, object]]:
    return [
        _row(claim, _of_region(rows, claim.region), f"{variant} {key[-1]}", dict(zip(LABELS, key, strict=False)))
        for key, rows in values.groupby([*LABELS, variant], sort=False)
        for claim in claims
    ]


def _of_region(rows: pd.DataFrame, region: str | None) -> pd.DataFrame:
    return rows if region is None else rows[rows["region"] == region]


def _row(claim: Claim, rows: pd.DataFrame, variant: str, labels: dict[str, Any]) -> dict[str, object]:
    overall = rows["layer"] == ALL
    layers = rows.loc[~overall, claim.column]
    where = f"{labels['model']} {labels['checkpoint']}, {labels['dataset']}, {labels['n']} tokens"
    return row(
        claim.item,
        f"{claim.quantity}; {where}, {labels['prompts']} prompts, {variant}; range over layers",
        claim.prediction,
        float(rows.loc[overall, claim.column].iloc[0]),
        (float(layers.min()), float(layers.max())),
        len(layers),
        claim.source,
        testable=labels["prompts"] >= claim.prompts,
    )
