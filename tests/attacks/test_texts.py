"""Texts that somebody else wrote: each ends in one line that names the file, or is read as it was meant."""

import os
import tarfile

import datasets
import pytest
import torch

from position_card.card import sources, texts
from position_card.card.sources import faults, source
from tests.refusals import refused

# What it is, what is written or how, and what the one line names beside the file.
CASES = {
    "nested deeply": ('{"text":' * 100_000 + "1" + "}" * 100_000, "line 1"),
    "a list nested deeply": ("[" * 100_000, "line 1"),
    "a list of texts": ('["a", "b"]', "line 1"),
    "a text that is an object": ('{"text": {"text": "a"}}', "line 1"),
    "bytes that are no UTF-8": (b'{"text": "\xff"}', "UTF-8"),
    "no line": ("", ""),
    "empty lines": ("\n\n", ""),
    "a line of blanks": ("  \n", ""),
    "a pipe": (os.mkfifo, ""),
    "a device": (lambda path: os.symlink("/dev/zero", path), ""),
    "the null device": (lambda path: os.symlink("/dev/null", path), ""),
}


@pytest.mark.parametrize(("written", "named"), CASES.values(), ids=CASES)
def test_a_file_without_text_ends_in_one_line(written, named, tmp_path):
    file = tmp_path / "a.jsonl"
    if callable(written):
        written(file)
    else:
        file.write_bytes(written if isinstance(written, bytes) else written.encode())
    with refused(f"text {file}", named):
        list(texts.stored_documents(source(str(file))))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"half a pair \ud83d here", "half a pair \N{REPLACEMENT CHARACTER} here"),
        (r"\ude00", "\N{REPLACEMENT CHARACTER}"),
        (r"a pair \ud83d\ude00", "a pair \N{GRINNING FACE}"),
    ],
)
def test_half_of_a_pair_of_surrogates_is_an_unknown_character(written, read, tmp_path):
    (tmp_path / "a.jsonl").write_text(f'{{"text": "{written}"}}\n')
    (text,) = texts.stored_documents(source(str(tmp_path / "a.jsonl")))
    assert text == read
    text.encode()


def test_a_program_beside_a_data_set_is_not_run(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "data.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    with refused(f"text {folder} "):
        list(texts.stored_documents(source(str(folder))))
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", ["train.tar", "train.tar.csv.tar"])
def test_an_archive_with_a_pickle_is_not_opened(name, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("a pickle was read"))
    with tarfile.open(tmp_path / name, "w") as archive:
        for member in ("0.pth", "0.text"):
            (tmp_path / "member").write_bytes(b"text")
            archive.add(tmp_path / "member", member)
    (tmp_path / "member").unlink()
    with refused(f"text {tmp_path} "):
        list(texts.stored_documents(source(str(tmp_path))))


@pytest.mark.parametrize(
    "elsewhere", ["../secret.csv", "{}/secret.csv", "file://{}/secret.csv", "http://localhost:1/a"]
)
@pytest.mark.parametrize("readme", ["---\n{}---\n", "{}"])
def test_notes_beside_a_text_do_not_decide_what_is_read(readme, elsewhere, tmp_path):
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "train.csv").write_text("text\nread\n")
    (tmp_path / "secret.csv").write_text("text\nsecret\n")
    paths = f"configs:\n- config_name: a\n  data_files: {elsewhere.format(tmp_path)}\n"
    (folder / ("README.md" if "---" in readme else ".huggingface.yaml")).write_text(readme.format(paths))
    assert list(texts.stored_documents(source(str(folder)))) == ["read"]


def test_a_picture_beside_a_text_is_not_opened(tmp_path):
    kind = datasets.Features({"text": datasets.Value("string"), "picture": datasets.Image()})
    rows = {"text": ["one"], "picture": [{"path": None, "bytes": b"no picture"}]}
    datasets.Dataset.from_dict(rows, features=kind).to_parquet(tmp_path / "train.parquet")
    assert list(texts.stored_documents(source(str(tmp_path)))) == ["one"]


@pytest.mark.parametrize("begin", ["", '{"text": "one"}\n', '{"text": "'])
def test_a_line_without_end_is_not_read_to_its_end(begin, tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "LONGEST", 1000)
    (tmp_path / "a.jsonl").write_text(begin + "x" * 5000)
    line = 2 if begin.endswith("\n") else 1
    with refused(tmp_path / "a.jsonl", f"line {line}", "1,000"):
        list(texts.stored_documents(source(str(tmp_path / "a.jsonl"))))


def test_of_a_large_file_as_much_is_read_as_a_card_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "CHARACTERS", 100)
    (tmp_path / "a.txt").write_text("x" * 5000)
    assert list(texts.stored_documents(source(str(tmp_path / "a.txt")))) == ["x" * 100]


NAMES = {"a name of 300 characters": "/" + "x" * 300, "a path of 5,000 characters": "/x" * 2500, "a zero byte": "/x\0y"}


@pytest.mark.parametrize("case", NAMES)
def test_a_name_that_no_file_can_have_ends_in_one_line(case):
    with refused("text "):
        list(texts.stored_documents(source(NAMES[case])))
    assert source(NAMES[case][1:]).kind == "hub"
    assert "is not there" in next(faults([source(NAMES[case])], 0))


@pytest.mark.parametrize("kind", ["files", "folders"])
def test_the_folder_of_a_whole_system_is_not_listed_to_its_end(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MOST_FILES", 20)
    for number in range(21):
        (tmp_path / f"{number}.txt").write_text("a") if kind == "files" else (tmp_path / f"{number}").mkdir()
    with refused(tmp_path, "20 files and folders"):
        list(texts.stored_documents(source(str(tmp_path))))
