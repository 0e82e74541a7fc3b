"""What is kept in evidence/ of pretrained decoders: what was measured, and which files they were.

It stands apart from `evidence`, because it asks the library of the hub, which only the environment of models has.
"""

import json
from pathlib import Path

import pandas as pd

from position_bias.verdicts.registry import PRETRAINED
from position_card.core import provenance
from position_card.models import hub
from position_card.models.files import sha256


def evidence(values: list[pd.DataFrame], records: list[Path]) -> dict[str, pd.DataFrame]:
    """What was measured of pretrained decoders, rounded, and in `runs` a row for each file that they were read from.

    Values are by document, or by resample of documents. `records` are those of `hub.fetch_model`.
    """
    return {"values": pd.concat(values).round({"value": 5}), **runs(records)}


def runs(records: list[Path]) -> dict[str, pd.DataFrame]:
    """The table `runs`: a row for each file that pretrained decoders were read from, and what measured them."""
    return {"runs": pd.concat(map(files_of_decoder, records)).assign(**provenance.made_by(), scale=PRETRAINED)}


def files_of_decoder(record: Path) -> pd.DataFrame:
    """A row for each file of a model: model, source, revision, file, bytes, sha256."""
    model = json.loads(record.read_text(encoding="utf-8"))
    files = map(hub.model_place(record).joinpath, model["files"])
    labels = {"model": record.stem, "source": Path(model["source"]).name, "revision": model["revision"]}
    return pd.DataFrame(
        [{**labels, "file": file.name, "bytes": file.stat().st_size, "sha256": sha256(file)} for file in files]
    )
