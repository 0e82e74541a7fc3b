"""Learning rates of the default run are those that the sweeps in evidence/ chose, on seeds of their own.

And what the overlays of config/evidence/ ask for: long runs, each with what it keeps.
"""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from position_bias.postnorm import runs
from position_bias.small_networks.settings import SWEPT_FROM

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
LAYERNORM, POSTNORM = (
    pd.read_csv(ROOT / f"evidence/{paper}/learning_rates.csv") for paper in ("layernorm", "postnorm")
)
STABILITY = pd.read_csv(ROOT / "evidence/postnorm/stability_rates.csv")
COMPLEMENT = CONFIG["postnorm"]["set_complement"]
LANGUAGES = CONFIG["postnorm"]["languages"]
PAGE = (ROOT / "evidence/README.md").read_text()


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


def test_rates_of_the_stability_experiment_surround_the_best_of_each_scheme_and_depth():
    rates, swept = CONFIG["postnorm"]["stability"]["learning_rates"], CONFIG["postnorm"]["sweep"]["stability"]
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


def test_a_long_run_has_the_name_of_its_overlay_its_scale_and_a_command_with_a_directory_of_its_own(long_run):
    names, config = long_run
    group = config["evidence"]["group"]
    assert names[-1] == f"evidence/{group}"
    assert names[:-1] in ([], ["paper"])
    assert config["scale"] == ("paper" if "paper" in names else "longer")
    assert config["device"] in ("cpu", "auto")  # no GPU is asked for
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "evidence/README.md").read_text(), re.DOTALL)
    (command,) = [line for line in "".join(blocks).splitlines() if f"config/evidence/{group}.yaml" in line]
    files = " ".join(f"config/{name}.yaml" for name in names)
    assert f" --configfile {files} --directory ../position-bias-evidence/{group}" in command


def test_what_a_long_run_keeps_is_trained_longer_in_it(long_run):
    """That there is such a training is a question of the configuration, which is checked with all that is shipped."""
    _, config = long_run
    kept, emergence = config["evidence"], config["emergence"]
    assert any(of_paper for paper, of_paper in kept.items() if paper != "group")
    if kept["emergence"]:
        of_paper = dict.fromkeys(["unbiased", "ends", "position"], 100_000)
        as_in_released_code = {"scale": "released", "middle": "released"}
        if {name: emergence["task"][name] for name in as_in_released_code} == as_in_released_code:
            of_paper["unbiased"] = 50_000
        assert emergence["training"]["iterations"] == of_paper
        assert emergence["seeds"]["shallow"] >= 3
    for name in kept["postnorm"]:
        part = "averaging" if name == "averaging" else runs.part_of(name)
        assert config["postnorm"][part]["iterations"] > CONFIG["postnorm"][part]["iterations"]
    if kept["structural"]:
        assert set(kept["structural"]) <= set(config["measure"]["models"])
        assert config["training"]["steps"] > CONFIG["training"]["steps"]


def test_no_two_long_runs_keep_the_same_under_the_same_settings():
    """A directory each, so that no group replaces another's results; all are kept under names of their own."""
    overlays = [yaml.safe_load(path.read_text()) for path in (ROOT / "config/evidence").glob("*.yaml")]
    without_group = [str({**overlay, "evidence": {**overlay["evidence"], "group": None}}) for overlay in overlays]
    assert len(set(without_group)) == len(overlays) > 10


@pytest.mark.parametrize("path", sorted((ROOT / "evidence").rglob("*.csv")), ids=lambda path: path.stem)
def test_every_table_of_evidence_carries_the_name_of_its_scale(path):
    scales = pd.read_csv(path)["scale"]
    assert set(scales) <= {"laptop", "longer", "pretrained", "paper"}
    assert scales.notna().all()
