"""What the pages point to is there, and what is there is pointed to."""

import re
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "results/README.md", "figures/README.md", "published/README.md", "evidence/README.md")
PAGES = [*(ROOT / name for name in READMES), *sorted((ROOT / "docs").glob("*.md"))]
RULES = "\n".join(path.read_text() for path in sorted((ROOT / "rules").glob("*.smk")))
NAMES = set(re.findall(r"^(?:rule (\w+)|use rule \w+ as (\w+))", RULES, re.MULTILINE))
NAMES = {name for pair in NAMES for name in pair if name}
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def rows(page, header):
    """Cells of the tables under this header row, a list a row."""
    tables = (ROOT / page).read_text().split(f"\n{header}\n")[1:]
    found = [row for table in tables for row in re.match(r"(?:\|.*\n)*", table)[0].splitlines()[1:]]
    assert found, f"{page} has no table under {header}"
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def expanded(path):
    """What a shell makes of braces: a/{b,c}.md is a/b.md and a/c.md."""
    parts = [part.split(",") for part in re.split(r"[{}]", path)]
    return ["".join(choice) for choice in product(*parts)]


def links(page):
    return [target for _, target in LINK.findall(page.read_text()) if not re.match(r"\w+:", target)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_points_to_a_file(page):
    files = [target.partition("#")[0] for target in links(page)]
    assert [file for file in files if file and not (page.parent / file).is_file()] == []


MAP = rows("docs/map.md", "| paper item | target | rule | code |")


@pytest.mark.parametrize("row", MAP, ids=lambda row: row[0])
def test_every_rule_of_the_map_is_in_the_file_that_it_names(row):
    ((name, file),) = LINK.findall(row[2])
    assert f"../{name}" == file
    assert quoted(row[2])
    assert set(quoted(row[2])) <= NAMES
    text = (ROOT / name).read_text()
    assert [rule for rule in quoted(row[2]) if not re.search(rf"^(use )?rule .*\b{rule}\b", text, re.MULTILINE)] == []


PATTERNS = {path for path in re.findall(r'"((?:figures|results)/[^"]+)"', RULES) if "{" in path}


def is_output(target):
    """Whether a rule says that it makes `target`, itself or with wildcards for names that the rules list."""
    if f'"{target.rstrip("/")}' in RULES or target in RULES:
        return True
    for path in PATTERNS:
        found = re.fullmatch(re.sub(r"\\\{\w+\\\}", r"(\\w+)", re.escape(path)), target)
        if found and all(f'"{name}"' in RULES for name in found.groups()):
            return True
    return False


@pytest.mark.parametrize("row", MAP, ids=lambda row: row[0])
def test_every_target_of_the_map_is_an_output_of_a_rule(row):
    targets = [target for text in quoted(row[1]) for target in expanded(text)]
    assert targets
    assert [target for target in targets if not is_output(target)] == []


@pytest.mark.parametrize("row", MAP, ids=lambda row: row[0])
def test_every_module_of_the_map_is_there_under_the_name_it_is_given(row):
    code = LINK.findall(row[3])
    assert code
    for name, file in code:
        assert (ROOT / "docs" / file).is_file()
        assert f"/{name.rstrip('/')}" in f"/{file}"


def test_every_figure_and_table_is_in_the_map():
    written = set(re.findall(r'"((?:figures|results/tables)/[\w/]+)\.(?:pdf|md)"', RULES))
    written |= {f"figures/emergence/{name}" for name in re.findall(r'"(fig\w+)": \(', RULES)}
    mapped = {target for row in MAP for text in quoted(row[1]) for target in expanded(text)}
    assert written - {target.rpartition(".")[0] for target in mapped} == set()


def test_every_script_belongs_to_a_rule_and_every_rule_finds_its_script():
    assert set(re.findall(r'"\.\./(scripts/\w+\.py)"', RULES)) == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "scripts").glob("*.py")
    }


def test_every_caption_is_used_and_every_caption_used_is_there():
    used = set(re.findall(r'caption="\.\./report/([^"]+)"', RULES))
    assert used == {path.name for path in (ROOT / "report").glob("*.rst")}


def modules_of_a_row(cell):
    """Names of the modules in a row of the layers: `folder/` is all of a folder, `folder/`: a list of its own."""
    names, folder = [], ""
    for name, colon in re.findall(r"`([^`]+)`(:?)", cell):
        if colon:
            folder = name
        elif name.endswith("/"):
            within = sorted((ROOT / "position_bias" / name).glob("*.py"))
            assert within, f"position_bias/{name} is no folder of modules"
            names += [f"{name}{path.name}" for path in within if path.name != "__init__.py"]
        else:
            names.append(folder + name)
    return names


def test_the_layers_name_every_module_of_the_library_once():
    named = [name for row in rows("docs/architecture.md", "| layer | modules |") for name in modules_of_a_row(row[1])]
    package = ROOT / "position_bias"
    there = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if path.name != "__init__.py"}
    assert {"named, not there": set(named) - there, "there, not named": there - set(named)} == {
        "named, not there": set(),
        "there, not named": set(),
    }
    assert len(named) == len(set(named))
