"""The model families we measure: where each keeps what the measuring pass reads, and how each applies ALiBi.

A family differs from the next in the names of its modules, in the layout of its fused query-key-value
projection, and in the slope that its attention logits really see (`effective_slopes`). Nothing else in the
library knows one family from another. To add one, write a `Family` and list it in `FAMILIES`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    BloomConfig,
    BloomForCausalLM,
    FalconConfig,
    FalconForCausalLM,
    MptConfig,
    MptForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.utils import logging as transformers_logging

from position_bias.runtime import InputError

transformers_logging.disable_progress_bar()  # one for each file that is written or read

Slopes = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """How one family of `transformers` is laid out. Module names are paths below the object that holds them."""

    blocks: str  # below the model; a block's first argument is the residual stream x
    attention: str  # below a block; its second output is the attention weights [B, H, n, n]
    query_key_value: str  # below the attention: the fused projection
    output: str  # below the attention: what it yields is added to the residual stream
    layout: Literal["heads first", "kinds first"]  # of the fused projection: (H, 3, d) or (3, H, d)
    sizes: Callable[[PretrainedConfig], tuple[int, int, int]]  # layers, heads, head_dim
    slopes: Callable[[int, int], Slopes]  # heads, head_dim -> effective ALiBi slope of each head
    longest: Callable[[PretrainedConfig], float]  # most tokens that the model takes
    unsupported: Callable[[PretrainedConfig], str]  # why a configuration is not of this layout, or ""
    build: Callable[[Mapping[str, Any], int, int], PreTrainedModel]  # architecture, vocabulary, context


@dataclass(frozen=True)
class Layer:
    """The modules of one layer that the measuring pass listens to."""

    block: nn.Module
    attention: nn.Module
    query_key_value: nn.Module
    output: nn.Module


def alibi_slopes(heads: int) -> Slopes:
    """ALiBi slopes (Press et al. 2022): 2^(-8 h / H) for a power of two H, else interleaved as BLOOM and MPT do.

    For other H, the slopes of the next smaller power of two P come first, then every second one of 2P.
    Returns float64 [heads].
    """
    power = 2 ** math.floor(math.log2(heads))
    first = 2.0 ** (-8.0 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8.0 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([first, between])[:heads]


def _falcon_slopes(heads: int, head_dim: int) -> Slopes:
    """Falcon rounds its slopes to bfloat16 and adds ALiBi before the 1/sqrt(d) scaling, which it thus shares."""
    rounded = torch.from_numpy(alibi_slopes(heads)).bfloat16().double().numpy()
    return np.asarray(rounded / math.sqrt(head_dim))


def _build_bloom(architecture: Mapping[str, Any], vocabulary: int, context: int) -> PreTrainedModel:
    return BloomForCausalLM(
        BloomConfig(
            vocab_size=vocabulary,
            hidden_size=architecture["hidden"],
            n_layer=architecture["layers"],
            n_head=architecture["heads"],
            initializer_range=architecture["initializer_range"],
            attn_implementation="eager",
        )
    )


def _build_mpt(architecture: Mapping[str, Any], vocabulary: int, context: int) -> PreTrainedModel:
    return MptForCausalLM(
        MptConfig(
            vocab_size=vocabulary,
            d_model=architecture["hidden"],
            n_layers=architecture["layers"],
            n_heads=architecture["heads"],
            max_seq_len=max(context, 2048),  # the library refuses longer inputs, and ALiBi needs no training there
            initializer_range=architecture["initializer_range"],
            attn_implementation="eager",
        )
    )


def _build_falcon(architecture: Mapping[str, Any], vocabulary: int, context: int) -> PreTrainedModel:
    return FalconForCausalLM(
        FalconConfig(
            vocab_size=vocabulary,
            hidden_size=architecture["hidden"],
            num_hidden_layers=architecture["layers"],
            num_attention_heads=architecture["heads"],
            initializer_range=architecture["initializer_range"],
            alibi=True,
            multi_query=False,
            new_decoder_architecture=False,
            parallel_attn=False,
            bias=True,
            attn_implementation="eager",
        )
    )


def _unsupported_bloom(config: PretrainedConfig) -> str:
    return "the residual is taken after the norm" if config.apply_residual_connection_post_layernorm else ""


def _unsupported_falcon(config: PretrainedConfig) -> str:
    if not config.alibi:
        return "it uses rotary positions, not ALiBi"
    if config.multi_query or config.new_decoder_architecture or config.parallel_attn:
        return "it shares keys between heads or runs attention beside the MLP"
    return ""


FAMILIES: dict[str, Family] = {
    "bloom": Family(
        blocks="transformer.h",
        attention="self_attention",
        query_key_value="query_key_value",
        output="dense",
        layout="heads first",
        sizes=lambda config: (config.n_layer, config.n_head, config.hidden_size // config.n_head),
        slopes=lambda heads, head_dim: alibi_slopes(heads),
        longest=lambda config: math.inf,
        unsupported=_unsupported_bloom,
        build=_build_bloom,
    ),
    "mpt": Family(
        blocks="transformer.blocks",
        attention="attn",
        query_key_value="Wqkv",
        output="out_proj",
        layout="kinds first",
        sizes=lambda config: (config.n_layers, config.n_heads, config.d_model // config.n_heads),
        slopes=lambda heads, head_dim: alibi_slopes(heads),
        longest=lambda config: config.max_seq_len,
        unsupported=lambda config: "",
        build=_build_mpt,
    ),
    "falcon": Family(
        blocks="transformer.h",
        attention="self_attention",
        query_key_value="query_key_value",
        output="dense",
        layout="heads first",
        sizes=lambda config: (config.num_hidden_layers, config.num_attention_heads, config.head_dim),
        slopes=_falcon_slopes,
        longest=lambda config: math.inf,
        unsupported=_unsupported_falcon,
        build=_build_falcon,
    ),
}


def build(family: str, architecture: Mapping[str, Any], vocabulary: int, context: int, seed: int) -> PreTrainedModel:
    """A fresh model of `family` in float32 with eager attention.

    `architecture` holds layers, heads, hidden and initializer_range; `context` is the training length.
    Raises InputError for an unknown family.
    """
    if family not in FAMILIES:
        raise InputError(f"config: models.*.family = {family!r} has no adapter; use one of {', '.join(FAMILIES)}")
    torch.manual_seed(seed)
    return _without_double_alibi(FAMILIES[family].build(architecture, vocabulary, context))


def open_model(directory: str | Path, device: str = "cpu", precision: str = "float32") -> PreTrainedModel:
    """Open a Hugging Face directory for measuring: eager attention, safetensors only, no remote code.

    `precision` is that of the weights, float32 or bfloat16; what is measured is reduced in float32 either way. Raises
    InputError where the directory is missing, incomplete, cut short, or of a layout that no family describes.
    """
    directory = Path(directory)
    for name in ("config.json", "model.safetensors"):
        if not (directory / name).is_file():
            raise InputError(f"model directory {directory} lacks {name}; build or copy the whole directory again")
    try:
        family_of(AutoConfig.from_pretrained(directory, local_files_only=True))
        model, loading = AutoModelForCausalLM.from_pretrained(
            directory,
            attn_implementation="eager",
            dtype=getattr(torch, precision),
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"model directory {directory} cannot be opened: {reason}; build or copy it again") from error
    if missing := sorted(loading["missing_keys"]):
        raise InputError(f"model directory {directory} lacks weights: {', '.join(missing)}; build or copy it again")
    return _without_double_alibi(model).to(device).eval()


def family_of(config: PretrainedConfig) -> Family:
    """The family that describes `config`. Raises InputError where none does."""
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise InputError(f"model type {config.model_type!r} has no adapter; use one of {', '.join(FAMILIES)}")
    if why := family.unsupported(config):
        raise InputError(f"this {config.model_type!r} model cannot be measured: {why}")
    return family


def layers_of(model: PreTrainedModel) -> list[Layer]:
    """The layers of `model`, first to last."""
    family = family_of(model.config)
    blocks = model.get_submodule(family.blocks)
    assert isinstance(blocks, nn.ModuleList)
    return [_layer(block, family) for block in blocks]


def _layer(block: nn.Module, family: Family) -> Layer:
    attention = block.get_submodule(family.attention)
    return Layer(
        block,
        attention,
        attention.get_submodule(family.query_key_value),
        attention.get_submodule(family.output),
    )


def query_and_key(fused: Tensor, config: PretrainedConfig) -> tuple[Tensor, Tensor]:
    """Queries and keys, each [B, n, H, d], from the fused projection [B, n, 3 H d], as the attention sees them."""
    family = family_of(config)
    _, heads, head_dim = family.sizes(config)
    if family.layout == "heads first":
        query, key, _ = fused.unflatten(-1, (heads, 3, head_dim)).unbind(-2)
        return query, key
    clip = config.attn_config.clip_qkv
    query, key, _ = (fused.clamp(-clip, clip) if clip else fused).unflatten(-1, (3, heads, head_dim)).unbind(-3)
    return query, key


def effective_slopes(config: PretrainedConfig) -> Slopes:
    """The slope s_h of each head in its softmax: logits = q.k / sqrt(d) - s_h * distance. float64 [H]."""
    family = family_of(config)
    _, heads, head_dim = family.sizes(config)
    return family.slopes(heads, head_dim)


def _without_double_alibi(model: PreTrainedModel) -> PreTrainedModel:
    """Make eager Falcon attention add ALiBi once.

    In transformers 5.23 the mask given to Falcon's attention already holds ALiBi and the eager branch adds it
    again; a test compares with the sdpa branch and fails once the library changes. None instead of zeros would
    select the rotary branch.
    """
    if isinstance(model, FalconForCausalLM):
        for layer in layers_of(model):
            layer.attention.register_forward_pre_hook(_zero_alibi, with_kwargs=True)
    return model


def _zero_alibi(_module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return args, kwargs | {"alibi": torch.zeros_like(kwargs["alibi"])}
