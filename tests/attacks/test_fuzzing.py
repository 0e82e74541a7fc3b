"""The openers for a minute in all, with bytes that nobody chose; what was found stands in the other tests here."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.attacks import fuzzing

ROOT = Path(__file__).parents[2]
MINUTE = "a minute of fuzzing"


@pytest.mark.parametrize("target", fuzzing.FILES)
def test_whole_files_are_opened(target, tmp_path):
    fuzzing.write(tmp_path)
    fuzzing.opened(target, tmp_path)
    assert (tmp_path / fuzzing.FILES[target]).stat().st_size


@pytest.mark.parametrize(
    "seconds", [0.5, pytest.param(8, marks=pytest.mark.all(MINUTE))], ids=["briefly", "for a while"]
)
@pytest.mark.parametrize("target", fuzzing.FILES)
def test_whatever_bytes_are_opened_or_refused_in_one_line(target, seconds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fuzzing.fuzz(target, seconds, seed=seconds) > 0


@pytest.mark.all(MINUTE)
@pytest.mark.parametrize("target", fuzzing.FILES)
def test_bytes_that_reach_other_lines_are_opened_or_refused(target, tmp_path):
    if importlib.util.find_spec("atheris") is None:
        needs.lack("atheris", "it is not installed, which would draw bytes by the lines that they reach")
    command = [sys.executable, "-m", "tests.attacks.fuzzing", target, "8"]
    search = {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=search, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
