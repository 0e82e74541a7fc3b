"""Where released numbers come from: what is read of each kind of source, and what is said of a bad one."""

import hashlib
import http.client
import io
import urllib.error
import urllib.request

import pytest

from position_bias.released import sources
from tests.archives import ADDRESS, YAML, archive
from tests.refusals import refused

OTHERS = {
    "README.md": b"# a page",
    "config/empirical/alibi/bloom.yaml": b"measured: true\n",
    "config/rollout/alibi/notes.txt": b"none",
}


@pytest.fixture
def online(monkeypatch):
    """A network where every address answers with the given bytes."""

    def serve(answer):
        monkeypatch.setattr(urllib.request.OpenerDirector, "open", lambda opener, address, timeout: io.BytesIO(answer))

    return serve


def test_tables_are_read_and_listed(released_sample):
    contents = sources.read(str(released_sample.tables))
    assert sorted(contents) == ["content.csv.gz", "lambda.csv", "models.csv"]
    assert contents["lambda.csv"] == (released_sample.tables / "lambda.csv").read_bytes()
    assert sources.is_tidy(contents)
    assert {path.name for path in sources.files(str(released_sample.tables))} == set(sources.TABLES)


def test_the_configurations_of_a_tree_are_read_and_nothing_else_of_it(tmp_path):
    for path, content in (YAML | OTHERS).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    assert sources.read(str(tmp_path)) == YAML
    assert not sources.is_tidy(YAML)
    assert [path.relative_to(tmp_path).as_posix() for path in sources.files(str(tmp_path))] == sorted(YAML)


def test_an_archive_holds_what_its_tree_holds(online):
    online(archive(YAML | OTHERS, links=["config/rollout/alibi/link.yaml"]))
    assert sources.read(ADDRESS, sources.fingerprint(YAML)) == YAML
    assert sources.files(ADDRESS) == []


def test_archives_of_the_same_files_have_one_fingerprint_however_they_are_packed():
    reordered = dict(reversed(YAML.items()))
    packed = archive(YAML), archive(reordered, folder="other-name"), archive(YAML | OTHERS, mode="w:xz")
    assert len(set(packed)) == 3
    assert {sources.fingerprint(sources.unpack(ADDRESS, one)) for one in packed} == {sources.fingerprint(YAML)}


def test_a_fingerprint_is_the_sha256_of_paths_lengths_and_contents_in_order_of_the_paths():
    expected = hashlib.sha256(b"a\x002\x00xyb\x000\x00").hexdigest()
    assert sources.fingerprint({"b": b"", "a": b"xy"}) == expected
    assert sources.fingerprint({"b": b"", "a": b"xz"}) != expected
    assert sources.fingerprint({"ab": b"", "a": b"xy"}) != expected


def test_nothing_of_an_archive_leaves_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outside = {"../../escaped.yaml": b"1", "config/rollout/alibi/../../../../escaped.yaml": b"2"}
    contents = sources.unpack(ADDRESS, archive(YAML | outside))
    assert YAML.items() <= contents.items()
    assert list(tmp_path.rglob("*")) == []
    assert not (tmp_path.parent / "escaped.yaml").exists()


def test_no_source_and_one_that_lacks_its_files_are_named(released_sample, tmp_path, monkeypatch):
    with refused("released.source = None"):
        sources.read(None)
    assert sources.files(None) == []
    monkeypatch.chdir(tmp_path)
    partial = released_sample.copy("tables", tmp_path)
    (partial / "content.csv.gz").unlink()
    (tmp_path / "empty").mkdir()
    for place, named in {
        "numbers": tmp_path / "numbers",
        str(tmp_path / "empty"): "lambda.csv",
        str(partial): "content.csv.gz",
        "http://example.org/a.tar.gz": "https://",
        "file:///etc/passwd": "https://",
    }.items():
        with refused(f"released.source = '{place}'", named):
            sources.read(place)


def test_a_file_that_cannot_be_read_is_named(released_sample, tmp_path):
    tree = released_sample.copy("tree", tmp_path)
    (tree / "config/rollout/alibi/lost.yaml").symlink_to(tmp_path / "nothing")
    with refused(f"released.source = '{tree}'", "lost.yaml"):
        sources.read(str(tree))


def test_another_sha256_is_refused_whatever_the_source(released_sample, online):
    online(archive(YAML))
    for place in (ADDRESS, str(released_sample.tables)):
        with refused(f"released.source = '{place}'", f"released.sha256 = '{'0' * 64}'"):
            sources.read(place, "0" * 64)
    tables = str(released_sample.tables)
    assert sources.read(tables, sources.fingerprint(sources.read(tables)))
    with refused(ADDRESS, sources.fingerprint(YAML), "released.sha256"):  # an archive without a sha256 is not trusted
        sources.read(ADDRESS)


@pytest.mark.parametrize(
    "broken", [b"", b"<html>not found</html>", archive(YAML)[:-40], b"\x1f\x8b" + b"\0" * 60], ids=len
)
def test_what_is_no_archive_is_said_to_be_none(online, broken):
    online(broken)
    with refused(f"released.source = '{ADDRESS}'"):
        sources.read(ADDRESS, "0" * 64)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (http.client.IncompleteRead(b"half"), "IncompleteRead(4 bytes read)"),
        (urllib.error.URLError("no such name"), "no such name"),
    ],
)
def test_a_network_that_fails_is_named_with_its_reason(monkeypatch, error, reason):
    def failing(*_args, **_options):
        raise error

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", failing)
    with refused(f"released.source = '{ADDRESS}'", reason):
        sources.read(ADDRESS, "0" * 64)


def test_an_archive_may_not_grow_without_bound(online, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST", 20)
    online(archive(YAML)[:21])
    with refused(ADDRESS, "20 bytes"):
        sources.read(ADDRESS, "0" * 64)
    with refused(ADDRESS, "20 bytes"):
        sources.unpack(ADDRESS, archive(YAML))
