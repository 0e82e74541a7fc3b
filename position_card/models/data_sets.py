"""This module streams the documents of a data set, of a local directory or of the hub.

The library `datasets` reads them, and of its readers only those that take no pickle.
"""

from collections.abc import Generator, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from position_card.core.runtime import InputError, quoted
from position_card.models import hub
from position_card.models.source import is_directory

# What a data set may be stored as: readers of `datasets` that take no pickle, and how their files end.
READERS = {
    "arrow": [".arrow"],
    "csv": [".csv", ".tsv"],
    "json": [".json", ".jsonl", ".ndjson"],
    "parquet": [".parquet"],
    "text": [".txt"],
}


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
            _loader_arguments(Path(source, subset or ""))
            if local
            else {"path": source, "name": subset, "revision": revision}
        )
        builder = datasets.load_dataset_builder(**arguments)
        if builder.name not in READERS:  # of archives, for example, some members would be unpickled
            raise InputError(
                f"{place}, is stored as {builder.name}, but only {', '.join(READERS)} are read; convert it"
            )
        stream = builder.as_streaming_dataset(split=split)
        rows = iter(stream.decode(False) if stream.features else stream)  # images and the like would be fetched
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


def _loader_arguments(directory: Path) -> dict[str, Any]:
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
    """Yield the texts in a column of a data set, without byte order marks.

    Raises InputError, which begins with the `place`, where a cell holds no text, or where a row cannot be read.
    """
    try:
        for row in rows:
            text = row[column]
            if isinstance(text, str):
                text = text.removeprefix("\ufeff")  # a byte order mark, which the reader of text leaves there
            if not isinstance(text, str):
                raise InputError(f"{place}, holds {quoted(text)} in column {column!r}, which is no text; name another")
            yield text
    except InputError:
        raise
    except Exception as error:
        raise _unreadable(place, error) from error


def _unreadable(place: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return InputError(f"{place}, cannot be read: {reason}; build or download it again, or name another")
