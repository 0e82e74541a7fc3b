import json
import os
import shutil

import httpx2
import huggingface_hub
import pytest
from huggingface_hub import errors

from position_card.models import hub, opening
from tests.refusals import refused


def test_a_hub_model_is_not_asked_for(unreachable):
    with refused("someone/some-model", "config.json"):
        opening.open_decoder("someone/some-model")


def test_without_network_the_library_of_the_hub_is_told_so_once(unreachable, caplog):
    hub.settle_offline()
    assert huggingface_hub.constants.HF_HUB_OFFLINE
    hub.settle_offline()
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == ["http://127.0.0.1:9 does not answer"]


# What is said of the hub's answers

REVISION = "a" * 40


def answer(status):
    request = httpx2.Request("GET", "https://huggingface.co/api/models/someone/some-model")
    return httpx2.Response(status, request=request)


@pytest.fixture
def answering(monkeypatch):
    """A hub that is reached; what `snapshot_download` does is the test's."""
    monkeypatch.setattr(hub, "settle_offline", lambda: None)

    def set_up(download):
        monkeypatch.setattr(huggingface_hub, "snapshot_download", download)

    return set_up


def raising(error):
    def download(*_args, **_options):
        raise error

    return download


# What the hub answers, and what the line names: of a model, beside its id and commit; of a data set, beside its id.
ANSWERS = [
    (errors.GatedRepoError("403", response=answer(403)), "hf auth login", "hf auth login"),
    (errors.RepositoryNotFoundError("404", response=answer(404)), "hub_models.*.source", "does not exist"),
    (errors.RevisionNotFoundError("404", response=answer(404)), ".revision", ""),
    (errors.LocalEntryNotFoundError("no"), "cache", ""),
    (errors.IncompleteSnapshotError("no", "/cache"), "cache", ""),
    (errors.OfflineModeIsEnabled("no"), "cache", ""),
    (errors.HfHubHTTPError("500 Server\n Error", response=answer(500)), "500 Server Error", "500 Server Error"),
    (errors.HFValidationError("Repo id must\nbe so"), "Repo id must be so", "Repo id must be so"),
    (OSError(28, "No space left on device"), "No space left on device", "No space left on device"),
]


@pytest.mark.parametrize(("error", "of_model", "of_text"), ANSWERS, ids=[type(error).__name__ for error, *_ in ANSWERS])
def test_every_answer_of_the_hub_is_one_line(answering, monkeypatch, tmp_path, error, of_model, of_text):
    answering(raising(error))
    with refused("'someone/some-model'", REVISION, of_model):
        hub.fetch_model("someone/some-model", REVISION, "bloom", tmp_path / "record.json")
    assert not (tmp_path / "record.json").exists()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "dataset_info", raising(error))
    with refused("'someone/texts'", of_text):
        hub.newest_text("someone/texts")


def test_without_a_commit_the_newest_one_is_recorded(answering, model, tmp_path):
    commit = model.parent / f"snapshots/{REVISION}"
    commit.parent.mkdir()
    model.rename(commit)
    answering(lambda *_, **__: str(commit))
    record = tmp_path / "record.json"
    hub.fetch_model("someone/some-model", None, None, record)
    assert json.loads(record.read_text())["revision"] == REVISION
    assert hub.model_place(record) == commit


def test_who_names_no_model_is_told_what_a_directory_looks_like(answering, tmp_path):
    answering(raising(errors.RepositoryNotFoundError("404", response=answer(404))))
    with refused("'models/mine'", "a directory starts with"):
        hub.fetch_model("models/mine", None, None, tmp_path / "record.json")


def test_the_commit_of_a_data_set_is_the_newest_of_the_hub(answering, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "dataset_info", lambda _: huggingface_hub.DatasetInfo(id="x", sha=REVISION))
    assert hub.newest_text("someone/texts") == REVISION
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert hub.newest_text("someone/texts") is None


# The record


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    (directory / "nested").mkdir(parents=True)
    for name, text in {
        "config.json": '{"model_type": "bloom"}',
        "model-1.safetensors": "1",
        "model-2.safetensors": "22",
        "nested/more.json": "{}",
        "pytorch_model.bin": "pickle",
        "remote.py": "code",
    }.items():
        (directory / name).write_text(text)
    return directory


FILES = {"config.json": 23, "model-1.safetensors": 1, "model-2.safetensors": 2, "nested/more.json": 2}


def test_the_record_has_the_files_that_are_read_with_their_sizes(model, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "settle_offline", lambda: pytest.fail("the hub was asked about a directory"))
    record = tmp_path / "results/record.json"
    hub.fetch_model(str(model), None, "bloom", record)
    assert json.loads(record.read_text()) == {"source": str(model), "revision": None, "files": FILES}
    before = record.read_bytes()
    hub.fetch_model(str(model), None, "bloom", record)
    assert record.read_bytes() == before
    assert hub.model_place(record) == model
    assert hub.model_place(model) == model


def test_weights_and_configuration_alone_are_asked_of_the_hub(answering, model, tmp_path):
    asked = []

    def download(source, *, revision, allow_patterns, local_files_only):
        asked.append((source, revision, allow_patterns, local_files_only))
        return str(model)

    answering(download)
    hub.fetch_model("someone/some-model", REVISION, "bloom", tmp_path / "record.json")
    assert hub.model_place(tmp_path / "record.json") == model
    common = ("someone/some-model", REVISION, ["*.json", "*.safetensors", "chat_template.jinja"])
    assert asked == [(*common, False), (*common, True)]


def cut(name, kept):
    return lambda model, record: os.truncate(model / name, kept)


# What happens to a record or to a model after it was recorded, and what the line names beside the command.
LATER = {
    "weights cut short": (cut("model-2.safetensors", 1), "model-2.safetensors has 1 of 2 bytes"),
    "a configuration cut short": (cut("config.json", 5), "config.json has 5 of 23 bytes"),
    "weights gone": (lambda model, record: (model / "model-1.safetensors").unlink(), "safetensors has 0 of 1 bytes"),
    **{
        f"a record of {text!r}": (lambda model, record, text=text: record.write_text(text), "record ")
        for text in ("", '{"source": "a/b", "files"', "[]", '{"source": "a/b"}')
    },
}


@pytest.mark.parametrize(("spoil", "named"), LATER.values(), ids=LATER)
def test_a_model_or_record_that_is_no_longer_whole_is_named(spoil, named, model, tmp_path):
    record = tmp_path / "record.json"
    hub.fetch_model(str(model), None, "bloom", record)
    spoil(model, record)
    with refused(named, f"--force {record}"):
        hub.model_place(record)


def test_a_model_that_left_the_cache_says_how_to_fetch_it(answering, model, tmp_path):
    answering(lambda *_, **__: str(model))
    record = tmp_path / "record.json"
    hub.fetch_model("someone/some-model", REVISION, "bloom", record)
    answering(raising(errors.LocalEntryNotFoundError("no")))
    with refused("'someone/some-model'", REVISION, f"--force {record}"):
        hub.model_place(record)


def described(text):
    return lambda model: (model / "config.json").write_text(text)


def pickled(model):
    for weights in model.glob("*.safetensors"):
        weights.unlink()


# What a directory is in place of a BLOOM, and what the line names beside it.
NO_BLOOM = {
    "without a configuration": (lambda model: (model / "config.json").unlink(), "None, not 'bloom'"),
    "without a type": (described("{}"), "None, not 'bloom'"),
    "of another type": (described('{"model_type": "mpt"}'), "'mpt', not 'bloom'"),
    "half a configuration": (described('{"model_type": "bl'), "config.json"),
    "pickled weights alone": (pickled, "safetensors"),
    "nothing": (shutil.rmtree, "hub_models.*.source"),
}


@pytest.mark.parametrize(("spoil", "named"), NO_BLOOM.values(), ids=NO_BLOOM)
def test_a_directory_without_the_model_is_refused(spoil, named, model, tmp_path):
    spoil(model)
    with refused(model, named):
        hub.fetch_model(str(model), None, "bloom", tmp_path / "record.json")
    assert not (tmp_path / "record.json").exists()


def test_what_was_cut_short_in_the_cache_is_removed(tmp_path, monkeypatch):
    """The library takes every file that is there for whole; its listing of the commit says how long each is."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--someone--some-model"
    snapshot = repository / "snapshots" / REVISION
    for folder in (snapshot, repository / "blobs", repository / "trees"):
        folder.mkdir(parents=True)
    sizes = {"config.json": 23, "model-1.safetensors": 10}
    for name, kept in {"config.json": 23, "model-1.safetensors": 4}.items():
        (repository / "blobs" / f"of-{name}").write_text('{"model_type": "bloom"}'[:kept])
        (snapshot / name).symlink_to(repository / "blobs" / f"of-{name}")
    files = {name: {"size": size, "blob_id": name} for name, size in sizes.items()}
    (repository / "trees" / f"{REVISION}.json").write_text(json.dumps({"format_version": 1, "files": files}))
    with refused("'someone/some-model'", REVISION, "cache"):
        hub.fetch_model("someone/some-model", REVISION, "bloom", tmp_path / "record.json")
    assert [path.name for path in (repository / "blobs").iterdir()] == ["of-config.json"]


def test_the_stamp_changes_with_every_file(model):
    first = hub.stamp(model)
    assert [name for name, *_ in first] == sorted(path.relative_to(model).as_posix() for path in model.rglob("*.*"))
    assert hub.stamp(model) == first
    later = (model / "model-1.safetensors").stat().st_mtime_ns + 10**9
    os.utime(model / "model-1.safetensors", ns=(later, later))
    second = hub.stamp(model)
    (model / "nested/more.json").write_text("{ }")
    assert len({json.dumps(stamp) for stamp in (first, second, hub.stamp(model))}) == 3
