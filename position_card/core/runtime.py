"""This module gives a job what surrounds its science: a log, seeds, progress, files that appear whole or not at all."""

import ctypes
import errno
import hashlib
import logging
import os
import platform
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from tqdm import tqdm

log = logging.getLogger("position_card")

T = TypeVar("T")


LONGEST_LINE = 1000  # characters of the message of an InputError


class InputError(ValueError):
    """The user gave something that cannot be used. The message is one line: what, its value, the remedy.

    What no terminal should be told is escaped, and the middle of a long message left out: files of strangers name much.
    """

    def __init__(self, message: str) -> None:
        line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in message)
        super().__init__(line if len(line) <= LONGEST_LINE else f"{line[:600]} ... {line[-395:]}")


QUOTED = 40  # characters of a value that a message quotes


def quoted(value: object) -> str:
    """Write a value as a message quotes it: whole, or its first words and an ellipsis."""
    return shortened(repr(value), QUOTED)


def shortened(text: str, length: int) -> str:
    """Cut a text to so many characters, at a blank if there is one in their second half, with an ellipsis behind it."""
    if len(text) <= length:
        return text
    blank = text.rfind(" ", length // 2, length + 1)
    return f"{text[: length if blank < 0 else blank]} ..."


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a full disk, an exhausted quota, a limit on the size of files


def _no_room(error: BaseException | None) -> str:
    """Return what the system says where a full disk caused `error`, else "". Rust and shutil hide the number."""
    while error is not None:
        hidden = re.search(r"(?:\(os error |\[Errno )(\d+)", str(error))
        number = getattr(error, "errno", None) or (int(hidden[1]) if hidden else None)
        if number in NO_ROOM:
            return os.strerror(number)
        error = error.__context__
    return ""


def out_of_memory(error: BaseException) -> bool:
    """Say whether memory was too small. Torch says so by a RuntimeError, and is not imported here."""
    of_torch = type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator" in str(error)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and of_torch)


class _Log(logging.FileHandler):
    """A log file. On a full disk it stays short: that is reported by what the job writes, where it matters."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """Pass over a record for which the disk has no room; tell of any other error as logging does."""
        if not _no_room(sys.exception()):
            super().handleError(record)

    def close(self) -> None:
        """Close the file, also where the disk has no room for what is not written yet. Raises other OSErrors."""
        try:
            super().close()
        except OSError as error:
            if not _no_room(error):
                raise


@contextmanager
def job(log_file: str | Path) -> Iterator[None]:
    """Run one job: records and warnings go to `log_file`.

    An InputError, and memory that is too small, end it with one line and status 1.
    """
    handler = _Log(log_file, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    logging.captureWarnings(True)
    loggers = (log, logging.getLogger("py.warnings"))
    for logger in loggers:
        logger.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    except InputError as error:
        log.error("error: %s", error)
        sys.exit(f"error: {error}")
    except Exception as error:
        log.exception("the job failed")
        if out_of_memory(error):
            sys.exit("error: out of memory; run fewer jobs at once (--cores), or on a machine that has more")
        raise
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        logging.captureWarnings(False)
        handler.close()


def import_from(root: Path) -> None:
    """Have processes that this one starts import the library in `root`, and not one that is installed."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))


ANNOUNCED = "announced"  # marks a record of the log that was printed, too


def announce(message: str) -> None:
    """Say something of a job that its user should read while it runs: on the terminal and in the log."""
    log.info("%s", message, extra={ANNOUNCED: True})
    if log.isEnabledFor(logging.WARNING):
        print(message, file=sys.stderr)


def seed(*parts: object) -> int:
    """Return a seed in [0, 2^63) that depends on nothing but `parts` (config seed, then the wildcards of the job)."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def progress(items: Iterable[T], description: str, total: int, already_done: int = 0) -> Iterator[T]:
    """Yield `items` with a bar on a terminal and about ten lines in the job's log.

    `total` counts the whole work, `already_done` of which an earlier, killed job has left finished.
    """
    start, last_tenth = time.monotonic(), 10 * already_done // max(total, 1)
    silent = not (sys.stderr.isatty() and log.isEnabledFor(logging.WARNING))
    bar = tqdm(items, description, total=total, initial=already_done, disable=silent, leave=False)
    for number, item in enumerate(bar, start=already_done + 1):
        yield item
        if (tenth := 10 * number // total) > last_tenth:
            last_tenth = tenth
            log.info("%s: %d of %d, %.1f s", description, number, total, time.monotonic() - start)


@contextmanager
def open_file(path: str | Path, name: str, mode: Literal["r", "rb"] = "r") -> Iterator[Any]:
    """Open a file that a user named, to read bytes ("rb") or text in UTF-8, with or without a byte order mark.

    Raises InputError, which calls the file by its `name`, where it may not be read and where its text is in another
    encoding.
    """
    try:
        with Path(path).expanduser().open(mode, encoding="utf-8-sig" if mode == "r" else None) as file:
            yield file
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not encoded in UTF-8 ({error.reason}); convert it") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}, seen from {Path.cwd()}") from error


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a path beside `path` (same suffix) to write to; it takes the name `path` only once complete and on disk.

    Each writer has a path of its own, so that two at once both end whole; the last to end has the name. What a killed
    process of this machine has left beside `path` is removed; what one of another machine left is read by nobody.
    Raises InputError where the disk, a quota or a limit has no room for it. An older file then stays, as far as it is
    for this function: Snakemake removes the outputs of a job before it starts.
    """
    target = Path(path)
    with _partial_path(target) as partial:
        yield partial
        _settle(partial)
        os.replace(partial, target)


@contextmanager
def _partial_path(target: Path) -> Iterator[Path]:
    """Yield a path of its own beside `target`, which is gone in the end. InputError where it cannot be written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = _own_path(target)
        if not os.access(target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}; make room or name another place") from error
    try:
        yield partial
    except Exception as error:
        if isinstance(error, InputError) or not (reason := _no_room(error)):
            raise
        raise InputError(
            f"{target} cannot be written: {reason}; make room and run again; what is done is kept"
        ) from error
    finally:
        _remove(partial)


def _own_path(target: Path) -> Path:
    """Return a path beside `target` that no other writer has. Those of processes that are no more are removed."""
    begin, end = f".{target.stem}.part-", f"-{platform.node()}{target.suffix}"
    for leftover in target.parent.iterdir():
        match = re.fullmatch(rf"{re.escape(begin)}(\d{{1,7}})-[0-9a-f]{{8}}{re.escape(end)}", leftover.name)
        if match and not _runs(int(match[1])):
            _remove(leftover)
    return target.with_name(f"{begin}{os.getpid()}-{secrets.token_hex(4)}{end}")


def _runs(process: int) -> bool:
    """Say whether this machine has a process with this number, whoever's it is."""
    try:
        os.kill(process, 0)  # which sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(path: Path) -> None:
    """Remove a file or a folder, which another process may be removing, too."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _settle(path: Path) -> None:
    """Put a written file on disk, readable to all whom the umask admits (safetensors writes for its owner alone)."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def whole_directory(path: str | Path) -> Iterator[Path]:
    """Do what `whole_file` does for a directory. One that is there steps aside whole, and is then removed."""
    target = Path(path)
    with _partial_path(target) as partial:
        partial.mkdir()
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                _settle(file)
        while not _take_name(target, partial):  # where another writer was faster
            pass


def _take_name(target: Path, partial: Path) -> bool:
    """Rename the folder `partial` to `target`, instead of the one there; return False where another was faster."""
    aside = _own_path(target)
    with suppress(FileNotFoundError):
        os.replace(target, aside)
    try:
        os.replace(partial, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    finally:
        _remove(aside)
    return True


def keep_freed_memory() -> None:
    """Have glibc keep freed blocks for the next allocation instead of handing each back to the kernel.

    A pass over a model frees and takes the same blocks again and again. Without this setting, page faults took half of
    its time at 512 tokens. Blocks of 32 MB and more are still handed back: they rarely fit into the gaps between other
    blocks, so keeping them took twice the memory at 1,024 tokens and more, and saved no time. The function does nothing
    where the C library has no `mallopt`.
    """
    trim_threshold, mmap_threshold = -1, -3  # the numbers by which mallopt(3) knows its parameters
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(mmap_threshold, 2**25)
