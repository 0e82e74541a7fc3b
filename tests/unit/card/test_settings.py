"""What the arguments of a card mean, and what is said of those that mean nothing."""

import json
import os
import shlex
from pathlib import Path

import pytest
import yaml

from position_bias.card import settings
from position_bias.language_models import hub

ROOT = Path(__file__).parents[3]


def config(model=None, text="standard-library", untrained=0, precision="auto"):
    return {
        "card": {"lengths": [8, 64], "prompts": 9, "precision": precision, "untrained": untrained},
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
    for folder in ("my-model", "models/m", "data", "empty"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("texts.jsonl", "a.txt", "b.pdf", "data/train.parquet", "empty/README.md"):
        (tmp_path / file).write_text("text")
    model(tmp_path / "my-model")
    return tmp_path


def model(directory, without=(), **described):
    """What planning looks at of a model."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {
        "config.json": json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], **described}),
        "model.safetensors": "weights",
        "tokenizer.json": "{}",
    }
    for name, content in files.items():
        if name not in without:
            (directory / name).write_text(content)


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
        ("bigscience/bloom", "bigscience-bloom", "hub"),  # `bloom` is a name of the configuration
    ],
)
def test_an_argument_is_a_directory_a_configured_name_or_an_id_of_the_hub(here, given, name, kind):
    (found,) = settings.models(config(given))
    assert (found.name, found.given, found.kind) == (name, given, kind)


def test_the_current_directory_has_its_own_name(here, monkeypatch):
    monkeypatch.chdir(here / "my-model")
    (found,) = settings.models(config("."))
    assert found.name == "my-model"


def test_a_link_has_the_name_that_was_chosen_for_it(here):
    (here / "chosen").symlink_to(here / "my-model")
    assert settings.models(config("./chosen"))[0].name == "chosen"


@pytest.mark.parametrize(
    ("text", "name", "shown"),
    [
        ("./texts.jsonl", "texts-jsonl", "texts.jsonl"),
        ("./texts.txt", "texts-txt", "texts.txt"),
        ("./My Texts", "my-texts", "My Texts"),
        ("dclm", "dclm", "dclm"),
        ("owner/Data", "data", "owner/Data"),
    ],
)
def test_a_text_that_is_not_the_default_is_in_the_name_of_every_card(text, name, shown):
    assert (settings.text(config(text=text)).name, settings.text(config(text=text)).shown) == (name, shown)
    expected = {
        f"bloom-on-{name}": [f"bloom-on-{name}"],
        f"gpt2-on-{name}": [f"gpt2-on-{name}"],
        f"bloom-beside-gpt2-on-{name}": [f"bloom-on-{name}", f"gpt2-on-{name}"],
    }
    assert settings.cards(config("bloom,gpt2", text)) == expected
    assert list(settings.by_card(config("bloom,gpt2", text))) == list(expected)[:2]


def test_the_default_text_is_that_of_the_configuration():
    assert yaml.safe_load((ROOT / "config.yaml").read_text())["text"] == settings.TEXT


def test_several_models_have_a_figure_each_and_one_together():
    assert settings.cards(config("bloom")) == {"bloom": ["bloom"]}
    expected = {"bloom": ["bloom"], "gpt2": ["gpt2"], "bloom-beside-gpt2": ["bloom", "gpt2"]}
    assert settings.cards(config("bloom, gpt2")) == expected
    assert settings.cards(config()) == {}


def test_untrained_copies_have_cards_of_their_own_and_share_the_record_of_their_model(here):
    asked = config("./my-model", "./a.txt", untrained=2)
    names = ["my-model-on-a-txt", "my-model-untrained-0-on-a-txt", "my-model-untrained-1-on-a-txt"]
    together = "my-model-beside-2-untrained-on-a-txt"
    assert settings.cards(asked) == {**{name: [name] for name in names}, together: names}
    models = settings.by_card(asked)
    assert [model.shown for model in models.values()] == ["my-model", "my-model-untrained-0", "my-model-untrained-1"]
    assert {settings.of_origin(name, asked) for name in names} == {names[0]}
    assert list(settings.faults(asked)) == []


def test_the_command_for_copies_measures_what_the_card_did_and_names_the_figure_that_it_makes(here):
    asked = config("./my model", "./a.txt")
    model(here / "my model")
    said = settings.with_copies("my-model-on-a-txt", asked)
    words = shlex.split(said["command"])
    assert words[:3] == ["snakemake", "card", "--config"]
    typed = {key: yaml.safe_load(value) for key, value in (word.split("=", 1) for word in words[3:])}
    decided = {key: asked["card"][key] for key in ("lengths", "prompts")}
    assert asked["card"]["precision"] == "auto"
    copies = {**decided, "untrained": settings.COPIES}
    assert typed == {"model": "./my model", "text": "./a.txt", "card": copies}
    assert said["together"] in settings.cards({**asked, **typed})
    assert "text=" not in settings.with_copies("bloom", config("bloom"))["command"]
    one = settings.with_copies("bloom", config("bloom", untrained=1, precision="float32"))
    assert one["command"].endswith("precision: float32, untrained: 1}'")
    assert one["together"] in settings.cards(config("bloom", untrained=1))


def test_copies_of_several_models_and_copies_that_take_anothers_place_are_faults(here):
    (fault,) = settings.faults(config("bloom,gpt2", untrained=2))
    assert fault == "card.untrained = 2 copies one model, but model names 2; name one"
    record(here / "results/card/my-model-untrained-0/model.json", "./my-model-untrained-0")
    assert list(settings.faults(config("./my-model"))) == []
    (fault,) = settings.faults(config("./my-model", untrained=1))
    assert "would take the place of './my-model-untrained-0' in results/card/my-model-untrained-0; rename" in fault


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "standard-library"),
        ("./my-model", "dclm"),
        ("bloom,gpt2", "./texts.jsonl"),
        ("~/my-model", "./a.txt"),
        ("a/b", "./data"),
        ("a,b,c,d", "owner/data"),
    ],
)
def test_what_is_there_has_no_fault(here, given, text):
    assert list(settings.faults(config(given, text))) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("./nothing", "model = './nothing' is not there, seen from {here}; give a directory that exists"),
        ("./a.txt", "model = './a.txt' is a file; give a directory in its place"),
        (
            "models/m",
            "model = 'models/m' is here, but the path of a directory starts with /, . or ~; write model=./mod",
        ),
        ("a/b/c", "model = 'a/b/c' is no id of the hub, and no name of the configuration; the path of a directory"),
        ("my model", "model = 'my model' is no id of the hub"),
        ("a,b,c,d,e", "model names 5 models; a page has room for 4 side by side, so ask in several runs"),
        (" , ", "model = ' , ' names no model; give a directory, a name of the configuration, or a hub id"),
        ("a,", "model = 'a,' has nothing before or after a comma; write model=./a,./b, without blanks"),
        ("./empty", "model directory empty lacks config.json; save the model there with save_pretrained"),
        (
            "./my-model,owner/My-Model",
            "model = './my-model' and 'owner/My-Model' would share the name 'my-model'; rename",
        ),
    ],
)
def test_a_model_that_cannot_be_meant_is_one_line(here, given, said):
    first = next(settings.faults(config(given)))
    assert first.startswith(said.format(here=here))
    assert "\n" not in first


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ({"architectures": ["BertModel"], "model_type": "bert"}, "a BertModel, an encoder"),
        ({"architectures": ["AnyForMaskedLM"], "model_type": "any"}, "an AnyForMaskedLM, an encoder"),
        (
            {"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True},
            "a T5ForConditionalGeneration, an encoder with a decoder",
        ),
        ({"architectures": ["LlamaForSequenceClassification"]}, "a LlamaForSequenceClassification"),
    ],
)
def test_what_predicts_no_next_token_is_refused_by_the_name_of_its_class(here, described, said):
    model(here / "other", **described)
    (fault,) = settings.faults(config("./other"))
    assert fault == f"model directory other holds {said}; the card needs a decoder that predicts the next token"


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "LlamaModel", "Gemma3ForConditionalGeneration", None])
def test_decoders_are_let_pass_under_all_their_names(here, name):
    model(here / "other", architectures=[name] if name else None)
    assert list(settings.faults(config("./other"))) == []


def test_files_that_a_model_lacks_are_named_before_any_job(here):
    for lacking, said in (
        ("model.safetensors", "lacks model.safetensors, and no other weights are read; save it again"),
        ("tokenizer.json", "lacks tokenizer.json, the file of a fast tokenizer; save that of"),
    ):
        model(here / f"without-{lacking}", without=(lacking,))
        (fault,) = settings.faults(config(f"./without-{lacking}"))
        assert fault.startswith(f"model directory without-{lacking} {said}")
    model(here / "small", quantization_config={"quant_method": "gptq"})
    expected = "model directory small has quantised weights (gptq); use a copy in float32 or bfloat16"
    assert list(settings.faults(config("./small"))) == [expected]
    (here / "small/config.json").write_text("{")
    (broken,) = settings.faults(config("./small"))
    assert broken.startswith("model directory small has a config.json that cannot be read (")


def test_an_adapter_without_its_model_says_how_to_merge_it(here):
    (here / "empty/adapter_config.json").write_text("{}")
    (fault,) = settings.faults(config("./empty"))
    assert fault.startswith("model directory empty holds an adapter, as of LoRA, without its model; merge the two (")


def record(path, source):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"source": source}))


def test_the_card_of_another_model_of_the_same_name_is_not_overwritten(here):
    model(here / "one/final")
    model(here / "two/final")
    record(here / "results/card/final/model.json", "./one/final")
    assert list(settings.faults(config("./one/final"))) == []
    assert list(settings.faults(config(f"{here}/one/final"))) == []
    (fault,) = settings.faults(config("./two/final"))
    assert fault.startswith("model = './two/final' would take the place of './one/final' in results/card/final; rename")
    assert fault.endswith("(ln -s) and give that, or remove results/card/final")
    assert list(settings.faults(config("./two/final", "./a.txt"))) == []  # has another name
    (fault,) = settings.faults(config("someone/final"))
    assert fault.startswith("model = 'someone/final' is read as an id of the hub, but results/card/final is of './one/")
    assert fault.endswith("If you mean the hub, remove results/card/final")
    record(here / "results/card/final/model.json", "someone/final")
    assert list(settings.faults(config("someone/final"))) == []


def test_a_directory_and_a_model_of_the_configuration_do_not_take_each_others_place(here):
    model(here / "bloom")
    record(here / "results/card/bloom/model.json", "./bloom")
    assert list(settings.faults(config("./bloom"))) == []
    assert len(list(settings.faults(config("bloom")))) == 1
    record(here / "results/card/bloom/model.json", "./results/models/bloom/seed0/step3")
    assert list(settings.faults(config("bloom"))) == []
    assert len(list(settings.faults(config("./bloom")))) == 1


def test_another_text_of_the_same_name_is_not_overwritten(here):
    (here / "data/a.txt").write_text("text")
    record(here / "results/texts/a-txt.json", "./a.txt")
    assert list(settings.faults(config("./my-model", "./a.txt"))) == []
    (fault,) = settings.faults(config("./my-model", "./data/a.txt"))
    assert fault.startswith("text = './data/a.txt' would take the place of './a.txt' in results/texts/a-txt; rename")
    assert fault.endswith("or remove results/texts/a-txt*")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("./nothing.txt", "text = './nothing.txt' is not there, seen from {here}; give a directory or a file of the"),
        ("./b.pdf", "text = './b.pdf' is a file; give a directory or a file of the kinds .txt or .jsonl in its place"),
        ("texts.jsonl", "text = 'texts.jsonl' is here, but the path of a directory or a file of the kinds .txt or"),
        (
            "mytext.txt",
            "text = 'mytext.txt' is not there; the path of a file starts with /, . or ~, as in text=./mytext",
        ),
        ("./empty", "text = './empty' holds no file of the kinds .txt or .jsonl, and no data set such as .parquet or "),
    ],
)
def test_a_text_that_cannot_be_meant_is_one_line(here, text, said):
    assert next(settings.faults(config(text=text))).startswith(said.format(here=here))


def test_a_stamp_tells_a_file_from_its_successor_of_the_same_size(here):
    file = here / "a.txt"
    before = settings.stamp([file])
    os.utime(file, ns=(1, 1))
    assert settings.stamp([file]) == [(str(file), 4, 1)] != before


def test_the_files_of_a_model_are_its_own_and_no_notes(here):
    directory = here / "my-model"
    (directory / "NOTES.md").write_text("of mine")
    (directory / "results").mkdir()
    (directory / "results/a.json").write_text("{}")
    expected = [directory / name for name in ("config.json", "model.safetensors", "tokenizer.json")]
    assert settings.files_of_model(directory) == expected
    assert settings.MODEL == hub.WANTED


def test_the_files_of_a_text_are_those_that_are_read(here):
    (here / "models/m/deep.txt").write_text("text")
    assert settings.files_of_text(here / "a.txt") == [here / "a.txt"]
    assert settings.files_of_text(here) == [here / "a.txt", here / "models/m/deep.txt", here / "texts.jsonl"]
    assert settings.files_of_text(here / "data") == [here / "data/train.parquet"]
