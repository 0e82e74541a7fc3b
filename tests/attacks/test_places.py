"""Folders without room, folders that cannot be written, files in place of folders, and paths with braces."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import places
from places import require_places

ROOT = Path(__file__).parents[2]
FULL = shutil.disk_usage("/")._replace(free=5_000_000)


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """A run in a folder of its own, with a home and a folder for passing files."""
    for variable, name in (("HOME", "home"), ("TMPDIR", "passing")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    return tmp_path


def test_folders_that_can_be_written_are_taken_also_where_they_are_not_there_yet(own_folders):
    require_places(["all", "--cores", "2"])
    require_places(["all", "--directory", "new/and/deep"])
    assert not list((own_folders / "run").iterdir())


@pytest.mark.parametrize(
    "typed", [["--directory", "taken"], ["-d", "taken"], ["--directory=taken"], ["-d", "taken/deep"]]
)
def test_a_file_in_place_of_the_directory_is_named(own_folders, typed):
    (own_folders / "run/taken").write_text("")
    with pytest.raises(ValueError, match=r"taken.*is a file; name another with --directory$"):
        require_places(["all", *typed])


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("TMPDIR", "/proc, TMPDIR, cannot be written (No such file or directory); set TMPDIR to another"),
        (
            "HOME",
            "/proc/.cache, the cache of Snakemake, cannot be written (No such file or directory); set HOME or "
            "XDG_CACHE_HOME to a folder of yours",
        ),
        (
            "XDG_CACHE_HOME",
            "/proc, the cache of Snakemake, cannot be written (No such file or directory); set HOME or XDG_CACHE_HOME "
            "to a folder of yours",
        ),
    ],
)
def test_a_folder_that_cannot_be_written_is_named(monkeypatch, variable, said):
    monkeypatch.setenv(variable, "/proc")  # where nobody, whoever they are, makes a file
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        require_places(["all"])


@pytest.mark.parametrize("name", places.MADE)
def test_a_folder_of_the_run_that_cannot_be_written_is_named(name, own_folders):
    (own_folders / "run" / name).symlink_to("/proc")
    with pytest.raises(ValueError, match=rf"^{name}, {name} of the run, cannot be written [^\n]*$"):
        require_places(["all"])


@pytest.mark.parametrize(
    ("folder", "said"),
    [("run", "the directory of the run"), ("passing", "TMPDIR"), ("home", "the cache of Snakemake")],
)
def test_a_folder_without_room_is_named_with_both_numbers(folder, said, own_folders, monkeypatch):
    usage = shutil.disk_usage
    full = own_folders / folder
    monkeypatch.setattr(places.shutil, "disk_usage", lambda place: FULL if Path(place) == full else usage(place))
    with pytest.raises(ValueError, match=rf", {said}, has 5 MB free, and 100 are the least; (name|set) [^\n]*$"):
        require_places(["all"])


def test_nothing_is_tried_where_nothing_runs(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/proc")
    require_places(["--version"])


def test_the_command_ends_in_one_line(own_folders):
    (own_folders / "run/taken").write_text("")
    command = [sys.executable, ROOT / "launcher/snakemake_command.py", "all", "--directory", "taken"]
    ended = subprocess.run(command, cwd=own_folders / "run", capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "error: taken, the directory of the run, is a file; name another with --directory\n"


@pytest.mark.parametrize("folder", ["{a}", "a}b", "{", "{{n}}"])
def test_a_project_whose_path_has_braces_ends_in_one_line(folder, own_folders):
    project = own_folders / folder
    project.symlink_to(ROOT)
    ended = planned("--snakefile", project / "Snakefile")
    assert ended.returncode == 1
    assert [line for line in ended.stdout.splitlines() if not line.startswith("Using ")] == [
        f"error: the project lies in {project}, and Snakemake reads braces as wildcards; move it to another folder"
    ]


@pytest.mark.all("the whole graph is planned")
def test_a_directory_of_the_run_may_have_braces(own_folders):
    ended = planned("--snakefile", ROOT / "Snakefile", "--directory", own_folders / "{a}", "results/provenance.json")
    assert ended.returncode == 0, ended.stdout


def planned(*words):
    command = [sys.executable, ROOT / "launcher/snakemake_command.py", "-n", "--cores", "1", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
