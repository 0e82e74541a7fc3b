"""Every key of the configuration changes what runs."""

import re
from copy import deepcopy
from typing import Literal, get_args, get_origin

import pytest
from snakemake.settings.types import ConfigSettings

from position_bias import settings
from tests.configurations import EVERYTHING, ROOT, SOURCES, at, leaves, part, put, refusals
from tools.workflow import open_workflow, plan_jobs

pytestmark = pytest.mark.all("plans for every key of the configuration take a minute")
TARGETS = {"all", "sweeps", "evidence", "all_published"}


OTHERS = {  # of keys whose values are names, or have to fit another key
    "device": ["cpu"],
    **{f"devices.{stage}": ["cpu"] for stage in settings.DEVICES},
    "primary_dataset": ["web"],
    "structural.curve.dataset": ["web"],
    "structural.sink.models": [["rotary", "large"]],
    "emergence.sinks.threshold": [0.25],
    "postnorm.dimension.vocabulary": [32],
    "released.source": [SOURCES[1]],
    "released.sha256": ["1" * 64],
}


def others(path, value):
    """Values that a key could have in place of its own."""
    key = ".".join(path)
    if key in OTHERS:
        return OTHERS[key]
    if get_origin(kind := part(path).kind) is Literal:
        return [choice for choice in get_args(kind) if choice != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value, value + 2]
    if isinstance(value, float):
        return [value / 2, value * 2]
    if isinstance(value, list):
        return [value[:-1], value[1:], [*value, *(last + 1 for last in value[-1:] if isinstance(last, int))]]
    return ["1" * 40 if path[-1] == "revision" else f"{value}-too"]


KEYS = list(leaves(EVERYTHING))
READ_IN_SCRIPTS = {  # what changes no result, and so is no parameter of a rule: the entries that jobs are opened with
    ("checkpoint_every", kind)
    for path in (ROOT / "scripts").glob("*/*.py")
    if "resumable.job(" in (text := path.read_text())
    for kind in re.findall(r'(?:job\(snakemake, |path = \()"(\w+)"', text)
}


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """What Snakemake would run of everything, job by job, with a configuration in place of config.yaml."""
    folder = tmp_path_factory.mktemp("plan")
    for source in SOURCES:
        (folder / source).mkdir()
        for name in ("lambda.csv", "content.csv.gz", "models.csv"):
            (folder / source / name).touch()

    def jobs_of(config):
        with open_workflow(ConfigSettings(config=deepcopy(config), replace_workflow_config=True), folder) as workflow:
            return list(plan_jobs(workflow, TARGETS).dag.jobs)

    return jobs_of


def described(jobs):
    """All of jobs that a value may show in."""
    return {
        repr((job.rule.name, job.input, job.output, dict(job.params.items()), dict(job.resources.items())))
        for job in jobs
    }


MARKED = {kind: type("Marked", (kind,), {}) for kind in (int, float, str)}  # kinds of values that know their keys


def marked(node, path=()):
    """A configuration whose numbers know their keys."""
    if isinstance(node, dict):
        return {name: marked(inner, (*path, name)) for name, inner in node.items()}
    if isinstance(node, list):
        return [marked(inner, path) for inner in node]
    if type(node) not in MARKED:
        return node
    value = MARKED[type(node)](node)
    value.path = path
    return value


def marks(value):
    """The keys that the numbers within a value come from."""
    if isinstance(value, tuple(MARKED.values())):
        yield value.path
    elif isinstance(value, dict):
        for inner in value.values():
            yield from marks(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from marks(inner)


def test_every_key_reaches_what_runs(plan):
    """As a number within a parameter of a job, as a value that a script reads, or else by another plan."""
    jobs = plan(marked(EVERYTHING))
    as_it_is = described(jobs)
    seen = {path for job in jobs for _, value in job.params.items() for path in marks(value)}
    assert len(seen) > 100
    left = [path for path in KEYS if path not in seen | READ_IN_SCRIPTS]
    unused = []
    for path in left:
        changed = [put(EVERYTHING, path, value) for value in others(path, at(EVERYTHING, path))]
        if described(plan(next(config for config in changed if not refusals(config)))) == as_it_is:
            unused.append(".".join(path))
    assert unused == []
