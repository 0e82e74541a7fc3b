"""What the models of config/paper.yaml take, for the table of docs/paper-scale.md: python tools/paper_scale.py

It is counted by `language_models.cost` on models without values, built from the sizes below; nothing is fetched. The
count is of FEW and of MORE layers, since each further layer takes as much as the one before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from snakemake.utils import update_config
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from position_bias.language_models import cost

ROOT = Path(__file__).parents[1]
FEW, MORE = 2, 4
SPEED = 1e14  # operations a second: a third of what is stated for an A100 in bfloat16
FALCON = {"alibi": True, "bias": True, "multi_query": False, "parallel_attn": False}
GROUPED = {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
PHI = {"num_attention_heads": 40, "num_key_value_heads": 10, "pad_token_id": 0}
ARCHITECTURES: Mapping[str, tuple[str, int, dict[str, Any]]] = {  # model -> its type, its layers, and all else
    "falcon-rw-7b": ("falcon", 36, {"hidden_size": 4096, "num_attention_heads": 64, "vocab_size": 65024, **FALCON}),
    "mpt-7b": ("mpt", 32, {"d_model": 4096, "n_heads": 32, "vocab_size": 50432}),
    "mpt-30b": ("mpt", 48, {"d_model": 7168, "n_heads": 64, "vocab_size": 50432}),
    "bloom-7b1": ("bloom", 30, {"hidden_size": 4096, "n_head": 32, "vocab_size": 250880}),
    "bloom-176b": ("bloom", 70, {"hidden_size": 14336, "n_head": 112, "vocab_size": 250880}),
    "llama-3.1-8b": ("llama", 32, {"hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256, **GROUPED}),
    "phi-4": ("phi3", 40, {"hidden_size": 5120, "intermediate_size": 17920, "vocab_size": 100352, **PHI}),
    "qwen3-8b": ("qwen3", 36, {"hidden_size": 4096, "intermediate_size": 12288, "vocab_size": 151936, **GROUPED}),
    "bloom-560m": ("bloom", 24, {"hidden_size": 1024, "n_head": 16, "vocab_size": 250880}),
}


@dataclass(frozen=True)
class Needs:
    """What measuring one model on one data set takes."""

    weights: float  # bytes
    batch: float  # bytes beside the weights, of the length that takes most
    hours: float  # of one GPU, or of several that take turns


def needs(name: str, config: Mapping[str, Any]) -> Needs:
    """What a model takes at the lengths, the batch and the precision of a configuration."""
    kind, layers, others = ARCHITECTURES[name]
    purposes, measure = dict(config["lengths"]), config["measure"]
    lengths = {of["tokens"]: of["prompts"] for of in [*purposes.pop("more"), *purposes.values()]}

    def counted(depth: int) -> torch.Tensor:
        """Parameters, bytes of a batch of each length, and operations."""
        described = CONFIG_MAPPING[kind](**others, num_hidden_layers=depth)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(described, dtype=torch.bfloat16)
        size = cost.size(sum(parameter.numel() for parameter in model.parameters()), described)
        recomputed = measure["activation_checkpointing"]
        passes = {n: size.of_prompt(n, measure["precision"], recomputed=recomputed) for n in lengths}
        batches = [max(1, measure["tokens_per_batch"] // n) * found.peak for n, found in passes.items()]
        operations = sum(lengths[n] * found.operations for n, found in passes.items())
        return torch.tensor([size.parameters, operations, *batches], dtype=torch.float64)

    few, more = counted(FEW), counted(MORE)
    parameters, operations, *batches = (few + (layers - FEW) / (MORE - FEW) * (more - few)).tolist()
    return Needs(cost.BYTES[measure["precision"]] * parameters, max(batches), operations / SPEED / 3600)


def configuration() -> dict[str, Any]:
    """The paper's scale, with the model of the first run."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    first = yaml.safe_load((ROOT / "config/first-rung.yaml").read_text(encoding="utf-8"))
    update_config(config, {"hub_models": first["hub_models"]})
    update_config(config, yaml.safe_load((ROOT / "config/paper.yaml").read_text(encoding="utf-8")))
    return config


def row(name: str, asked: Mapping[str, Any], found: Needs) -> str:
    """A model's line of the table."""
    gpus, gb = asked["gpus"], found.weights / 1e9
    return (
        f"| {name} | {gb:.3g} | {asked['memory']} | {gpus} | {gb / gpus:.3g} | {found.batch / 1e9:.2g} | "
        f"{found.hours:.2g} | {asked['minutes'] / 60:g} |"
    )


if __name__ == "__main__":
    config = configuration()
    for name in ARCHITECTURES:
        print(row(name, config["hub_models"][name], needs(name, config)), flush=True)
