import json
import os
import time

import datasets
import httpx2
import huggingface_hub
import pytest
from huggingface_hub import errors

from position_bias.language_models import hub, opening, tokens
from tests.refusals import refused


@pytest.fixture
def unreachable(monkeypatch):
    """A hub that refuses connections, and a clock that forbids to wait for it."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    for settings in (huggingface_hub.constants, datasets.config):
        monkeypatch.setattr(settings, "HF_HUB_OFFLINE", False)

    def wait(seconds):
        raise AssertionError(f"waits for {seconds} s")

    monkeypatch.setattr(time, "sleep", wait)


def test_a_hub_data_set_without_network_is_one_line_at_once(unreachable):
    with refused("'someone/some-data'", "'train'"):
        tokens.texts("someone/some-data", "train")


def test_a_hub_model_is_not_asked_for(unreachable):
    with refused("someone/some-model", "config.json"):
        opening.open_decoder("someone/some-model")


def test_without_network_the_libraries_are_told_so_once(unreachable, caplog):
    hub.settle_offline()
    assert huggingface_hub.constants.HF_HUB_OFFLINE
    assert datasets.config.HF_HUB_OFFLINE
    hub.settle_offline()
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == ["http://127.0.0.1:9 does not answer"]


# What `fetch_model` says of the hub's answers

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


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (errors.GatedRepoError("403", response=answer(403)), "hf auth login"),
        (errors.RepositoryNotFoundError("404", response=answer(404)), "hub_models.*.source"),
        (errors.RevisionNotFoundError("404", response=answer(404)), ".revision"),
        (errors.LocalEntryNotFoundError("no"), "cache"),
        (errors.IncompleteSnapshotError("no", "/cache"), "cache"),
        (errors.OfflineModeIsEnabled("no"), "cache"),
        (errors.HfHubHTTPError("500 Server\n Error", response=answer(500)), "500 Server Error"),
        (errors.HFValidationError("Repo id must\nbe so"), "Repo id must be so"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_answer_of_the_hub_is_one_line_that_names_model_and_commit(answering, tmp_path, error, named):
    answering(raising(error))
    with refused("'someone/some-model'", REVISION, named):
        hub.fetch_model("someone/some-model", REVISION, "bloom", tmp_path / "record.json")
    assert not (tmp_path / "record.json").exists()


def test_without_a_commit_the_one_that_the_hub_has_now_is_recorded(answering, model, tmp_path):
    commit = model.parent / f"snapshots/{REVISION}"
    commit.parent.mkdir()
    model.rename(commit)
    answering(lambda *_, **__: str(commit))
    record = tmp_path / "record.json"
    hub.fetch_model("someone/some-model", None, None, record)
    assert json.loads(record.read_text())["revision"] == REVISION
    assert hub.model_place(record) == commit


def test_a_model_that_does_not_exist_is_told_what_a_directory_looks_like(answering, tmp_path):
    answering(raising(errors.RepositoryNotFoundError("404", response=answer(404))))
    with refused("'models/mine'", "a directory starts with"):
        hub.fetch_model("models/mine", None, None, tmp_path / "record.json")


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (errors.GatedRepoError("403", response=answer(403)), "hf auth login"),
        (errors.RepositoryNotFoundError("404", response=answer(404)), "does not exist"),
        (errors.HfHubHTTPError("500 Server\n Error", response=answer(500)), "500 Server Error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_answer_on_a_data_set_is_one_line(answering, monkeypatch, error, named):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "dataset_info", raising(error))
    with refused("'someone/texts'", named):
        hub.newest_text("someone/texts")


def test_the_commit_of_a_data_set_is_the_one_that_the_hub_has_now(answering, monkeypatch):
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


def test_the_record_names_the_files_that_are_read_and_their_sizes(model, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "settle_offline", lambda: pytest.fail("the hub was asked about a directory"))
    record = tmp_path / "results/record.json"
    hub.fetch_model(str(model), None, "bloom", record)
    assert json.loads(record.read_text()) == {"source": str(model), "revision": None, "files": FILES}
    before = record.read_bytes()
    hub.fetch_model(str(model), None, "bloom", record)
    assert record.read_bytes() == before
    assert hub.model_place(record) == model
    assert hub.model_place(model) == model


def test_weights_and_configuration_alone_are_asked_of_the_hub_at_the_commit(answering, model, tmp_path):
    asked = []

    def download(source, *, revision, allow_patterns, local_files_only):
        asked.append((source, revision, allow_patterns, local_files_only))
        return str(model)

    answering(download)
    hub.fetch_model("someone/some-model", REVISION, "bloom", tmp_path / "record.json")
    assert hub.model_place(tmp_path / "record.json") == model
    common = ("someone/some-model", REVISION, ["*.json", "*.safetensors"])
    assert asked == [(*common, False), (*common, True)]


@pytest.mark.parametrize(
    ("file", "kept", "named"),
    [
        ("model-2.safetensors", 1, "1 of 2 bytes"),
        ("model-1.safetensors", None, "0 of 1 bytes"),
        ("config.json", 5, "5 of 23 bytes"),
    ],
)
def test_a_file_that_is_gone_or_cut_short_is_named(model, tmp_path, file, kept, named):
    record = tmp_path / "record.json"
    hub.fetch_model(str(model), None, "bloom", record)
    whole = (model / file).read_bytes()
    (model / file).unlink()
    if kept is not None:
        (model / file).write_bytes(whole[:kept])
    with refused(f"{file} has {named}", f"--force {record}"):
        hub.model_place(record)


def test_a_model_that_left_the_cache_says_how_to_fetch_it(answering, model, tmp_path):
    answering(lambda *_, **__: str(model))
    record = tmp_path / "record.json"
    hub.fetch_model("someone/some-model", REVISION, "bloom", record)
    answering(raising(errors.LocalEntryNotFoundError("no")))
    with refused("'someone/some-model'", REVISION, f"--force {record}"):
        hub.model_place(record)


@pytest.mark.parametrize(
    ("configuration", "named"),
    [
        (None, "None, not 'bloom'"),
        ("{}", "None, not 'bloom'"),
        ('{"model_type": "mpt"}', "'mpt', not 'bloom'"),
        ('{"model_type": "bl', "config.json"),
    ],
)
def test_a_configuration_of_another_family_is_refused(model, tmp_path, configuration, named):
    (model / "config.json").unlink()
    if configuration is not None:
        (model / "config.json").write_text(configuration)
    with refused(model, named):
        hub.fetch_model(str(model), None, "bloom", tmp_path / "record.json")
    assert not (tmp_path / "record.json").exists()


def test_pickled_weights_alone_are_refused(model, tmp_path):
    for weights in model.glob("*.safetensors"):
        weights.unlink()
    with refused(model, "safetensors"):
        hub.fetch_model(str(model), None, "bloom", tmp_path / "record.json")


def test_a_directory_that_is_not_there_is_refused(tmp_path):
    with refused("./nowhere", "hub_models.*.source"):
        hub.fetch_model("./nowhere", None, None, tmp_path / "record.json")


def test_what_was_cut_short_in_the_cache_is_removed_so_that_it_is_fetched_again(tmp_path, monkeypatch):
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


@pytest.mark.parametrize("text", ["", '{"source": "a/b", "files"', "[]", '{"source": "a/b"}'])
def test_a_record_that_was_cut_short_names_itself_and_the_remedy(tmp_path, text):
    record = tmp_path / "model.json"
    record.write_text(text)
    with refused(f"record {record} ", f"--force {record}"):
        hub.model_place(record)
