"""Every wrong wire of the list fails the test that it names, which `make test` runs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FAULTS = yaml.safe_load((ROOT / "tests/mutants/wrong_wires.yaml").read_text())
pytestmark = pytest.mark.all("a plan or a script for each wrong wire takes three minutes")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, in which a fault is put and taken away again."""
    root = tmp_path_factory.mktemp("wires") / "project"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    return root


def ran(project, tests, folder):
    """What pytest prints of these tests, up to the first that fails."""
    command = [sys.executable, *f"-m pytest -x -p no:cacheprovider --basetemp {folder} {tests}".split()]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False).stdout


def test_without_a_fault_every_test_passes(project, tmp_path):
    files = " ".join({fault["fails"].split()[0] for fault in FAULTS})
    assert re.search(r"^=+ \d+ passed", ran(project, files, tmp_path), re.MULTILINE)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["words"])
def test_a_wrong_wire_fails_its_test(project, tmp_path, fault):
    path = project / fault["file"]
    text = path.read_text()
    assert text.count(fault["right"]) == 1
    path.write_text(text.replace(fault["right"], fault["wrong"]))
    try:
        printed = ran(project, fault["fails"], tmp_path)
    finally:
        path.write_text(text)
    assert "= 1 failed" in printed, printed
