"""Openers of files that strangers made, given whatever bytes: each returns, or raises InputError in one line.

Bytes are random changes of whole files: python -m tests.attacks.fuzzing TARGET SECONDS. Where atheris is installed (pip
install atheris), it draws them, guided by which lines of the project they reach. A failing input is left in the folder
`crashes`, and belongs into the tests beside this module.
"""

import importlib.util
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SLOWEST = 10  # seconds that an opener may take
WORDS = [b"null", b"[]", b"{}", b"-1", b"1e999", b'""', b'"\\ud800"', b"NaN", b"9" * 30, b"\xff", b"true", b"[" * 2000]
VALUES = [None, [], {}, -1, 0, 1e999, "", "\ud800", 10**30, True, "a", [["a", "b"]], 4_000_000_000, "a\nb"]
FILES = {  # target -> the file that is changed
    "gguf": "small.gguf",
    "config": "config.json",
    "index": "model.safetensors.index.json",
    "weights": "model-00001.safetensors",
    "tokenizer": "small/tokenizer.json",
    "tokenizer-settings": "small/tokenizer_config.json",
    "special-tokens": "small/special_tokens_map.json",
    "generation": "small/generation_config.json",
}
DESCRIBED = {"model_type": "llama", "hidden_size": 16, "num_attention_heads": 4, "text_config": {"vocab_size": 64}}
SPECIAL = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False, "special": True}, "pad_token": "<s>"}
TOKENIZED = "A line. Another, with ünïcode"


def write(folder):
    """Write a directory of weights with an index, a GGUF file, and a whole model with its tokenizer."""
    save_file({"a": np.ones((2, 3), np.float32), "b": np.ones(4, np.float16)}, folder / FILES["weights"])
    index = {"metadata": {"total_size": 32}, "weight_map": dict.fromkeys("ab", FILES["weights"])}
    (folder / FILES["config"]).write_text(json.dumps(DESCRIBED, indent=2))
    (folder / FILES["index"]).write_text(json.dumps(index, indent=2))
    writer = gguf.GGUFWriter(folder / FILES["gguf"], "llama")
    writer.add_block_count(1)
    writer.add_rope_scaling_type(gguf.RopeScalingType.NONE)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "c"])
    writer.add_tensor("blk.0.attn_q.weight", np.ones((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    write_model(folder / "small")


def write_model(folder):
    """Write a model with a tokenizer of every part that there is, its settings, and settings of generation."""
    from tests.ggufs import small

    small("llama").save_pretrained(folder)
    words = {word: place for place, word in enumerate(["<s>", "</s>", "?", *"abcdeinorthu", "an", "in", "Ġ"])}
    tokenizer = Tokenizer(models.BPE(words, [("a", "n"), ("i", "n")], unk_token="?"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex("ï+"), "i")])
    split = pre_tokenizers.Split(Regex(r"\.\s"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, "bos_token": "<s>"}
    added = {"1": {"content": "</s>", "special": True, "single_word": False}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"added_tokens_decoder": added}, indent=2))
    (folder / "special_tokens_map.json").write_text(json.dumps(SPECIAL, indent=2))
    generation = {"bos_token_id": 0, "eos_token_id": [1], "temperature": 0.5, "do_sample": True}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2))


def opened(target, folder):
    """Open what holds the changed file, as every measurement does first."""
    from position_card.core.runtime import InputError
    from position_card.models import files, gguf_header, opening
    from position_card.texts.prompts import windows

    started = time.monotonic()
    try:
        if target == "gguf":
            gguf_header.gguf_files(folder / FILES[target])
        elif target == "generation":
            opening.open_decoder(folder / "small")
        elif FILES[target].startswith("small"):
            tokenizer, _ = opening.open_tokenizer(folder / "small")
            list(windows([TOKENIZED], tokenizer, 2, "every"))
        else:
            files.model_files(folder).shapes()
    except InputError as error:
        if len(str(error).splitlines()) > 1:
            raise AssertionError(f"{error!r} has several lines") from error
    if (seconds := time.monotonic() - started) > SLOWEST:
        raise AssertionError(f"it took {seconds:.0f} seconds")


def changed(data, rng):
    """Bytes with one to four places overwritten, taken away, repeated, or replaced by a word that JSON knows."""
    if data.startswith(b"{") and rng.random() < 0.7:
        return altered(data, rng)
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        begin = rng.randrange(len(data) + 1)
        end = min(len(data), begin + rng.choice([1, 1, 2, 8, 40]))
        there = bytes(data[begin:end])
        data[begin:end] = rng.choice([rng.randbytes(len(there)), b"", 3 * there, rng.choice(WORDS), bytes(8)])
    return bytes(data)


def altered(data, rng):
    """JSON of which one or two values are others, are those of another key, or are missing."""
    whole = json.loads(data)
    for _ in range(rng.randint(1, 2)):
        places = [(part, key) for part in parts(whole) for key in keys(part)]
        (part, key), (other, name) = rng.choice(places), rng.choice(places)
        if rng.random() < 0.2:
            del part[key]
        else:
            part[key] = json.loads(json.dumps(rng.choice([*VALUES, other[name], other[name]])))
    return json.dumps(whole).encode()


def keys(part):
    return list(part) if isinstance(part, dict) else range(len(part))


def parts(value):
    """Every mapping and list within a value of JSON."""
    if isinstance(value, dict | list):
        yield value
        for key in keys(value):
            yield from parts(value[key])


def fuzz(target, seconds, seed=0):
    """Give an opener changed files for so many seconds; the number of them."""
    rng, until, count = random.Random(seed), time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        file = Path(folder, FILES[target])
        whole = file.read_bytes()
        while time.monotonic() < until:
            file.write_bytes(data := changed(whole, rng))
            try:
                opened(target, Path(folder))
            except BaseException:
                Path("crashes").mkdir(exist_ok=True)
                Path("crashes", f"{target}-{seed}-{count}").write_bytes(data)
                raise
            count += 1
    return count


def guide(target, seconds):
    """Let atheris draw the bytes."""
    import atheris

    with atheris.instrument_imports(include=["position_bias", "position_card"]):
        from position_card.models import files, gguf_header, opening  # noqa: F401
        from position_card.texts import prompts  # noqa: F401
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as corpus:
        write(Path(folder))
        shutil.copy(Path(folder, FILES[target]), corpus)
        Path("crashes").mkdir(exist_ok=True)

        def one(data):
            Path(folder, FILES[target]).write_bytes(data)
            opened(target, Path(folder))

        options = [f"-max_total_time={seconds}", "-max_len=4000", f"-artifact_prefix=crashes/{target}-"]
        atheris.Setup([sys.argv[0], *options, corpus], one)
        atheris.Fuzz()


if __name__ == "__main__":
    if importlib.util.find_spec("atheris"):
        guide(sys.argv[1], int(sys.argv[2]))
    else:
        print(fuzz(sys.argv[1], int(sys.argv[2])), "files opened or refused")
