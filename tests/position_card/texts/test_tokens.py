import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from position_card.texts import tokens
from tests.position_card.texts.conftest import VOCABULARY
from tests.refusals import refused

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
        "from position_card.texts import corpus, tokens;"
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


# The stream


# Document i is made of the i-th letter alone, so the letters of a window tell which documents it was cut from.
documents = st.lists(st.integers(0, 60), max_size=8).map(
    lambda sizes: [letter * size for letter, size in zip(string.ascii_lowercase, sizes, strict=False)]
)


@given(texts=documents)
@settings(max_examples=60)
def test_the_stream_is_all_documents_each_with_its_end(tokenizer, texts):
    found = tokens.stream(iter(texts), tokenizer)
    assert found.dtype == np.int32
    decoded = tokenizer.decode(found.tolist(), skip_special_tokens=False)
    assert decoded == "".join(text + tokens.END_OF_TEXT for text in texts)
