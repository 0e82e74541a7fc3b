"""What the whole graph leaves behind, and what it builds again after a change.

Everything that needs the built graph stands in this file, which one process runs: it is built once.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from position_bias.claims.verdict import COLUMNS

ROOT = Path(__file__).parents[2]
MEASURED = "results/measure/bloom/seed0/step12/standard-library/n32"
EVERYTHING = {
    "corpus": 1,
    "tokenizer": 1,
    "train": 1,
    "prompts": 1,
    "measure": 1,
    "rollout": 1,
    "structural_fig1": 1,
    "structural_fig4": 1,
    "structural_table2": 1,
    "structural_checks": 1,
}


def only(*rules):
    return dict.fromkeys(rules, 1)


def test_a_clone_builds_everything(fresh):
    assert fresh.planned() == EVERYTHING


@pytest.mark.parametrize("figure", ["fig1", "fig4"])
def test_every_figure_is_there_in_three_formats(built, figure):
    starts = {"pdf": b"%PDF-", "svg": b"<?xml", "png": b"\x89PNG"}
    for suffix, start in starts.items():
        content = (built.root / f"figures/structural/{figure}.{suffix}").read_bytes()
        assert content.startswith(start)
        assert len(content) > 5000


def test_table2_has_every_variant_under_both_estimators_with_its_interval(built):
    table = pd.read_csv(built.root / "results/tables/structural/table2.csv")
    variants = {(row.estimator, row.variant) for row in table.itertuples()}
    of_lambda = {(estimator, variant) for estimator in ("frobenius", "token") for variant in ("b", "c", "measured")}
    assert variants == of_lambda | {("none", variant) for variant in ("a", "half", "uniform", "last")}
    assert table["value"].between(0, 1).all()
    assert (table["low"] <= table["high"]).all()
    assert "| bloom" in (built.root / "results/tables/structural/table2.md").read_text()


def test_verdicts_are_in_the_common_schema_and_follow_from_their_intervals(built):
    checks = pd.read_csv(built.root / "results/tables/structural/checks.csv")
    assert list(checks.columns) == list(COLUMNS)
    assert set(checks["scale"]) == {"test"}
    for row in checks.itertuples():
        relation, bound, *margin = row.predicted.split()
        negligible = float(margin[1]) if margin else 0
        above, below = row.low > float(bound) + negligible, row.high < float(bound) - negligible
        expected = {">": (above, below), "<": (below, above)}[relation]
        assert row.verdict == {(True, False): "holds", (False, True): "fails"}.get(expected, "not separable")


def test_profiles_are_distributions(built):
    profiles = pd.read_csv(built.root / "results/rollout/bloom/seed0/step12/standard-library/n32/profiles.csv")
    totals = profiles.groupby(["estimator", "variant"])["value"].sum()
    assert len(totals) == 11
    assert all(math.isclose(total, 1, abs_tol=1e-9) for total in totals)


def test_models_are_hugging_face_directories_and_learn(built):
    from transformers import AutoTokenizer, BloomForCausalLM

    folder = built.root / "results/models/bloom/seed0"
    for step in (0, 6, 12):
        assert BloomForCausalLM.from_pretrained(folder / f"step{step}").config.n_layer == 3
    tokenizer = AutoTokenizer.from_pretrained(folder / "step12")
    assert tokenizer.decode(tokenizer.encode("A sentence.")) == "A sentence."
    loss = pd.read_csv(folder / "loss.csv")
    test = loss[loss["split"] == "test"].set_index("step")["loss"]
    assert list(test.index) == [0, 6, 12]
    assert test[12] < test[0]
    assert not (built.root / "checkpoints/bloom/seed0").exists()


def test_the_corpus_says_what_it_is_made_of(built):
    manifest = json.loads((built.root / "results/corpus/standard-library.json").read_text())
    assert manifest["python"] == ".".join(map(str, sys.version_info[:3]))
    assert all(len(split["sha256"]) == 64 for split in manifest["splits"].values())


def test_every_job_leaves_a_log_and_a_benchmark(built):
    logs = {path.relative_to(built.root / "logs").with_suffix("") for path in built.root.glob("logs/**/*.log")}
    benchmarks = {
        path.relative_to(built.root / "results/benchmarks").with_suffix("")
        for path in built.root.glob("results/benchmarks/**/*.tsv")
    }
    assert logs == benchmarks
    assert len(logs) == sum(EVERYTHING.values())


def test_no_pickle_is_written(built):
    files = {path for path in built.root.glob("results/**/*") if path.is_file()}
    suffixes = {path.suffix for path in files if path.name != ".snakemake_timestamp"}
    assert suffixes <= {".parquet", ".json", ".jinja", ".safetensors", ".csv", ".md", ".tsv"}


def test_a_second_run_does_nothing_and_says_so(built):
    assert "Nothing to be done" in built.snakemake("all --cores 2")


def test_the_line_that_people_type_works(built):
    assert "Nothing to be done" in built.snakemake("--cores 8 --resources gpu=2 all -n")


def test_touching_a_file_rebuilds_nothing(mine):
    for name in ("position_bias/rollout.py", "position_bias/measure.py", "position_bias/plots/style.py"):
        (mine.root / name).touch()
    assert mine.planned() == {}


def test_one_figure_builds_just_what_it_needs(fresh):
    needed = only("corpus", "tokenizer", "train", "prompts", "measure", "structural_fig4")
    assert fresh.planned("figures/structural/fig4.pdf") == needed
    assert fresh.planned("figures/structural/fig1.pdf") == {
        **{rule: 1 for rule in needed if rule != "structural_fig4"},
        **only("rollout", "structural_fig1"),
    }


@pytest.mark.parametrize("module", ["plots/structural.py", "plots/style.py"])
def test_an_edit_of_a_plot_module_rebuilds_figures_only(mine, module):
    mine.append(f"position_bias/{module}", "\nEDITED = True\n")
    assert mine.planned() == only("structural_fig1", "structural_fig4")


def test_an_edit_of_the_rollout_module_reruns_rollouts_and_not_measurements(mine):
    mine.append("position_bias/rollout.py", "\nEDITED = True\n")
    assert mine.planned() == only("rollout", "structural_fig1", "structural_table2", "structural_checks")


def test_an_edit_of_the_measuring_pass_retrains_nothing(mine):
    mine.append("position_bias/measure.py", "\nEDITED = True\n")
    assert not mine.planned().keys() & {"corpus", "tokenizer", "prompts", "train"}
    assert mine.planned()["measure"] == 1


def test_a_new_model_leaves_finished_ones_alone(mine):
    architecture = {"layers": 2, "heads": 2, "hidden": 8, "initializer_range": 0.1}
    mine.configure({"models": {"mpt": {"family": "mpt", "seeds": [3], "architecture": architecture}}})
    joint = only("structural_fig1", "structural_fig4", "structural_table2", "structural_checks")
    assert mine.planned() == only("train", "measure", "rollout") | joint
    printed = mine.snakemake("all -n --cores 1")
    assert "model=mpt" in printed
    assert "model=bloom" not in printed


def test_one_changed_number_rebuilds_what_depends_on_it(mine):
    mine.configure({"rollout": {"bootstrap": 60}})
    assert mine.planned() == only("rollout", "structural_fig1", "structural_table2", "structural_checks")
    mine.configure({"training": {"checkpoint_every": 5}})  # changes no result
    assert "train" not in mine.planned()
    mine.configure({"measure": {"prompts": 12}})
    assert "train" not in mine.planned()
    assert mine.planned()["prompts"] == 1


def test_a_figure_drawn_again_has_the_same_bytes(mine):
    paths = [mine.root / f"figures/structural/fig1.{suffix}" for suffix in ("pdf", "svg", "png")]
    before = [path.read_bytes() for path in paths]
    measured = (mine.root / MEASURED / "lambda.safetensors").stat().st_mtime_ns
    mine.append("position_bias/plots/structural.py", "\nEDITED = True\n")
    mine.snakemake("figures/structural/fig1.pdf --cores 1")
    assert [path.read_bytes() for path in paths] == before
    assert (mine.root / MEASURED / "lambda.safetensors").stat().st_mtime_ns == measured


def test_a_truncated_artifact_is_named_with_the_command_that_mends_it(mine):
    broken = mine.root / MEASURED / "influence.safetensors"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-100])
    ended = mine.run("snakemake all --cores 1 --forcerun rollout")
    assert ended.returncode == 1
    line = next(line for line in ended.stdout.splitlines() if line.startswith("error: "))
    assert f"artifact {MEASURED}/influence.safetensors is not usable" in line
    remedy = line.split("rebuild it with: ")[1]
    assert mine.run(remedy).returncode == 0
    assert broken.read_bytes() == whole
    mine.snakemake("all --cores 1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--config sed=1", "config: sed = 1 is not a key of the configuration; did you mean 'seed'?"),
        ("--config seed=-1", "config: seed = -1 is too small; give at least 0"),
        ("--config device=tpu", "config: device = 'tpu' is not known; use one of auto, cpu, cuda"),
    ],
)
def test_a_bad_configuration_ends_in_one_line_before_any_job(fresh, arguments, message):
    ended = fresh.run(f"snakemake all --cores 1 {arguments}")
    assert ended.returncode == 1
    last = ended.stdout.splitlines()[-1]
    assert last.startswith(f"error: {message}")
    assert "Traceback" not in ended.stdout
    assert not (fresh.root / "results/corpus").exists()


def test_more_prompts_than_text_says_how_many_windows_there_are(mine):
    ended = mine.run("snakemake all --cores 1 --config measure='{prompts: 1000000}'")
    assert ended.returncode == 1
    line = next(line for line in ended.stdout.splitlines() if line.startswith("error: "))
    assert "1000000 windows of 32 tokens are asked for, but the text has" in line
    assert "lower measure.prompts" in line


def test_a_killed_training_resumes_and_ends_with_the_same_bytes(mine, tmp_path):
    """SIGKILL between two checkpoints; the twin is trained in one go."""
    mine.configure({"training": {"steps": 200, "checkpoint_every": 10}})
    twin = mine.copy(tmp_path / "twin")
    target = "results/models/bloom/seed0/step200"
    command = ["bash", "-c", f"snakemake {target} --cores 1"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    killed = subprocess.Popen(
        command,
        cwd=mine.root,
        env={**os.environ, "PATH": path},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    checkpoint = mine.root / "checkpoints/bloom/seed0/checkpoint.safetensors"
    until = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert checkpoint.exists()
    mine.snakemake("--unlock")
    mine.snakemake(f"{target} --cores 1")
    assert "resum" in (mine.root / "logs/models/bloom/seed0.log").read_text()
    twin.snakemake(f"{target} --cores 1")
    for name in ("step200/model.safetensors", "step6/model.safetensors", "loss.csv"):
        one, other = (p.root / "results/models/bloom/seed0" / name for p in (mine, twin))
        assert one.read_bytes() == other.read_bytes()


def test_the_gpu_tag_counts_only_where_a_gpu_is_used(fresh):
    assert "gpu=1" not in fresh.snakemake("all -n --cores 1", CUDA_VISIBLE_DEVICES="")
    assert fresh.snakemake("all -n --cores 1", CUDA_VISIBLE_DEVICES="0,1").count("gpu=1") == 2  # train and measure
    assert "gpu=1" not in fresh.snakemake("all -n --cores 1 --config device=cpu", CUDA_VISIBLE_DEVICES="0,1")


README = (ROOT / "README.md").read_text()
COMMANDS = [
    line for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line.strip()
]
ELSEWHERE = {  # commands that a test cannot run here, and why
    "git clone": "needs the address that the reader has",
    "cd ": "changes the folder of the shell",
    "make test": "is what runs this test",
    "make benchmark": "measures for minutes",
    "source ": "changes the environment of the shell; the other commands run in it",
}


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith(tuple(ELSEWHERE))])
def test_every_command_of_the_readme_works(built, tmp_path, command):
    ended = built.copy(tmp_path / "position-bias").run(command)
    assert ended.returncode == 0, ended.stdout


def test_the_readme_has_the_commands_that_everything_starts_with():
    assert {"make all", "make test", "snakemake --cores 8 --resources gpu=2 all"} <= {
        c.split("  #")[0].strip() for c in COMMANDS
    }
