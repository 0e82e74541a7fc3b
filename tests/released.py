"""A sample of random numbers in place of the released ones of the big models, which no test carries."""

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest


@dataclass(frozen=True)
class Released:
    """Random numbers in the shape of the released ones, as tables and as the authors' tree of configurations."""

    tables: Path
    tree: Path
    mixing: dict  # (model, dataset) -> lambda [L]
    base: dict  # (model, dataset) -> [L, H], float32
    diagonal: dict

    def copy(self, kind, folder):
        """A copy of the tables or of the tree that a test may damage."""
        return Path(shutil.copytree(getattr(self, kind), folder / kind))


@pytest.fixture(scope="session")
def released_sample(tmp_path_factory):
    """Nothing in it was measured; not to be changed."""
    rng = np.random.default_rng(0)
    root = tmp_path_factory.mktemp("released")
    sample = Released(root / "tables", root / "tree", {}, {}, {})
    for name, (layers, heads, *_) in RELEASED_SIZES.items():
        for dataset in ("fineweb-edu", "dclm", "wikipedia"):
            key = name, dataset
            sample.mixing[key] = np.append(rng.uniform(0, 1, layers - 1), 1e-05)  # which YAML takes for a word
            sample.base[key] = rng.normal(0, 50, (layers, heads)).astype(np.float32)
            sample.diagonal[key] = rng.normal(0, 10, (layers, heads)).astype(np.float32)
    write_tables(sample)
    write_tree(sample)
    return sample


RELEASED_SIZES = {  # layers, heads, head_dim, and the name in the authors' tree
    "falcon-rw-7b": (36, 64, 64, "falcon-rw-7b"),
    "mpt-7b": (32, 32, 128, "mpt-7b"),
    "mpt-30b": (48, 64, 112, "mpt-30b"),
    "bloom-7b1": (30, 32, 128, "bloom-7b1"),
    "bloom-176b": (70, 112, 128, "bloom"),
}


def write_tables(sample):
    mixing, content = ["model,dataset,layer,lambda"], ["model,dataset,layer,head,base,diagonal"]
    for (model, dataset), values in sample.mixing.items():
        mixing += [f"{model},{dataset},{layer},{value!r}" for layer, value in enumerate(values.tolist())]
        base, diagonal = sample.base[model, dataset], sample.diagonal[model, dataset]
        content += [
            f"{model},{dataset},{layer},{head},{base[layer, head]:.9g},{diagonal[layer, head]:.9g}"
            for layer, head in np.ndindex(*base.shape)
        ]
    models = ["model,layers,heads,head_dim"]
    models += [f"{name},{layers},{heads},{width}" for name, (layers, heads, width, _) in RELEASED_SIZES.items()]
    sample.tables.mkdir()
    (sample.tables / "lambda.csv").write_text("\n".join(mixing) + "\n")
    (sample.tables / "content.csv.gz").write_bytes(gzip.compress(("\n".join(content) + "\n").encode()))
    (sample.tables / "models.csv").write_text("\n".join(models) + "\n")


def write_tree(sample):
    for (model, dataset), mixing in sample.mixing.items():
        layers, heads, _, name = RELEASED_SIZES[model]
        slopes = [2 ** (-8 * head / heads) for head in range(1, heads + 1)]
        path = sample.tree / f"config/rollout/alibi/all_content/{dataset}/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"""sequence_length: 256
num_layers: {layers}

mask_config:
  mask_type: "causal"
  window_size: null
attention_config:
  num_heads: {heads}
  alibi_slopes: [{slopes}]
  head_weights: null
  softmax_temperature: 1.0
content_config:
  diagonal_scores: {sample.diagonal[model, dataset].astype(float).tolist()}
  base_scores: {sample.base[model, dataset].astype(float).tolist()}
lambda_schedule_config:
  schedule_type: "custom"
  lambdas_custom: {mixing.tolist()}
"""
        )
