"""Rows 15 to 17: folders without room, folders that cannot be written, and files in place of folders."""

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


def test_a_folder_without_room_is_named_with_both_numbers(own_folders, monkeypatch):
    usage = shutil.disk_usage
    full = own_folders / "run"
    monkeypatch.setattr(places.shutil, "disk_usage", lambda place: FULL if Path(place) == full else usage(place))
    with pytest.raises(ValueError, match=r"of the run, has 5 MB free, and 100 are the least; name another"):
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
