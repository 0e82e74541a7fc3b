"""Small models of known families, to be trained here."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from position_bias.language_models.settings import TRAINED_CONTEXT
from position_card.core.runtime import InputError
from position_card.models.families import FALCON_OFF, without_double_alibi

BUILDERS: dict[str, Callable[[int, int], dict[str, Any]]] = {
    # by model type: what a configuration says beside its size, for a training length and a hidden width
    "bloom": lambda context, hidden: {},
    # the library refuses longer sequences, and ALiBi takes them
    "mpt": lambda context, hidden: {"max_seq_len": max(context, TRAINED_CONTEXT)},
    "falcon": lambda context, hidden: {"alibi": True, "bias": True, **dict.fromkeys(FALCON_OFF, False)},
    "llama": lambda context, hidden: {
        "max_position_embeddings": max(context, TRAINED_CONTEXT),
        # three matrices of this width have as many weights as two of 4 x hidden
        "intermediate_size": 8 * hidden // 3,
        "tie_word_embeddings": True,  # as in the other families here
    },
}


def build(family: str, architecture: Mapping[str, Any], vocabulary: int, context: int, seed: int) -> PreTrainedModel:
    """Build a fresh model of `family` in float32 with eager attention.

    `architecture` holds layers, heads, hidden and initializer_range; `context` is the training length.
    Raises InputError for an unknown family.
    """
    if family not in BUILDERS:
        raise InputError(f"config: models.*.family = {family!r} cannot be built; use one of {', '.join(BUILDERS)}")
    config = AutoConfig.for_model(
        family,
        vocab_size=vocabulary,
        initializer_range=architecture["initializer_range"],
        num_hidden_layers=architecture["layers"],
        num_attention_heads=architecture["heads"],
        hidden_size=architecture["hidden"],
        **BUILDERS[family](context, architecture["hidden"]),
    )
    torch.manual_seed(seed)
    return without_double_alibi(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))
