"""What the header of a GGUF file says of its model, read before any weight is, and within the bounds of the file.

`transformers` opens a GGUF file, but says nothing where it leaves something out: a scaled rotation, blocks beyond the
counted ones, tensors without a parameter. What it would misread is refused here. The format is that of ggml's
documentation, versions 2 and 3.
"""

import math
import mmap
import re
import struct
from collections import Counter
from pathlib import Path

from position_card.core.runtime import InputError, open_file
from position_card.models.files import GgufHeader, ModelFiles, Value

MAGIC, VERSIONS = b"GGUF", (2, 3)
TEXT, ARRAY = 8, 9  # kinds of values; all others are numbers
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
AGAIN = "fetch the file again, or name another"


class _Bytes:
    """The bytes of a file, taken one value after the other. Every read beyond its end raises ValueError."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.place = data, 0

    def skip(self, count: int) -> slice:
        """Pass so many bytes, and return where they are."""
        begin, self.place = self.place, self.place + count
        if self.place > len(self.data):
            raise ValueError("it ends inside its header")
        return slice(begin, self.place)

    def take(self, count: int) -> bytes:
        """Return the next bytes, so many."""
        return self.data[self.skip(count)]

    def number(self, code: str) -> int:
        """Return the next number, little-endian, of the type that this `code` of the module struct means."""
        (value,) = struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))
        return value

    def text(self) -> str:
        """Return the next text: the number of its bytes, of 64 bits, then UTF-8."""
        return self.take(self.number("Q")).decode("utf-8")

    def value(self, kind: int) -> Value:
        """Return the next value of a kind, as its number in the format says; a list is passed over, and is None.

        Raises ValueError for an unknown kind.
        """
        if kind == TEXT:
            return self.text()
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind != ARRAY:
            raise ValueError(f"it holds a value of the unknown kind {kind}")
        inner, count = self.number("I"), self.number("Q")
        if inner in NUMBERS:
            self.skip(count * struct.calcsize(f"<{NUMBERS[inner]}"))
        else:
            for _ in range(count):  # each takes some bytes, so that the end of the file ends a count that is too large
                self.value(inner)
        return None


def gguf_files(file: Path) -> ModelFiles:
    """Return the one file that a model is opened from, with its header.

    Raises InputError where it is damaged or does not fit the file, and where `transformers` would misread the model:
    one part of several, a scaled rotation, or another number of blocks than the file counts.
    """
    try:
        with (
            open_file(file, f"GGUF file {file}", "rb") as content,
            mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            header = _read(_Bytes(data))
    except InputError:
        raise
    except (OSError, ValueError, RecursionError, struct.error) as error:
        raise InputError(f"GGUF file {file} cannot be read: {' '.join(str(error).split())}; {AGAIN}") from error
    for fault in _misread(header):
        raise InputError(f"GGUF file {file} {' '.join(fault.split())}")
    return ModelFiles(file.parent, {"model_type": header.architecture}, (file,), header)


def _read(stream: _Bytes) -> GgufHeader:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType  # here, since it imports numpy and yaml

    if stream.take(4) != MAGIC:
        raise ValueError("it does not begin as one")
    if (version := stream.number("I")) not in VERSIONS:
        raise ValueError(f"it has the version {version}, where {' and '.join(map(str, VERSIONS))} are known")
    tensors, keys = stream.number("Q"), stream.number("Q")
    values = {stream.text(): stream.value(stream.number("I")) for _ in range(keys)}
    shapes, types, end = {}, Counter[str](), 0
    for _ in range(tensors):
        name = stream.text()
        shape = tuple(stream.number("Q") for _ in range(stream.number("I")))[::-1]
        kind, begin = GGMLQuantizationType(stream.number("I")), stream.number("Q")
        in_block, in_bytes = GGML_QUANT_SIZES[kind]
        if name in shapes:
            raise ValueError(f"it holds the tensor {name} twice")
        shapes[name] = shape
        types[kind.name] += 1
        end = max(end, begin + math.prod(shape) * in_bytes // in_block)
    if stream.place + end > len(stream.data):
        raise ValueError(f"its tensors need {stream.place + end:,} bytes, and it has {len(stream.data):,}")
    return GgufHeader(values, shapes, types)


def _misread(header: GgufHeader) -> list[str]:
    """Return a line for everything that `transformers` would pass over without a word."""
    values = header.values
    if not isinstance(values.get("general.architecture"), str):
        return ["does not say which architecture it holds (general.architecture); name another file"]
    faults = []
    if isinstance(parts := values.get("split.count", 1), int) and parts > 1:
        faults.append(f"is one of {parts} parts; join them with llama-gguf-split --merge")
    model = header.model_values()
    has_scaling = any(key.startswith("rope.scaling.") and not key.endswith((".type", ".finetuned")) for key in model)
    if has_scaling or model.get("rope.scaling.type", "none") != "none" or "rope_freqs.weight" in header.shapes:
        faults.append("has a scaled rotation (rope.scaling), which would be left out; use the model's safetensors")
    blocks = {int(match[1]) for name in header.shapes if (match := re.match(r"blk\.(\d+)\.", name))}
    block_count = model.get("block_count")
    if len(blocks) != block_count or max(blocks) != len(blocks) - 1:
        faults.append(f"holds {len(blocks)} blocks, but counts {block_count} (block_count); {AGAIN}")
    return faults
