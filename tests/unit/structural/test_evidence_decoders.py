"""What is kept of pretrained decoders says which files they were."""

import hashlib

import pandas as pd

from position_bias.structural import evidence_decoders
from position_card.models import hub


def test_every_file_of_a_decoder_is_named_by_what_it_holds(tmp_path):
    held = {"config.json": b'{"model_type": "llama"}', "model.safetensors": b"weights"}
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, content in held.items():
        (folder / name).write_bytes(content)
    hub.fetch_model(str(folder), None, None, tmp_path / "some.json")
    values = pd.DataFrame({"model": ["some"], "value": [0.123456789]})
    tables = evidence_decoders.evidence([values], [tmp_path / "some.json"])
    assert tables["values"]["value"].tolist() == [0.12346]
    runs = tables["runs"].set_index("file")
    assert runs["sha256"].to_dict() == {name: hashlib.sha256(content).hexdigest() for name, content in held.items()}
    assert runs["bytes"].to_dict() == {name: len(content) for name, content in held.items()}
    assert set(runs["model"]) == {"some"}
    assert set(runs["scale"]) == {"pretrained"}
    assert runs["torch"].notna().all()
