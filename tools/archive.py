"""Write the figures, tables and report of a finished run as one archive that a release carries, or check an archive.

    PYTHONPATH=. python tools/archive.py [--check] ARCHIVE [RESULTS]        (make archive)

RESULTS is the folder of the run, by default this one. `sha256sum` reads the file SHA256SUMS in the archive.
"""

import hashlib
import io
import lzma
import sys
import tarfile
from pathlib import Path

from position_bias.running.runtime import InputError, whole_file

LARGEST = 60_000_000  # bytes of an archive
SUMS = "SHA256SUMS"
NEEDED = ("results/provenance.json", "results/tables/scorecard.csv", "figures/scorecard.pdf")  # of a finished run
TAKEN = ("figures/**/*", "results/tables/**/*", "results/README.md", "results/report.html", "results/provenance.json")


def write(archive: Path, results: Path) -> None:
    """Write the archive whole or not at all.

    Raises InputError where the run is not finished, or the archive would have more than LARGEST bytes.
    """
    if missing := [path for path in NEEDED if not (results / path).is_file()]:
        raise InputError(f"{results.absolute()} has no {missing[0]}; finish the run first: make all")
    paths = sorted(path for pattern in TAKEN for path in results.glob(pattern) if path.is_file())
    files = {path.relative_to(results).as_posix(): path.read_bytes() for path in paths}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    with whole_file(archive) as partial:
        with tarfile.open(partial, "w:xz") as opened:
            for name, content in {SUMS: sums.encode(), **files}.items():
                member = tarfile.TarInfo(name)  # without times and owners
                member.size = len(content)
                opened.addfile(member, io.BytesIO(content))
        if (size := partial.stat().st_size) > LARGEST:
            raise InputError(f"{archive} would have {size} bytes; a release carries at most {LARGEST}")


def check(archive: Path) -> int:
    """Return how many files there are. Raises InputError for links, paths that lead elsewhere, or other contents."""
    try:
        with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive.read_bytes()))) as opened:
            members = opened.getmembers()
            strange = [it.name for it in members if not it.isfile() or not {"", ".."}.isdisjoint(it.name.split("/"))]
            held = {it.name: opened.extractfile(it).read() for it in members if not strange}  # type: ignore[union-attr]
        lines = held.pop(SUMS, b"").decode().splitlines()
        listed = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError, lzma.LZMAError, tarfile.TarError) as error:
        raise InputError(f"{archive} cannot be read ({error}); fetch it again") from error
    if strange:
        raise InputError(f"{archive} has {strange[0]}, a link or a path that leads elsewhere; do not unpack it")
    found = {name: hashlib.sha256(content).hexdigest() for name, content in held.items()}
    wrong = sorted(name for name in found.keys() | listed if found.get(name) != listed.get(name))
    if wrong or len(members) > len(found) + 1:
        raise InputError(f"{archive} has another {[*wrong, 'number of files'][0]} than {SUMS} says; fetch it again")
    return len(found)


def main() -> None:
    """Write and check, or check alone."""
    archive, *results = (Path(word) for word in sys.argv[1:] if word != "--check")
    try:
        if "--check" not in sys.argv:
            write(archive, Path(*results))
        print(f"{archive}: {check(archive)} files, each with the sha256 that its list says")
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
