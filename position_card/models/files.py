"""The files that a model is opened from, and whether they may be opened. Nothing is run here, and no weight is read.

A model is a directory with `config.json` and weights, which are `model.safetensors` or the shards that
`model.safetensors.index.json` names; everything else that lies there is left alone. Or it is one GGUF file. This module
imports no torch, since every call of the workflow reads it.
"""

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from position_card.core.runtime import InputError, open_file, quoted

CONFIGURATION = "config.json"
SINGLE = "model.safetensors"
INDEX = f"{SINGLE}.index.json"
GGUF = ".gguf"
ADAPTER = "adapter_config.json"  # of LoRA and its like, whose model lies elsewhere
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")  # weights that can run code when they are read
TYPES = ("BF16", "F16", "F32", "F64")  # of weights; others are quantised, and no numbers without their scales
LARGEST = 64_000_000  # bytes of a JSON file; the indices of the largest models have some 100,000
AGAIN = "build or copy the whole directory again"
SAVE_AGAIN = "save it again with save_pretrained, which writes safetensors"

# Numbers of a configuration that count something.
COUNTS = (
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "n_head",
    "n_heads",
    "hidden_size",
    "n_embd",
    "d_model",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
)
# Other values of a configuration that decide how a model is opened, with the types that they may have.
KINDS: Mapping[str, tuple[type, ...]] = {
    "model_type": (str,),
    "architectures": (list,),
    "is_encoder_decoder": (bool,),
    "tie_word_embeddings": (bool,),
    "quantization_config": (dict,),
    "text_config": (dict,),
    "hidden_act": (str,),
    "torch_dtype": (str,),
    "dtype": (str,),
}
Shapes = Mapping[str, tuple[int, ...]]
Value = str | int | float | bool | None


@dataclass(frozen=True)
class GgufHeader:
    """A model as the header of its GGUF file describes it."""

    values: dict[str, Value]  # by key; None of arrays, which are passed over
    shapes: dict[str, tuple[int, ...]]  # of every tensor by its name, in the order that torch has
    types: Counter[str]  # how many tensors are stored in each type, such as Q4_1 or F32

    @property
    def architecture(self) -> str:
        """Which kind of model it is, such as llama."""
        return str(self.values["general.architecture"])

    def model_values(self) -> dict[str, Value]:
        """Return what is said of the model itself, by keys without the name of the architecture."""
        begin = f"{self.architecture}."
        return {key.removeprefix(begin): value for key, value in self.values.items() if key.startswith(begin)}

    @property
    def quantisation(self) -> str:
        """The type of most matrices, such as Q4_1; F16, BF16 or F32 where nothing is quantised."""
        matrices = self.types - Counter({"F32": self.types["F32"]}) or self.types
        return matrices.most_common(1)[0][0]


@dataclass(frozen=True)
class ModelFiles:
    """What a model is opened from."""

    directory: Path
    configuration: Mapping[str, Any]  # config.json; of a GGUF file, the type of the model alone
    shards: tuple[Path, ...]  # files of weights, each in the directory
    gguf: GgufHeader | None = None  # of a GGUF file, which is the only shard

    def shapes(self) -> Shapes:
        """Return the shape of every tensor, by the name that its file has for it, from the headers of the shards.

        Raises InputError where a shard is damaged, where two hold the same tensor, and for numbers of other TYPES.
        """
        if self.gguf:
            return self.gguf.shapes
        shapes: dict[str, tuple[int, ...]] = {}
        for shard in self.shards:
            try:
                with safe_open(shard, framework="np") as tensors:
                    slices = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118
                    shapes_of_shard = {name: tuple(part.get_shape()) for name, part in slices.items()}
                    unknown_types = [
                        f"{name} as {kind}" for name, part in slices.items() if (kind := part.get_dtype()) not in TYPES
                    ]
            except (OSError, SafetensorError) as error:
                raise InputError(f"{self.place} {_damaged(shard, error)}") from error
            if unknown_types:
                raise InputError(
                    f"{self.place} has {unknown_types[0]}, not as {', '.join(TYPES)}; use a copy in one of them"
                )
            if twice := sorted(set(shapes_of_shard) & set(shapes)):
                raise InputError(f"{self.place} has the tensor {twice[0]} in two of its files; {AGAIN}")
            shapes |= shapes_of_shard
        return shapes

    @property
    def parameters(self) -> int:
        """How many numbers the weights are."""
        return sum(math.prod(shape) for shape in self.shapes().values())

    @property
    def place(self) -> str:
        """What a message calls the model's directory or file."""
        return f"GGUF file {self.shards[0]}" if self.gguf else f"model directory {self.directory}"

    @property
    def reading(self) -> dict[str, Any]:
        """How `from_pretrained` finds the model: arguments by name."""
        arguments = {
            "pretrained_model_name_or_path": self.directory,
            "local_files_only": True,
            "trust_remote_code": False,
        }
        return {**arguments, "gguf_file": self.shards[0].name} if self.gguf else arguments


def sha256(file: Path) -> str:
    """Return the SHA-256 of what a file holds, which tells it from others of its name and size."""
    with open_file(file, f"file {file}", "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def model_files(directory: str | Path) -> ModelFiles:
    """Return the files of the model in a directory.

    Raises InputError where a file is missing, where weights are pickled or lie elsewhere, and where the configuration
    is no such thing, or asks for what is not read: an adapter, quantised weights, weights or kernels by another name.
    """
    directory = Path(directory)
    place = f"model directory {directory}"
    if os.path.isfile(directory / ADAPTER):  # which says no of names that no file can have
        raise InputError(
            f"{place} holds an adapter, as of LoRA, without its model; merge the two (merge_and_unload of peft), then "
            "save the whole model with save_pretrained"
        )
    if not os.path.isfile(directory / CONFIGURATION):
        raise InputError(f"{place} lacks config.json; save the model there with save_pretrained, or copy it whole")
    configuration = read(directory, CONFIGURATION)
    for fault in _faults(configuration):
        raise InputError(f"{place} has a {CONFIGURATION} {' '.join(fault.split())}")
    if configuration.get("quantization_config"):
        method = " ".join(str(configuration["quantization_config"].get("quant_method", "quantised")).split())
        raise InputError(f"{place} has quantised weights ({method}); use a copy in float32 or bfloat16")
    return ModelFiles(directory, configuration, tuple(directory / name for name in _shards(directory)))


def _shards(directory: Path) -> list[str]:
    """Names of the files of weights, as `transformers` chooses them: one file, or those that the index names."""
    place = f"model directory {directory}"
    if (directory / SINGLE).is_file():
        return [SINGLE]
    if not (directory / INDEX).is_file():
        if pickled := sorted(path.name for pattern in PICKLED for path in directory.glob(pattern)):
            raise InputError(
                f"{place} has its weights pickled ({pickled[0]}), which can run code when it is read; {SAVE_AGAIN}"
            )
        raise InputError(f"{place} lacks {SINGLE}, and no other weights are read; {SAVE_AGAIN}")
    file_by_tensor = read(directory, INDEX).get("weight_map")
    if (
        not isinstance(file_by_tensor, dict)
        or not file_by_tensor
        or not all(isinstance(name, str) for name in file_by_tensor.values())
    ):
        raise InputError(f"{place} has a damaged {INDEX}, which names no files of weights; {AGAIN}")
    shards = sorted(set(file_by_tensor.values()))
    for shard in shards:
        if not (shard.isprintable() and re.fullmatch(r"[^/\\]+\.safetensors", shard)):
            raise InputError(
                f"{place} has an {INDEX} that names {shard!r}, which is no *.safetensors beside it; {SAVE_AGAIN}"
            )
        if not os.path.isfile(directory / shard):
            raise InputError(f"{place} lacks {shard}; {AGAIN}")
    return shards


def read(directory: Path, name: str) -> dict[str, Any]:
    """Read a JSON file in a model's directory. Raises InputError where it is no mapping, or unreadable."""
    file = directory / name
    place = f"model directory {directory} has a {name}"
    with open_file(file, f"file {file}", "rb") as content:
        size = os.fstat(content.fileno()).st_size
    if size > LARGEST:
        raise InputError(f"{place} of {size / 1e6:.0f} MB, which no model has; {AGAIN}")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{place} that cannot be read ({error}); {AGAIN}") from error
    if not isinstance(content, dict):
        raise InputError(f"{place} that holds no keys and values, but {quoted(content)}; {AGAIN}")
    return content


def _faults(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the configuration of a model, or with one inside it, as ends of a sentence.

    A value is wrong that cannot be meant, such as "with num_hidden_layers = -1", or that asks for what is not opened.
    """
    if configuration.get("transformers_weights") is not None:
        yield f"that names other weights (transformers_weights); remove this key, and {SAVE_AGAIN}"
    for key, value in configuration.items():
        if isinstance(value, dict):
            yield from (f"whose {key} is one {fault}" for fault in _faults(value))
        elif key.endswith("_implementation") and not (value is None or re.fullmatch(r"[a-z0-9_]+", str(value))):
            yield f"that asks for code of the hub ({key} = {value!r}), which is not fetched; remove this key"
        if value is None:
            continue
        if key in COUNTS and not (type(value) is int and value > 0) and not isinstance(value, list):
            yield f"with {key} = {value!s:.40}, which is no positive whole number; correct it"
        if key in KINDS and not isinstance(value, KINDS[key]):
            yield f"with {key} = {value!s:.40}, which is not of the kind {KINDS[key][0].__name__}; correct it"


def _damaged(shard: Path, error: Exception) -> str:
    """Say why the headers of a file of weights cannot be read: it is a pointer of Git LFS, or damaged."""
    with open_file(shard, f"file {shard}", "rb") as file:
        pointer = file.read(16).startswith(b"version https://")
    if pointer:
        return f"has a Git LFS pointer in place of {shard.name}; fetch the file itself (git lfs pull)"
    return f"has a damaged {shard.name} ({' '.join(str(error).split())}); {AGAIN}"
