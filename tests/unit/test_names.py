"""Names in both packages: one class for each name, modules under their own names, and functions that say of what."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
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
ROOMS = ("verdicts", "structural", "released", "emergence", "layernorm", "postnorm")
ROOMS += ("small_networks", "language_models", "workflow")
# Columns of tables, keys of the configuration, inputs of rules, and what automata are said to do.
OF_FILES = {
    "verdicts/judge.py": {"known", "measured", "other"},
    "verdicts/pages.py": {"trained"},
    "verdicts/planning.py": {"most"},
    "verdicts/registry.py": {"NOTHING", "OURS", "WHOSE", "other", "seen", "shown", "whose"},
    "released/figures.py": {"drawn"},
    "released/settings.py": {"Released"},
    "released/shapes.py": {"drawn"},
    "released/variants.py": {"printed"},
    "structural/checks.py": {"predicted", "printed", "released"},
    "structural/checks_theory.py": {"predicted"},
    "structural/content.py": {"measured"},
    "structural/evidence.py": {"measured", "predicted"},
    "structural/figures.py": {"measured"},
    "structural/figures_decisive.py": {"other"},
    "structural/pretrained.py": {"measured", "replaced"},
    "structural/printed_tables.py": {"drawn", "kept", "measured"},
    "structural/settings.py": {"replaced"},
    "emergence/checks.py": {"predicted", "seen"},
    "emergence/checks_theory.py": {"predicted"},
    "emergence/figures.py": {"printed", "released"},
    "emergence/settings.py": {"every", "settled"},
    "emergence/theory.py": {"most"},
    "layernorm/checks.py": {"other", "predicted", "trained"},
    "layernorm/settings.py": {"trained"},
    "postnorm/checks.py": {"predicted"},
    "postnorm/languages.py": {"accepting"},
    "postnorm/settings.py": {"trained"},
    "workflow/section.py": {"most"},
}
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


def bindings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def test_names_say_what_is_held_and_not_what_was_done():
    """Nouns for things and verbs for actions, but in names that stand in files."""
    words = {*PARTICIPLES.split(), *PRONOUNS.split()}
    found = {}
    for path, tree in LIBRARY.items():
        package, room, *_ = path.relative_to(ROOT).parts
        if (package, room in ROOMS) == ("position_bias", True):
            file = path.relative_to(ROOT / package).as_posix()
            found[file] = {name for name in bindings(tree) if name.lower().strip("_") in words}
    assert len(found) > 40
    assert {file: names for file, names in found.items() if names} == OF_FILES
