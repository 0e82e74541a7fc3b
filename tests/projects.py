"""Copies of the project in which Snakemake plans and runs. Each of two toy graphs is built once."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache, reduce
from operator import getitem
from pathlib import Path

import pytest
import yaml
from filelock import FileLock
from snakemake.utils import update_config

from tests import graphs

ROOT = Path(__file__).parents[1]
WHOLE = "the whole toy graph takes four minutes"


@cache
def planner():
    """The process that makes dry runs for this one, and ends when this one does."""
    command = [sys.executable, ROOT / "tests/planner.py"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True)


ENVIRONMENT = {  # the project's, whose `snakemake` is the one of this checkout, whichever is installed
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT / "launcher"),
}


@dataclass(frozen=True)
class Project:
    """A copy of the project whose config.yaml is that of the default run at toy scale, or of the small graph."""

    root: Path
    small: bool = False

    def run(self, command, **environment):
        """Run a command line as typed in the project's environment."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.root,
            env={**ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,  # the whole graph beside other work
            check=False,
        )

    def dry_run(self, arguments, **environment):
        """Let Snakemake plan."""
        words = shlex.split(arguments)
        assert "-n" in words
        with tempfile.NamedTemporaryFile("r") as printed:
            asked = {"folder": str(self.root), "arguments": words, "environment": environment, "printed": printed.name}
            planner().stdin.write(json.dumps(asked) + "\n")
            planner().stdin.flush()
            status = int(planner().stdout.readline())
            return subprocess.CompletedProcess(words, status, printed.read())

    def snakemake(self, arguments, **environment):
        """Run Snakemake, which must succeed; returns what it printed."""
        dry = "-n" in arguments.split()
        ended = self.dry_run(arguments, **environment) if dry else self.run(f"snakemake {arguments}", **environment)
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    def build(self):
        """Make everything; in the small graph, scripts are forks of one process (`tests/forking.py`)."""
        ended = self.run(f"{'python -m tests.forking' if self.small else 'snakemake'} all --cores 2")
        assert ended.returncode == 0, ended.stdout

    def planned(self, arguments="all", **environment):
        """How many jobs of each rule would run; those that do nothing of their own, or follow all others, left out."""
        printed = self.snakemake(f"{arguments} -n --cores 1", **environment)
        if "Nothing to be done" in printed:
            return {}
        table = re.search(r"Job stats:\n.*?\n(?P<rows>.*?)\ntotal ", printed, re.DOTALL)["rows"]
        jobs = {line.split()[0]: int(line.split()[1]) for line in table.splitlines() if not line.startswith("-")}
        others = (
            "all",
            "structural",
            "emergence",
            "layernorm",
            "postnorm",
            "provenance",
            "judge_claims",
            "draw_scorecard",
        )
        return {rule: count for rule, count in jobs.items() if rule not in others and not rule.startswith("scorecard")}

    def configure(self, overlay):
        path = self.root / "config.yaml"
        config = yaml.safe_load(path.read_text())
        update_config(config, overlay)
        path.write_text(yaml.safe_dump(config, sort_keys=False))

    def shrink(self):
        """Configure every kind of job once, without the claims on what is not trained then."""
        path = self.root / "config.yaml"
        config = yaml.safe_load(path.read_text())
        for key, value in graphs.SMALL.items():
            *around, name = key.split(".")
            reduce(getitem, around, config)[name] = value
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        for path in (self.root / "published/claims.csv", self.root / "published/additions.csv"):
            claims = path.read_text().splitlines(keepends=True)
            path.write_text("".join(line for line in claims if line.split(",")[0] not in graphs.NOT_SMALL))

    def append(self, file, text):
        with (self.root / file).open("a") as opened:
            opened.write(text)

    def edit(self, file, old, new):
        path = self.root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def copy(self, root):
        """Copy the project; files of evidence, half of all bytes, are links: remove one before you write another."""
        shutil.copytree(
            self.root, root, symlinks=True, ignore=lambda folder, _: ["evidence"] if Path(folder) == self.root else []
        )
        shutil.copytree(self.root / "evidence", root / "evidence", copy_function=os.link)
        return Project(root, self.small)


@pytest.fixture(scope="session")
def fresh(tmp_path_factory):
    """The project as a clone has it, nothing built; not to be changed."""
    root = tmp_path_factory.mktemp("fresh") / "position-bias"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    from position_card.rollout.last_row import last_row

    for window in (None, 2):
        last_row(4, [0.5], [1.0], window=window)
    compiled = ROOT.glob("position_*/**/__pycache__/*.nb?")  # what numba has kept of these: it takes seconds to compile
    names = [*listed.splitlines(), *(path.relative_to(ROOT) for path in compiled)]
    for name in filter(lambda name: (ROOT / name).is_file(), names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    (root / ".venv").symlink_to(sys.prefix)
    project = Project(root)
    project.configure(yaml.safe_load((ROOT / "config/test.yaml").read_text()))
    stand_in(root / "stand-in")
    project.configure({"hub_models": {"smollm2-135m": {"source": "./stand-in", "revision": None}}})
    return project


def stand_in(directory):
    """Write a small decoder with a tokenizer, which takes the place of the pretrained one."""
    from position_card.texts import tokens
    from tests.ggufs import small

    small("llama", vocab_size=1000).save_pretrained(directory)
    page = (ROOT / "docs/dev/recipes.md").read_text()
    tokens.add_tokenizer(tokens.train_tokenizer([page], 1000), directory)


@pytest.fixture(scope="session")
def built_once(fresh, tmp_path_factory):
    """The function that gives a project after one run of a graph, which the first process that asks for it makes."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all processes of this run

    def build(name, small):
        project, complete = Project(base / name / "position-bias", small), base / name / "complete"
        with FileLock(base / f"{name}.lock"):
            if not complete.exists():
                fresh.copy(project.root)
                if small:
                    project.shrink()
                project.build()
                complete.touch()
        return project

    return build


@pytest.fixture(scope="session")
def built(built_once):
    """The project after one run of the small graph; not to be changed."""
    return built_once("small", small=True)


@pytest.fixture(scope="session")
def whole_graph(built_once):
    """The project after one run of the whole graph, for tests that `make test-all` adds; not to be changed."""
    return built_once("whole", small=False)


@pytest.fixture(scope="session", params=["small", pytest.param("whole", marks=pytest.mark.all(WHOLE))])
def graph(request):
    """A project after one run of a graph: the small one, and besides the whole one in `make test-all`."""
    return request.getfixturevalue({"small": "built", "whole": "whole_graph"}[request.param])


@pytest.fixture
def mine(built, tmp_path):
    """A built project of the test's own, of the small graph."""
    return built.copy(tmp_path / "position-bias")
