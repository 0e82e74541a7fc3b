"""The text that a card is measured on."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from position_card.card.sources import TEXTS, Source, files_of_text
from position_card.core.runtime import InputError, open_file
from position_card.models import data_sets, hub
from position_card.texts import corpus

BYTE_ORDER_MARK = "\ufeff"  # with which some editors begin a file
COLUMN = "text"  # of lines of JSON and of data sets
CHARACTERS = 4_000_000  # of a text that are read
LONGEST = 64_000_000  # characters of a line of JSON


def read_documents(source: Source) -> tuple[Iterator[str], str]:
    """Return the documents of a text, and where it comes from in words; a corpus of this project is its held-out part.

    Raises InputError, sometimes only while the documents are read, for what cannot be read.
    """
    if source.argument == "-":
        return iter([_standard_input()]), "standard input"
    if source.argument in corpus.TEST_SHARE:
        _, held_out = corpus.split(corpus.documents(source.argument), corpus.TEST_SHARE[source.argument])
        return (document.text for document in held_out), source.argument
    if source.kind == "path":
        return stored_documents(source), source.argument
    revision = hub.newest_text(source.argument)
    documents = data_sets.texts(source.argument, "train", None, revision, COLUMN)
    return documents, f"{source.argument} at {revision}" if revision else source.argument


def stored_documents(source: Source) -> Iterator[str]:
    """Yield the documents of a file or of a directory.

    A .txt file is one document; a line of a .jsonl file holds one under `text`. A directory has such files, in any of
    its folders and read in the order of their names, or else is one that `datasets` reads, with a column `text` and a
    split `train`. Raises InputError for what cannot be read as such.
    """
    if not os.path.exists(source.path):
        raise InputError(f"text {source.argument} is not there, seen from {Path.cwd()}")
    if not (source.path.is_file() or source.path.is_dir()):
        raise InputError(
            f"text {source.argument} is a pipe or a device; give a file or a directory, or - for standard input"
        )
    if source.path.is_file() and source.path.suffix not in TEXTS:
        raise InputError(
            f"text {source.argument} is a file; give one that ends in {' or '.join(TEXTS)}, or a directory"
        )
    files = [file for file in files_of_text(source) if file.suffix in TEXTS]
    empty = True
    for text in chain.from_iterable(map(_file_documents, files)):
        empty = False
        yield text
    if files and empty:
        raise InputError(f"text {source.argument} holds no documents; give one with some")
    if not files:
        try:
            yield from data_sets.texts(source.path, "train", column=COLUMN)
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
    budget = characters
    for text in texts:
        yield text[:budget]
        budget -= len(text)
        if budget <= 0:
            return


def documents_digest(documents: Iterable[str]) -> str:
    """Return the SHA-256 of documents, each with its end, which tells them from others."""
    checksum = hashlib.sha256()
    for document in documents:
        checksum.update(document.encode() + b"\0")
    return checksum.hexdigest()


def _file_documents(path: Path) -> Iterator[str]:
    with open_file(path, f"text {path}") as lines:
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
