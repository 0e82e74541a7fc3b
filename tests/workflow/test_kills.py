"""Jobs that are killed end with the bytes of those that are not, whenever and however they are killed.

Every kind of job that keeps checkpoints is run once in peace, then killed: from outside at random moments, or by itself
as one of its files takes its name, since a moment that exact cannot be met from outside. What is random has a seed.
"""

import contextlib
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from position_bias.running import artifacts

ROOT = Path(__file__).parents[2]

CONFIGURATION = {
    "device": "cpu",  # where the same work has the same bits
    "checkpoint_every": {"training": 7, "measure": 10, "emergence": 15, "layernorm": 15, "postnorm": 20},
    "lengths": {
        purpose: {"tokens": tokens, "prompts": 96}
        for purpose, tokens in {"heatmap": 16, "standard": 32, "long": 48}.items()
    },
    "tokenizer": {"datasets": ["language-reference"]},
    "training": {"datasets": ["language-reference"], "steps": 90, "snapshots": [0, 45]},
    "measure": {"tokens_per_batch": 64},
    "emergence": {"training": {"iterations": {"unbiased": 240}}, "testing": {"every": 40}},
    "layernorm": {"trained": {"iterations": 400}},
    "postnorm": {"set_complement": {"iterations": 90}, "averaging": {"iterations": 250}},
}


@dataclass(frozen=True)
class Kind:
    """A job that keeps checkpoints: where they lie, its log, and the files and folders that it makes."""

    checkpoints: str
    log: str
    outputs: tuple[str, ...]

    def files(self, project):
        """All files that the job has made."""
        made = [project.root / output for output in self.outputs]
        found = [path for output in made for path in ([output] if output.is_file() else output.rglob("*"))]
        return sorted(path for path in found if path.is_file() and path.name != ".snakemake_timestamp")

    def hashes(self, project):
        return {
            path.relative_to(project.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.files(project)
        }

    def forget(self, project):
        """Remove what the job has made, and its log."""
        for output in (*self.outputs, self.checkpoints):
            shutil.rmtree(project.root / output, ignore_errors=True)
            (project.root / output).unlink(missing_ok=True)
        (project.root / self.log).unlink(missing_ok=True)


MODEL = "results/models/bloom/seed0"
MEASURED = "results/measure/bloom/seed0/step90/language-reference"
KINDS = {
    "language model": Kind(
        "checkpoints/training/bloom/seed0",
        "logs/models/bloom/seed0.log",
        (f"{MODEL}/loss.csv", *(f"{MODEL}/step{step}" for step in (0, 45, 90))),
    ),
    "measurement": Kind(
        "checkpoints/measure/bloom/seed0/step90/language-reference",
        "logs/measure/bloom/seed0/step90/language-reference.log",
        tuple(f"{MEASURED}/n{n}.safetensors" for n in (16, 32, 48)),
    ),
    "emergence": Kind(
        "checkpoints/emergence/gaussian/plain/depth2",
        "logs/emergence/gaussian/plain/depth2.log",
        tuple(f"results/emergence/gaussian/plain/depth2/{name}" for name in ("weights.safetensors", "curves.parquet")),
    ),
    "layernorm": Kind(
        "checkpoints/layernorm/pre-layer",
        "logs/layernorm/trained/pre-layer.log",
        ("results/layernorm/trained/pre-layer.parquet",),
    ),
    "postnorm": Kind(
        "checkpoints/postnorm/set-complement-16",
        "logs/postnorm/set-complement-16.log",
        tuple(f"results/postnorm/set-complement-16/{name}.parquet" for name in ("tests", "history")),
    ),
}
ENGINES = ("language model", "measurement", "emergence")  # all stacks are trained by one engine
STACKED = ("emergence", "layernorm", "postnorm")
AVERAGES = Kind(
    "checkpoints/postnorm/averaging", "logs/postnorm/averaging.log", ("results/postnorm/averaging/tests.parquet",)
)
EVERY_KIND = {**KINDS, "postnorm, averaged": AVERAGES}
OFTEN = pytest.mark.all("six kinds of jobs that are killed five times each take minutes")

# A moment between two instructions of a job: as a file takes its name. Python runs this module first in every process;
# WHEN is "", or which replacement of which file to die at, and how. NAMED gets a line a replacement.
SABOTAGE = """
import os, signal, sys

replace, seen = os.replace, 0

def watched(source, target):
    global seen
    if sys._getframe(1).f_globals["__name__"] != "position_bias.running.runtime":
        return replace(source, target)
    with open(os.environ["NAMED"], "a") as named:
        named.write(f"{target}\\n")
    path, occurrence, moment = os.environ["WHEN"].split(":") if os.environ["WHEN"] else ("", 0, "")
    seen += str(target) == path
    now = str(target) == path and seen == int(occurrence)
    if now and moment == "half" and os.path.isfile(source):
        os.truncate(source, os.path.getsize(source) // 2)
    if now and moment != "after":
        os.killpg(0, signal.SIGKILL)
    replace(source, target)
    if now:
        os.killpg(0, signal.SIGKILL)

os.replace = watched
"""


@dataclass(frozen=True)
class Whole:
    """A project in which every kind of job has run in peace."""

    project: object
    hashes: dict
    named: dict  # kind -> the files that took their names, in order
    lines: dict  # kind -> of its log

    def start(self, tmp_path, *kinds):
        """A copy in which these kinds of jobs are still to run."""
        project = self.project.copy(tmp_path / "position-bias")
        for kind in kinds:
            EVERY_KIND[kind].forget(project)
        return project


@pytest.fixture(scope="module")
def sabotage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sabotage")
    (folder / "sitecustomize.py").write_text(SABOTAGE)
    return folder


@pytest.fixture(scope="module")
def whole(fresh, sabotage, tmp_path_factory):
    """A kind of job of each engine, for `make test`."""
    project = fresh.copy(tmp_path_factory.mktemp("whole") / "position-bias")
    project.configure(CONFIGURATION)
    return in_peace(project, sabotage, {name: KINDS[name] for name in ENGINES})


@pytest.fixture(scope="module")
def whole_of_every_kind(whole, sabotage, tmp_path_factory):
    project = whole.project.copy(tmp_path_factory.mktemp("whole") / "position-bias")
    return in_peace(project, sabotage, EVERY_KIND)


def in_peace(project, sabotage, kinds):
    """Run these kinds of jobs, where they have not run, and note which files take their names."""
    named = sabotage / "named.txt"
    noting = {"PYTHONPATH": str(sabotage), "NAMED": str(named), "WHEN": ""}
    outputs = [output for name, kind in kinds.items() if name != "measurement" for output in kind.outputs]
    project.snakemake(f"{' '.join(outputs)} --cores 2", **noting)
    if not (project.root / MEASURED).exists():
        for n in (16, 32, 48):  # random tokens: the making of prompts takes longer, and is not what is tested
            prompts = np.random.default_rng(n).integers(512, size=(96, n))
            path = project.root / f"results/prompts/offline/language-reference/n{n}.safetensors"
            artifacts.write_tensors(path, {"tokens": prompts, "documents": np.arange(96)})
        project.snakemake(f"{' '.join(kinds['measurement'].outputs)} --cores 1", **noting)
    paths = named.read_text().splitlines()
    return Whole(
        project,
        {name: kind.hashes(project) for name, kind in kinds.items()},
        {name: [p for p in paths if p.startswith((kind.checkpoints, *kind.outputs))] for name, kind in kinds.items()},
        {name: len((project.root / kind.log).read_text().splitlines()) for name, kind in kinds.items()},
    )


def start(project, command, **environment):
    """Start a command line in a process group of its own."""
    return subprocess.Popen(
        ["bash", "-c", command],
        cwd=project.root,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **environment},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def works(process, log, lines):
    """Wait until a job has logged so many lines; False where the run ends before."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if log.exists() and log.read_text().count("\n") >= lines:
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.01)
    raise AssertionError(f"{log} does not reach {lines} lines")


def jobs(process):
    """The jobs that a run has at work."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name().startswith("python") and any(".snakemake/scripts" in word for word in child.cmdline()):
                found.append(child)
    return found


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def end(process):
    """SIGTERM to the job: as if it had run past its time."""
    for job in jobs(process):
        job.terminate()
    return process.communicate(timeout=300)[0]


def fill_disk(process):
    """From now on the job can write nothing, its log neither."""
    for job in jobs(process):
        job.rlimit(psutil.RLIMIT_FSIZE, (0, 0))
    said = process.communicate(timeout=300)[0]
    if process.returncode:
        (line,) = {line for line in said.splitlines() if line.startswith("error: ")}
        remedy = "make room and run again; what is done is kept"
        written = rf"(checkpoints|results)/\S+ cannot be written: File too large; {remedy}"
        read = r"data set .* cannot be read: .*File too large.*"  # where torch gets no shared memory for what it reads
        assert re.fullmatch(f"error: ({written}|{read})", line)
        assert "Traceback" not in said
        assert "Logging error" not in said
    return said


MANNERS = {"kill": kill, "end": end, "full disk": fill_disk}


def check_whole(project, whole, kind):
    """Same files, same bytes, and nothing beside them."""
    assert EVERY_KIND[kind].hashes(project) == whole.hashes[kind]
    assert not (project.root / EVERY_KIND[kind].checkpoints).exists()
    assert [path for folder in ("results", "checkpoints") for path in (project.root / folder).rglob(".*.part*")] == []


# A kill or two of each engine


@pytest.mark.parametrize(
    ("kinds", "undisturbed"), [(("emergence",), "whole"), pytest.param(STACKED, "whole_of_every_kind", marks=OFTEN)]
)
def test_stacked_trainings_are_killed_and_resume_as_the_readme_says(request, kinds, undisturbed, tmp_path):
    whole = request.getfixturevalue(undisturbed)
    project = whole.start(tmp_path, *kinds)
    command = f"snakemake --cores 3 {' '.join(output for kind in kinds for output in KINDS[kind].outputs)}"
    process = start(project, command)
    for kind in kinds:
        assert works(process, project.root / KINDS[kind].log, 2)
    said = kill(process)
    assert f"{len(kinds)} of {len(kinds)} steps" not in said
    interrupted = [kind for kind in kinds if list((project.root / KINDS[kind].checkpoints).rglob("*.safetensors"))]
    assert interrupted

    refused = project.run(command)
    assert refused.returncode != 0
    assert "snakemake --unlock" in (ROOT / "README.md").read_text()
    assert "--unlock" in refused.stdout
    project.snakemake("--unlock")
    assert project.run(command).returncode == 0
    for kind in kinds:
        check_whole(project, whole, kind)
    for kind in interrupted:
        assert "resumed after" in (project.root / KINDS[kind].log).read_text()


def test_a_training_on_a_full_disk_and_the_measurement_after_it_end_with_the_same_bytes(whole, sabotage, tmp_path):
    """The training says in one line that there is no room; the measurement dies between checkpoint and outputs."""
    training, measurement = KINDS["language model"], KINDS["measurement"]
    project = whole.start(tmp_path, "language model", "measurement")
    command = f"snakemake --cores 1 {training.outputs[0]} {measurement.outputs[0]}"
    process = start(project, command)
    assert works(process, project.root / training.log, 4)
    fill_disk(process)
    assert process.returncode == 1

    first = next(path for path in whole.named["measurement"] if path in measurement.outputs)
    dies = start(project, command, **at(sabotage, first, 1, "before"))
    dies.communicate(timeout=300)
    assert dies.returncode == -signal.SIGKILL
    assert "resumed after step" in (project.root / training.log).read_text()
    assert not (project.root / first).exists()

    assert project.run(f"{command} --nolock").returncode == 0
    assert "resumed after prompt 96 of 96" in (project.root / measurement.log).read_text()
    check_whole(project, whole, "language model")
    check_whole(project, whole, "measurement")


def at(sabotage, path, occurrence, moment):
    """The environment in which a job dies as a file takes its name."""
    when = f"{path}:{occurrence}:{moment}"
    return {"PYTHONPATH": str(sabotage), "NAMED": str(sabotage / "named_by_killed.txt"), "WHEN": when}


# Thirty kills


@OFTEN
@pytest.mark.parametrize("name", EVERY_KIND)
def test_a_job_killed_again_and_again_ends_with_the_same_bytes(whole_of_every_kind, sabotage, tmp_path, name):
    """Five kills in five manners, one to three in a row, then the job is let be."""
    whole, kind = whole_of_every_kind, EVERY_KIND[name]
    chance = random.Random(f"kills of {name}")
    project = whole.start(tmp_path, name)
    manners = chance.sample([*MANNERS, "half", "after"], 5)
    let_be_after = {chance.randrange(1, 4), 5}
    resumed = 0
    for done, manner in enumerate(manners, start=1):
        in_a_row = done > 1 and done - 1 not in let_be_after
        while not interrupted(project, whole, sabotage, name, manner, chance, in_a_row):
            kind.forget(project)  # it had ended before
            in_a_row = False
        resumed += "resumed after" in (project.root / kind.log).read_text()
        if done in let_be_after:
            assert project.run(f"snakemake --nolock --cores 1 {kind.outputs[0]}").returncode == 0
            resumed += "resumed after" in (project.root / kind.log).read_text()
            check_whole(project, whole, name)
            kind.forget(project)
    assert resumed


def interrupted(project, whole, sabotage, name, manner, chance, in_a_row):
    """Run a job and interrupt it; False where it ends before."""
    kind = EVERY_KIND[name]
    (project.root / kind.log).unlink(missing_ok=True)
    command = f"snakemake --nolock --cores 1 {kind.outputs[0]}"
    if manner not in MANNERS:
        index = chance.randrange(len(whole.named[name]))
        path = whole.named[name][index]
        occurrence = 1 if in_a_row else whole.named[name][: index + 1].count(path)
        process = start(project, command, **at(sabotage, path, occurrence, manner))
        process.communicate(timeout=300)
        return process.returncode == -signal.SIGKILL
    process = start(project, command)
    lines = chance.randrange(1, 4) if in_a_row else chance.randrange(1, whole.lines[name])
    if not works(process, project.root / kind.log, lines):
        process.communicate()
        return False
    time.sleep(chance.uniform(0, 0.3))
    MANNERS[manner](process)
    return process.returncode != 0
