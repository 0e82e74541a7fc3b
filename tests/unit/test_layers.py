"""The layers of docs/architecture.md: every part of the library imports only what stands below it."""

from graphlib import TopologicalSorter
from pathlib import Path

from position_bias.running.definitions import PACKAGE, Library
from tools.workflow import rules

ROOT = Path(__file__).parents[2]
LAYERS = (  # of folders and modules, from the top; what stands in one layer does not import one another
    {"settings"},  # the whole configuration
    {"structural", "released", "emergence", "layernorm", "postnorm", "card"},  # the wings
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
        ("layernorm/figures.py", f"emergence/{module}.py"): "a figure shows the gaps of networks with norms"
        for module in ("gaps", "figures")
    },
}


def imported(root):
    """Every module of the library with the modules that it imports itself, without the `__init__` of folders."""
    modules = Library(root)

    def name(path):
        return path.relative_to(root / PACKAGE).as_posix()

    return {
        name(source): sorted(
            name(path)
            for path in map(modules.file, modules.imports(module_of(source, root)))
            if path.name != "__init__.py"
        )
        for source in sorted((root / PACKAGE).rglob("*.py"))
        if source.name != "__init__.py"
    }


def module_of(path, root):
    return ".".join(path.relative_to(root).with_suffix("").parts)


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


MODELS = {"language_models/measure.py", "language_models/families.py", "rollout/last_row.py"}
MODELS |= {f"small_networks/{name}.py" for name in ("ensemble", "decoder")}
MODELS |= {f"emergence/{name}.py" for name in ("network", "training")}
MODELS |= {f"layernorm/{name}.py" for name in ("simulation", "training")}
TYPES = {"rollout/__init__.py", "rollout/measurement.py", "rollout/parts.py"}  # of measurements


def test_what_a_job_depends_on_says_which_edits_run_it_again():
    """No figure runs models, no training the bounds of the configuration, no measurement rollouts."""
    library, jobs = Library(ROOT), {name: rule for name, rule in rules().items() if rule.script}
    reached = {
        job: {
            library.file(module).relative_to(ROOT / PACKAGE).as_posix()
            for module, name in library.reached(rule.script, rule.functions)
            if module != rule.script and library.module(module).text(name)
        }
        for job, rule in jobs.items()
    }
    assert set().union(*reached.values()) >= MODELS
    drawing = {name for name, rule in jobs.items() if rule.script == "scripts/draw.py"}
    training = {name for name, rule in jobs.items() if "resumable.job(" in (ROOT / rule.script).read_text()}
    assert len(drawing) > 50
    assert len(training) > 10
    for name in drawing | {"layernorm_checks"}:
        assert not reached[name] & MODELS, name
    for name in training:
        assert "settings.py" not in reached[name], name
    assert {other for other in reached["measure"] if part(other) in ("rollout", "drawing", "statistics")} <= TYPES
