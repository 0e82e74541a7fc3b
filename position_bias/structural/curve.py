"""What a prediction does as text moves towards another, from a push to a replacement, in pretrained decoders.

All embeddings of a window go a part of the way to those of other documents' tokens at the same positions. The smallest
step is what gradients foretell, and the whole step replaces the text. Windows are single words, or eighths of the
prompt, and effects of the middle are means over its windows. A document has one prompt, and is a unit.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from position_bias.language_models.names import with_shown_names
from position_bias.structural.checks import DECODER, OF_DECODERS, with_most_documents
from position_bias.structural.pretrained import HUB, by_document
from position_bias.structural.recall import recalled_ends
from position_bias.verdicts.judge import ESTIMATE, resampled_interval
from position_bias.verdicts.registry import PRETRAINED
from position_card.core.artifacts import TensorFile
from position_card.rollout.attention import Array
from position_card.rollout.statistics import mean_and_interval

# Where windows stand among those that are measured: six words, then eight eighths (`rollout.parts`)
PLACES = {
    "first word": slice(0, 1),
    "middle words": slice(1, 5),
    "last word": slice(5, 6),
    "first eighth": slice(6, 7),
    "middle eighths": slice(8, 12),
    "last eighth": slice(13, 14),
}
OVER = {  # what an effect at an end of the text is over
    "first word": "middle words",
    "last word": "middle words",
    "first eighth": "middle eighths",
    "last eighth": "middle eighths",
}
# The fields of `Responses`, and what stands before the names of steps where it is not total variation
MEASURES = {"total_variation": "", "log_probability": "log probability, "}
LINE = "log effect / straight line"
RANDOM_WEIGHTS = "untrained "
RATIO = " / middle"  # ends the names of statistics that are ratios
OF_TABLE = ("model", "n", "weights", "statistic", "network", "value", "low", "high", "documents")

Row = tuple[object, ...]


class WindowEffects(NamedTuple):
    """Effects of one set of weights on prompts of n tokens, one of each document."""

    setting: tuple[str, str, int]  # DECODER
    weights: str
    steps: list[float]
    effects: Mapping[str, Array]  # by MEASURES: [N, W, S], means over donors
    documents: NDArray[np.int64]  # [N]

    @classmethod
    def read(cls, file: TensorFile) -> "WindowEffects":
        """Read the file of a measurement."""
        labels, tensors = file.labels, file.read()
        model, dataset, n = (labels[name] for name in DECODER)
        effects = {name: np.abs(tensors[name]).mean(-1) for name in MEASURES}
        return cls((model, dataset, n), labels["checkpoint"], labels["steps"], effects, tensors["documents"])


def curve_tables(
    responded: list[TensorFile], recalled: Sequence[TensorFile] = (), replicates: int = 0, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """The table `values`, which is judged (`checks.OF_DECODERS`): of what moves, and of recall by the same decoders.

    `responded` are files with the fields of `Responses`, of decoders and of copies with random weights, and `recalled`
    those with the fields of `RecallScores`. Ratios are logarithms, by document; of copies, means over them.
    """
    decoders: list[WindowEffects] = []
    copies: dict[tuple[str, str, int], list[WindowEffects]] = {}
    for file in responded:
        of_file = WindowEffects.read(file)
        if of_file.weights == HUB:
            decoders.append(of_file)
        else:
            copies.setdefault(of_file.setting, []).append(of_file)
    rows = [
        *(row for decoder in decoders for row in _rows([decoder], "")),
        *(row for of_setting in copies.values() for row in _rows(of_setting, RANDOM_WEIGHTS)),
        *(row for file in recalled for row in recalled_ends(file, replicates, seed)),
    ]
    return {"values": pd.DataFrame(rows, columns=OF_DECODERS).round({"value": 5})}


def _rows(decoders: list[WindowEffects], prefix: str) -> Iterator[Row]:
    """Rows of one decoder, or of its copies together, by document."""
    ratios = [list(_ratios(decoder)) for decoder in decoders]
    documents = np.concatenate([decoder.documents for decoder in decoders])
    for place, (statistic, network, _) in enumerate(ratios[0]):
        values = by_document(np.concatenate([of_each[place][2] for of_each in ratios]), documents)
        for document, value in values.items():
            yield (*decoders[0].setting, statistic, prefix + network, document, len(values), value, PRETRAINED)


def _ratios(decoder: WindowEffects) -> Iterator[tuple[str, str, Array]]:
    """Statistic, network and logarithms [N]: windows over the middle at each step, and all over a straight line."""
    names = [f"step of {100 * step:g} %" for step in decoder.steps]
    for measure, before in MEASURES.items():
        effects = decoder.effects[measure]
        logs = logs_by_place(effects)  # [N, S]
        for of_end, middle in OVER.items():
            over = logs[of_end] - logs[middle]
            for step, name in enumerate(names):
                yield f"log {of_end}{RATIO}", before + name, over[:, step]
        for eighth in range(2, 8):
            over = _logarithm(effects[:, 5 + eighth]) - logs["middle eighths"]
            for step in (0, -1):
                yield f"log eighth {eighth}{RATIO}", before + names[step], over[:, step]
        for place, values in logs.items():
            yield LINE, before + place, values[:, -1] - values[:, 0] - np.log(decoder.steps[-1] / decoder.steps[0])


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table for people: both ends by total variation and by recall, and effects over a straight line."""
    of_ends = table["statistic"].str.match("(first|last) (word|eighth) / |effect / ")
    readable_rows = table[of_ends & ~table["network"].str.startswith("log probability")]
    return with_shown_names(readable_rows).rename(columns={"statistic": "ratio", "network": "by"})


def logs_by_place(effects: Array) -> dict[str, Array]:
    """Logarithms of effects of the windows [N, W, ...] by PLACES, each [N, ...]: of several windows, of their mean."""
    return {place: _logarithm(effects[:, windows].mean(1)) for place, windows in PLACES.items()}


def _logarithm(effects: Array) -> Array:
    """The logarithm; an effect of nothing has none."""
    return np.log(np.where(effects > 0, effects, np.nan))


def curve_table(values: list[pd.DataFrame], level: float) -> pd.DataFrame:
    """Every ratio with its interval over documents, or over contexts of recall: columns OF_TABLE.

    `values` are tables as `curve_tables` makes them; where several have the same, the one of more documents counts. The
    numbers are the exponentials of means of logarithms.
    """
    rows = []
    for table in with_most_documents(values):
        for (model, _, n, statistic, network), of_one in table.groupby([*DECODER, "statistic", "network"], sort=False):
            numbers, documents = of_one.set_index("unit")["value"], int(of_one["documents"].iloc[0])
            if ESTIMATE in numbers.index:
                resamples = numbers[numbers.index != ESTIMATE]
                estimate = (numbers[ESTIMATE], *resampled_interval(resamples, documents, level))
            else:
                estimate = mean_and_interval(numbers.dropna(), level)
            weights = "random" if str(network).startswith(RANDOM_WEIGHTS) else "trained"
            labels = str(statistic).removeprefix("log "), str(network).removeprefix(RANDOM_WEIGHTS)
            rows.append((model, n, weights, *labels, *map(float, np.exp(estimate)), documents))
    return pd.DataFrame(rows, columns=OF_TABLE)
