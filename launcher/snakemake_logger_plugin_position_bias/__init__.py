"""The terminal shows one line for each job that has finished, and an estimate of the time that is left.

This is a plugin for Snakemake's interface of loggers. When a job fails, the terminal shows the last lines of its log.
Dry runs, and runs with --verbose or --printshellcmds, are there to be read: they are shown as Snakemake shows them.
Snakemake's own log, in .snakemake/log/, has every line of every run.
"""

import sys
import time
from collections import Counter
from logging import LogRecord
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from snakemake.logging import ColorizingTextHandler
from snakemake_interface_logger_plugins.base import LogHandlerBase

ONLY_IN_THE_LOG = ("job_info", "group_info", "shellcmd", "job_started", "job_finished")  # events
BEFORE_EVERY_JOB = ("Select jobs to execute...", "Execute ")  # how messages without an event begin
LAST_LINES = 12  # of the log of a job that failed


class Job(NamedTuple):
    """A job that has started; on a cluster, a job that was submitted."""

    rule: str
    output: str
    started: float  # seconds since the epoch


class LogHandler(LogHandlerBase):
    """Writes to the terminal. Snakemake finds this class by its name."""

    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        settings = self.common_settings
        self.brief = not (settings.dryrun or settings.verbose or settings.printshellcmds)
        self.terminal = ColorizingTextHandler(settings.nocolor, sys.stdout if settings.stdout else sys.stderr)
        self.started = time.time()
        self.running: dict[int, Job] = {}
        self.finished: list[Job] = []  # since the last line
        self.waiting: Counter[str] = Counter()  # rule -> its jobs that have not finished
        self.seconds: dict[str, list[float]] = {}  # rule -> how long its finished jobs took

    def emit(self, record: LogRecord) -> None:
        """Write a record of Snakemake's log, or nothing, as long as there is a terminal."""
        try:
            text = self.text(record) if self.brief else self.format(record)
            if text not in ("", "None"):  # Snakemake has records without a message
                self.terminal.stream.write(f"{self.terminal.decorate(record, text)}\n")
                self.terminal.flush()
        except OSError:
            self.handleError(record)

    def text(self, record: LogRecord) -> str:
        """What the terminal shows of a record; "" for nothing."""
        event, fields = str(getattr(record, "event", "")), vars(record)
        if event == "run_info":
            self.waiting.update({rule: count for rule, count in fields["stats"].items() if rule != "total"})
        elif event == "job_info":
            output = str(next(iter(fields["output"]), ""))
            self.running[fields["jobid"]] = Job(fields["rule_name"], output, record.created)
        elif event == "job_finished" and (job := self.running.pop(fields["job_id"], None)):
            self.finished.append(job)
            self.waiting[job.rule] -= 1
            self.seconds.setdefault(job.rule, []).append(record.created - job.started)
        elif event == "progress":
            return f"{_clock(record)} {self.format(record)}{self._names(record.created)}{self._left(record.created)}"
        elif event == "group_error":
            jobs = fields["job_error_info"]
            logs = [*fields["aux_logs"], *(log for job in jobs for log in job["log"])]
            return f"{_clock(record)} group failed: {', '.join(job['rule_name'] for job in jobs)}{_ends(logs)}"
        elif event == "job_error":
            said = f"{_clock(record)} {fields['rule_name']} failed: {', '.join(fields['output'])}{_ends(fields['log'])}"
            return "" if fields["indent"] else said  # indented are the jobs of a group, which was shown as a whole
        return "" if event in ONLY_IN_THE_LOG or str(record.msg).startswith(BEFORE_EVERY_JOB) else self.format(record)

    def _names(self, now: float) -> str:
        """The job that has finished, or how many have, with the seconds since the first of them started."""
        jobs, self.finished = self.finished, []
        if not jobs:
            return ""
        what = ", ".join(filter(None, jobs[0][:2])) if len(jobs) == 1 else f"{len(jobs)} jobs from {jobs[0].rule} on"
        return f": {what}, {now - min(job.started for job in jobs):.0f} s"

    def _left(self, now: float) -> str:
        """The estimate: a job takes as long as those of its rule took, or else as those of all rules, and as many
        jobs run at once as until now."""
        times = [seconds for of_rule in self.seconds.values() for seconds in of_rule]
        if not times or not any(self.waiting.values()):
            return ""
        work = sum(count * mean(self.seconds.get(rule, times)) for rule, count in self.waiting.items())
        at_once = max(1.0, sum(times) / (now - self.started))
        return f"; about {_duration(work / at_once)} left"


def _clock(record: LogRecord) -> str:
    return time.strftime("[%H:%M:%S]", time.localtime(record.created))


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 60 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _ends(logs: list[str]) -> str:
    """The last lines of each log, below its name."""
    shown = ""
    for path in map(Path, logs):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
        shown += f"\n{path} " + ("ends with:" if lines else "is empty" if path.is_file() else "is not there")
        shown += "".join(f"\n    {line}" for line in lines[-LAST_LINES:])
    return shown
