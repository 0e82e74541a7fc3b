"""What cannot be read in the figures of a finished run, in whose folder this is called:

python -m tests.every_figure [FILE FOR --configfile ...]
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from snakemake.settings.types import ConfigSettings

from position_bias.workflow import calls
from position_card.drawing import style
from tests.legibility import drawn, faults
from tools.workflow import open_workflow, plan_jobs


def run(*configfiles: str) -> Iterator[str]:
    """Draw every figure of the run in this folder, from the files that are there; say what cannot be read in each."""
    with open_workflow(ConfigSettings(configfiles=[Path(file) for file in configfiles])) as workflow:
        jobs = [job for job in plan_jobs(workflow, ["all"]).dag.jobs if str(job.rule.script).endswith("draw.py")]
    for job in jobs:
        with style.figure_style():
            yield from (f"{job.rule.name}: {fault}" for fault in faults(drawn(calls.make(job))))


if __name__ == "__main__":
    print(*run(*sys.argv[1:]), sep="\n")
