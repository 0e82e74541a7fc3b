"""Every verdict on Herasimchyk et al. 2026 of a run: on rollouts, content and attention, print, and long trainings."""

from pathlib import Path

import pandas as pd

from position_bias.structural import (
    big_models,
    checks,
    checks_content,
    checks_drawn,
    checks_long_training,
    checks_pretrained,
    checks_printed,
)
from position_bias.structural.tables import step
from position_bias.verdicts.registry import predictions


def verdicts(
    during_training: list[pd.DataFrame],
    at_standard: pd.DataFrame,
    at_long: pd.DataFrame,
    at_more: list[pd.DataFrame],
    shift: pd.DataFrame,
    published: pd.DataFrame,
    curves: pd.DataFrame,
    released: list[pd.DataFrame],
    pretrained: list[pd.DataFrame],
    pretrained_kernels: list[pd.DataFrame],
    long_training: list[pd.DataFrame],
    similarity: pd.DataFrame,
    monotonicity: pd.DataFrame,
    predicted: Path,
    primary: str,
    scale: str,
    level: float,
) -> pd.DataFrame:
    """Return verdicts in the schema of `judge.COLUMNS`, with keys.

    The first four are replicates of rollouts: at earlier steps of training, and of trained models at the standard
    length, the long one and all others. `primary` is the data set of figures that show one. `pretrained`
    and `long_training` are tables of evidence/ or like those; `pretrained_kernels` are those of `content`
    on pretrained decoders. `published` are printed distances and `curves` drawn profiles of the paper, `released` the
    statistics of the schedules that its authors released. The others are
    tables of the same names.
    """
    registered = predictions(predicted, "structural")

    def of_rollouts(values: pd.DataFrame, occasion: str) -> pd.DataFrame:
        return checks.checks(values, registered, scale, level, occasion)

    tables = [
        of_rollouts(at_standard[at_standard["dataset"] == primary], checks.STANDARD),
        of_rollouts(at_standard, checks.EVERY_DATASET),
        of_rollouts(at_long, checks.LONG),
        *(of_rollouts(values, checks.EVERY_LENGTH) for values in (at_standard, *at_more, at_long)),
        *(of_rollouts(values, checks.DURING_TRAINING) for values in during_training),
        *(of_rollouts(untrained, checks.UNTRAINED) for untrained in map(_untrained, during_training)),
        checks_content.checks(similarity, monotonicity, shift, registered, scale),
        checks_printed.checks(published, registered, scale),
        checks_drawn.checks(curves, registered),
        big_models.checks(released, registered),
        checks_pretrained.checks(pretrained, registered, level),
        *(checks_content.of_pretrained(kernels, registered) for kernels in pretrained_kernels),
        *checks_long_training.checks(long_training, registered),
    ]
    return pd.concat(tables)


def _untrained(values: pd.DataFrame) -> pd.DataFrame:
    return values[values["checkpoint"].map(step) == 0]
