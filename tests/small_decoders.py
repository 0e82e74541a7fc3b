"""Small decoders with random weights far from uniform. A Mistral can read through a window."""

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from position_card.models import families

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


BUILT = {  # by model type: what a configuration says beside its size
    "bloom": {},
    "mpt": {"max_seq_len": 2048},
    "falcon": {
        "alibi": True,
        "bias": True,
        "multi_query": False,
        "new_decoder_architecture": False,
        "parallel_attn": False,
    },
    "llama": {"tie_word_embeddings": True},
}
WITH_ALIBI = ("bloom", "mpt", "falcon")


def build(family, vocabulary, *, layers=2, heads=4, hidden=16, seed=0, initializer_range=0.3):
    """A fresh model of one of these families; eager Falcon adds ALiBi once."""
    size = {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": hidden}
    config = AutoConfig.for_model(
        family, vocab_size=vocabulary, initializer_range=initializer_range, **size, **BUILT[family]
    )
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return families.without_double_alibi(model).eval()
