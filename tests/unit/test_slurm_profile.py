"""The profile for SLURM speaks of the rules that there are, and says why for each of its lines."""

import re
from pathlib import Path

import pytest
import yaml
from workflow import rules

ROOT = Path(__file__).parents[2]
PROFILE = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
JOBS = {name: rule for name, rule in rules().items() if rule.script}


def shown(rule):
    """Whether a rule makes a figure or a table."""
    return rule.output[0].startswith(("figures/", "results/tables/"))


def test_rules_that_use_another_are_found():
    assert {"structural_draw_fig2", "measure_snapshot", "structural_spearman", "released_draw_fig2"} <= set(JOBS)


def test_the_rules_tagged_for_a_gpu_ask_for_one_in_the_partition_of_gpus():
    tagged = {name for name, rule in JOBS.items() if "gpu" in rule.resources}
    one = {name: {"gpu": 1, "slurm_partition": "gpu"} for name in tagged}
    as_many_as_the_model_needs = {name: {"slurm_partition": "gpu"} for name in ("measure_hub", "card_measure")}
    assert PROFILE["set-resources"] == one | as_many_as_the_model_needs


def test_every_small_job_is_in_a_group_and_no_job_on_a_gpu_is():
    grouped = {name: rule.group for name, rule in JOBS.items() if rule.group}
    released = {name for name, rule in JOBS.items() if rule.file == "rules/released.smk"}
    assert set(grouped) == {"prompts", "rollout", *released, *(name for name, rule in JOBS.items() if shown(rule))}
    assert set(grouped.values()) == set(PROFILE["group-components"])
    assert not set(grouped) & set(PROFILE["set-resources"])


def test_the_groups_of_papers_hold_the_rules_of_their_paper():
    for name, rule in JOBS.items():
        wing = Path(rule.file).stem
        assert rule.group in (None, wing, {"prompts": "prompts", "rollout": "rollouts"}.get(name, "scorecard")), name
        assert rule.group != "scorecard" or wing == "overview"


def test_figures_and_tables_are_alike_in_what_they_ask_for():
    """Jobs of a group run one after another: the largest decides what all of them hold."""
    assert [name for name, rule in JOBS.items() if shown(rule) and {"mem_mb", "runtime"} & set(rule.resources)] == []


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_every_line_of_a_profile_is_explained(profile):
    """By a comment within the entry, or above the lines that it stands among."""
    for block in (ROOT / f"profiles/{profile}/config.yaml").read_text().split("\n\n"):
        entries = re.findall(r"^[\w-].*(?:\n .*)*", block, re.MULTILINE)
        assert block.startswith("#") or all("#" in entry for entry in entries), block
