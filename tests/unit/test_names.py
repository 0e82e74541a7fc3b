"""Names in both packages: one class for each name, modules under their own names, and functions that say of what."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from position_bias.workflow.definitions import PACKAGES

ROOT = Path(__file__).parents[2]
LIBRARY = {path: ast.parse(path.read_text()) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}
OTHERS = [path for folder in ("scripts", "tools", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
LINES = [
    (path.relative_to(ROOT).as_posix(), line.strip())
    for path in [*LIBRARY, *OTHERS, *(ROOT / "rules").glob("*.smk")]
    for line in path.read_text().splitlines()
    if path != Path(__file__)
]
OURS = re.compile(rf"from (?P<package>({'|'.join(PACKAGES)}|tests)[\w.]*) import (?P<module>\w+) as (?P<alias>\w+)")


def test_no_two_classes_of_the_library_share_a_name():
    names = Counter(node.name for tree in LIBRARY.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert len(names) > 100
    assert [name for name, count in names.items() if count > 1] == []


def test_a_module_has_another_name_only_where_two_of_its_name_meet():
    """Then the name of its folder stands before its own, as in emergence_settings."""
    aliases = [(path, match) for path, line in LINES if (match := OURS.match(line))]
    modules = [
        (path, match)
        for path, match in aliases
        if (ROOT / match["package"].replace(".", "/") / f"{match['module']}.py").exists()
    ]
    assert len(modules) > 10
    folders = {match[0]: match["package"].split(".")[-1] for _, match in modules}
    assert [
        (path, match[0]) for path, match in modules if match["alias"] != f"{folders[match[0]]}_{match['module']}"
    ] == []


def test_no_function_is_called_of_something():
    assert [where for where in LINES if re.match(r"(async )?def of_|.* import .* as (of_)", where[1])] == []


@pytest.mark.parametrize("name", ["checks", "statistics", "statements", "tables"])
def test_functions_of_the_papers_say_of_what(name):
    assert [
        path.relative_to(ROOT).as_posix()
        for path, tree in LIBRARY.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ] == []
