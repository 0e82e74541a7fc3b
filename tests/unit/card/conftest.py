"""A small Llama with its tokenizer, in memory and in a folder, and a text, for all tests of cards."""

import json

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from position_bias.language_models import corpus, tokens

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
def folder(prose, own_tokenizer, tmp_path_factory):
    """A folder with my-model and texts.jsonl; not to be changed."""
    root = tmp_path_factory.mktemp("mine")
    llama().save_pretrained(root / "my-model")
    PreTrainedTokenizerFast(tokenizer_object=own_tokenizer).save_pretrained(root / "my-model")
    (root / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in prose))
    return root


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """The working directory, from which both are seen."""
    for name in ("my-model", "texts.jsonl"):
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
