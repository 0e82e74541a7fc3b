"""How content and attention are structured: Table 5 and Assumption 4.1, tidy, a row for each layer and for all.

Both come from means over prompts, so no interval over prompts can be given. What is given is how layers and heads
differ: the range of the middle 90 % of them (`p05`, `p95`) or, for the kernels, each layer. Nor is a mean over few
prompts the mean over many: what single prompts add to it makes entries less alike and kernels less monotone.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from position_bias.language_models.names import with_shown_names
from position_bias.structural.monotonicity import Monotonicity, monotonicity, pooled, released_kernel
from position_bias.structural.similarity import WAYS, similarities
from position_bias.verdicts.judge import resampled_interval
from position_card.core import runtime
from position_card.core.artifacts import TensorFile
from position_card.rollout.statistics import resampled_weights

LABELS = ["model", "checkpoint", "dataset", "n", "prompts"]
REGIONS = {"diagonal": "within diagonal", "below": "within off-diagonal", "between": "1 - JS"}  # in Table 5
EVERY_LAYER = "all"  # the layer of a row that summarises every layer

Labels = Mapping[str, Any]
Values = npt.NDArray[Any]


def table5(measured: list[TensorFile]) -> pd.DataFrame:
    """Make Table 5 from mean content logits `[L, H, n, n]` of each measurement, with one of them in memory at a time.

    `value` averages the heads of a layer, or all layers and heads; `outside` is the mean share of entries out of the
    histogram's range. Region `between` is 1 - Jensen-Shannon divergence of the two regions' histograms.
    """
    rows: list[dict[str, object]] = []
    for file in measured:
        labels, content = _labels(file.labels), file.read("content")["content"]
        rows += [{**labels, **row} for way in WAYS for row in _similarity_rows(content, way)]
        del content  # before the next one is read: each may take gigabytes
    return pd.DataFrame(rows)


def _similarity_rows(content: Values, way: str) -> Iterator[dict[str, object]]:
    for region, (values, outside) in similarities(content, way).items():
        layers: list[tuple[str, slice]] = [(str(t + 1), slice(t, t + 1)) for t in range(len(values))]
        for layer, of_layers in [(EVERY_LAYER, slice(None)), *layers]:
            low, high = np.quantile(values[of_layers], [0.05, 0.95])
            yield {
                "way": way,
                "region": region,
                "layer": layer,
                "value": values[of_layers].mean(),
                "p05": low,
                "p95": high,
                "outside": outside[of_layers].mean(),
            }


def shift(measured: list[TensorFile], replicates: int, level: float, seed: int) -> pd.DataFrame:
    """Section 6.1: is the shift of the diagonal one for all heads? From mean logits on the diagonal and below it.

    `share` of all layers and heads have a mean shift of the sign that their mean has, with the interval
    [low, high] over `resampled` documents; `mean` and `deviation` are those of the shift over layers and heads, as
    logits.
    """
    rows = []
    for file in measured:
        logits = file.read("diagonal", "below", "documents")
        by_prompt = (logits["diagonal"] - logits["below"]).reshape(len(logits["below"]), -1)
        mean = by_prompt.mean(axis=0)
        weights = resampled_weights(logits["documents"], replicates, runtime.seed(seed, "shift"))
        resampled = len(np.unique(logits["documents"]))
        low, high = map(float, resampled_interval(_share_of_sign(weights[1:] @ by_prompt), resampled, level))
        interval = {"share": float(_share_of_sign(mean)), "low": low, "high": high, "resampled": resampled}
        rows.append({**_labels(file.labels), **interval, "mean": mean.mean(), "deviation": mean.std()})
    return pd.DataFrame(rows)


def _share_of_sign(shift: Values) -> Values:
    """The share of the last axis that has the sign of its mean: [..., heads] -> [...]."""
    overall = np.sign(shift.mean(axis=-1, keepdims=True))
    return np.asarray((np.sign(shift) == overall).mean(axis=-1))


def monotonicity_of_layers(measured: list[TensorFile]) -> pd.DataFrame:
    """The `kernels` of the mean attention in the files, with the slopes of the same measurements."""
    measurements = ((file.labels, file.read("attention", "slopes")) for file in measured)
    return kernels((labels, arrays["attention"], arrays["slopes"]) for labels, arrays in measurements)


def kernels(measurements: Iterable[tuple[Labels, Values, Values | None]]) -> pd.DataFrame:
    """Judge Assumption 4.1 by labels, mean attention `[L, n, n]` and ALiBi slopes `[H]` of each measurement.

    `measured` is the attention itself, `released` the construction that the authors' notebook tests, of models with
    ALiBi. All layers together count their triples as one set.
    """
    rows = []
    for labels, attention, slopes in measurements:
        of_kernels = {"measured": [monotonicity(layer) for layer in attention]}
        if slopes is not None:
            of_kernels["released"] = [monotonicity(released_kernel(layer, slopes)) for layer in attention]
        for kernel, layers in of_kernels.items():
            rows += [{**_labels(labels), "kernel": kernel, **row} for row in _kernel_rows(layers)]
    return pd.DataFrame(rows)


def _kernel_rows(layers: list[Monotonicity]) -> Iterator[dict[str, object]]:
    by_layer = [(str(t), layer) for t, layer in enumerate(layers, start=1)]
    for name, layer in [(EVERY_LAYER, pooled(layers)), *by_layer]:
        yield {
            "layer": name,
            "triples": layer.triples,
            "violations": layer.rate,
            "gap": layer.gap,
            "shortfall": layer.shortfall,
        }


def readable_similarity(table: pd.DataFrame) -> pd.DataFrame:
    """Make a row a measurement and way, a column a region: mean over layers and heads, and the middle 90 % of them."""
    summary = table[table["layer"] == EVERY_LAYER].set_index([*LABELS, "way", "region"])
    spread = zip(summary["value"], summary["p05"], summary["p95"], strict=True)
    cells = pd.Series([f"{value:.2f} ({low:.2f} to {high:.2f})" for value, low, high in spread], summary.index)
    outside = summary["outside"].xs("diagonal", level="region").map("{:.1%}".format)
    regions = cells.unstack("region", sort=False)[[*REGIONS]].rename(columns=REGIONS)
    return with_shown_names(regions.assign(**{"diagonal out of range": outside}).reset_index())


def readable_kernels(table: pd.DataFrame) -> pd.DataFrame:
    """Make one row a measurement and kernel: all layers, and the lowest and highest layer."""
    rows = []
    for key, layers in table.groupby([*LABELS, "kernel"], sort=False):
        single = layers[layers["layer"] != EVERY_LAYER]
        (overall,) = layers[layers["layer"] == EVERY_LAYER].to_dict("records")
        rows.append(
            {
                **dict(zip([*LABELS, "kernel"], key, strict=True)),
                "violations": f"{overall['violations']:.2%} ({_range(single['violations'], '.2%')})",
                "gap where violated": f"{overall['gap']:.1e}" if overall["violations"] else "-",
                "shortfall": f"{overall['shortfall']:.1e} ({_range(single['shortfall'], '.1e')})",
            }
        )
    return with_shown_names(pd.DataFrame(rows))


def _range(values: pd.Series, form: str) -> str:
    return f"{values.min():{form}} to {values.max():{form}}"


def _labels(labels: Labels) -> dict[str, object]:
    return {name: labels[name] for name in LABELS}
