from pathlib import Path

import pytest

from position_bias.running import imports

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path):
    for name, text in {
        "position_bias/__init__.py": "",
        "position_bias/a.py": "import position_bias.sub.b\nimport numpy",
        "position_bias/sub/__init__.py": "",
        "position_bias/sub/b.py": "def f():\n    from position_bias import c\n",
        "position_bias/c.py": "from position_bias import a",
        "position_bias/unused.py": "import position_bias.a",
        "scripts/run.py": "from position_bias.a import something",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def names(files, root):
    return [path.relative_to(root / "position_bias").as_posix() for path in files]


def test_the_closure_holds_what_is_imported_directly_within_functions_and_in_circles(project):
    files = imports.closure(project / "scripts/run.py", project)
    assert names(files, project) == ["__init__.py", "a.py", "c.py", "sub/__init__.py", "sub/b.py"]


def test_a_relative_import_is_refused_because_it_would_be_missed(project):
    (project / "scripts/relative.py").write_text("from . import a")
    with pytest.raises(ValueError, match="line 1: write the whole module name"):
        imports.closure(project / "scripts/relative.py", project)


def modules(script):
    return set(names(imports.closure(ROOT / "scripts" / script, ROOT), ROOT))


def test_measurements_do_not_depend_on_rollouts_nor_on_plots():
    assert "measure.py" in modules("language_models/measure.py")
    assert not modules("language_models/measure.py") & {
        "rollout.py",
        "comparison.py",
        "drawing/style.py",
        "statistics.py",
    }


def test_figures_do_not_depend_on_models():
    models = {
        "measure.py",
        "language_models/families.py",
        "rollout.py",
        "ensemble.py",
        "decoder.py",
        "emergence/network.py",
    }
    drawing = [path for path in (ROOT / "scripts").glob("*/*.py") if "drawing/style.py" in modules(path)]
    assert len(drawing) > 15
    for script in drawing:
        assert not modules(script) & models


def test_imports_run_downward():
    """The layers of docs/architecture: no module imports one that stands above it."""
    layers = [
        {"runtime.py", "imports.py", "__init__.py"},
        {
            "artifacts.py",
            "configuration.py",
            "devices.py",
            "products.py",
            "provenance.py",
            "manifest.py",
            "reference.py",
            "attention.py",
            "statistics.py",
            "checkpoint.py",
            "averaging.py",
            "norms.py",
        },
        {"ensemble.py"},
        {"decoder.py"},
        {
            f"language_models/{name}.py"
            for name in ("__init__", "studies", "corpus", "hub", "tokens", "families", "train")
        },
        {
            "mixing.py",
            "content.py",
            "influence.py",
            "rollout.py",
            "propositions.py",
            "similarity.py",
            "monotonicity.py",
            "recency.py",
            "gram.py",
        },
        {
            f"emergence/{name}.py"
            for name in (
                "__init__",
                "task",
                "studies",
                "sequences",
                "network",
                "training",
                "gaps",
                "sinks",
                "theory",
            )
        },
        {
            f"layernorm/{name}.py"
            for name in ("__init__", "studies", "theory", "simulation", "tables", "training", "pretrained")
        },
        {
            f"postnorm/{name}.py"
            for name in (
                "__init__",
                "lengths",
                "languages",
                "studies",
                "theory",
                "tasks",
                "training",
                "experiments",
                "construction",
            )
        },
        {"measure.py", "comparison.py"},
        {
            f"released/{name}.py"
            for name in ("__init__", "models", "source", "schedules", "slopes", "profiles", "written", "variants")
        },
        {
            "tables.py",
            "structure.py",
            "claims/structure.py",
            "claims/__init__.py",
            "claims/verdict.py",
            "claims/structural.py",
            "claims/propositions.py",
            "claims/emergence.py",
            "claims/theorems.py",
            "claims/layernorm_theory.py",
            "claims/layernorm.py",
            "claims/postnorm.py",
            "claims/claim.py",
            "claims/scorecard.py",
        },
        {
            "plots/__init__.py",
            "drawing/style.py",
            "plots/structural.py",
            "plots/structural_theory.py",
            "plots/structural_released.py",
            "plots/structural_content.py",
            "plots/emergence.py",
            "plots/emergence_sinks.py",
            "plots/emergence_theory.py",
            "plots/intervals.py",
            "plots/looks.py",
            "plots/layernorm.py",
            "plots/layernorm_networks.py",
            "plots/postnorm.py",
            "plots/postnorm_training.py",
            "plots/scorecard.py",
        },
    ]
    height = {name: level for level, layer in enumerate(layers) for name in layer}
    package = ROOT / "position_bias"
    sources = sorted(package.rglob("*.py"))
    assert {path.relative_to(package).as_posix() for path in sources} == set(height)
    for source in sources:
        own = height[source.relative_to(package).as_posix()]
        for name in names(imports._imported(source, ROOT, "position_bias"), ROOT):
            assert height[name] <= own or name.endswith("__init__.py"), f"{source} imports {name}"
