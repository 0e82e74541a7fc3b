"""Digests of the code of jobs, kept in a file from one call of Snakemake to the next: half of a plan's own time.

They count as long as every source has the time and the size that it had, as Python's own compiled files do.
"""

import atexit
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from position_bias.workflow.definitions import PACKAGES, Library
from position_card.core.runtime import whole_file

SOURCES = (*PACKAGES, "scripts")  # the folders of a project whose modules and scripts a digest is made of


class KeptDigests:
    """Digests of jobs of the project in a folder, as `Library.digest` returns them, and a file that keeps them.

    The file is a JSON object: `sources`, which the digests were made of, and `digests` by script and functions. Where
    it is absent, damaged, or of other sources, digests are made anew. Where its folder is absent or read-only, none
    are kept.
    """

    def __init__(self, root: Path, file: Path) -> None:
        self.file = file.absolute()
        self.library, self.sources = Library(root), _stamps(root)
        self.kept = _read(self.file, self.sources)
        self.digests = dict(self.kept)
        atexit.register(self.keep)

    def digest(self, script: str, functions: Iterable[str] = ()) -> str:
        """Return the digest of the definitions that a script (a path) and functions (MODULE:FUNCTION) reach."""
        functions = tuple(functions)
        job = " ".join((script, *functions))
        if job not in self.digests:
            self.digests[job] = self.library.digest(script, functions)
        return self.digests[job]

    def keep(self) -> None:
        """Write the file where it lacks a digest that was asked for."""
        if self.digests != self.kept and os.access(self.file.parent, os.W_OK):
            with whole_file(self.file) as partial:
                partial.write_text(json.dumps({"sources": self.sources, "digests": self.digests}))


def _stamps(root: Path) -> list[str]:
    """The version of Python, which parses the sources, and each of them with its time in nanoseconds and its size."""
    paths = sorted(path for folder in SOURCES for path in (root / folder).rglob("*.py"))
    places = [(path.relative_to(root).as_posix(), path.stat()) for path in paths]
    return [sys.version, *(f"{place} {stat.st_mtime_ns} {stat.st_size}" for place, stat in places)]


def _read(file: Path, sources: list[str]) -> dict[str, str]:
    """The digests that a file keeps, if they were made of these sources; else none."""
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text())
    except ValueError:  # it was damaged, and what it held is made anew
        return {}
    is_kept = isinstance(content, dict) and content.get("sources") == sources
    return dict(content["digests"]) if is_kept else {}
