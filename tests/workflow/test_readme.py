"""Every command of the README and of docs/running.md does what it says, where everything is built; long runs plan."""

import re
from pathlib import Path

import pytest

from tests.projects import Project

pytestmark = pytest.mark.all("every command of the README, on the whole toy graph, takes three minutes")
ROOT = Path(__file__).parents[2]


def commands(page, language="bash"):
    """The lines of the shell that a page prints."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


COMMANDS = list(dict.fromkeys(commands("README.md") + commands("docs/running.md")))
LONG_RUNS = [line for line in commands("evidence/README.md") if line.startswith("nice ")]  # others fetch files
ELSEWHERE = {  # commands that a test cannot run here, and why
    "git clone": "needs the address that the reader has",
    "cd ": "changes the folder of the shell",
    "make test": "is what runs this test",
    "make benchmark": "measures for minutes",
    "snakemake all_published": "needs the released numbers; test_published.py runs it",
    "position-card ": "tests/position_card/card/test_command.py runs it",
    "source ": "changes the environment of the shell; the other commands run in it",
}


@pytest.fixture(scope="module")
def project(whole_graph, tmp_path_factory):
    return whole_graph.copy(tmp_path_factory.mktemp("readme") / "position-bias")


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith(tuple(ELSEWHERE))])
def test_every_command_of_the_readme_works(project, command):
    ended = project.run(command)
    assert ended.returncode == (1 if command.startswith("diff ") else 0), ended.stdout  # diff says what differs


def test_a_comparison_of_runs_lists_what_a_number_changes_alone(project):
    """After the commands of the README that change a number of one figure in a copy of the results."""
    (compare,) = (command for command in COMMANDS if command.startswith("diff "))
    changed = {line.split()[-1] for line in project.run(compare).stdout.splitlines() if line[:1] in "<>"}
    assert {Path(name).stem for name in changed} == {"random_weights"}


PLANS = [  # of the page whose other commands are run by tests/slurm and test_whole.py
    command
    for command in commands("docs/cluster.md", "")
    if command.startswith("snakemake") and command.partition("#")[0].rstrip().endswith("-n")
]
ASKED = {  # what a plan must ask for, by what its command has
    "emergence --cores 8": ["runtime=1440, gpu=1\n"],
    "emergence --workflow-profile": ["runtime=1440, slurm_partition=gpu, gpu=1\n"],
    "available.yaml ~/limits.yaml": [
        "runtime=720, slurm_partition=gpu, gpu=1\n",
        "runtime=720, slurm_partition=gpu, gpu=8, nodes=1",
    ],
    "paper-available.yaml --resources gpu=8": ["runtime=1440, gpu=8, nodes=1"],
    "sweeps --workflow-profile": ["runtime=720, slurm_partition=gpu, gpu=1"],
    "paper-one-gpu.yaml": ["runtime=240, gpu=1, nodes=1"],
    "first-rung.yaml --directory": ["runtime=60, gpu=1, nodes=1"],
    "first-rung.yaml --workflow-profile": ["runtime=60, slurm_partition=gpu, gpu=1, nodes=1"],
}


def test_the_page_has_plans_for_a_cluster_and_the_papers_scale():
    assert len(PLANS) == 11
    assert all(any(key in command for command in PLANS) for key in ASKED)


@pytest.mark.parametrize("command", [plan for plan in PLANS if any(key in plan for key in ASKED)])
def test_a_plan_for_a_cluster_asks_for_what_the_page_says(fresh, command, tmp_path):
    (limits,) = (line for line in commands("docs/cluster.md", "") if "> ~/limits.yaml" in line)
    folder = re.sub(r"--directory \S+", f"--directory {tmp_path}", command)
    ended = fresh.run(f"{limits} && {folder}", HOME=str(tmp_path))
    assert ended.returncode == 0, ended.stdout
    (asked,) = (ASKED[key] for key in ASKED if key in command)
    for resources in asked:
        assert resources in ended.stdout
    assert not re.search("runtime=1440.* gpu=", ended.stdout) or "limits" not in command


PAPERS = re.findall(r"^\| `(\w+)` \| (\d+) \| ", (ROOT / "docs/cluster.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("paper", "jobs"), PAPERS)
def test_a_paper_at_its_own_scale_has_the_jobs_of_the_page(paper, jobs, tmp_path):
    """Of this checkout, as no toy configures it; the page has lines of the table of jobs as they are printed."""
    plan = Project(ROOT).snakemake(f"{paper} --configfile config/paper.yaml --directory {tmp_path} -n --quiet rules")
    assert re.search(rf"^total +{jobs}$", plan, re.MULTILINE)
    (table,) = re.findall(r"^job +count\n(.*?)```", (ROOT / "docs/cluster.md").read_text(), re.MULTILINE | re.DOTALL)
    assert paper != "emergence" or table in plan


def test_the_page_has_the_costs_of_the_four_papers():
    assert [paper for paper, _ in PAPERS] == ["emergence", "layernorm", "postnorm", "structural"]


@pytest.mark.parametrize("command", LONG_RUNS, ids=lambda command: command.rpartition("/")[2])
def test_every_long_run_is_planned_for_a_cpu(project, command):
    group = command.rpartition("/")[2]
    nice, _, arguments = command.partition(" snakemake ")
    assert nice == "nice -n 19"
    printed = project.snakemake(f"{arguments} -n")
    assert "gpu=0" in printed
    assert not re.search(r"gpu=[1-9]", printed)
    assert re.search(rf"/{group}/(\w+_)?runs\.csv", printed)
