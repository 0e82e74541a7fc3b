"""These checks judge language models that trained for longer than those of the default run, by tables of evidence/.

What the paper says of trained models is asked of the last kept step. Rows of earlier steps tell whether measured
influence was U-shaped then, and whether content mattered; the paper does not say when, so they speak of no claim.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pandas as pd

from position_bias.structural.checks import CHECKS, judged
from position_bias.structural.tables import step

U_AND_CONTENT = ("structural-figure-1-d", "structural-figure-1-content", "structural-table-2-content")
EARLIER = tuple(replace(check, claim="", item="training") for check in CHECKS if check.claim in U_AND_CONTENT)


def checks(evidence: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Verdicts in the schema of `verdict.COLUMNS` on tables of `checks.compared` with a column `scale`."""
    for found in evidence:
        for (_, scale), of_model in found.groupby(["model", "scale"]):
            steps = of_model["checkpoint"].map(step)
            yield judged(of_model[steps < steps.max()], str(scale), EARLIER)
            yield judged(of_model[steps == steps.max()], str(scale), CHECKS)
