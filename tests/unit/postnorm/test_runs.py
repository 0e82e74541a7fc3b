"""Which trials there are. What a configuration may not ask of `postnorm` is listed in running/test_configuration.py."""

import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from position_bias.postnorm import runs, tasks, training
from position_bias.postnorm.runs import BINS, bin_of
from position_bias.small_networks.ensemble import Recipe
from position_bias.workflow import configuration
from position_bias.workflow.section import Bounds, Seeds
from tests.configurations import SHIPPED, overlaid

ROOT = Path(__file__).parents[3]
POSTNORM = yaml.safe_load((ROOT / "config.yaml").read_text())["postnorm"]
EXPERIMENTS = runs.experiments(POSTNORM)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_trial_can_be_trained_and_no_two_of_an_experiment_are_alike(experiment):
    for one in EXPERIMENTS[experiment]:
        networks = training.networks(one, "cpu")
        Recipe(**one.recipe)
        limit = networks.task.longest or math.inf
        assert 1 <= networks.setting.length <= limit
        assert 1 <= networks.setting.longest <= limit
    told = [(*one.labels.items(), one.recipe["decay"]) for one in EXPERIMENTS[experiment]]
    assert len(told) == len(set(told))


def test_a_schedule_rises_over_a_share_of_the_iterations_and_falls_to_0():
    recipe = Recipe(**runs.recipe({"warmup": 0.05, "weight_decay": 0.3}, 200, 1.0))
    assert recipe == Recipe(200, 1.0, 0.3, warmup=10, decay=True)
    assert (recipe.rate(10), recipe.rate(201)) == (1, 0)


def test_stability_has_no_warmup_and_sweeps_have_seeds_that_no_figure_can_have():
    assert {one.recipe["warmup"] for one in EXPERIMENTS["stability"]} == {0}
    most = configuration.part(Seeds).rules[Bounds].most
    for name in ("sweep", "sweep_stability"):
        assert min(min(one.seeds) for one in EXPERIMENTS[name]) >= most


def test_the_record_of_a_run_has_its_schemes_with_their_rates():
    record = runs.record(POSTNORM, "dyck-2-3")
    assert record["schemes"].split() == list(POSTNORM["languages"]["learning_rate"])
    assert [*map(float, record["learning_rates"].split())] == list(POSTNORM["languages"]["learning_rate"].values())
    assert runs.record(POSTNORM, "averaging")["vocabularies"] == "8 32 96"


@pytest.mark.parametrize("overlays", SHIPPED, ids=" ".join)
def test_the_tasks_of_what_is_shipped_are_tasks_that_fit(overlays):
    config = overlaid(overlays)
    for part in ("set_complement", "languages"):
        for name, length in config["postnorm"][part]["lengths"].items():
            assert runs.part_of(name) == part
            assert tasks.task(name).name == name
            assert 1 <= length <= (tasks.task(name).longest or length)


@given(length=st.integers(1, 10_000), trained=st.integers(1, 2_000))
def test_a_bin_ends_at_one_two_and_four_trained_lengths_each_of_its_own(length, trained):
    assert tuple(BINS) == ("up to L", "L to 2L", "2L to 4L", "beyond 4L")
    expected = BINS[sum(length > times * trained for times in (1, 2, 4))]
    assert bin_of(length, trained) == expected
    assert bin_of([[1, length]], [[1, trained]]).tolist() == [["up to L", expected]]
