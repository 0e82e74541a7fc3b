"""The families whose ALiBi we know.

A family with ALiBi says where its queries and keys are, and which slope its attention logits really see
(`effective_slopes`). Nothing else in the library knows one architecture from another: `layout` finds the rest. To add
one, write a `Family` and list it in `FAMILIES`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

transformers_logging.disable_progress_bar()  # one for each file that is written or read

Slopes = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """How one family of `transformers` with ALiBi scores its keys."""

    query_key_value: str  # below the attention: the fused projection
    layout: Literal["heads first", "kinds first"]  # of the fused projection: (H, 3, d) or (3, H, d)
    slopes: Callable[[int, int], Slopes]  # heads, head_dim -> effective ALiBi slope of each head
    applies: Callable[[PretrainedConfig], bool]  # whether this is true of a configuration


def alibi_slopes(heads: int) -> Slopes:
    """Return ALiBi slopes (Press et al. 2022): 2^(-8 h / H) for a power of two H, else interleaved as in BLOOM and MPT.

    For other H, the slopes of the next smaller power of two P come first, then every second one of 2P.
    Returns float64 [heads].
    """
    power = 2 ** math.floor(math.log2(heads))
    first = 2.0 ** (-8.0 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8.0 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([first, between])[:heads]


def _falcon_slopes(heads: int, head_dim: int) -> Slopes:
    """Falcon rounds its slopes to bfloat16 and adds ALiBi before the 1/sqrt(d) scaling, which it thus shares."""
    slopes = torch.from_numpy(alibi_slopes(heads)).bfloat16().double().numpy()
    return np.asarray(slopes / math.sqrt(head_dim))


FALCON_OFF = ("multi_query", "new_decoder_architecture", "parallel_attn")  # keys shared by heads, MLP beside attention


def _mpt_applies(config: PretrainedConfig) -> bool:
    """Say whether an MPT model has ALiBi, and logits that are divided by the root of the width of a head."""
    scale = config.attn_config.softmax_scale
    by_width = scale is None or math.isclose(scale, (config.d_model / config.n_heads) ** -0.5)
    return bool(config.attn_config.alibi and by_width)


FAMILIES: dict[str, Family] = {  # by the model type that config.json names
    "bloom": Family(
        query_key_value="query_key_value",
        layout="heads first",
        slopes=lambda heads, head_dim: alibi_slopes(heads),
        applies=lambda config: not config.apply_residual_connection_post_layernorm,
    ),
    "mpt": Family(
        query_key_value="Wqkv",
        layout="kinds first",
        slopes=lambda heads, head_dim: alibi_slopes(heads),
        applies=_mpt_applies,
    ),
    "falcon": Family(
        query_key_value="query_key_value",
        layout="heads first",
        slopes=_falcon_slopes,
        applies=lambda config: config.alibi and not any(getattr(config, name) for name in FALCON_OFF),
    ),
}


def family_of(config: PretrainedConfig) -> Family | None:
    """Return the family with ALiBi that describes `config`; None where none does."""
    family = FAMILIES.get(config.model_type)
    return family if family and family.applies(config) else None


def sizes(config: PretrainedConfig) -> tuple[int, int, int]:
    """Return layers, heads and the dimensions of a head, by names that every configuration knows."""
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return config.num_hidden_layers, config.num_attention_heads, head_dim


def query_and_key(fused: Tensor, config: PretrainedConfig) -> tuple[Tensor, Tensor]:
    """Split the fused projection [B, n, 3 H d] into queries and keys, each [B, n, H, d], as the attention sees them.

    For families with ALiBi.
    """
    family = family_of(config)
    assert family is not None
    _, heads, head_dim = sizes(config)
    if family.layout == "heads first":
        query, key, _ = fused.unflatten(-1, (heads, 3, head_dim)).unbind(-2)
        return query, key
    clip = config.attn_config.clip_qkv
    query, key, _ = (fused.clamp(-clip, clip) if clip else fused).unflatten(-1, (3, heads, head_dim)).unbind(-3)
    return query, key


def effective_slopes(config: PretrainedConfig) -> Slopes | None:
    """Return the slope s_h of each head in its softmax: logits = q.k / sqrt(d) - s_h * distance. float64 [H].

    None for a model of no family with ALiBi.
    """
    family = family_of(config)
    if family is None:
        return None
    _, heads, head_dim = sizes(config)
    return family.slopes(heads, head_dim)


def prepare_for_measuring(model: PreTrainedModel) -> PreTrainedModel:
    """Change a model as every measurement needs it, and return it: ALiBi added once, inputs of the head `_packed`.

    Where only the last tokens of prompts are predicted and no gradient is needed, torch would otherwise copy the
    weights of the head once for every prompt: 1.7 GB for 15 prompts of SmolLM2, and ten times the time of a short pass.
    """
    head = model.get_output_embeddings()
    head.register_forward_pre_hook(lambda _, inputs: tuple(map(_packed, inputs)))
    return without_double_alibi(model)


def _packed(tensor: Tensor) -> Tensor:
    """Return a tensor whose numbers lie side by side, with the strides that a new one of its shape has.

    One prompt counts as contiguous whatever the stride from prompt to prompt is, and torch reads that stride.
    """
    return tensor.contiguous().flatten().view(tensor.shape)


def without_double_alibi(model: PreTrainedModel) -> PreTrainedModel:
    """Make eager Falcon attention add ALiBi once.

    In transformers 5.23 the mask given to Falcon's attention already holds ALiBi and the eager branch adds it
    again; a test compares with the sdpa branch and fails once the library changes. None instead of zeros would
    select the rotary branch.
    """
    if model.config.model_type == "falcon" and model.config.alibi:
        for block in model.transformer.h:
            block.self_attention.register_forward_pre_hook(_zero_alibi, with_kwargs=True)
    return model


def _zero_alibi(_module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return args, kwargs | {"alibi": torch.zeros_like(kwargs["alibi"])}
