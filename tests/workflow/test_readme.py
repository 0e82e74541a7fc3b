"""Every command of the README does what it says, in a project in which everything is built."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line.strip()
]
ELSEWHERE = {  # commands that a test cannot run here, and why
    "git clone": "needs the address that the reader has",
    "cd ": "changes the folder of the shell",
    "make test": "is what runs this test",
    "make benchmark": "measures for minutes",
    "snakemake all_published": "needs the released numbers; test_published.py runs it",
    "source ": "changes the environment of the shell; the other commands run in it",
}


@pytest.fixture(scope="module")
def project(built, tmp_path_factory):
    return built.copy(tmp_path_factory.mktemp("readme") / "position-bias")


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith(tuple(ELSEWHERE))])
def test_every_command_of_the_readme_works(project, command):
    ended = project.run(command)
    assert ended.returncode == 0, ended.stdout


def test_the_readme_has_the_commands_that_everything_starts_with():
    assert {"make all", "make test", "snakemake --cores 8 --resources gpu=2 all"} <= {
        c.split("  #")[0].strip() for c in COMMANDS
    }
