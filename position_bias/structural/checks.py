"""Every verdict on what Herasimchyk et al. 2026 claim, and on what we add, but for theory (`checks_theory`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from position_bias.structural.content import EVERY_LAYER, LABELS
from position_bias.structural.initialization import initialization_checks
from position_bias.structural.tables import step
from position_bias.verdicts.judge import (
    ESTIMATE,
    INTERVAL,
    Estimate,
    Statistic,
    judge,
    own_interval,
    percentiles,
    published,
    resampled_interval,
    student,
    table,
)
from position_bias.verdicts.registry import PRETRAINED, Prediction, predictions
from position_card.rollout.comparison import DISTANCE, INFLUENCE, SHAPE
from position_card.rollout.last_row import last_row
from position_card.rollout.variants import SAME_FOR_EVERY_ESTIMATOR

Predictions = Mapping[str, list[Prediction]]

# Columns: what is compared, and how many documents were resampled (prompts, where a table of evidence/ is older); of
# the replicates of comparisons; and of the tables of differences
OF_COMPARISON = [*LABELS, "resampled"]
REPLICATES = [*OF_COMPARISON, "estimator", "variant", "statistic", "replicate", "value"]
DIFFERENCES = [*OF_COMPARISON, "statistic", "variant", "minus", "estimator", *INTERVAL]
NO_OTHER = "none"  # which a statistic is taken from alone
OVER = " / "  # in the name of a ratio, of which the logarithm is judged: percentiles are the same of both
PAPERS_ESTIMATOR = "frobenius"  # of lambda, in the text of the paper: rows of the other one speak of no claim
SPEAK = (PAPERS_ESTIMATOR, SAME_FOR_EVERY_ESTIMATOR)

# Half of the last digit that the paper prints of a distance, also a share of the mass or of the sequence length. Chosen
# after a first run had shown (b) and (c) to differ by 0.00008, with an interval that excludes 0.
PRINT_ROUNDING = 0.005

# Occasions on which predictions are asked; the name of a statistic in published/predictions.csv begins with one. The
# paper does not say when in its training a model comes to have a U: the last two speak of no claim.
STANDARD = "standard"  # the primary data set, at the standard length
EVERY_DATASET = "every data set"  # at the standard length
LONG = "long"  # every data set, at the longer length
EVERY_LENGTH = "every length"  # every data set
BEFORE_TRAINING = "untrained"  # models whose ratios had been seen before this was asked
FRESH = "untrained, fresh"  # all others
DURING_TRAINING = "during training"
EARLIER = "earlier in a long training"
TREND = "spearman with depth"  # has so few values that its interval is read as a range of known numbers

Contrast = tuple[
    str, str, str
]  # a statistic, the variant that it is taken of, and the one it is taken from or NO_OTHER
Comparison = Mapping[tuple[str, str, str], npt.NDArray[np.float64]]  # (statistic, variant, estimator) -> [1 + R]

SEEN_UNTRAINED = ("bloom",)  # of the models of long trainings
PAPERS_PROMPTS = 1000  # least number that the claim about similarity is about
LARGER = ("mpt-30b", "bloom-176b")  # the larger models that Appendix C.3 names

LAYERS, HEADS = 70, 112  # of bloom-176b
AS_DRAWN = {"model": "bloom-176b", "checkpoint": "as drawn", "dataset": "fineweb-edu", "estimator": "token"}

OF_RELEASED = ["model", "dataset", "n", "statistic", "network", "slopes", "content", "value"]
OF_FIGURE_1 = "fineweb-edu"  # the data set
AS_RELEASED = {"checkpoint": "as released", "estimator": "token"}
AFTERWARDS = ("shift", "W to the model's own", "excess over the triangle inequality")  # asked of after they were seen

# How the names of statistics begin: the paper's claims, ours, what was written down about all five decoders later,
# about how far words are moved and about the length of contexts when SmolLM2 alone had been measured so, and about the
# norm of the first token
PAPER_CLAIMS, OUR_CLAIMS, LATER_CLAIMS = "pretrained: ", "pretrained, ours: ", "pretrained, later: "
CURVE_CLAIMS, SINK_CLAIMS, LENGTH_CLAIMS = "pretrained, curve: ", "pretrained, sink: ", "pretrained, length: "
EARLY_DECODERS = ("smollm2-135m", "gemma-3-270m", "qwen2.5-coder-0.5b")  # measured before our claims were written down
SEEN_BEFORE = {
    PAPER_CLAIMS: EARLY_DECODERS,
    OUR_CLAIMS: EARLY_DECODERS,
    LATER_CLAIMS: (*EARLY_DECODERS, "stories15m", "minimind2-small"),
    CURVE_CLAIMS: EARLY_DECODERS[:1],
    SINK_CLAIMS: (),
    LENGTH_CLAIMS: EARLY_DECODERS[:1],
}
DECODER = ("model", "dataset", "n")
OF_DECODERS = (*DECODER, "statistic", "network", "unit", "documents", "value", "scale")  # of the tables in evidence/


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
    initialization: list[pd.DataFrame],
    long_training: list[pd.DataFrame],
    alike: list[pd.DataFrame],
    similarity: pd.DataFrame,
    monotonicity: pd.DataFrame,
    predicted: Path,
    primary: str,
    scale: str,
    level: float,
) -> pd.DataFrame:
    """Return verdicts in the schema of `judge.COLUMNS`, with keys.

    The first four are replicates of rollouts: at earlier steps of training, and of trained models at the standard
    length, the long one and all others. `primary` is the data set of figures that show one. `pretrained`,
    `long_training` and `alike`, which is `similarity` of long trainings, are tables of evidence/ or like those;
    `pretrained_kernels` are those of `content` on pretrained decoders, `initialization` those of that module.
    `published` are printed distances and `curves` drawn profiles of the paper, `released` the statistics of the
    schedules that its authors released. The
    others are tables of the same names.
    """
    registry = predictions(predicted, "structural")

    def rollouts(values: pd.DataFrame, occasion: str) -> pd.DataFrame:
        return on_rollouts(values, registry, scale, level, occasion)

    tables = [
        rollouts(at_standard[at_standard["dataset"] == primary], STANDARD),
        rollouts(at_standard, EVERY_DATASET),
        rollouts(at_long, LONG),
        *(rollouts(values, EVERY_LENGTH) for values in (at_standard, *at_more, at_long)),
        *(rollouts(values, DURING_TRAINING) for values in during_training),
        *(rollouts(at_step_0, BEFORE_TRAINING) for at_step_0 in map(_before_training, during_training)),
        on_content(similarity, monotonicity, shift, registry, scale),
        *(on_similarity(values, registry) for values in alike),
        on_print(published, registry, scale),
        on_drawings(curves, registry),
        on_released(released, registry),
        on_decoders(pretrained, registry, level),
        *(on_kernels(kernels, registry) for kernels in pretrained_kernels),
        initialization_checks(initialization, registry, level),
        *on_long_trainings(long_training, registry),
    ]
    return pd.concat(tables)


def _before_training(values: pd.DataFrame) -> pd.DataFrame:
    return values[values["checkpoint"].map(step) == 0]


def on_rollouts(
    values: pd.DataFrame,
    predictions: Predictions,
    scale: str,
    level: float,
    occasion: str = STANDARD,
) -> pd.DataFrame:
    """Judge what is predicted on an occasion of every comparison in `values`, under each estimator of lambda.

    A network is a variant of a rollout, or the measured influence (d). Intervals are percentiles over bootstrap
    replicates of documents, taken of each difference by itself; so evidence/ keeps differences with their intervals,
    and fresh replicates are made such a table before they are judged.

    `values` holds the replicates of `comparison.compare` under the columns OF_COMPARISON; a prediction that does not
    involve lambda has one row. Returns a table in the schema of `judge.COLUMNS` and KEYS. Raises KeyError where a
    comparison lacks a variant or statistic that is predicted of.
    """
    return judge_differences(
        variant_differences(values, level, contrasts(predictions, occasion)), predictions, scale, occasion
    )


def contrasts(predictions: Predictions, occasion: str) -> list[Contrast]:
    """Return the contrasts that the registry predicts on an occasion, in its order."""
    return [
        (statistic, prediction.network, prediction.other or NO_OTHER)
        for name, of_name in predictions.items()
        for named_occasion, _, statistic in [name.partition(": ")]
        for prediction in of_name
        if named_occasion == occasion
    ]


def variant_differences(values: pd.DataFrame, level: float, contrasts: Sequence[Contrast]) -> pd.DataFrame:
    """Return each of the `contrasts` in every comparison, with its percentile interval at `level`: columns DIFFERENCES.

    A contrast is a statistic of one variant, or that of one variant less that of another. `values` has the columns
    REPLICATES, as for `on_rollouts`. Raises KeyError where a comparison lacks a statistic or a variant.
    """
    selected = values[values["statistic"].isin({statistic for statistic, _, _ in contrasts})]
    rows: list[tuple[Any, ...]] = []
    for labels, of_comparison in selected.groupby(OF_COMPARISON, sort=False):
        wide = of_comparison.pivot(index="replicate", columns=["statistic", "variant", "estimator"], values="value")
        comparison: Comparison = dict(zip(wide, wide.to_numpy().T, strict=True))  # type: ignore[arg-type]
        differences = {
            (statistic, *pair, estimator): _difference(statistic, pair, estimator, comparison)
            for statistic, *pair in contrasts
            for estimator in _estimators(statistic, pair, comparison)
        }
        resampled = np.stack(list(differences.values()))
        documents = int(of_comparison["resampled"].iloc[0])
        ends = resampled_interval(resampled[:, 1:].T, documents, level)
        estimates = zip(differences, resampled[:, 0], *ends, strict=True)
        rows += [(*labels, *contrast, *map(float, estimate)) for contrast, *estimate in estimates]
    return pd.DataFrame(rows, columns=DIFFERENCES)


def _estimators(statistic: str, pair: Iterable[str], comparison: Comparison) -> list[str]:
    """The estimators of lambda that this is compared under; one, where neither profile depends on lambda."""
    estimators = {estimator for name, variant, estimator in comparison if name == statistic and variant in pair}
    return sorted(estimators - {SAME_FOR_EVERY_ESTIMATOR}) or [SAME_FOR_EVERY_ESTIMATOR]


def _difference(statistic: str, pair: Iterable[str], estimator: str, comparison: Comparison) -> npt.NDArray[np.float64]:
    """A statistic of a variant, less that of another unless it is NO_OTHER, for all prompts and for every replicate."""
    keys = [(statistic, variant, estimator) for variant in pair if variant != NO_OTHER]
    values = [comparison[key if key in comparison else (*key[:2], SAME_FOR_EVERY_ESTIMATOR)] for key in keys]
    return values[0] if len(values) == 1 else values[0] - values[1]


def judge_differences(differences: pd.DataFrame, predictions: Predictions, scale: str, occasion: str) -> pd.DataFrame:
    """Judge a table with columns DIFFERENCES by what is predicted on an occasion; rows nobody predicts of have none."""
    statistics = (statistic for statistic in rollout_statistics(differences, occasion) if statistic.name in predictions)
    return table("structural", scale, judge(statistics, predictions))


def rollout_statistics(differences: pd.DataFrame, occasion: str) -> Iterator[Statistic]:
    """Make statistics of a table with columns DIFFERENCES, one an estimator of lambda: (variant, minus) across."""
    for key, rows in differences.groupby([*OF_COMPARISON, "estimator", "statistic"], sort=False):
        setting: dict[str, Any] = dict(zip([*OF_COMPARISON, "estimator", "statistic"], key, strict=True))
        del setting["prompts"]
        resampled, statistic = setting.pop("resampled"), setting.pop("statistic")
        pairs = list(zip(rows["variant"], rows["minus"].replace(NO_OTHER, ""), strict=True))
        of_pairs = rows[[*INTERVAL]].T.set_axis(pd.Index(pairs, tupleize_cols=False), axis=1)
        if OVER in statistic:
            of_pairs = of_pairs.map(np.log)
        estimate = own_interval(int(resampled), known=statistic == TREND)
        yield Statistic(f"{occasion}: {statistic}", of_pairs, setting, estimate, speaks=setting["estimator"] in SPEAK)


def on_long_trainings(evidence: Iterable[pd.DataFrame], predictions: Predictions) -> Iterator[pd.DataFrame]:
    """Judge language models that trained for longer than those of the default run, by tables of evidence/.

    What the paper says of trained models is asked of the last kept step, and what it says of architectures of the
    first, before training. Other rows of earlier steps tell whether measured influence was U-shaped then, and whether
    content mattered; the paper does not say when, so they speak of no claim. The tables have the
    columns DIFFERENCES and a column `scale`; yields tables in the schema of `judge.COLUMNS`.
    """
    for rows in evidence:
        for (model, scale), of_model in rows.groupby(["model", "scale"]):
            steps = of_model["checkpoint"].map(step)
            before = BEFORE_TRAINING if model in SEEN_UNTRAINED else FRESH
            yield judge_differences(of_model[steps == 0], predictions, str(scale), before)
            yield judge_differences(of_model[steps < steps.max()], predictions, str(scale), EARLIER)
            yield judge_differences(of_model[steps == steps.max()], predictions, str(scale), STANDARD)


def on_content(
    similarity: pd.DataFrame,
    kernels: pd.DataFrame,
    shifts: pd.DataFrame,
    predictions: Predictions,
    scale: str,
) -> pd.DataFrame:
    """Return verdicts on `content.table5`, `kernels` and `shift`, in the schema of `judge.COLUMNS`.

    They are on what the paper assumes of content (Appendix E) and attention (Assumption 4.1). Its numbers are lost from
    the text at hand, so we chose the bounds. An interval reaches from the lowest layer to the highest: these are all
    layers, not a sample, and the means over prompts carry no interval of their own. A check thus holds where it holds
    in every layer, and fails where it fails in every layer. Networks are the ways of Table 5 and the kernels; what the
    paper means is the way `causal` and the `measured` kernel.

    What single prompts leave in a mean hides the structure of content: similarity grows with the number of prompts.
    With fewer than the paper averages over, its claim about similarity is not testable. Assumption 4.1 is: a mean over
    few prompts has more violations, not fewer.

    Each way of Table 5 and each kernel has its own; `measured` is the value of all layers together, `n` their number.
    The share of heads that shift the diagonal the same way has an interval over documents, and `n` is their number. We
    read the global shift that the paper speaks of as one for all heads.
    """
    statistics = [*_similarity(similarity), *_monotonicity(kernels), *_shift(shifts)]
    return table("structural", scale, judge(statistics, predictions))


def on_similarity(alike: pd.DataFrame, predictions: Predictions) -> pd.DataFrame:
    """Return verdicts on a table of evidence/ that is like `content.table5`, with a column `scale`, as `on_content`."""
    (scale,) = alike["scale"].unique()
    return table("structural", str(scale), judge(_similarity(alike), predictions))


def on_kernels(kernels: pd.DataFrame, predictions: Predictions) -> pd.DataFrame:
    """Return verdicts on `content.kernels` of pretrained decoders alone, as `on_content`."""
    return table("structural", PRETRAINED, judge(_monotonicity(kernels), predictions))


def over_layers(values: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """The value of EVERY_LAYER together, from the lowest layer to the highest."""
    layers = values.drop(EVERY_LAYER)
    return Estimate(float(values[EVERY_LAYER]), float(layers.min()), float(layers.max()), len(layers), known=True)


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
        share = pd.DataFrame({"heads": [row["share"], row["low"], row["high"]]}, index=INTERVAL)
        yield Statistic("shift", share, setting, own_interval(row["resampled"]))


def _by_measurement(layers: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the labels of each measurement in a table with columns LABELS, by name, and its rows."""
    for key, rows in layers.groupby(LABELS, sort=False):
        yield dict(zip(LABELS, key, strict=True)), rows


def on_print(printed: pd.DataFrame, predictions: Predictions, scale: str) -> pd.DataFrame:
    """Verdicts in the schema of `judge.COLUMNS` on what the text says of its own printed distances (Appendix C.3).

    Nothing here was measured by us. The text at hand has lost the columns of (a) in Tables 3 and 4, and we read the six
    numbers of a row as (b) and (c) on the three data sets. Statistics were chosen after the tables had been typed. A
    distance is printed to .01, and intervals reach as far as this rounding allows. Networks are the variants (b) and
    (c), and units cells of a table: models and data sets. `printed` has the columns table, dataset, model, variant,
    value.
    """
    return table("structural", scale, judge(_of_print(printed), predictions))


def _of_print(printed: pd.DataFrame) -> Iterator[Statistic]:
    """Distances as printed, at 256 tokens (Table 3) and at the longer length (Table 4)."""
    short, long = (
        printed[printed["table"] == name].pivot(index=["model", "dataset"], columns="variant", values="value")
        for name in ("table3", "table4")
    )
    yield Statistic("printed: closer", short, {"cells": len(short)}, more_often_closer)
    yield Statistic("printed: closer in larger models", short, estimate=more_often_closer_in_larger)
    yield Statistic("printed: distance in larger models", short, estimate=distance_in_larger)
    first = printed[printed["table"] == "table2"].pivot(index=["model", "dataset"], columns="variant", values="value")
    yield Statistic("printed: gain in larger models", first, estimate=distance_in_larger)
    yield Statistic("printed: closer at the longer length", long, {"cells": len(long)}, more_often_closer)


def more_often_closer(cells: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """The share of cells with a difference of distances below 0, less that above; a count, which has no width."""
    return _without_width(_closer(cells))


def more_often_closer_in_larger(cells: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """As `more_often_closer`, in larger models less in the others."""
    larger = _larger(cells)
    return _without_width(_closer(cells[larger]) - _closer(cells[~larger]))


def distance_in_larger(cells: pd.Series, prediction: Prediction, level: float) -> Estimate:
    """The mean over cells of larger models less that over the others; both may be off by their rounding."""
    larger = _larger(cells)
    less = float(cells[larger].mean() - cells[~larger].mean())
    rounding = 2 * PRINT_ROUNDING * (2 if prediction.relation == ">" else 1)  # a difference is rounded twice
    return Estimate(less, less - rounding, less + rounding, len(cells), known=True)


def _closer(cells: pd.Series) -> float:
    return float((cells < 0).mean() - (cells > 0).mean())


def _larger(cells: pd.Series) -> pd.Series:
    return pd.Series(cells.index.get_level_values("model").isin(LARGER), cells.index)


def _without_width(share: float) -> Estimate:
    return Estimate(share, share, share, 1)


def on_drawings(curves: pd.DataFrame, predictions: Predictions) -> pd.DataFrame:
    """Compare profiles of bloom-176b that the authors drew with the claims of the paper; only Table 2 is judged.

    `curves` has the columns variant, token and share: one profile for each of the rollouts (a), (b) and (c), and one
    for the influence (d). Only these drawings are known, without the prompts behind them. So numbers that are read from
    them have no interval; they are shown, and speak of no claim.

    Table 2 is the exception, whose drawn distances are taken as known. By the triangle inequality, (b) and (c) are
    closer to the influence than (a), unless the true influence lies .28 of the length of the prompt from the drawn one.

    The authors' configurations gave (a), (b) and (c) the slopes 2^(-8 h / heads), content without the factor
    1/sqrt(head_dim), and lambda by the estimator of their first version. Returns rows of `judge.COLUMNS` at the scale
    "paper"; all but those of Table 2 are not testable here.
    """
    statistics = (statistic for statistic in _of_drawings(curves) if statistic.name in predictions)
    return table("structural", "paper", judge(statistics, predictions))


def _of_drawings(curves: pd.DataFrame) -> Iterator[Statistic]:
    """What is asked at the standard length, of drawn profiles and of the nulls: networks across, INTERVAL down."""
    by_token = curves.pivot(index="token", columns="variant", values="share")
    n = len(by_token)
    curve_of = {str(name): by_token[name].to_numpy() for name in by_token}
    half = last_row(n, np.full(LAYERS, 0.5), 2.0 ** (-8 * np.arange(1, HEADS + 1) / HEADS))
    profiles = {**curve_of, "half": half, "uniform": np.full(n, 1 / n), "last": np.eye(n)[-1]}
    predictions_of_influence = {network: profile for network, profile in profiles.items() if network != INFLUENCE}
    values = {name: {network: shape(profile) for network, profile in profiles.items()} for name, shape in SHAPE.items()}
    for name, distance in DISTANCE.items():
        values[name] = {
            network: distance(profile, curve_of[INFLUENCE]) for network, profile in predictions_of_influence.items()
        }
    far = values["wasserstein"].pop("a")
    closer = {("a", variant): [float(far - values["wasserstein"][variant])] for variant in "bc"}
    pairs = pd.DataFrame([*closer.values()], index=pd.Index(closer, tupleize_cols=False)).T
    yield Statistic(f"{STANDARD}: wasserstein", pairs, {**AS_DRAWN, "n": n}, published)
    for name, by_network in values.items():
        without_interval = pd.DataFrame(by_network, index=INTERVAL[:1], dtype=float).reindex(INTERVAL)
        judged_values = without_interval.map(np.log) if OVER in name else without_interval
        yield Statistic(f"{STANDARD}: {name}", judged_values, {**AS_DRAWN, "n": n}, own_interval(1), speaks=False)


def on_released(tables: Iterable[pd.DataFrame], predictions: Predictions) -> pd.DataFrame:
    """Judge the five big models by lambda and content that the authors released: tables with OF_RELEASED, if any.

    Rollouts follow from these without sampling, so what is said of them is known, and needs no interval. Judged are the
    configurations of the authors, with their slopes and their content, on the data set of Figure 1. Their lambda is by
    the estimator of the paper's first version. Other data sets, and the models' own slopes and content, stand beside
    them in evidence/structural/released/, and speak of no claim. What AFTERWARDS
    names was seen before it was asked. Returns verdicts in the schema of `judge.COLUMNS`.
    """
    statistics = (statistic for values in tables for statistic in _of_released(values) if statistic.name in predictions)
    return table("structural", "paper", judge(statistics, predictions))


def _of_released(released: pd.DataFrame) -> Iterator[Statistic]:
    """What is asked of each model at the standard length: networks across, and the one value that is known."""
    released = released[OF_RELEASED]
    as_released = (
        (released["slopes"] != "faithful") & (released["slopes"] != "doubled") & (released["content"] != "faithful")
    )
    of_figure = released[as_released & (released["dataset"] == OF_FIGURE_1)]
    for key, rows in of_figure.groupby(["model", "dataset", "n", "statistic"], sort=False):
        model, dataset, n, name = map(str, key)
        setting: dict[str, Any] = {"model": model, "dataset": dataset, "n": int(n), **AS_RELEASED}
        values = rows.pivot(index="n", columns="network", values="value")
        judged_values = values.map(np.log) if OVER in name else values
        occasion = "released " if name in AFTERWARDS else f"{STANDARD}: "
        yield Statistic(f"{occasion}{name}", judged_values, setting, published)


def on_decoders(evidence: Iterable[pd.DataFrame], predictions: Predictions, level: float) -> pd.DataFrame:
    """Judge real decoders smaller than the paper's, by gradients and by the replacement of single tokens.

    Each model has verdicts of its own, over documents. A share enters by its logarithm, and so does each position of
    the middle, of which the mean is taken: a position that is like those of the middle then has the ratio 1, however
    widely the effects of single tokens spread. Beside it stands the ratio of mean effects, with documents resampled: a
    figure of mean profiles shows it, and it speaks of no claim, since such an interval misses too often. What we claim
    of replacement was written down after some models had been measured: these can contradict a claim, and confirm none.

    Returns verdicts in the schema of `judge.COLUMNS`, on tables with OF_DECODERS. A unit is a document, or of recall
    a context. Where a quantity is of a mean over documents, units are resamples of them, and ESTIMATE is all documents
    as they are. A claim of ours that no row speaks of has rows which say that it cannot be tested. Where several tables
    have the same quantity, `with_most_documents` says which is judged.
    """
    registry = {name: rows for name, rows in predictions.items() if name.startswith(tuple(SEEN_BEFORE))}
    tables = with_most_documents(evidence)
    rows = [row for values in tables for row in judge(_decoders(values, registry), registry, level)]
    heard = {row["claim"] for row in rows}
    silent = {
        name: [row for row in of_name if row.claim and row.claim not in heard]
        for name, of_name in registry.items()
        if name.startswith((OUR_CLAIMS, LATER_CLAIMS, CURVE_CLAIMS, SINK_CLAIMS, LENGTH_CLAIMS))
    }
    return table("structural", PRETRAINED, [*rows, *judge(_unmeasured(silent), silent, level)])


def with_most_documents(evidence: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The tables, each with those statistics alone that no other has of more documents, all networks together.

    Prompts of a short run are among those of a longer one, and together they would count documents twice. Of two tables
    with as many documents the first keeps a statistic.
    """
    tables = list(evidence)
    quantity = [*DECODER, "statistic"]
    counts = [values.groupby(quantity)["documents"].sum() for values in tables]
    fullest = pd.DataFrame(dict(enumerate(counts))).idxmax(axis=1)
    for place, values in enumerate(tables):
        yield values[fullest.loc[pd.MultiIndex.from_frame(values[quantity])].to_numpy() == place]


def _decoders(values: pd.DataFrame, predictions: Predictions) -> Iterator[Statistic]:
    """What is asked of each model on each text at each length: units down, networks across."""
    of_means = values["statistic"].isin(values["statistic"][values["unit"] == ESTIMATE])
    resampled = values["documents"].where(of_means, 0)  # together, as many as there are
    for (*labels, statistic, _), rows in values.groupby([*DECODER, "statistic", resampled], sort=False):
        setting = dict(zip(DECODER, labels, strict=True))
        across = rows.pivot(index="unit", columns="network", values="value")
        estimate = percentiles(int(rows["documents"].iloc[0])) if ESTIMATE in across.index else student
        wording = {"decoder": "{model}, {dataset}, {n} tokens".format(**setting)}
        units_of = {str(network): units.array for network, units in rows.groupby("network")["unit"]}
        for occasion, models in SEEN_BEFORE.items():
            if (name := f"{occasion}{statistic}") in predictions:
                is_earlier = setting["model"] in models
                seen_units = {network: pd.Series(is_earlier, index=units) for network, units in units_of.items()}
                yield Statistic(name, across, setting, estimate, wording=wording, seen_units=seen_units)


def _unmeasured(predictions: Predictions) -> Iterator[Statistic]:
    """Every statistic that is asked for, of no model."""
    for name, rows in predictions.items():
        networks = {network for row in rows for network in (row.network, row.other) if network}
        empty = pd.DataFrame(columns=sorted(networks), dtype=float)
        yield Statistic(name, empty, wording={"decoder": "no further decoder was measured"})
