"""These checks judge what kernels say of small decoders with rotary positions: our addition, on long runs of evidence/.

The paper leaves sharp probes of RoPE at finite depth open (Section 7). Observations are training seeds, and intervals
Student's over them. Claims and margins were fixed before the networks here were trained; on two other small Llamas, R^2
had been seen between .92 and .997, and the rollouts of all kernels equally far from the measured influence.
"""

from collections.abc import Iterable, Iterator

import pandas as pd

from position_bias.structural.rotary import COLUMNS, CONTENT_FREE, DISTANCE, NONE, R_SQUARED, ROWS
from position_bias.verdicts.verdict import Prediction, mean_row, table

LABELS = ("model", "seed", "step", "scale")  # of tables of `rotary.described` in evidence/

PREDICTED = Prediction(">", 0.8)
NEARER = Prediction(">", 0, 0.005)
ALIKE = Prediction("=", 0, 0.02)
BEYOND_NULL = Prediction(">", 0, 0.005)

OPEN = "our addition: Section 7 leaves finite-depth probes of RoPE open"
ITEM = "Section 7"


def checks(evidence: Iterable[pd.DataFrame], level: float) -> pd.DataFrame:
    """Verdicts in the schema of `verdict.COLUMNS`, of each model and step in tables with `LABELS` and `rotary.COLUMNS`.

    Rows of the last kept step speak of claims, those of earlier ones of none. Without a table no claim can be tested.
    """
    tables = list(evidence)
    if not tables:
        nothing = pd.DataFrame(columns=[*LABELS, *COLUMNS])
        return table("structural", "longer", _judged(nothing, "no rotary decoder was trained", True, level))
    rows = []
    for model, found in (of_model for each in tables for of_model in each.groupby("model")):
        last = found["step"].max()
        for (step, scale), of_step in found.groupby(["step", "scale"]):
            judged = _judged(of_step, f"{model} after {step} steps", bool(step == last), level)
            rows.append(table("structural", str(scale), judged))
    return pd.concat(rows, ignore_index=True)


def _judged(found: pd.DataFrame, network: str, speaks: bool, level: float) -> Iterator[dict[str, object]]:
    def by_seed(quantity: str, kernel: str, mixing: str = NONE) -> pd.Series:
        chosen = found[(found["quantity"] == quantity) & (found["kernel"] == kernel) & (found["mixing"] == mixing)]
        return chosen.groupby("seed")["value"].mean()

    def judged(claim: str, quantity: str, prediction: Prediction, observed: pd.Series) -> dict[str, object]:
        return mean_row(claim if speaks else "", ITEM, f"{quantity}; {network}", prediction, observed, level, OPEN)

    yield judged(
        "structural-rotary-kernel",
        "R^2 of the kernel of mean query and key against the mean logit by distance",
        PREDICTED,
        by_seed(R_SQUARED, "rotary"),
    )
    yield judged(
        "structural-rotary-rows",
        "total variation to rows of mean attention, uniform rows less that kernel's",
        NEARER,
        by_seed(ROWS, CONTENT_FREE) - by_seed(ROWS, "rotary"),
    )
    forward = {kernel: by_seed(DISTANCE, kernel, "frobenius") for kernel in (CONTENT_FREE, "rotary", "measured")}
    for kernel in ("rotary", "measured"):
        name = "that kernel" if kernel == "rotary" else "measured attention"
        yield judged(
            "structural-rotary-influence",
            f"W to influence with measured lambda, uniform rows less {name}",
            ALIKE,
            forward[CONTENT_FREE] - forward[kernel],
        )
    yield judged(
        "structural-rotary-null",
        "W to influence, lambda = 1/2 less measured lambda, both through that kernel",
        BEYOND_NULL,
        by_seed(DISTANCE, "rotary", "half") - forward["rotary"],
    )
