"""The rules of the workflow and the jobs that it plans, as Snakemake itself reads them, for pages and tests.

It stands beside what writes pages, and not in position_bias, because it imports Snakemake: jobs import the library in
conda environments that have none. The workflow is opened in an empty folder, so that nothing is left in the repository.
"""

import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from snakemake.api import SnakemakeApi
from snakemake.io import strip_wildcard_constraints
from snakemake.iocontainers import Wildcards
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, Quietness, ResourceSettings

from position_bias.workflow.rows import RULE_PARAMS

ROOT = Path(__file__).resolve().parents[1]
ROWS = "rules/rows.smk"  # where rules are made of the rows that stand in the files of the wings
WINGS_OF_ROWS = {"position_card": "structural", "verdicts": "overview"}  # rows whose function no wing has


@dataclass(frozen=True)
class Rule:
    """What a rule says; of a rule that uses another, what it does not say itself is that one's. Paths begin at ROOT."""

    name: str
    file: str
    uses: str | None  # the rule that this one was made from with `use rule`
    functions: tuple[str, ...]  # MODULE:FUNCTION that its row names; none of a rule with a script of its own
    values: tuple[str, ...]  # names of the params that this function takes
    docstring: str
    script: str | None
    conda: str | None  # the file of its environment
    group: str | None  # of jobs that go to a cluster in one submission
    input: dict[str, tuple[str, ...]]  # patterns by name, without those that a function works out for each job
    computed: tuple[str, ...]  # names of the input that a function works out for each job
    output: tuple[str, ...]  # patterns; constraints of wildcards stand in `patterns` and `constraints`
    patterns: tuple[re.Pattern[str], ...]  # the same as regular expressions
    constraints: dict[str, str]  # of the wildcards, where the rule has its own
    log: tuple[str, ...]
    benchmark: str | None
    resources: dict[str, Any]  # those that it names, as Snakemake keeps them; `asks` works them out
    captions: tuple[str, ...]  # of what it puts into the report
    names: dict[str, Any] = field(compare=False, repr=False)  # what the rules' files define, which resources look up

    def makes(self, path: str) -> bool:
        """Whether this path is an output of the rule, with wildcards that it allows."""
        return any(pattern.fullmatch(path) for pattern in self.patterns)

    def asks(self, resource: str, attempt: int = 1, **wildcards: str) -> int | str:
        """What a job of these wildcards asks for at an attempt; an error where that depends on others."""
        entry = self.resources[resource]
        values = Wildcards(fromdict=wildcards)
        with patch.dict("snakemake.workflow.__dict__", self.names):  # another workflow may have been opened since
            return (entry.evaluate(values, attempt=attempt) if entry.is_evaluable() else entry).value


@dataclass(frozen=True)
class Job:
    """One job of a plan, with the files that it reads and writes."""

    rule: str
    input: tuple[str, ...]
    inputs_by_name: dict[str, tuple[str, ...]]  # the input that its script knows by a name
    output: tuple[str, ...]
    benchmark: str | None  # where Snakemake writes the time and memory that it took
    params: Any  # as its script and its caption see them
    wildcards: Any


@cache
def rules(**config: str) -> dict[str, Rule]:
    """Every rule by its name, in the order of the workflow, with these values in place of those in config.yaml."""
    with _elsewhere() as folder, open_workflow(ConfigSettings(config=config), folder) as workflow:
        all_rules = list(workflow._workflow.rules)
        first: dict[Any, str] = {}  # rules that use one another run the same function
        for rule in all_rules:
            first.setdefault(rule.ruleinfo.func, rule.name)
        names = dict(workflow._workflow.globals)  # Snakemake has one dictionary for all workflows of a process
        return {rule.name: _rule(rule, first[rule.ruleinfo.func], names) for rule in all_rules}


@contextmanager
def open_workflow(config: ConfigSettings, folder: Path | None = None) -> Iterator[Any]:
    """Give the workflow; paths are seen from the folder, or else from where this is called."""
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        yield api.workflow(ResourceSettings(cores=1), config, snakefile=ROOT / "Snakefile", workdir=folder)


def plan_jobs(workflow: Any, targets: Iterable[str]) -> Any:
    """Plan all jobs that make the targets where nothing is made yet.

    Returns what `open_workflow` gave, with its plan (`dag`).

    Raises WorkflowError or RuleException of Snakemake.
    """
    workflow.dag(DAGSettings(targets=set(targets), forceall=True))
    inner = workflow._workflow
    inner._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True, nolock=True)
    inner.async_run(inner.dag.init())
    return inner


def jobs(*targets: str, **config: Any) -> list[Job]:
    """Every job that makes the targets where nothing is made yet, each after those that make its input."""
    with _elsewhere() as folder, open_workflow(ConfigSettings(config=config), folder) as workflow:
        dag = plan_jobs(workflow, targets).dag
        in_order = [job for level in dag.toposorted() for job in sorted(level, key=lambda job: job.jobid)]
        return [
            Job(
                job.rule.name,
                _paths(job.input),
                {name: _paths([files] if isinstance(files, str) else files) for name, files in job.input.items()},
                _paths(job.output),
                job.benchmark and _path(str(job.benchmark)),
                job.params,
                job.wildcards,
            )
            for job in in_order
        ]


def natural(path: str) -> list[int | str]:
    """What paths are sorted by: fig2 before fig10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path)]


@contextmanager
def _elsewhere() -> Iterator[Path]:
    """An empty folder for the workflow, which puts its own folder on the search path meanwhile."""
    search = list(sys.path)
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield Path(folder)
        finally:
            sys.path[:] = search


def _file_of_row(function: str) -> str:
    """The file of rules whose row names a function: that of its wing, or another one where that does not name it."""
    package = function.partition(".")[0]
    usual = f"rules/{WINGS_OF_ROWS.get(package, package)}.smk"
    naming_files = [
        _path(str(file)) for file in sorted((ROOT / "rules").glob("*.smk")) if f'"{function}"' in file.read_text()
    ]
    return naming_files[0] if naming_files and usual not in naming_files else usual


def _rule(rule: Any, first: str, names: dict[str, Any]) -> Rule:
    info, folder, file = rule.ruleinfo, os.path.dirname(rule.snakefile), _path(rule.snakefile)
    functions = tuple(filter(None, (rule.params.get(name) for name in ("makes", "readable"))))
    if file == ROWS:
        file = _file_of_row(functions[0])
    inputs: defaultdict[str, list[str]] = defaultdict(list)
    for name, paths in rule.input._allitems():
        files = [paths] if isinstance(paths, str) or callable(paths) else paths
        inputs[name or ""] += [file for file in files if not callable(file)]
    reports = [file.flags["report"] for file in rule.output if file.flags.get("report")]
    return Rule(
        name=rule.name,
        file=file,
        uses=None if first == rule.name else first,
        functions=functions,
        values=tuple(name for name, _ in rule.params.items() if name not in RULE_PARAMS) if functions else (),
        docstring=rule.docstring or "",
        script=_path(os.path.join(folder, rule.script)) if rule.script else None,
        conda=_path(os.path.join(folder, rule.conda_env)) if rule.conda_env else None,
        group=rule._group,
        input={name: _paths(files) for name, files in inputs.items()},
        computed=tuple(name for name, files in rule.input._allitems() if name and callable(files)),
        output=_paths(rule.output),
        patterns=tuple(file.regex() for file in rule.output),
        constraints=dict(rule.wildcard_constraints),
        log=_paths(rule.log),
        benchmark=next(iter(_paths([rule.benchmark] if rule.benchmark else [])), None),
        resources={name: rule.resources[name] for name in (info.resources[1] if info.resources else {})},
        captions=tuple(dict.fromkeys(_path(report.caption.get_path_or_uri(secret_free=True)) for report in reports)),
        names=names,
    )


def _paths(patterns: Iterable[Any]) -> tuple[str, ...]:
    return tuple(_path(strip_wildcard_constraints(str(pattern))) for pattern in patterns)


def _path(path: str) -> str:
    """A path of the project from its root; results are where the working directory is."""
    is_outside = os.path.isabs(path) or path.startswith("..")
    return Path(os.path.relpath(os.path.abspath(path), ROOT)).as_posix() if is_outside else path
