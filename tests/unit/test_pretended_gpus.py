"""The tests of tests/pretend run in a fork, since libraries keep in mind that they saw a GPU."""

import sys
from pathlib import Path

import pytest

from tests import forked

FOLDER = Path(__file__).parents[1] / "pretend"


def test_what_runs_on_gpus_gives_the_numbers_of_the_cpu(request, tmp_path):
    command = [str(FOLDER), "--basetemp", str(tmp_path / "pretend"), "-p", "no:cacheprovider"]
    command += ["-m", request.config.option.markexpr]  # all of them in make test-all
    ended = forked.run(lambda: sys.exit(pytest.main(command)))
    assert ended.status == 0, ended.said
