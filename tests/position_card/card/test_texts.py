"""Texts of every kind."""

import io
import sys
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest

from position_card.card import texts
from position_card.card.sources import source
from position_card.core import runtime
from position_card.models import data_sets
from tests.refusals import refused


def test_a_file_of_text_is_a_document_and_so_is_a_line_of_json(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    (tmp_path / "b.jsonl").write_text('{"text": "three", "url": "-"}\n\n{"text": "four"}\n')
    assert list(texts.stored_documents(source(str(tmp_path / "a.txt")))) == ["one\n\ntwo\n"]
    assert list(texts.stored_documents(source(str(tmp_path / "b.jsonl")))) == ["three", "four"]
    assert list(texts.stored_documents(source(str(tmp_path)))) == ["one\n\ntwo\n", "three", "four"]


def test_a_directory_of_other_files_is_read_as_a_data_set(tmp_path):
    pytest.importorskip("datasets", reason="data sets are read by the extra position-card[datasets]")
    pd.DataFrame({"text": ["one", "two"]}).to_parquet(tmp_path / "train.parquet")
    assert list(texts.stored_documents(source(str(tmp_path)))) == ["one", "two"]


def test_a_directory_that_is_no_data_set_has_a_plain_remedy(tmp_path):
    (tmp_path / "lines.json").write_text('{"words": "one"}')
    with refused(tmp_path, "'text'", ".txt", ".jsonl"):
        list(texts.stored_documents(source(str(tmp_path))))


MARKED = "\ufeff"


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(f"{MARKED}one", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(f'{MARKED}{{"text": "two"}}\n{{"text": "three"}}\n', encoding="utf-8")
    assert list(texts.stored_documents(source(str(tmp_path)))) == ["one", "two", "three"]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{MARKED}four"))
    assert list(texts.read_documents(source("-"))[0]) == ["four"]


@pytest.mark.parametrize(("name", "lines"), [("train.csv", "text\none\n"), ("train.tsv", "text\none\n")])
def test_a_byte_order_mark_is_no_part_of_a_data_set(tmp_path, name, lines):
    pytest.importorskip("datasets", reason="data sets are read by the extra position-card[datasets]")
    (tmp_path / name).write_text(MARKED + lines, encoding="utf-8")
    assert list(texts.stored_documents(source(str(tmp_path)))) == ["one"]


def test_a_text_that_may_not_be_read_is_one_line(tmp_path, monkeypatch):
    """As root, all may be read: the system says no by itself only of a directory."""
    (tmp_path / "a.txt").write_text("one")
    monkeypatch.setattr(runtime.Path, "open", Mock(side_effect=PermissionError(13, "Permission denied")))
    with refused(tmp_path / "a.txt", "Permission denied"):
        list(texts.stored_documents(source(str(tmp_path / "a.txt"))))


def test_another_encoding_is_one_line(tmp_path):
    (tmp_path / "a.txt").write_bytes("Käse".encode("latin-1"))
    with refused(tmp_path / "a.txt", "UTF-8"):
        list(texts.stored_documents(source(str(tmp_path / "a.txt"))))


@pytest.mark.parametrize("stdin", [None, "\udcff"])
def test_standard_input_that_cannot_be_read_is_one_line(stdin, monkeypatch):
    monkeypatch.setattr("sys.stdin", stdin and io.StringIO(stdin))
    with refused("standard input"):
        texts.read_documents(source("-"))


def test_reading_ends_with_the_last_character_that_is_wanted():
    def endless():
        yield from ("abcd", "ef", "ghij")
        pytest.fail("more was read than is wanted")

    assert list(texts.first_characters(9, endless())) == ["abcd", "ef", "ghi"]
    assert list(texts.first_characters(99, ["ab", "c"])) == ["ab", "c"]


@pytest.mark.parametrize("place", [Path("texts"), "owner/name"])
def test_a_data_set_without_its_package_says_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # as if it were not installed
    with refused(place, "pip install 'position-card[datasets]'"):
        data_sets.texts(place, "train")
