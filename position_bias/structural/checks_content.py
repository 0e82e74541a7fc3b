"""These checks judge what Herasimchyk et al. 2026 assume of content (Appendix E) and attention (Assumption 4.1).

The paper's numbers are lost from the text at hand, so we chose the bounds. An interval reaches from the lowest
layer to the highest: these are all layers, not a sample, and the means over prompts carry no interval of their own. A
check thus holds where it holds in every layer, and fails where it fails in every layer.

Networks are the ways of Table 5 and the kernels; what the paper means is the way `causal` and the `measured` kernel.

What single prompts leave in a mean hides the structure of content: similarity grows with the number of prompts. With
fewer than the paper averages over, its claim about similarity is not testable. Assumption 4.1 is: a mean over few
prompts has more violations, not fewer.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from position_bias.structural.content import ALL, LABELS
from position_bias.verdicts.judge import GIVEN, Estimate, Statistic, given, judge, table
from position_bias.verdicts.registry import PRETRAINED, Predicted

PAPERS_PROMPTS = 1000  # least number that the claim about similarity is about


def checks(
    similarity: pd.DataFrame,
    kernels: pd.DataFrame,
    shifts: pd.DataFrame,
    predictions: Mapping[str, list[Predicted]],
    scale: str,
) -> pd.DataFrame:
    """Return verdicts on `content.table5`, `kernels` and `shift`, in the schema of `judge.COLUMNS`.

    Each way of Table 5 and each kernel has its own; `measured` is the value of all layers together, `n` their number.
    The share of heads that shift the diagonal the same way has an interval over documents, and `n` is their number. We
    read the global shift that the paper speaks of as one for all heads.
    """
    statistics = [*_similarity(similarity), *_monotonicity(kernels), *_shift(shifts)]
    return table("structural", scale, judge(statistics, predictions))


def of_pretrained(kernels: pd.DataFrame, predictions: Mapping[str, list[Predicted]]) -> pd.DataFrame:
    """Return verdicts on `content.kernels` of pretrained decoders alone, as `checks`."""
    return table("structural", PRETRAINED, judge(_monotonicity(kernels), predictions))


def over_layers(values: pd.Series, predicted: Predicted, level: float) -> Estimate:
    """The value of ALL layers together, from the lowest layer to the highest."""
    layers = values.drop(ALL)
    return Estimate(float(values[ALL]), float(layers.min()), float(layers.max()), len(layers), known=True)


def _similarity(similarity: pd.DataFrame) -> Iterator[Statistic]:
    for labels, of_measurement in _by_measurement(similarity):
        enough = labels["prompts"] >= PAPERS_PROMPTS
        for region in ("diagonal", "below"):
            of_region = of_measurement[of_measurement["region"] == region]
            layers = of_region.pivot(index="layer", columns="way", values="value")
            yield Statistic(f"similarity, {region}", layers, labels, over_layers, testable=enough)


def _monotonicity(kernels: pd.DataFrame) -> Iterator[Statistic]:
    for labels, of_measurement in _by_measurement(kernels):
        for name in ("violations", "shortfall"):
            layers = of_measurement.pivot(index="layer", columns="kernel", values=name)
            yield Statistic(name, layers, labels, over_layers)


def _shift(shifts: pd.DataFrame) -> Iterator[Statistic]:
    for row in shifts.to_dict("records"):
        setting = {str(name): row[name] for name in LABELS if name != "prompts"}
        share = pd.DataFrame({"heads": [row["share"], row["low"], row["high"]]}, index=GIVEN)
        yield Statistic("shift", share, setting, given(row["resampled"]))


def _by_measurement(layers: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Labels of each measurement, and its rows."""
    for key, rows in layers.groupby(LABELS, sort=False):
        yield dict(zip(LABELS, key, strict=True)), rows
