"""The logger of the project: runs of Snakemake in a folder of their own, and single records of its log."""

import re
import subprocess
import sys
from io import StringIO
from logging import INFO, LogRecord
from pathlib import Path

import pytest
from snakemake.logging import DefaultFormatter
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_position_bias import LAST_LINES, LogHandler

ROOT = Path(__file__).parents[2]
SNAKEFILE = """
rule all:
    input: "good.txt", "bad.txt"

rule good:
    output: "good.txt"
    shell: "touch {output}"

rule bad:
    output: "bad.txt"
    log: "bad.log"
    shell: "seq 50 > {log}; echo this went wrong >> {log}; exit 1"
"""


def snakemake(folder, *arguments):
    (folder / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, ROOT / "launcher/snakemake_command.py", "--cores", "1", "--keep-going", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What one run printed, and what its log keeps; one of its two jobs fails."""
    folder = tmp_path_factory.mktemp("run")
    ended = snakemake(folder)
    assert ended.returncode == 1
    (log,) = (folder / ".snakemake/log").iterdir()
    return ended.stderr, log.read_text()


def test_a_finished_job_takes_one_line_with_an_estimate(run):
    printed, _ = run
    shown = [line for line in printed.splitlines() if "good" in line and not re.match(r"good +1$", line)]
    assert len(shown) == 1
    said = r"\[\d\d:\d\d:\d\d\] 1 of 3 steps \(33%\) done: good, good.txt, \d+ s; about \d+ s left"
    assert re.fullmatch(said, shown[0])
    for noise in ("reason:", "Finished jobid", "Select jobs", "Execute 1 jobs", "None"):
        assert noise not in printed


def test_the_log_keeps_what_the_terminal_does_not_show(run):
    for line in ("rule good:", "output: good.txt", "reason: Missing output", "Finished jobid", "Select jobs"):
        assert line in run[1]


def test_a_failed_job_is_shown_with_the_end_of_its_log(run):
    lines = run[0].splitlines()
    (failed,) = (place for place, line in enumerate(lines) if line.endswith("bad failed: bad.txt"))
    end = [*(f"    {number}" for number in range(52 - LAST_LINES, 51)), "    this went wrong"]
    assert lines[failed + 1 : failed + 2 + LAST_LINES] == ["bad.log ends with:", *end]


@pytest.mark.parametrize("asked", ["--dry-run", "--verbose", "--printshellcmds"])
def test_who_asks_for_more_sees_what_snakemake_shows(tmp_path, asked):
    ended = snakemake(tmp_path, asked)
    assert "reason: Missing output files: good.txt" in ended.stdout + ended.stderr


@pytest.fixture
def said(monkeypatch):
    """Hand a record to a logger that began at time 0; returns what it has written until then."""
    monkeypatch.setattr("snakemake_logger_plugin_position_bias.time.time", lambda: 0.0)
    handler = LogHandler(OutputSettings(), None)
    handler.setFormatter(DefaultFormatter())
    handler.terminal.setStream(StringIO())

    def say(at, event, **fields):
        record = LogRecord("snakemake", INFO, "", 0, "", (), None)
        vars(record).update(fields, event=event, created=float(at))
        handler.handle(record)
        return handler.terminal.stream.getvalue()

    return say


def test_a_group_that_failed_is_shown_once_with_the_ends_of_its_logs(said, tmp_path):
    for name, text in (("slurm", "out of time\n"), ("draw", "")):
        (tmp_path / name).write_text(text)
    error = {"rule_name": "draw", "output": ["a.pdf"], "log": [f"{tmp_path}/draw"], "indent": True}
    gone = {**error, "rule_name": "table", "log": [f"{tmp_path}/none"]}
    said(0, LogEvent.GROUP_ERROR, groupid="g", aux_logs=[f"{tmp_path}/slurm"], job_error_info=[error, gone])
    lines = said(0, LogEvent.JOB_ERROR, **error).splitlines()
    assert lines[0].endswith("] group failed: draw, table")
    ends = [
        f"{tmp_path}/slurm ends with:",
        "    out of time",
        f"{tmp_path}/draw is empty",
        f"{tmp_path}/none is not there",
    ]
    assert lines[1:] == ends


def finish(say, job, rule, started, ended):
    say(started, LogEvent.JOB_INFO, jobid=job, rule_name=rule, output=["a", "b"])
    say(ended, LogEvent.JOB_FINISHED, job_id=job)


def test_jobs_that_wait_take_as_long_as_those_of_their_rule_took(said):
    said(0, LogEvent.RUN_INFO, stats={"draw": 5, "train": 2, "total": 7})
    finish(said, 1, "train", 0, 1000)
    assert said(1000, LogEvent.PROGRESS, done=1, total=7).endswith(": train, a, 1000 s; about 1.7 h left\n")  # 6 x 1000
    finish(said, 2, "draw", 1000, 1010)
    assert said(1010, LogEvent.PROGRESS, done=2, total=7).endswith("; about 17 min left\n")  # 1000 + 4 x 10


def test_jobs_that_wait_run_beside_each_other_as_those_before_did(said):
    said(0, LogEvent.RUN_INFO, stats={"draw": 6, "total": 6})
    for job in range(2):
        finish(said, job, "draw", 0, 20)
    printed = said(20, LogEvent.PROGRESS, done=2, total=6)
    assert "2 jobs from draw on, 20 s; about 40 s left" in printed


def test_at_the_end_nothing_is_left(said):
    said(0, LogEvent.RUN_INFO, stats={"draw": 1, "total": 1})
    finish(said, 1, "draw", 0, 20)
    assert said(20, LogEvent.PROGRESS, done=1, total=1).endswith(" 1 of 1 steps (100%) done: draw, a, 20 s\n")
