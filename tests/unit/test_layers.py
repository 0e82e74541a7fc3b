"""The layers of docs/architecture.md: every part of the library imports only what stands below it."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from position_bias.running import imports, made
from tools.workflow import rules

ROOT = Path(__file__).parents[2]
LAYERS = (  # of folders and modules, from the top; what stands in one layer does not import one another
    {"settings"},  # the whole configuration
    {"structural", "released", "emergence", "layernorm", "postnorm", "retrieval", "card"},  # the wings
    {"drawing"},
    {"verdicts", "language_models", "small_networks"},
    {"rollout"},
    {"recency"},
    {"attention", "statistics"},
    {"running"},
)
DEPTH = {part: depth for depth, layer in enumerate(LAYERS) for part in layer}
EXCEPTIONS = {  # a module of a wing, and the module of another wing that it may import, with the reason
    ("layernorm/checks.py", "emergence/gaps.py"): "the claim on retrieval networks is judged by their position gaps",
    **{
        ("layernorm/figures_networks.py", f"emergence/{module}.py"): "a figure shows the gaps of networks with norms"
        for module in ("gaps", "figures")
    },
    **{
        (f"retrieval/{module}.py", "structural/checks_pretrained.py"): "its decoders are judged as those are"
        for module in ("checks", "decoders")
    },
    **{
        (f"retrieval/{module}.py", f"emergence/{other}.py"): "it asks about the networks of this task, trained alike"
        for module, others in {
            "observations": ("network", "sequences", "task"),
            "inside": ("network",),
            "profiles": ("folded", "network", "sequences", "studies", "task", "training"),
        }.items()
        for other in others
    },
}


def imported(root):
    """Every module of the library with the modules that it imports itself, without the `__init__` of folders."""
    library = root / "position_bias"

    def name(path):
        return path.relative_to(library).as_posix()

    return {
        name(source): [
            name(path)
            for path in sorted(imports._imported(source, root, "position_bias"))
            if path.name != "__init__.py"
        ]
        for source in sorted(library.rglob("*.py"))
        if source.name != "__init__.py"
    }


def part(module):
    return module.removesuffix(".py").split("/")[0]


def offences(root, exceptions=frozenset()):
    """A line for each module that stands in no layer, and for each import that does not run downward."""
    for module, below in imported(root).items():
        if part(module) not in DEPTH:
            yield f"{module} stands in no layer"
            continue
        for other in below:
            outside = part(other) != part(module) and (module, other) not in exceptions
            if outside and DEPTH.get(part(other), len(LAYERS)) <= DEPTH[part(module)]:
                yield f"{module} imports {other}"


def test_imports_run_downward_through_the_layers():
    assert list(offences(ROOT, EXCEPTIONS)) == []


def test_no_module_imports_itself_through_others():
    TopologicalSorter(imported(ROOT)).prepare()


def test_every_exception_is_needed():
    assert set(offences(ROOT)) == {f"{module} imports {other}" for module, other in EXCEPTIONS}


def test_an_init_file_holds_a_docstring_alone():
    """The layers leave these files out."""
    for path in (ROOT / "position_bias").rglob("__init__.py"):
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), path
        if path.parent.name == "card":  # a door for other programs, which finds `measure` when it is asked for
            assert [node.name for node in tree.body[1:]] == ["__getattr__"]
        else:
            assert len(tree.body) == 1, path


def test_what_travels_together_cannot_be_changed_on_its_way():
    """Every dataclass is frozen, but for what is known of a block while a layout is found."""
    changeable = []
    for path in (ROOT / "position_bias").rglob("*.py"):
        for found in ast.walk(ast.parse(path.read_text())):
            for decorator in getattr(found, "decorator_list", ()) if isinstance(found, ast.ClassDef) else ():
                if ast.unparse(decorator).startswith("dataclass") and "frozen=True" not in ast.unparse(decorator):
                    changeable.append(found.name)
    assert changeable == ["_Block"]


def test_settings_and_runs_are_free_of_torch_for_every_call_of_the_workflow_and_of_pydantic_for_jobs():
    paths = [path for name in ("runs", "settings") for path in sorted(ROOT.glob(f"position_bias/*/{name}.py"))]
    assert len(paths) >= 8
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    program = f"import sys, {', '.join(modules)}; print(*{{'torch', 'pydantic'}} & sys.modules.keys())"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""


MODELS = {"language_models/measure.py", "language_models/families.py", "rollout/last_row.py"}
MODELS |= {f"small_networks/{name}.py" for name in ("ensemble", "decoder")}
MODELS |= {f"emergence/{name}.py" for name in ("network", "folded", "training")}
MODELS |= {f"layernorm/{name}.py" for name in ("simulation", "training")}
TYPES = {"rollout/__init__.py", "rollout/measurement.py", "rollout/recall.py"}  # of measurements


def test_what_a_job_depends_on_says_which_edits_run_it_again():
    """No figure depends on models, no training on the bounds of the configuration, no measurement on rollouts."""
    jobs = {name: rule for name, rule in rules().items() if rule.script}
    reached = {
        name: {
            path.relative_to(ROOT / "position_bias").as_posix()
            for path in (*imports.closure(ROOT / rule.script, ROOT), *made.library(rule.functions, ROOT))
        }
        for name, rule in jobs.items()
    }
    assert set().union(*reached.values()) >= MODELS
    drawing = {name for name, rule in jobs.items() if rule.script == "scripts/draw.py"}
    training = {name for name, rule in jobs.items() if "resumable.job(" in (ROOT / rule.script).read_text()}
    assert len(drawing) > 50
    assert len(training) > 10
    for name in drawing | {"layernorm_checks", "retrieval_checks"}:
        assert not reached[name] & MODELS, name
    for name in training:
        assert "settings.py" not in reached[name], name
    for name in ("measure", "card_measure"):
        assert {other for other in reached[name] if part(other) in ("rollout", "drawing", "statistics")} <= TYPES, name


@pytest.mark.parametrize(
    ("module", "statement", "offence"),
    [
        ("emergence/figures.py", "from position_bias.layernorm import theory", "layernorm/theory.py"),  # another wing
        ("layernorm/theory.py", "import position_bias.emergence.gaps", "emergence/gaps.py"),  # not the declared module
        ("rollout/last_row.py", "from position_bias.verdicts.verdict import table", "verdicts/verdict.py"),
        ("drawing/style.py", "from position_bias.emergence import figures", "emergence/figures.py"),
        ("verdicts/verdict.py", "def f():\n    from position_bias.drawing import style", "drawing/style.py"),
        ("running/runtime.py", "from position_bias import attention", "attention.py"),
        ("attention.py", "from position_bias.recency import recency", "recency.py"),
    ],
)
def test_a_module_in_no_layer_and_an_import_that_does_not_run_downward_are_found(tmp_path, module, statement, offence):
    def library(modules):
        """Write a library of these modules, each with its text; returns its root."""
        for name, text in {"__init__.py": "", **modules}.items():
            path = tmp_path / "position_bias" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    names = ("emergence/figures", "emergence/gaps", "layernorm/theory", "layernorm/checks", "rollout/last_row")
    names += ("verdicts/verdict", "drawing/style", "running/runtime", "attention", "recency")
    allowed = {f"{name}.py": "" for name in names} | {
        "layernorm/checks.py": "from position_bias.emergence import gaps",
        "emergence/gaps.py": "from position_bias.drawing import style\nfrom position_bias.running import runtime",
    }
    assert list(offences(library(allowed), EXCEPTIONS)) == []
    imports._imported.cache_clear()  # the file changes under its name
    assert list(offences(library({module: statement}), EXCEPTIONS)) == [f"{module} imports {offence}"]
    library({module: "", "plots/style.py": ""})
    imports._imported.cache_clear()
    assert list(offences(tmp_path, EXCEPTIONS)) == ["plots/style.py stands in no layer"]
