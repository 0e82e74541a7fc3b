"""Texts that are data sets, of the hub or of a directory; the extra position-card[datasets] reads them."""

import json
import os
import shutil
import socket
from types import SimpleNamespace

import pandas as pd
import pytest

from position_card.models import data_sets, hub
from tests.refusals import refused

EXTRA = "data sets are read by the extra position-card[datasets], which this environment lacks"
datasets = pytest.importorskip("datasets", reason=EXTRA)
zstandard = pytest.importorskip("zstandard", reason=EXTRA)


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def data_set(tmp_path):
    folder = tmp_path / "text"
    folder.mkdir()
    for split, texts in (("train", ["one", "two"]), ("test", ["three"])):
        pd.DataFrame({"id": texts, "text": texts}).to_parquet(folder / f"{split}.parquet", index=False)
    return folder


def hub_data_set(monkeypatch, rows, stored="parquet"):
    """Let the hub hold one data set, of the rows that a function returns."""

    class Stream:
        features = None

        def __iter__(self):
            return iter(rows())

    builder = SimpleNamespace(name=stored, as_streaming_dataset=lambda split: Stream())
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda **_: builder)


def test_a_local_data_set_is_read_without_the_network(data_set, no_network):
    assert list(data_sets.texts(data_set, "train")) == ["one", "two"]
    assert list(data_sets.texts(str(data_set), "test")) == ["three"]


def emptied(folder):
    for file in folder.iterdir():
        file.unlink()


def cut(length):
    return lambda folder: os.truncate(folder / "train.parquet", length)


# What becomes of the data set, which split and column are asked for, and what the line names beside its folder.
REFUSED = {
    "nothing there": (shutil.rmtree, {}, ()),
    "an empty folder": (emptied, {}, ("'train'",)),
    "another split": (lambda folder: None, {"split": "valid"}, ("'valid'",)),
    "another column": (lambda folder: None, {"column": "content"}, ("'content'", "id, text")),
    "an empty file": (cut(0), {}, ("'train'",)),
    "a file cut short": (cut(300), {}, ("'train'",)),
}


@pytest.mark.parametrize(("spoil", "asked", "named"), REFUSED.values(), ids=REFUSED)
def test_a_data_set_without_the_texts_is_refused(spoil, asked, named, data_set, no_network):
    spoil(data_set)
    with refused(data_set, *named):
        data_sets.texts(data_set, **{"split": "train", **asked})


def test_an_unreachable_hub_data_set_is_refused(monkeypatch):
    def unreachable(path, name, revision):
        assert (path, name, revision) == ("owner/name", "20231101.en", "a" * 40)
        raise ConnectionError("Couldn't reach 'owner/name'\non the Hub")

    monkeypatch.setattr(datasets, "load_dataset_builder", unreachable)
    with refused("'owner/name'", "'train'", "Couldn't reach"):
        data_sets.texts("owner/name", "train", "20231101.en", "a" * 40)


def test_a_hub_data_set_is_streamed_no_further_than_it_is_read(monkeypatch):
    read = []

    def rows():
        for i in range(100):
            read.append(i)
            yield {"text": f"document {i}"}

    hub_data_set(monkeypatch, rows)
    found = data_sets.texts("owner/name", "train")
    assert [next(found), next(found)] == ["document 0", "document 1"]
    assert read == [0, 1]


def test_a_stream_that_is_closed_closes_what_it_reads(monkeypatch):
    """Else the libraries' readers end with the interpreter, and complain."""
    closed = []

    def rows():
        try:
            while True:
                yield {"text": "document"}
        finally:
            closed.append(True)

    hub_data_set(monkeypatch, rows)
    found = data_sets.texts("owner/name", "train")
    assert [next(found), next(found)] == ["document", "document"]
    assert not closed
    found.close()
    assert closed


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([{"text": "one"}, ConnectionError("gone\naway")], "gone away"),
        ([{"text": "one"}, {"text": None}], "None in column 'text'"),
        ([{"text": 7}], "7 in column 'text'"),
    ],
)
def test_what_fails_amid_the_documents_is_one_line_too(monkeypatch, rows, named):
    def reading():
        for row in rows:
            if isinstance(row, Exception):
                raise row
            yield row

    hub_data_set(monkeypatch, reading)
    with refused("'owner/name'", "'train'", named):
        list(data_sets.texts("owner/name", "train"))


@pytest.mark.parametrize("splits", [False, True])
def test_a_data_set_that_was_saved_to_disk_is_read(splits, tmp_path, no_network):
    saved = datasets.Dataset.from_dict({"text": ["one", "two"]})
    (datasets.DatasetDict(train=saved, test=saved) if splits else saved).save_to_disk(tmp_path / "saved")
    assert list(data_sets.texts(tmp_path / "saved", "train")) == ["one", "two"]


def test_a_part_of_a_directory_is_the_folder_of_its_name(data_set, no_network):
    assert list(data_sets.texts(data_set.parent, "test", data_set.name)) == ["three"]


def test_a_hub_data_set_in_archives_is_refused_unread(monkeypatch):
    hub_data_set(monkeypatch, list, "webdataset")
    with refused("'owner/name'", "'train'", "webdataset"):
        data_sets.texts("owner/name", "train")


@pytest.mark.parametrize("cut", [False, True])
def test_compressed_lines_of_json_are_read_like_those_of_a_crawl(tmp_path, no_network, cut):
    """As DCLM has them."""
    lines = "".join(json.dumps({"text": f"document {i} " + "x" * (i % 7), "url": "-"}) + "\n" for i in range(5000))
    content = zstandard.compress(lines.encode())
    file = tmp_path / "global-shard_01_of_10/local-shard_0_of_10/shard_00000000_processed.jsonl.zst"
    file.parent.mkdir(parents=True)
    file.write_bytes(content[: len(content) // 2] if cut else content)
    if cut:
        with refused(tmp_path, "'train'"):
            list(data_sets.texts(tmp_path, "train"))
    else:
        found = list(data_sets.texts(tmp_path, "train"))
        assert len(found) == 5000
        assert found[8] == "document 8 x"


def test_a_hub_data_set_without_network_is_one_line_at_once(unreachable):
    with refused("'someone/some-data'", "'train'"):
        data_sets.texts("someone/some-data", "train")


def test_datasets_is_told_that_there_is_no_network(unreachable):
    hub.settle_offline()
    assert datasets.config.HF_HUB_OFFLINE
