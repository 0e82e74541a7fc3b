"""This module turns text into token ids: texts of a data set, a byte-level BPE tokenizer, the stream, the prompts.

Works on `tokenizers.Tokenizer`, so that jobs which need nothing but token ids do not import `transformers`.
"""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer, decoders, models, pre_tokenizers, trainers

from position_card.core.runtime import InputError, whole_directory
from position_card.models import hub
from position_card.models.source import is_directory

TokenIds = NDArray[np.int64]

END_OF_TEXT = "<|endoftext|>"

# What windows are taken from a document: every whole one, side by side; the first, the paper's rule for web text; or
# one, which is drawn.
WindowRule = Literal["every", "first", "one"]

# What a data set may be stored as: readers of `datasets` that take no pickle, and how their files end.
READERS = {
    "arrow": [".arrow"],
    "csv": [".csv", ".tsv"],
    "json": [".json", ".jsonl", ".ndjson"],
    "parquet": [".parquet"],
    "text": [".txt"],
}


class Prompts(NamedTuple):
    """Prompts of n tokens, and which document of a text each is of."""

    tokens: TokenIds  # [N, n]
    documents: NDArray[np.int64]  # [N], counted from 0


def texts(
    source: str | Path, split: str, subset: str | None = None, revision: str | None = None, column: str = "text"
) -> Generator[str]:
    """Stream the documents of one split of a local data set directory, or else of a hub data set at a commit.

    A `Path`, or a string that means a directory (`sources.is_directory`), is local: nothing is asked of the network,
    and nothing beside the files of READERS decides what is read. `subset` is the name of a part of a data set, such as
    20231101.en, and of a directory the folder of that name. Raises InputError, at once, where there is no such text,
    and later where reading on fails. Close it if it is not read to its end.
    """
    try:
        import datasets
    except ModuleNotFoundError as error:
        remedy = "pip install 'position-card[datasets]', or give the text as .txt or .jsonl"
        raise InputError(f"data set {source} cannot be read without the package {error.name}: {remedy}") from error

    local = isinstance(source, Path) or is_directory(source)
    if local and not Path(source).is_dir():
        raise InputError(f"data set {source} is not a directory; build it, or correct the path")
    if not local:
        hub.settle_offline()
    place = f"data set {source}, split {split!r}" if local else f"hub data set {source!r}, split {split!r}"
    try:
        arguments = (
            _stored(Path(source, subset or "")) if local else {"path": source, "name": subset, "revision": revision}
        )
        builder = datasets.load_dataset_builder(**arguments)
        if builder.name not in READERS:  # of archives, for example, some members would be unpickled
            raise InputError(
                f"{place}, is stored as {builder.name}, but only {', '.join(READERS)} are read; convert it"
            )
        loaded = builder.as_streaming_dataset(split=split)
        rows = iter(loaded.decode(False) if loaded.features else loaded)  # images and the like would be fetched
        first = next(rows, None)
    except StopIteration:  # of the library itself, where a file of lines has no whole one
        first = None
    except InputError:
        raise
    except Exception as error:  # files of strangers make the libraries raise whatever there is
        raise _unreadable(place, error) from error
    if first is None:
        raise InputError(f"{place}, holds no documents; build or download it again, or name another")
    if column not in first:
        raise InputError(f"{place}, has no column {column!r}; it has {', '.join(first)}")
    return _column(chain([first], rows), column, place)


def _stored(directory: Path) -> dict[str, Any]:
    """Return what `load_dataset_builder` is told of a directory: its files by split, by their names, and their reader.

    A README.md could name files elsewhere, which `datasets` would read or fetch, so it is told none.
    """
    from datasets.data_files import DataFilesDict, get_data_patterns
    from datasets.load import infer_module_for_data_files

    base = directory.resolve().as_posix()
    ends = list(chain.from_iterable(READERS.values()))
    files = DataFilesDict.from_patterns(get_data_patterns(base), base_path=base, allowed_extensions=ends)
    if not any(files.values()):
        raise ValueError(f"none of its files ends in {', '.join(ends)}")
    reader, options = infer_module_for_data_files(files)
    return {"path": reader, "data_files": files.filter(extensions=READERS.get(reader, ends)), **options}


def _column(rows: Iterable[Mapping[str, Any]], column: str, place: str) -> Generator[str]:
    try:
        for row in rows:
            text = row[column]
            if isinstance(text, str):
                text = text.removeprefix("\ufeff")  # a byte order mark, which the reader of text leaves there
            if not isinstance(text, str):
                raise InputError(f"{place}, holds {text!r:.40} in column {column!r}, which is no text; name another")
            yield text
    except InputError:
        raise
    except Exception as error:
        raise _unreadable(place, error) from error


def _unreadable(place: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return InputError(f"{place}, cannot be read: {reason}; build or download it again, or name another")


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
    if (reached := tokenizer.get_vocab_size()) < vocabulary:
        raise InputError(
            f"tokenizer.vocabulary = {vocabulary}, but the text yields {reached} tokens; "
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


def encoded(tokenizer: Tokenizer, text: str) -> Encoding:
    """Encode a text without the special tokens that some tokenizers add. Raises InputError where one fails."""
    try:
        return tokenizer.encode(text, add_special_tokens=False)
    except BaseException as error:
        if not failed(error):
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"the tokenizer fails on {text!r:.40} ({reason:.200}); use that of the model") from error


def without_start(text: str, tokenizer: Tokenizer, before: Sequence[int]) -> str:
    """Return a text without the special tokens `before` at its beginning, which the tokenizer puts there by itself."""
    start = "".join(str(tokenizer.id_to_token(token)) for token in before)
    while start and text.startswith(start):
        text = text[len(start) :]
    return text


def special_tokens(tokenizer: Tokenizer) -> list[int]:
    """The ids of the special tokens of a tokenizer, in order."""
    return sorted(token for token, added in tokenizer.get_added_tokens_decoder().items() if added.special)


def stream(texts: Iterable[str], tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Return the token ids of all `texts`, the end-of-text token after each; int32 [tokens]."""
    end = np.array([tokenizer.token_to_id(END_OF_TEXT)], dtype=np.int32)
    pieces = [piece for ids in _encoded(texts, tokenizer) for piece in (ids.astype(np.int32), end)]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)


def windows(texts: Iterable[str], tokenizer: Tokenizer, n: int, rule: WindowRule) -> Iterator[tuple[int, TokenIds]]:
    """Yield windows of `n` token ids, int64 [n], lazily, each after the number of its text. None crosses documents.

    "every": all non-overlapping ones from the start of a document, its tail dropped. "first": the first `n` tokens
    of each document that has as many. "one": as "every", of which `sample_prompts` draws one a document.
    """
    for document, ids in enumerate(_encoded(texts, tokenizer)):
        starts = range(0, len(ids) - n + 1, n)
        for start in starts[:1] if rule == "first" else starts:
            yield document, ids[start : start + n]


def sample_prompts(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    n: int,
    prompts: int,
    rule: WindowRule,
    seed: int,
    remedy: str = "lower lengths.*.prompts or lengths.*.tokens, or take more text (hub_datasets.*.documents)",
    before: Sequence[int] = (),
) -> Prompts:
    """Choose `prompts` of `n` tokens: windows of the texts, none twice, each after the tokens `before`.

    "every": drawn by `seed` from all windows, such that a larger sample contains the smaller one. "one": the same, of
    each document the window that is drawn first. "first": the first ones of the stream, read no further than needed;
    the seed plays no part. Raises InputError, with `remedy`, where there are too few.
    """
    length = n - len(before)
    all_windows = windows(texts, tokenizer, length, rule)
    sample = list(islice(all_windows, prompts) if rule == "first" else all_windows)
    if rule != "first":
        sample = [sample[index] for index in np.random.default_rng(seed).permutation(len(sample))]
    if rule == "one":
        of_document: dict[int, TokenIds] = {}
        for document, window in sample:
            of_document.setdefault(document, window)
        sample = list(of_document.items())
    if len(sample) < prompts:
        raise InputError(
            f"{prompts} windows of {length} tokens are asked for, but the text has {len(sample)}; {remedy}"
        )
    documents, token_ids = zip(*sample[:prompts], strict=True)
    return Prompts(preceded(before, np.stack(token_ids)), np.array(documents))


def preceded(before: Sequence[int], windows: TokenIds) -> TokenIds:
    """Return prompts of windows of tokens, int64 [N, m], each after the tokens `before` that a model begins with."""
    return np.hstack([np.tile(np.array(before, np.int64), (len(windows), 1)), windows])


def _encoded(texts: Iterable[str], tokenizer: Tokenizer) -> Iterator[TokenIds]:
    """Yield the token ids of each text, int64."""
    for text in texts:
        yield np.array(encoded(tokenizer, text).ids, dtype=np.int64)
