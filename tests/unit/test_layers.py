"""The layers of docs/dev/architecture.md: every part of the library imports only what stands below it."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from position_bias.workflow.definitions import PACKAGES, Library
from tools.workflow import rules

ROOT = Path(__file__).parents[2]
(TABLE,) = re.findall(r"\| layer \| modules \|\n.*\n((?:\|.*\n)+)", (ROOT / "docs/dev/architecture.md").read_text())
DEPTH = {  # of folders and modules, from the top; what stands in one layer does not import one another
    named.removesuffix("/").removesuffix(".py"): depth
    for depth, row in enumerate(TABLE.splitlines())
    for named in re.findall(r"`([^`]+)`", row)
}
EXCEPTIONS = {  # a module of a wing, and the module of another wing that it may import, with the reason
    ("layernorm/checks", "emergence/accuracy_gaps"): "the claim on retrieval networks is judged by their accuracy gaps",
    ("layernorm/figures", "emergence/accuracy_gaps"): "a figure shows the gaps of networks with norms",
    ("layernorm/figures", "emergence/figures"): "a figure shows the gaps of networks with norms",
}
LIBRARY = Library(ROOT)


def name(path):
    return path.relative_to(ROOT).as_posix()


def part(module):
    return "/".join(module.removesuffix(".py").split("/")[:2])


@pytest.fixture(scope="module")
def imports():
    """Every module of the library with those that it imports itself, without the `__init__` of folders."""
    return {
        name(source): [
            name(path)
            for path in map(LIBRARY.file, LIBRARY.imports(".".join(source.relative_to(ROOT).with_suffix("").parts)))
            if path.name != "__init__.py"
        ]
        for package in PACKAGES
        for source in sorted((ROOT / package).rglob("*.py"))
        if source.name not in ("__init__.py", "__main__.py")
    }


def test_every_part_of_the_library_stands_in_a_layer(imports):
    assert {part(module) for module in imports} == set(DEPTH)
    assert 2 * len(DEPTH) == TABLE.count("`")  # each once


def test_imports_run_downward_with_no_exception_but_those_above(imports):
    upward = {
        (module, other)
        for module, others in imports.items()
        for other in others
        if part(other) != part(module) and DEPTH[part(other)] <= DEPTH[part(module)]
    }
    assert upward == {tuple(f"position_bias/{module}.py" for module in pair) for pair in EXCEPTIONS}


def test_no_module_imports_itself_through_others(imports):
    TopologicalSorter(imports).prepare()


MODELS = {f"position_card/{name}.py" for name in ("measures/measure", "models/families", "rollout/last_row")}
MODELS |= {f"position_bias/small_networks/{name}.py" for name in ("ensemble", "decoder")}
MODELS |= {f"position_bias/emergence/{name}.py" for name in ("networks", "training")}
MODELS |= {f"position_bias/layernorm/{name}.py" for name in ("simulation", "training")}
TYPES = {
    f"position_card/rollout/{name}.py" for name in ("__init__", "attention", "measurement", "parts")
}  # of measurements


def test_what_a_job_depends_on_says_which_edits_run_it_again():
    """No figure runs models, no training the bounds of the configuration, no measurement rollouts."""
    jobs = {name: rule for name, rule in rules().items() if rule.script}
    reached = {
        job: {
            name(LIBRARY.file(module))
            for module, of_it in LIBRARY.reach(rule.script, rule.functions)
            if module != rule.script and LIBRARY.module(module).text(of_it)
        }
        for job, rule in jobs.items()
    }
    assert set().union(*reached.values()) >= MODELS
    drawing = {name for name, rule in jobs.items() if rule.script == "scripts/draw.py"}
    training = {name for name, rule in jobs.items() if "resumable.job(" in (ROOT / rule.script).read_text()}
    assert len(drawing) > 50
    assert len(training) > 10
    for job in drawing | {"layernorm_checks"}:
        assert not reached[job] & MODELS, job
    for job in training:
        assert "position_bias/settings.py" not in reached[job], job
    assert {
        other for other in reached["measure"] if part(other) in ("position_card/rollout", "position_card/drawing")
    } <= TYPES
