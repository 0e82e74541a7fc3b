"""How figures tell trainings of a language model apart: a width of line for each seed, a shade for each kept step."""

import pandas as pd

from position_bias.drawing.looks import Look, shades
from position_bias.structural import tables

BOLD, THIN = 1.0, 0.5  # lines of the first training seed, and of further ones
STEP_MARKS = "osD^vP"  # of the steps of a training
ESTIMATORS = ("frobenius", "none")  # the paper's, and that of what does not depend on lambda


def step_looks(checkpoints: pd.Series) -> dict[int, Look]:
    """The look of every step that is kept: the later, the darker."""
    colours = shades(checkpoints.map(tables.step))
    return {
        int(step): Look(f"step {step:,}", colour, STEP_MARKS[place % len(STEP_MARKS)])
        for place, (step, colour) in enumerate(colours.items())
    }


def seeds(table: pd.DataFrame, widths: tuple[float, float] = (BOLD, THIN)) -> list[tuple[float, pd.DataFrame]]:
    """The rows of each training seed, with the width of their lines: one for the first seed, one for all others."""
    parts = [part for _, part in table.groupby(table["checkpoint"].map(tables.training), sort=False)]
    first, others = widths
    return list(zip([first, *[others] * len(parts)], parts, strict=False))
