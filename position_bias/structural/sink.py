"""Which primacy dies with the sink: three measures where the first token's stream is held at the norm of the others.

Our addition to Herasimchyk et al. 2026. Salvatore et al. 2025 (arXiv 2510.10276) trace the primacy of recall to the
attention sink. Here nothing of a decoder changes but the norm of its first token's residual stream, at the entry of
every block; gradients, replacement of text and recall are measured with it and without.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from position_bias.structural.checks import OF_DECODERS
from position_bias.structural.curve import OVER, RATIO, logs_by_place
from position_bias.structural.recall import WORDS, logs_of_ends
from position_bias.verdicts.judge import ESTIMATE
from position_bias.verdicts.registry import PRETRAINED
from position_card.core.artifacts import TensorFile
from position_card.rollout.attention import Array
from position_card.rollout.parts import RecallScores, eighths, words
from position_card.rollout.statistics import resampled_weights

OWN_NORM, HELD_NORM = CONDITIONS = ("own norm", "held norm")  # of the first token


def sink_table(file: TensorFile, replicates: int, seed: int) -> pd.DataFrame:
    """Return what is judged of one decoder (`checks.OF_DECODERS`), by document, or by resample of contexts.

    `file` has the arrays of `sink_parts.parts`. Networks are a measure and a condition. Of gradients and replacement
    there are logarithms of the first and the last word and eighth of the text over the mean of those of its middle
    half, of recall those of the first and the last eighth of the places over their middle half; besides, loss and
    attention to the first token.
    """
    labels, arrays = file.labels, file.read()
    rows = [row for condition in CONDITIONS for row in _by_document(labels, arrays, condition)]
    rows += [row for condition in CONDITIONS for row in _of_recall(labels, arrays, condition, replicates, seed)]
    return pd.DataFrame(rows, columns=list(OF_DECODERS)).round({"value": 6})


Row = tuple[object, ...]


def _by_document(labels: dict[str, Any], arrays: dict[str, Array], condition: str) -> Iterator[Row]:
    n, before = labels["n"], labels["before"]
    influence, loss = np.split(arrays[f"influence/{condition}"], [n], axis=1)
    gradients = np.stack([influence[:, window].mean(1) for window in (*words(n, before), *eighths(n, before))], 1)
    values = {
        ("loss", condition): loss[:, 0],
        ("attention to the first token", condition): arrays[f"attention/{condition}"],
    }
    for measure, effects in (("gradient", gradients), ("replacement", arrays[f"replacement/{condition}"])):
        logs = logs_by_place(effects)
        for of_end, middle in OVER.items():
            values[f"log {of_end}{RATIO}", f"{measure}, {condition}"] = logs[of_end] - logs[middle]
    setting = (labels["model"], labels["dataset"], n)
    for (statistic, network), of_documents in values.items():
        for document, value in zip(labels["documents"], of_documents, strict=True):
            yield (*setting, _own_name(statistic), network, document, len(of_documents), float(value), PRETRAINED)


def _of_recall(
    labels: dict[str, Any], arrays: dict[str, Array], condition: str, replicates: int, seed: int
) -> Iterator[Row]:
    scores = RecallScores(*arrays[f"recall/{condition}"])
    contexts = len(scores.correct)
    weights = resampled_weights(np.arange(contexts), replicates, seed)
    setting = (labels["model"], WORDS, labels["words"])
    for name, network, values in logs_of_ends(scores, weights):
        if network == "recall":
            for unit, value in enumerate(map(float, values), start=ESTIMATE):
                yield (*setting, _own_name(name), f"{network}, {condition}", unit, contexts, value, PRETRAINED)


def _own_name(statistic: str) -> str:
    """A statistic that no other study has, so that tables of both are judged."""
    return f"{statistic}, by the first token's norm"
