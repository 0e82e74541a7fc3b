"""The converter of llama2.c's files, held against that program's way of computing, in float64."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.llama2c_files import Sizes, drawn, forward, write
from tools import llama2c

SIZES = Sizes(width=8, hidden=12, layers=2, heads=2, key_heads=1, vocabulary=11, context=9)


def test_the_converted_model_computes_as_llama2c_does(tmp_path):
    arrays, tokens = drawn(SIZES, deviation=1), [3, 1, 4, 1, 5, 9, 2]
    model = llama2c.decoder(write(tmp_path / "model.bin", SIZES, arrays))
    found = model(torch.tensor([tokens])).logits[0].detach().numpy()
    np.testing.assert_allclose(found, forward(SIZES, arrays, tokens)[0], atol=2e-5)


def test_a_file_of_another_length_than_its_header_says_is_refused(tmp_path):
    path = write(tmp_path / "model.bin", SIZES, drawn(SIZES, deviation=1))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="its header asks for"):
        llama2c.decoder(path)


@pytest.mark.parametrize(
    "header", [(8, 8, 1), (8, 8, 1, 0, 1, 4, 4), (8, 8, 1, 2, 2, -4, 4), (8, 8, 1, 3, 1, 4, 4), (0,) * 7]
)
def test_a_header_without_sizes_is_refused(header, tmp_path):
    (tmp_path / "model.bin").write_bytes(struct.pack(f"{len(header)}i", *header) + bytes(1600))
    (tmp_path / "model.bin").write_bytes((tmp_path / "model.bin").read_bytes()[: 12 if len(header) < 7 else None])
    with pytest.raises(ValueError, match=r"its header \[.*\] is not that of a model"):
        llama2c.decoder(tmp_path / "model.bin")


@pytest.mark.parametrize("token", [struct.pack("fi", 0, -8) + b"x" * 8, struct.pack("fi", 0, 3) + b"x", b"x" * 5])
def test_a_token_of_another_length_than_is_said_is_refused(token, tmp_path):
    (tmp_path / "tokenizer.bin").write_bytes(struct.pack("i", 5) + token)
    with pytest.raises(ValueError, match="it ends within a token, or one has a length below 0"):
        llama2c.tokenizer(tmp_path / "tokenizer.bin")


def of_tokens(path: Path, pieces: list[tuple[bytes, float]]) -> Path:
    special = [(b"<unk>", 0.0), (b"\n<s>\n", 0.0), (b"\n</s>\n", 0.0), *((bytes([value]), 0.0) for value in range(256))]
    entries = (struct.pack("fi", score, len(piece)) + piece for piece, score in [*special, *pieces])
    path.write_bytes(struct.pack("i", 9) + b"".join(entries))
    return path


def test_pairs_are_merged_by_score_and_what_is_no_piece_goes_by_bytes(tmp_path):
    pieces = [(b"ab", -1.0), (b"bc", 0.0), (b" a", -2.0), (b" ", -3.0), (b"a", -4.0), (b"b", -5.0), (b"c", -6.0)]
    tokenizer = llama2c.tokenizer(of_tokens(tmp_path / "tokenizer.bin", pieces))
    assert tokenizer.convert_ids_to_tokens(tokenizer("abc").input_ids) == ["<s>", "▁a", "bc"]
    assert tokenizer.convert_ids_to_tokens(tokenizer("b!").input_ids) == ["<s>", "▁", "b", "<0x21>"]
    assert tokenizer.decode(tokenizer("abc b!").input_ids, skip_special_tokens=True) == "abc b!"


def test_a_token_that_is_named_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="twice"):
        llama2c.tokenizer(of_tokens(tmp_path / "tokenizer.bin", [(b"a", -1.0), (b"a", -2.0)]))
