"""These checks judge language models that trained for longer than those of the default run, by tables of evidence/.

What the paper says of trained models is asked of the last kept step, and what it says of architectures of the first,
before training. Other rows of earlier steps tell whether measured
influence was U-shaped then, and whether content mattered; the paper does not say when, so they speak of no claim.
"""

from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from position_bias.structural.checks import EARLIER, STANDARD, UNTRAINED, judged
from position_bias.structural.tables import step
from position_bias.verdicts.registry import Predicted


def checks(evidence: Iterable[pd.DataFrame], predictions: Mapping[str, list[Predicted]]) -> Iterator[pd.DataFrame]:
    """Judge tables of `checks.compared` with a column `scale`; yields tables in the schema of `judge.COLUMNS`."""
    for rows in evidence:
        for (_, scale), of_model in rows.groupby(["model", "scale"]):
            steps = of_model["checkpoint"].map(step)
            yield judged(of_model[steps == 0], predictions, str(scale), UNTRAINED)
            yield judged(of_model[steps < steps.max()], predictions, str(scale), EARLIER)
            yield judged(of_model[steps == steps.max()], predictions, str(scale), STANDARD)
