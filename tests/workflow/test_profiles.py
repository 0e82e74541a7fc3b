"""What jobs ask a machine or a cluster for, and that both profiles speak of the rules that there are."""

import re
from pathlib import Path

import pytest
import yaml
from snakemake import cli
from snakemake.iocontainers import Namedlist, Wildcards

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


def test_jobs_with_a_gpu_alone_go_to_the_partition_of_gpus(fresh):
    """The machine that plans has no GPU, and `device: auto` leaves it to the machine that computes."""
    found = asked(fresh, "all sweeps --config devices='{emergence: cpu}'")
    tagged = {name for name, rule in JOBS.items() if "gpu" in rule.resources}
    on_cpus = {"emergence_train"}
    of_other_plans = {"measure_hub"}
    assert tagged - set(found) == of_other_plans
    for rule, resources in found.items():
        assert resources == {(1, "gpu") if rule in tagged - on_cpus else (0, "cpu")}, rule


def test_a_run_on_cpus_asks_for_gpus_where_that_is_typed_alone(fresh):
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


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_every_profile_says_what_other_rules_ask_for(profile):
    defaults = yaml.safe_load((ROOT / f"profiles/{profile}/config.yaml").read_text())["default-resources"]
    assert (defaults["mem_mb"], defaults["runtime"]) == ("1000 * attempt", 10)


def test_rules_that_run_models_are_tagged_for_a_gpu():
    tagged = {name for name, rule in JOBS.items() if "gpu" in rule.resources}
    assert tagged == {name for name, rule in JOBS.items() if "resumable.job(" in (ROOT / rule.script).read_text()}
    assert {"train", "measure", "emergence_train", "postnorm_train"} <= tagged
    assert {rules(device="cpu")[name].asks("gpu") for name in tagged} == {0}
    asked = [rules(device="cuda")[name].resources["gpu"] for name in tagged]
    assert {gpus.value for gpus in asked if not gpus.is_evaluable()} == {1}  # others have as many as their model takes


def test_table5_asks_for_twice_the_largest_measurement(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    for file, megabytes in ((small, 1), (large, 2100)):
        with file.open("wb") as opened:
            opened.truncate(megabytes * 10**6)  # takes no room on the disk
    asked = JOBS["structural_table5"].resources["mem_mb"]
    measured = Namedlist(fromdict={"measured": [str(small), str(large)]})
    found = [asked.evaluate(Wildcards(), input=measured, attempt=attempt).value for attempt in (1, 2)]
    assert found == [5200, 10400]


def test_a_bare_snakemake_reads_the_profiles():
    for profile in ("default", "slurm"):
        parsed = cli.parse_args(["--snakefile", str(ROOT / "Snakefile"), "--workflow-profile", profile])[1]
        assert parsed.show_failed_logs
