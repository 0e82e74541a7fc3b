"""The whole graph at toy scale: built once, in a copy of the project, and shared by every test that looks at it."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Project:
    """A copy of the project whose config.yaml is that of the default run at toy scale."""

    root: Path

    def run(self, command, **environment):
        """Run a command line as typed in the project's environment."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.root,
            env={**os.environ, "PATH": path, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,  # the whole graph beside other work
            check=False,
        )

    def snakemake(self, arguments, **environment):
        """Run Snakemake, which must succeed; returns what it printed."""
        ended = self.run(f"snakemake {arguments}", **environment)
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    def planned(self, arguments="all", **environment):
        """How many jobs of each rule would run; those that do nothing of their own, or follow all others, left out."""
        printed = self.snakemake(f"{arguments} -n --cores 1", **environment)
        if "Nothing to be done" in printed:
            return {}
        table = re.search(r"Job stats:\n.*?\n(?P<rows>.*?)\ntotal ", printed, re.DOTALL)["rows"]
        jobs = {line.split()[0]: int(line.split()[1]) for line in table.splitlines() if not line.startswith("-")}
        others = ("all", "structural", "emergence", "layernorm", "postnorm", "provenance")
        return {rule: count for rule, count in jobs.items() if rule not in others}

    def configure(self, overlay):
        path = self.root / "config.yaml"
        config = yaml.safe_load(path.read_text())
        update_config(config, overlay)
        path.write_text(yaml.safe_dump(config, sort_keys=False))

    def append(self, file, text):
        with (self.root / file).open("a") as opened:
            opened.write(text)

    def copy(self, root):
        shutil.copytree(self.root, root, symlinks=True)
        return Project(root)


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
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    (root / ".venv").symlink_to(sys.prefix)
    project = Project(root)
    project.configure(yaml.safe_load((ROOT / "config/test.yaml").read_text()))
    return project


@pytest.fixture(scope="session")
def built(fresh, tmp_path_factory):
    """The project after one run of the whole graph; not to be changed."""
    project = fresh.copy(tmp_path_factory.mktemp("built") / "position-bias")
    project.snakemake("all --cores 2")
    return project


@pytest.fixture
def mine(built, tmp_path):
    """A built project of the test's own."""
    return built.copy(tmp_path / "position-bias")
