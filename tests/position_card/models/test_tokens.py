import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from position_card.models import tokens
from position_card.texts import corpus
from tests.refusals import refused

VOCABULARY = 400


@pytest.fixture(scope="module")
def reference():
    return [document.text for document in corpus.documents("language-reference")]


@pytest.fixture(scope="module")
def tokenizer(reference):
    return tokens.train_tokenizer(reference, VOCABULARY)


# The tokenizer


@given(text=st.text())
def test_every_text_decodes_to_itself(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_the_vocabulary_is_as_large_as_asked_for_and_compresses(tokenizer, reference):
    assert tokenizer.get_vocab_size() == VOCABULARY
    assert tokenizer.token_to_id(tokens.END_OF_TEXT) == 0
    text = reference[0]
    assert len(tokenizer.encode(text).ids) < 0.7 * len(text.encode())


def test_another_process_trains_the_same_tokenizer(tokenizer):
    program = (
        "from position_card.models import tokens; from position_card.texts import corpus;"
        "texts = [document.text for document in corpus.documents('language-reference')];"
        f"print(tokens.train_tokenizer(texts, {VOCABULARY}).to_str(), end='')"
    )
    root = Path(tokens.__file__).parents[2]
    shown = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert shown.stdout == tokenizer.to_str()


@pytest.mark.parametrize(("vocabulary", "named"), [(1, 257), (257, "256 bytes"), (300, "text")])
def test_a_vocabulary_that_a_text_cannot_fill_is_refused(vocabulary, named):
    with refused(f"tokenizer.vocabulary = {vocabulary}", named):
        tokens.train_tokenizer(["a few words"], vocabulary)


def test_an_opened_tokenizer_neither_truncates_nor_pads(tokenizer, tmp_path):
    changed = Tokenizer.from_str(tokenizer.to_str())
    changed.enable_truncation(2)
    changed.enable_padding(length=5)
    tokens.save_tokenizer(changed, tmp_path / "saved")
    opened = tokens.open_tokenizer(tmp_path / "saved")
    assert opened.encode("x").ids == tokenizer.encode("x").ids
    assert opened.encode("x y z x y z").ids == tokenizer.encode("x y z x y z").ids


def test_transformers_opens_a_saved_tokenizer(tokenizer, tmp_path):
    from transformers import AutoTokenizer  # here, since it takes seconds

    tokens.save_tokenizer(tokenizer, tmp_path / "saved")
    opened = AutoTokenizer.from_pretrained(tmp_path / "saved")
    text = "Naïve text, don't you think ?"
    assert opened(text)["input_ids"] == tokenizer.encode(text).ids
    assert opened.decode(opened(text)["input_ids"]) == text
    assert (opened.eos_token, opened.eos_token_id) == (tokens.END_OF_TEXT, 0)


def test_a_missing_or_broken_tokenizer_is_refused(tmp_path):
    with refused(tmp_path / "absent/tokenizer.json"):
        tokens.open_tokenizer(tmp_path / "absent")
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"')
    with refused(tmp_path / "tokenizer.json"):
        tokens.open_tokenizer(tmp_path)


# Stream and windows

# Document i is made of the i-th letter alone, so the letters of a window tell which documents it was cut from.
documents = st.lists(st.integers(0, 60), max_size=8).map(
    lambda sizes: [letter * size for letter, size in zip(string.ascii_lowercase, sizes, strict=False)]
)


@given(texts=documents, n=st.integers(1, 12))
@settings(max_examples=60)
def test_windows_stay_in_a_document_and_leave_out_its_tail_alone(tokenizer, texts, n):
    numbered = list(tokens.windows(texts, tokenizer, n, "every"))
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
    found = [(document, window.tolist()) for document, window in tokens.windows(texts, tokenizer, n, "first")]
    encoded = [tokenizer.encode(text).ids for text in texts]
    assert found == [(document, ids[:n]) for document, ids in enumerate(encoded) if len(ids) >= n]


@given(texts=documents)
@settings(max_examples=60)
def test_the_stream_is_all_documents_each_with_its_end(tokenizer, texts):
    found = tokens.stream(iter(texts), tokenizer)
    assert found.dtype == np.int32
    decoded = tokenizer.decode(found.tolist(), skip_special_tokens=False)
    assert decoded == "".join(text + tokens.END_OF_TEXT for text in texts)


# Prompts


def rows(prompts):
    return [tuple(row) for row in prompts.tolist()]


def test_prompts_are_drawn_without_replacement_by_the_seed(tokenizer, reference):
    numbered = tokens.windows(reference, tokenizer, 64, "every")
    documents = {tuple(window.tolist()): document for document, window in numbered}
    every = list(documents)
    assert len(every) > 300

    def sample(prompts, seed):
        return tokens.sample_prompts(reference, tokenizer, 64, prompts, "every", seed).tokens

    drawn = tokens.sample_prompts(reference, tokenizer, 64, 40, "every", 0)
    assert drawn.documents.tolist() == [documents[window] for window in rows(drawn.tokens)]
    assert drawn.tokens.shape == (40, 64)
    assert drawn.tokens.dtype == np.int64
    assert rows(sample(40, 0)) == rows(drawn.tokens) == rows(sample(60, 0))[:40]
    assert set(rows(sample(40, 1))) != set(rows(drawn.tokens))
    assert sorted(rows(sample(len(every), 0))) == sorted(every)


def test_one_prompt_of_a_document_is_the_one_that_is_drawn_first(tokenizer, reference):
    def sample(prompts, rule):
        return tokens.sample_prompts(reference, tokenizer, 64, prompts, rule, 0)

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

    prompts = tokens.sample_prompts(endless(), tokenizer, 16, 4, "first", 0)
    assert prompts.tokens.shape == (4, 16)
    assert prompts.documents.tolist() == [0, 1, 3, 4]
    assert len(read) == 5


@pytest.mark.parametrize("taken", ["every", "first", "one"])
def test_too_few_windows_are_refused_with_their_number(tokenizer, taken):
    text = "a b c d " * 8
    there = len(tokenizer.encode(text).ids) // 5 if taken == "every" else 1
    assert there < 20
    with refused(20, 5, f"has {there}", "lengths.*.prompts"):
        tokens.sample_prompts([text], tokenizer, 5, 20, taken, 0)
    with refused("lower training.held_out"):
        tokens.sample_prompts([text], tokenizer, 5, 20, taken, 0, remedy="lower training.held_out")


@pytest.mark.parametrize("source", [Path("texts"), "owner/name"])
def test_a_data_set_without_its_package_says_what_to_install(source, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # as if it were not installed
    with refused(source, "pip install 'position-card[datasets]'"):
        tokens.texts(source, "train")
