"""Try every model type of transformers on a small model with random weights, and write what happened to each.

    PYTHONPATH=. python tools/sweep.py > tests/golden/decoders.csv

tests/position_card/models/test_sweep.py compares the table that is kept with a fresh one (`make test-all`), and
tools/decoders.py writes docs/decoders.md from it. A new version of transformers changes it: look at what has changed.
"""

import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from position_card.core.runtime import InputError
from position_card.measures.measure import measure_decoder
from position_card.models import families
from position_card.models.opening import decoder_fault
from position_card.probe.layout import find_layout
from position_card.rollout.measurement import Floats
from position_card.texts.tokens import TokenIds
from tools import decoders

COLUMNS = ("type", "class", "outcome", "line", "update", "order", "positions", "windows", "rollouts")
MEASURED, REFUSED, DIFFERS, NOT_MADE, NO_DECODER = "measured", "refused", "differs", "not made", "no decoder"
MOST_PARAMETERS = 20_000_000  # parameters of a small model
LINE = 160  # characters of a reason
N, PROMPTS = decoders.TOKENS, 3
SAME_INFLUENCE, SAME_ATTENTION = 1e-4, 2e-6  # relative difference; difference of weights

# Sizes by the names that configurations have for them.
SIZES = {
    "vocab_size text_vocab_size vocab_size_per_layer_input encoder_hash_byte_group_vocab": decoders.VOCABULARY,
    "hidden_size d_model n_embd lru_width word_embed_proj_dim embedding_size dim_model emb_dim": decoders.WIDTH,
    "num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers": 4,
    "num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads": decoders.HEADS,
    "num_key_value_heads num_kv_heads swa_num_key_value_heads num_global_key_value_heads": decoders.SHARED_HEADS,
    "max_position_embeddings n_positions n_ctx max_seq_len": decoders.CONTEXT,
    "num_experts num_local_experts n_routed_experts moe_num_experts": 4,
    "num_experts_per_tok moe_k moe_topk num_experts_per_token linear_num_value_heads linear_num_key_heads": 2,
    "n_group topk_group first_k_dense_replace n_shared_experts moe_num_shared_experts num_shared_experts": 1,
    "sliding_window attention_window_size local_attention window_size": decoders.WINDOW,
    "attention_chunk_size index_topk": decoders.CONTEXT,
    "num_mem_blocks index_n_heads bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "rotary_dim": 4,
    "initializer_range init_std": 0.3,
    "is_decoder": True,
    " ".join(
        (
            "head_dim d_head dim_head kv_channels swa_head_dim swa_v_head_dim v_head_dim qk_nope_head_dim",
            "qk_rope_head_dim index_head_dim linear_key_head_dim linear_value_head_dim global_head_dim",
            "query_pre_attn_scalar",
        )
    ): decoders.HEAD_DIM,
    " ".join(
        (
            "intermediate_size ffn_dim d_ff dff n_inner decoder_ffn_dim encoder_ffn_dim d_inner dim_ff block_ff_dim",
            "feed_forward_size intermediate_size_mlp dense_intermediate_size ffn_hidden_size",
        )
    ): 48,
    " ".join(
        (
            "kv_lora_rank q_lora_rank moe_intermediate_size expert_ffn_hidden_size shared_expert_intermediate_size",
            "shared_intermediate_size moe_shared_expert_intermediate_size hidden_size_per_layer_input laurel_rank",
        )
    ): 16,
}
BY_NAME = {name: size for names, size in SIZES.items() for name in names.split()}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8}
KINDS = ("sliding_attention", "full_attention")
TWO_KINDS = [*KINDS, *KINDS]
# What these sizes do not settle: values of a configuration by model type.
FURTHER_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "bamba": {**MAMBA, "attn_layer_indices": [1, 3]},
    "dbrx": {
        "d_model": decoders.WIDTH,
        "max_seq_len": decoders.CONTEXT,
        "ffn_config": {"ffn_hidden_size": 48, "moe_num_experts": 4, "moe_top_k": 2},
        "attn_config": {"kv_n_heads": 2},
    },
    "falcon_h1": {**MAMBA, "mamba_d_ssm": 64},
    "gemma3n_text": {
        "num_kv_shared_layers": 0,
        "altup_num_inputs": 2,
        "layer_types": TWO_KINDS,
        "activation_sparsity_pattern": [0.0] * 4,
        "hidden_size_per_layer_input": 8,
        "laurel_rank": 8,
    },
    "gemma4_text": {"num_kv_shared_layers": 0, "layer_types": TWO_KINDS, "hidden_size_per_layer_input": 0},
    "gemma4_unified_text": {"num_kv_shared_layers": 0, "layer_types": TWO_KINDS},
    "granitemoehybrid": {**MAMBA, "layer_types": ["mamba", "attention"] * 2},
    "jamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "use_mamba_kernels": False,
        "mamba_d_state": 8,
    },
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"num_heads": 8, "head_dim": 8, "expand": 2, "state_size": 8, "n_groups": 1},
    "xmod": {"languages": ["en"], "default_language": "en"},
    "zamba": {
        "layers_block_type": ["mamba", "hybrid"] * 2,
        "mamba_d_state": 8,
        "use_mamba_kernels": False,
    },
    "zamba2": {
        "layer_types": ["mamba", "hybrid", "hybrid", "hybrid"],
        "hybrid_layer_ids": [1, 2, 3],
        "mamba_d_state": 8,
        "n_mamba_heads": 2,
        "mamba_headdim": 32,
        "use_mamba_kernels": False,
    },
    "zaya": {"num_experts_per_tok": 1},
    "bailing_hybrid": {"layer_group_size": 2},
    "cohere_compass_text": {"rope_parameters": {kind: {"rope_type": "default", "rope_theta": 1e4} for kind in KINDS}},
    "dots3_note_text": {"per_layer_config": None, "swa_head_dim": 16, "head_dim": 16},
    "reformer": {
        "axial_pos_embds": False,
        "attn_layers": ["local"] * 4,
        "local_attn_chunk_length": 16,
        "attention_head_size": 8,
        "feed_forward_size": 48,
    },
}


def small_config(name: str) -> PretrainedConfig:
    """The configuration of a small model: that of `decoders.SMALL`, or of a type with SIZES and FURTHER_SETTINGS."""
    if name in decoders.SMALL:
        return CONFIG_MAPPING[name.partition(",")[0]](**decoders.SMALL[name])
    config_class = CONFIG_MAPPING[name]
    return config_class(**_values(config_class()) | dict(FURTHER_SETTINGS.get(name, {})))


def _values(default: PretrainedConfig) -> dict[str, Any]:
    """SIZES of what a configuration has, and of the configurations in it."""
    alias = default.attribute_map
    keys = {*default.to_dict(), *alias}
    values: dict[str, Any] = {
        name: size for name, size in BY_NAME.items() if name in keys and name not in alias.values()
    }
    if "kv_lora_rank" in keys or getattr(default, "model_type", "").startswith("dots3"):
        values["num_key_value_heads"] = decoders.HEADS  # latent attention has a key a head
    for name in default.sub_configs:
        inner = getattr(default, name, None)
        if inner is not None:
            values[name] = {**_values(inner), "model_type": inner.model_type}
    return values


def small_model(config: PretrainedConfig) -> PreTrainedModel:
    """A small model with random weights, biases and norms. Raises ValueError where it would not be small."""
    with torch.device("meta"):
        parameters = sum(weight.numel() for weight in AutoModelForCausalLM.from_config(config).parameters())
    if parameters > MOST_PARAMETERS:
        raise ValueError(f"it has {parameters:,} parameters where its sizes are small")
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for key, weight in model.named_parameters():
        if not weight.is_floating_point():
            continue
        if key.endswith("bias"):
            weight.normal_(0, 0.3, generator=generator)
        elif "norm" in key or "ln_" in key:
            weight.uniform_(0.5, 1.5, generator=generator)
        elif not weight.isfinite().all() or weight.abs().max() > 1e3 or (weight.numel() > 1 and weight.std() < 0.05):
            weight.normal_(0, 0.3, generator=generator)
    return families.without_double_alibi(model)


def own_influence(model: PreTrainedModel, prompts: TokenIds) -> Floats:
    """Norms of gradients at the output of the embeddings, [N, n], prompt by prompt and without the library."""
    outputs: list[torch.Tensor] = []

    def keep(_module: Any, _args: Any, output: torch.Tensor) -> torch.Tensor:
        outputs.append(output.detach().requires_grad_())
        return outputs[-1].clone()

    rows = []
    handle = model.get_input_embeddings().register_forward_hook(keep)
    try:
        for prompt in prompts:
            outputs.clear()
            logits = model(torch.from_numpy(prompt[None]), use_cache=False).logits[0, -1]
            (gradient,) = torch.autograd.grad(logits.softmax(-1).max(), outputs[0])
            rows.append(gradient[0].norm(dim=-1))
    finally:
        handle.remove()
    return np.asarray(torch.stack(rows))


def own_attention(model: PreTrainedModel, prompts: TokenIds) -> Floats | None:
    """Mean weights of every layer that the model returns itself, [L, n, n]; None where it returns none."""
    with torch.no_grad():
        weights = model(torch.from_numpy(prompts), output_attentions=True, use_cache=False).attentions
    layers = [layer for layer in weights or () if layer is not None]
    return np.asarray(torch.stack([layer.mean((0, 1)) for layer in layers])) if layers else None


def row(name: str) -> dict[str, str]:
    """What happens to a small model of a type, or of a name in `decoders.SMALL`: a row of COLUMNS."""
    cells = dict.fromkeys(COLUMNS, "") | {"type": name}
    kind = name.partition(",")[0]
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return cells | {"outcome": NO_DECODER, "line": _default_fault(kind)}
    prompts = np.random.default_rng(1).integers(3, decoders.VOCABULARY, (PROMPTS, N))
    try:
        model = small_model(small_config(name))
        influence = own_influence(model, prompts)
    except Exception as error:  # of any configuration, whatever its validators and modules say
        return cells | {"outcome": NOT_MADE, "line": _reason(error)}
    cells["class"] = type(model).__name__
    try:
        measurement = measure_decoder(model, prompts, 2 * N)
        layout = find_layout(model, torch.from_numpy(prompts[:1]))
    except InputError as error:
        return cells | {"outcome": REFUSED, "line": str(error).partition("cannot be measured: ")[2] or str(error)}
    assert measurement.influence is not None
    assert measurement.attention is not None
    difference = np.abs(measurement.influence / influence - 1).max()
    if not difference <= SAME_INFLUENCE:
        return cells | {"outcome": DIFFERS, "line": f"influence by {difference:.1e}"}
    attention = own_attention(model, prompts)
    if attention is not None and attention.shape == measurement.attention.shape:
        difference = np.abs(measurement.attention - attention).max()
        if not difference <= SAME_ATTENTION:
            return cells | {"outcome": DIFFERS, "line": f"attention by {difference:.1e}"}
    return cells | {"outcome": MEASURED, **decoders.properties(model, layout)}


def _default_fault(kind: str) -> str:
    """What is said of a type that predicts no next token, by its configuration as it is where nothing is said."""
    try:
        return decoder_fault(CONFIG_MAPPING[kind]()) or ""
    except Exception:  # some have none
        return decoder_fault(CONFIG_MAPPING["bart"]()) or ""


def _reason(error: BaseException) -> str:
    """The first line of what was raised at the bottom."""
    while error.__cause__:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return re.sub(r"\s+", " ", lines[0])[:LINE]


def names() -> list[str]:
    """All model types, and the further kinds of some in `decoders.SMALL`, in the order of the alphabet."""
    return sorted({*CONFIG_MAPPING, *decoders.SMALL})


def table(types: Iterator[str] | list[str]) -> pd.DataFrame:
    """A row for each of the chosen names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pd.DataFrame([row(name) for name in types], columns=list(COLUMNS))


if __name__ == "__main__":
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    table(sys.argv[1:] or names()).to_csv(sys.stdout, index=False, lineterminator="\n")
