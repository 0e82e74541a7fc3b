"""The released numbers come from tidy tables, a copy of the authors' repository, or an archive of it.

Every fault ends in one line that names the key `released.source`, its value and the remedy.
"""

import hashlib
import http.client
import io
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from position_card.core.runtime import InputError, log

TABLES = ("lambda.csv", "content.csv.gz", "models.csv")
CONFIGURATIONS = "config/rollout/alibi"  # of the authors' repository; everything below it in YAML
KINDS = (
    f"give a directory with {', '.join(TABLES)}, a copy of github.com/ml-uhh/position-bias, "
    "or the https address of its archive at one commit"
)
UNNAMED = "names no source of the released numbers"
LARGEST = 2**28  # bytes of an archive, and of what is unpacked of it
PATIENCE = 60  # seconds without an answer
DEADLINE = 600  # seconds for a whole archive
MOST_FILES = 100_000  # members of an archive

Contents = dict[str, bytes]  # path within the source -> what the file holds


def fault(source: str | None, cause: str, remedy: str = KINDS) -> InputError:
    """What is wrong with a source, in one line."""
    reason = " ".join(cause.split())
    return InputError(f"config: released.source = {source!r} {reason}; {remedy}")


def is_address(source: str) -> bool:
    """Whether the source is fetched and not read from a disk."""
    return "://" in source


def files(source: str | None) -> list[Path]:
    """List files on this disk that the source is read from, sorted by path; none of an address or where nothing is."""
    if source is None or is_address(source):
        return []
    tables = [Path(source, name) for name in TABLES if Path(source, name).is_file()]
    return tables or sorted(Path(source, CONFIGURATIONS).rglob("*.yaml"))


def read(source: str | None, sha256: str | None = None) -> Contents:
    """Read the files that hold the released numbers: the tables, or the configurations below `CONFIGURATIONS`.

    `sha256` is that of `fingerprint`: an archive must have it, a directory where it is given. Raises InputError where
    the source is missing, incomplete or not reachable, is no archive, or has another sha256.
    """
    if source is None:
        raise fault(source, UNNAMED)
    if is_address(source):
        contents = unpack(source, _fetch(source))
    else:
        contents = _on_disk(source)
        _check_complete(source, contents)
    sha256_of_files = fingerprint(contents)
    log.info("%s: %d files, sha256 %s", source, len(contents), sha256_of_files)
    if sha256 is None and is_address(source):
        raise fault(
            source,
            f"is not checked: its files have the sha256 {sha256_of_files}",
            "set released.sha256 to it if you trust it",
        )
    if sha256 not in (None, sha256_of_files):
        raise fault(
            source,
            f"has files of sha256 {sha256_of_files}, but released.sha256 = {sha256!r}",
            "name the commit or directory that it was taken from, or correct released.sha256",
        )
    return contents


def fingerprint(contents: Mapping[str, bytes]) -> str:
    """Take SHA-256 over contents, sorted by path: archives of one commit may differ in their bytes, but not in this."""
    total = hashlib.sha256()
    for path, content in sorted(contents.items()):
        total.update(f"{path}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def unpack(source: str, archive: bytes) -> Contents:
    """Read configurations in a tar archive of the repository, whose files stand below one folder of any name.

    They are read in memory: no path of the archive ever meets the disk. Raises InputError as `read` does.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            contents = dict(_configurations(source, tar))
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise fault(source, f"is no archive that can be read ({error})") from error
    _check_complete(source, contents)
    return contents


def _on_disk(directory: str) -> Contents:
    try:
        return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files(directory)}
    except OSError as error:
        raise fault(directory, f"cannot be read ({error})", "repair that file or copy it again") from error


def _configurations(source: str, archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    remaining = LARGEST
    for number, member in enumerate(archive):
        remaining -= member.size  # of every member, since those that are passed over are unpacked, too
        if remaining < 0 or number >= MOST_FILES:
            raise fault(source, f"unpacks to more than {LARGEST} bytes or {MOST_FILES} files")
        inner_path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
        if not member.isfile() or inner_path.suffix != ".yaml" or not inner_path.is_relative_to(CONFIGURATIONS):
            continue
        file = archive.extractfile(member)
        assert file is not None  # it is a file
        yield inner_path.as_posix(), file.read()


def _fetch(address: str) -> bytes:
    if not address.startswith("https://"):
        raise fault(address, "is not fetched safely", "give an address that begins with https://")
    try:
        with urllib.request.build_opener(_OnlyHttps).open(address, timeout=PATIENCE) as answer:
            archive = _before(time.monotonic() + DEADLINE, answer)
    except (OSError, ValueError, http.client.HTTPException) as error:  # no network or answer; no address; a cut answer
        reason = getattr(error, "reason", error)
        raise fault(
            address,
            f"cannot be fetched ({reason})",
            "check the address and the network, or give a directory that holds a copy",
        ) from error
    if len(archive) > LARGEST:
        raise fault(address, f"is larger than {LARGEST} bytes")
    return archive


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    """Follows no redirection to an address that begins with anything but https://."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Return the request to where an answer redirects. Raises URLError where that is not https."""
        if not newurl.startswith("https://"):
            raise urllib.error.URLError(f"it is redirected to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _before(deadline: float, answer: Any) -> bytes:
    """The content of an answer, no more than one byte beyond LARGEST. Raises TimeoutError beyond the deadline."""
    content = bytearray()
    while len(content) <= LARGEST and (chunk := answer.read1(2**20)):
        content += chunk
        if time.monotonic() > deadline:
            raise TimeoutError(f"it takes more than {DEADLINE} seconds")
    return bytes(content)


def _check_complete(source: str, contents: Contents) -> None:
    if not is_address(source) and not Path(source).is_dir():
        raise fault(source, f"is not a directory (looked for {Path(source).absolute()})")
    if not contents:
        raise fault(source, f"holds neither {TABLES[0]} nor a YAML file below {CONFIGURATIONS}")
    if is_tidy(contents) and (absent := [name for name in TABLES if name not in contents]):
        raise fault(source, f"lacks {', '.join(absent)}")


def is_tidy(contents: Mapping[str, bytes]) -> bool:
    """Whether the numbers come as tables; else as configurations."""
    return any(name in contents for name in TABLES)
