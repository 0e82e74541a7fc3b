"""The project's `snakemake` command takes the users' line, refuses what Snakemake passes over, and leaves the rest."""

import sys
from pathlib import Path

import pytest
from snakemake import cli

import snakemake_command
from snakemake_command import check_files_and_names, targets_first

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize(
    ("typed", "says", "remedy"),
    [
        ("--workflow-profile profiles/slrum", "--workflow-profile profiles/slrum: ", "as profiles/slurm"),
        ("--configfile config/paper.yaml config/papr.yaml", "--configfile config/papr.yaml: ", "correct the path"),
        ("--configfile config/paper.yaml all", "--configfile all: ", "type targets before --configfile"),
        ("--config seed=1 rollout.bootstrap=2", "--config seed=1 rollout.bootstrap=2: ", "rollout='{bootstrap: 200}'"),
    ],
)
def test_what_snakemake_passes_over_ends_in_one_line(typed, says, remedy, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        check_files_and_names(["-n", *typed.split()])
    assert ended.value.code.startswith(f"error: {says}")
    assert remedy in ended.value.code
    assert "\n" not in ended.value.code


@pytest.mark.parametrize("typed", ["profiles/slurm", "slurm", "profiles/slurm/config.yaml", "none", "{copy}"])
def test_a_profile_that_snakemake_finds_is_not_refused(typed, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    copy.mkdir()
    monkeypatch.chdir(ROOT)
    check_files_and_names(["--configfile", "config/paper.yaml", "--workflow-profile", typed.format(copy=copy)])


def test_a_profile_is_looked_for_beside_the_snakefile_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_files_and_names(["--snakefile", str(ROOT / "Snakefile"), "--workflow-profile", "slurm"])


def test_a_refusal_comes_before_snakemake_starts(monkeypatch):
    monkeypatch.setattr(cli, "main", lambda _: pytest.fail("Snakemake was started"))
    monkeypatch.setattr(sys, "argv", ["x", "all", "--workflow-profile", "profiles/slrum"])
    with pytest.raises(SystemExit, match="profiles/slrum"):
        snakemake_command.main()
