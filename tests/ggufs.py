"""Write the weights of a small decoder as a GGUF file, in the way of llama.cpp's own converter, for tests."""

from pathlib import Path

import gguf
import numpy as np
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

SIZE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
}
DEFAULT = {"rope_type": "default"}
CLASSES = {
    "llama": (
        LlamaForCausalLM,
        LlamaConfig,
        {"head_dim": 8, "rope_parameters": {"rope_type": "default", "rope_theta": 1e5}},
    ),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "gemma3": (
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        {"head_dim": 256, "sliding_window": 8, "query_pre_attn_scalar": 256, "tie_word_embeddings": True},
    ),
}


def small(architecture: str, **changes: object) -> PreTrainedModel:
    """Build a small model of the architecture, with random weights, biases and norms."""
    model, configuration, others = CLASSES[architecture]
    built = model(configuration(**SIZE | others | changes))
    generator = np.random.default_rng(0)
    for parameter in built.parameters():  # fresh biases are 0 and norms 1: a lost one would go unseen
        if parameter.dim() == 1:
            parameter.data += parameter.new_tensor(generator.normal(0, 0.2, parameter.shape))
    return built.eval()


def tensors(model: PreTrainedModel, architecture: str) -> dict[str, np.ndarray]:
    """Return the tensors by the names of llama.cpp, which the package gguf knows, as its converter stores them.

    Queries and keys of `llama` are permuted, since llama.cpp turns neighbouring pairs; norms of `gemma3` have 1 added.
    """
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], model.config.num_hidden_layers)
    heads = {"attn_q.weight": SIZE["num_attention_heads"], "attn_k.weight": SIZE["num_key_value_heads"]}
    held = {}
    for name, parameter in model.named_parameters():
        named = names.get_name(name, try_suffixes=(".weight", ".bias"))
        values = parameter.detach().numpy()
        within = named.split(".", 2)[-1]  # its block
        if architecture == "llama" and within in heads:
            pairs = values.reshape(heads[within], 2, -1, values.shape[1])
            values = pairs.swapaxes(1, 2).reshape(values.shape)
        if architecture == "gemma3" and "norm" in named:
            values = values + 1
        held[named] = np.ascontiguousarray(values)
    return held


def write(
    file: Path, model: PreTrainedModel, architecture: str, held: dict[str, np.ndarray] | None = None, **values: object
) -> Path:
    """Write a model, or other tensors in place of its own, with further `values` of the header by their keys."""
    config = model.config
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_block_count(int(values.pop("block_count", config.num_hidden_layers)))
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    if architecture == "gemma3":
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
        writer.add_sliding_window(config.sliding_window)
        writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
    else:
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_tokenizer_model("gpt2")
    tokens = [*(chr(63 + place) for place in range(config.vocab_size - 1)), "ab"]
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(["a b"])
    for key, value in values.items():
        add = (
            writer.add_string
            if isinstance(value, str)
            else writer.add_bool
            if isinstance(value, bool)
            else writer.add_uint32
            if isinstance(value, int)
            else writer.add_float32
        )
        add(key, value)
    for name, tensor in (held or tensors(model, architecture)).items():
        writer.add_tensor(name, tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
