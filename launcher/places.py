"""The folders that a run writes to are tried here before Snakemake starts, which would end in a traceback there."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

LEAST = 100_000_000  # free bytes; a default run takes 1.2 GB
MADE = ("results", "figures", "logs", "checkpoints", ".snakemake")  # folders of a run, which may be links elsewhere
NO_RUN = {"--help", "-h", "--version", "-v"}


def require_places(arguments: Sequence[str]) -> None:
    """Raise ValueError with one line that names the folder and the remedy, where a run could write nothing there."""
    if NO_RUN & set(arguments):
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or "~").expanduser() / ".cache")
    places = {
        "the directory of the run": (directory(arguments), "name another with --directory"),
        "TMPDIR": (Path(os.environ.get("TMPDIR") or tempfile.gettempdir()), "set TMPDIR to another"),
        "the cache of Snakemake": (home, "set HOME or XDG_CACHE_HOME to a folder of yours"),
    }
    for name in MADE:
        places[f"{name} of the run"] = directory(arguments) / name, "name another with --directory"
    for name, (place, remedy) in places.items():
        if fault := _fault(place):
            raise ValueError(f"{place}, {name}, {fault}; {remedy}")


def directory(arguments: Sequence[str]) -> Path:
    """Where Snakemake would run: what is typed after --directory, or here."""
    found = "."
    for word, following in pairwise([*arguments, ""]):
        if word in ("--directory", "-d"):
            found = following
        elif word.startswith("--directory="):
            found = word.partition("=")[2]
    return Path(found or ".")


def _fault(place: Path) -> str | None:
    """What is wrong with a folder, or with the nearest one above it that exists, since those between are made."""
    nearest = next(folder for folder in (place.absolute(), *place.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        return "is a file" if nearest == place.absolute() else f"cannot be made, since {nearest} is a file"
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        return f"cannot be written ({error.strerror})"
    if (free := shutil.disk_usage(nearest).free) < LEAST:
        return f"has {free / 1e6:.0f} MB free, and {LEAST / 1e6:.0f} are the least"
    return None
