"""The released schedules predict profiles, by every variant, at any length.

Lambda and content were measured at 256 tokens; at another length they are taken as they are.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from position_bias.released.models import ALONG_LENGTHS, MODELS, RULES, VARIANTS, ReleasedVariant, Rule
from position_bias.released.schedules import Schedule, read_schedule
from position_card.core import artifacts
from position_card.rollout import statistics
from position_card.rollout.attention import Array
from position_card.rollout.last_row import last_row

SAMPLE_SIZE = 200  # points of a long profile that are kept, evenly spaced by the logarithm of their distance


def read_slopes(path: str | Path) -> dict[Rule, Array]:
    """Read slopes [heads] by rule. Raises InputError where the table cannot be read."""
    table = artifacts.read_table(path, list(RULES))
    return {rule: table[rule].to_numpy(float) for rule in RULES}


def predict(mixing: Path, content: Path, slopes: Path, model: str, lengths: Sequence[int]) -> dict[str, Any]:
    """The profiles of a model under every variant, length by length: tables of position (0 the first token), value."""
    schedule, by_rule = read_schedule(mixing, content), read_slopes(slopes)
    rows = (profile(n, variant, schedule, by_rule, MODELS[model].head_dim) for n, variant in product(lengths, VARIANTS))
    return {"profiles": [pd.DataFrame({"position": range(len(row)), "value": row}) for row in rows]}


def profile(n: int, variant: ReleasedVariant, schedule: Schedule, slopes: Mapping[Rule, Array], head_dim: int) -> Array:
    """Return the influence of each of n tokens on the last [n], by a variant of Section 6.2.

    (a) has lambda = 1 and no content, (b) the released lambda, (c) the released content too: as the authors add it, or
    divided by sqrt(head_dim) as attention has it.
    """
    mixing = np.ones_like(schedule.mixing) if variant.variant == "a" else schedule.mixing
    if variant.content == "none":
        return last_row(n, mixing, slopes[variant.slopes])
    scale = 1.0 if variant.content == "released" else 1 / math.sqrt(head_dim)
    return last_row(n, mixing, slopes[variant.slopes], scale * schedule.diagonal)


def follow_lengths(
    mixing: list[Path], content: list[Path], slopes: list[Path], lengths: Sequence[int]
) -> dict[str, pd.DataFrame]:
    """Follow how profiles of ALONG_LENGTHS change with the number of tokens; files come in the order of `MODELS`.

    Returns samples of each profile (variant, slopes, content, n, distance to the last token, value, model) and sums,
    what sums it up (variant, slopes, content, n, statistic, value, model): the shares of the first token, of the first
    half and of the last token, and the mean distance to the last token, in tokens.
    """
    samples, sums = [], []
    for model, of_layers, of_heads, of_rules in zip(MODELS, mixing, content, slopes, strict=True):
        schedule, by_rule = read_schedule(of_layers, of_heads), read_slopes(of_rules)
        for variant, n in product(ALONG_LENGTHS, lengths):
            row = profile(n, variant, schedule, by_rule, MODELS[model].head_dim)
            labels = {**variant._asdict(), "n": n}
            distance = np.unique(np.geomspace(1, n, SAMPLE_SIZE).round().astype(int)) - 1
            points = {"distance": distance, "value": row[n - 1 - distance]}
            samples.append(pd.DataFrame({**labels, **points, "model": model}))
            summary = {
                "first token": row[0],
                "first half": row[: n // 2].sum(),
                "last token": row[-1],
                "mean distance": (1 - float(statistics.mean_position(row))) * (n - 1),
            }
            sums += [{**labels, "statistic": name, "value": value, "model": model} for name, value in summary.items()]
    return {"samples": pd.concat(samples), "sums": pd.DataFrame(sums)}
