"""This module collects English that every installation has: documentation of Python and of scientific packages.

Sources are parsed with `ast`; nothing is imported or executed. The three corpora stand in, offline, for the web text
of the papers. Their text varies with the installed versions, so `write` records these and a checksum of the text.
"""

import ast
import gc
import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import string
import sys
import sysconfig
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from position_card.core.artifacts import write_table
from position_card.core.runtime import InputError, log, whole_file

PACKAGES = ("matplotlib", "numpy", "pandas", "scipy", "torch")

# Share of the documents kept for evaluation. The language reference is so small that it needs half of them.
TEST_SHARE = {"language-reference": 0.5, "standard-library": 0.2, "scientific-packages": 0.2}


class Document(NamedTuple):
    """The prose of one source file or topic, paragraphs separated by a newline; the id is the same on every machine."""

    id: str
    text: str


def documents(corpus: str) -> list[Document]:
    """Return all documents of `corpus`, sorted by id, no paragraph twice.

    Raises InputError for an unknown corpus and for a source that this installation lacks.
    """
    match corpus:
        case "language-reference":
            sources = reference_topics(_standard_library() / "pydoc_data" / "topics.py")
        case "standard-library":
            sources = documented_sources(_standard_library(), sys.stdlib_module_names)
        case "scientific-packages":
            sources = (
                document for package in PACKAGES for document in documented_sources(_folder_of(package), [package])
            )
        case _:
            raise InputError(f"corpus = {corpus!r} is not known; choose one of {', '.join(TEST_SHARE)}")
    return without_repeats(sorted(sources))


def split(documents: Sequence[Document], test_share: float) -> tuple[list[Document], list[Document]]:
    """Part `documents` into (train, test).

    The side of a document depends on its id alone, so one that is new in a package moves no other; about `test_share`
    of them are test documents.
    """
    train: list[Document] = []
    test: list[Document] = []
    for document in documents:
        (test if _fraction(document.id) < test_share else train).append(document)
    return train, test


def write(corpus: str, train_path: str | Path, test_path: str | Path, manifest_path: str | Path) -> None:
    """Write the two splits of `corpus` as parquet (columns id, text) and what they were made from as JSON.

    With the names train.parquet and test.parquet in one directory, `datasets.load_dataset(directory, split=...,
    streaming=True)` reads them as it reads a data set of the hub. Raises InputError as `documents` does.
    """
    train, test = split(documents(corpus), TEST_SHARE[corpus])
    packages = PACKAGES if corpus == "scientific-packages" else ()
    manifest = {
        "corpus": corpus,
        "python": platform.python_version(),
        "packages": {package: importlib.metadata.version(package) for package in packages},
        "splits": {"train": summary(train), "test": summary(test)},
    }
    for path, part in ((train_path, train), (test_path, test)):
        write_table(path, pd.DataFrame(part, columns=Document._fields))
    _write_manifest(manifest_path, manifest)


def write_fetched(texts: Iterable[str], facts: Mapping[str, Any], test_path: Path, manifest_path: Path) -> None:
    """Write texts from elsewhere as `write` writes its test documents, and `facts` of them.

    Their ids are their places in the source, counted from 0.
    """
    test = [Document(str(place), text) for place, text in enumerate(texts)]
    write_table(test_path, pd.DataFrame(test, columns=Document._fields))
    _write_manifest(manifest_path, {**facts, "splits": {"test": summary(test)}})


def _write_manifest(path: str | Path, manifest: Mapping[str, Any]) -> None:
    with whole_file(path) as partial:
        partial.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def summary(documents: Sequence[Document]) -> dict[str, int | str]:
    """Return the number of documents and of characters, and the sha256 of the texts (UTF-8, a zero byte after each)."""
    digest = hashlib.sha256()
    for document in documents:
        digest.update(document.text.encode() + b"\0")
    characters = sum(len(document.text) for document in documents)
    return {"documents": len(documents), "characters": characters, "sha256": digest.hexdigest()}


# Where the text comes from


def reference_topics(source: Path) -> Iterator[Document]:
    """Yield a document for each topic of `help()`: the sections of the language reference, one big dict literal."""
    if not source.is_file():
        raise InputError(f"corpus = 'language-reference' needs {source}, which this Python was installed without")
    for node in _parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "topics":
            for topic, text in ast.literal_eval(node.value).items():
                yield Document(f"topics/{topic}", "\n".join(prose(text)))


def documented_sources(folder: Path, names: Iterable[str]) -> Iterator[Document]:
    """Yield a document for each source file of the modules and packages `names` in `folder`, without tests."""
    for name in names:
        for path in [folder / f"{name}.py", *(folder / name).rglob("*.py")]:
            place = path.relative_to(folder)
            if not path.is_file() or NOT_DOCUMENTATION.intersection(place.parts):
                continue
            try:
                tree = _parse(path)
            except (SyntaxError, ValueError, RecursionError) as error:
                log.info("corpus: %s is left out, it does not parse: %s", place.as_posix(), error)
                continue
            yield Document(place.as_posix(), "\n".join(line for text in documentation(tree) for line in prose(text)))


NOT_DOCUMENTATION = frozenset({"test", "tests", "testing", "idle_test", "_vendor", "_vendored_packages", "pydoc_data"})


def documentation(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module and the strings that it hands to add_newdoc and the like, in their order."""
    for node in _statements(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if docstring := ast.get_docstring(node):
                    yield docstring
            case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call) if _adds_documentation(call):
                strings = (part.value for part in ast.walk(call) if isinstance(part, ast.Constant))
                yield from (textwrap.dedent(string) for string in strings if isinstance(string, str))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield `node` and the statements below it. Expressions, most of a tree, are not entered: no docstring is there."""
    yield node
    for part in PARTS:
        for child in getattr(node, part, ()):
            yield from _statements(child)


PARTS = ("body", "handlers", "orelse", "finalbody", "cases")  # of statements, in the order of a file


def _adds_documentation(call: ast.Call) -> bool:
    """Say whether this call gives a compiled function its docstring."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in {"add_newdoc", "add_docstr", "_add_docstr", "add_docstr_all"}
        case _:
            return False


def _parse(path: Path) -> ast.Module:
    with warnings.catch_warnings(), _no_collection():
        warnings.simplefilter("ignore")  # an invalid escape in somebody else's source is not our user's concern
        return ast.parse(path.read_bytes())  # bytes: the parser then honours the declared encoding


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let Python look for no cycles: a tree has none, and looking through it as it grows takes longer than parsing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _standard_library() -> Path:
    """Return the folder of the standard library of the Python that runs."""
    return Path(sysconfig.get_path("stdlib"))


def _folder_of(package: str) -> Path:
    """Return the folder of `package`. Finding the spec of a top-level name does not import it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"corpus = 'scientific-packages' needs the package {package}, which is not installed")
    return Path(next(iter(spec.submodule_search_locations))).parent


# What reads as prose


def prose(documentation: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring that read as English prose, each on one line, without markup."""
    for block in re.split(r"\n\s*\n", documentation.expandtabs()):
        lines = block.splitlines()
        if any(NOT_PROSE.match(line) for line in lines):
            continue
        for paragraph in _paragraphs(lines):
            text = _without_markup(paragraph)
            if _reads_as_prose(text):
                yield text


# a doctest, shell or decorator line, a definition, a directive or comment, a table
NOT_PROSE = re.compile(r"\s*(>>>|[$%@#|]|(async )?def \w+\(|class \w+[(:]|\.\.(\s|$)|\+[-=]|=+ +=)")
RULE = re.compile(r"\s*([-=~^\"'*+#.])\1{2,}\s*$")  # under or over a heading
TERM = re.compile(r"\s*([\w*.,` ]+ : |[A-Z][\w.]*:?$)")  # "axis : int" or "ValueError", described in the lines below
ENTRY = re.compile(r"\s*([-*+•]|\d+[.)]|\w+( \([^)]*\))?:)\s+")  # a list item, or "axis (int): what it is"


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines of a block, beginning anew at every list item, described term, heading and step to the left."""
    paragraph: list[str] = []
    indentation = 0
    for line in lines:
        entry = ENTRY.match(line)
        apart = RULE.match(line) or TERM.match(line)
        indent = len(line) - len(line.lstrip())
        if apart or entry or indent < indentation:
            yield " ".join(paragraph)
            paragraph = []
        if not apart:
            paragraph.append(line[entry.end() :] if entry else line.strip())
        indentation = indent
    yield " ".join(paragraph)


def _without_markup(text: str) -> str:
    """Strip reStructuredText markup and template fields; keep the words."""
    if MARKUP_SIGN.search(text):
        for pattern, words in MARKUP:
            text = pattern.sub(words, text)
    return " ".join(text.split())


MARKUP = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r":[\w:+-]+:`[~!.]?([^`<]*?)\s*(?:<[^`]*>)?`", r"\1"),  # :class:`~package.Name`, :ref:`words <target>`
        (r"`([^`<]*?)\s*<[^`]*>`_{1,2}", r"\1"),  # `words <https://...>`_
        (r"`+[~!]?([^`]*)`+_{0,2}", r"\1"),  # ``code``, `name`, `reference`_
        (r"(?<!\w)(\*{1,2})(?=\S)([^*]+)(?<=\S)\1(?!\w)", r"\2"),  # *emphasis*, **strong**
        (r"\s*\[[\w-]+\]_", ""),  # a citation
        (r"%\(\w+\)s|\{\w+\}", ""),  # a field that a template fills in
        (r"::(?=\s|$)", ":"),  # a literal block follows
    )
)

MARKUP_SIGN = re.compile(r"[`*\[%{]|::")  # in every text that one of these patterns finds something in

WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
ORDINARY = dict.fromkeys(map(ord, string.ascii_letters + " .,;:!?'\u2019\"()-"))


def _reads_as_prose(text: str) -> bool:
    """Say whether a paragraph has enough words, letters and lower case to be prose."""
    words = WORD.findall(text)
    if len(words) < 8 or not text.isprintable():  # control characters, halves of surrogate pairs
        return False
    symbol_count = sum(not character.isalpha() for character in text.translate(ORDINARY))
    lower = sum(word.islower() for word in words)  # lists of names and signatures have few
    return len(text) - symbol_count >= 0.93 * len(text) and lower >= 0.6 * len(words)


# Each paragraph once, each document on one side


def without_repeats(documents: Iterable[Document]) -> list[Document]:
    """Keep the first occurrence of each paragraph, letters alone compared, and the documents that have one left."""
    keys: set[bytes] = set()
    result: list[Document] = []
    for document in documents:
        fresh = []
        for paragraph in document.text.splitlines():
            letters = "".join(WORD.findall(paragraph.lower()))
            key = hashlib.blake2b(letters.encode(), digest_size=16).digest()
            if key not in keys:
                keys.add(key)
                fresh.append(paragraph)
        if fresh:
            result.append(Document(document.id, "\n".join(fresh)))
    return result


def _fraction(name: str) -> float:
    """Return a number in [0, 1) that depends on `name` alone."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=6).digest(), "big") / 2**48
