"""Position cards through the workflow: of directories that another process wrote and of a model of a hub.

The call for a model in memory gives the same.
"""

import json
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from tokenizers import Tokenizer, processors
from transformers import AutoModelForCausalLM, AutoTokenizer

from position_bias import card as of_memory
from position_bias.language_models import corpus, tokens
from tests import hub

LENGTHS, PROMPTS = (12, 24), 10
ON_THE_HUB, COMMIT = "someone/gpt2", "c" * 40
WRITE = """
import sys, torch
from transformers import BloomConfig, BloomForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
size = dict(vocab_size=300, n_layer=3, n_head=4, initializer_range=0.3, bos_token_id=0, eos_token_id=0)
torch.manual_seed(0)
GPT2LMHeadModel(GPT2Config(n_embd=32, n_positions=16, **size)).save_pretrained(sys.argv[1])
BloomForCausalLM(BloomConfig(hidden_size=32, **size)).save_pretrained(sys.argv[2])
size = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, initializer_range=0.3)
LlamaForCausalLM(LlamaConfig(vocab_size=300, max_position_embeddings=64, **size)).save_pretrained(sys.argv[3])
"""


@pytest.fixture(scope="module")
def prose():
    return [document.text for document in corpus.documents("language-reference")]


@pytest.fixture(scope="module")
def own_tokenizer(prose):
    return tokens.train_tokenizer(prose, 300)


@pytest.fixture(scope="module")
def written(prose, own_tokenizer, tmp_path_factory):
    """A folder with models and texts of the reader's."""
    root = tmp_path_factory.mktemp("written")
    command = [sys.executable, "-c", WRITE, root / "gpt2", root / "bloom", root / "llama"]
    subprocess.run(command, check=True, env={**os.environ})
    for name in ("gpt2", "bloom", "llama"):
        tokens.add_tokenizer(own_tokenizer, root / name)
    begins = Tokenizer.from_str(own_tokenizer.to_str())
    begins.post_processor = processors.TemplateProcessing(f"{tokens.END_OF_TEXT} $A", None, [(tokens.END_OF_TEXT, 0)])
    tokens.add_tokenizer(begins, root / "llama")
    (root / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in prose[:20]))
    return root


def arguments(written, models="llama gpt2 bloom"):
    sources = [ON_THE_HUB if name == "gpt2" else str(written / name) for name in models.split()]
    return f"model={','.join(sources)} text={written}/texts.jsonl"


SETTINGS = {"card": {"lengths": list(LENGTHS), "prompts": PROMPTS}, "rollout": {"bootstrap": 30}}
SEVERAL = pytest.mark.all("cards of three models, one of them of a hub, and of untrained copies take two minutes")


@pytest.fixture(scope="module")
def card(fresh, written, tmp_path_factory):
    """A project with the card of the Llama; not to be changed."""
    project = fresh.copy(tmp_path_factory.mktemp("card") / "position-bias")
    project.configure(SETTINGS)
    project.snakemake(f"card --cores 2 --config {arguments(written, 'llama')}")
    return project


@pytest.fixture(scope="module")
def cards(fresh, written, tmp_path_factory):
    """A project with the cards of the three models, the hub of one of them gone since; not to be changed."""
    root = tmp_path_factory.mktemp("cards")
    project = fresh.copy(root / "position-bias")
    project.configure(SETTINGS)
    with hub.serve(ON_THE_HUB, COMMIT, written / "gpt2") as address:
        home = str(root / "home")
        project.snakemake(f"card --cores 2 --config {arguments(written)}", HF_ENDPOINT=address, HF_HOME=home)
    return project


ON = "-on-texts.jsonl"  # ends the names of cards that are on this text


def table(cards, name, which):
    return pd.read_csv(cards.root / f"results/card/{name}{ON}/tables/{which}.csv")


@SEVERAL
def test_several_models_have_a_page_of_their_own_with_quotients_where_the_prompts_are_the_same(cards, written):
    folder = cards.root / f"results/card/llama-beside-gpt2-beside-bloom{ON}"
    page = (folder / "card.md").read_text()
    assert page.startswith(f"# llama beside {ON_THE_HUB} beside bloom, on texts.jsonl\n")
    ratios = pd.read_csv(folder / "tables/ratios.csv")
    of_model = ratios[ratios["quantity"] == "first / middle"].set_index(["model", "n"])
    gpt2, bloom = ON_THE_HUB, "bloom"
    assert set(of_model.index) == {*product(("llama", bloom), LENGTHS), (gpt2, 12), (gpt2, 16)}
    statistics = table(cards, "bloom", "statistics")
    for n in LENGTHS:
        rows = statistics[(statistics["variant"] == "influence") & (statistics["n"] == n)].set_index("statistic")
        for bound in ("value", "low", "high"):
            assert rows.loc["first / middle", bound] == pytest.approx(of_model.loc[(bloom, n), bound])
    assert not of_model.loc[(bloom, 12), "paired"]  # the tokenizer of llama puts a token first
    assert of_model.loc[(bloom, 12), "quotient value"] > 0
    assert np.isnan(of_model.loc[(gpt2, 16), "quotient value"])  # llama was not measured at 16


def test_the_call_for_the_model_in_memory_gives_the_same_bytes(card, written, prose, tmp_path):
    model, tokenizer = (kind.from_pretrained(written / "llama") for kind in (AutoModelForCausalLM, AutoTokenizer))
    named = {"name": "llama", "text": "texts.jsonl"}
    mine = of_memory.measure(
        model, tokenizer, prose[:20], lengths=LENGTHS, prompts=PROMPTS, threads=1, replicates=30, **named
    )
    mine.save(tmp_path)
    saved = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")}
    assert len(saved) == 9
    theirs = card.root / f"results/card/llama{ON}"
    for path in saved:
        if path.suffix != ".md":
            assert (tmp_path / path).read_bytes() == (theirs / path).read_bytes(), path
    pages = ((folder / "card.md").read_text().splitlines() for folder in (tmp_path, theirs))
    differ = [lines[0] for lines in zip(*pages, strict=True) if lines[0] != lines[1]]
    assert [line.split(" | ")[0] for line in differ] == ["| model", "| text"]


@SEVERAL
def test_a_model_of_the_hub_is_kept_at_the_commit_that_the_hub_had(cards, written):
    record = json.loads((cards.root / f"results/card/gpt2{ON}/model.json").read_text())
    assert (record["source"], record["revision"]) == (ON_THE_HUB, COMMIT)
    files = {path.name: path.stat().st_size for path in (written / "gpt2").iterdir()}
    assert record["files"] == files
    page = (cards.root / f"results/card/gpt2{ON}/card.md").read_text()
    assert f"| model | {ON_THE_HUB} at {COMMIT} |" in page
    assert "not 24, since the model takes 16 |" in page


@SEVERAL
def test_nothing_is_made_twice_but_what_was_overwritten(cards, written, tmp_path):
    """A model and a text of the same sizes and with times of change that lie in the past."""
    everything = f"card --config {arguments(written)}"
    assert cards.planned(everything) == {}
    assert cards.planned(f"card --config {arguments(written, 'bloom')}") == {}
    (written / "bloom/NOTES.md").write_text("of the reader's own")
    assert cards.planned(everything) == {}
    anew = {"card_fetch": 1, "card_measure": 1, "card_write": 2, "card": 1}  # by itself and beside the others
    every = {"card_fetch": 3, "card_measure": 3, "card_write": 4, "card": 1}
    for file, expected in {"llama/model.safetensors": anew, "texts.jsonl": every}.items():
        status = (written / file).stat()
        os.utime(written / file, ns=(1, 1))
        assert cards.planned(everything) == expected
        os.utime(written / file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cards.planned(everything) == {}


@SEVERAL
def test_untrained_copies_are_measured_beside_their_model_on_the_same_prompts(fresh, written, tmp_path):
    project = fresh.copy(tmp_path / "position-bias")
    project.configure({"card": {"lengths": [12], "prompts": PROMPTS}, "rollout": {"bootstrap": 30}})
    asked = f"card --config {arguments(written, 'bloom')}"
    project.snakemake(f"{asked} --cores 2")
    copies = f"{asked} card='{{untrained: 2}}'"
    assert project.planned(copies) == {"card_measure": 2, "card_write": 3, "card": 1}
    printed = project.snakemake(f"{copies} --cores 2")
    together = f"bloom-beside-2-untrained{ON}"
    assert f"/results/card/{together}/card.md" in printed
    page = (project.root / f"results/card/{together}/card.md").read_text()
    assert "| bloom-untrained-1 |" in page
    ratios = pd.read_csv(project.root / f"results/card/{together}/tables/ratios.csv")
    assert ratios["paired"].all()
    losses = ratios[ratios["quantity"] == "loss"].set_index("model")["value"]
    assert len(set(losses)) == 3  # the weights of each are its own
    of_copy = (project.root / f"results/card/bloom-untrained-1{ON}/card.md").read_text()
    assert "| weights | random, not trained, drawn by seed 1 |" in of_copy
    assert not list((project.root / "checkpoints").rglob("*.safetensors"))


@pytest.mark.parametrize("text", ["", "./t {y}.jsonl"])
def test_a_model_of_the_configuration_is_planned_whatever_the_text_is_called(fresh, tmp_path, text):
    (tmp_path / (text or "none")).write_text('{"text": "some"}\n')
    of_text = f"text='{text}'" if text else ""
    assert fresh.planned(f"card --directory {tmp_path} --config model=bloom {of_text}") == {
        "corpus": 2,
        "tokenizer": 1,
        "train": 1,
        "card_fetch": 1,
        "card_measure": 1,
        "card_write": 1,
        "card": 1,
    }
