"""What newcomers from GitHub and Snakemake look for is there and says the same everywhere."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


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


def test_the_files_that_contributing_names_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"\b(?:tests|docs|published)/[\w/]*(?:\.py|\.md)?(?![\w.])", text))
    assert "tests/unit/rollout/test_last_row.py" in named
    assert [name for name in named if not (ROOT / name).exists()] == []
