"""The profile for SLURM speaks of the rules that there are."""

import re
from pathlib import Path

import yaml

from tools.workflow import rules

ROOT = Path(__file__).parents[2]
PROFILE = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
JOBS = {name: rule for name, rule in rules().items() if rule.script}


def shown(rule):
    """Whether a rule makes a figure or a table."""
    return rule.output[0].startswith(("figures/", "results/tables/"))


def asked(fresh, arguments):
    """What each rule asks for in a plan under the profile: the number of GPUs, and the partition."""
    printed = fresh.snakemake(f"-n --workflow-profile profiles/slurm {arguments}", CUDA_VISIBLE_DEVICES="")
    found = {}
    for rule, said in re.findall(r"^ *rule (\w+):\n(?:(?! *rule ).*\n)*? *resources: (.*)$", printed, re.MULTILINE):
        resources = dict(part.split("=", 1) for part in said.split(", "))
        assert not {"gpu_partition", "gpu_model"} & set(resources)
        found.setdefault(rule, set()).add((int(resources.get("gpu", 0)), resources["slurm_partition"]))
    return found


def test_jobs_with_a_gpu_go_to_the_partition_of_gpus_and_all_others_do_not(fresh):
    """The machine that plans has no GPU, and `device: auto` leaves it to the machine that computes."""
    found = asked(fresh, "all sweeps --config devices='{emergence: cpu}'")
    tagged = {name for name, rule in JOBS.items() if "gpu" in rule.resources}
    on_cpus = {"emergence_train"}
    of_other_plans = {"measure_hub"}
    assert tagged - set(found) == of_other_plans
    for rule, resources in found.items():
        assert resources == {(1, "gpu") if rule in tagged - on_cpus else (0, "cpu")}, rule


def test_a_run_on_cpus_asks_for_no_partition_of_gpus_but_what_is_typed_for_a_rule_counts(fresh):
    typed = "--config device=cpu --set-resources train:gpu=1 layernorm_train:slurm_partition=long"
    found = asked(fresh, f"all {typed}")
    assert (found.pop("train"), found.pop("layernorm_train")) == ({(1, "gpu")}, {(0, "long")})
    assert set().union(*found.values()) == {(0, "cpu")}


def test_every_small_job_is_in_a_group_and_no_job_on_a_gpu_is():
    grouped = {name: rule.group for name, rule in JOBS.items() if rule.group}
    released = {name for name, rule in JOBS.items() if rule.file == "rules/released.smk"}
    assert set(grouped) == {"prompts", "rollout", *released, *(name for name, rule in JOBS.items() if shown(rule))}
    assert set(grouped.values()) == set(PROFILE["group-components"])
    assert not {name for name in grouped if "gpu" in JOBS[name].resources}


def test_the_groups_of_papers_hold_the_rules_of_their_paper():
    for name, rule in JOBS.items():
        wing = Path(rule.file).stem
        assert rule.group in (None, wing, {"prompts": "prompts", "rollout": "rollouts"}.get(name, "scorecard")), name
        assert rule.group != "scorecard" or wing == "overview"
