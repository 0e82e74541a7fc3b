"""The model families we measure: where each keeps what the measuring pass reads, and how each applies positions.

A family differs from the next in the names of its modules and in its positions: one with ALiBi also in the layout of
its fused query-key-value projection and in the slope that its attention logits really see (`effective_slopes`). Nothing
else in the library knows one family from another. To add one, write a `Family` and list it in `FAMILIES`; to train it
from scratch too, add a builder.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    BloomConfig,
    BloomForCausalLM,
    FalconConfig,
    FalconForCausalLM,
    GgufConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MptConfig,
    MptForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_gguf_pytorch_utils import (
    GGUF_TO_TRANSFORMERS_MAPPING,
    TENSOR_PROCESSORS,
    TensorProcessor,
    get_gguf_hf_weights_map,
)
from transformers.utils import logging as transformers_logging

from position_bias.language_models import files
from position_bias.language_models.sources import TRAINED_CONTEXT
from position_bias.running.runtime import InputError

transformers_logging.disable_progress_bar()  # one for each file that is written or read

Slopes = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """How one family of `transformers` is laid out. Module names are paths below the object that holds them."""

    blocks: str  # below the model; a block's first argument is the residual stream x
    attention: str  # below a block; reads the first argument, its second output is the attention weights [B, H, n, n]
    output: str  # below the attention: what it yields is added to the residual stream
    longest: Callable[[PretrainedConfig], float]  # most tokens that the model takes
    unsupported: Callable[[PretrainedConfig], str]  # why a configuration is not of this layout, or ""
    alibi: "Alibi | None"  # None: positions enter in another way, and what is said of ALiBi does not apply


@dataclass(frozen=True)
class Alibi:
    """How a family with ALiBi scores its keys."""

    query_key_value: str  # below the attention: the fused projection
    layout: Literal["heads first", "kinds first"]  # of the fused projection: (H, 3, d) or (3, H, d)
    slopes: Callable[[int, int], Slopes]  # heads, head_dim -> effective ALiBi slope of each head


@dataclass(frozen=True)
class Layer:
    """The modules of one layer that the measuring pass listens to."""

    block: nn.Module
    attention: nn.Module
    query_key_value: nn.Module | None  # of families with ALiBi
    output: nn.Module


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
    rounded = torch.from_numpy(alibi_slopes(heads)).bfloat16().double().numpy()
    return np.asarray(rounded / math.sqrt(head_dim))


def _unsupported_bloom(config: PretrainedConfig) -> str:
    return "the residual is taken after the norm" if config.apply_residual_connection_post_layernorm else ""


FALCON_OFF = ("multi_query", "new_decoder_architecture", "parallel_attn")  # keys shared by heads, MLP beside attention


def _unsupported_falcon(config: PretrainedConfig) -> str:
    if not config.alibi:
        return "it uses rotary positions, not ALiBi"
    if any(getattr(config, name) for name in FALCON_OFF):
        return "it shares keys between heads or runs attention beside the MLP"
    return ""


def _unsupported_mpt(config: PretrainedConfig) -> str:
    scale = config.attn_config.softmax_scale
    if not config.attn_config.alibi:
        return "it does not use ALiBi"
    if scale is not None and not math.isclose(scale, (config.d_model / config.n_heads) ** -0.5):
        return f"its logits are scaled by {scale}, not by 1/sqrt(head_dim)"
    return ""


def _rotary(output: str) -> Family:
    """Families with the module names of Llama: rotary positions, queries, keys and values projected apart."""
    return Family(
        blocks="model.layers",
        attention="self_attn",
        output=output,
        longest=lambda config: config.max_position_embeddings,
        unsupported=lambda config: "",
        alibi=None,
    )


FAMILIES: dict[str, Family] = {  # by the model type that config.json names
    "bloom": Family(
        blocks="transformer.h",
        attention="self_attention",
        output="dense",
        longest=lambda config: math.inf,
        unsupported=_unsupported_bloom,
        alibi=Alibi("query_key_value", "heads first", lambda heads, head_dim: alibi_slopes(heads)),
    ),
    "mpt": Family(
        blocks="transformer.blocks",
        attention="attn",
        output="out_proj",
        longest=lambda config: config.max_seq_len,
        unsupported=_unsupported_mpt,
        alibi=Alibi("Wqkv", "kinds first", lambda heads, head_dim: alibi_slopes(heads)),
    ),
    "falcon": Family(
        blocks="transformer.h",
        attention="self_attention",
        output="dense",
        longest=lambda config: math.inf,
        unsupported=_unsupported_falcon,
        alibi=Alibi("query_key_value", "heads first", _falcon_slopes),
    ),
    "llama": _rotary("o_proj"),
    "qwen3": _rotary("o_proj"),
    "phi3": _rotary("o_proj"),
    "phi": _rotary("dense"),  # its block adds the MLP of the same input beside the attention
}

BUILDERS: dict[str, tuple[Any, Any, tuple[str, str, str], Callable[[int, int], dict[str, Any]]]] = {
    # model, configuration, what that calls hidden width, layers and heads, and what else it says for a training length
    # and a hidden width
    "bloom": (BloomForCausalLM, BloomConfig, ("hidden_size", "n_layer", "n_head"), lambda context, hidden: {}),
    "mpt": (
        MptForCausalLM,
        MptConfig,
        ("d_model", "n_layers", "n_heads"),
        # the library refuses longer sequences, and ALiBi takes them
        lambda context, hidden: {"max_seq_len": max(context, TRAINED_CONTEXT)},
    ),
    "falcon": (
        FalconForCausalLM,
        FalconConfig,
        ("hidden_size", "num_hidden_layers", "num_attention_heads"),
        lambda context, hidden: {"alibi": True, "bias": True, **dict.fromkeys(FALCON_OFF, False)},
    ),
    "llama": (
        LlamaForCausalLM,
        LlamaConfig,
        ("hidden_size", "num_hidden_layers", "num_attention_heads"),
        lambda context, hidden: {
            "max_position_embeddings": max(context, TRAINED_CONTEXT),
            "intermediate_size": 8
            * hidden
            // 3,  # three matrices of this width have as many weights as two of 4 x hidden
            "tie_word_embeddings": True,  # as in the other families here
        },
    ),
}


def build(family: str, architecture: Mapping[str, Any], vocabulary: int, context: int, seed: int) -> PreTrainedModel:
    """Build a fresh model of `family` in float32 with eager attention.

    `architecture` holds layers, heads, hidden and initializer_range; `context` is the training length.
    Raises InputError for an unknown family.
    """
    if family not in BUILDERS:
        raise InputError(f"config: models.*.family = {family!r} cannot be built; use one of {', '.join(BUILDERS)}")
    model, configuration, names, others = BUILDERS[family]
    size = zip(names, ("hidden", "layers", "heads"), strict=True)
    config = configuration(
        vocab_size=vocabulary,
        initializer_range=architecture["initializer_range"],
        attn_implementation="eager",
        **{name: architecture[key] for name, key in size},
        **others(context, architecture["hidden"]),
    )
    torch.manual_seed(seed)
    return without_double_alibi(model(config))


def open_model(
    directory: str | Path,
    device: str | Mapping[str, str] = "cpu",
    precision: str = "float32",
    positions: Literal["own", "none"] = "own",
) -> PreTrainedModel:
    """Open a Hugging Face directory for measuring: eager attention, safetensors only, no remote code.

    `device` is "cpu", "cuda", "balanced" over all visible GPUs, or a mapping of modules to devices. `precision` is that
    of the weights, float32 or bfloat16; what is measured is reduced in float32 either way. `positions` "none" turns the
    rotation of a rotary family off, for a model that was trained without and is stored as one of the family. Raises
    InputError where the directory is missing, incomplete, cut short, or of a layout that no family describes.
    """
    source = files.model_files(directory)
    _of_type(source.described.get("model_type"))  # before the library asks for code that the directory may hold
    with opening(source):
        config = AutoConfig.from_pretrained(**source.reading)
    family = family_of(config)
    require_described(source, config)
    model = load(source, config, device, precision)
    if positions == "none":
        if family.alibi is not None:
            raise InputError(f"model directory {directory} has ALiBi, which cannot be turned off; set positions to own")
        model.get_submodule("model.rotary_emb").register_forward_hook(_unrotated)
    return without_double_alibi(model).eval()


def load(
    source: files.ModelFiles,
    config: PretrainedConfig,
    device: str | Mapping[str, str] = "cpu",
    precision: str = "float32",
) -> PreTrainedModel:
    """Open a model of whatever type from its files and its configuration, as `open_model` does.

    Raises InputError unless the files hold the weights that the configuration describes, all of them and no others.
    """
    # packed weights would need kernels that are fetched
    unpacked = {"quantization_config": GgufConfig(dequantize=True)} if source.gguf else {"use_safetensors": True}
    with opening(source):
        model, loading = AutoModelForCausalLM.from_pretrained(
            **source.reading,
            **unpacked,
            config=config,
            attn_implementation="eager",
            dtype=getattr(torch, precision),
            output_loading_info=True,
            device_map=None if device == "cpu" else device,
        )
    for keys, fault in (("missing_keys", "lacks weights"), ("unexpected_keys", "has weights that its model does not")):
        if names := sorted(map(str, loading[keys])):
            raise InputError(
                f"{source.place} {fault}: {', '.join(names[:5])}{' and others' if names[5:] else ''}; "
                "config.json and the weights are of two models, or parts were lost: build or copy it again"
            )
    if device == "balanced" and {"cpu", "disk"} & set(map(str, getattr(model, "hf_device_map", {}).values())):
        raise InputError(f"{source.place} does not fit on its GPUs; give it more of them (gpus)")
    return model


def require_described(source: files.ModelFiles, config: PretrainedConfig) -> None:
    """Compare the shapes of the weights with those of the model that `config` describes, before memory is taken.

    Raises InputError where a tensor has another shape, and where less than half of the numbers are there. Tensors that
    are missing or stored by other names show when the model is opened.
    """
    shapes, layers = source.shapes(), config.get_text_config().num_hidden_layers
    if layers > len(shapes):
        raise InputError(f"{source.place} has {layers} layers by config.json, but {len(shapes)} tensors; correct one")
    with opening(source), torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    if source.gguf:
        shapes = _renamed(source, model)
    for name, parameter in model.named_parameters():
        if (shape := shapes.get(name, parameter.shape)) != parameter.shape:
            raise InputError(
                f"{source.place} holds {name} with the shape {tuple(shape)}, where config.json describes "
                f"{tuple(parameter.shape)}; copy the two from the same model"
            )
    needed, held = sum(parameter.numel() for parameter in model.parameters()), source.parameters
    if needed > 2 * held:
        raise InputError(
            f"{source.place} holds {held:,} numbers, where config.json describes a model of {needed:,}; copy the two "
            "from the same model"
        )


# What a GGUF file says of a model that its tensors say, too, or that changes nothing where there is no scaled rotation.
SHOWN_BY_SHAPES = (
    "attention.key_length",
    "attention.value_length",
    "attention.causal",
    "attention.max_alibi_bias",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.finetuned",
    "use_parallel_residual",
    "vocab_size",
)


def _renamed(source: files.ModelFiles, model: PreTrainedModel) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors of a GGUF file by the names of the parameters that `transformers` makes of them.

    Raises InputError for a tensor that would go nowhere, and for a parameter that would be drawn at random.
    """
    assert source.gguf is not None
    known = GGUF_TO_TRANSFORMERS_MAPPING["config"].get(source.gguf.architecture, {})
    for key, value in source.gguf.of_model().items():
        if key not in known and key not in SHOWN_BY_SHAPES:
            raise InputError(
                f"{source.place} says {key} = {value}, which would be left out where it is opened; use the model's "
                "safetensors"
            )
    config = model.config.get_text_config()
    scaled_for = getattr(config, "query_pre_attn_scalar", None)
    if scaled_for is not None and scaled_for != sizes(config)[2]:
        raise InputError(
            f"{source.place} does not say by what its attention is scaled, and heads of {sizes(config)[2]} would be "
            f"scaled as those of {scaled_for}; use the model's safetensors"
        )
    with opening(source):
        processor = TENSOR_PROCESSORS.get(source.gguf.architecture, TensorProcessor)(config=model.config.to_dict())
        names = get_gguf_hf_weights_map(model, processor)
    if unused := sorted(set(source.gguf.shapes) - set(names)):
        raise InputError(
            f"{source.place} has weights that its model does not: {', '.join(unused[:5])}; use the model's safetensors"
        )
    shapes = {names[name]: shape for name, shape in source.gguf.shapes.items()}
    if missing := sorted({name for name, _ in model.named_parameters()} - set(shapes)):
        raise InputError(
            f"{source.place} lacks weights: {', '.join(missing[:5])}; fetch the file again, or name another"
        )
    return shapes


@contextmanager
def opening(source: files.ModelFiles) -> Iterator[None]:
    """Make an InputError of whatever goes wrong where files of a model are read."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InputError(f"{source.place} does not fit: {error}; give it more GPUs or memory") from error
    except InputError:
        raise
    except Exception as error:  # files of strangers make the libraries raise whatever there is
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{source.place} cannot be opened: {reason:.400}; build or copy it again") from error


def family_of(config: PretrainedConfig) -> Family:
    """Return the family that describes `config`. Raises InputError where none does."""
    family = _of_type(config.model_type)
    if why := family.unsupported(config):
        raise InputError(f"this {config.model_type!r} model cannot be measured: {why}")
    return family


def sizes(config: PretrainedConfig) -> tuple[int, int, int]:
    """Return layers, heads and the dimensions of a head, by names that every configuration knows."""
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return config.num_hidden_layers, config.num_attention_heads, head_dim


def known_alibi(config: PretrainedConfig) -> Alibi | None:
    """Say how a model with ALiBi scores its keys; None for one without, or of a layout that no family describes."""
    family = FAMILIES.get(config.model_type)
    return family.alibi if family and not family.unsupported(config) else None


def _of_type(model_type: str | None) -> Family:
    if model_type not in FAMILIES:
        raise InputError(f"model type {model_type!r} has no adapter; use one of {', '.join(FAMILIES)}")
    return FAMILIES[model_type]


def layers_of(model: PreTrainedModel) -> list[Layer]:
    """Return the layers of `model`, first to last."""
    family = family_of(model.config)
    blocks = model.get_submodule(family.blocks)
    assert isinstance(blocks, nn.ModuleList)
    return [_layer(block, family) for block in blocks]


def _layer(block: nn.Module, family: Family) -> Layer:
    attention = block.get_submodule(family.attention)
    fused = attention.get_submodule(family.alibi.query_key_value) if family.alibi else None
    return Layer(block, attention, fused, attention.get_submodule(family.output))


def query_and_key(fused: Tensor, config: PretrainedConfig) -> tuple[Tensor, Tensor]:
    """Split the fused projection [B, n, 3 H d] into queries and keys, each [B, n, H, d], as the attention sees them.

    For families with ALiBi.
    """
    family = family_of(config)
    assert family.alibi is not None
    _, heads, head_dim = sizes(config)
    if family.alibi.layout == "heads first":
        query, key, _ = fused.unflatten(-1, (heads, 3, head_dim)).unbind(-2)
        return query, key
    clip = config.attn_config.clip_qkv
    query, key, _ = (fused.clamp(-clip, clip) if clip else fused).unflatten(-1, (3, heads, head_dim)).unbind(-3)
    return query, key


def effective_slopes(config: PretrainedConfig) -> Slopes | None:
    """Return the slope s_h of each head in its softmax: logits = q.k / sqrt(d) - s_h * distance. float64 [H].

    None for a family without ALiBi.
    """
    family = family_of(config)
    _, heads, head_dim = sizes(config)
    return family.alibi.slopes(heads, head_dim) if family.alibi else None


def without_double_alibi(model: PreTrainedModel) -> PreTrainedModel:
    """Make eager Falcon attention add ALiBi once.

    In transformers 5.23 the mask given to Falcon's attention already holds ALiBi and the eager branch adds it
    again; a test compares with the sdpa branch and fails once the library changes. None instead of zeros would
    select the rotary branch.
    """
    if isinstance(model, FalconForCausalLM) and model.config.alibi:
        for block in model.transformer.h:
            block.self_attention.register_forward_pre_hook(_zero_alibi, with_kwargs=True)
    return model


def _unrotated(_module: nn.Module, _args: Any, rotation: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Every angle 0. Frequencies of 0 would not do: some kinds of rotary positions set theirs anew, and scale."""
    cosine, sine = rotation
    return torch.ones_like(cosine), torch.zeros_like(sine)


def _zero_alibi(_module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return args, kwargs | {"alibi": torch.zeros_like(kwargs["alibi"])}
