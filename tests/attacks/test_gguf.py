"""GGUF files that are damaged, or that would be opened as another model than they hold: each is refused in one line."""

import shutil
import struct

import numpy as np
import pytest

from position_bias.language_models import opening
from tests.ggufs import small, tensors, write
from tests.refusals import refused


@pytest.fixture(scope="module")
def model():
    return small("llama")


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    return write(tmp_path_factory.mktemp("whole") / "small.gguf", model, "llama")


def number_at(place, value):
    return lambda data: data[:place] + struct.pack("<Q", value) + data[place + 8 :]


def longer_array(data):
    """Say that the list of token types, numbers of four bytes, has a trillion of them."""
    place = data.index(b"tokenizer.ggml.token_type") + len(b"tokenizer.ggml.token_type") + 8
    return number_at(place, 10**12)(data)


DAMAGES = {
    "empty": lambda data: b"",
    "another kind of file": lambda data: b"GGML" + data[4:],
    "a version of the future": lambda data: data[:4] + struct.pack("<I", 99) + data[8:],
    "only the first half": lambda data: data[: len(data) // 2],
    "cut inside the header": lambda data: data[:300],
    "the last byte missing": lambda data: data[:-4096],
    "a trillion tensors": number_at(8, 10**12),
    "a trillion keys": number_at(16, 10**12),
    "a list beyond the end": longer_array,
    "bytes that mean nothing": lambda data: data[:24] + bytes(np.random.default_rng(0).integers(0, 256, 4000).tolist()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused(damage, whole, tmp_path):
    file = tmp_path / "small.gguf"
    file.write_bytes(DAMAGES[damage](whole.read_bytes()))
    with refused(f"GGUF file {file} "):
        opening.require_decoder(file)


MISREAD = {
    "a scaled rotation": ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}, "scaled rotation"),
    "a rotation scaled without a type": ({"llama.rope.scaling.factor": 4.0}, "scaled rotation"),
    "more blocks than there are": ({"block_count": 3}, "counts 3 (block_count)"),
    "fewer blocks than there are": ({"block_count": 1}, "counts 1 (block_count)"),
    "four million blocks": ({"block_count": 4_000_000}, "counts 4000000 (block_count)"),
    "one of several parts": ({"split.count": 3}, "3 parts"),
    "another scale of attention": ({"llama.attention.scale": 0.5}, "attention.scale = 0.5"),
    "another scale of logits": ({"llama.logit_scale": 2.0}, "logit_scale = 2.0"),
}


@pytest.mark.parametrize("case", MISREAD)
def test_what_would_be_left_out_is_refused(case, model, tmp_path):
    values, named = MISREAD[case]
    file = write(tmp_path / "small.gguf", model, "llama", **values)
    with refused(f"GGUF file {file} ", named):
        opening.require_decoder(file)


TENSORS = {
    "factors of a rotation": ({"rope_freqs.weight": np.ones(4)}, [], "scaled rotation"),
    "a bias that the model has not": ({"blk.0.attn_q.bias": np.ones(32)}, [], "blk.0.attn_q.bias"),
    "sinks": ({"blk.1.attn_sinks.weight": np.ones(4)}, [], "blk.1.attn_sinks.weight"),
    "a matrix missing": ({}, ["blk.1.ffn_up.weight"], "model.layers.1.mlp.up_proj.weight"),
    "the last norm missing": ({}, ["output_norm.weight"], "model.norm.weight"),
    "a matrix of another shape": ({"blk.0.ffn_up.weight": np.ones((32, 32))}, [], "(32, 32)"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_that_are_not_those_of_the_model_are_refused(case, model, tmp_path):
    others, without, named = TENSORS[case]
    held = {name: tensor for name, tensor in tensors(model, "llama").items() if name not in without} | others
    file = write(tmp_path / "small.gguf", model, "llama", held)
    with refused(f"GGUF file {file} ", named):
        opening.require_decoder(file)


def test_heads_whose_scale_is_not_in_the_file_are_refused(tmp_path):
    gemma = small("gemma3", head_dim=16, query_pre_attn_scalar=16)
    file = write(tmp_path / "small.gguf", gemma, "gemma3")
    with refused(file, "heads of 16"):
        opening.require_decoder(file)


def test_a_name_that_is_no_file_is_refused(whole, tmp_path):
    shutil.copytree(whole.parent, tmp_path / "folder.gguf")
    for place in (tmp_path / "folder.gguf", tmp_path / "nowhere.gguf"):
        with refused(place, "config.json"):
            opening.require_decoder(place)
