"""The command position-card: what it writes, how it goes on, and what it refuses with which status."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest
import torch
from scipy import fft
from transformers import JetMoeConfig, JetMoeForCausalLM

from position_card.card import command, folder, measurements, measuring
from position_card.core import checkpoint
from position_card.core.runtime import InputError
from tests import hub
from tests.position_card.card.conftest import TYPED, VOCABULARY, llama

ROOT = Path(__file__).parents[3]
TEXT = [
    "--text",
    "texts.jsonl",
    "--lengths",
    "12",
    "--prompts",
    "8",
    "--replace",
    "0",
    "--recall",
    "0",
    "--no-questions",
]


UNDRAWN = """
from position_card.card import command
from position_card.drawing import style
style.save = lambda *_: None
raise SystemExit(command.main())
"""

pytestmark = pytest.mark.usefixtures("undrawn")


def run(*typed):
    return command.main([*typed, *TEXT])


def test_copies_and_the_model_have_folders_and_a_page_together(here, capsys):
    assert run("./my-model", "--untrained", "1", "--json", "--quiet") == 0
    names = ("my-model", "my-model-untrained-0", "my-model-and-1-untrained")
    assert {path.name for path in (here / "position-card").iterdir()} == set(names)
    ratios = pd.read_csv(here / "position-card" / names[2] / "tables/ratios.csv")
    assert set(ratios["model"]) == set(names[:2])
    printed = capsys.readouterr()
    assert printed.err == ""
    cards = json.loads(printed.out)
    assert [found["model"] for found in cards] == list(names[:2])
    statistics = pd.read_csv(here / "position-card/my-model/tables/statistics.csv")
    assert len(cards[0]["statistics"]) == len(statistics)
    assert cards[0]["statistics"][0]["value"] == pytest.approx(statistics["value"][0])
    page = (here / "position-card" / names[2] / "card.md").read_text()
    assert "](../my-model-untrained-0/card.md)" in page


def test_checkpoints_of_a_run_have_a_page_by_training_step(here, capsys):
    """More than a page has side by side, in the order of a shell; the numbers are those of the single cards."""
    for step in (10, 2, 300, 4, 5):
        shutil.copytree(here / "my-model", here / f"run/checkpoint-{step}")
    assert run(*(f"./run/checkpoint-{step}" for step in (10, 2, 300, 4, 5)), "--quiet") == 0
    names = [f"checkpoint-{step}" for step in (2, 4, 5, 10, 300)]
    assert {path.name for path in (here / "position-card").iterdir()} == {*names, "run-by-step"}
    table = pd.read_csv(here / "position-card/run-by-step/tables/run.csv")
    assert table.drop_duplicates("step")[["step", "model"]].to_numpy().tolist() == [
        [int(name.rpartition("-")[2]), name] for name in names
    ]
    for name, rows in table.groupby("model"):
        own = pd.read_csv(here / "position-card" / name / "tables/statistics.csv")
        keys = ["n", "variant", "statistic"]
        both = rows.merge(own[own["estimator"] == "none"], on=keys, suffixes=("", " of the card"))
        assert len(both) == len(rows) == 3  # both ends by gradients, and the loss
        for number in ("value", "low", "high"):
            assert both[number].tolist() == both[f"{number} of the card"].tolist()
    page = (here / "position-card/run-by-step/card.md").read_text()
    assert [f"](../{name}/card.md)" in page for name in names] == [True] * 5
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == ["2", "4", "5", "10", "300"]
    assert capsys.readouterr().err == ""


def test_few_checkpoints_of_a_run_are_side_by_side_besides(here):
    for step in (20, 3):
        shutil.copytree(here / "my-model", here / f"run/step{step}")
    assert run("./run/step20", "./run/step3", "--quiet") == 0
    expected = {"step3", "step20", "step3-and-step20", "run-by-step"}
    assert {path.name for path in (here / "position-card").iterdir()} == expected


def test_models_of_other_shapes_are_no_checkpoints_of_a_run(here, capsys):
    for step, layers in ((3, 2), (20, 3)):
        llama(layers).save_pretrained(here / f"run/step{step}")
    assert run("./run/step20", "./run/step3", "--tokenizer", "my-model", "--quiet") == 0
    names = {path.name for path in (here / "position-card").iterdir()}
    assert names == {"step3", "step20", "step3-and-step20"}


def test_a_killed_command_goes_on_and_measures_nothing_twice(here, monkeypatch, capsys):
    whole = command.main(["./my-model", *TEXT, "--out", "whole", "--quiet"])
    seen = []

    class Killed(KeyboardInterrupt):
        pass

    original = checkpoint.write

    def write(path, run, state):
        original(path, run, state)
        seen.append(state.step)
        if len(seen) == 1:
            raise Killed

    monkeypatch.setattr(checkpoint, "write", write)
    monkeypatch.setattr(measuring, "INTERVAL", 2)
    typed = ["--tokens-per-batch", "24"]
    assert run("./my-model", *typed) == 130
    assert run("./my-model", *typed) == 0
    assert seen == [2, 4, 6, 8]
    assert run("./my-model", *typed) == 0
    assert seen == [2, 4, 6, 8]
    assert "the same command goes on from here" in capsys.readouterr().err
    found, expected = (measurements.read(here / out / "my-model/measured") for out in ("position-card", "whole"))
    assert whole == 0
    assert found.lengths[12].influence == pytest.approx(expected.lengths[12].influence, rel=1e-5)


@pytest.mark.parametrize("name", ["MOST_LOSSES", "FORMAT"])
def test_what_another_version_kept_of_a_killed_command_is_measured_anew(name, here, monkeypatch):
    monkeypatch.setattr(measuring, "INTERVAL", 2)
    original = checkpoint.write

    def write(*given):
        original(*given)
        raise KeyboardInterrupt

    typed, steps = ["--tokens-per-batch", "24"], []
    with monkeypatch.context() as other:
        other.setattr(measuring, name, 1)
        other.setattr(checkpoint, "write", write)
        assert run("./my-model", *typed) == 130
    monkeypatch.setattr(checkpoint, "write", lambda *given: (steps.append(given[2].step), original(*given)))
    assert run("./my-model", *typed) == 0
    assert steps == [2, 4, 6, 8]


def test_another_card_in_a_folder_is_kept_unless_it_is_forced(kept, carded, capsys):
    before = (carded / "tables/layers.csv").read_bytes()
    for other in (["--seed", "1"], ["--tokenizer", "my-model"]):
        assert command.main([*TYPED, *other]) == 2
        assert f"({other[0][2:]})" in capsys.readouterr().err
    assert (carded / "tables/layers.csv").read_bytes() == before
    assert command.main([*TYPED, "--seed", "1", "--force"]) == 0
    assert (carded / "tables/layers.csv").read_bytes() != before
    shutil.rmtree(carded / "measured")
    shutil.copytree(kept / "measured", carded / "measured")  # as another run may have done meanwhile
    assert command.main([*TYPED, "--seed", "1"]) == 2
    assert "(seed)" in capsys.readouterr().err


def test_what_was_measured_stays_where_a_forced_one_fails(carded, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(measuring.opening, "require_known_tokens", Mock(side_effect=InputError("it cannot be measured")))
        assert command.main([*TYPED, "--seed", "1", "--force"]) == 1
    monkeypatch.setattr(measuring, "open_and_measure_card", None)
    assert command.main(TYPED) == 0


def test_a_damaged_measurement_is_named_and_force_replaces_it(carded, capsys):
    file = carded / "measured/n12.safetensors"
    for damage in (lambda: file.write_bytes(file.read_bytes()[:99]), file.unlink):
        damage()
        assert command.main(TYPED) == 2
        assert re.search(r"position-card/my-model/measured is damaged \(.*\); type --force", capsys.readouterr().err)
    assert command.main([*TYPED, "--force"]) == 0
    assert command.main(TYPED) == 0


def test_a_dry_run_says_what_it_takes_and_measures_nothing(here, capsys):
    assert run("./my-model", "--dry-run") == 0
    said = capsys.readouterr().err
    for named in ("my-model", "45,536", "float32", "cpu", "8 prompts of 12 tokens of texts.jsonl", "0.6 GB"):
        assert named in said
    for measure in ("replacement", "recall"):
        assert f"- without {measure}: 0 " in said
    assert "- without questions: they are not wanted" in said
    assert not list((here / "position-card").rglob("*.safetensors"))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("", (32, None, None)), ("--thorough", (64, 16, 16)), ("--thorough --replace 3 --prompts 9", (9, 3, 16))],
)
def test_budgets_are_those_that_were_typed(here, monkeypatch, typed, expected):
    plan = Mock(side_effect=InputError("nothing is measured"))
    monkeypatch.setattr(measuring, "plan_card", plan)
    command.main(["./my-model", *TEXT[:2], *typed.split(), "--quiet"])
    options = plan.call_args.args[2]
    assert (options.prompts, options.replace, options.recall) == expected


def test_statistics_have_as_many_threads_as_were_typed(here, monkeypatch):
    threads, card_in = [], folder.card_in
    monkeypatch.setattr(folder, "card_in", lambda *a, **b: threads.append(fft.get_workers()) or card_in(*a, **b))
    assert run("./my-model", "--threads", "2", "--quiet") == 0
    assert (threads, fft.get_workers()) == ([2], 1)


def test_a_model_that_fails_lets_the_other_be_measured(here, capsys):
    (here / "empty").mkdir()
    assert run("./empty", "./my-model", "--quiet") == 1
    assert "error: model directory empty lacks config.json" in capsys.readouterr().err
    assert (here / "position-card/my-model/card.md").is_file()


@pytest.mark.parametrize("untrained", [0, 1])
def test_an_unexpected_fault_of_a_model_lets_the_others_be_measured(here, monkeypatch, capsys, untrained):
    """Its line names the model, the fault and the file of its traceback."""
    (here / "other").symlink_to(here / "my-model")
    original = measuring.open_and_measure_card

    def fault(plan, *args):
        if plan.subject.name != "my-model":
            return original(plan, *args)
        raise ZeroDivisionError("of something\nand more")

    monkeypatch.setattr(measuring, "open_and_measure_card", fault)
    typed = ["./my-model", *(["--untrained", "1"] if untrained else ["./other"]), "--quiet"]
    assert run(*typed) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    for named in ("model ./my-model", "(ZeroDivisionError: of something and more)", "my-model/fault.txt", "report"):
        assert named in err
    kept = (here / "position-card/my-model/fault.txt").read_text()
    assert kept.startswith("Traceback")
    assert 'raise ZeroDivisionError("of something' in kept
    other = "my-model-untrained-0" if untrained else "other"
    assert (here / "position-card" / other / "card.md").is_file()


def test_a_fault_whose_file_has_no_place_is_told_too(here, monkeypatch, capsys):
    monkeypatch.setattr(measuring, "plan_card", Mock(side_effect=KeyError("what")))
    (here / "position-card").mkdir()
    (here / "position-card/my-model").write_text("a file where a folder belongs")
    assert run("./my-model", "--quiet") == 1
    err = capsys.readouterr().err
    assert "(KeyError: 'what')" in err
    assert "my-model/fault.txt cannot be written" in err


def test_a_model_that_is_too_large_lets_the_other_be_measured(here, monkeypatch, capsys):
    (here / "other").symlink_to(here / "my-model")
    original = measuring.open_and_measure_card

    def measured(plan, *args):
        if plan.subject.name == "other":
            return original(plan, *args)
        raise MemoryError

    monkeypatch.setattr(measuring, "open_and_measure_card", measured)
    assert run("./my-model", "./other", "--quiet") == 1
    assert "out of memory with model ./my-model" in capsys.readouterr().err
    assert (here / "position-card/other/card.md").is_file()


def test_a_model_without_an_estimate_is_measured_and_says_so(here, capsys):
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = JetMoeConfig(**size, vocab_size=VOCABULARY, kv_channels=8, num_key_value_heads=2, num_local_experts=4)
    JetMoeForCausalLM(config).save_pretrained(here / "router")
    assert run("./router", "--tokenizer", "my-model", "--dry-run") == 0
    assert "nobody can estimate" in capsys.readouterr().err
    assert run("./router", "--tokenizer", "my-model", "--quiet") == 0
    assert re.search(
        r"^\| computed \| .*memory not estimated \|$", (here / "position-card/router/card.md").read_text(), re.MULTILINE
    )


@pytest.mark.parametrize("typed", [["--help"], ["--version"]])
def test_what_nobody_reads_ends_without_a_word(typed):
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    command_line = [sys.executable, "-m", "position_card", *typed]
    ended = subprocess.run(command_line, env=environment, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_pipe_that_breaks_during_a_model_is_no_fault_of_it(here, monkeypatch):
    monkeypatch.setattr(measuring, "plan_card", Mock(side_effect=BrokenPipeError))
    assert run("./my-model", "--quiet") == 141
    assert not (here / "position-card/my-model/fault.txt").exists()


def test_the_card_of_a_gguf_file_names_its_weights(here, small):
    assert command.main([*small, "--lengths", "12", "--prompts", "8"]) == 0
    page = (here / "position-card/small/card.md").read_text()
    assert re.search(r"^\| weights \| F32 .*GGUF.* float32 \|$", page, re.MULTILINE)
    assert re.search(r"^\| special tokens \| .*`w5`", page, re.MULTILINE)


@pytest.mark.parametrize(
    ("typed", "status", "named"),
    [
        ("./nothing", 2, "./nothing"),
        ("./texts.jsonl", 2, "./texts.jsonl"),
        ("./my-model ./my-model", 2, "my-model"),
        ("./my-model --untrained 4", 2, "4 models"),
        ("./my-model --text ./nothing.txt", 2, "nothing.txt"),
        ("./my-model --out .", 2, "./my-model"),
        ("./my-model --out taken --quiet", 1, "taken/my-model"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(here, assert_refused, typed, status, named):
    (here / "taken").write_text("")
    assert_refused([*TEXT, *typed.split()], status, named)


OF_TORCH = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000000000000 bytes")


@pytest.mark.parametrize("error", [MemoryError(), OF_TORCH, torch.OutOfMemoryError("CUDA out of memory")], ids=repr)
def test_too_little_memory_ends_the_command_in_one_line(capsys, monkeypatch, error):
    monkeypatch.setattr(command, "_run", Mock(side_effect=error))
    assert run("./my-model") == 1
    assert capsys.readouterr().err.startswith("error: out of memory; ")
    monkeypatch.setattr(command, "_run", Mock(side_effect=RuntimeError("another")))
    with pytest.raises(RuntimeError, match="another"):
        run("./my-model")


@pytest.mark.parametrize("typed", ["", "m --lengths 8", "m --prompts 7", "m --device tpu", "m --threads 9999"])
def test_options_that_cannot_be_meant_end_with_the_usage(typed, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(typed.split())
    assert ended.value.code == 2
    assert "usage: position-card" in capsys.readouterr().err


@pytest.mark.all("it starts the command twice beside a hub")
def test_the_card_of_a_hub_model_is_kept_at_its_commit(here):
    """Once it is in the cache, no hub is needed."""
    source, commit = "someone/llama", "c" * 40
    environment = {**os.environ, "HF_HOME": str(here / "home"), "PYTHONPATH": str(ROOT)}
    typed = [sys.executable, "-c", UNDRAWN, source, *TEXT, "--quiet"]
    with hub.serve(source, commit, here / "my-model") as address:
        subprocess.run([*typed, "--dry-run"], env={**environment, "HF_ENDPOINT": address}, check=True)
    subprocess.run([*typed, "--offline"], env={**environment, "HF_ENDPOINT": "http://127.0.0.1:9"}, check=True)
    record = json.loads((here / "position-card/llama/model.json").read_text())
    assert (record["source"], record["revision"]) == (source, commit)
    assert record["files"] == {path.name: path.stat().st_size for path in (here / "my-model").iterdir()}
    assert f"| model | {source} at {commit} |" in (here / "position-card/llama/card.md").read_text()


def test_without_a_network_a_hub_id_ends_within_ten_seconds(tmp_path):
    nobody = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    (tmp_path / "text.txt").write_text("a text that takes no time")
    began = os.times().children_user
    ended = subprocess.run(
        [sys.executable, "-m", "position_card", "someone/some-model", "--text", "text.txt"],
        cwd=tmp_path, env=nobody, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "hub model 'someone/some-model' is not in the cache" in ended.stderr
    assert os.times().children_user - began < 10
