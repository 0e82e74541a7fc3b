"""The text that a card is measured on, and the prompts that are cut from it."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from position_card.card.sources import TEXTS, Source, files_of_text
from position_card.core.runtime import InputError, announce, opened, seed
from position_card.models import hub, tokens
from position_card.models.tokens import TokenIds
from position_card.texts import corpus

BYTE_ORDER_MARK = "\ufeff"  # with which some editors begin a file
COLUMN = "text"  # of lines of JSON and of data sets
CHARACTERS = 4_000_000  # of a text that are read
LONGEST = 64_000_000  # characters of a line of JSON
LEAST = 8  # prompts; intervals over fewer mean nothing


def read_documents(source: Source) -> tuple[Iterator[str], str]:
    """Return the documents of a text, and where it comes from in words; a corpus of this project is its held-out part.

    Raises InputError, sometimes only while the documents are read, for what cannot be read.
    """
    if source.given == "-":
        return iter([_standard_input()]), "standard input"
    if source.given in corpus.TEST_SHARE:
        _, held_out = corpus.split(corpus.documents(source.given), corpus.TEST_SHARE[source.given])
        return (document.text for document in held_out), source.given
    if source.kind == "path":
        return stored_documents(source), source.given
    revision = hub.newest_text(source.given)
    documents = tokens.texts(source.given, "train", None, revision, COLUMN)
    return documents, f"{source.given} at {revision}" if revision else source.given


def stored_documents(source: Source) -> Iterator[str]:
    """Yield the documents of a file or of a directory.

    A .txt file is one document; a line of a .jsonl file holds one under `text`. A directory has such files, in any of
    its folders and read in the order of their names, or else is one that `datasets` reads, with a column `text` and a
    split `train`. Raises InputError for what cannot be read as such.
    """
    if not os.path.exists(source.path):
        raise InputError(f"text {source.given} is not there, seen from {Path.cwd()}")
    if not (source.path.is_file() or source.path.is_dir()):
        raise InputError(
            f"text {source.given} is a pipe or a device; give a file or a directory, or - for standard input"
        )
    if source.path.is_file() and source.path.suffix not in TEXTS:
        raise InputError(f"text {source.given} is a file; give one that ends in {' or '.join(TEXTS)}, or a directory")
    files = [file for file in files_of_text(source) if file.suffix in TEXTS]
    empty = True
    for text in chain.from_iterable(map(_file_documents, files)):
        empty = False
        yield text
    if files and empty:
        raise InputError(f"text {source.given} holds no documents; give one with some")
    if not files:
        try:
            yield from tokens.texts(source.path, "train", column=COLUMN)
        except InputError as error:
            raise InputError(
                f"text {source.path} has no .txt or .jsonl file, and cannot be read as a data set: "
                f"{error}. Put the text there as .txt, or as .jsonl with the key {COLUMN!r} in every "
                "line"
            ) from error


def _standard_input() -> str:
    """Read standard input. Raises InputError where it is closed or not UTF-8."""
    if sys.stdin is None:
        raise InputError("standard input is closed; give a file")
    try:
        text = sys.stdin.read()
        text.encode()  # which refuses what a terminal in another encoding lets pass
    except UnicodeError as error:
        raise InputError("standard input is not encoded in UTF-8; convert it, or give a file") from error
    return text.removeprefix(BYTE_ORDER_MARK)


def first_characters(characters: int, texts: Iterable[str]) -> Iterator[str]:
    """Yield the first of the texts, until they have so many characters together; the last one is cut."""
    left = characters
    for text in texts:
        yield text[:left]
        left -= len(text)
        if left <= 0:
            return


def documents_digest(documents: Iterable[str]) -> str:
    """Return the SHA-256 of documents, each with its end, which tells them from others."""
    checksum = hashlib.sha256()
    for document in documents:
        checksum.update(document.encode() + b"\0")
    return checksum.hexdigest()


class PromptSet(NamedTuple):
    """Prompts of one length n."""

    tokens: TokenIds  # [N, n]
    documents: NDArray[np.int64]  # which document each is of [N]
    entropy: float  # of the frequencies of tokens in all windows of this length, in nats
    special: Mapping[str, int]  # how many prompts hold a special token of the text, by the token

    def facts(self) -> dict[str, Any]:
        """Return what a card says of the prompts, and a digest of their tokens, which tells them from others."""
        digest = hashlib.sha256(self.tokens.tobytes()).hexdigest()
        documents = len(np.unique(self.documents))
        return {"documents": documents, "entropy": self.entropy, "special": dict(self.special), "sha256": digest}


def draw_prompts(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    before: Sequence[int],
    lengths: Sequence[int],
    most: int,
    sample_seed: int,
) -> dict[int, PromptSet]:
    """Draw up to `most` prompts of each length n that the text has at least LEAST of, by `sample_seed`.

    A prompt is the tokens `before`, which the tokenizer puts first by itself, and a window of one document; none twice.
    Documents that begin with these tokens, written out, do not get them twice. What special tokens prompts hold besides
    is announced. Raises InputError where the text has too few of every length.
    """
    sets, counts = {}, {}
    given, texts = texts, [tokens.without_start(text, tokenizer, before) for text in texts]
    if twice := sum(one != other for one, other in zip(given, texts, strict=True)):
        start = "".join(str(tokenizer.id_to_token(token)) for token in before)
        announce(f"{start}, with which {twice} of {len(texts)} documents begin, is there once: the tokenizer puts it")
    special = tokens.special_tokens(tokenizer)
    for n in lengths:
        if n <= len(before) + 1:
            continue
        windows = list(tokens.windows(texts, tokenizer, n - len(before), "every"))
        counts[n] = len(windows)
        if len(windows) < LEAST:
            announce(f"length {n} is left out: the text has {len(windows)} prompts of it, fewer than {LEAST}")
            continue
        order = np.random.default_rng(seed(sample_seed, "card", n)).permutation(len(windows))[:most]
        documents, token_ids = zip(*(windows[place] for place in order), strict=True)
        every = np.concatenate([window for _, window in windows])
        drawn = np.stack(token_ids)
        holding = {str(tokenizer.id_to_token(token)): int((drawn == token).any(-1).sum()) for token in special}
        holding = {token: count for token, count in holding.items() if count}
        for token, count in holding.items():
            announce(f"{count} of {len(drawn)} prompts of {n} tokens hold {token}, a special token")
        sets[n] = PromptSet(tokens.preceded(before, drawn), np.array(documents), _entropy(every), holding)
    if not sets:
        longest = max((len(tokens.encoded(tokenizer, text).ids) for text in texts), default=0)
        raise InputError(
            f"the text gives {_had(counts)}; at least {LEAST} of one length are needed, and its longest document has "
            f"{longest} tokens. Give more or longer documents, or shorter lengths"
        )
    return sets


def _entropy(token_ids: TokenIds) -> float:
    """Return the entropy of the frequencies of token ids, in nats."""
    _, counts = np.unique(token_ids, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _had(counts: Mapping[int, int]) -> str:
    """Say how many prompts a text has of each length, for example: 1 prompt of 64 tokens and 0 of 256."""
    if not counts:
        return "no prompts"
    (n, count), *others = counts.items()
    parts = [f"{count} {'prompt' if count == 1 else 'prompts'} of {n} tokens"]
    parts += [f"{count} of {n}" for n, count in others]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if others else parts)


def _file_documents(path: Path) -> Iterator[str]:
    with opened(path, f"text {path}") as lines:
        if path.suffix == ".txt":
            yield lines.read(CHARACTERS)
            return
        for number, line in enumerate(iter(lambda: lines.readline(LONGEST), ""), start=1):
            if len(line) == LONGEST:
                raise InputError(f"text {path}, line {number}, has {LONGEST:,} characters or more; split it")
            if line.strip():
                yield _line_document(line, f"text {path}, line {number}")


def _line_document(line: str, place: str) -> str:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}, is no JSON ({error}); a line must be an object with a key {COLUMN!r}") from error
    text = value.get(COLUMN) if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise InputError(f"{place}, has no text under {COLUMN!r}; a line must be an object with that key")
    # half of a pair of surrogates, as scraped texts have them, is no character: it becomes the sign for an unknown one
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
