"""A small Llama with its tokenizer, in memory and in a folder, and a text, for all tests of cards."""

import json
from collections import Counter

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from position_bias.language_models import corpus, recall, tokens

VOCABULARY = 300


def llama(**settings):
    """Weights are the same in every call."""
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=64, initializer_range=0.3, **size, **settings)
    return LlamaForCausalLM(config)


@pytest.fixture(scope="session")
def prose():
    return [document.text for document in corpus.documents("language-reference")][:20]


@pytest.fixture(scope="session")
def own_tokenizer(prose):
    return tokens.train_tokenizer(prose, VOCABULARY)


@pytest.fixture(scope="session")
def tokenizer_of_words(prose):
    """The commonest words are one token each, as recall needs them; all else is unknown."""
    counts = Counter(word for text in prose for word in recall.WORD.findall(text))
    known = ["?", *(word for word, _ in counts.most_common(VOCABULARY - 1))]
    tokenizer = Tokenizer(models.WordLevel({word: token for token, word in enumerate(known)}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@pytest.fixture(scope="session")
def folder(prose, own_tokenizer, tokenizer_of_words, tmp_path_factory):
    """A folder with my-model, texts.jsonl and words, which has the other tokenizer; not to be changed."""
    root = tmp_path_factory.mktemp("mine")
    llama().save_pretrained(root / "my-model")
    PreTrainedTokenizerFast(tokenizer_object=own_tokenizer).save_pretrained(root / "my-model")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer_of_words).save_pretrained(root / "words")
    (root / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in prose))
    return root


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """The working directory, from which all of it is seen."""
    for name in ("my-model", "texts.jsonl", "words"):
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
