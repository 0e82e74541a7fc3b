"""What the source of a model or text names: a directory, a package with a model in it, or an id on the hub."""

PACKAGE = "package:"  # begins a source that is a Python package


def is_directory(source: str) -> bool:
    """Say whether a `source` means a directory, there or not; an id of the hub starts with a letter or digit."""
    return source.startswith(("/", "."))


def is_package(source: str) -> bool:
    """Say whether a `source` means a Python package with a model in it."""
    return source.startswith(PACKAGE)
