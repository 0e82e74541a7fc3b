"""Run the script of one job in this process, on the files that are there: for a debugger, or for print.

    python -m pdb run_job.py figures/structural/fig1.pdf
    python run_job.py results/tables/emergence/checks.csv config/test.yaml

The first argument is a file that the job makes, the others are files for --configfile. Inputs must exist (build them
with `snakemake`); they are read where this is run, and outputs are overwritten. Snakemake itself runs a script in a
process of its own, where a debugger does not see it.
"""

import os
import runpy
import sys
from pathlib import Path

from snakemake.exceptions import RuleException, WorkflowError
from snakemake.script import Snakemake
from snakemake.settings.types import ConfigSettings

from tools.workflow import open_workflow, plan_jobs


def job(target: str, *configfiles: str) -> tuple[str, Snakemake]:
    """The script of the job that makes a target, and what the script calls `snakemake`. Raises SystemExit for none."""
    with open_workflow(ConfigSettings(configfiles=[Path(file) for file in configfiles])) as api:
        workflow = plan_jobs(api, [target])
        made = next((job for job in workflow.dag.jobs if target in job.output), None)
        if made is None or made.rule.script is None:
            sys.exit(f"error: no job with a script makes {target}; name a file as results/ and figures/ have it")
        script = str(Path(made.rule.snakefile).parent / made.rule.script)
        given = (made.input, made.output, made.params, made.wildcards, made.threads, made.resources, made.log)
        return script, Snakemake(*given, workflow.config, made.rule.name, None, str(Path(script).parent))


def main(target: str, *configfiles: str) -> None:
    """Run the script of the job that makes `target`."""
    try:
        script, snakemake = job(target, *configfiles)
    except (RuleException, WorkflowError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")
    for path in [*snakemake.output, *snakemake.log]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = str(snakemake.threads)  # as Snakemake has it in the process of a script
    runpy.run_path(script, init_globals={"snakemake": snakemake}, run_name="__main__")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
