"""This module finds which of the project's own files a script runs: the import closure, read from the syntax tree.

Snakemake reruns a rule when its script changes, but does not see the library behind it. Listing these files as
inputs of the rule makes an edit of a module rebuild just what was computed with it.
"""

import ast
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "position_bias"


def closure(sources: Iterable[Path], root: Path) -> set[Path]:
    """The library files below `root` that these files import, directly or through others."""
    found: set[Path] = set()
    waiting = [*sources]
    while waiting:
        new = imported(waiting.pop(), root) - found
        found |= new
        waiting.extend(new)
    return found


def from_here(root: Path) -> None:
    """Have processes that this one starts import the library in `root`, and not one that is installed."""
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root), *([others] if others else [])])


@cache
def imported(source: Path, root: Path) -> frozenset[Path]:
    """Files of the library that one source file imports, the `__init__` of every package on the way included."""
    files: set[Path] = set()
    for statement in _statements(ast.parse(source.read_text(encoding="utf-8"))):
        for name in _module_names(statement):
            if name.split(".")[0] == PACKAGE:
                files |= _files_of(name, root)
    return frozenset(files)


def _statements(parent: ast.AST) -> Iterator[ast.stmt]:
    """Every statement below a node, within functions and branches too. Expressions, most nodes, import nothing."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _statements(node)


def _module_names(node: ast.stmt) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module, *(f"{module}.{alias.name}" for alias in node.names)]  # the name may itself be a module
        case ast.ImportFrom(level=level) if level > 0:
            raise ValueError(f"relative import in line {node.lineno}: write the whole module name")
        case _:
            return []


def _files_of(name: str, root: Path) -> set[Path]:
    parts = name.split(".")
    packages = [root.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1)]
    return {path for path in (*packages, root.joinpath(*parts).with_suffix(".py")) if path.is_file()}
