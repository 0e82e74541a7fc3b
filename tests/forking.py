"""Snakemake whose scripts run in forks of one process that has imported the libraries, for toy graphs.

    python -m tests.forking all --cores 2

A script that runs for a second imports libraries for three. What it needs of the project, it still imports itself.
`make test-all` builds the whole toy graph with a process for each script, as users do.
"""

import os
import runpy
import subprocess
import sys
from multiprocessing import get_context
from multiprocessing.connection import wait
from threading import Lock

LIBRARIES = (
    *("accelerate", "datasets", "matplotlib.pyplot", "numba", "pandas", "pyarrow.parquet", "safetensors.torch"),
    *("scipy.optimize", "scipy.stats", "seaborn", "snakemake.script", "tokenizers", "torch.func", "transformers"),
    *(f"transformers.models.{name}.modeling_{name}" for name in ("bloom", "falcon", "llama", "mpt")),
    "tests.figure_formats",
)
forks = get_context("forkserver")
status_of_forks = Lock()  # one thread at a time reads how a fork ended: to start one reads it of those before


def run(script, folder, threads, environment):
    """Run a script as in a process of its own; ends with its status."""
    import torch

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    torch.set_num_threads(threads)
    runpy.run_path(script, run_name="__main__")


def execute(script, file, edit=False):
    """Take the place of `PythonScript.execute_script`."""
    from snakemake.benchmark import benchmarked

    process = forks.Process(target=run, args=(file, os.getcwd(), script.threads, dict(os.environ)))
    with status_of_forks:
        process.start()
    with benchmarked(process.pid, script.bench_record):
        wait([process.sentinel])
    with status_of_forks:
        process.join()
    if process.exitcode:
        raise subprocess.CalledProcessError(process.exitcode, f"python {file}")


def main():
    """Run Snakemake with the arguments of this process."""
    from snakemake.script import PythonScript

    import snakemake_command

    forks.set_forkserver_preload(list(LIBRARIES))
    PythonScript.execute_script = execute
    snakemake_command.main()


if __name__ == "__main__":
    main()
