"""What all tests share. Property tests draw new examples in every run, but the same ones in CI: what fails there failed
for its change. A sample of random numbers stands for the released ones of the big models, which no test carries. Each
of two toy graphs is built once, in a copy of the project.

`make test` skips the tests with the marker `all`, and `make test-all` runs them besides (`-m all`). The marker says why
a test is not in `make test`, and pytest ends a run with the tests that it skipped and these reasons.
"""

import gzip
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

import numpy as np
import pytest
import yaml
from filelock import FileLock
from hypothesis import settings
from snakemake.utils import update_config

from tests import graphs

ROOT = Path(__file__).parents[1]

REAL_GPUS = "TEST_GPU" in os.environ  # make test-gpu sets it
if not REAL_GPUS:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # results must not depend on a GPU that the machine happens to have

settings.register_profile("here", deadline=None)  # a machine may be slow, or at other work
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


LONGEST_FIRST = (  # so that two processes end together, and what waits for SLURM waits while the graph is built
    "test_whole.py",
    "test_slurm.py",
    "test_cluster_page.py",
    "test_graph.py",
    "test_rebuilds.py",
    "test_kills.py",
    "test_pretended_gpus.py",
    "test_hub_path.py",
    "test_readme.py",
    "test_keys.py",
    "test_published.py",
    "test_recipes.py",
)
WHOLE = "the whole toy graph takes four minutes"


def pytest_collection_modifyitems(items):
    names = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: names.get(item.path.name, len(names)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    marker = item.get_closest_marker("all")
    if marker and not item.config.option.markexpr:
        pytest.skip(f"{item.path.relative_to(ROOT)}: {marker.args[0]}")


@dataclass(frozen=True)
class Released:
    """Random numbers in the shape of the released ones, as tables and as the authors' tree of configurations."""

    tables: Path
    tree: Path
    mixing: dict  # (model, dataset) -> lambda [L]
    base: dict  # (model, dataset) -> [L, H], float32
    diagonal: dict

    def copy(self, kind, folder):
        """A copy of the tables or of the tree that a test may damage."""
        return Path(shutil.copytree(getattr(self, kind), folder / kind))


@pytest.fixture(scope="session")
def released_sample(tmp_path_factory):
    """Nothing in it was measured; not to be changed."""
    rng = np.random.default_rng(0)
    root = tmp_path_factory.mktemp("released")
    sample = Released(root / "tables", root / "tree", {}, {}, {})
    for name, (layers, heads, *_) in RELEASED_SIZES.items():
        for dataset in ("fineweb-edu", "dclm", "wikipedia"):
            key = name, dataset
            sample.mixing[key] = np.append(rng.uniform(0, 1, layers - 1), 1e-05)  # which YAML takes for a word
            sample.base[key] = rng.normal(0, 50, (layers, heads)).astype(np.float32)
            sample.diagonal[key] = rng.normal(0, 10, (layers, heads)).astype(np.float32)
    write_tables(sample)
    write_tree(sample)
    return sample


RELEASED_SIZES = {  # layers, heads, head_dim, and the name in the authors' tree
    "falcon-rw-7b": (36, 64, 64, "falcon-rw-7b"),
    "mpt-7b": (32, 32, 128, "mpt-7b"),
    "mpt-30b": (48, 64, 112, "mpt-30b"),
    "bloom-7b1": (30, 32, 128, "bloom-7b1"),
    "bloom-176b": (70, 112, 128, "bloom"),
}


def write_tables(sample):
    mixing, content = ["model,dataset,layer,lambda"], ["model,dataset,layer,head,base,diagonal"]
    for (model, dataset), values in sample.mixing.items():
        mixing += [f"{model},{dataset},{layer},{value!r}" for layer, value in enumerate(values.tolist())]
        base, diagonal = sample.base[model, dataset], sample.diagonal[model, dataset]
        content += [
            f"{model},{dataset},{layer},{head},{base[layer, head]:.9g},{diagonal[layer, head]:.9g}"
            for layer, head in np.ndindex(*base.shape)
        ]
    models = ["model,layers,heads,head_dim"]
    models += [f"{name},{layers},{heads},{width}" for name, (layers, heads, width, _) in RELEASED_SIZES.items()]
    sample.tables.mkdir()
    (sample.tables / "lambda.csv").write_text("\n".join(mixing) + "\n")
    (sample.tables / "content.csv.gz").write_bytes(gzip.compress(("\n".join(content) + "\n").encode()))
    (sample.tables / "models.csv").write_text("\n".join(models) + "\n")


def write_tree(sample):
    for (model, dataset), mixing in sample.mixing.items():
        layers, heads, _, name = RELEASED_SIZES[model]
        slopes = [2 ** (-8 * head / heads) for head in range(1, heads + 1)]
        path = sample.tree / f"config/rollout/alibi/all_content/{dataset}/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"""sequence_length: 256
num_layers: {layers}

mask_config:
  mask_type: "causal"
  window_size: null
attention_config:
  num_heads: {heads}
  alibi_slopes: [{slopes}]
  head_weights: null
  softmax_temperature: 1.0
content_config:
  diagonal_scores: {sample.diagonal[model, dataset].astype(float).tolist()}
  base_scores: {sample.base[model, dataset].astype(float).tolist()}
lambda_schedule_config:
  schedule_type: "custom"
  lambdas_custom: {mixing.tolist()}
"""
        )


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
        path = self.root / "published/claims.csv"
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
        shutil.copytree(self.root, root, symlinks=True)
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
    compiled = ROOT.glob("position_bias/**/__pycache__/*.nb?")  # what numba has kept: it takes seconds to compile
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
    from position_bias.language_models import tokens
    from tests.ggufs import small

    small("llama", vocab_size=1000).save_pretrained(directory)
    page = (ROOT / "docs/recipes.md").read_text()
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
