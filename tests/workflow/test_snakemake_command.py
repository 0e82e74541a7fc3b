"""The project's `snakemake` command takes the users' line, and leaves every other call to Snakemake."""

import sys

import pytest
from snakemake import cli

import snakemake_command
from snakemake_command import targets_first


@pytest.mark.parametrize(
    ("typed", "passed"),
    [
        ("--cores 8 --resources gpu=2 all", "all --cores 8 --resources gpu=2"),
        ("--resources gpu=2 mem_mb=100 all figures/a.pdf -n", "all figures/a.pdf --resources gpu=2 mem_mb=100 -n"),
        ("--res gpu=2 all", "all --res gpu=2"),
        ("--default-resources qos=long all", "all --default-resources qos=long"),
        ("--cores 2 -C seed=1 device=cpu sweeps -n", "sweeps --cores 2 -C seed=1 device=cpu -n"),
        ("-n --resources gpu=2 two --config a=1 three", "two three -n --resources gpu=2 --config a=1"),
        *(
            (untouched, untouched)
            for untouched in (
                "",
                "--resources gpu=2 -- all",
                "--resources=gpu=2 all",
                "--cores 8 --config seed=1 -n all",
                "--set-threads a=1 --resources gpu=2 --until train",
                "-n --quiet rules reason",
            )
        ),
    ],
)
def test_targets_among_pairs_alone_move_to_the_front(typed, passed):
    assert targets_first(typed.split()) == passed.split()


def test_snakemake_is_called_with_what_was_typed(monkeypatch):
    lines = []
    monkeypatch.setattr(cli, "main", lines.append)
    monkeypatch.setattr(sys, "argv", ["x", "--cores", "1", "--resources", "gpu=1", "all"])
    snakemake_command.main()
    assert lines == [["all", "--cores", "1", "--resources", "gpu=1"]]
