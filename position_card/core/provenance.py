"""This module records what made the results: commit, versions, machine, configuration, and the time of every stage."""

import csv
import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from position_card.core import artifacts, checkpoint, devices

PROJECT = Path(__file__).parents[2]

PACKAGES = (  # those that numbers or drawings depend on
    "torch",
    "transformers",
    "tokenizers",
    "datasets",
    "safetensors",
    "numpy",
    "numba",
    "scipy",
    "pandas",
    "pyarrow",
    "matplotlib",
    "seaborn",
    "snakemake",
)


def record(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of it, ready for JSON.

    Versions and machine are those of the process that asks: on a cluster the nodes that trained may be others.
    """
    return {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": code(PROJECT),
        "versions": versions(),
        "machine": machine(config["device"], config["devices"].values()),
        "stages": stages(Path("results/benchmarks")),
        "config": config,
    }


def write_training(path: str | Path, run_facts: Mapping[str, Any], place: checkpoint.Place) -> None:
    """Write run.csv of a finished training, one row: its `run_facts`, and the commit, versions and machine."""
    origin = {
        **made_by(),
        "device": place.device,
        "cpu_minutes": round(checkpoint.cpu_minutes(place.folder), 2),
        "date": datetime.now(UTC).date().isoformat(),
    }
    artifacts.write_table(path, pd.DataFrame([{**run_facts, **origin}]))


def made_by(project: Path = PROJECT) -> dict[str, Any]:
    """Tell the commit, the versions and the processor of this process."""
    made_of = code(project) or {"commit": "", "dirty": False}
    return {
        "commit": f"{made_of['commit']}{'-dirty' if made_of['dirty'] else ''}",
        "python": platform.python_version(),
        "torch": _version("torch"),
        "transformers": _version("transformers"),
        "processor": processor(),
    }


def code(project: Path) -> dict[str, str | bool] | None:
    """Return the commit of `project`, and whether files differ from it; None where it is no git repository."""
    if not (project / ".git").exists() or shutil.which("git") is None:
        return None
    commit = _git(project, "rev-parse", "HEAD")
    return {"commit": commit, "dirty": _git(project, "status", "--porcelain") != ""} if commit else None


def _git(project: Path, *arguments: str) -> str:
    """Return what git prints; nothing where it refuses, as for a repository without a commit or of another user."""
    ended = subprocess.run(["git", "-C", project, *arguments], capture_output=True, text=True, check=False)
    return ended.stdout.strip() if ended.returncode == 0 else ""


def versions() -> dict[str, str | None]:
    """Return versions of Python and of `PACKAGES`; None for a package that this environment does not have."""
    return {"python": platform.python_version(), **{package: _version(package) for package in PACKAGES}}


@cache
def _version(package: str) -> str | None:
    """Return the version of a package that is installed; None where it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine(device: devices.Request, of_stages: Iterable[devices.Request] = ()) -> dict[str, Any]:
    """Tell system, processor and number of cores, and the GPUs that a run uses by `device` or by that of a stage."""
    return {
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "device": device,
        "gpus": devices.gpu_names() if any(map(devices.uses_gpu, (device, *of_stages))) else [],
    }


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the model of the processor, where Linux describes it; else what Python knows of it."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def stages(benchmarks: Path) -> dict[str, dict[str, float]]:
    """Count jobs and sum their wall-clock seconds, by the folder of their files in `benchmarks`.

    Files of jobs that an earlier configuration had count too, as long as they lie there.
    """
    stage_totals: dict[str, dict[str, float]] = {}
    for path in sorted(benchmarks.glob("*/**/*.tsv")):
        stage = stage_totals.setdefault(path.relative_to(benchmarks).parts[0], {"jobs": 0, "seconds": 0.0})
        with path.open(encoding="utf-8", newline="") as file:
            stage["seconds"] += sum(float(row["s"]) for row in csv.DictReader(file, delimiter="\t"))
        stage["jobs"] += 1
    return {name: {**stage, "seconds": round(stage["seconds"], 1)} for name, stage in stage_totals.items()}
