"""The manifest has the sha256 of every figure and table, so that two runs compare at a glance."""

import hashlib
import sys
from pathlib import Path

from position_bias.running.runtime import InputError

SETS = ("checks", "comparisons")  # tables whose rows have no order
KINDS = {"figures": (".pdf", ".svg", ".png"), "results/tables": (".csv", ".md")}


def lines(results: Path) -> list[str]:
    """Return a line for each figure and table below `results`, with its path from there, in order of the paths.

    Rows of tables in SETS are sorted first, so that `sha256sum` knows the others alone.
    Raises InputError where there is none.
    """
    paths = [
        path.relative_to(results).as_posix()
        for folder, suffixes in KINDS.items()
        for path in (results / folder).rglob("*")
        if path.suffix in suffixes
    ]
    if not paths:
        raise InputError(f"{results.absolute()} holds no figure and no table; build them first: make all")
    return [f"{hashlib.sha256(_content(results / path)).hexdigest()}  {path}" for path in sorted(paths)]


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return b"".join(sorted(content.splitlines(keepends=True))) if path.stem in SETS else content


def main() -> None:
    """Print the lines of the directory that is named, or of this one."""
    try:
        print(*lines(Path(*sys.argv[1:])), sep="\n")
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
