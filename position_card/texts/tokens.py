"""This module turns text into token ids: a byte-level BPE tokenizer, what it puts around a text, and the stream.

Works on `tokenizers.Tokenizer`, so that jobs which need nothing but token ids do not import `transformers`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer, decoders, models, pre_tokenizers, trainers

from position_card.core.runtime import InputError, quoted, shortened, whole_directory

TokenIds = NDArray[np.int64]

END_OF_TEXT = "<|endoftext|>"


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Train byte-level BPE with `vocabulary` tokens: end of text (id 0), the 256 bytes, merges learned from `texts`.

    Every string can be encoded and decodes to itself. The same texts give the same tokenizer. Raises InputError where
    `vocabulary` leaves no room for merges or the texts are too few for that many.
    """
    if vocabulary <= 257:
        raise InputError(f"tokenizer.vocabulary = {vocabulary} must exceed 257: the 256 bytes and the end of text")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[END_OF_TEXT],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if (size := tokenizer.get_vocab_size()) < vocabulary:
        raise InputError(
            f"tokenizer.vocabulary = {vocabulary}, but the text yields {size} tokens; "
            "lower it or add to tokenizer.datasets"
        )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, directory: str | Path) -> None:
    """Write a directory that `open_tokenizer` and `transformers.AutoTokenizer.from_pretrained` both read."""
    with whole_directory(directory) as partial:
        add_tokenizer(tokenizer, partial)


def add_tokenizer(tokenizer: Tokenizer, directory: str | Path) -> None:
    """Put the tokenizer's files into an existing directory, such as that of a model."""
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "unk_token": END_OF_TEXT,
        "clean_up_tokenization_spaces": False,
    }
    tokenizer.save(str(Path(directory) / "tokenizer.json"))
    text = json.dumps(settings, indent=2) + "\n"
    (Path(directory) / "tokenizer_config.json").write_text(text, encoding="utf-8")


def open_tokenizer(directory: Path) -> Tokenizer:
    """Open the tokenizer of a directory; it neither pads nor truncates. Raises InputError where there is none."""
    file = directory / "tokenizer.json"
    if not file.is_file():
        raise InputError(f"tokenizer {file} does not exist; build it, or copy the whole directory again")
    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(file))
    except BaseException as error:
        if not failed(error):
            raise
        raise InputError(f"tokenizer {file} cannot be read: {' '.join(str(error).split())}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def failed(error: BaseException) -> bool:
    """Say whether a library of tokenizers failed: it raises nothing narrower, and a panic of Rust is no Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def encode(tokenizer: Tokenizer, text: str) -> Encoding:
    """Encode a text without the special tokens that some tokenizers add. Raises InputError where one fails."""
    try:
        return tokenizer.encode(text, add_special_tokens=False)
    except BaseException as error:
        if not failed(error):
            raise
        reason = " ".join(str(error).split())
        raise InputError(
            f"the tokenizer fails on {quoted(text)} ({shortened(reason, 200)}); use that of the model"
        ) from error


def without_start(text: str, tokenizer: Tokenizer, before: Sequence[int]) -> str:
    """Return a text without the special tokens `before` at its beginning, which the tokenizer puts there by itself."""
    start = "".join(str(tokenizer.id_to_token(token)) for token in before)
    while start and text.startswith(start):
        text = text[len(start) :]
    return text


def special_tokens(tokenizer: Tokenizer) -> list[int]:
    """The ids of the special tokens of a tokenizer, in order."""
    return sorted(number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special)


def stream(texts: Iterable[str], tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Return the token ids of all `texts`, the end-of-text token after each; int32 [tokens]."""
    end = np.array([tokenizer.token_to_id(END_OF_TEXT)], dtype=np.int32)
    pieces = [piece for ids in encode_texts(texts, tokenizer) for piece in (ids.astype(np.int32), end)]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)


def encode_texts(texts: Iterable[str], tokenizer: Tokenizer) -> Iterator[TokenIds]:
    """Yield the token ids of each text, int64."""
    for text in texts:
        yield np.array(encode(tokenizer, text).ids, dtype=np.int64)
