"""Scripts hand to the library what their job gives them, and nothing else: each is run in this process on toy files.

What a script writes is compared with what the library gives, or the model itself, where this page names every text,
seed, split, length and number. Every two texts, splits and numbers differ, so that none can stand for another.
"""

import contextlib
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer, processors
from transformers import AutoModelForCausalLM

from position_bias.emergence import runs, sinks
from position_bias.emergence import training as emergence_training
from position_bias.emergence.task import for_vocabulary
from position_bias.language_models import families, train
from position_bias.layernorm import simulation
from position_bias.layernorm import training as layernorm_training
from position_bias.postnorm import training as postnorm_training
from position_bias.postnorm.runs import Trial
from position_bias.released.models import MODELS
from position_bias.small_networks.ensemble import Recipe
from position_bias.structural import sink_parts
from position_card.core import artifacts, runtime
from position_card.core.checkpoint import Place
from position_card.measures import recall, replacement
from position_card.measures.measure import LOSS_TOKENS, measure_decoder
from position_card.models import opening
from position_card.texts import tokens
from position_card.texts.prompts import preceded, sample_prompts
from tests.ggufs import small

ROOT = Path(__file__).parents[2]
SEED, VOCABULARY = 7, 420
EVERY = dict.fromkeys(("training", "measure", "emergence", "layernorm", "postnorm"), 100)
ARCHITECTURE = {"layers": 2, "heads": 2, "hidden": 16, "initializer_range": 0.3}
TRAINING = {
    "context": 8,
    "batch": 2,
    "steps": 3,
    "snapshots": [0],
    "learning_rate": 0.01,
    "warmup": 1,
    "weight_decay": 0.1,
    "clip": 1.0,
    "held_out": 5,
}

pytestmark = pytest.mark.usefixtures("one_thread")


class Files(list):
    """Paths by name or number, as Snakemake has them."""

    def __init__(self, named):
        super().__init__(path for of in named.values() for path in ([of] if isinstance(of, str) else of))
        self.__dict__.update(named)

    def items(self):
        return self.__dict__.items()


class Numbers(dict):
    """Params or wildcards."""

    __getattr__ = dict.__getitem__


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture
def run(folder):
    """The function that runs a script; paths begin at the folder."""

    def run(script, *, reads=None, writes, takes=None, wildcards=None):
        job = SimpleNamespace(
            input=Files(reads or {}),
            output=Files(writes),
            params=Numbers(takes or {}),
            wildcards=Numbers(wildcards or {}),
            log=["job.log"],
            config={"device": "cpu", "devices": {}, "checkpoint_every": EVERY, "hub_models": {}},
            resources=SimpleNamespace(gpu=0),
        )
        with contextlib.chdir(folder):
            exec(compile((ROOT / "scripts" / script).read_text(), script, "exec"), {"snakemake": job})

    return run


@pytest.fixture(scope="module")
def texts(folder):
    """Documents of two data sets, each with a train and a test split of words that another has seldom."""
    words = sorted({word for word in (ROOT / "docs/dev/recipes.md").read_text().lower().split() if word.isalpha()})
    rng, found = np.random.default_rng(0), {}
    for dataset in ("one", "two"):
        for split in ("train", "test"):
            own = rng.permutation([word for word in words if len(word) > 2])[:60]
            found[dataset, split] = [" ".join(rng.choice(own, 40)) for _ in range(6)]
            file = folder / f"{dataset}/{split}.parquet"
            file.parent.mkdir(exist_ok=True)
            numbered = {"id": [str(number) for number in range(6)], "text": found[dataset, split]}
            pd.DataFrame(numbered).to_parquet(file)
    return found


def split_texts(texts, split):
    return [*texts["one", split], *texts["two", split]]


def paths(split):
    return [f"{dataset}/{split}.parquet" for dataset in ("one", "two")]


@pytest.fixture(scope="module")
def tokenizer(folder, texts):
    """One of all texts, in a folder; and a pretrained decoder whose tokenizer begins every prompt with a token."""
    made = tokens.train_tokenizer([*split_texts(texts, "train"), *split_texts(texts, "test")], VOCABULARY)
    tokens.save_tokenizer(made, folder / "tokenizer")
    small("llama", vocab_size=VOCABULARY).save_pretrained(folder / "pretrained")
    begins = Tokenizer.from_str(made.to_str())
    begins.post_processor = processors.TemplateProcessing(
        single=f"{tokens.END_OF_TEXT} $A", special_tokens=[(tokens.END_OF_TEXT, 0)]
    )
    tokens.add_tokenizer(begins, folder / "pretrained")
    return made


def losses(model, rows):
    """The loss of the last tokens of each prompt, of a plain pass."""
    rows = torch.from_numpy(np.asarray(rows))
    with torch.no_grad():
        said = model(rows).logits.double().log_softmax(-1)
    predicted = min(LOSS_TOKENS, rows.shape[1] - 1)
    here = said[:, -predicted - 1 : -1].gather(2, rows[:, -predicted:, None])
    return -here.mean((1, 2)).numpy()


def opened(folder):
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()


# Text and language models


def test_the_tokenizer_is_made_of_training_text(run, folder, texts):
    run(
        "language_models/tokenizer.py",
        reads={"train": paths("train")},
        writes={"made": "own"},
        takes={"vocabulary": 300},
    )
    expected = tokens.train_tokenizer(split_texts(texts, "train"), 300)
    assert Tokenizer.from_file(str(folder / "own/tokenizer.json")).get_vocab() == expected.get_vocab()


@pytest.mark.parametrize("taken", ["every", "first"])
def test_prompts_are_of_the_test_text(run, folder, texts, tokenizer, taken):
    run(
        "language_models/prompts.py",
        reads={"test": "two/test.parquet", "tokenizer": "tokenizer"},
        writes={"prompts": "prompts.safetensors"},
        takes={"prompts": 5, "taken": taken, "seed": SEED},
        wildcards={"dataset": "two", "n": "9"},
    )
    seed = runtime.seed(SEED, "prompts", "two", 9)
    expected = sample_prompts(texts["two", "test"], tokenizer, 9, 5, taken, seed)
    assert artifacts.read_labels(folder / "prompts.safetensors") == {"dataset": "two", "n": 9}
    found = load_file(folder / "prompts.safetensors")
    for name, value in expected._asdict().items():
        np.testing.assert_array_equal(found[name], value)


@pytest.fixture(scope="module")
def trained(folder, texts, tokenizer):
    return "model/step0", "model/step3"


def test_a_model_learns_training_text_and_is_tested_on_other(run, folder, texts, tokenizer, trained, tmp_path):
    run(
        "language_models/train.py",
        reads={"train": paths("train"), "test": paths("test"), "tokenizer": "tokenizer"},
        writes={"models": list(trained), "loss": "loss.csv", "run": "run.csv"},
        takes={"family": "mpt", "architecture": ARCHITECTURE, "training": TRAINING},
        wildcards={"model": "mpt", "seed": "3"},
    )
    held_out = sample_prompts(split_texts(texts, "test"), tokenizer, 8, 5, "every", runtime.seed(3, "held out")).tokens
    found = pd.read_csv(folder / "loss.csv")
    of_test = found[found["split"] == "test"].set_index("step")["loss"]
    for step, kept in zip((0, 3), trained, strict=True):
        rows = torch.from_numpy(held_out)
        with torch.no_grad():
            said = opened(folder / kept)(rows).logits.log_softmax(-1)
        expected = -said[:, :-1].gather(2, rows[:, 1:, None]).mean()
        assert of_test[step] == pytest.approx(float(expected), rel=1e-4)
    numbers = {name: value for name, value in TRAINING.items() if name not in ("snapshots", "held_out")}
    expected = train.train(
        families.build("mpt", ARCHITECTURE, VOCABULARY, 8, 3),
        tokens.stream(split_texts(texts, "train"), tokenizer),
        train.TrainingRecipe(**numbers),
        Place(tmp_path, 100, "cpu"),
        seed=3,
        snapshots=[0],
        bf16=bool(found["bf16"].all()),
        held_out=held_out,
    )
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-6)
    assert set(found["seed"]) == {3}


def test_a_measurement_is_of_its_model_and_prompts_by_document(run, folder, tokenizer):
    families.build("mpt", ARCHITECTURE, VOCABULARY, 20, 1).save_pretrained(folder / "measured")
    lengths = {"short": 9, "long": 14}
    for name, n in lengths.items():
        drawn = np.random.default_rng(n).integers(1, VOCABULARY, (4, n))
        artifacts.write_tensors(folder / f"{name}.safetensors", {"tokens": drawn, "documents": np.array([3, 3, 8, n])})
    run(
        "language_models/measure.py",
        reads={"model": "measured", "prompts": [f"{name}.safetensors" for name in lengths]},
        writes={"measured": [f"of_{name}.safetensors" for name in lengths]},
        takes={
            "precision": "float32",
            "positions": "own",
            "tokens_per_batch": 30,
            "activation_checkpointing": False,
            "matrices_up_to": 9,
        },
        wildcards={"model": "mpt", "checkpoint": "seed1/step3", "dataset": "one"},
    )
    for name, n in lengths.items():
        prompts, found = (load_file(folder / f"{of}{name}.safetensors") for of in ("", "of_"))
        np.testing.assert_array_equal(found["documents"], prompts["documents"])
        np.testing.assert_allclose(found["loss"], losses(opened(folder / "measured"), prompts["tokens"]), rtol=1e-4)
        assert {"content", "attention", "gram"} & set(found) == ({"content", "attention", "gram"} if n == 9 else set())
        assert "diagonal" in found
        labels = artifacts.read_labels(folder / f"of_{name}.safetensors")
        asked = {"model": "mpt", "checkpoint": "seed1/step3", "dataset": "one", "n": n, "prompts": 4}
        assert asked.items() <= labels.items()


# Pretrained decoders


def pretrained_prompts(texts, tokenizer, dataset, n, count):
    """Prompts that begin with the token that the tokenizer puts there."""
    seed = runtime.seed(SEED, "prompts", dataset, n)
    drawn = sample_prompts(texts[dataset, "test"], tokenizer, n - 1, count, "every", seed)
    return np.hstack([np.zeros((count, 1), int), drawn.tokens]), drawn.documents


@pytest.mark.parametrize(("checkpoint", "deviation"), [("hub", None), ("copy0", 0.3), ("copy1", 0.3), ("usual0", 0.1)])
def test_a_pretrained_decoder_or_its_copy_reads_test_text(
    run, folder, texts, tokenizer, checkpoint, deviation, tmp_path
):
    asked = [("one", 12, 4, 2), ("one", 16, 5, 0), ("two", 12, 3, 0)]
    run(
        "structural/measure_pretrained.py",
        reads={"model": "pretrained", "texts": paths("test")},
        writes={
            "measured": [f"{checkpoint}/{dataset}-{n}.safetensors" for dataset, n, *_ in asked],
            "replaced": f"{checkpoint}/replaced.safetensors",
        },
        takes={
            "measured": asked,
            "replaced": None if deviation else ("one", 12, 3),
            "initializer_range": deviation,
            "positions": "own",
            "tokens_per_batch": 32,
            "matrices_up_to": 12,
            "gpus": 1,
            "seed": SEED,
        },
        wildcards={"model": "small", "checkpoint": checkpoint},
    )
    model = opened(folder / "pretrained")
    if deviation:
        seed = runtime.seed(SEED, "pretrained", checkpoint)
        model = opening.open_untrained(folder / "pretrained", seed, tmp_path, initializer_range=deviation)
    for dataset, n, count, groups in asked:
        file = folder / f"{checkpoint}/{dataset}-{n}.safetensors"
        prompts, documents = pretrained_prompts(texts, tokenizer, dataset, n, count)
        found = load_file(file)
        np.testing.assert_array_equal(found["documents"], documents)
        np.testing.assert_allclose(found["loss"], losses(model, prompts), rtol=1e-4)
        assert ("attention" in found) == (n == 12)
        assert len(set(found.get("groups", ()))) == groups == len(found.get("attention_of_groups", ()))
        labels = {
            "dataset": dataset,
            "n": n,
            "prompts": count,
            "checkpoint": checkpoint,
            "initializer_range": deviation,
        }
        assert labels.items() <= artifacts.read_labels(file).items()
    file = folder / f"{checkpoint}/replaced.safetensors"
    assert file.exists() == (deviation is None)
    if deviation:
        return
    prompts, documents = pretrained_prompts(texts, tokenizer, "one", 12, 3)
    others = replacement.donors(prompts, 1, runtime.seed(SEED, "donors", "one", 12))
    windows = [slice(position, position + 1) for position in replacement.chosen_positions(12, 1)]
    expected = replacement.responses(model, prompts, windows, others, [1], 32).total_variation[..., 0, 0]
    found = load_file(file)
    np.testing.assert_allclose(found["replacement"], expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_array_equal(found["documents"], documents)
    labels = {"dataset": "one", "n": 12, "prompts": 3, "checkpoint": checkpoint, "initializer_range": deviation}
    assert labels.items() <= artifacts.read_labels(file).items()


@pytest.mark.parametrize(("checkpoint", "deviation"), [("hub", None), ("copy0", 0.05)])
def test_words_and_eighths_move_in_one_prompt_of_each_document(
    run, folder, texts, tokenizer, tmp_path, checkpoint, deviation
):
    asked = {"dataset": "two", "documents": 6, "measured": 5, "donors": 2, "steps": [0.1, 1.0]}
    run(
        "structural/measure_curve.py",
        reads={"model": "pretrained", "texts": "two/test.parquet"},
        writes={"moved": f"{checkpoint}/moved.safetensors"},
        takes=asked
        | {"initializer_range": deviation, "positions": "own", "tokens_per_batch": 64, "gpus": 1, "seed": SEED},
        wildcards={"model": "small", "checkpoint": checkpoint, "n": "17"},
    )
    model = opened(folder / "pretrained")
    if deviation:
        seed = runtime.seed(SEED, "pretrained", checkpoint)
        model = opening.open_untrained(folder / "pretrained", seed, tmp_path, initializer_range=deviation)
    drawn = sample_prompts(texts["two", "test"], tokenizer, 16, 6, "one", runtime.seed(SEED, "curve", "two", 17))
    prompts = preceded([0], drawn.tokens)
    others = replacement.donors(prompts, 2, runtime.seed(SEED, "curve donors", "two", 17))[:5]
    windows = [slice(1, 2), *(slice(5 + k, 6 + k) for k in (0, 2, 5, 7)), slice(16, 17)]
    windows += [slice(1 + 2 * eighth, 3 + 2 * eighth) for eighth in range(8)]
    expected = replacement.responses(model, prompts[:5], windows, others, asked["steps"], 17)
    found = load_file(folder / f"{checkpoint}/moved.safetensors")
    np.testing.assert_allclose(found["total_variation"], expected.total_variation, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found["log_probability"], expected.log_probability, rtol=1e-3, atol=1e-5)
    assert len(set(found["documents"])) == 5
    np.testing.assert_array_equal(found["documents"], drawn.documents[:5])
    assert artifacts.read_labels(folder / f"{checkpoint}/moved.safetensors") == {
        "model": "small",
        "checkpoint": checkpoint,
        "n": 17,
        "dataset": "two",
        "steps": [0.1, 1.0],
    }


def test_recall_is_of_test_words_after_the_first_token(run, folder, texts, tokenizer):
    run(
        "structural/measure_recall.py",
        reads={"model": "pretrained", "texts": "two/test.parquet"},
        writes={"recalled": "recalled.safetensors"},
        takes={"contexts": 3, "cue": 2, "positions": "own", "tokens_per_batch": 64, "gpus": 1, "seed": SEED},
        wildcards={"model": "small", "n": "10"},
    )
    words = recall.common_words(texts["two", "test"], tokenizer, 10, 2)
    contexts = recall.random_contexts(words, 10, 3, 2, runtime.seed(SEED, "contexts", 10))
    context, model = contexts[0, :-2], opened(folder / "pretrained")
    cues = torch.from_numpy(np.stack([[0, *context, *context[place : place + 2]] for place in range(8)]))
    with torch.no_grad():
        said = model(cues).logits[:, -1].double().softmax(-1).numpy()
    found = load_file(folder / "recalled.safetensors")["probability"]
    assert found.shape == (3, 8)
    np.testing.assert_allclose(found[0], said[np.arange(8), context[2:]], rtol=1e-4)
    labels = artifacts.read_labels(folder / "recalled.safetensors")
    assert labels == {"model": "small", "n": 10, "cue": 2, "words": len(words)}


def test_untrained_copies_are_measured_on_prompts_of_the_primary_text(run, folder, texts, tokenizer, tmp_path):
    study = {"deviations": [0.1, 0.2], "layers": [1], "seeds": 2}
    run(
        "structural/measure_initialization.py",
        reads={"model": "pretrained", "texts": "two/test.parquet"},
        writes={"measured": "initialization.safetensors"},
        takes={**study, "prompts": 2, "tokens": 16, "positions": "own", "gpus": 1, "seed": SEED},
        wildcards={"model": "small"},
    )
    found = load_file(folder / "initialization.safetensors")
    assert set(found) == {
        f"deviation {deviation}, 1 layers, seed {seed}" for deviation, seed in product((0.1, 0.2), (0, 1))
    }
    prompts, _ = pretrained_prompts(texts, tokenizer, "two", 16, 2)
    seed = runtime.seed(SEED, "initialization") + 1
    model = opening.open_untrained(folder / "pretrained", seed, tmp_path, initializer_range=0.2, layers=1)
    expected = measure_decoder(model, prompts, 16)
    measured = found["deviation 0.2, 1 layers, seed 1"]
    np.testing.assert_allclose(measured[:, :16], expected.influence, rtol=1e-4)
    np.testing.assert_allclose(measured[:, 16:], expected.mixing["frobenius"], rtol=1e-4)
    labels = {"model": "small", "dataset": "two", "n": 16, "before": 1, "width": model.config.hidden_size, **study}
    assert artifacts.read_labels(folder / "initialization.safetensors") == labels


def test_a_decoder_is_measured_with_the_norm_of_its_first_token_held(run, folder, texts, tokenizer):
    run(
        "structural/measure_sink.py",
        reads={"model": "pretrained", "texts": "two/test.parquet"},
        writes={"measured": "sink.safetensors"},
        takes={"tokens": 16, "documents": 4, "words": 10, "contexts": 3, "cue": 2}
        | {"positions": "own", "tokens_per_batch": 64, "gpus": 1, "seed": SEED},
        wildcards={"model": "small"},
    )
    seed = runtime.seed(SEED, "prompts", "two", 16)
    drawn = sample_prompts(texts["two", "test"], tokenizer, 15, 4, "one", seed)
    words = recall.common_words(texts["two", "test"], tokenizer, 10, 2)
    contexts = recall.random_contexts(words, 10, 3, 2, runtime.seed(SEED, "contexts", 10))
    asked = (2, [0], 64, runtime.seed(SEED, "donors", "two", 16))
    prompts = np.hstack([np.zeros((4, 1), int), drawn.tokens])
    expected = sink_parts.parts(opened(folder / "pretrained"), prompts, contexts, words, *asked)
    found = load_file(folder / "sink.safetensors")
    assert found.keys() == expected.keys()
    for name in ("replacement/own norm", "influence/held norm", "recall/held norm"):
        np.testing.assert_allclose(found[name], expected[name](), rtol=1e-4, atol=1e-9)
    labels = {"model": "small", "dataset": "two", "n": 16, "before": 1, "documents": drawn.documents.tolist()}
    labels |= {"vocabulary": len(words), "words": 10}
    assert artifacts.read_labels(folder / "sink.safetensors") == labels


# Small networks


TASK = {"items": 4, "burstiness": 2, "classes": 12, "labels": 4, "width": 8}
STUDIES = [("gaussian", "plain", "causal/none", False), ("fixed", "ends", "none/sin", True)]


@pytest.mark.parametrize(("vocabulary", "study", "network", "residual"), STUDIES)
def test_a_study_trains_on_its_vocabulary_and_is_looked_at_there(
    run, folder, vocabulary, study, network, residual, tmp_path
):
    task, place = for_vocabulary(vocabulary, TASK), Place(tmp_path, 100, "cpu")
    run(
        "emergence/train.py",
        writes={"weights": f"{study}.safetensors", "curves": f"{study}.parquet", "run": f"{study}.csv"},
        takes={
            "task": TASK,
            "decay": 0.5,
            "networks": [network, "causal/decay"],
            "seeds": [4, 5],
            "training": {"batch": 4, "iterations": 3, "learning_rate": 0.01, "weight_decay": 0.2},
            "testing": {"every": 2, "sequences_along": 8, "sequences": 24},
        },
        wildcards={"vocabulary": vocabulary, "study": study, "depth": "2"},
    )
    setting = emergence_training.StudySetting(
        Recipe(3, 0.01, 0.2), batch=4, sequences=24, sequences_along=8, observe_every=2
    )
    networks = runs.study(study, [network, "causal/decay"], 0.5)
    assert networks.residual == residual
    expected = emergence_training.train(task, networks, 2, [4, 5], setting, place)
    curves = pd.read_parquet(folder / f"{study}.parquet")
    pd.testing.assert_frame_equal(curves[expected.curves.columns], expected.curves)
    labels = {"vocabulary": vocabulary, "study": study, "residual": residual, "depth": 2}
    assert all(set(curves[name]) == {value} for name, value in labels.items())
    pairs = curves[(curves["twin"] > 0) & (curves["iteration"] == 3)]["value"]
    assert (pairs * 24 % 1).round(6).isin([0, 1]).all()
    assert not (pairs * 8 % 1).round(6).isin([0, 1]).all()  # more sequences at the end

    run(
        "emergence/attention.py",
        reads={"weights": f"{study}.safetensors"},
        writes={"sinks": f"{study}_sinks.parquet", "maps": f"{study}_maps.safetensors"},
        takes={"task": TASK, "sequences": 12, "thresholds": [0.2, 0.4]},
        wildcards={"vocabulary": vocabulary, "study": study, "depth": "2"},
    )
    table, mean, example = sinks.measure_sinks(task, expected.members, expected.weights, 2, residual, 12, [0.2, 0.4])
    found, maps = pd.read_parquet(folder / f"{study}_sinks.parquet"), load_file(folder / f"{study}_maps.safetensors")
    pd.testing.assert_frame_equal(found[table.columns], table)
    for name, of in (("mean", mean), ("example", example)):
        np.testing.assert_allclose(maps[name], of, atol=1e-12)
    assert all(set(found[name]) == {value} for name, value in labels.items())


LAYERNORM = {
    "data": {"vocabulary": 6, "tokens": 12, "skew": 2.0},
    "size": {"layers": 1, "width": 8, "heads": 2, "hidden": 8},
    "batch": 3,
    "iterations": 3,
    "warmup": 1,
    "weight_decay": 0.1,
    "held_out": 5,
}


def test_decoders_of_a_norm_are_trained_from_every_seed(run, folder, tmp_path):
    run(
        "layernorm/train.py",
        writes={"trained": "pre-rms.parquet"},
        takes={"trained": LAYERNORM | {"seeds": 3}, "learning_rate": 0.02},
        wildcards={"norm": "pre-rms"},
    )
    setting = layernorm_training.DecoderSetting.from_numbers(LAYERNORM)
    expected = layernorm_training.train("pre-rms", setting, 0.02, [0, 1, 2], Place(tmp_path, 100, "cpu"))
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "pre-rms.parquet")[expected.columns], expected)


def test_a_sweep_has_seeds_that_no_training_has(run, folder, tmp_path):
    run(
        "layernorm/sweep.py",
        writes={"swept": "swept.csv"},
        takes={"trained": LAYERNORM, "sweep": {"learning_rates": [0.01, 0.02], "seeds": 2}, "scale": "toy"},
    )
    found = pd.read_csv(folder / "swept.csv")
    assert found["seed"].min() >= 100
    setting, seeds = layernorm_training.DecoderSetting.from_numbers(LAYERNORM), sorted(set(found["seed"]))
    expected = layernorm_training.sweep(setting, [0.01, 0.02], seeds, Place(tmp_path, 100, "cpu"))
    pd.testing.assert_frame_equal(found[expected.columns], expected)
    assert set(found["scale"]) == {"toy"}


def test_each_curve_of_the_simulation_has_its_own_numbers(run, folder):
    of_all = {"tokens": 10, "width": 8, "strength": 0.5, "sequences": 40, "seed": 3}
    numbers = {"layers": 3, "anisotropy": [0, 0.4], "deepest": 5, "depth_anisotropy": 0.3}
    names = ("closed_form", "anisotropy", "depth", "moments")
    run(
        "layernorm/simulate.py",
        writes={"scores": "scores.safetensors", **{name: f"{name}.csv" for name in names}},
        takes={"numbers": of_all | numbers | {"curve": {"step": 0.1, "last": 0.6}}, "level": 0.8},
    )
    sampling = simulation.Sampling(**of_all, level=0.8)
    expected = {
        "closed_form": simulation.closed_form_rows(sampling, [0, 0.4]),
        "anisotropy": simulation.anisotropy_curves(sampling, simulation.evenly(0.1, 0.6), [0, 0.4]),
        "depth": simulation.depth_curves(sampling, 0.3, 5),
        "moments": simulation.moments_curves(sampling, 3),
    }
    for name, table in expected.items():
        pd.testing.assert_frame_equal(pd.read_csv(folder / f"{name}.csv"), table, check_dtype=False)
    maps = simulation.score_maps(**of_all, layers=3, alphas=[0, 0.4])
    for name, value in load_file(folder / "scores.safetensors").items():
        np.testing.assert_allclose(value, maps[name])


def test_tables_of_an_experiment_are_those_of_its_trials(run, folder, tmp_path):
    size = {"layers": 1, "width": 7, "heads": 1, "hidden": 0}
    setting = {"length": 3, "batch": 4, "longest": 7, "sequences": 8}
    recipe = {"iterations": 3, "learning_rate": 0.01, "weight_decay": 0.1, "warmup": 1, "decay": True}
    trials = [
        Trial("set-complement-8", scheme, size, setting, recipe, [5, 6], {"scheme": scheme})
        for scheme in ("pre", "post")
    ]
    run(
        "postnorm/train.py",
        writes={"tests": "tests.parquet", "history": "history.parquet"},
        takes={
            "experiment": "toy",
            "trials": [tuple(trial) for trial in trials],
            "labels": {"scale": "toy"},
            "run_facts": {},
        },
    )
    expected = postnorm_training.run(trials, ["tests", "history"], Place(tmp_path, 100, "cpu"))
    for name, table in expected.items():
        found = pd.read_parquet(folder / f"{name}.parquet")
        pd.testing.assert_frame_equal(found[table.columns], table)
        assert set(found["scale"]) == {"toy"}


# Released numbers


def test_released_tables_are_of_their_model_and_data_set(run, folder, released_sample):
    pairs = [(model, dataset) for model in MODELS for dataset in ("fineweb-edu", "dclm", "wikipedia")]
    run(
        "released/schedules.py",
        writes={
            "mixing": [f"{model}-{dataset}-lambda.csv" for model, dataset in pairs],
            "content": [f"{model}-{dataset}-content.csv" for model, dataset in pairs],
            "slopes": [f"{model}-slopes.csv" for model in MODELS],
            "source": "source.csv",
        },
        takes={"source": str(released_sample.tables), "sha256": None},
    )
    for model, dataset in pairs:
        mixing, content = (pd.read_csv(folder / f"{model}-{dataset}-{name}.csv") for name in ("lambda", "content"))
        np.testing.assert_allclose(mixing["lambda"], released_sample.mixing[model, dataset])
        for name in ("base", "diagonal"):
            expected = getattr(released_sample, name)[model, dataset]
            layers, heads = np.indices(expected.shape)
            assert (content["layer"] == layers.ravel()).all()
            assert (content["head"] == heads.ravel()).all()
            np.testing.assert_allclose(content[name], expected.ravel(), rtol=1e-6)
        assert len(pd.read_csv(folder / f"{model}-slopes.csv")) == MODELS[model].heads
