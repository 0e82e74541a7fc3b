"""What is kept in evidence/ of long trainings of language models."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias.language_models import hub
from position_bias.rollout.measurement import mixing
from position_bias.running import provenance
from position_bias.running.artifacts import TensorFile, Tensors
from position_bias.structural.checks import compared
from position_bias.structural.content import LABELS
from position_bias.verdicts.claim import PRETRAINED

DIGITS = {"value": 7, "low": 7, "high": 7, "loss": 6}


def evidence(
    profiles: pd.DataFrame,
    statistics: pd.DataFrame,
    replicates: list[pd.DataFrame],
    measured: list[TensorFile],
    losses: pd.DataFrame,
    runs: pd.DataFrame,
    scale: str,
    level: float,
) -> dict[str, pd.DataFrame]:
    """What is measured and predicted at every kept step, rounded: the tables by the names of their files."""
    tables = {
        "profiles": profiles,
        "statistics": statistics,
        "compared": pd.concat(compared(values, level) for values in replicates),
        "mixing": pd.concat(_means(file, mixing(file), ("layer",)) for file in measured),
        "content": pd.concat(_means(file, file.read("diagonal", "below"), ("layer", "head")) for file in measured),
        "losses": losses,
        "runs": runs,
    }
    return {name: table.round(DIGITS).assign(scale=scale) for name, table in tables.items()}


def of_decoders(values: list[pd.DataFrame], records: list[Path]) -> dict[str, pd.DataFrame]:
    """What was measured of pretrained decoders, rounded, and in `runs` a row for each file that they were read from.

    Values are by document, or by resample of documents. `records` are those of `hub.fetch_model`.
    """
    return {
        "values": pd.concat(values).round({"value": 5}),
        "runs": pd.concat(map(files_of_decoder, records)).assign(**provenance.made_by(), scale=PRETRAINED),
    }


def files_of_decoder(record: Path) -> pd.DataFrame:
    """A row for each file of a model: model, source, revision, file, bytes, sha256."""
    found = json.loads(record.read_text(encoding="utf-8"))
    files = [hub.model_place(record).joinpath(name) for name in found["files"]]
    told = {"model": record.stem, "source": Path(found["source"]).name, "revision": found["revision"]}
    return pd.DataFrame(
        [{**told, "file": file.name, "bytes": file.stat().st_size, "sha256": _sha256(file)} for file in files]
    )


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _means(file: TensorFile, arrays: Tensors, axes: Sequence[str]) -> pd.DataFrame:
    """Means over prompts of arrays [prompts, *axes] of a measurement, by their names, one row per number."""
    labels = {name: file.labels[name] for name in LABELS if name != "prompts"}
    tables = []
    for name, values in arrays.items():
        mean = values.mean(0)
        indices = dict(zip(axes, np.indices(mean.shape).reshape(len(axes), -1), strict=True))
        tables.append(pd.DataFrame({**labels, "quantity": name, **indices, "value": mean.ravel()}))
    return pd.concat(tables)
