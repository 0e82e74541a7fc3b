"""The language reference and a tokenizer of it, for tests of tokens and of prompts."""

import pytest

from position_card.texts import corpus, tokens

VOCABULARY = 400


@pytest.fixture(scope="session")
def reference():
    return [document.text for document in corpus.documents("language-reference")]


@pytest.fixture(scope="session")
def tokenizer(reference):
    return tokens.train_tokenizer(reference, VOCABULARY)
