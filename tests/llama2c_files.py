"""Models in the files of llama2.c, drawn at random, and that program's way of computing with them, in float64."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Sizes:
    """What the header of a file says, in its order."""

    width: int
    hidden: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int
    context: int

    @property
    def head(self) -> int:
        return self.width // self.heads

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all arrays, in the order of the file."""
        width, layers, keys = self.width, self.layers, self.head * self.key_heads
        return {
            "embeddings": (self.vocabulary, width),
            "norm before attention": (layers, width),
            "queries": (layers, width, width),
            "keys": (layers, keys, width),
            "values": (layers, keys, width),
            "output": (layers, width, width),
            "norm before MLP": (layers, width),
            "gate": (layers, self.hidden, width),
            "down": (layers, width, self.hidden),
            "up": (layers, self.hidden, width),
            "last norm": (width,),
            "angles": (2, self.context, self.head // 2),  # which follow from the rest
        }


def drawn(sizes: Sizes, deviation: float) -> Arrays:
    """Arrays of this deviation from 0, norms from 1."""
    random = np.random.default_rng(0)
    return {
        name: random.normal(float("norm" in name), deviation, shape).astype(np.float32)
        for name, shape in sizes.shapes.items()
    }


def write(path: Path, sizes: Sizes, arrays: Arrays) -> Path:
    header = struct.pack("7i", *vars(sizes).values())
    path.write_bytes(header + b"".join(array.tobytes() for array in arrays.values()))
    return path


def normalised(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weights


def rotated(x: np.ndarray) -> np.ndarray:
    """Neighbouring entries of [n, heads, size] as one complex number, turned by position times frequency."""
    size = x.shape[-1]
    pairs = x[..., 0::2] + 1j * x[..., 1::2]
    frequencies = 10000.0 ** (-np.arange(0, size, 2) / size)
    turned = pairs * np.exp(1j * np.arange(len(x))[:, None, None] * frequencies)
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


def forward(sizes: Sizes, arrays: Arrays, tokens: list[int]) -> tuple[np.ndarray, list[float]]:
    """Logits [n, vocabulary], and in each layer lambda of Eq. 1: attention's share of the residual stream."""
    of = {name: array.astype(np.float64) for name, array in arrays.items()}
    x, n, shared, lambdas = of["embeddings"][tokens], len(tokens), sizes.heads // sizes.key_heads, []
    for layer in range(sizes.layers):
        inner = normalised(x, of["norm before attention"][layer])
        queries, keys, values = (
            (inner @ of[name][layer].T).reshape(n, -1, sizes.head) for name in ("queries", "keys", "values")
        )
        scores = np.einsum("ihd,jhd->hij", rotated(queries), rotated(keys).repeat(shared, 1)) / np.sqrt(sizes.head)
        weights = np.exp(scores) * np.tri(n)
        weights /= weights.sum(-1, keepdims=True)
        read = np.einsum("hij,jhd->ihd", weights, values.repeat(shared, 1)).reshape(n, -1)
        update = read @ of["output"][layer].T
        lambdas.append(float(np.linalg.norm(update) / (np.linalg.norm(x) + np.linalg.norm(update))))
        x = x + update
        inner = normalised(x, of["norm before MLP"][layer])
        gate = inner @ of["gate"][layer].T
        x = x + (gate / (1 + np.exp(-gate)) * (inner @ of["up"][layer].T)) @ of["down"][layer].T
    return normalised(x, of["last norm"]) @ of["embeddings"].T, lambdas
