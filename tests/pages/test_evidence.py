"""Learning rates of the default run are those that sweeps chose. Long runs are what evidence/ keeps of them."""

import re

import pandas as pd
import pytest
import yaml

from position_bias.postnorm import runs
from position_bias.small_networks.settings import SWEPT_FROM
from tests.configurations import DEFAULT, LONG_RUNS, ROOT, overlaid

LAYERNORM, POSTNORM = (
    pd.read_csv(ROOT / f"evidence/{paper}/learning_rates.csv") for paper in ("layernorm", "postnorm")
)
STABILITY = pd.read_csv(ROOT / "evidence/postnorm/stability_rates.csv")
COMPLEMENT = DEFAULT["postnorm"]["set_complement"]
LANGUAGES = DEFAULT["postnorm"]["languages"]
PAGE = (ROOT / "evidence/README.md").read_text()


def least(table, by, value):
    """Learning rate of least mean `value`, for each of `by`; a rate that loses a seed is out."""
    means = table.groupby([by, "learning_rate"])[value].apply(lambda values: values.mean(skipna=False)).unstack(by)
    return means.idxmin().to_dict()


def test_rates_of_layernorm_have_the_least_loss():
    assert least(LAYERNORM, "norm", "loss") == DEFAULT["layernorm"]["trained"]["learning_rate"]


@pytest.mark.parametrize("task", COMPLEMENT["lengths"])
def test_rates_of_the_set_complement_have_the_least_distance(task):
    tried = POSTNORM[(POSTNORM["task"] == task) & (POSTNORM["iterations"] == COMPLEMENT["iterations"])]
    assert least(tried, "scheme", "tvd") == COMPLEMENT["learning_rate"][task]


def test_rates_of_languages_have_the_least_mean_distance():
    swept = POSTNORM["task"].isin(DEFAULT["postnorm"]["sweep"]["languages"])
    tried = POSTNORM[swept & (POSTNORM["iterations"] == LANGUAGES["iterations"])]
    assert least(tried, "scheme", "tvd") == LANGUAGES["learning_rate"]


def test_rates_of_stability_surround_the_best_of_each_scheme():
    rates, swept = DEFAULT["postnorm"]["stability"]["learning_rates"], DEFAULT["postnorm"]["sweep"]["stability"]
    assert set(STABILITY["scheme"]) == set(swept["schemes"])
    assert set(STABILITY["learning_rate"]) == set(swept["learning_rates"])
    for _, of_depth in STABILITY.groupby("layers"):
        for best in least(of_depth, "scheme", "loss").values():
            assert min(rates) <= best <= max(rates)


@pytest.mark.parametrize("table", [LAYERNORM, POSTNORM, STABILITY], ids=["layernorm", "postnorm", "stability"])
def test_sweeps_have_seeds_of_their_own(table):
    assert table["seed"].min() >= SWEPT_FROM


def test_the_page_names_the_groups_that_have_been_run():
    (sentence,) = re.findall(r"^Of the groups below, these have been run: (.*?)\. ", PAGE, re.MULTILINE | re.DOTALL)
    groups = {path.parent.name for path in (ROOT / "evidence").glob("*/*/*.csv")}
    assert set(re.findall(r"`([\w.-]+)`", sentence)) == groups


long_runs = pytest.mark.parametrize("overlays", LONG_RUNS, ids=" ".join)


@long_runs
def test_a_long_run_has_its_scale_and_its_command_on_the_page(overlays):
    """In a directory of its own, so that no group replaces another's results."""
    config = overlaid(overlays)
    group = config["evidence"]["group"]
    assert overlays[-1] == f"evidence/{group}"
    assert config["scale"] == ("paper" if "paper" in overlays else "longer")
    assert config["device"] in ("cpu", "auto")  # no GPU is asked for
    (command,) = re.findall(rf"^.*config/evidence/{group}\.yaml.*$", PAGE, re.MULTILINE)
    files = " ".join(f"config/{name}.yaml" for name in overlays)
    assert f" --configfile {files} --directory ../position-bias-evidence/{group}" in command


@long_runs
def test_what_a_long_run_keeps_is_trained_longer_in_it(overlays):
    """That there is such a training is a question of the configuration, which is checked with all that is shipped."""
    config = overlaid(overlays)
    kept, emergence = config["evidence"], config["emergence"]
    assert any(of_paper for paper, of_paper in kept.items() if paper != "group")
    if kept["emergence"]:
        released = (emergence["task"]["scale"], emergence["task"]["middle"]) == ("released", "released")
        of_paper = dict.fromkeys(["unbiased", "ends", "position"], 100_000)
        assert emergence["training"]["iterations"] == of_paper | ({"unbiased": 50_000} if released else {})
        assert emergence["seeds"]["shallow"] >= 3
    for name in kept["postnorm"]:
        part = "averaging" if name == "averaging" else runs.part_of(name)
        assert config["postnorm"][part]["iterations"] > DEFAULT["postnorm"][part]["iterations"]
    if kept["structural"]:
        assert set(kept["structural"]) <= set(config["measure"]["models"])
        assert config["training"]["steps"] > DEFAULT["training"]["steps"]


def test_no_two_long_runs_keep_the_same_under_the_same_settings():
    """All are kept under names of their own."""
    overlays = [yaml.safe_load(path.read_text()) for path in (ROOT / "config/evidence").glob("*.yaml")]
    without_group = {str(overlay | {"evidence": overlay["evidence"] | {"group": None}}) for overlay in overlays}
    assert len(without_group) == len(overlays) > 10


def test_every_table_of_evidence_carries_the_name_of_its_scale():
    for path in (ROOT / "evidence").rglob("*.csv"):
        assert set(pd.read_csv(path)["scale"]) <= {"default", "longer", "pretrained", "paper"}, path
