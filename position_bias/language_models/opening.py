"""Open a decoder of any architecture, and its tokenizer; refuse what would be measured wrongly before work starts."""

import math
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PretrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from position_bias.language_models import families, files, gguf_header
from position_bias.language_models.tokens import TokenIds
from position_bias.running.runtime import InputError

SHORTEST = 9  # tokens of a prompt: fewer have no middle to compare the ends with

# Where configurations say how many tokens a model takes, likeliest first.
LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len")


def open_decoder(
    place: str | Path, device: str = "cpu", precision: str = "float32", config: PretrainedConfig | None = None
) -> PreTrainedModel:
    """Open a directory or a GGUF file for measuring, as `families.open_model` does, whatever the architecture.

    Weights of a GGUF file are unpacked to `precision`. `config` is what `require_decoder` returned for it, if it was
    asked before. Raises InputError as `require_decoder` does, and where weights are missing or cannot be read.
    """
    config = config or require_decoder(place)
    return families.without_double_alibi(families.load(files_of(place), config, device, precision)).eval()


def open_untrained(
    directory: str | Path, seed: int, folder: Path, device: str = "cpu", precision: str = "float32"
) -> PreTrainedModel:
    """Open a copy of the model in a directory whose weights are drawn by `seed`, as the library does before training.

    It is opened like the model itself, from a directory in `folder` that goes afterwards. Raises InputError as
    `open_decoder` does.
    """
    config = require_decoder(directory)
    folder.mkdir(parents=True, exist_ok=True)
    source = files_of(directory)
    with families.opening(source), torch.random.fork_rng(devices=[]), TemporaryDirectory(dir=folder) as copy:
        torch.manual_seed(seed)
        AutoModelForCausalLM.from_config(config, dtype=getattr(torch, precision)).save_pretrained(copy)
        return open_decoder(copy, device, precision)


def files_of(place: str | Path) -> files.ModelFiles:
    """Return what a model is opened from: a GGUF file, or the files of a directory.

    Raises InputError where they may not be opened.
    """
    place = Path(place)
    return gguf_header.gguf_files(place) if place.suffix == files.GGUF and place.is_file() else files.model_files(place)


def require_decoder(directory: str | Path) -> PretrainedConfig:
    """Return the configuration of a directory or GGUF file whose decoder can be opened.

    No weights are read, and no code is run.

    Raises InputError where there is none, where its weights are pickled or quantised, and where the model is no decoder
    that the library knows by itself.
    """
    source = files_of(directory)
    kind = source.described.get("model_type")
    place = f"{source.place} holds a {kind!r} model"
    if not source.gguf and kind not in CONFIG_MAPPING:
        raise InputError(f"{place}, which needs code of its own that is not run; use one that the library knows")
    with families.opening(source):
        config = AutoConfig.from_pretrained(**source.reading)
    if config.is_encoder_decoder or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise InputError(f"{place}, which is no decoder; use a causal language model")
    if getattr(config.get_text_config(), "num_attention_heads", None) is None:
        raise InputError(f"{place}, which has no attention heads; use a decoder with softmax attention")
    if getattr(config, "slow_but_exact", False) and getattr(config, "pretraining_tp", 1) > 1:
        raise InputError(
            f"{place} with slow_but_exact, which hides what attention adds; set slow_but_exact to false in config.json"
        )
    families.require_described(source, config)
    return config


def longest(config: PretrainedConfig) -> int | None:
    """Return the most tokens that a model is made for; None where its positions know no end, as those of ALiBi."""
    family = families.FAMILIES.get(config.model_type)
    if family and family.alibi and not family.unsupported(config):
        known = family.longest(config)
        return int(known) if known < math.inf else None
    text = config.get_text_config()
    return next((int(limit) for name in LIMITS if (limit := getattr(text, name, None))), None)


def lengths(config: PretrainedConfig, asked: Iterable[int]) -> list[int]:
    """The lengths to measure where these are asked for, each once: what the model cannot take is cut to what it can.

    Raises InputError where the model takes fewer tokens than a measurement needs.
    """
    most = longest(config)
    if most is not None and most < SHORTEST:
        raise InputError(f"this model takes {most} tokens, but a measurement needs prompts of at least {SHORTEST}")
    return sorted({n if most is None else min(n, most) for n in asked})


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
    with families.opening(source):
        tokenizer = AutoTokenizer.from_pretrained(**source.reading)
    if not tokenizer.is_fast:
        raise InputError(f"the tokenizer of {directory} is no fast one; save it again as such")
    fast: Tokenizer = tokenizer.backend_tokenizer
    fast.no_padding()
    fast.no_truncation()
    alone, framed = (fast.encode("a", add_special_tokens=special).ids for special in (False, True))
    before = next(place for place in range(len(framed)) if framed[place : place + len(alone)] == alone)
    return fast, framed[:before]


def require_known_tokens(tokens: TokenIds, model: PreTrainedModel, directory: str | Path) -> None:
    """Raise InputError where token ids lie beyond the embeddings of `model`: those of another tokenizer."""
    rows = model.get_input_embeddings().weight.shape[0]
    if (largest := int(tokens.max())) >= rows:
        raise InputError(
            f"the tokenizer of {directory} gives id {largest}, but its model knows {rows} tokens; "
            "put the tokenizer of this model there"
        )
