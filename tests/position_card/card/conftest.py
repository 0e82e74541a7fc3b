"""A small Llama with its tokenizer, in memory and in a folder, and a text, for all tests of cards."""

import json
import shutil
from collections import Counter

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from position_card.card import command
from position_card.drawing import style
from position_card.measures import recall
from position_card.texts import corpus, tokens
from tests import ggufs

VOCABULARY = 300
TYPED = "./my-model --text texts.jsonl --lengths 12 24 --prompts 10 --threads 1 --quiet --recall 3 --tokenizer words"
TYPED = [*TYPED.split(), "--no-questions"]  # the command of the card that tests share


def llama(layers=3, **settings):
    """Weights are the same in every call."""
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": layers, "num_attention_heads": 4}
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=64, initializer_range=0.3, **size, **settings)
    return LlamaForCausalLM(config)


@pytest.fixture(scope="session")
def prose():
    return [document.text[:3000] for document in corpus.documents("language-reference")][:20]


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


def numbered(before=None):
    """A tokenizer of 64 words, of which w7 is token 7, and one may stand before each text."""
    tokenizer = Tokenizer(models.WordLevel({f"w{place}": place for place in range(64)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if before:
        tokenizer.post_processor = processors.TemplateProcessing(f"{before} $A", special_tokens=[(before, 5)])
    return tokenizer


@pytest.fixture
def small(here):
    """A GGUF file beside a tokenizer and a text for it; the options that name all three."""
    ggufs.write(here / "small.gguf", ggufs.small("qwen2"), "qwen2")
    PreTrainedTokenizerFast(tokenizer_object=numbered("w5")).save_pretrained(here / "numbered")
    (here / "words.txt").write_text(" ".join(f"w{place}" for place in np.random.default_rng(0).integers(0, 64, 120)))
    return ["./small.gguf", "--tokenizer", "numbered", "--text", "words.txt", "--quiet"]


def see(folder, root, monkeypatch):
    """Let `root` be the working directory, from which all of a folder is seen."""
    for name in ("my-model", "texts.jsonl", "words"):
        (root / name).symlink_to(folder / name)
    monkeypatch.chdir(root)


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """The working directory, from which all of it is seen."""
    see(folder, tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture(scope="session")
def kept(folder, tmp_path_factory):
    """The card that the command writes, figures included; not to be changed."""
    root = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        see(folder, root, patch)
        assert command.main(TYPED) == 0
    return root / "position-card/my-model"


@pytest.fixture
def carded(kept, here):
    """A copy of that card in the working directory."""
    return shutil.copytree(kept, here / "position-card/my-model")


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are the longest part of a small card; test_call.py looks at that of the command."""
    monkeypatch.setattr(style, "save", lambda *_: None)


@pytest.fixture
def assert_refused(capsys):
    """The command ends with a status and with one line that names what is wrong."""

    def refused(typed, status, named):
        assert command.main(typed) == status
        err = capsys.readouterr().err
        assert named in err
        assert err.count("\n") == 1

    return refused
