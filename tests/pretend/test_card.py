"""The command position-card spreads a model over pretended GPUs, and its numbers are those of the CPU."""

import os

import numpy as np
import pandas as pd
import pytest
from transformers import PreTrainedTokenizerFast

from position_card.card import command, measurements, subject
from position_card.drawing import style
from position_card.measures import cost, documents
from tests import records
from tests.conftest import REAL_GPUS
from tests.position_card.card.conftest import numbered
from tests.pretend.both import assert_same, on_both
from tests.pretend.pretended import gpus
from tests.refusals import refused
from tools import decoders

WITHIN = 1e-5
MEASURING = ["--lengths", "12", "--prompts", "8", "--replace", "0", "--recall", "0", "--quiet"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working directory with a model of two layers and a text."""
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")  # a mode of torch is that of its thread
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(style, "save", lambda *_: None)  # figures would take most of the time
    if not REAL_GPUS:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    decoders.small("llama").save_pretrained("model")
    PreTrainedTokenizerFast(tokenizer_object=numbered()).save_pretrained("model")
    words = np.random.default_rng(0).integers(3, decoders.VOCABULARY, 200)
    (tmp_path / "text.txt").write_text(" ".join(f"w{word}" for word in words))
    return tmp_path


def run(*typed):
    return command.main(["./model", "--text", "text.txt", *typed])


@pytest.mark.all("two cards are measured and written")
def test_cards_on_two_gpus_are_those_of_the_cpu(tmp_path, monkeypatch):
    opened, places = subject.Subject.open, {}

    def seen(self, *arguments):
        model = opened(self, *arguments)
        places.setdefault(self.placed, set()).update(str(weight.device) for weight in model.parameters())
        return model

    monkeypatch.setattr(subject.Subject, "open", seen)

    def work(folder, device):
        where = ("--gpus", "2") if device == "cuda" else ("--device", "cpu")
        assert run(*MEASURING, "--untrained", "1", *where, "--out", str(folder)) == 0
        assert device == "cpu" or os.environ["CUDA_VISIBLE_DEVICES"].count(",") == 1
        return [measurements.read(folder / name / "measured").lengths for name in ("model", "model-untrained-0")]

    assert_same(*on_both(work, tmp_path, 2), WITHIN)
    assert places == {"cpu": {"cpu"}, "balanced": {"cuda:0", "cuda:1"}}


def test_answers_on_two_gpus_are_those_of_the_cpu(tmp_path, monkeypatch):
    """The prompts of a record pass in one row on both."""
    trees, reads_trees = [], documents.reads_trees
    monkeypatch.setattr(documents, "reads_trees", lambda *given: trees.append(reads_trees(*given)) or trees[-1])
    texts = [{"text": f"w{word} w{word + 1}", "isgold": word == 4} for word in (4, 7, 9)]
    records.write(tmp_path / "rows.jsonl", [{"question": "w3", "answers": ["w5 w8"], "ctxs": texts}] * 8)

    def work(folder, device):
        where = ("--gpus", "2") if device == "cuda" else ("--device", "cpu")
        typed = ["./model", "--documents", "rows.jsonl", "--quiet", *where, "--out", str(folder)]
        assert command.main(typed) == 0
        return pd.read_csv(folder / "model/documents/rows/documents.csv")["log_probability"].to_numpy()

    assert_same(*on_both(work, tmp_path, 2), WITHIN)
    assert trees == [True, True]


@pytest.mark.skipif(REAL_GPUS, reason="a machine has the GPUs that it has")
@pytest.mark.parametrize(("typed", "named"), [("--gpus 3", "torch sees 2"), ("--gpus 2 --device cpu", "--device cpu")])
def test_gpus_that_are_not_there_are_refused_in_one_line(typed, named, here, capsys):
    with gpus(2):
        assert run(*typed.split()) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert typed.split()[0] in said
    assert named in said
    assert not (here / "position-card").exists()


@pytest.mark.skipif(REAL_GPUS, reason="what is asked is whether nobody looks for a GPU")
def test_one_gpu_is_what_no_option_means(monkeypatch):
    monkeypatch.setattr(command, "_require_gpus", None)
    assert run(*MEASURING, "--gpus", "1", "--device", "cpu", "--dry-run") == 0
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1,2"


@pytest.mark.skipif(REAL_GPUS, reason="memory of pretended GPUs is known")
def test_the_room_of_a_model_is_that_of_all_gpus_that_it_takes():
    how = {"recomputed": False, "precision": "float32"}
    with gpus(3):
        cost.require_room("m", 20e9, "balanced", **how)
        with refused("8.6 GB", "cuda", "(gpus)"):
            cost.require_room("m", 20e9, "cuda", **how)
