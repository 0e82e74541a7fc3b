"""The profile for SLURM speaks of the rules that there are, and says why for each of its lines."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROFILE = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
RULE = re.compile(r"^(?:use )?rule (?P<head>.*):\n(?P<body>(?:(?: {4}.*)?\n)+)", re.MULTILINE)


def rules(file):
    """Bodies of the rules of a file that run a script, by name; a rule that uses another has that one's body, too."""
    bodies = {}
    for head, body in RULE.findall((ROOT / "rules" / file).read_text()):
        origin, _, name = head.removesuffix(" with").partition(" as ")
        bodies[name or origin] = body + (bodies[origin] if name else "")
    return {name: body for name, body in bodies.items() if "script:" in body}


def everywhere():
    return {name: body for path in (ROOT / "rules").glob("*.smk") for name, body in rules(path.name).items()}


def test_rules_that_use_another_are_found():
    assert {"structural_fig2", "measure_snapshot", "structural_spearman", "published_fig2"} <= set(everywhere())


def test_the_rules_tagged_for_a_gpu_ask_for_one_in_the_partition_of_gpus():
    tagged = {name for name, body in everywhere().items() if "gpu=GPU" in body}
    one = {name: {"gpu": 1, "slurm_partition": "gpu"} for name in tagged}
    as_many_as_the_model_needs = {"measure_hub": {"slurm_partition": "gpu"}}
    assert PROFILE["set-resources"] == one | as_many_as_the_model_needs


def test_every_small_job_is_in_a_group_and_no_job_on_a_gpu_is():
    small = {"prompts", "rollout", *rules("figures.smk"), *rules("tables.smk"), *rules("published.smk")}
    assert set(PROFILE["groups"]) == small
    assert set(PROFILE["groups"].values()) == set(PROFILE["group-components"])
    assert not small & set(PROFILE["set-resources"])


def test_the_groups_of_papers_hold_the_rules_of_their_paper():
    for rule, group in PROFILE["groups"].items():
        assert rule == group or rule.startswith((f"{group}_", group.removesuffix("s"))), rule


def test_figures_and_tables_are_alike_in_what_they_ask_for():
    """Jobs of a group run one after another: the largest decides what all of them hold."""
    asked = {
        re.search(r"mem_mb=memory\((\d+)\)", body)[1]
        for file in ("figures", "tables")
        for body in rules(f"{file}.smk").values()
    }
    assert asked == {"1000"}


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_every_line_of_a_profile_is_explained(profile):
    """By a comment within the entry, or above the lines that it stands among."""
    for block in (ROOT / f"profiles/{profile}/config.yaml").read_text().split("\n\n"):
        entries = re.findall(r"^[\w-].*(?:\n .*)*", block, re.MULTILINE)
        assert block.startswith("#") or all("#" in entry for entry in entries), block
