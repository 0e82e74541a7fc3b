"""What Snakemake itself costs, on a finished project: .venv/bin/python benchmarks/workflow.py (after `make all`)

Wall-clock seconds of a run that has nothing to do, and of one figure drawn anew from finished artifacts, and what a
bare start of Python with Snakemake takes in the same run. Exit status 1 where a bound is missed.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SNAKEMAKE = str(Path(sys.executable).parent / "snakemake")
FIGURE = "figures/structural/fig1.pdf"


def seconds(*command):
    started = time.monotonic()
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(ended.stdout + ended.stderr)
    return time.monotonic() - started, ended.stdout + ended.stderr


def main():
    nothing, said = min(seconds(SNAKEMAKE, "all", "--cores", "1") for _ in range(3))
    if "Nothing to be done" not in said:
        sys.exit("the project is not built; run `make all` first")
    start = min(seconds(SNAKEMAKE, "--version")[0] for _ in range(3))
    figure, _ = seconds(SNAKEMAKE, FIGURE, "--cores", "1", "--forcerun", "structural_draw_fig1")
    print(f"{'':44} {'wall s':>7} {'x bare start':>13} {'bound s':>8}")
    missed = False
    for what, took, bound in (
        ("a run with nothing to do", nothing, 6),
        ("one figure from finished artifacts", figure, 15),
    ):
        missed |= took > bound
        verdict = "ok" if took <= bound else "MISSED"
        print(f"{what:44} {took:7.2f} {took / start:13.1f} {bound:8}   {verdict}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
