import csv
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

from position_card.core import checkpoint, provenance

ROOT = Path(__file__).parents[3]


def git(folder, *arguments):
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *author, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path):
    """With one commit of one file, results ignored."""
    git(tmp_path, "init")
    (tmp_path / "Snakefile").write_text("one\n")
    (tmp_path / ".gitignore").write_text("results/\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--message", "one")
    return tmp_path


def test_a_repository_gives_its_commit_and_whether_it_is_clean(repository):
    (repository / "results").mkdir()
    (repository / "results/table.csv").touch()
    commit = git(repository, "log", "--format=%H").strip()
    assert provenance.code(repository) == {"commit": commit, "dirty": False}
    (repository / "new_module.py").touch()
    assert provenance.code(repository) == {"commit": commit, "dirty": True}
    (repository / "new_module.py").unlink()
    (repository / "Snakefile").write_text("two\n")
    assert provenance.code(repository) == {"commit": commit, "dirty": True}


def test_outside_git_there_is_no_commit(repository):
    inner = repository / "unpacked"  # a release within another repository has none of its own
    inner.mkdir()
    assert provenance.code(inner) is None
    git(inner, "init")
    assert provenance.code(inner) is None  # nothing is committed


def test_a_package_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGES", ("no-such-package",))
    assert provenance.versions()["no-such-package"] is None


def test_the_processor_is_what_linux_calls_it(tmp_path):
    described = tmp_path / "cpuinfo"
    described.write_text("processor\t: 0\nmodel name\t: Fast: 3 GHz\n\nprocessor\t: 1\nmodel name\t: Other\n")
    assert provenance.processor(described) == "Fast: 3 GHz"
    assert provenance.processor(tmp_path / "none")
    described.write_text("BogoMIPS\t: 50.00\n")
    assert provenance.processor(described)


def test_gpus_stand_there_only_where_the_run_uses_them(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-a")
    assert provenance.machine("auto")["gpus"] == ["MIG-a"]
    assert provenance.machine("cpu")["gpus"] == []
    assert provenance.machine("cpu", ["cpu", "cuda"])["gpus"] == ["MIG-a"]
    assert provenance.machine("cpu", ["cpu"])["gpus"] == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert provenance.machine("auto")["gpus"] == []


def test_time_is_summed_over_the_jobs_of_a_stage(tmp_path):
    for name, seconds in {
        "corpus/a": [1.25],
        "models/b/seed0": [2.5, 3.5],
        "models/c/seed0": [4.04],
        "own": [9],
    }.items():
        path = tmp_path / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s\th:m:s\tmax_rss\n" + "".join(f"{value}\t0:00:01\t-\n" for value in seconds))
    (tmp_path / "corpus/notes.txt").touch()
    assert provenance.stages(tmp_path) == {
        "corpus": {"jobs": 1, "seconds": 1.2},
        "models": {"jobs": 2, "seconds": 10.0},
    }
    assert provenance.stages(tmp_path / "none") == {}


@pytest.fixture
def checkpoints(tmp_path_factory):
    """Of two stacks, which took 90.5 and 30 CPU seconds."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name, seconds in (("stack0", 90.5), ("stack1", 30.0)):
        checkpoint.write(folder / name / checkpoint.NAME, "run", checkpoint.State(4, {}, {}, seconds))
    return folder


def test_run_csv_has_one_row_on_a_training_and_what_made_it(checkpoints, tmp_path):
    before = datetime.now(UTC).date()
    provenance.write_training(tmp_path / "run.csv", {"task": "some"}, checkpoint.Place(checkpoints, 1, "cpu"))
    with (tmp_path / "run.csv").open(newline="") as table:
        (row,) = csv.DictReader(table)
    assert datetime.fromisoformat(row.pop("date")).date() in (before, datetime.now(UTC).date())
    assert row == {
        "task": "some",
        **provenance.made_by(),
        "device": "cpu",
        "cpu_minutes": "2.01",  # to two digits
    }


def test_what_made_a_training_is_told_with_commit_and_processor(repository, checkpoints):
    found = provenance.made_by(repository)
    assert found == {
        "commit": git(repository, "log", "--format=%H").strip(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "processor": provenance.processor(),
    }
    (repository / "Snakefile").write_text("two\n")
    assert provenance.made_by(repository)["commit"] == f"{found['commit']}-dirty"
    assert provenance.made_by(checkpoints)["commit"] == ""
