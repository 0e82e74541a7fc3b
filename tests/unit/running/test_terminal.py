"""A real run of Snakemake, in a folder of its own: what the terminal shows, and what the log keeps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SNAKEFILE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from position_bias.running import terminal
terminal.shorten()

rule all:
    input: "good.txt", "bad.txt"

rule good:
    output: "good.txt"
    shell: "touch {{output}}"

rule bad:
    output: "bad.txt"
    log: "bad.log"
    shell: "echo this went wrong > {{log}}; exit 1"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What one run printed, and what its log keeps; one of its two jobs fails."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--keep-going", "--show-failed-logs"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    (log,) = (folder / ".snakemake/log").iterdir()
    return ended.stderr, log.read_text()


def test_a_finished_job_takes_one_line(run):
    printed, _ = run
    shown = [line for line in printed.splitlines() if "good" in line and not re.match(r"good +1$", line)]
    assert len(shown) == 1
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] 1 of 3 steps \(33%\) done: good, good.txt, \d+ s", shown[0])
    for noise in ("reason:", "Finished jobid", "Select jobs", "Execute 1 jobs"):
        assert noise not in printed


def test_the_log_keeps_what_the_terminal_does_not_show(run):
    _, log = run
    for line in (
        "rule good:",
        "output: good.txt",
        "reason: Missing output files: good.txt",
        "Finished jobid",
        "Select jobs",
    ):
        assert line in log


def test_a_failed_job_is_shown_with_its_log(run):
    printed, log = run
    for line in ("Error in rule bad:", "this went wrong"):
        assert line in printed
        assert line in log
