"""What the package promises whoever imports it: few names, each documented, and nothing that it does not need."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import position_card

ROOT = Path(__file__).parents[2]
PACKAGE = Path(position_card.__file__).parent
OTHERS = {"position_bias", "snakemake", "seaborn", "pydantic", "yaml", "tabulate", "tests", "tools"}
HEAVY = {"torch", "transformers", "numpy", "pandas", "matplotlib", "numba", "scipy"}


def imported(source):
    """The top-level modules that a file names in any of its imports."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def test_no_module_imports_the_papers_or_the_workflow():
    sources = [*PACKAGE.rglob("*.py")]
    assert len(sources) > 50
    assert {source.name: set(imported(source)) & OTHERS for source in sources if set(imported(source)) & OTHERS} == {}


def test_the_package_alone_imports_nothing_heavy():
    program = f"import sys, position_card; print(*{HEAVY} & set(sys.modules), len(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(ended.stdout) < 150  # those of Python itself


@pytest.mark.parametrize("name", position_card.__all__)
def test_a_public_name_is_documented_typed_and_on_the_page(name):
    given = getattr(position_card, name)
    said = inspect.getdoc(given)
    assert said
    if not inspect.isclass(given):
        (named,) = re.findall(r"Args:\n((?: {4}.*\n|\n)+)", said)
        assert re.findall(r"^    (\w+):", named, re.MULTILINE) == [*inspect.signature(given).parameters]
        assert "Returns:\n" in said
        assert "Raises:\n    InputError: " in said
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    names = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert name in names == set(position_card.__all__)
    assert f"::: position_card.{name}\n" in (ROOT / "docs/api.md").read_text()
    members = vars(given) if inspect.isclass(given) else {}
    assert [member for member in members if not member.startswith("_") and not inspect.getdoc(members[member])] == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'measured'"):
        _ = position_card.measured
