"""Prompts: windows of documents after the tokens that a model begins with, drawn by a seed."""

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from position_card.texts.prompts import draw_prompts, sample_prompts, windows
from tests.position_card.card.conftest import numbered
from tests.refusals import refused

WORDS = 64


@pytest.fixture
def words_tokenizer():
    """A word w7 is token 7."""
    return numbered()


def words(first, count):
    return " ".join(f"w{(first + place) % WORDS}" for place in range(count))


# Windows

# Document i is made of the i-th letter alone, so the letters of a window tell which documents it was cut from.
documents = st.lists(st.integers(0, 60), max_size=8).map(
    lambda sizes: [letter * size for letter, size in zip(string.ascii_lowercase, sizes, strict=False)]
)


@given(texts=documents, n=st.integers(1, 12))
@settings(max_examples=60)
def test_windows_stay_in_a_document_and_leave_out_its_tail_alone(tokenizer, texts, n):
    numbered = list(windows(texts, tokenizer, n, "every"))
    found = [window for _, window in numbered]
    assert all(set(tokenizer.decode(window.tolist())) <= set(texts[document]) for document, window in numbered)
    letters = [set(tokenizer.decode(window.tolist())) for window in found]
    assert all(len(letter) == 1 for letter in letters)
    for text in texts:
        ids = tokenizer.encode(text).ids
        own = [window for window, letter in zip(found, letters, strict=True) if letter == set(text)]
        joined = np.concatenate(own).tolist() if own else []
        assert joined == ids[: len(joined)]
        assert 0 <= len(ids) - len(joined) < n
    assert all(window.shape == (n,) and window.dtype == np.int64 for window in found)


@given(texts=documents, n=st.integers(1, 12))
@settings(max_examples=60)
def test_first_windows_begin_the_documents_that_are_long_enough(tokenizer, texts, n):
    found = [(document, window.tolist()) for document, window in windows(texts, tokenizer, n, "first")]
    encoded = [tokenizer.encode(text).ids for text in texts]
    assert found == [(document, ids[:n]) for document, ids in enumerate(encoded) if len(ids) >= n]


# Prompts of a measurement


def rows(prompts):
    return [tuple(row) for row in prompts.tolist()]


def test_prompts_are_drawn_without_replacement_by_the_seed(tokenizer, reference):
    numbered = windows(reference, tokenizer, 64, "every")
    documents = {tuple(window.tolist()): document for document, window in numbered}
    every = list(documents)
    assert len(every) > 300

    def sample(prompts, seed):
        return sample_prompts(reference, tokenizer, 64, prompts, "every", seed).tokens

    drawn = sample_prompts(reference, tokenizer, 64, 40, "every", 0)
    assert drawn.documents.tolist() == [documents[window] for window in rows(drawn.tokens)]
    assert drawn.tokens.shape == (40, 64)
    assert drawn.tokens.dtype == np.int64
    assert rows(sample(40, 0)) == rows(drawn.tokens) == rows(sample(60, 0))[:40]
    assert set(rows(sample(40, 1))) != set(rows(drawn.tokens))
    assert sorted(rows(sample(len(every), 0))) == sorted(every)


def test_one_prompt_of_a_document_is_the_one_that_is_drawn_first(tokenizer, reference):
    def sample(prompts, rule):
        return sample_prompts(reference, tokenizer, 64, prompts, rule, 0)

    drawn, every = sample(12, "one"), sample(300, "every")
    firsts = {}
    for document, window in zip(every.documents.tolist(), rows(every.tokens), strict=True):
        firsts.setdefault(document, window)
    assert list(zip(drawn.documents.tolist(), rows(drawn.tokens), strict=True)) == list(firsts.items())[:12]
    assert rows(sample(8, "one").tokens) == rows(drawn.tokens)[:8]


def test_first_prompts_are_read_no_further_than_needed(tokenizer):
    read = []

    def endless():
        while True:
            read.append(len(read))
            yield "word " * (len(read) % 3) * 20  # every third document is too short

    prompts = sample_prompts(endless(), tokenizer, 16, 4, "first", 0)
    assert prompts.tokens.shape == (4, 16)
    assert prompts.documents.tolist() == [0, 1, 3, 4]
    assert len(read) == 5


@pytest.mark.parametrize("taken", ["every", "first", "one"])
def test_too_few_windows_are_refused_with_their_number(tokenizer, taken):
    text = "a b c d " * 8
    there = len(tokenizer.encode(text).ids) // 5 if taken == "every" else 1
    assert there < 20
    with refused(20, 5, f"has {there}", "lengths.*.prompts"):
        sample_prompts([text], tokenizer, 5, 20, taken, 0)
    with refused("lower training.held_out"):
        sample_prompts([text], tokenizer, 5, 20, taken, 0, remedy="lower training.held_out")


# Prompts of a card


def test_prompts_are_windows_of_documents_behind_first_tokens(words_tokenizer):
    documents = [words(first, 60) for first in range(10)]
    found = draw_prompts(documents, words_tokenizer, [3, 5], [12, 22], 8, sample_seed=0)
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
    again = draw_prompts(documents, words_tokenizer, [3, 5], [12], 8, sample_seed=0)
    np.testing.assert_array_equal(again[12].tokens, found[12].tokens)
    other = draw_prompts(documents, words_tokenizer, [3, 5], [12], 8, sample_seed=1)
    assert not np.array_equal(other[12].tokens, found[12].tokens)


def test_a_short_text_gives_the_prompts_that_it_has(words_tokenizer, capsys):
    found = draw_prompts([words(0, 90)], words_tokenizer, [], [9, 30], 64, sample_seed=0)
    assert {n: (of.tokens.shape, of.facts()["documents"]) for n, of in found.items()} == {9: ((10, 9), 1)}
    assert "length 30 is left out: the text has 3 prompts" in capsys.readouterr().err


def test_the_entropy_is_that_of_windows_without_first_tokens(words_tokenizer):
    """Every word stands twice in the windows of this text, so all have the same frequency; few of them are drawn."""
    found = draw_prompts([words(0, 2 * WORDS)] * 2, words_tokenizer, [3], [WORDS // 4 + 1], 8, sample_seed=0)
    assert found[WORDS // 4 + 1].entropy == pytest.approx(np.log(WORDS))
    assert found[WORDS // 4 + 1].facts()["entropy"] == found[WORDS // 4 + 1].entropy


def test_too_little_text_is_one_line(words_tokenizer):
    with refused("5 prompts of 9 tokens, 1 of 30 and 0 of 60", "at least 8", "50 tokens"):
        draw_prompts([words(0, 50)], words_tokenizer, [], [9, 30, 60], 64, sample_seed=0)
    with refused("1 prompt of 30 tokens", "at least 8"):
        draw_prompts([words(0, 50)], words_tokenizer, [], [30], 64, sample_seed=0)


@pytest.fixture
def starting(words_tokenizer):
    """The same with special tokens 64 and 65, of which the first begins every text."""
    words_tokenizer.add_special_tokens(["<s>", "<end>"])
    return words_tokenizer


def test_a_start_token_that_a_text_begins_with_is_there_once(starting, capsys):
    plain = [words(place, 40) for place in range(8)]
    marked = [f"<s>{text}" if place % 2 else f"<s><s>{text}" for place, text in enumerate(plain[:6])] + plain[6:]
    expected = draw_prompts(plain, starting, [64], [9], 64, 0)[9]
    capsys.readouterr()
    found = draw_prompts(marked, starting, [64], [9], 64, 0)[9]
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    assert (found.tokens[:, 1:] != 64).all()
    assert "<s>, with which 6 of 8 documents begin" in capsys.readouterr().err
    assert found.special == expected.special == {}
    held = draw_prompts(marked, starting, [], [8], 64, 0)[8]  # of a words_tokenizer that puts none, nothing is taken
    assert (held.tokens == 64).sum() == 9


def test_special_tokens_within_prompts_are_counted(starting, capsys):
    documents = [words(place, 16) + (" <end> " if place < 3 else " ") + words(0, 15) for place in range(8)]
    found = draw_prompts(documents, starting, [64], [17], 64, 0)[17]
    assert (found.tokens == 65).any(1).sum() == 3
    assert f"3 of {len(found.tokens)} prompts of 17 tokens hold <end>" in capsys.readouterr().err
    assert found.facts()["special"] == {"<end>": 3}
