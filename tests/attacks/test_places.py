"""Paths with braces, which Snakemake reads as wildcards."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["a{", pytest.param("a}b", marks=pytest.mark.all("the other brace"))])
def test_a_project_whose_path_has_a_brace_ends_in_one_line(folder, tmp_path):
    project = tmp_path / folder
    project.symlink_to(ROOT)
    ended = planned(tmp_path, "--snakefile", project / "Snakefile")
    assert ended.returncode == 1
    (line,) = [line for line in ended.stdout.splitlines() if not line.startswith("Using ")]
    assert line.startswith(f"error: the project lies in {project}, ")


@pytest.mark.all("the whole graph is planned")
def test_a_directory_of_the_run_may_have_braces(tmp_path):
    target = "results/provenance.json"
    ended = planned(tmp_path, "--snakefile", ROOT / "Snakefile", "--directory", tmp_path / "{a}", target)
    assert ended.returncode == 0, ended.stdout


def planned(folder, *words):
    command = [sys.executable, ROOT / "launcher/snakemake_command.py", "-n", "--cores", "1", *words]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
