"""What was measured of a pretrained decoder, by two measures, as tables: of what is judged, and of what is drawn.

Effects of single positions come as the norms of gradients, or as what replacing the token there changes. Documents are
the units: prompts of one document are averaged, and resampled together. Where rollouts are compared with influence,
groups of documents are resampled, each with its own mean attention, queries and keys (`Measurement.units`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_bias.structural import content
from position_bias.structural.checks import DECODER, OF_DECODERS
from position_bias.verdicts.judge import ESTIMATE
from position_bias.verdicts.registry import PRETRAINED
from position_card.core import runtime
from position_card.core.artifacts import TensorFile
from position_card.rollout import measurement
from position_card.rollout.attention import Array
from position_card.rollout.measurement import BACKWARD, FROBENIUS_APART, Floats, Measurement
from position_card.rollout.parts import inside, logarithms_over_middle, middle_half
from position_card.rollout.statistics import (
    percentile_interval,
    resampled_weights,
    spearman,
    total_variation,
    wasserstein,
)
from position_card.rollout.variants import variants

FIRST, LAST = "log first / middle", "log last / middle"
ELSEWHERE, OF_MEANS = ", elsewhere", " of means"
HUB = "hub"  # the checkpoint that is no copy
COPIES = {"copy": "", "usual": " at .02"}  # how names of copies begin -> how predictions tell them from one another
GRADIENT, REPLACEMENT = "gradient", "replacement"
RANDOM_WEIGHTS = f"untrained {GRADIENT}"
ROTARY = "mean-query-key"
PROFILES = {"influence": GRADIENT, ROTARY: "rotary", "mean-attention": "measured"}
ROLLOUTS = {  # what predictions call rollouts and the profiles that know nothing, by their names in `variants`
    "influence": "influence",
    ROTARY: "rotary",
    "mean-attention": "measured",
    "content-free": "content-free",
    "half": "half",
    "uniform": "uniform",
    "logit-by-distance": "logit by distance",
    "logit-by-distance-apart": "logit by distance without the first token",
}
KERNELS = ("logit by distance", "logit by distance without the first token")
FROBENIUS = "frobenius"
LAMBDAS = {"token": "token", FROBENIUS_APART: "without the first token", BACKWARD: BACKWARD}  # what predictions say

Values = Mapping[int, float]  # by unit


class Effects(NamedTuple):
    """Effects [N, P] of some positions of prompts of n tokens on the prediction of the next one."""

    effects: Array
    positions: Sequence[int]
    n: int
    documents: NDArray[np.int64]  # [N]
    first: int  # how many start tokens stand before the text

    def logs(self, position: int) -> Values:
        """The logarithm of a position's effect over those of the middle, the mean over the prompts of each document."""
        logarithms = logarithms_over_middle(self.effects, self.positions, self.n)
        return by_document(logarithms[:, self.positions.index(position)], self.documents)

    def over_middle(self, weights: Array) -> Array:
        """Mean effects over that of the middle, with each row of weights over the prompts: [R, N] -> [R, P]."""
        means = weights @ self.effects
        return np.asarray(means / means[:, inside(self.positions, self.n)].mean(-1, keepdims=True))

    def profile(self, replicates: int, seed: int, influence: Array | None = None) -> Array:
        """Geometric means over documents of what `logs` has of each position, and in each resample: [1 + R, P].

        With the `influence` of every position [N, n], the same of all of them, over the same middle: [1 + R, n].
        """
        over = logarithms_over_middle(self.effects, self.positions, self.n)
        if influence is not None:
            over = np.log(influence) + over[:, :1] - np.log(self.effects[:, :1])
        of_documents = pd.DataFrame(over).groupby(self.documents).mean().to_numpy()
        return np.asarray(np.exp(resampled_weights(np.arange(len(of_documents)), replicates, seed) @ of_documents))

    def first_prompts(self, count: int) -> "Effects":
        """The same of the first prompts alone."""
        return self._replace(effects=self.effects[:count], documents=self.documents[:count])


def by_document(values: Array, documents: NDArray[np.int64]) -> Values:
    """The mean of values [N] of prompts over those of each document."""
    return {document: float(values[documents == document].mean()) for document in map(int, np.unique(documents))}


class DecoderMeasurement(NamedTuple):
    """What was measured of one set of weights on one data set at one length."""

    setting: dict[str, Any]  # DECODER
    quantities: Measurement
    gradient: Effects
    elsewhere: bool  # not where tokens are replaced, but at another length or on another data set

    @classmethod
    def read(cls, file: TensorFile, primary: str, standard: int) -> "DecoderMeasurement":
        """Read the file of a measurement."""
        labels, quantities = file.labels, measurement.read(file.path)
        assert quantities.influence is not None
        gradient = Effects(
            quantities.influence[:, labels["positions"]].astype(np.float64),
            labels["positions"],
            quantities.n,
            quantities.documents,
            labels["before"],
        )
        elsewhere = (labels["dataset"], quantities.n) != (primary, standard)
        return cls({name: labels[name] for name in DECODER}, quantities, gradient, elsewhere)


def pretrained_tables(
    measured: list[TensorFile],
    replaced: TensorFile,
    primary: str,
    standard: int,
    replicates: int,
    level: float,
    seed: int,
) -> dict[str, pd.DataFrame]:
    """The tables of one model: `values`, which are judged, with columns `checks.OF_DECODERS`; what is drawn.

    `measured` are the measurements of the model and its copies, and `replaced` what single tokens change in the model,
    at the `standard` length on the `primary` data set. Drawn are `profiles` of the two measures and of rollouts by
    position. `kernels` are those of `content` on Assumption 4.1.
    """
    of_weights: dict[str, list[DecoderMeasurement]] = {}
    for file in measured:
        of_weights.setdefault(file.labels["checkpoint"], []).append(DecoderMeasurement.read(file, primary, standard))
    (at_standard,) = (decoder for decoder in of_weights[HUB] if not decoder.elsewhere)
    drawn_by = runtime.seed(seed, "documents", primary, standard)
    changed = replaced.read(REPLACEMENT)[REPLACEMENT]
    gradient = at_standard.gradient.first_prompts(len(changed))
    pair = {GRADIENT: gradient, REPLACEMENT: gradient._replace(effects=changed)}
    copies = {
        weights: _together([of_weights[name][0].gradient for name in of_weights if name.startswith(weights)])
        for weights in COPIES
    }
    rows = [
        *(row for decoder in of_weights[HUB] for row in _of_gradients(decoder)),
        *_ends(at_standard.setting, REPLACEMENT, pair[REPLACEMENT]),
        *(
            row
            for weights, at in COPIES.items()
            for row in _ends(at_standard.setting, RANDOM_WEIGHTS + at, copies[weights])
        ),
        *_of_means(at_standard, pair, replicates, drawn_by),
        *_of_rollouts(at_standard, replicates, drawn_by),
    ]
    values = pd.DataFrame(rows, columns=OF_DECODERS)
    profiles = pd.concat(_profiles(at_standard, pair[REPLACEMENT], replicates, level, drawn_by), ignore_index=True)
    kernels = content.kernels(_attention(of_weights[HUB], standard))
    return {"values": values, "profiles": profiles, "kernels": kernels}


Row = tuple[object, ...]


def _attention(decoders: Iterable[DecoderMeasurement], standard: int) -> Iterator[tuple[dict[str, Any], Floats, None]]:
    """Labels and mean attention of a model without ALiBi on each data set, at the standard length."""
    for decoder in decoders:
        if decoder.quantities.n == standard and decoder.quantities.attention is not None:
            labels = {**decoder.setting, "checkpoint": "pretrained", "prompts": decoder.quantities.prompts}
            yield labels, decoder.quantities.attention, None


def _rows(setting: Mapping[str, Any], statistic: str, network: str, values: Values, documents: int) -> Iterator[Row]:
    """Yield a row with the columns OF_DECODERS for each number in `values`, by the unit that it is of.

    `setting` has the labels DECODER of the model; `documents` is how many of these the numbers are from.
    """
    labels = tuple(setting[name] for name in DECODER)
    for unit, value in values.items():
        yield (*labels, statistic, network, unit, documents, value, PRETRAINED)


def _by_document(setting: Mapping[str, Any], statistic: str, network: str, values: Values) -> Iterator[Row]:
    return _rows(setting, statistic, network, values, len(values))


def _ends(setting: Mapping[str, Any], network: str, effects: Effects, elsewhere: bool = False) -> Iterator[Row]:
    """The first word and the last one, each over the middle."""
    for statistic, position in {FIRST: effects.first, LAST: effects.n - 1}.items():
        name = statistic + (ELSEWHERE if elsewhere else "")
        yield from _by_document(setting, name, network, effects.logs(position))


def _of_gradients(decoder: DecoderMeasurement) -> Iterator[Row]:
    setting, quantities = decoder.setting, decoder.quantities
    yield from _ends(setting, GRADIENT, decoder.gradient, decoder.elsewhere)
    mixing = pd.DataFrame(quantities.mixing[FROBENIUS]).groupby(quantities.documents).mean()
    trend = spearman(mixing.to_numpy(np.float64), np.arange(quantities.layers, dtype=float))
    values = dict(zip(map(int, mixing.index), map(float, trend), strict=True))
    yield from _by_document(setting, "spearman of lambda with depth", FROBENIUS, values)


def _together(effects: Sequence[Effects]) -> Effects:
    """Effects of several copies, as if of one model on all their prompts."""
    return effects[0]._replace(
        effects=np.concatenate([copy.effects for copy in effects]),
        documents=np.concatenate([copy.documents for copy in effects]),
    )


def _of_means(decoder: DecoderMeasurement, pair: Mapping[str, Effects], replicates: int, seed: int) -> Iterator[Row]:
    """Logarithms of mean effects at both ends over that of the middle, in each resample of documents."""
    for measure, effects in pair.items():
        logs = np.log(effects.over_middle(resampled_weights(effects.documents, replicates, seed)))
        for statistic, position in ((FIRST, effects.first), (LAST, effects.n - 1)):
            ends = logs[:, list(effects.positions).index(position)]
            yield from _resampled(decoder, statistic + OF_MEANS, measure, ends, effects.documents)


def _resampled(
    decoder: DecoderMeasurement, statistic: str, network: str, values: Array, documents: NDArray[np.int64]
) -> Iterator[Row]:
    """Rows of values [1 + R]: of all documents as they are, and of each resample."""
    units = dict(zip(range(ESTIMATE, len(values) - 1), map(float, values), strict=True))
    yield from _rows(decoder.setting, statistic, network, units, len(np.unique(documents)))


def _of_rollouts(decoder: DecoderMeasurement, replicates: int, seed: int) -> Iterator[Row]:
    """How far rollouts lie from the measured influence, in each resample of both."""
    quantities, documents = decoder.quantities, decoder.quantities.documents
    weights = resampled_weights(quantities.units, replicates, seed)
    profiles = {variant.name: variant.profiles(weights) for variant in variants(quantities, ROLLOUTS, [FROBENIUS])}
    influence = profiles["influence"]
    names = {name: ROLLOUTS[name] for name in ("influence", ROTARY)}
    by_lambda = {variant.estimator: variant for variant in variants(quantities, names, tuple(LAMBDAS))}
    rotary = {name: by_lambda[estimator].profiles(weights) for estimator, name in LAMBDAS.items()}
    rollouts_and_nulls = {name: profile for name, profile in profiles.items() if name not in ("influence", *KERNELS)}
    for statistic, distance_of, of_networks in (
        ("W to influence", wasserstein, rollouts_and_nulls),
        ("total variation to influence", total_variation, rollouts_and_nulls),
        ("W to influence by kernel", wasserstein, {name: profiles[name] for name in KERNELS}),
        ("W to influence by lambda", wasserstein, rotary | {FROBENIUS: profiles["rotary"]}),
    ):
        for network, profile in of_networks.items():
            distance = np.broadcast_to(distance_of(profile, influence), len(influence))
            yield from _resampled(decoder, statistic, network, distance, documents)


def _profiles(
    decoder: DecoderMeasurement, replacement: Effects, replicates: int, level: float, seed: int
) -> Iterator[pd.DataFrame]:
    """Effects of positions over that of the middle half: measured and rolled out, with intervals over documents."""
    labels, quantities = {"model": decoder.setting["model"], "weights": HUB}, decoder.quantities
    everywhere = np.arange(quantities.n)
    prompts = resampled_weights(quantities.units, replicates, seed)
    assert quantities.influence is not None
    influence = quantities.influence.astype(np.float64)
    for variant in variants(quantities, PROFILES, [FROBENIUS]):
        profiles = variant.profiles(prompts)
        over = profiles / profiles[:, middle_half(quantities.n)].mean(-1, keepdims=True)
        ratios = decoder.gradient.profile(replicates, seed, influence) if variant.name == GRADIENT else over
        yield _curve({**labels, "measure": variant.name}, everywhere, ratios, level)
    ratios = replacement.profile(replicates, seed)
    yield _curve({**labels, "measure": REPLACEMENT}, np.array(replacement.positions), ratios, level)


def _curve(labels: Mapping[str, Any], positions: NDArray[Any], resampled: Array, level: float) -> pd.DataFrame:
    low, high = percentile_interval(resampled[1:], level)
    return pd.DataFrame({**labels, "position": positions, "value": resampled[0], "low": low, "high": high})
