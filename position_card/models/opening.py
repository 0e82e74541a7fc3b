"""Open a decoder of any architecture, and its tokenizer; refuse what would be measured wrongly before work starts."""

import logging
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PretrainedConfig,
    PreTrainedModel,
    modeling_gguf_pytorch_utils,
)
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, dot_natural_key, rename_source_key
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS, GGUF_TOKENIZER_MAPPING
from transformers.modeling_gguf_pytorch_utils import (
    GGUF_TO_TRANSFORMERS_MAPPING,
    TENSOR_PROCESSORS,
    TensorProcessor,
    get_gguf_hf_weights_map,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from position_card.core import devices
from position_card.core.runtime import InputError, announce, log, quoted, shortened
from position_card.models import families, files, gguf_header
from position_card.texts.chat import ChatTemplate
from position_card.texts.tokens import TokenIds, failed

modeling_gguf_pytorch_utils.tqdm = partial(modeling_gguf_pytorch_utils.tqdm, disable=True)  # progress is told by us
for reports in ("modeling_utils", "distributed.tensor_parallel"):  # so are faults of weights, and in one line
    logging.getLogger(f"transformers.{reports}").setLevel(logging.ERROR)

SHORTEST = 9  # tokens of a prompt: fewer have no middle to compare the ends with

# Where configurations say how many tokens a model takes, likeliest first; the last one holds whatever the positions.
REFUSED_BEYOND = "max_seq_len"
LIMITS = ("max_position_embeddings", "n_positions", REFUSED_BEYOND)


def open_decoder(
    place: str | Path,
    device: str | Mapping[str, str] = "cpu",
    precision: str = "float32",
    config: PretrainedConfig | None = None,
    positions: Literal["own", "none"] = "own",
) -> PreTrainedModel:
    """Open a directory or a GGUF file for measuring, whatever the architecture: eager attention, and no code of others.

    `device` is "cpu", "cuda", "balanced" over all visible GPUs, or a mapping of modules to devices. `precision` is that
    of the weights, float32 or bfloat16, to which those of a GGUF file are unpacked; what is measured is reduced in
    float32 either way. `config` is what `require_decoder` returned, if it was asked before. `positions` "none" turns
    rotary positions off, for a model that was trained without and is stored as one of a family that has them. Raises
    InputError as `require_decoder` does, and where weights are missing or cannot be read.
    """
    config = config or require_decoder(place)
    model = families.prepare_for_measuring(_load(files_of(place), config, device, precision)).eval()
    _reader.cache_clear()  # which closes the file
    if precision == "bfloat16" and not devices.native_bf16(model.device.type):
        log.warning("%s: the hardware here only emulates bfloat16, which takes longer than float32", place)
    if positions == "none":
        rotations = [module for name, module in model.named_modules() if name.endswith("rotary_emb")]
        if families.family_of(config) or not rotations:  # Falcon has the module although it uses ALiBi
            raise InputError(f"{place} has no rotary positions that could be turned off; set positions to own")
        for rotation in rotations:
            rotation.register_forward_hook(_unrotated)
    return model


def open_untrained(
    directory: str | Path,
    seed: int,
    folder: Path,
    device: str = "cpu",
    precision: str = "float32",
    initializer_range: float | None = None,
    positions: Literal["own", "none"] = "own",
    layers: int | None = None,
) -> PreTrainedModel:
    """Open a copy of the model in a directory whose weights are drawn by `seed`, as the library does before training.

    `initializer_range` is their standard deviation, where it is not that of the configuration. With `layers` the copy
    has only as many, the first ones. It is opened like the model itself, from a directory in `folder` that goes
    afterwards. Raises InputError as `open_decoder` does, and where the model has fewer layers.
    """
    config = require_decoder(directory)
    if initializer_range is not None:
        config.get_text_config().initializer_range = initializer_range
    if layers is not None:
        _keep_layers(config.get_text_config(), layers, directory)
    folder.mkdir(parents=True, exist_ok=True)
    source = files_of(directory)
    with _opening(source), torch.random.fork_rng(devices=[]), TemporaryDirectory(dir=folder) as copy:
        torch.manual_seed(seed)
        AutoModelForCausalLM.from_config(config, dtype=getattr(torch, precision)).save_pretrained(copy)
        return open_decoder(copy, device, precision, positions=positions)


def _keep_layers(config: PretrainedConfig, layers: int, place: str | Path) -> None:
    """Have a configuration describe the first layers alone."""
    if layers > config.num_hidden_layers:
        raise InputError(f"{place} has {config.num_hidden_layers} layers, but {layers} were asked for; ask for fewer")
    config.num_hidden_layers = layers
    if kinds := getattr(config, "layer_types", None):
        config.layer_types = kinds[:layers]


def open_decoder_or_copy(
    directory: str | Path,
    initializer_range: float | None,
    seed: int,
    folder: Path,
    device: str,
    positions: Literal["own", "none"],
) -> PreTrainedModel:
    """Open a model, or, where an `initializer_range` is given, a copy of it with random weights of this deviation."""
    if initializer_range is None:
        return open_decoder(directory, device, positions=positions)
    return open_untrained(directory, seed, folder, device, initializer_range=initializer_range, positions=positions)


def files_of(place: str | Path) -> files.ModelFiles:
    """Return what a model is opened from: a GGUF file, or the files of a directory.

    The header of a GGUF file is read once, as long as the file has the same time and size. Raises InputError where they
    may not be opened.
    """
    place = Path(place)
    if place.suffix != files.GGUF or not os.path.isfile(place):
        return files.model_files(place)
    status = place.stat()
    return _gguf_files(place, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _gguf_files(file: Path, _changed: int, _size: int) -> files.ModelFiles:
    return gguf_header.gguf_files(file)


def require_decoder(directory: str | Path) -> PretrainedConfig:
    """Return the configuration of a directory or GGUF file whose decoder can be opened.

    No weights are read, and no code is run.

    Raises InputError where there is none, where its weights are pickled or quantised, and where the model is no decoder
    that the library knows by itself.
    """
    source = files_of(directory)
    kind = source.configuration.get("model_type")
    place = f"{source.place} holds a {kind!r} model"
    if not source.gguf and kind not in CONFIG_MAPPING:
        raise InputError(f"{place}, which needs code of its own, and none is run; use one that the library knows")
    with _opening(source):
        config = AutoConfig.from_pretrained(**source.reading)
    if fault := decoder_fault(config):
        raise InputError(f"{place}, {fault}")
    if getattr(config, "slow_but_exact", False) and getattr(config, "pretraining_tp", 1) > 1:
        raise InputError(
            f"{place} with slow_but_exact, which hides what attention adds; set slow_but_exact to false in config.json"
        )
    if getattr(config, "quantization_config", None) == {}:
        del config.quantization_config  # it says nothing, but `transformers` would look for a method in it
    config.return_dict = True  # whatever config.json says: results are read by name
    _drop_attention(config, source.place)
    _require_shapes(source, config)
    return config


def decoder_fault(config: PretrainedConfig) -> str | None:
    """Why no model with this configuration is measured, after "which" or "whose"; None where it may be one that is."""
    text = config.get_text_config()
    if config.is_encoder_decoder or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        if text is not config and not config.is_encoder_decoder:
            return "whose text decoder transformers does not open by itself; use a model of text alone"
        return "which is not a decoder; use a causal language model"
    if getattr(text, "num_attention_heads", None) is None:
        return "which has no attention heads; use a decoder with softmax attention"
    if missing := [name for name in ("num_hidden_layers", "hidden_size", "vocab_size") if not hasattr(text, name)]:
        return f"whose configuration does not say its {' and '.join(missing)}; use another decoder"
    return None


def _drop_attention(config: PretrainedConfig, place: str) -> None:
    """Forget which kind of attention a configuration names, which may not be installed; eager attention is opened."""
    implementation = config._attn_implementation
    queue = [config]
    while queue:
        part = queue.pop()
        part._attn_implementation_internal = None
        queue += [inner for name in part.sub_configs if (inner := getattr(part, name, None)) is not None]
    if implementation not in (None, "eager", "sdpa"):
        announce(
            f"{place} names {implementation} as its attention, which is left aside: what is measured is eager attention"
        )


def longest(config: PretrainedConfig) -> int | None:
    """Return the most tokens that a model is made for; None where its positions know no end, as those of ALiBi."""
    text = config.get_text_config()
    limits = (REFUSED_BEYOND,) if families.family_of(config) else LIMITS
    return next((int(limit) for name in limits if (limit := getattr(text, name, None)) and limit > 0), None)


def lengths(config: PretrainedConfig, wanted_lengths: Iterable[int]) -> list[int]:
    """Return the lengths to measure, each once: a length that the model cannot take is cut to the one that it can.

    Raises InputError where the model takes fewer tokens than a measurement needs.
    """
    limit = longest(config)
    if limit is not None and limit < SHORTEST:
        raise InputError(f"this model takes {limit} tokens, but a measurement needs prompts of at least {SHORTEST}")
    return sorted({n if limit is None else min(n, limit) for n in wanted_lengths})


def tokenizer_note(place: str | Path) -> str | None:
    """Say what `transformers` does otherwise than the header of a GGUF file says of its tokenizer; None if nothing.

    Text is split before merges as `tokenizer.ggml.pre` says. What it names that `transformers` does not know is split
    as GPT-2 splits it.
    """
    source = files_of(place) if Path(place).is_file() else None
    if source is None or source.gguf is None:
        return None
    values = source.gguf.values
    split, notes = values.get("tokenizer.ggml.pre"), []
    if values.get("tokenizer.ggml.model") == "gpt2" and split not in (*GGUF_PRE_TOKENIZER_SPLITS, *SPLIT_AS_GPT2):
        notes.append(f"text is split as by GPT-2, since transformers does not know the file's own way, {split!r}")
    for key, value in values.items():
        name = key.removeprefix("tokenizer.ggml.")
        if name not in (key, *READ_OF_TOKENIZERS) and not name.endswith("_token_id"):
            notes.append(f"transformers does not read {key} = {quoted(value)}")
    return re.sub(r"[^\w .,;:='-]", "?", "; ".join(notes)) or None  # on a page, words of strangers are no Markdown


def _require_blank(tokenizer: Tokenizer, header: files.GgufHeader, place: str) -> None:
    """Raise InputError where a tokenizer puts a blank before a text and its GGUF file says not to, or the reverse."""
    setting, key = header.values.get("tokenizer.ggml.add_space_prefix"), "tokenizer.ggml.add_space_prefix"
    puts_blank = "".join(tokenizer.encode("a", add_special_tokens=False).tokens).startswith(BLANKS)
    if isinstance(setting, bool) and setting != puts_blank:
        raise InputError(
            f"{place} says {key} = {str(setting).lower()}, but transformers puts {'a' if puts_blank else 'no'} blank "
            "before a text; give the tokenizer of the model (--tokenizer DIR)"
        )


def open_tokenizer(directory: str | Path) -> tuple[Tokenizer, list[int]]:
    """Return the tokenizer of a directory or GGUF file, and the special tokens that it puts before a text by itself.

    What it puts after a text is left out: prompts are cut from texts, and have no end. Raises InputError where there is
    no fast tokenizer.
    """
    directory = Path(directory)
    source = files_of(directory) if directory.is_file() else files.ModelFiles(directory, {}, ())
    if not source.gguf and not (directory / "tokenizer.json").is_file():
        raise InputError(
            f"model directory {directory} lacks tokenizer.json, the file of a fast tokenizer; put that of its model "
            "there, or save it again: AutoTokenizer.from_pretrained(directory).save_pretrained(directory)"
        )
    with _opening(source, "has a tokenizer that cannot be opened"):
        tokenizer = AutoTokenizer.from_pretrained(**source.reading)
        if not tokenizer.is_fast:
            raise InputError(f"the tokenizer of {directory} is not a fast one; save it again from AutoTokenizer")
        if source.gguf:
            _require_blank(tokenizer.backend_tokenizer, source.gguf, source.place)
        return framing(tokenizer.backend_tokenizer)


def chat_template(directory: str | Path) -> ChatTemplate | None:
    """Return the chat template of the tokenizer of a directory or GGUF file; None where it has none.

    Of several that have names it is the one that is called default. It is not run. Raises InputError as
    `open_tokenizer` does.
    """
    directory = Path(directory)
    source = files_of(directory) if directory.is_file() else files.ModelFiles(directory, {}, ())
    with _opening(source, "has a tokenizer that cannot be opened"):
        return template_of(AutoTokenizer.from_pretrained(**source.reading))


def template_of(tokenizer: Any) -> ChatTemplate | None:
    """Return the chat template of a tokenizer, with the tokens that it may write; None where it has none."""
    templates = getattr(tokenizer, "chat_template", None)
    text = templates.get("default") if isinstance(templates, Mapping) else templates
    if not isinstance(text, str) or not text.strip():
        return None
    tokens = {name: token for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    return ChatTemplate(text, tokens)


def framing(fast: Tokenizer) -> tuple[Tokenizer, list[int]]:
    """Return a tokenizer that neither pads nor truncates from now on, and what it puts before a text by itself."""
    fast.no_padding()
    fast.no_truncation()
    alone, framed = (fast.encode("a", add_special_tokens=special).ids for special in (False, True))
    before = next((place for place in range(len(framed)) if framed[place : place + len(alone)] == alone), None)
    if before is None:
        raise ValueError("it drops or changes a text where it adds special tokens")
    return fast, framed[:before]


def require_known_tokens(tokens: TokenIds, model: PreTrainedModel, directory: str | Path) -> None:
    """Raise InputError where token ids lie beyond the embeddings of `model`: those of another tokenizer."""
    rows = model.get_input_embeddings().weight.shape[0]
    if (largest := int(tokens.max())) >= rows:
        raise InputError(
            f"the tokenizer of {directory} gives id {largest}, but its model knows {rows} tokens; "
            "put the tokenizer of this model there"
        )


def _load(
    source: files.ModelFiles,
    config: PretrainedConfig,
    device: str | Mapping[str, str],
    precision: str,
) -> PreTrainedModel:
    """Open a model from its files and its configuration.

    Raises InputError unless the files hold the weights that the configuration describes, all of them and no others.
    """
    # packed weights would need kernels that are fetched
    format_arguments = (
        {"quantization_config": GgufConfig(dequantize=True)} if source.gguf else {"use_safetensors": True}
    )
    with _opening(source):
        model, loading = AutoModelForCausalLM.from_pretrained(
            **source.reading,
            **format_arguments,
            config=config,
            attn_implementation="eager",
            dtype=getattr(torch, precision),
            output_loading_info=True,
            device_map=None if device == "cpu" else device,
        )
    for keys, fault in (("missing_keys", "lacks weights"), ("unexpected_keys", "has weights that its model does not")):
        names = sorted(map(str, loading[keys]))
        if keys == "unexpected_keys" and config.get_text_config() is not config:
            names = _of_decoder(names, source)
        if names:
            raise InputError(
                f"{source.place} {fault}: {', '.join(names[:5])}{' and others' if names[5:] else ''}; "
                "config.json and the weights are of two models, or parts were lost: build or copy it again"
            )
    if device == "balanced" and {"cpu", "disk"} & set(map(str, getattr(model, "hf_device_map", {}).values())):
        raise InputError(f"{source.place} does not fit on its GPUs; give it more of them (gpus)")
    return model


def _of_decoder(unexpected: Iterable[str], source: files.ModelFiles) -> list[str]:
    """Which of the unexpected tensors lie among those of the text decoder; others are of what reads images or sounds.

    Those of the decoder have names that begin alike, but for those of its head.
    """
    names = set(unexpected)
    paths = [name.split(".")[:-1] for name in source.shapes() if name not in names and not name.startswith("lm_head.")]
    begin = ".".join(os.path.commonprefix(paths))  # noqa: RUF071 (of lists, so of whole parts of names)
    return [name for name in sorted(names) if not begin or name.startswith(f"{begin}.")]


def _require_shapes(source: files.ModelFiles, config: PretrainedConfig) -> None:
    """Compare the shapes of the weights with those of the model that `config` describes, before memory is taken.

    Raises InputError where a tensor has another shape or is there twice, and where less than half of the numbers are
    there. Tensors that are missing or stored by other names show when the model is opened.
    """
    shapes, layers = source.shapes(), config.get_text_config().num_hidden_layers
    if layers > len(shapes):
        raise InputError(f"{source.place} has {layers} layers by config.json, but {len(shapes)} tensors; correct one")
    with _opening(source), torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    if source.gguf:
        shapes = _renamed(source, model)
    else:
        _require_single(source, shapes, model)
    for name, parameter in model.named_parameters():
        if (shape := shapes.get(name, parameter.shape)) != parameter.shape:
            raise InputError(
                f"{source.place} holds {name} with the shape {tuple(shape)}, where config.json describes "
                f"{tuple(parameter.shape)}; copy the two from the same model"
            )
    count, numbers = sum(parameter.numel() for parameter in model.parameters()), source.parameters
    if count > 2 * numbers:
        raise InputError(
            f"{source.place} holds {numbers:,} numbers, where config.json describes a model of {count:,}; copy the "
            "two from the same model"
        )


def _require_single(source: files.ModelFiles, names: Iterable[str], model: PreTrainedModel) -> None:
    """Raise InputError where `transformers` makes one parameter of two of these tensors; one would win in silence.

    It adds and removes the prefix of the base model, and renames. Parts of a parameter, such as experts, are one each.
    """
    prefix, parameters = model.base_model_prefix, model.state_dict()
    names_by_target: defaultdict[str, dict[str, str]] = defaultdict(dict)
    with _opening(source):
        rules = get_model_conversion_mapping(model)
        renamings, converters = ([r for r in rules if isinstance(r, of)] for of in (WeightRenaming, WeightConverter))
        for name in sorted(names, key=dot_natural_key):
            target, rule = rename_source_key(name, renamings, converters, prefix, parameters)
            part = name.removeprefix(f"{prefix}.") if rule else ""
            if part in names_by_target[target] or (names_by_target[target] and "" in {part, *names_by_target[target]}):
                second = next(iter(names_by_target[target].values()))
                raise InputError(f"{source.place} has {target} twice, as {second} and as {name}; remove one")
            names_by_target[target][part] = name


EXPERTS = ("expert_count", "expert_used_count")  # 0 of them say nothing
# What a GGUF file says of its tokenizer that is read, or that decides nothing where a text is cut into tokens.
READ_OF_TOKENIZERS = (
    *(key.removeprefix("ggml.") for names in GGUF_TOKENIZER_MAPPING.values() for key in names),
    "token_type_count",
    "add_sep_token",
)
SPLIT_AS_GPT2 = (None, "default", "gpt-2", "gpt2", "olmo", "jais", "mpt")  # by llama.cpp, too
BLANKS = ("\N{LOWER ONE EIGHTH BLOCK}", "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}", " ")  # as tokens begin with one

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
    """Return the shapes of the tensors of a GGUF file by the names of the parameters that `transformers` makes of them.

    Raises InputError for a tensor that would go nowhere, and for a parameter that would be drawn at random.
    """
    assert source.gguf is not None
    known_keys = GGUF_TO_TRANSFORMERS_MAPPING["config"].get(source.gguf.architecture, {})
    for key, value in source.gguf.model_values().items():
        if key not in known_keys and key not in SHOWN_BY_SHAPES and not (value == 0 and key in EXPERTS):
            raise InputError(
                f"{source.place} says {key} = {value}, which would be left out where it is opened; use the model's "
                "safetensors"
            )
    config = model.config.get_text_config()
    width, scaled_for = families.sizes(config)[2], getattr(config, "query_pre_attn_scalar", None)
    if scaled_for is not None and scaled_for != width:
        raise InputError(
            f"{source.place} does not say by what its attention is scaled, and heads of {width} would be scaled as "
            f"those of {scaled_for}; use the model's safetensors"
        )
    with _opening(source):
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
def _opening(source: files.ModelFiles, fault: str = "cannot be opened") -> Iterator[None]:
    """Make an InputError of whatever goes wrong while files of a model are read; its line says where, and the `fault`.

    What is no fault of the files, such as an interruption, stays as it is (`failed`).
    """
    try:
        with _parsed_once():
            yield
    except torch.OutOfMemoryError as error:
        raise InputError(f"{source.place} does not fit: {error}; give it more GPUs or memory") from error
    except InputError:
        raise
    except BaseException as error:  # files of strangers make the libraries raise whatever there is
        if not failed(error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{source.place} {fault}: {shortened(reason, 400)}; build or copy it again") from error


@contextmanager
def _parsed_once() -> Iterator[None]:
    """Keep what transformers makes anew of a GGUF file: names of tensors for every module, its header at every opening.

    The header of one file is kept beyond this context, until weights are read, and as long as the file has the same
    time and size.
    """
    name_map, read = gguf.get_tensor_name_map, gguf.GGUFReader

    def reader(file: str) -> gguf.GGUFReader:
        status = os.stat(file)
        return _reader(file, status.st_mtime_ns, status.st_size)

    gguf.get_tensor_name_map, gguf.GGUFReader = cache(name_map), reader  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        gguf.get_tensor_name_map, gguf.GGUFReader = name_map, read  # type: ignore[misc]


class PlainReader(gguf.GGUFReader):
    """A reader of GGUF files whose parts are plain arrays, since each number of a memmap is taken by code in Python."""

    @property
    def data(self) -> Any:
        return self._data

    @data.setter
    def data(self, mapped: Any) -> None:
        self._data = np.asarray(mapped)  # still of the file


@lru_cache(maxsize=1)
def _reader(file: str, _changed: int, _size: int) -> gguf.GGUFReader:
    return PlainReader(file)


def _unrotated(_module: nn.Module, _args: Any, rotation: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Set every angle to 0. Frequencies of 0 would not do: some rotary positions set theirs anew, and scale."""
    cosine, sine = rotation
    return torch.ones_like(cosine), torch.zeros_like(sine)
