"""A small Llama, and a small Mistral, which can read through a window; weights are random and far from uniform."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

VOCABULARY = 40
SIZE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "attn_implementation": "eager",
}


def llama(seed=0, **settings):
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(**SIZE | settings)).eval()


def mistral(**settings):
    torch.manual_seed(0)
    return MistralForCausalLM(MistralConfig(**SIZE | settings)).eval()
