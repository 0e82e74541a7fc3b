"""The tests of tests/pretend run in a process of their own, since libraries keep in mind that they saw a GPU."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "pretend"


def test_what_runs_on_gpus_gives_the_numbers_of_the_cpu(request, tmp_path):
    command = [sys.executable, "-m", "pytest", FOLDER, "--basetemp", tmp_path / "pretend", "-p", "no:cacheprovider"]
    command += ["-m", request.config.option.markexpr]  # all of them in make test-all
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
