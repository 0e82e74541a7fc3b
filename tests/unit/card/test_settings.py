"""What the arguments of a card mean, and what is said of those that mean nothing."""

import os

import pytest

from position_bias.card import settings


def config(model=None, text="standard-library"):
    return {
        "model": model,
        "text": text,
        "models": {"bloom": {}},
        "hub_models": {"llama-1b": {}},
        "datasets": {"standard-library": {}},
        "hub_datasets": {"dclm": {}},
    }


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory, which is the home too, with a model, a folder that has the form of a hub id, and texts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("my-model", "models/m", "My Model, 2"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("texts.jsonl", "a.txt", "b.pdf"):
        (tmp_path / file).write_text("text")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "name", "kind"),
    [
        ("./my-model", "my-model", "path"),
        ("./my-model/", "my-model", "path"),
        ("~/my-model", "my-model", "path"),
        ("/data/Llama_3.2 (1B)", "llama-3.2-1b", "path"),
        ("bloom", "bloom", "configured"),
        ("llama-1b", "llama-1b", "configured"),
        ("Qwen/Qwen3-0.6B", "qwen3-0.6b", "hub"),
        ("gpt2", "gpt2", "hub"),
    ],
)
def test_an_argument_is_a_directory_a_configured_name_or_an_id_of_the_hub(here, given, name, kind):
    (found,) = settings.models(config(given))
    assert (found.name, found.given, found.kind) == (name, given, kind)


def test_the_current_directory_has_its_own_name(here, monkeypatch):
    monkeypatch.chdir(here / "my-model")
    (found,) = settings.models(config("."))
    assert found.name == "my-model"


def test_a_home_is_a_directory_for_the_hub_module_too(here):
    assert settings.models(config("~/my-model"))[0].place == f"{here}/my-model"
    assert settings.models(config("./my-model"))[0].place == "./my-model"
    assert settings.models(config("Qwen/Qwen3-0.6B"))[0].place == "Qwen/Qwen3-0.6B"


def test_several_models_have_a_figure_each_and_one_together():
    assert settings.cards(config("bloom")) == {"bloom": ["bloom"]}
    expected = {"bloom": ["bloom"], "gpt2": ["gpt2"], "bloom-beside-gpt2": ["bloom", "gpt2"]}
    assert settings.cards(config("bloom, gpt2")) == expected
    assert settings.cards(config()) == {}


@pytest.mark.parametrize("given", [None, "./my-model", "bloom,gpt2", "~/my-model", "a/b"])
@pytest.mark.parametrize("text", ["standard-library", "dclm", "./texts.jsonl", "./a.txt", "./my-model", "owner/data"])
def test_what_is_there_has_no_fault(here, given, text):
    assert list(settings.faults(config(given, text))) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("./nothing", "model = './nothing' is not there, seen from {here}; give a directory that is"),
        ("./a.txt", "model = './a.txt' is a file; give a directory in its place"),
        ("models/m", "model = 'models/m' is here, but a directory starts with / or a dot; give ./models/m"),
        (
            "a/b/c",
            "model = 'a/b/c' is no id of the hub, and no name of the configuration; a directory starts with / or",
        ),
        ("my model", "model = 'my model' is no id of the hub"),
        ("a,b,c,d,e", "model names 5 models; a page has room for 4 side by side, so ask in several runs"),
        (" , ", "model = ' , ' names no model; give a directory, a name of the configuration, or a hub id"),
        (
            "./my-model,owner/My-Model",
            "model = './my-model' and 'owner/My-Model' would share the name 'my-model'; rename a directory, or draw",
        ),
    ],
)
def test_a_model_that_cannot_be_meant_is_one_line(here, given, said):
    first = next(settings.faults(config(given)))
    assert first.startswith(said.format(here=here))
    assert "\n" not in first


def test_as_many_models_as_a_page_has_room_for_are_no_fault(here):
    assert list(settings.faults(config("a,b,c,d"))) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("./nothing.txt", "text = './nothing.txt' is not there, seen from {here}; give a directory or a file of the"),
        ("./b.pdf", "text = './b.pdf' is a file; give a directory or a file of the kinds .txt or .jsonl in its place"),
        ("texts.jsonl", "text = 'texts.jsonl' is here, but a directory or a file of the kinds .txt or .jsonl starts"),
    ],
)
def test_a_text_that_cannot_be_meant_is_one_line(here, text, said):
    assert next(settings.faults(config(text=text))).startswith(said.format(here=here))


def test_a_stamp_tells_a_file_from_its_successor_of_the_same_size(here):
    file = here / "a.txt"
    before = settings.stamp([file])
    os.utime(file, ns=(1, 1))
    assert settings.stamp([file]) == [(str(file), 4, 1)] != before


def test_the_files_of_a_model_are_those_of_its_directory_and_no_deeper(here):
    (here / "my-model/config.json").write_text("{}")
    (here / "my-model/results").mkdir()
    (here / "my-model/results/a.json").write_text("{}")
    assert settings.files_of_model(here / "my-model") == [here / "my-model/config.json"]


def test_the_files_of_a_text_are_those_that_are_read(here):
    (here / "models/m/deep.txt").write_text("text")
    assert settings.files_of_text(here / "a.txt") == [here / "a.txt"]
    assert settings.files_of_text(here) == [here / "a.txt", here / "models/m/deep.txt", here / "texts.jsonl"]
    (here / "my-model/train.parquet").write_text("table")
    assert settings.files_of_text(here / "my-model") == [here / "my-model/train.parquet"]
