"""What newcomers from GitHub and Snakemake look for is there and says the same everywhere."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BY_OTHERS = (  # messages of the shell, of Snakemake, of SLURM and of pip
    "snakemake: command not found",
    "building 'immutables._map' extension",
    "cores have to be specified",
    "Error in group",
    "unexpected EOF",
    "Error running conda info",
    "Requested time limit is invalid",
    "Directory cannot be locked",
    "Nothing to be done",
    "unrecognized arguments",
    "No rule to produce",
    "No such file or directory",
    "Invalid config definition",
)
MESSAGES = re.findall(r"^\| `([^`]+)`", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)


def test_the_version_is_said_once_and_heads_the_changelog():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## \[(\d.*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest.groups() == (citation["version"], str(citation["date-released"]))
    for project in ("pyproject.toml", "launcher/pyproject.toml"):
        told = tomllib.loads((ROOT / project).read_text())
        assert told["project"]["dynamic"] == ["version"]
        source = (ROOT / project).parent / told["tool"]["hatch"]["version"]["path"]
        assert source.resolve() == ROOT / "CITATION.cff"


def test_the_citation_names_the_four_papers_of_the_readme():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    numbers = {identifier["value"] for paper in cited for identifier in paper["identifiers"]}
    assert numbers == set(re.findall(r"arXiv:\d+\.\d+", (ROOT / "README.md").read_text()))
    assert len(numbers) == 4
    for paper in cited:
        assert paper["title"] in " ".join((ROOT / "README.md").read_text().split())


def test_actions_are_pinned_to_commits_and_run_what_is_there():
    flows = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))]
    steps = [step for flow in flows for job in flow["jobs"].values() for step in job["steps"]]
    used, run = ([step[key] for step in steps if key in step] for key in ("uses", "run"))
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action in used)
    assert run == ["make site", "make test", ".ci/run"]
    assert (ROOT / ".ci/run").is_file()
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert hook["entry"] == "make check"
    assert re.search(r"^check:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_files_that_contributing_names_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"\b(?:tests|docs|published)/[\w/]*(?:\.py|\.md)?(?![\w.])", text))
    assert "tests/unit/rollout/test_last_row.py" in named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.fixture(scope="module")
def sources():
    """Every text that can become a message of this project, with string literals joined over lines."""
    places = ("position_bias/**/*.py", "rules/**/*.smk", "launcher/**/*.py", "Snakefile", "Makefile")
    files = [path for place in places for path in ROOT.glob(place)]
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for path in files))


@pytest.mark.parametrize("message", [message for message in MESSAGES if not message.startswith(BY_OTHERS)])
def test_the_messages_that_troubleshooting_explains_are_those_of_the_code(message, sources):
    parts = [part.strip(" '") for part in re.split(r"\.\.\.|\b\d+\b(?! )|\b[18]\b", message)]
    said = [part for part in parts if len(part) > 3]
    assert said
    assert [part for part in said if part not in sources] == []
