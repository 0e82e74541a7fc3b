"""Models that somebody else made: each fault ends in one line that names the directory, before anything is measured."""

import json
import logging
import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models
from transformers import BertConfig, BertModel, MambaConfig, MambaForCausalLM, T5Config, T5Model

from position_card.measures.measure import measure_decoder
from position_card.models import opening
from position_card.models.files import model_files
from position_card.texts.prompts import windows
from tests.ggufs import small
from tests.refusals import refused

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
FORMAT = {"format": "pt"}
SMALL = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
NORM, UP = "model.norm.weight", "mlp.up_proj.weight"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    size = {"hidden_size": 16, "intermediate_size": 24, "head_dim": 4, "max_position_embeddings": 32}
    small("llama", attention_bias=True, **size).save_pretrained(directory)
    words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    words.save(str(directory / "tokenizer.json"))
    return directory


@pytest.fixture
def directory(whole, tmp_path):
    """A copy of the whole model, to be spoiled."""
    return Path(shutil.copytree(whole, tmp_path / "model"))


def changed(name, changes):
    """Change keys of a file of JSON; a value of Ellipsis removes its key."""

    def spoil(directory):
        content = json.loads((directory / name).read_text()) | changes
        (directory / name).write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))

    return spoil


def described(**changes):
    return changed(CONFIG, changes)


def tokenizer(**changes):
    return changed("tokenizer.json", changes)


def written(name, content):
    def spoil(directory):
        file = directory / name
        file.unlink(missing_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    return spoil


def indexed(target, decoy=False):
    """Put an index beside the weights that maps every tensor to `target`, which holds a pickle."""

    def spoil(directory):
        tensors = load_file(directory / WEIGHTS)
        place = directory / target
        place.parent.mkdir(parents=True, exist_ok=True)
        torch.save(tensors, place)  # noqa: TID251, which the library must refuse
        (directory / WEIGHTS).unlink()
        if decoy:
            save_file(tensors, directory / "decoy.safetensors", FORMAT)
        written(INDEX, json.dumps({"metadata": {}, "weight_map": dict.fromkeys(tensors, target)}))(directory)

    return spoil


def tensors(changes):
    """Change the weights in their file; a value of Ellipsis removes the tensor."""

    def spoil(directory):
        held = load_file(directory / WEIGHTS) | changes
        save_file({name: tensor for name, tensor in held.items() if tensor is not ...}, directory / WEIGHTS, FORMAT)

    return spoil


def header(content, length=None):
    """Write weights whose header is `content`, said to be `length` bytes long."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return written(WEIGHTS, struct.pack("<Q", len(body) if length is None else length) + body)


def pickled(directory):
    (directory / WEIGHTS).unlink()
    (directory / "pytorch_model.bin").write_bytes(b"not even a pickle")


def another(model):
    """Put another model in its place."""
    return lambda directory: model().save_pretrained(directory)


def pipe(name):
    """Put a pipe in place of a file."""

    def spoil(directory):
        (directory / name).unlink()
        os.mkfifo(directory / name)

    return spoil


def index(content):
    """Write an index in place of the weights."""

    def spoil(directory):
        (directory / WEIGHTS).unlink()
        (directory / INDEX).write_text(content)

    return spoil


LONG = "x" * 300 + ".safetensors"
# What it is, how a whole directory is spoiled, and what the one line names beside the directory.
CASES = {
    # weights that are no safetensors of this directory
    "index to a pickle, with a decoy": (indexed("weights.bin", decoy=True), "'weights.bin', which is no"),
    "index out of the directory": (indexed("../outside.safetensors"), "'../outside.safetensors', which is no"),
    "index into a folder": (indexed("inner/model.safetensors"), "'inner/model.safetensors', which is no"),
    "a pickle called safetensors": (indexed("model-00001.safetensors"), "damaged model-00001.safetensors"),
    "pickled weights alone": (pickled, "pytorch_model.bin"),
    "other weights named": (described(transformers_weights=INDEX), "transformers_weights"),
    "other weights named, nested": (described(text_config={"transformers_weights": "x"}), "transformers_weights"),
    "an adapter beside the model": (written("adapter_config.json", "{}"), "adapter"),
    # models that the files do not describe
    "biases that the configuration denies": (described(attention_bias=False), "self_attn.k_proj.bias"),
    "fewer layers than the file": (described(num_hidden_layers=1), "model.layers.1."),
    "more layers than the file": (described(num_hidden_layers=3), "model.layers.2."),
    "a tensor more": (tensors({"extra": torch.ones(2)}), "extra"),
    "a tensor less": (tensors({NORM: ...}), NORM),
    "a tensor of another shape": (tensors({NORM: torch.ones(8)}), f"{NORM} with the shape (8,), "),
    "a tensor with the prefix and without": (tensors({f"layers.0.{UP}": torch.ones(24, 16)}), f"layers.0.{UP} twice"),
    "a tensor with the prefix twice": (tensors({f"model.{NORM}": torch.ones(16)}), f"{NORM} twice"),
    "weights in integers": (tensors({NORM: torch.ones(16, dtype=torch.int8)}), f"{NORM} as I8"),
    "weights in eight bits": (tensors({NORM: torch.ones(16).to(torch.float8_e4m3fn)}), f"{NORM} as F8_E4M3"),
    # models that are no decoders, or that cannot be measured
    "an encoder": (another(lambda: BertModel(BertConfig(**SMALL, num_attention_heads=2))), "lacks weights"),
    "an encoder with a decoder": (another(lambda: T5Model(T5Config(**SMALL, num_heads=2, d_model=16, d_kv=8))), "'t5'"),
    "no heads of attention": (another(lambda: MambaForCausalLM(MambaConfig(**SMALL, state_size=4))), "'mamba'"),
    "projections in slices": (described(model_type="bloom", slow_but_exact=True, pretraining_tp=2), "slow_but_exact"),
    "quantised weights": (described(quantization_config={"quant_method": "gptq", "bits": 4}), "gptq"),
    # files of weights that are none
    "a pointer of Git LFS": (written(WEIGHTS, "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "LFS"),
    "empty weights": (written(WEIGHTS, b""), WEIGHTS),
    "a header longer than the file": (header({}, 10**15), WEIGHTS),
    "a header nested deeply": (header(b'{"a":' * 5000 + b"1" + b"}" * 5000), WEIGHTS),
    "weights that are a pipe": (pipe(WEIGHTS), WEIGHTS),
    "weights cut short": (lambda of: os.truncate(of / WEIGHTS, (of / WEIGHTS).stat().st_size - 9), WEIGHTS),
    # sizes that no machine has
    "a billion layers": (described(num_hidden_layers=10**9), 10**9),
    "a width of a million": (described(hidden_size=10**6, head_dim=4), 10**6),
    "seven billion parameters over a small file": (described(hidden_size=4096, intermediate_size=11008), 4096),
    "a vocabulary of a billion": (described(vocab_size=10**9), 10**9),
    # configurations that are none
    "a list": (written(CONFIG, "[]"), CONFIG),
    "nothing": (written(CONFIG, "null"), CONFIG),
    "a pipe": (pipe(CONFIG), CONFIG),
    "nested deeply": (written(CONFIG, '{"a":' * 100_000 + "1" + "}" * 100_000), CONFIG),
    "no UTF-8": (written(CONFIG, b'{"model_type": "\xff"}'), CONFIG),
    "a type that is a number": (described(model_type=3), "model_type = 3"),
    "heads of a word": (described(num_attention_heads="four"), "num_attention_heads = four"),
    "no heads": (described(num_attention_heads=0), "num_attention_heads = 0"),
    "heads that do not divide the width": (described(num_attention_heads=3, head_dim=...), ""),
    "an activation that does not exist": (described(hidden_act="swoosh"), "swoosh"),
    "an activation that is a number": (described(hidden_act=1), "hidden_act = 1"),
    "a rotation that does not exist": (described(rope_parameters={"rope_type": "no"}, rope_scaling=...), ""),
    "a precision that does not exist": (described(dtype="float7"), "float7"),
    "kernels of the hub": (described(_attn_implementation="evil/kernel"), "asks for code of the hub"),
    "kernels of the hub, nested": (described(text_config={"attn_implementation": "a/b"}), "asks for code of the hub"),
    "quantised by a word": (described(quantization_config="4 bits"), "quantization_config = 4 bits"),
    "an index that is a list": (index("[]"), INDEX),
    "an index without files": (index('{"weight_map": {}}'), INDEX),
    "an index of numbers": (index('{"weight_map": {"a": 1}}'), INDEX),
    "an index of a name that no file can have": (index(f'{{"weight_map": {{"a": "{LONG}"}}}}'), LONG),
    "an index of a name in two lines": (index('{"weight_map": {"a": "x\\ny.safetensors"}}'), r"'x\ny.safetensors'"),
    "a number in two lines": (described(num_attention_heads="four\nfive"), "num_attention_heads = four five"),
    "a word in two lines": (written(CONFIG, '"a\\nb"'), CONFIG),
    "generation settings that are a list": (written("generation_config.json", "[1]"), ""),
}


@pytest.mark.parametrize(("spoil", "named"), CASES.values(), ids=CASES)
def test_a_model_that_is_not_what_it_says_ends_in_one_line(spoil, named, directory):
    spoil(directory)
    with refused(f"model directory {directory} ", named) as raised:
        opening.open_decoder(directory)
    assert len(str(raised.value)) < 700 + len(str(directory))


def test_code_that_comes_with_a_model_is_not_run(directory, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question was asked"))
    (directory / "remote.py").write_text(f"open({str(directory / 'executed')!r}, 'w')\n")
    described(auto_map={"AutoConfig": "remote.Config", "AutoModelForCausalLM": "remote.Model"})(directory)
    assert opening.open_decoder(directory).config.model_type == "llama"  # the library's own class is taken
    described(model_type="remote")(directory)
    with refused(directory, "'remote'"):
        opening.open_decoder(directory)
    assert not (directory / "executed").exists()


def test_what_is_missing_is_said_once(directory, caplog):
    """The library's own report has many lines."""
    tensors({NORM: ...})(directory)
    library = logging.getLogger("transformers")
    library.addHandler(caplog.handler)
    with refused(NORM):
        opening.open_decoder(directory)
    library.removeHandler(caplog.handler)
    assert caplog.text == ""


@pytest.mark.parametrize("changes", [{"return_dict": False}, {"quantization_config": {}}])
def test_settings_that_mean_nothing_here_change_nothing(changes, whole, directory):
    described(**changes)(directory)
    found, expected = (
        measure_decoder(opening.open_decoder(place), np.ones((2, 9), int), 18) for place in (directory, whole)
    )
    np.testing.assert_array_equal(found.influence, expected.influence)


def template(*single):
    pair = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    return {"type": "TemplateProcessing", "single": list(single), "pair": pair, "special_tokens": {}}


WORDS = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}
BEGIN = {"SpecialToken": {"id": "<s>", "type_id": 0}}
TOKENIZERS = {
    "a template that names a token that is none": (tokenizer(post_processor=template(BEGIN)), ""),
    "a template that drops the text": (tokenizer(post_processor=template()), "a text"),
    "words without one for what is unknown": (tokenizer(model=WORDS | {"vocab": {"b": 0}}), "Missing"),
    "a list": (written("tokenizer.json", "[]"), ""),
    "half of one": (written("tokenizer.json", "{"), ""),
    "no model": (written("tokenizer.json", '{"version": "1.0"}'), ""),
    "settings that are a list": (written("tokenizer_config.json", "[]"), ""),
    "settings of a class that does not exist": (written("tokenizer_config.json", '{"tokenizer_class": 3}'), ""),
}


@pytest.mark.parametrize(("spoil", "named"), TOKENIZERS.values(), ids=TOKENIZERS)
def test_a_tokenizer_that_is_none_ends_in_one_line(spoil, named, directory):
    spoil(directory)
    with refused(f"model directory {directory} has a tokenizer that ", named):
        opening.open_tokenizer(directory)


def test_a_text_that_no_tokenizer_takes_apart_ends_in_one_line(directory):
    tokenizer(model=WORDS)(directory)
    opened, _ = opening.open_tokenizer(directory)
    with refused(r"'b\n'"):
        list(windows(["a", "b\n"], opened, 1, "every"))


BESIDE = ["consolidated.safetensors", "model-00001-of-00002.safetensors", "a.safetensors", "original/model.safetensors"]


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("name", [*BESIDE, "pytorch_model.bin"])
def test_weights_beside_the_model_are_neither_counted_nor_read(name, sharded, directory):
    tensors = load_file(directory / WEIGHTS)
    if sharded:
        (directory / WEIGHTS).rename(directory / "part.safetensors")
        mapping = dict.fromkeys(tensors, "part.safetensors")
        (directory / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": mapping}))
    other = directory / name
    other.parent.mkdir(exist_ok=True)
    if other.suffix == ".bin":
        torch.save(tensors, other)  # noqa: TID251
    else:
        save_file({"other": torch.full((1000,), np.nan)}, other)
    files = model_files(directory)
    assert files.shards == (directory / ("part.safetensors" if sharded else WEIGHTS),)
    assert files.parameters == sum(tensor.numel() for tensor in tensors.values())
    opening.open_decoder(directory)


@pytest.mark.parametrize("most", [1, 4, 8])
def test_a_model_that_takes_too_few_tokens_is_refused(most, directory):
    described(max_position_embeddings=most)(directory)
    with refused(f"takes {most} tokens", "at least 9"):
        opening.lengths(opening.require_decoder(directory), [64])


NO_MODELS = {
    "a device": "/dev/null",
    "a name of 300 characters": "x" * 300,
    "a path of 5,000 characters": "/x" * 2500,
    "a path with a zero byte": "/x\0y",
    "a file of the system": "/etc/hostname",
    "a GGUF file of 300 characters": "x" * 300 + ".gguf",
    "nowhere": "/nowhere/at/all",
}


@pytest.mark.parametrize("place", NO_MODELS.values(), ids=NO_MODELS)
def test_what_is_no_directory_of_a_model_ends_in_one_line(place):
    with refused("model "):
        opening.open_decoder(place)
