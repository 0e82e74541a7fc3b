"""Models that somebody else made: each fault ends in one line that names the directory, before anything is measured."""

import json
import logging
import os
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models
from transformers import LlamaForCausalLM

from position_bias.language_models import hub, opening, tokens
from position_bias.language_models.files import model_files
from position_bias.language_models.measure import measure
from position_bias.running.runtime import InputError
from tests.ggufs import small

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"


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


def described(**changes):
    """Change config.json; a value of Ellipsis removes the key."""

    def spoil(directory):
        file = directory / CONFIG
        content = {**json.loads(file.read_text()), **changes}
        file.write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))

    return spoil


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
            save_file(tensors, directory / "decoy.safetensors", {"format": "pt"})
        written(INDEX, json.dumps({"metadata": {}, "weight_map": dict.fromkeys(tensors, target)}))(directory)

    return spoil


def tensors(change):
    """Change the weights in their file: a mapping from names to tensors."""

    def spoil(directory):
        held = load_file(directory / WEIGHTS)
        change(held)
        save_file(held, directory / WEIGHTS, {"format": "pt"})

    return spoil


def header(content, length=None):
    """Write weights whose header is `content`, said to be `length` bytes long."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return written(WEIGHTS, struct.pack("<Q", len(body) if length is None else length) + body)


def both(*spoils):
    def spoil(directory):
        for each in spoils:
            each(directory)

    return spoil


# What it is, how a whole directory is spoiled, and what the one line says.
CASES = {
    # weights that are no safetensors of this directory
    "index to a pickle": (indexed("pytorch_model.bin"), r"names 'pytorch_model\.bin', which is no \*\.safetensors"),
    "index to a pickle, with a decoy": (indexed("weights.bin", decoy=True), "which is no"),
    "index out of the directory": (indexed("../outside.safetensors"), "names '../outside.safetensors', which is no"),
    "index to an absolute path": (
        both(indexed("x.bin"), written(INDEX, '{"weight_map": {"a": "/model.safetensors"}}')),
        "names '/model.safetensors', which is no",
    ),
    "index into a folder": (indexed("inner/model.safetensors"), "names 'inner/model.safetensors', which is no"),
    "a pickle called safetensors": (indexed("model-00001.safetensors"), r"a damaged model-00001\.safetensors"),
    "other weights named": (described(transformers_weights=INDEX), r"names other weights \(transformers_weights\)"),
    "other weights named, nested": (described(text_config={"transformers_weights": "x"}), "names other weights"),
    "an adapter beside the model": (written("adapter_config.json", "{}"), "holds an adapter"),
    # models that the files do not describe
    "biases that the configuration denies": (described(attention_bias=False), "has weights that its model does not"),
    "fewer layers than the file": (described(num_hidden_layers=1), "has weights that its model does not"),
    "more layers than the file": (described(num_hidden_layers=3), "lacks weights"),
    "a tensor more": (tensors(lambda held: held.update(extra=torch.ones(2))), "has weights that its model does not"),
    "a tensor less": (tensors(lambda held: held.pop("model.norm.weight")), r"lacks weights: model\.norm\.weight"),
    "a tensor of another shape": (
        tensors(lambda held: held.update({"model.norm.weight": torch.ones(8)})),
        r"holds model\.norm\.weight with the shape \(8,\), where config\.json describes \(16,\)",
    ),
    "a tensor with the prefix and without": (
        tensors(lambda held: held.update({"layers.0.mlp.up_proj.weight": torch.ones(24, 16)})),
        r"has model\.layers\.0\.mlp\.up_proj\.weight twice, as layers\.0\S* and as model\.layers\.0\S*; remove one",
    ),
    "a tensor with the prefix twice": (
        tensors(lambda held: held.update({"model.model.norm.weight": torch.ones(16)})),
        r"has model\.norm\.weight twice, as model\.model\.norm\.weight and as model\.norm\.weight; remove one",
    ),
    "weights in integers": (
        tensors(lambda held: held.update({"model.norm.weight": torch.ones(16, dtype=torch.int8)})),
        "has model.norm.weight as I8, not as BF16, F16, F32, F64; use a copy in one of them",
    ),
    "weights in eight bits": (
        tensors(lambda held: held.update({"model.norm.weight": torch.ones(16).to(torch.float8_e4m3fn)})),
        "has model.norm.weight as F8_E4M3, not as",
    ),
    # files of weights that are none
    "a pointer of Git LFS": (
        written(WEIGHTS, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
        r"a Git LFS pointer in place of model\.safetensors; fetch the file itself \(git lfs pull\)",
    ),
    "empty weights": (written(WEIGHTS, b""), r"a damaged model\.safetensors"),
    "a header longer than the file": (header({}, 10**15), r"a damaged model\.safetensors"),
    "a header nested deeply": (header(b'{"a":' * 5000 + b"1" + b"}" * 5000), r"a damaged model\.safetensors"),
    "weights cut short": (
        lambda directory: (directory / WEIGHTS).write_bytes((directory / WEIGHTS).read_bytes()[:-9]),
        r"a damaged model\.safetensors",
    ),
    # sizes that no machine has
    "a billion layers": (described(num_hidden_layers=10**9), "has 1000000000 layers by config.json, but"),
    "a width of a million": (described(hidden_size=10**6, head_dim=4), "with the shape"),
    "seven billion parameters over a small file": (
        described(hidden_size=4096, intermediate_size=11008, head_dim=1024),
        "with the shape",
    ),
    "a vocabulary of a billion": (described(vocab_size=10**9), "with the shape"),
    # configurations that are none
    "a list": (written(CONFIG, "[]"), "holds no keys and values"),
    "nothing": (written(CONFIG, "null"), "holds no keys and values"),
    "nested deeply": (written(CONFIG, '{"a":' * 100_000 + "1" + "}" * 100_000), "cannot be read"),
    "no UTF-8": (written(CONFIG, b'{"model_type": "\xff"}'), "cannot be read"),
    "a type that is a number": (described(model_type=3), "with model_type = 3, which is not of the kind str"),
    "heads of a word": (described(num_attention_heads="four"), "with num_attention_heads = four"),
    "no heads": (described(num_attention_heads=0), "with num_attention_heads = 0, which is no positive"),
    "heads that do not divide the width": (described(num_attention_heads=3, head_dim=...), ""),
    "an activation that does not exist": (described(hidden_act="swoosh"), "cannot be opened"),
    "an activation that is a number": (described(hidden_act=1), "with hidden_act = 1"),
    "a rotation that does not exist": (described(rope_parameters={"rope_type": "no"}, rope_scaling=...), ""),
    "a precision that does not exist": (described(dtype="float7"), "cannot be opened"),
    "kernels of the hub": (described(_attn_implementation="evil/kernel"), "asks for code of the hub"),
    "kernels of the hub, nested": (described(text_config={"attn_implementation": "a/b"}), "asks for code of the hub"),
    "quantised by a word": (described(quantization_config="4 bits"), "with quantization_config = 4 bits"),
    "an index that is a list": (both(indexed("x.bin"), written(INDEX, "[]")), "holds no keys and values"),
    "an index without files": (both(indexed("x.bin"), written(INDEX, '{"weight_map": {}}')), "names no files"),
    "an index of numbers": (both(indexed("x.bin"), written(INDEX, '{"weight_map": {"a": 1}}')), "names no files"),
    "an index of a name that no file can have": (
        both(indexed("x.bin"), written(INDEX, json.dumps({"weight_map": {"a": "x" * 300 + ".safetensors"}}))),
        "lacks x{300}",
    ),
    "an index of a name in two lines": (
        both(indexed("x.bin"), written(INDEX, json.dumps({"weight_map": {"a": "x\ny.safetensors"}}))),
        r"names 'x\\ny\.safetensors', which is no",
    ),
    "a number in two lines": (described(num_attention_heads="four\nfive"), "with num_attention_heads = four five"),
    "a word in two lines": (written(CONFIG, '"a\\nb"'), r"holds no keys and values, but 'a\\nb'"),
    "generation settings that are a list": (written("generation_config.json", "[1]"), "cannot be opened"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_model_that_is_not_what_it_says_ends_in_one_line(case, directory):
    spoil, said = CASES[case]
    spoil(directory)
    with pytest.raises(InputError) as raised:
        opening.open_decoder(directory)
    line = str(raised.value)
    assert line.startswith(f"model directory {directory} ")
    assert "\n" not in line
    assert len(line) < 700 + len(str(directory))
    assert re.search(said, line), line


def test_what_is_missing_is_said_once(directory, caplog):
    """The library's own report has many lines."""
    tensors(lambda held: held.pop("model.norm.weight"))(directory)
    library = logging.getLogger("transformers")
    library.addHandler(caplog.handler)
    with pytest.raises(InputError, match="lacks weights"):
        opening.open_decoder(directory)
    library.removeHandler(caplog.handler)
    assert caplog.text == ""


@pytest.mark.parametrize("changes", [{"return_dict": False}, {"quantization_config": {}}])
def test_settings_that_mean_nothing_here_change_nothing(changes, whole, directory):
    described(**changes)(directory)
    found, expected = (measure(opening.open_decoder(place), np.ones((2, 9), int), 18) for place in (directory, whole))
    np.testing.assert_array_equal(found.influence, expected.influence)


def tokenizer(**changes):
    """Change a part of tokenizer.json."""

    def spoil(directory):
        file = directory / "tokenizer.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    return spoil


def template(*single):
    pair = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    return {"type": "TemplateProcessing", "single": list(single), "pair": pair, "special_tokens": {}}


BEGIN = {"SpecialToken": {"id": "<s>", "type_id": 0}}
TOKENIZERS = {
    "a template that names a token that is none": (tokenizer(post_processor=template(BEGIN)), "cannot be opened"),
    "a template that drops the text": (tokenizer(post_processor=template()), "drops or changes a text"),
    "words without one for what is unknown": (
        tokenizer(model={"type": "WordLevel", "vocab": {"b": 0}, "unk_token": "[UNK]"}),
        "Missing",
    ),
    "a list": (written("tokenizer.json", "[]"), ""),
    "no model": (written("tokenizer.json", '{"version": "1.0"}'), ""),
    "settings that are a list": (written("tokenizer_config.json", "[]"), ""),
    "settings of a class that does not exist": (written("tokenizer_config.json", '{"tokenizer_class": 3}'), ""),
}


@pytest.mark.parametrize("case", TOKENIZERS)
def test_a_tokenizer_that_is_none_ends_in_one_line(case, directory):
    spoil, said = TOKENIZERS[case]
    spoil(directory)
    with pytest.raises(InputError, match=rf"^model directory {directory} has a tokenizer that [^\n]*{said}[^\n]*$"):
        opening.open_tokenizer(directory)


def test_a_text_that_a_tokenizer_cannot_take_apart_ends_in_one_line(directory):
    tokenizer(model={"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"})(directory)
    opened, _ = opening.open_tokenizer(directory)
    with pytest.raises(InputError, match=r"^the tokenizer fails on 'b\\n' \([^\n]*\); use that of the model$"):
        list(tokens.windows(["a", "b\n"], opened, 1, "every"))


BESIDE = ["consolidated.safetensors", "model-00001-of-00002.safetensors", "a.safetensors", "original/model.safetensors"]


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("name", [*BESIDE, "pytorch_model.bin"])
def test_weights_beside_the_model_are_neither_counted_nor_read(name, sharded, directory):
    tensors = load_file(directory / WEIGHTS)
    if sharded:
        (directory / WEIGHTS).rename(directory / "part.safetensors")
        written(INDEX, json.dumps({"metadata": {}, "weight_map": dict.fromkeys(tensors, "part.safetensors")}))(
            directory
        )
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


@pytest.mark.parametrize("shard", [0, 1, -1])
def test_a_changed_shard_makes_another_model(shard, whole, tmp_path):
    LlamaForCausalLM.from_pretrained(whole).save_pretrained(tmp_path, max_shard_size="5KB")
    shards = model_files(tmp_path).shards
    assert len(shards) > 2
    before = hub.stamp(tmp_path)
    os.utime(shards[shard], ns=(1, 1))
    changed = {
        name for (name, *_), old in zip(hub.stamp(tmp_path), before, strict=True) if old not in hub.stamp(tmp_path)
    }
    assert changed == {shards[shard].name}


@pytest.mark.parametrize("most", [1, 4, 8])
def test_a_model_that_takes_too_few_tokens_is_refused(most, directory):
    described(max_position_embeddings=most)(directory)
    with pytest.raises(InputError, match=f"takes {most} tokens, but a measurement needs prompts of at least 9"):
        opening.lengths(opening.require_decoder(directory), [64])


def test_a_pipe_in_place_of_a_file_is_refused_unread(whole, directory):
    for name in (CONFIG, WEIGHTS):
        (directory / name).unlink()
        os.mkfifo(directory / name)
        with pytest.raises(InputError, match=f"lacks {name}"):
            model_files(directory)
        (directory / name).unlink()
        shutil.copy(whole / name, directory / name)


NO_MODELS = {
    "a device": "/dev/null",
    "a name of 300 characters": "x" * 300,
    "a path of 5,000 characters": "/x" * 2500,
    "a path with a zero byte": "/x\0y",
    "a file of the system": "/etc/hostname",
    "a GGUF file of 300 characters": "x" * 300 + ".gguf",
    "nowhere": "/nowhere/at/all",
}


@pytest.mark.parametrize("case", NO_MODELS)
def test_what_is_no_directory_of_a_model_ends_in_one_line(case):
    with pytest.raises(InputError, match=r"^model [^\n]*$"):
        opening.open_decoder(NO_MODELS[case])
