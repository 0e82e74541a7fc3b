"""One line on the terminal for each finished job, where Snakemake prints a dozen.

Snakemake's own log, in .snakemake/log/, keeps every line. Errors, the table of planned jobs and dry runs are printed
as Snakemake prints them. This reads the log records that Snakemake sends through `logging`; it does not import
Snakemake, whose events are words.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

SNAKEMAKE = "snakemake.logging"  # Snakemake's logger, and the name that it gives its handler of the terminal
TERMINAL = "DefaultStreamHandler"

DESCRIBING = ("job_info", "group_info", "shellcmd", "job_started", "job_finished")  # events that go to the log alone
SELECTING = "Select jobs to execute..."  # a message before every job, which has no event


class Started(NamedTuple):
    """A job that has been started: its rule, its first output, and when, in seconds."""

    rule: str
    output: str
    at: float


class OneLineAJob(logging.Formatter):
    """Formats progress as one line that names the jobs that have just finished; leaves the rest to `usual`.

    `keeps` is the filter that goes with it: it notes which jobs start and end, and drops what describes them.
    """

    def __init__(self, usual: logging.Formatter) -> None:
        super().__init__()
        self.usual = usual
        self.started: dict[int, Started] = {}
        self.finished: list[int] = []

    def keeps(self, record: logging.LogRecord) -> bool:
        """Return whether the terminal shows this record."""
        event, said = _event(record), vars(record)
        if event == "job_info":
            self.started[said["jobid"]] = Started(said["rule_name"], _first(said["output"]), record.created)
        elif event == "job_finished":
            self.finished.append(said["job_id"])
        return event not in DESCRIBING and record.msg != SELECTING

    def format(self, record: logging.LogRecord) -> str:
        """Return, for example, `[12:03:44] 93 of 251 steps (37%) done: train, results/models/mpt/seed0/step0, 41 s`."""
        text = self.usual.format(record)
        if _event(record) != "progress":
            return text
        jobs = [self.started.pop(number) for number in self.finished if number in self.started]
        self.finished.clear()
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        return f"[{at}] {text}{_named(jobs, record.created)}"


def shorten() -> None:
    """Print one line for each finished job of this process from now on.

    Where the terminal has a handler of another kind, such as a logger plugin's, this does nothing.
    """
    for handler in logging.getLogger(SNAKEMAKE).handlers:
        if handler.name == TERMINAL and handler.formatter and not isinstance(handler.formatter, OneLineAJob):
            short = OneLineAJob(handler.formatter)
            handler.addFilter(short.keeps)
            handler.setFormatter(short)


def _event(record: logging.LogRecord) -> str:
    return str(getattr(record, "event", ""))


def _first(output: Sequence[Any]) -> str:
    return str(output[0]) if output else ""


def _named(jobs: Sequence[Started], now: float) -> str:
    """What has finished, and the seconds since the first of it was started (on a cluster: was submitted)."""
    if not jobs:
        return ""
    what = ", ".join(filter(None, jobs[0][:2])) if len(jobs) == 1 else f"{len(jobs)} jobs from {jobs[0].rule} on"
    return f": {what}, {now - min(job.at for job in jobs):.0f} s"
