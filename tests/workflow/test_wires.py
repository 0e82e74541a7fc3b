"""Every target is made from the files and numbers that the papers and the pages ask for: tests/workflow/wires.yaml.

The table is compared with plans of two configurations: the default one, with other numbers where two of its settings
are equal, and the paper's. A plan says which files a job reads under which name, and its params.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.utils import update_config

from position_bias.workflow.rows import RULE_PARAMS
from tools import workflow

ROOT = Path(__file__).parents[2]
TABLE = yaml.safe_load((ROOT / "tests/workflow/wires.yaml").read_text())
TARGETS = {"default": ("all", "sweeps", "evidence", "all_published"), "paper": ("all",)}
COLLECTING = {"all", "sweeps", "evidence", "all_published", "provenance"}  # they ask for what others make


@dataclass(frozen=True)
class Plan:
    """A configuration, what the table says of it, and its jobs, each with the lines that are about it."""

    config: dict[str, Any]
    lines: dict[str, Any]
    words: dict[str, Any]
    jobs: list[tuple[workflow.Job, list[tuple[str, dict[str, str]]]]]

    def asked(self) -> Iterator[tuple[workflow.Job, dict[str, Any], dict[str, str]]]:
        """Every job, what is asked of it, and what stands for the <name>s there."""
        return ((job, self.lines[line], named) for job, lines in self.jobs for line, named in lines)


@pytest.fixture(scope="module", params=TARGETS)
def plan(request, released_sample):
    scale = request.param
    overlay = {
        "default": TABLE["distinct"] | {"released": {"source": str(released_sample.tables)}},
        "paper": yaml.safe_load((ROOT / "config/paper.yaml").read_text()),
    }[scale]
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    update_config(config, overlay)
    lines, words = TABLE["both"] | TABLE[scale], TABLE["words"][scale]
    targets = [(line, pattern) for line in lines for pattern in patterns(line, words)]
    jobs = [
        (job, [(line, found.groupdict()) for line, target in targets if (found := target.fullmatch(job.output[0]))])
        for job in workflow.jobs(*TARGETS[scale], **overlay)
        if job.rule not in COLLECTING
    ]
    return Plan(config, lines, words, jobs)


def patterns(line: str, words: dict[str, Any]) -> Iterator[re.Pattern[str]]:
    """A target as regular expressions, with a group for each <name>."""
    for target in braces(said(line, words)):
        named = re.sub(r"<(\w+)>", r"(?P<\1>.+)", target.replace(".", r"\."))
        yield re.compile(re.sub(r"<(\w+)=(.*?)>", lambda one: f"(?P<{one[1]}>{one[2].replace(',', '|')})", named))


def said(text: str, words: dict[str, Any]) -> str:
    return re.sub(r"[A-Z][A-Z_0-9]+", lambda word: words.get(word[0], word[0]), text)


def braces(text: str) -> list[str]:
    """What a shell makes of a word with braces, each once."""
    found = re.search(r"\{([^{}]*)\}", text)
    if found is None:
        return [text]
    parts = (text[: found.start()] + part + text[found.end() :] for part in found[1].split(","))
    return list(dict.fromkeys(word for part in parts for word in braces(part)))


def filled(text: str, named: dict[str, str]) -> str:
    return re.sub(r"<(\w+)>", lambda name: named[name[1]], text)


def files(asked: Any, words: dict[str, Any], named: dict[str, str]) -> set[str]:
    """The paths that the table means."""
    if isinstance(asked, list):
        return {path for part in asked for path in files(part, words, named)}
    if isinstance(words.get(asked), list):
        return files(words[asked], words, named)
    paths = braces(filled(said(asked, words), named))
    kept = {str(file.relative_to(ROOT)) for path in paths if "*" in path for file in ROOT.glob(path)}
    return kept | {path for path in paths if "*" not in path}


def value(asked: Any, named: dict[str, str], plan: Plan) -> Any:
    """The number or text that the table means, or a group of them."""
    if isinstance(asked, dict):
        return {name: value(one, named, plan) for name, one in asked.items()}
    if isinstance(asked, list):
        return [value(one, named, plan) for one in asked]
    if not isinstance(asked, str):
        return asked
    if asked in plan.words:
        return value(plan.words[asked], named, plan)
    if asked.startswith("$"):
        return reduce(getitem, filled(asked[1:], named).split("/"), plan.config)
    return filled(asked, named)


def plain(given: Any) -> Any:
    """Params as YAML has them."""
    if isinstance(given, dict):
        return {name: plain(one) for name, one in given.items()}
    return [plain(one) for one in given] if isinstance(given, list | tuple) else given


def trial_numbers(trials: Any, numbers: Iterable[str]) -> dict[str, set[str]]:
    """Which values the trials of an experiment have of these numbers."""
    each = [trial.labels | trial.setting | trial.recipe | trial.size | trial._asdict() for trial in trials]
    return {name: {str(plain(one[name])) for one in each} for name in numbers}


def test_every_job_has_a_line_and_every_line_a_job(plan):
    found = {job.output[0]: [line for line, _ in lines] for job, lines in plan.jobs}
    assert {target: lines for target, lines in found.items() if len(lines) != 1} == {}
    assert set(plan.lines) - {line for lines in found.values() for line in lines} == set()


def test_a_target_reads_what_its_paper_asks_for(plan):
    wrong = []
    for job, asked, named in plan.asked():
        wanted = {name: files(of, plan.words, named) for name, of in asked.get("reads", {}).items()}
        for name in job.inputs_by_name.keys() | wanted.keys():
            reads, wants = set(job.inputs_by_name.get(name, ())), wanted.get(name, set())
            if reads != wants != {"ANY"}:
                of = f"{job.output[0]} ({asked['of']}), {name}"
                wrong.append(f"{of}: reads {sorted(reads - wants)}, and not {sorted(wants - reads)}")
    assert not wrong, "\n".join(wrong)


def test_a_target_takes_the_numbers_that_its_paper_asks_for(plan):
    wrong = []
    for job, asked, named in plan.asked():
        wanted = value(asked.get("takes", {}), named, plan)
        takes = {name: plain(given) for name, given in job.params.items() if name not in RULE_PARAMS}
        if "trials" in takes:
            wanted["trials"] = {name: set(map(str, values)) for name, values in wanted["trials"].items()}
            takes["trials"] = trial_numbers(job.params.trials, wanted["trials"])
        for name in takes.keys() | wanted.keys():
            found, wants = takes.get(name, "nothing"), wanted.get(name, "nothing")
            if found != wants != "ANY":
                wrong.append(f"{job.output[0]} ({asked['of']}), {name}: takes {found}, and not {wants}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("plan", ["paper"], indirect=True)
def test_the_scale_of_the_paper_has_the_numbers_that_it_prints(plan):
    found = {key: reduce(getitem, key.split("."), plan.config) for key in TABLE["printed"]}
    assert found == TABLE["printed"]
