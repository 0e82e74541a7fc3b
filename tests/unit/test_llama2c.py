"""The converter of llama2.c's files, held against that program's way of computing, in float64."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from tools import llama2c

WIDTH, HIDDEN, LAYERS, HEADS, KEY_HEADS, VOCABULARY, CONTEXT = HEADER = (8, 12, 2, 2, 1, 11, 9)
SIZE = WIDTH // HEADS
SHAPES = {
    "embeddings": (VOCABULARY, WIDTH),
    "norm before attention": (LAYERS, WIDTH),
    "queries": (LAYERS, WIDTH, WIDTH),
    "keys": (LAYERS, SIZE * KEY_HEADS, WIDTH),
    "values": (LAYERS, SIZE * KEY_HEADS, WIDTH),
    "output": (LAYERS, WIDTH, WIDTH),
    "norm before MLP": (LAYERS, WIDTH),
    "gate": (LAYERS, HIDDEN, WIDTH),
    "down": (LAYERS, WIDTH, HIDDEN),
    "up": (LAYERS, HIDDEN, WIDTH),
    "last norm": (WIDTH,),
    "angles": (2, CONTEXT, SIZE // 2),
}


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def written(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    path.write_bytes(struct.pack("7i", *HEADER) + b"".join(array.tobytes() for array in arrays.values()))
    return path


def normalised(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weights


def rotated(x: np.ndarray) -> np.ndarray:
    """Neighbouring entries of [n, heads, size] as one complex number, turned by position times frequency."""
    pairs = x[..., 0::2] + 1j * x[..., 1::2]
    frequencies = 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)
    turned = pairs * np.exp(1j * np.arange(len(x))[:, None, None] * frequencies)
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


def logits(arrays: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    of = {name: array.astype(np.float64) for name, array in arrays.items()}
    x, n = of["embeddings"][tokens], len(tokens)
    for layer in range(LAYERS):
        inner = normalised(x, of["norm before attention"][layer])
        queries = rotated((inner @ of["queries"][layer].T).reshape(n, HEADS, SIZE))
        keys = rotated((inner @ of["keys"][layer].T).reshape(n, KEY_HEADS, SIZE)).repeat(HEADS // KEY_HEADS, 1)
        values = (inner @ of["values"][layer].T).reshape(n, KEY_HEADS, SIZE).repeat(HEADS // KEY_HEADS, 1)
        scores = np.exp(np.einsum("ihd,jhd->hij", queries, keys) / np.sqrt(SIZE)) * np.tri(n)
        attended = np.einsum("hij,jhd->ihd", scores / scores.sum(-1, keepdims=True), values)
        x = x + attended.reshape(n, WIDTH) @ of["output"][layer].T
        inner = normalised(x, of["norm before MLP"][layer])
        gate = inner @ of["gate"][layer].T
        x = x + (gate / (1 + np.exp(-gate)) * (inner @ of["up"][layer].T)) @ of["down"][layer].T
    return normalised(x, of["last norm"]) @ of["embeddings"].T


def test_the_converted_model_computes_as_llama2c_does(tmp_path, arrays):
    model, tokens = llama2c.decoder(written(tmp_path / "model.bin", arrays)), [3, 1, 4, 1, 5, 9, 2]
    found = model(torch.tensor([tokens])).logits[0].detach().numpy()
    np.testing.assert_allclose(found, logits(arrays, tokens), atol=2e-5)
    path = tmp_path / "model.bin"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="its header asks for"):
        llama2c.decoder(path)


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
    with pytest.raises(ValueError, match="twice"):
        llama2c.tokenizer(of_tokens(tmp_path / "tokenizer.bin", [(b"a", -1.0), (b"a", -2.0)]))
