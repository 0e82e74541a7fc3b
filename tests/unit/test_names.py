"""Names in both packages: one class for each name, modules under their own names, and functions that say of what."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from position_bias.workflow.definitions import PACKAGES

ROOT = Path(__file__).parents[2]
# The words that names were most often, where a noun says what is held.
PARTICIPLES = """
    accepting added admitted asked averaged begun binned broken built called chosen classified compared
    configured copied corrected counted decided defined described diverged done dotted drawn embedded encoded
    escaped expected fallen fetched fitted formed found given imported judged kept known labelled lasting left
    linked listed loaded lost made marked measured met named needed numbered observed opened ordered padded
    pinned planned predicted printed reached recorded registered released replaced represented requested rising
    rounded said sampled saved scaled seen settled shaded shared shown signed simulated skipped spanned speaking
    started stored supported swept taken tested told trained turned unmade unpacked unread unseen untested
    untrained used valued varied waiting wanted watched weighted wired written
"""
PRONOUNS = """
    all another any anything both each either every everything few here how itself most none nothing one ones
    other others ours own same several some such that theirs there these this those what where which who whose
    why
"""
# Columns of tables, keys of the configuration, inputs of rules, what automata are said to do, and sides.
OF_FILES = {
    "position_bias/verdicts/judge.py": {"known", "measured", "other"},
    "position_bias/verdicts/pages.py": {"trained"},
    "position_bias/verdicts/planning.py": {"most"},
    "position_bias/verdicts/registry.py": {"NOTHING", "OURS", "WHOSE", "other", "seen", "shown", "whose"},
    "position_bias/released/figures.py": {"drawn"},
    "position_bias/released/settings.py": {"Released"},
    "position_bias/released/shapes.py": {"drawn"},
    "position_bias/released/variants.py": {"printed"},
    "position_bias/structural/checks.py": {"predicted", "printed", "released"},
    "position_bias/structural/checks_theory.py": {"predicted"},
    "position_bias/structural/content.py": {"measured"},
    "position_bias/structural/evidence.py": {"measured", "predicted"},
    "position_bias/structural/figures.py": {"measured"},
    "position_bias/structural/pretrained.py": {"measured", "replaced"},
    "position_bias/structural/printed_tables.py": {"drawn", "kept", "measured"},
    "position_bias/structural/settings.py": {"replaced"},
    "position_bias/emergence/checks.py": {"predicted", "seen"},
    "position_bias/emergence/checks_theory.py": {"predicted"},
    "position_bias/emergence/figures.py": {"printed", "released"},
    "position_bias/emergence/settings.py": {"every", "settled"},
    "position_bias/emergence/theory.py": {"most"},
    "position_bias/layernorm/checks.py": {"other", "predicted", "trained"},
    "position_bias/layernorm/settings.py": {"trained"},
    "position_bias/postnorm/checks.py": {"predicted"},
    "position_bias/postnorm/languages.py": {"accepting"},
    "position_bias/postnorm/settings.py": {"trained"},
    "position_bias/workflow/section.py": {"most"},
    "position_bias/settings.py": {"released"},
    "position_card/__init__.py": {"__all__"},
    "position_card/drawing/style.py": {"left"},
    "position_card/card/decision.py": {"same"},
    "position_card/card/record_statistics.py": {"same"},
    "position_card/card/sources.py": {"untrained"},
    "position_card/card/subject.py": {"untrained"},
}
OURS = re.compile(rf"from (?P<package>({'|'.join(PACKAGES)}|tests)[\w.]*) import (?P<module>\w+) as (?P<alias>\w+)")


@pytest.fixture(scope="module")
def library():
    """The syntax of every module of both packages, by its path."""
    return {
        path: ast.parse(path.read_text()) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
    }


@pytest.fixture(scope="module")
def lines(library):
    """Every line of the project's code but this file's: (path, line)."""
    others = [path for folder in ("scripts", "tools", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
    return [
        (path.relative_to(ROOT).as_posix(), line.strip())
        for path in [*library, *others, *(ROOT / "rules").glob("*.smk")]
        for line in path.read_text().splitlines()
        if path != Path(__file__)
    ]


def test_no_two_classes_of_the_library_share_a_name(library):
    names = Counter(node.name for tree in library.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert len(names) > 100
    assert [name for name, count in names.items() if count > 1] == []


def test_a_module_has_another_name_only_where_two_of_its_name_meet(lines):
    """Then the name of its folder stands before its own, as in emergence_settings."""
    aliases = [(path, match) for path, line in lines if (match := OURS.match(line))]
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


def test_no_function_is_called_of_something(lines):
    assert [where for where in lines if re.match(r"(async )?def of_|.* import .* as (of_)", where[1])] == []


@pytest.mark.parametrize("name", ["checks", "statistics", "statements", "tables"])
def test_functions_of_the_papers_say_of_what(library, name):
    assert [
        path.relative_to(ROOT).as_posix()
        for path, tree in library.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ] == []


def test_only_the_call_that_measures_a_model_is_called_measure(library):
    assert [
        path.relative_to(ROOT).as_posix()
        for path, tree in library.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "measure"
    ] == ["position_card/card/call.py"]


def bindings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def test_names_say_what_is_held_and_not_what_was_done(library):
    """Nouns for things and verbs for actions, but in names that stand in files."""
    words = {*PARTICIPLES.split(), *PRONOUNS.split()}
    found = {}
    for path, tree in library.items():
        file = path.relative_to(ROOT).as_posix()
        found[file] = {name for name in bindings(tree) if name.lower().strip("_") in words}
    assert len(found) > 120
    assert {file: names for file, names in found.items() if names} == OF_FILES
