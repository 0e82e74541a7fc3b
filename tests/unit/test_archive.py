"""The archive of a release: what is in it, and every way in which it can be wrong."""

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path

import pytest

from position_bias.running.runtime import InputError
from tools import archive

ROOT = Path(__file__).parents[2]
HELD = {
    "figures/a/fig1.pdf": b"one",
    "figures/scorecard.pdf": b"two",
    "results/tables/a/checks.csv": b"three",
    "results/tables/scorecard.csv": b"four",
    "results/provenance.json": b"five",
    "results/report.html": b"six",
}
LEFT_OUT = {"results/models/bloom/weights.bin": b"seven", "results/corpus.json": b"eight"}


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "run"
    for name, content in (HELD | LEFT_OUT).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def written(results, tmp_path):
    archive.write(tmp_path / "dist/run.tar.xz", results)
    return tmp_path / "dist/run.tar.xz"


def packed(path, *members):
    """An archive of these names and contents, or members as they are."""
    with tarfile.open(path, "w:xz") as opened:
        for name, content in members:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum, the oracle, is not installed")
def test_an_archive_holds_what_tar_and_sha256sum_read(written, tmp_path):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    subprocess.run(["tar", "--extract", "--file", written], cwd=folder, check=True)
    held = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert held.pop(archive.SUMS)
    assert held == HELD
    listed = ["sha256sum", "--check", "--strict", archive.SUMS]
    assert subprocess.run(listed, cwd=folder, check=True, capture_output=True, text=True).stdout.count("OK") == len(
        HELD
    )
    assert archive.check(written) == len(HELD)


def test_the_same_results_make_the_same_bytes(written, results, tmp_path):
    shutil.copytree(results, tmp_path / "again")
    archive.write(tmp_path / "again.tar.xz", tmp_path / "again")
    assert (tmp_path / "again.tar.xz").read_bytes() == written.read_bytes()


@pytest.mark.parametrize("missing", archive.NEEDED)
def test_a_run_that_is_not_finished_makes_no_archive(results, missing, tmp_path):
    (results / missing).unlink()
    with pytest.raises(InputError, match=f"has no {missing}; finish the run first: make all"):
        archive.write(tmp_path / "dist/run.tar.xz", results)
    assert not (tmp_path / "dist").exists()


def test_what_is_too_large_leaves_nothing_behind(results, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "LARGEST", 100)
    with pytest.raises(InputError, match=r"would have \d+ bytes; a release carries at most 100"):
        archive.write(tmp_path / "dist/run.tar.xz", results)
    assert list((tmp_path / "dist").iterdir()) == []


def flipped(content, place):
    """The content with one bit changed, so far from its beginning."""
    changed = bytearray(content)
    changed[int(place * len(content))] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "damage", [*(partial(flipped, place=place) for place in (0.0, 0.5, 0.99)), lambda content: content[:-40]]
)
def test_an_archive_that_was_changed_or_cut_is_noticed(written, damage):
    written.write_bytes(damage(written.read_bytes()))
    with pytest.raises(InputError, match="fetch it again"):
        archive.check(written)


def linked(kind):
    member = tarfile.TarInfo("figures/one.pdf")
    member.type, member.linkname = kind, "/etc/passwd"
    return member


SUM = b"0" * 64 + b"  one\n"
EMPTY = hashlib.sha256(b"").hexdigest().encode() + b"  one\n"


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([("/etc/passwd", b"")], "has /etc/passwd, a link or a path that leads elsewhere"),
        ([("figures/../../one", b"")], r"has figures/\.\./\.\./one, a link or a path that leads elsewhere"),
        ([(linked(tarfile.SYMTYPE), b"")], "has figures/one.pdf, a link or a path that leads elsewhere"),
        ([(linked(tarfile.LNKTYPE), b"")], "has figures/one.pdf, a link or a path that leads elsewhere"),
        ([("one", b"")], "has another one than SHA256SUMS says"),
        ([("SHA256SUMS", SUM)], "has another one than SHA256SUMS says"),
        ([("SHA256SUMS", SUM), ("one", b"other")], "has another one than SHA256SUMS says"),
        ([("SHA256SUMS", EMPTY), ("one", b""), ("one", b"")], "has another number of files than SHA256SUMS says"),
        ([("SHA256SUMS", b"no list")], "cannot be read"),
    ],
)
def test_an_archive_of_other_files_than_its_list_says_is_refused(members, said, tmp_path):
    with pytest.raises(InputError, match=said):
        archive.check(packed(tmp_path / "run.tar.xz", *members))


def test_the_command_writes_and_checks_and_ends_in_one_line(results, tmp_path):
    def typed(*words):
        command = [sys.executable, ROOT / "tools/archive.py", *words]
        environment = {"PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    said = f"run.tar.xz: {len(HELD)} files, each with the sha256 that its list says\n"
    assert typed("run.tar.xz", results).stdout == typed("--check", "run.tar.xz").stdout == said
    ended = typed("--check", "none.tar.xz")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("error: none.tar.xz cannot be read")
