"""Texts of every kind, and the prompts that are cut from them."""

import io
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from position_card.card import texts
from position_card.card.sources import source
from position_card.core import runtime
from tests.position_card.card.conftest import numbered
from tests.refusals import refused

WORDS = 64


@pytest.fixture
def tokenizer():
    """A word w7 is token 7."""
    return numbered()


def words(first, count):
    return " ".join(f"w{(first + place) % WORDS}" for place in range(count))


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


def test_prompts_are_windows_of_documents_behind_first_tokens(tokenizer):
    documents = [words(first, 60) for first in range(10)]
    found = texts.draw_prompts(documents, tokenizer, [3, 5], [12, 22], 8, sample_seed=0)
    assert {n: of.tokens.shape for n, of in found.items()} == {12: (8, 12), 22: (8, 22)}
    for n, (prompts, numbers, *_) in found.items():
        firsts = dict(zip(numbers, prompts[:, 2] % 10, strict=True))
        # windows of ten or twenty words begin alike in a document
        assert len(firsts) == len(set(firsts.values())) == found[n].facts()["documents"]
        assert (prompts[:, :2] == [3, 5]).all()
        assert (np.diff(prompts[:, 2:], axis=1) % WORDS == 1).all()  # in the order of a document
        every = {
            tuple((first + start + np.arange(n - 2)) % WORDS) for first in range(10) for start in range(0, 60, n - 2)
        }
        assert {tuple(row) for row in prompts[:, 2:].tolist()} <= every
    again = texts.draw_prompts(documents, tokenizer, [3, 5], [12], 8, sample_seed=0)
    np.testing.assert_array_equal(again[12].tokens, found[12].tokens)
    other = texts.draw_prompts(documents, tokenizer, [3, 5], [12], 8, sample_seed=1)
    assert not np.array_equal(other[12].tokens, found[12].tokens)


def test_a_short_text_gives_the_prompts_that_it_has(tokenizer, capsys):
    found = texts.draw_prompts([words(0, 90)], tokenizer, [], [9, 30], 64, sample_seed=0)
    assert {n: (of.tokens.shape, of.facts()["documents"]) for n, of in found.items()} == {9: ((10, 9), 1)}
    assert "length 30 is left out: the text has 3 prompts" in capsys.readouterr().err


def test_the_entropy_is_that_of_windows_without_first_tokens(tokenizer):
    """Every word stands twice in the windows of this text, so all have the same frequency; few of them are drawn."""
    found = texts.draw_prompts([words(0, 2 * WORDS)] * 2, tokenizer, [3], [WORDS // 4 + 1], 8, sample_seed=0)
    assert found[WORDS // 4 + 1].entropy == pytest.approx(np.log(WORDS))
    assert found[WORDS // 4 + 1].facts()["entropy"] == found[WORDS // 4 + 1].entropy


def test_too_little_text_is_one_line(tokenizer):
    with refused("5 prompts of 9 tokens, 1 of 30 and 0 of 60", "at least 8", "50 tokens"):
        texts.draw_prompts([words(0, 50)], tokenizer, [], [9, 30, 60], 64, sample_seed=0)
    with refused("1 prompt of 30 tokens", "at least 8"):
        texts.draw_prompts([words(0, 50)], tokenizer, [], [30], 64, sample_seed=0)


@pytest.fixture
def starting(tokenizer):
    """The same with special tokens 64 and 65, of which the first begins every text."""
    tokenizer.add_special_tokens(["<s>", "<end>"])
    return tokenizer


def test_a_start_token_that_a_text_begins_with_is_there_once(starting, capsys):
    plain = [words(place, 40) for place in range(8)]
    marked = [f"<s>{text}" if place % 2 else f"<s><s>{text}" for place, text in enumerate(plain[:6])] + plain[6:]
    expected = texts.draw_prompts(plain, starting, [64], [9], 64, 0)[9]
    capsys.readouterr()
    found = texts.draw_prompts(marked, starting, [64], [9], 64, 0)[9]
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    assert (found.tokens[:, 1:] != 64).all()
    assert "<s>, with which 6 of 8 documents begin" in capsys.readouterr().err
    assert found.special == expected.special == {}
    held = texts.draw_prompts(marked, starting, [], [8], 64, 0)[8]  # of a tokenizer that puts none, nothing is taken
    assert (held.tokens == 64).sum() == 9


def test_special_tokens_within_prompts_are_counted(starting, capsys):
    documents = [words(place, 16) + (" <end> " if place < 3 else " ") + words(0, 15) for place in range(8)]
    found = texts.draw_prompts(documents, starting, [64], [17], 64, 0)[17]
    assert (found.tokens == 65).any(1).sum() == 3
    assert f"3 of {len(found.tokens)} prompts of 17 tokens hold <end>" in capsys.readouterr().err
    assert found.facts()["special"] == {"<end>": 3}
