"""GGUF files that are damaged, or that would be opened as another model than they hold: each is refused in one line."""

import struct

import numpy as np
import pytest

from position_card.models import opening
from tests.ggufs import small, tensors, write
from tests.refusals import refused


@pytest.fixture(scope="module")
def model():
    return small("llama")


def number_at(place, value):
    return lambda data: data[:place] + struct.pack("<Q", value) + data[place + 8 :]


def longer_array(data):
    """Say that the list of token types, numbers of four bytes, has a trillion of them."""
    place = data.index(b"tokenizer.ggml.token_type") + len(b"tokenizer.ggml.token_type") + 8
    return number_at(place, 10**12)(data)


def damaged(change):
    """Write a whole file with its bytes changed."""

    def spoil(file, model):
        file.write_bytes(change(write(file, model, "llama").read_bytes()))

    return spoil


def said(values):
    """Write values of the header beside those of the model, or in their place."""
    return lambda file, model: write(file, model, "llama", **values)


def held(changes):
    """Write other tensors beside those of the model, or in their place; a value of Ellipsis removes one."""

    def spoil(file, model):
        every = tensors(model, "llama") | changes
        write(file, model, "llama", {name: tensor for name, tensor in every.items() if tensor is not ...})

    return spoil


def narrow(file, model):
    write(file, small("gemma3", head_dim=16, query_pre_attn_scalar=16), "gemma3")


# What it is, how the file is written, and what the one line names beside it.
CASES = {
    "empty": (damaged(lambda data: b""), ""),
    "another kind of file": (damaged(lambda data: b"GGML" + data[4:]), ""),
    "a version of the future": (damaged(lambda data: data[:4] + struct.pack("<I", 99) + data[8:]), 99),
    "only the first half": (damaged(lambda data: data[: len(data) // 2]), ""),
    "cut inside the header": (damaged(lambda data: data[:300]), ""),
    "the last byte missing": (damaged(lambda data: data[:-4096]), ""),
    "a trillion tensors": (damaged(number_at(8, 10**12)), ""),
    "a trillion keys": (damaged(number_at(16, 10**12)), ""),
    "a list beyond the end": (damaged(longer_array), ""),
    "bytes that mean nothing": (damaged(lambda data: data[:24] + np.random.default_rng(0).bytes(4000)), ""),
    # what would be left out where it is opened
    "a rotation of a scaled type": (said({"llama.rope.scaling.type": "linear"}), "rope.scaling"),
    "a rotation scaled without a type": (said({"llama.rope.scaling.factor": 4.0}), "rope.scaling"),
    "more blocks than there are": (said({"block_count": 3}), "counts 3 (block_count)"),
    "fewer blocks than there are": (said({"block_count": 1}), "counts 1 (block_count)"),
    "four million blocks": (said({"block_count": 4_000_000}), "counts 4000000 (block_count)"),
    "one of several parts": (said({"split.count": 3}), "3 parts"),
    "another scale of attention": (said({"llama.attention.scale": 0.5}), "attention.scale = 0.5"),
    "another scale of logits": (said({"llama.logit_scale": 2.0}), "logit_scale = 2.0"),
    # tensors that are not those of the model
    "factors of a rotation": (held({"rope_freqs.weight": np.ones(4)}), "rope.scaling"),
    "a bias that the model has not": (held({"blk.0.attn_q.bias": np.ones(32)}), "blk.0.attn_q.bias"),
    "sinks": (held({"blk.1.attn_sinks.weight": np.ones(4)}), "blk.1.attn_sinks.weight"),
    "a matrix missing": (held({"blk.1.ffn_up.weight": ...}), "model.layers.1.mlp.up_proj.weight"),
    "the last norm missing": (held({"output_norm.weight": ...}), "model.norm.weight"),
    "a matrix of another shape": (held({"blk.0.ffn_up.weight": np.ones((32, 32))}), "(32, 32)"),
    "heads whose scale is not in the file": (narrow, "heads of 16"),
}


@pytest.mark.parametrize(("spoil", "named"), CASES.values(), ids=CASES)
def test_a_file_that_is_not_what_it_says_ends_in_one_line(spoil, named, model, tmp_path):
    file = tmp_path / "small.gguf"
    spoil(file, model)
    with refused(f"GGUF file {file} ", named):
        opening.require_decoder(file)


@pytest.mark.parametrize("name", ["folder.gguf", "nowhere.gguf"])
def test_a_name_that_is_no_file_is_refused(name, tmp_path):
    (tmp_path / "folder.gguf").mkdir()
    with refused(tmp_path / name, "config.json"):
        opening.require_decoder(tmp_path / name)
