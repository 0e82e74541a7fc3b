"""Turn a model of llama2.c, a file of weights and one of tokens, into a directory that transformers opens.

    .venv/bin/python tools/llama2c.py stories15M.bin tokenizer.bin DIRECTORY

The first file begins with seven whole numbers of 32 bits; arrays of float32 follow, each with all layers in turn. The
second has a number, then for each token a score, a length and its bytes. llama2.c rotates neighbouring entries of
queries and keys by one angle; transformers rotates entries of the two halves of a head, whose order rows are given.
"""

import math
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tokenizers
import torch
from tokenizers import decoders, models, normalizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPACE = "▁"  # how a piece of sentencepiece says that a word begins
SPECIAL = ["<unk>", "<s>", "</s>"]  # tokens 0 to 2


def decoder(path: Path) -> LlamaForCausalLM:
    """The model in a file of weights, whose embeddings are those of its read-out too.

    Raises:
        ValueError: its header holds no sizes, or the file does not have as many bytes as they say.
    """
    sizes = np.fromfile(path, np.int32, 7).tolist()
    if len(sizes) < 7 or min(sizes) < 1 or sizes[0] % (2 * sizes[3]) or sizes[3] % sizes[4]:
        raise ValueError(f"{path}: its header {sizes} is not that of a model with shared embeddings")
    width, hidden, layers, heads, key_heads, vocabulary, context = sizes
    size, keys = width // heads, key_heads * (width // heads)
    shapes = {  # in the order of the file; with an entry a layer, but for the first and the last
        "embed_tokens": (vocabulary, width),
        "input_layernorm": (layers, width),
        "self_attn.q_proj": (layers, width, width),
        "self_attn.k_proj": (layers, keys, width),
        "self_attn.v_proj": (layers, keys, width),
        "self_attn.o_proj": (layers, width, width),
        "post_attention_layernorm": (layers, width),
        "mlp.gate_proj": (layers, hidden, width),
        "mlp.down_proj": (layers, width, hidden),
        "mlp.up_proj": (layers, hidden, width),
        "norm": (width,),
        "angles": (2, context, size // 2),  # which follow from the rest
    }
    counts = [math.prod(shape) for shape in shapes.values()]
    values = np.fromfile(path, np.float32, offset=28)
    if len(values) != sum(counts):
        raise ValueError(f"{path}: its header asks for {sum(counts)} numbers, and it holds {len(values)}")
    parts = np.split(values, np.cumsum(counts)[:-1])
    arrays = {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
    for name in ("self_attn.q_proj", "self_attn.k_proj"):
        pairs = arrays[name].reshape(layers, -1, size // 2, 2, width)
        arrays[name] = pairs.swapaxes(2, 3).reshape(shapes[name])
    weights = {f"model.{name}.weight": arrays[name] for name in ("embed_tokens", "norm")}
    weights["lm_head.weight"] = arrays["embed_tokens"]
    for name in set(shapes) - {"embed_tokens", "norm", "angles"}:
        weights |= {f"model.layers.{layer}.{name}.weight": arrays[name][layer] for layer in range(layers)}
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=width,
            intermediate_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=key_heads,
            max_position_embeddings=context,
            rms_norm_eps=1e-5,
            tie_word_embeddings=True,
        )
    )
    model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
    return model


def tokenizer(path: Path) -> PreTrainedTokenizerFast:
    """The tokenizer in a file of tokens: pairs are merged in the order of scores, and prompts begin with `<s>`.

    Raises:
        ValueError: two tokens have the same bytes, or one has other bytes than its length says.
    """
    try:
        pieces = list(_pieces(path.read_bytes()))
    except (struct.error, IndexError) as error:
        raise ValueError(f"{path}: it ends within a token, or one has a length below 0") from error
    scores = dict(pieces[len(SPECIAL) + 256 :])
    names = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *scores]
    if len(names) != len(pieces):
        raise ValueError(f"{path}: it names some of its {len(pieces)} tokens twice")
    ids = {name: index for index, name in enumerate(names)}
    pairs = [
        (score, ids[piece[:cut]], ids[piece[cut:]], (piece[:cut], piece[cut:]))
        for piece, score in scores.items()
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    merges = [pair for *_, pair in sorted(pairs, key=lambda entry: (-entry[0], entry[1], entry[2]))]
    inner = tokenizers.Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    inner.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    inner.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", bos_token="<s>", eos_token="</s>", clean_up_tokenization_spaces=False
    )


def _pieces(data: bytes) -> Iterator[tuple[str, float]]:
    place = 4  # after the length of the longest token
    while place < len(data):
        score, length = struct.unpack_from("fi", data, place)
        place += 8 + length
        if length < 0 or place > len(data):
            raise IndexError(length)
        yield data[place - length : place].decode(errors="replace").replace(" ", SPACE), score


if __name__ == "__main__":
    weights, tokens, directory = map(Path, sys.argv[1:])
    try:
        model, pieces = decoder(weights), tokenizer(tokens)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    model.save_pretrained(directory)
    pieces.save_pretrained(directory)
