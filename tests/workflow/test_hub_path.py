"""Models and texts of the hub, from the cache of huggingface_hub through the graph to figures; no network.

The models are toys with the head counts of the paper's five, laid out as the hub has them: shards, bfloat16, weights of
BLOOM without their prefix, code and pickles beside them. A hub on this machine answers until the cache has them; then
nothing answers.
"""

import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from huggingface_hub import snapshot_download
from safetensors.numpy import load_file
from tokenizers import Tokenizer, processors

from position_bias.language_models import families
from position_card.measures.measure import Quantities, measure_decoder
from position_card.models import opening
from position_card.texts import corpus, tokens
from tests.ggufs import small
from tests.hub import serve

pytestmark = pytest.mark.all("six models of a hub, from its cache to a figure, take a minute")
LENGTHS = {"heatmap": 10, "standard": 16, "long": 32}
PROMPTS = 4
VOCABULARY = 300
INITIALLY = {"initializer_range": 0.3}
SIZES = {  # name in the configuration -> id on the hub, family, heads, head_dim
    "bloom-176b": ("bigscience/bloom", "bloom", 112, 4),
    "bloom-7b1": ("bigscience/bloom-7b1", "bloom", 32, 4),
    "mpt-7b": ("mosaicml/mpt-7b", "mpt", 32, 4),
    "mpt-30b": ("mosaicml/mpt-30b", "mpt", 64, 4),
    "falcon-rw-7b": ("tiiuae/falcon-rw-7b", "falcon", 64, 4),
}
SOURCES = {**{name: source for name, (source, *_) in SIZES.items()}, "llama": "meta-llama/toy"}
MEASURED = ("bloom-176b", "falcon-rw-7b")
TARGETS = "figures/structural/fig1.pdf results/tables/structural/table2.csv figures/layernorm/pretrained.pdf"


def commit(name):
    return hashlib.sha1(name.encode()).hexdigest()


@pytest.fixture(scope="module")
def models():
    """Toys of two layers with the heads of the paper's models, and a rotary one with shared keys."""

    def toy(family, heads, head_dim):
        architecture = {"layers": 2, "heads": heads, "hidden": heads * head_dim, **INITIALLY}
        return families.build(family, architecture, VOCABULARY, context=32, seed=0).bfloat16()

    of_alibi = {name: toy(*sizes) for name, (_, *sizes) in SIZES.items()}
    return {**of_alibi, "llama": small("llama", vocab_size=VOCABULARY, **INITIALLY).bfloat16()}


def write_model(model, directory):
    """A directory as on the hub: several shards of bfloat16, and what must never be run or read."""
    if model.config.model_type == "bloom":  # its shards were written from the model without its head
        model.transformer.save_pretrained(directory, max_shard_size="600KB")
    else:
        model.save_pretrained(directory, max_shard_size="50KB")
    path = directory / "config.json"
    code = {"AutoConfig": "remote.Config", "AutoModelForCausalLM": "remote.Model"}
    config = json.loads(path.read_text()) | {"architectures": [type(model).__name__], "auto_map": code}
    path.write_text(json.dumps(config))
    (directory / "remote.py").write_text(
        f"open({str(directory / 'executed')!r}, 'w')\nraise SystemExit('remote code')\n"
    )
    (directory / "pytorch_model.bin").write_bytes(b"no pickle is read")
    (directory / "original").mkdir()
    (directory / "original/consolidated.00.pth").write_bytes(b"nor this")


def tokenizer_of(model, tokenizer):
    """Llama's begins every text with a token of its own, and truncates."""
    changed = Tokenizer.from_str(tokenizer.to_str())
    if model.config.model_type == "llama":
        begin = processors.TemplateProcessing(
            single=f"{tokens.END_OF_TEXT} $A", special_tokens=[(tokens.END_OF_TEXT, 0)]
        )
        changed.post_processor = begin
        changed.enable_truncation(4)
    return changed


@dataclass(frozen=True)
class Hub:
    """What a user has: HF_HOME with the models, and a data set copied to a directory."""

    home: Path
    web: Path
    texts: list

    def environment(self, **more):
        # nothing listens at port 9: the hub does not answer, at once
        return {"HF_HOME": str(self.home), "HF_ENDPOINT": "http://127.0.0.1:9", "CUDA_VISIBLE_DEVICES": "", **more}

    def snapshot(self, name):
        return self.home / f"hub/models--{SOURCES[name].replace('/', '--')}/snapshots/{commit(name)}"


def write_texts(web, texts):
    """A data set with subsets that its README names, in shards of parquet."""
    for subset, part in (("all", texts[::-1]), ("sample", texts)):
        (web / subset).mkdir(parents=True)
        for shard, place in enumerate((slice(0, 5), slice(5, None))):
            rows = pd.DataFrame({"words": part[place], "id": range(len(part[place]))})
            rows.to_parquet(web / subset / f"train-{shard:05}-of-00002.parquet")
    configs = [
        {"config_name": name, "data_files": [{"split": "train", "path": f"{name}/*"}]} for name in ("all", "sample")
    ]
    (web / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\nText.\n")


@pytest.fixture(scope="module")
def hub(models, tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    prose = [document.text for document in corpus.documents("language-reference")]
    # short documents stand between long ones
    texts = [text[:12] if place % 3 == 1 else text[:400] for place, text in enumerate(prose[:16])]
    tokenizer = tokens.train_tokenizer(prose, VOCABULARY)
    for name, model in models.items():
        directory = root / "written" / name
        write_model(model, directory)
        tokenizer_of(model, tokenizer).save(str(directory / "tokenizer.json"))
        with serve(SOURCES[name], commit(name), directory) as address:
            snapshot_download(SOURCES[name], revision=commit(name), cache_dir=root / "home/hub", endpoint=address)
    shutil.rmtree(root / "home/hub/models--tiiuae--falcon-rw-7b/trees")  # older versions of the library listed nothing
    write_texts(root / "web", texts)
    return Hub(root / "home", root / "web", texts)


def overlay(hub):
    def described(name):
        family = SIZES[name][1] if name in SIZES else name
        sizes = {"gpus": 1, "memory": 2, "minutes": 10}
        return {"source": SOURCES[name], "revision": commit(name), "family": family, "positions": "own", **sizes}

    text = {"source": str(hub.web), "revision": None, "subset": "sample", "split": "train", "column": "words"}
    return {
        "hub_models": {name: described(name) for name in SOURCES},
        "hub_datasets": {"web": {**text, "documents": 14}},
        "checkpoint_every": {"measure": 2},
        "primary_dataset": "web",
        "lengths": {purpose: {"tokens": n, "prompts": PROMPTS} for purpose, n in LENGTHS.items()},
        "measure": {
            "models": list(MEASURED),
            "datasets": ["web"],
            "precision": "bfloat16",
            "tokens_per_batch": 32,
            "activation_checkpointing": True,
        },
        "structural": {"fig1": list(MEASURED)},
        "layernorm": {"pretrained": ["llama"]},
        "rollout": {"bootstrap": 20},
    }


@pytest.fixture(scope="module")
def project(fresh, hub, tmp_path_factory):
    """Built once with the hub out of reach; not to be changed."""
    project = fresh.copy(tmp_path_factory.mktemp("project") / "position-bias")
    project.configure(overlay(hub))
    project.snakemake(f"{TARGETS} --cores 2", **hub.environment())
    return project


def measured_file(name, n=LENGTHS["standard"]):
    return f"results/measure/{name}/hub/web/n{n}.safetensors"


def test_figures_and_tables_are_built_without_the_hub_and_once(project, hub):
    for name in ("structural/fig1", "layernorm/pretrained"):
        assert (project.root / f"figures/{name}.pdf").read_bytes().startswith(b"%PDF-")
    table = pd.read_csv(project.root / "results/tables/structural/table2.csv").query("checkpoint == 'hub'")
    assert set(table["model"]) == set(MEASURED)
    assert table["value"].between(0, 1).all()
    again = project.snakemake(f"{TARGETS} --cores 1", **hub.environment(HF_HUB_OFFLINE="1"))
    assert "Nothing to be done" in again


def test_no_code_of_the_hub_was_run(project, hub):
    assert not list(hub.home.parent.rglob("executed"))
    for name in ("bloom-176b", "llama"):
        files = json.loads((project.root / f"results/hub/{name}.json").read_text())["files"]
        assert {Path(file).suffix for file in files} == {".json", ".safetensors"}
        assert sum(file.endswith(".safetensors") for file in files) > 1
        assert files == {file: (hub.snapshot(name) / file).stat().st_size for file in files}


@pytest.mark.parametrize("name", SOURCES)
def test_every_weight_is_read_from_the_shards(hub, models, name):
    written = models[name].state_dict()
    opened = opening.open_decoder(hub.snapshot(name), precision="bfloat16").state_dict()
    assert opened.keys() == written.keys()
    for key, value in opened.items():
        assert value.dtype == torch.bfloat16
        assert torch.equal(value, written[key]), key


@pytest.mark.parametrize("name", [*MEASURED, "llama"])
def test_prompts_begin_the_first_documents_that_are_long_enough(project, hub, name):
    tokenizer = Tokenizer.from_file(str(hub.snapshot(name) / "tokenizer.json"))
    tokenizer.no_truncation()
    encoded = [tokenizer.encode(text, add_special_tokens=False).ids for text in hub.texts]
    for n in LENGTHS.values():
        expected = [ids[:n] for ids in encoded if len(ids) >= n][:PROMPTS]
        prompts = load_file(project.root / f"results/prompts/{name}/web/n{n}.safetensors")["tokens"]
        assert prompts.tolist() == expected
        assert tokens.END_OF_TEXT not in tokenizer.decode(prompts[0].tolist(), skip_special_tokens=False)
    assert any(len(ids) < LENGTHS["heatmap"] for ids in encoded[:PROMPTS])


def test_texts_are_fetched_in_the_order_of_their_shards_and_no_further_than_asked(project, hub):
    kept = pd.read_parquet(project.root / "results/corpus/web/test.parquet")["text"]
    assert list(kept) == hub.texts[:14]
    manifest = json.loads((project.root / "results/corpus/web.json").read_text())
    assert manifest["source"] == str(hub.web)
    assert manifest["splits"]["test"]["documents"] == 14


def test_weights_are_bfloat16_and_sums_are_float32(project, hub):
    """The files hold, bit for bit, what the pass yields for weights of bfloat16; in float32 they would not."""
    prompts = load_file(project.root / "results/prompts/falcon-rw-7b/web/n16.safetensors")["tokens"]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        coarse, fine = (
            measure_decoder(
                opening.open_decoder(hub.snapshot("falcon-rw-7b"), precision=precision),
                prompts,
                32,
                quantities=Quantities(content=True, gram=True),
            )
            for precision in ("bfloat16", "float32")
        )
    finally:
        torch.set_num_threads(threads)
    found = load_file(project.root / measured_file("falcon-rw-7b"))
    np.testing.assert_array_equal(found["mixing/frobenius"], coarse.mixing["frobenius"])
    np.testing.assert_array_equal(found["influence"], coarse.influence)
    np.testing.assert_array_equal(found["slopes"], coarse.slopes)
    assert np.abs(found["influence"] - fine.influence).max() > 0
    for values in (found["mixing/frobenius"], found["influence"], found["content"]):
        assert values.dtype == np.float32
        assert (values.view(np.uint32) & 0xFFFF).any()  # bits that bfloat16 does not have


def test_a_rerun_measures_the_same_prompts_with_the_same_bytes(project, hub, tmp_path):
    mine, again = project.copy(tmp_path / "position-bias"), measured_file("falcon-rw-7b")
    printed = mine.snakemake(f"{again} --forcerun {again} --cores 2", **hub.environment(HF_HUB_OFFLINE="1"))
    before, after = (run.root / again for run in (project, mine))
    assert after.read_bytes() == before.read_bytes()
    assert after.stat().st_mtime_ns > before.stat().st_mtime_ns
    assert "results/prompts/falcon-rw-7b" not in re.sub(r"input: .*|reason: .*", "", printed)
    assert not (mine.root / "checkpoints/measure/falcon-rw-7b/hub/web").exists()
