"""Turn a Llama that was exported to ONNX with weights of 8 bits into a directory that transformers opens.

    .venv/bin/pip install onnx
    .venv/bin/python tools/onnx_int8.py PACKAGE DIRECTORY

PACKAGE is a folder with config.json, files of a tokenizer and onnx/model_quantized.onnx. The names of its matrices say
nothing: they come in the order in which they are used, seven for each layer and then the read-out. Each is stored as
whole numbers, a scale, and the number that stands for 0. Activations, which an ONNX runtime rounds, stay float32.
"""

import shutil
import sys
from pathlib import Path

import onnx
import onnx.numpy_helper
import torch
from transformers import AutoConfig, LlamaForCausalLM

IN_A_LAYER = [f"self_attn.{name}_proj" for name in "qkvo"] + [f"mlp.{name}_proj" for name in ("gate", "up", "down")]


def decoder(package: Path) -> LlamaForCausalLM:
    """The model in a package."""
    model = LlamaForCausalLM(AutoConfig.from_pretrained(package, dtype=torch.float32))
    graph = onnx.load(package / "onnx" / "model_quantized.onnx").graph
    stored = {entry.name: torch.tensor(onnx.numpy_helper.to_array(entry)) for entry in graph.initializer}

    def matrix(name: str) -> torch.Tensor:
        whole, zero = (stored[f"{name}_{part}"].float() for part in ("quantized", "zero_point"))
        return (whole - zero) * stored[f"{name}_scale"]

    names = [name.removesuffix("_quantized") for name in stored if name.endswith("_quantized")]
    embeddings, *others = names
    targets = [f"model.layers.{layer}.{name}.weight" for layer in range(len(model.model.layers)) for name in IN_A_LAYER]
    weights = {name: values for name, values in stored.items() if name.endswith("norm.weight")}
    weights |= {target: matrix(name).T for target, name in zip([*targets, "lm_head.weight"], others, strict=True)}
    weights[embeddings] = matrix(embeddings)
    model.load_state_dict(weights)
    return model


if __name__ == "__main__":
    package, directory = map(Path, sys.argv[1:])
    decoder(package).save_pretrained(directory)
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(package / file, directory)
