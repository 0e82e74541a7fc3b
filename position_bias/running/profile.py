"""What a profile or a command line says of rules and resources; Snakemake takes misspelt names without a word."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Resources of this project's jobs, and those that Snakemake's plugin for SLURM reads.
RESOURCES = [
    *(
        "mem",
        "mem_mb",
        "mem_mib",
        "disk",
        "disk_mb",
        "disk_mib",
        "runtime",
        "tmpdir",
        "gpu",
        "gpu_model",
        "gpu_partition",
    ),
    *("slurm_partition", "slurm_account", "slurm_cluster", "cluster", "clusters", "slurm_extra", "constraint", "qos"),
    *(
        "tasks",
        "tasks_per_gpu",
        "tasks_per_node",
        "cpus_per_gpu",
        "cpus_per_task",
        "mem_mb_per_cpu",
        "nodes",
        "gres",
        "mpi",
    ),
]


def misspelt(workflow: Any) -> str | None:
    """What to say of a rule or a resource that a profile or the command line misspells, or None.

    Other resources than those known here may be a cluster's own: they pass where their names are like none of these.
    """
    rules = [rule.name for rule in workflow.rules]
    asked = workflow.resource_settings
    for name, resources in asked.overwrite_resources.items():
        if name not in rules:
            near = get_close_matches(name, rules, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "snakemake --list has them all"
            return f"set-resources names {name!r}, which is no rule; {hint}"
        if fault := _resource(f"set-resources of {name}", resources):
            return fault
    for option, given in (("resources", asked.resources), ("default-resources", asked.default_resources or ())):
        if fault := _resource(option, given):
            return fault
    return None


def _resource(option: str, names: Iterable[str]) -> str | None:
    for name in names:
        if name.startswith("_") or name in RESOURCES:
            continue
        if near := get_close_matches(name, RESOURCES, n=1, cutoff=0.8):
            return f"{option} names {name!r}, which no job asks for; did you mean {near[0]!r}?"
    return None
