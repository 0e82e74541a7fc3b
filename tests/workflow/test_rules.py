"""Rules carry what they must, and their scripts and imports are what the workflow allows."""

import ast
import importlib.metadata
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pandas as pd
import pytest
from snakemake.settings.types import ConfigSettings

from position_bias.workflow import calls
from tests import needs
from tools.workflow import open_workflow, rules

ROOT = Path(__file__).parents[2]
RULES = {name: rule for name, rule in rules().items() if rule.uses is None}
SCRIPTS = [path.relative_to(ROOT).as_posix() for path in (ROOT / "scripts").rglob("*.py")]
JOBS = {name: rule for name, rule in RULES.items() if rule.script}
ROWS = {name: rule for name, rule in JOBS.items() if rule.functions}  # made from files by a shared script
BY_INPUT = {"structural_table5"}  # what they ask for depends on the size of their input


@pytest.mark.parametrize("name", JOBS)
def test_a_rule_carries_all_that_a_rule_must(name):
    rule, wing = JOBS[name], Path(JOBS[name].file).stem
    script = f"scripts/{wing}/{name.removeprefix(f'{wing}_')}.py"
    if name in ROWS:
        script = "scripts/draw.py" if rule.output[0].startswith("figures/") else "scripts/table.py"
        assert rule.functions[0] in (ROOT / rule.file).read_text()  # the row stands in the file of its wing
    assert rule.script == script
    assert [key for key in ("docstring", "log", "benchmark", "conda", "output") if not getattr(rule, key)] == []
    assert (ROOT / rule.conda).is_file()
    if "mem_mb" in rule.resources and name not in BY_INPUT:
        once, twice, thrice = (rule.asks("mem_mb", attempt, model="smollm2-135m") for attempt in (1, 2, 3))
        assert (twice, thrice) == (2 * once, 3 * once)


@pytest.mark.parametrize("name", ROWS)
def test_the_function_of_a_row_takes_its_files_and_values(name):
    rule = ROWS[name]
    given = [*rule.input, *rule.computed, *rule.values]
    function = calls.row_function(rule.functions[0])
    parameters = inspect.signature(function).parameters
    assert set(given) <= set(parameters)
    needed = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
    assert needed <= set(given)
    types = get_type_hints(function)
    for file in set(given) - set(rule.values):
        (kind,) = get_args(types[file]) if get_origin(types[file]) in (list, Sequence) else (types[file],)
        assert kind is pd.DataFrame or kind in calls.READERS, f"{file}: {kind}"


def test_every_script_belongs_to_a_rule():
    assert set(SCRIPTS) == {rule.script for rule in JOBS.values()}


def uses_of_the_configuration(text):
    """The calls that a script hands the configuration or its whole job to, or else the expression around it."""
    tree = ast.parse(text)
    around = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node, outer in around.items():
        whole = ast.unparse(node) == "snakemake" and not isinstance(outer, ast.Attribute)
        if whole or ast.unparse(node) == "snakemake.config":
            yield ast.unparse(outer.func if isinstance(outer, ast.Call) else outer)


def test_a_rule_keeps_its_configuration_beside_others(tmp_path):
    """Snakemake has one dictionary for the names of all workflows of a process: the last to be opened would win."""
    rule = rules()["measure_recall"]
    asked = rule.asks("mem_mb", model="smollm2-135m")
    larger = {"hub_models": {"smollm2-135m": {"memory": 99}}}
    with open_workflow(ConfigSettings(config=larger), tmp_path) as other:
        assert other._workflow.globals["config"]["hub_models"]["smollm2-135m"]["memory"] == 99
    assert rule.asks("mem_mb", model="smollm2-135m") == asked


def test_scripts_reach_the_configuration_through_one_function():
    """What it decides there is no parameter, so that a change reruns nothing: no number may depend on it."""
    others = {
        "scripts/draw.py": ["calls.make"],  # which takes no notice of it
        "scripts/table.py": ["calls.make", "calls.write"],
        "scripts/overview/provenance.py": ["provenance.record"],  # writes all of it down
        "scripts/language_models/measure.py": ["snakemake.config['hub_models']"],  # GPUs that a model is spread over
    }
    found = {path: list(uses_of_the_configuration((ROOT / path).read_text())) for path in SCRIPTS}
    assert ["resumable.job"] in found.values()
    for path, uses in found.items():
        assert sorted(use for use in uses if use != "resumable.job") == others.get(path, []), path


def test_no_program_trusts_remote_code_or_allows_pickles():
    """Ruff finds modules and functions that pickle, but neither these methods nor these arguments."""
    unsafe = re.compile(r"\.to_pickle\(|(?:allow_pickle|trust_remote_code)\b(?!\"?\s*[=:]\s*False)")
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    programs = {ROOT / name for name in listed.splitlines()} - {Path(__file__)}
    assert len(programs) > 300
    assert [str(path) for path in programs if path.exists() and unsafe.search(path.read_text())] == []


def no_conda():
    """Why no environment can be made here; None where one can."""
    if shutil.which("conda") is None:
        return "conda, which Snakemake makes environments with, is not installed"
    search = "conda search --override-channels --channel conda-forge tabulate"
    found = subprocess.run(search.split(), capture_output=True, check=False)
    return "conda does not reach conda-forge" if found.returncode else None


def test_a_job_runs_in_the_conda_environment_of_its_rule(fresh, tmp_path):
    if reason := no_conda():
        needs.lack("conda", reason)
    table = "results/tables/structural/licences.md"
    fresh.snakemake(f"{table} --cores 1 --sdm conda --directory {tmp_path}")
    assert (tmp_path / table).read_text().startswith("| resource")
    (made,) = tmp_path.glob(".snakemake/conda/*/conda-meta/tabulate-*.json")
    assert made.name.split("-")[:2] == ["tabulate", importlib.metadata.version("tabulate")]


def test_lint_finds_nothing(fresh):
    assert "Congratulations" in fresh.run("snakemake --lint").stdout


def test_what_every_call_of_the_workflow_imports_is_light():
    """A second of imports is a second of every dry run. No rule says what its file imports: only the text does."""
    texts = [path.read_text() for path in sorted((ROOT / "rules").glob("*.smk"))]
    statements = [line for text in texts for line in re.findall(r"^(?:import|from) .*$", text, re.MULTILINE)]
    assert any("position_bias" in statement for statement in statements)
    heavy = ("torch", "transformers", "datasets", "pandas", "scipy", "matplotlib", "numba")
    program = "\n".join([*statements, f"print([name for name in {heavy} if name in sys.modules])"])
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
