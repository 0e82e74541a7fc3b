"""These checks judge what Herasimchyk et al. 2026 claim of rollout and measured influence, by `comparison`.

A network is a variant of a rollout here, or the measured influence (d). Intervals are percentiles over bootstrap
replicates of documents, taken of each difference by itself; so evidence/ keeps differences with their intervals, and
fresh replicates are made such a table before they are judged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from position_bias.rollout.variants import SAME_FOR_EVERY_ESTIMATOR
from position_bias.statistics import percentile_interval
from position_bias.structural.content import LABELS
from position_bias.verdicts.judge import GIVEN, Statistic, given, judge, table
from position_bias.verdicts.registry import Predicted

# Columns: what is compared, and how many documents were resampled (prompts, where a table of evidence/ is older); of
# the replicates of comparisons; and of the tables of differences
OF_COMPARISON = [*LABELS, "resampled"]
REPLICATES = [*OF_COMPARISON, "estimator", "variant", "statistic", "replicate", "value"]
COMPARED = [*OF_COMPARISON, "statistic", "variant", "minus", "estimator", *GIVEN]
NOTHING = "none"  # which a statistic is taken from alone
OVER = " / "  # in the name of a ratio, of which the logarithm is judged: percentiles are the same of both
PAPERS_ESTIMATOR = "frobenius"  # of lambda, in the text of the paper: rows of the other one speak of no claim
SPEAK = (PAPERS_ESTIMATOR, SAME_FOR_EVERY_ESTIMATOR)

# Half of the last digit that the paper prints of a distance, also a share of the mass or of the sequence length. Chosen
# after a first run had shown (b) and (c) to differ by 0.00008, with an interval that excludes 0.
PRINTED = 0.005

# Occasions on which predictions are asked; the name of a statistic in published/predictions.csv begins with one. The
# paper does not say when in its training a model comes to have a U: the last two speak of no claim.
STANDARD = "standard"  # the primary data set, at the standard length
EVERY_DATASET = "every data set"  # at the standard length
LONG = "long"  # every data set, at the longer length
EVERY_LENGTH = "every length"  # every data set
UNTRAINED = "untrained"
DURING_TRAINING = "during training"
EARLIER = "earlier in a long training"
TREND = "spearman with depth"  # has so few values that its interval is read as a range of known numbers

Contrast = tuple[str, str, str]  # a statistic, the variant that it is taken of, and the one it is taken from or NOTHING
Comparison = Mapping[tuple[str, str, str], npt.NDArray[np.float64]]  # (statistic, variant, estimator) -> [1 + R]


def checks(
    values: pd.DataFrame,
    predictions: Mapping[str, list[Predicted]],
    scale: str,
    level: float,
    occasion: str = STANDARD,
) -> pd.DataFrame:
    """Judge what is predicted on an occasion of every comparison in `values`, under each estimator of lambda.

    `values` holds the replicates of `comparison.compare` under the columns OF_COMPARISON; a prediction that does not
    involve lambda has one row. Returns a table in the schema of `judge.COLUMNS` and KEYS. Raises KeyError where a
    comparison lacks a variant or statistic that is predicted of.
    """
    return judged(compared(values, level, contrasts(predictions, occasion)), predictions, scale, occasion)


def contrasts(predictions: Mapping[str, list[Predicted]], occasion: str) -> list[Contrast]:
    """What is asked on an occasion, in the order of the registry."""
    return [
        (statistic, predicted.network, predicted.other or NOTHING)
        for name, of_name in predictions.items()
        for asked, _, statistic in [name.partition(": ")]
        for predicted in of_name
        if asked == occasion
    ]


def compared(values: pd.DataFrame, level: float, contrasts: Sequence[Contrast]) -> pd.DataFrame:
    """What a statistic is of one variant, or of one less another, with percentile intervals: columns COMPARED.

    `values` as for `checks`.
    """
    asked = values[values["statistic"].isin({statistic for statistic, _, _ in contrasts})]
    rows: list[tuple[Any, ...]] = []
    for labels, of_comparison in asked.groupby(OF_COMPARISON, sort=False):
        wide = of_comparison.pivot(index="replicate", columns=["statistic", "variant", "estimator"], values="value")
        comparison: Comparison = dict(zip(wide, wide.to_numpy().T, strict=True))  # type: ignore[arg-type]
        differences = {
            (statistic, *pair, estimator): _difference(statistic, pair, estimator, comparison)
            for statistic, *pair in contrasts
            for estimator in _estimators(statistic, pair, comparison)
        }
        drawn = np.stack(list(differences.values()))
        ends = percentile_interval(drawn[:, 1:].T, level)
        estimates = zip(differences, drawn[:, 0], *ends, strict=True)
        rows += [(*labels, *contrast, *map(float, estimate)) for contrast, *estimate in estimates]
    return pd.DataFrame(rows, columns=COMPARED)


def _estimators(statistic: str, pair: Iterable[str], comparison: Comparison) -> list[str]:
    """The estimators of lambda that this is compared under; one, where neither profile depends on lambda."""
    named = {estimator for name, variant, estimator in comparison if name == statistic and variant in pair}
    return sorted(named - {SAME_FOR_EVERY_ESTIMATOR}) or [SAME_FOR_EVERY_ESTIMATOR]


def _difference(statistic: str, pair: Iterable[str], estimator: str, comparison: Comparison) -> npt.NDArray[np.float64]:
    """A statistic of a variant, less that of another unless it is NOTHING, for all prompts and for every replicate."""
    keys = [(statistic, variant, estimator) for variant in pair if variant != NOTHING]
    values = [comparison[key if key in comparison else (*key[:2], SAME_FOR_EVERY_ESTIMATOR)] for key in keys]
    return values[0] if len(values) == 1 else values[0] - values[1]


def judged(
    compared: pd.DataFrame, predictions: Mapping[str, list[Predicted]], scale: str, occasion: str
) -> pd.DataFrame:
    """Judge a table with columns COMPARED by what is predicted on an occasion; rows nobody predicts of have none."""
    asked = (statistic for statistic in statistics(compared, occasion) if statistic.name in predictions)
    return table("structural", scale, judge(asked, predictions))


def statistics(compared: pd.DataFrame, occasion: str) -> Iterator[Statistic]:
    """Make statistics of a table with columns COMPARED, one for each estimator of lambda: (variant, minus) across."""
    for key, rows in compared.groupby([*OF_COMPARISON, "estimator", "statistic"], sort=False):
        setting: dict[str, Any] = dict(zip([*OF_COMPARISON, "estimator", "statistic"], key, strict=True))
        del setting["prompts"]
        resampled, statistic = setting.pop("resampled"), setting.pop("statistic")
        pairs = list(zip(rows["variant"], rows["minus"].replace(NOTHING, ""), strict=True))
        of_pairs = rows[[*GIVEN]].T.set_axis(pd.Index(pairs, tupleize_cols=False), axis=1)
        if OVER in statistic:
            of_pairs = of_pairs.map(np.log)
        estimate = given(int(resampled), known=statistic == TREND)
        yield Statistic(f"{occasion}: {statistic}", of_pairs, setting, estimate, speaks=setting["estimator"] in SPEAK)
