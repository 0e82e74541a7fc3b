"""Learning rates of the default run are those that the sweeps in evidence/ chose, on seeds of their own."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from position_bias.ensemble import SWEPT_FROM

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
LAYERNORM, POSTNORM = (
    pd.read_csv(ROOT / f"evidence/{paper}/learning_rates.csv") for paper in ("layernorm", "postnorm")
)
COMPLEMENT = CONFIG["postnorm"]["set_complement"]
LANGUAGES = CONFIG["postnorm"]["languages"]


def least(table, by, value):
    """Learning rate of least mean `value`, for each of `by`; a rate that loses a seed is out."""
    means = table.groupby([by, "learning_rate"])[value].apply(lambda values: values.mean(skipna=False)).unstack(by)
    return means.idxmin().to_dict()


def test_rates_of_layernorm_have_the_least_loss():
    assert least(LAYERNORM, "norm", "loss") == CONFIG["layernorm"]["trained"]["learning_rate"]


@pytest.mark.parametrize("task", COMPLEMENT["lengths"])
def test_rates_of_the_set_complement_task_have_the_least_distance_at_trained_lengths(task):
    tried = POSTNORM[(POSTNORM["task"] == task) & (POSTNORM["iterations"] == COMPLEMENT["iterations"])]
    assert least(tried, "scheme", "tvd") == COMPLEMENT["learning_rate"][task]


def test_rates_of_languages_have_the_least_mean_distance_over_those_swept():
    swept = POSTNORM["task"].isin(CONFIG["postnorm"]["sweep"]["languages"])
    tried = POSTNORM[swept & (POSTNORM["iterations"] == LANGUAGES["iterations"])]
    assert least(tried, "scheme", "tvd") == LANGUAGES["learning_rate"]


@pytest.mark.parametrize("table", [LAYERNORM, POSTNORM], ids=["layernorm", "postnorm"])
def test_sweeps_have_seeds_of_their_own(table):
    assert table["seed"].min() >= SWEPT_FROM


def test_twice_the_iterations_fit_better_so_that_the_longer_training_was_kept():
    means = POSTNORM.groupby(["task", "scheme", "iterations", "learning_rate"])["tvd"].mean()
    best = means.groupby(["task", "scheme", "iterations"]).min()
    for _, of_network in best.groupby(["task", "scheme"]):
        shorter, longer = of_network.sort_index()
        assert longer < shorter
