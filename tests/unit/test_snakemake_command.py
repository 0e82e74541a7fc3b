import subprocess
import sys

import pytest

import snakemake_command
from snakemake_command import targets_first


@pytest.mark.parametrize(
    ("typed", "passed"),
    [
        ("--cores 8 --resources gpu=2 all", "all --cores 8 --resources gpu=2"),
        ("--resources gpu=2 mem_mb=100 all figures/a.pdf -n", "all figures/a.pdf --resources gpu=2 mem_mb=100 -n"),
        ("--res gpu=2 all", "all --res gpu=2"),
        (
            "-n one --resources gpu=2 two --resources mem_mb=1 three",
            "two three -n one --resources gpu=2 --resources mem_mb=1",
        ),
    ],
)
def test_targets_among_resources_move_to_the_front(typed, passed):
    assert targets_first(typed.split()) == passed.split()


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "all --cores 8 --resources gpu=2",
        "--resources gpu=2 -- all",
        "--resources=gpu=2 all",
        "--cores 8 --config seed=1 -n all",
        "--set-threads a=1 --resources gpu=2 --until train",
        "--lint",
    ],
)
def test_every_other_call_is_untouched(typed):
    assert targets_first(typed.split()) == typed.split()


def test_snakemake_is_called_with_what_was_typed(monkeypatch):
    calls = []
    monkeypatch.setattr("snakemake.cli.main", calls.append)
    monkeypatch.setattr(sys, "argv", ["x", "--cores", "1", "--resources", "gpu=1", "all"])
    snakemake_command.main()
    assert calls == [["all", "--cores", "1", "--resources", "gpu=1"]]


def test_plain_snakemake_still_needs_it():
    """Once this fails, Snakemake takes the users' line itself: drop the command."""
    plain = [sys.executable, "-m", "snakemake", "-n", "--cores", "8", "--resources", "gpu=2", "all"]
    assert subprocess.run(plain, capture_output=True, check=False).returncode != 0
