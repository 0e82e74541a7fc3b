"""Files of the built toy graph say what they were measured on, and it is so: split, documents, length, seed, scale."""

import json
import re

import pandas as pd
import pytest
import yaml
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from position_card.core import artifacts

PRIMARY = "standard-library"


@pytest.fixture(scope="module")
def results(built):
    return built.root / "results"


@pytest.fixture(scope="module")
def config(built):
    return yaml.safe_load((built.root / "config.yaml").read_text())


def labelled(results, pattern, path):
    """Every file that fits, its labels, and what the expression finds in its path."""
    files = sorted(results.glob(pattern))
    assert files
    for file in files:
        named = re.fullmatch(path, file.relative_to(results).as_posix()).groupdict()
        yield file, artifacts.read_labels(file), {name: int(of) if of.isdigit() else of for name, of in named.items()}


def test_no_document_is_both_of_training_and_of_test(results):
    for folder in (results / "corpus").iterdir():
        if folder.is_dir():
            train, test = (pd.read_parquet(folder / f"{split}.parquet") for split in ("train", "test"))
            assert not set(train["id"]) & set(test["id"])
            assert not set(train["text"]) & set(test["text"])
            said = json.loads(folder.with_suffix(".json").read_text())["splits"]
            assert {split: said[split]["documents"] for split in said} == {"train": len(train), "test": len(test)}


def test_every_prompt_is_a_window_of_its_test_document(results, config):
    tokenizer = Tokenizer.from_file(str(results / "tokenizers/offline/tokenizer.json"))
    lengths = {of["tokens"]: of["prompts"] for of in map(config["lengths"].get, ("heatmap", "standard", "long"))}
    path = r"prompts/offline/(?P<dataset>.+)/n(?P<n>\d+)\.safetensors"
    starts = set()
    for file, labels, named in labelled(results, "prompts/*/*/*.safetensors", path):
        assert labels == named
        test = pd.read_parquet(results / f"corpus/{named['dataset']}/test.parquet")["text"]
        prompts, n = load_file(file), named["n"]
        assert prompts["tokens"].shape == (lengths[n], n)
        for document, row in zip(prompts["documents"], prompts["tokens"], strict=True):
            ids = tokenizer.encode(test[document], add_special_tokens=False).ids
            found = [start for start in range(0, len(ids) - n + 1, n) if ids[start : start + n] == row.tolist()]
            assert found
            starts |= set(found)
    assert max(starts) > 100  # not only where documents begin


def test_a_measurement_says_its_model_text_and_prompts(results):
    path = r"measure/(?P<model>[^/]+)/(?P<checkpoint>.+)/(?P<dataset>[^/]+)/n(?P<n>\d+)\.safetensors"
    for file, labels, named in labelled(results, "measure/**/*.safetensors", path):
        found, documents = load_file(file), len(pd.read_parquet(results / f"corpus/{PRIMARY}/test.parquet"))
        assert named.items() <= labels.items()
        assert labels["prompts"] == len(found["documents"]) == len(found["loss"]) == len(found["influence"])
        assert found["influence"].shape[1] == named["n"]
        assert found["documents"].max() < documents
        if named["model"] == "bloom":
            prompts = load_file(results / f"prompts/offline/{named['dataset']}/n{named['n']}.safetensors")
            assert found["documents"].tolist() == prompts["documents"].tolist()


def test_copies_say_their_deviation_and_replacements_their_text(results, config):
    own = config["structural"]["pretrained"]["models"]["smollm2-135m"]
    asked, n = config["structural"]["pretrained"]["prompts"]["replaced"], config["lengths"]["standard"]["tokens"]
    for name, deviation in {"hub": None, "copy0": own, "usual0": 0.02}.items():
        measured = results / f"measure/smollm2-135m/{name}/{PRIMARY}/n{n}.safetensors"
        assert artifacts.read_labels(measured)["initializer_range"] == deviation
    (file,) = results.glob("replaced/*/*.safetensors")
    expected = {"model": "smollm2-135m", "checkpoint": "hub", "dataset": PRIMARY, "n": n, "prompts": asked}
    assert expected.items() <= artifacts.read_labels(file).items()
    documents = load_file(results / f"measure/smollm2-135m/hub/{PRIMARY}/n{n}.safetensors")["documents"]
    assert load_file(file)["documents"].tolist() == documents[:asked].tolist()


def test_moved_text_says_its_steps_and_has_one_prompt_of_each_document(results, config):
    asked = config["structural"]["curve"]
    path = r"moved/(?P<model>.+)/(?P<checkpoint>.+)/n(?P<n>\d+)\.safetensors"
    steps = {"hub": asked["steps"], "copy0": [asked["steps"][0], asked["steps"][-1]]}
    counts = {"hub": asked["documents"], "copy0": asked["documents_of_copies"]}
    for file, labels, named in labelled(results, "moved/*/*/*.safetensors", path):
        name = named["checkpoint"]
        assert (named | {"dataset": asked["dataset"], "steps": steps.pop(name)}).items() <= labels.items()
        found = load_file(file)
        assert len(set(found["documents"])) == len(found["documents"]) == counts[name]
        assert found["total_variation"].shape[:2] == (counts[name], 14)
    assert not steps


def test_rollouts_say_how_many_documents_were_resampled(results):
    files = sorted(results.glob("rollout/**/*.parquet"))
    assert files
    for file in files:
        table = pd.read_parquet(file)
        measured = results / f"measure/{file.parent.relative_to(results / 'rollout')}.safetensors"
        labels, documents = artifacts.read_labels(measured), load_file(measured)["documents"]
        for name in ("model", "checkpoint", "dataset", "n", "prompts"):
            assert set(table[name]) == {labels[name]}
        assert set(table["resampled"]) == {len(set(documents))}


def test_losses_say_split_step_and_seed(results, config):
    for file in results.glob("models/*/*/loss.csv"):
        table = pd.read_csv(file)
        steps = table.groupby("split")["step"].agg(list)
        last = config["training"]["steps"]
        assert steps["train"] == list(range(1, last + 1))
        assert steps["test"] == [*config["training"]["snapshots"], last]
        assert set(zip(table["model"], table["seed"], strict=True)) == {(file.parts[-3], int(file.parts[-2][4:]))}


STUDIES = {"plain": ("none", False), "residual": ("none", True), "ends": ("ends", True)}  # emergence, Sections 5.1, 5.2


def test_studies_say_bias_wiring_depth_and_every_seed(results, config):
    seeds = config["emergence"]["seeds"]
    for file in sorted(results.glob("emergence/*/*/*/*.parquet")):
        vocabulary, study, depth = file.parts[-4:-1]
        table, (bias, residual) = pd.read_parquet(file), STUDIES[study]
        expected = {
            "vocabulary": vocabulary,
            "study": study,
            "bias": bias,
            "residual": residual,
            "depth": int(depth[5:]),
        }
        assert {name: table[name].unique().tolist() for name in expected} == {
            name: [of] for name, of in expected.items()
        }
        assert set(table["seed"]) == set(range(seeds["ends" if study == "ends" else "shallow"]))
        if file.stem == "curves":
            every, iterations = config["emergence"]["testing"]["every"], config["emergence"]["training"]["iterations"]
            assert set(table["iteration"]) == set(range(0, iterations.get(bias, iterations["unbiased"]) + 1, every))
        networks = {f"{mask}/{encoding}" for mask, encoding in set(zip(table["mask"], table["encoding"], strict=True))}
        assert networks == set(config["emergence"]["networks"][study])
        weights = artifacts.read_labels(file.parent / "weights.safetensors")
        assert expected.items() <= weights.items()
        one, other = (table[table["seed"] == seed]["value"].tolist() for seed in (0, 1))
        assert one != other


def test_other_networks_say_task_scheme_and_every_seed(results, config):
    for file in results.glob("layernorm/trained/*.parquet"):
        table = pd.read_parquet(file)
        assert set(table["norm"]) == {file.stem}
        assert set(table["seed"]) == set(range(config["layernorm"]["trained"]["seeds"]))
    for task, section in (("set-complement-16", "set_complement"), ("maximum-10", "languages")):
        of = config["postnorm"][section]
        for name in ("tests", "history"):
            table = pd.read_parquet(results / f"postnorm/{task}/{name}.parquet")
            assert set(table["task"]) == {task}
            assert set(table["trained"]) == {of["lengths"][task]}
            assert set(table["seed"]) == set(range(of["seeds"]))
            assert set(table["scheme"]) == set(of["learning_rate"].get(task, of["learning_rate"]))
