"""Write docs/map.md from the workflow: which figure and table is where, made by which rule and code, with what verdict.

    PYTHONPATH=. python tools/map.py > docs/map.md        (make docs)

Items are the docstrings of the rules, targets and inputs those of the planned jobs, code what the scripts import, and
verdicts those of docs/scorecard.csv, the scorecard of the last default run that was kept.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from position_bias.verdicts.registry import shows
from position_bias.workflow.definitions import Library
from position_bias.workflow.rows import module_name
from tools import workflow
from tools.workflow import Rule

ROOT = Path(__file__).parents[1]
LIBRARY = Library(ROOT)
SECTIONS = {  # title -> pattern of the files below figures/ and results/tables/
    "All papers": r"\w+\.\w+",
    "`structural`: Herasimchyk et al. 2026": "structural/.*",
    "`emergence`: Wu et al. 2025": "emergence/.*",
    "`layernorm`: Kim et al. 2026": "layernorm/.*",
    "`postnorm`: Zsamboki et al. 2025": "postnorm/.*",
}
OUTPUT = re.compile(r"(figures/.*)\.pdf|(results/tables/.*)\.md")
DATA = ("results/", "evidence/", "published/")
SURROUNDINGS = {  # of every script
    *(ROOT / f"position_card/core/{name}.py" for name in ("artifacts", "provenance", "runtime")),
    *ROOT.glob("position_*/**/__init__.py"),
}
Files = defaultdict[str, list[str]]  # by rule, over all its jobs
INTRODUCTION = """# Map

For each item of a paper, this page lists the target to build, the rule that makes it, the code, the data
([what these files hold](../results/README.md)), and the verdicts on the claims that it shows. Build a target with
`snakemake TARGET`; the name of a paper builds all of it. Targets with `published` in their name need numbers that are
not part of this project; only `all_published` builds them ([running](running.md)). Verdicts are those of
[one default run](papers/README.md). `make docs` writes this page from the workflow."""


def planned_files() -> tuple[Files, Files]:
    """What the rules of the default run and of the released numbers make, and what they read."""
    outputs: Files = defaultdict(list)
    inputs: Files = defaultdict(list)
    source = {"source": "https://nowhere.invalid/archive.tar.gz"}
    for job in workflow.jobs("all", "all_published", released=source):
        outputs[job.rule] += job.output
        inputs[job.rule] += job.input
    return outputs, inputs


def workflow_rules() -> dict[str, Rule]:
    """The rules of the files in rules/, file by file."""
    rules = sorted(workflow.rules().values(), key=lambda rule: rule.file)
    return {rule.name: rule for rule in rules if rule.file.startswith("rules/")}


def modules(rule: Rule) -> list[str]:
    """Library modules that a rule's row names, or that its script imports, but those that every script does."""
    paths = [LIBRARY.file(module_name(function)) for function in rule.functions]
    if rule.script and not paths:
        of_script = sorted(map(LIBRARY.file, LIBRARY.imports(rule.script)))
        name = Path(rule.script).name
        paths = [path for path in of_script if path.name == name or path not in SURROUNDINGS]
    return list(dict.fromkeys(path.relative_to(ROOT).as_posix() for path in paths))


def page() -> str:
    """The whole page, in Markdown."""
    rules, (outputs, inputs) = workflow_rules(), planned_files()
    maker = {path: name for name, paths in outputs.items() for path in paths}
    scores = pd.read_csv(ROOT / "docs/scorecard.csv")
    lines = [INTRODUCTION, "", "## How files flow", "", *_flow(rules, inputs, maker)]
    for title, names_of_files in SECTIONS.items():
        section = re.compile(f"(figures|results/tables)/{names_of_files}")
        lines += ["", f"## {title}", "", "| item | target | rule | code | data | verdicts |", f"|{'---|' * 6}"]
        for item, names in _by_item(rules).items():
            made_files = [path for name in names for path in outputs[name]]
            fitting = {path for path in made_files if OUTPUT.fullmatch(path) and section.fullmatch(path)}
            targets = sorted(fitting, key=workflow.natural)
            if targets:
                read_files = [path for name in names for path in inputs[name]]
                upstream = dict.fromkeys(maker[path] for path in read_files if path in maker)
                code = _code(rules[name] for name in (*names, *upstream))
                data = _code_list(_data(read_files))
                is_shown = [any(shows(cell, path) for path in targets) for cell in scores["shown"]]
                verdicts = _verdicts(scores[is_shown])
                lines.append(
                    f"| {item} | {_code_list(targets)} | {_rules(names, rules)} | {code} | {data} | {verdicts} |"
                )
    lines += ["", "## What they are made from", "", "| what | results | rule | code |", f"|{'---|' * 4}"]
    for item, names in _by_item(rules).items():
        made_files = [path for name in names for path in outputs[name]]
        if made_files and not any(OUTPUT.fullmatch(path) for path in made_files):
            folders = dict.fromkeys(Path(*Path(path).parts[:2]).as_posix() + "/" for path in made_files)
            code = _code(rules[name] for name in names)
            lines.append(f"| {item} | {_code_list(folders)} | {_rules(names, rules)} | {code} |")
    return "\n".join(lines) + "\n"


def _flow(rules: dict[str, Rule], inputs: Files, maker: dict[str, str]) -> list[str]:
    """A drawing of which files of rules make what others read."""
    stage = {name: Path(rule.file).stem for name, rule in rules.items()}
    arrows = {
        (stage[maker[path]], stage[name])
        for name, paths in inputs.items()
        for path in paths
        if name in stage and path in maker and stage[maker[path]] != stage[name]
    }
    return ["```mermaid", "graph LR", *(f"    {start} --> {end}" for start, end in sorted(arrows)), "```"]


def _by_item(rules: dict[str, Rule]) -> dict[str, list[str]]:
    """What is made -> the rules that make it: those that use one another say the same. Targets make nothing."""
    items: defaultdict[str, list[str]] = defaultdict(list)
    for name, rule in rules.items():
        if rule.script:
            items[" ".join(rule.docstring.split()).rstrip(".")].append(name)
    return dict(items)


def _code_list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _rules(names: list[str], rules: dict[str, Rule]) -> str:
    file = rules[names[0]].file
    return f"{_code_list(names)} in [{file}](../{file})"


def _code(rules: Iterable[Rule]) -> str:
    links = dict.fromkeys(module for rule in rules for module in modules(rule))
    return ", ".join(f"[{module.removeprefix('position_bias/')}](../{module})" for module in links)


def _data(inputs: Iterable[str]) -> list[str]:
    """What a figure or table is made from, of files of one name in several folders the name alone."""
    paths = [Path(path) for path in inputs if path.startswith(DATA)]
    names = [f"{Path(*path.parts[:2])}/**/{path.name}" if len(path.parts) > 3 else path.as_posix() for path in paths]
    return list(dict.fromkeys(names))


def _verdicts(claims: pd.DataFrame) -> str:
    counts = Counter(claims["verdict"])
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in sorted(counts, key=str))


if __name__ == "__main__":
    print(page(), end="")
