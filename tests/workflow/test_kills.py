"""Jobs that are killed, or find the disk full, end with the bytes of those that are let be.

Jobs of the small graph run again. One dies by its own hand as one of its files takes its name, or can write nothing
from then on: a moment that exact cannot be met from outside. It is started anew, and its files are those of the graph.
"""

import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.projects import ENVIRONMENT

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Kind:
    """A job that keeps checkpoints: where they lie, its log, and the files and folders that it makes, in order."""

    checkpoints: str
    log: str
    outputs: tuple[str, ...]

    def forget(self, project):
        """Remove what the job has made, and its log; return the command that makes it."""
        for output in self.outputs:
            shutil.rmtree(project.root / output, ignore_errors=True)
            (project.root / output).unlink(missing_ok=True)
        (project.root / self.log).unlink()
        return f"--cores 1 {self.outputs[0]}"

    def made(self, project):
        """The bytes of every file that the job has made."""
        folders = [project.root / output for output in self.outputs]
        paths = [path for folder in folders for path in ([folder] if folder.is_file() else sorted(folder.rglob("*")))]
        return {
            path.relative_to(project.root): path.read_bytes()
            for path in paths
            if path.is_file() and path.name != ".snakemake_timestamp"
        }


def postnorm_kind(name, *tables):
    made = tuple(f"results/postnorm/{name}/{table}.parquet" for table in tables)
    return Kind(f"checkpoints/postnorm/{name}", f"logs/postnorm/{name}.log", made)


MEASURED = "measure/bloom/seed0/step12/standard-library"
STUDY = "emergence/gaussian/plain/depth2"
TRAINING = Kind(
    "checkpoints/training/bloom/seed0",
    "logs/models/bloom/seed0.log",
    tuple(f"results/models/bloom/seed0/{name}" for name in ("step0", "step12", "loss.csv")),
)
MEASUREMENT = Kind(
    f"checkpoints/{MEASURED}",
    f"logs/{MEASURED}.log",
    tuple(f"results/{MEASURED}/n{n}.safetensors" for n in (16, 32, 48)),
)
EMERGENCE = Kind(
    f"checkpoints/{STUDY}",
    f"logs/{STUDY}.log",
    tuple(f"results/{STUDY}/{name}" for name in ("weights.safetensors", "curves.parquet")),
)
KINDS = {
    "emergence": EMERGENCE,
    "layernorm": Kind(
        "checkpoints/layernorm/pre-layer",
        "logs/layernorm/trained/pre-layer.log",
        ("results/layernorm/trained/pre-layer.parquet",),
    ),
    "postnorm": postnorm_kind("set-complement-16", "tests", "history"),
    "postnorm, averaged": postnorm_kind("averaging", "tests"),
}
OFTEN = pytest.mark.all(
    "kills within the workflow take three minutes; each engine that is interrupted is a test of its own"
)

# Python runs this module first in every process. WHEN has a file, or the folder of checkpoints; which replacement of
# it, or of files within; and what happens then.
SABOTAGE = """
import os, resource, signal, sys

replace, seen = os.replace, 0
place, occurrence, moment = os.environ["WHEN"].split(":")

def watched(source, target):
    global seen
    path = str(target)
    watched = path == place or (path.startswith(place) and path.endswith(".safetensors"))
    watched = watched and sys._getframe(1).f_globals["__name__"] == "position_card.core.runtime"
    seen += watched
    now = watched and seen == int(occurrence)
    if now and moment == "half":
        os.truncate(source, os.path.getsize(source) // 2)
    if now and moment in ("before", "half"):
        os.killpg(0, signal.SIGKILL)
    replace(source, target)
    if now and moment == "after":
        os.killpg(0, signal.SIGKILL)
    if now and moment == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

os.replace = watched
"""


@pytest.fixture
def disturbed(mine, tmp_path):
    """The function that runs Snakemake, in a process group of its own, with a job that is disturbed."""
    (tmp_path / "sitecustomize.py").write_text(SABOTAGE)

    def run(arguments, place, occurrence, moment):
        path = f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"
        return subprocess.run(
            ["bash", "-c", f"snakemake {arguments}"],
            cwd=mine.root,
            env={**ENVIRONMENT, "PYTHONPATH": path, "WHEN": f"{place}:{occurrence}:{moment}"},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def assert_whole(project, built, kind):
    """Same files, same bytes, and nothing beside them."""
    assert kind.made(project) == kind.made(built)
    assert not (project.root / kind.checkpoints).exists()
    assert [path for folder in ("results", "checkpoints") for path in (project.root / folder).rglob(".*.part*")] == []


@OFTEN
@pytest.mark.parametrize("name", KINDS)
def test_a_killed_job_resumes_as_the_page_says(built, mine, disturbed, name):
    kind = KINDS[name]
    arguments = kind.forget(mine)
    assert disturbed(arguments, kind.checkpoints, 1, "after").returncode == -signal.SIGKILL
    refused = mine.run(f"snakemake {arguments}")
    assert refused.returncode != 0
    assert "snakemake --unlock" in (ROOT / "docs/running.md").read_text()
    assert "--unlock" in refused.stdout
    mine.snakemake("--unlock")
    mine.snakemake(arguments)
    assert "resumed after" in (mine.root / kind.log).read_text()
    assert_whole(mine, built, kind)


@pytest.mark.all("a full disk within the workflow takes half a minute; each file without room is a test of its own")
def test_a_job_on_a_full_disk_ends_in_one_line_and_resumes(built, mine, disturbed):
    """So does a training; the measurement that follows it dies between its checkpoint and its first output."""
    TRAINING.forget(mine)
    arguments = f"{MEASUREMENT.forget(mine)} {TRAINING.outputs[0]} --nolock"
    full = disturbed(arguments, TRAINING.checkpoints, 1, "full")
    assert full.returncode == 1
    (line,) = {line for line in full.stdout.splitlines() if line.startswith("error: ")}
    remedy = "make room and run again; what is done is kept"
    assert re.fullmatch(rf"error: checkpoints/\S+ cannot be written: File too large; {remedy}", line)
    assert not re.search("Traceback|Logging error", full.stdout)

    assert disturbed(arguments, MEASUREMENT.outputs[0], 1, "before").returncode == -signal.SIGKILL
    assert "resumed after step 4" in (mine.root / TRAINING.log).read_text()
    assert not (mine.root / MEASUREMENT.outputs[0]).exists()

    mine.snakemake(arguments)
    assert "resumed after prompt 8 of 8" in (mine.root / MEASUREMENT.log).read_text()
    assert_whole(mine, built, TRAINING)
    assert_whole(mine, built, MEASUREMENT)


@OFTEN
@pytest.mark.parametrize(
    ("kind", "place", "occurrence", "moment"),
    [
        (TRAINING, TRAINING.checkpoints, 2, "half"),
        (MEASUREMENT, MEASUREMENT.outputs[1], 1, "after"),
        (EMERGENCE, EMERGENCE.outputs[0], 1, "after"),
    ],
    ids=["half a checkpoint", "between measurements", "between outputs"],
)
def test_files_are_whole_whenever_their_job_is_killed(built, mine, disturbed, kind, place, occurrence, moment):
    arguments = f"{kind.forget(mine)} --nolock"
    assert disturbed(arguments, place, occurrence, moment).returncode == -signal.SIGKILL
    mine.snakemake(arguments)
    assert "resumed after" in (mine.root / kind.log).read_text()
    assert_whole(mine, built, kind)
