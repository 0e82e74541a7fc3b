"""Every training runs on a pretended GPU, is killed and goes on, and ends with the numbers of the CPU."""

from contextlib import nullcontext
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from position_bias.emergence import training as emergence_training
from position_bias.emergence.runs import Network, Study
from position_bias.emergence.task import RetrievalTask
from position_bias.language_models import families, train
from position_bias.layernorm import training as layernorm_training
from position_bias.layernorm.settings import NETWORKS, Data
from position_bias.postnorm import training as postnorm_training
from position_bias.postnorm.runs import Trial
from position_bias.small_networks import repeated
from position_bias.small_networks.ensemble import Recipe
from position_bias.small_networks.settings import NetworkSize
from position_card.core import devices
from position_card.core.checkpoint import Place
from tests.conftest import REAL_GPUS
from tests.pretend.both import OTHER_DRAWS, assert_same, on_both, resumed
from tests.pretend.pretended import gpus

TASK = RetrievalTask(items=4, burstiness=2, classes=16, labels=16, width=16)
SETTING = emergence_training.StudySetting(
    Recipe(6, 1e-2, 1e-6), batch=8, sequences=4, sequences_along=4, observe_every=3
)
MIXED = (Network("causal", "none"), Network("none", "sin"), Network("causal", "rope"))
DECAYING = (Network("causal", "none"), Network("causal", "decay", slope=0.4))
STUDIES = {
    "emergence": (TASK, Study(("first",), True, MIXED)),
    "fixed vocabulary, decay mask": (replace(TASK, vocabulary="fixed"), Study((), False, DECAYING)),
    "post-norm": (TASK, Study((), True, MIXED[:1], "post")),
}
SIZE = NetworkSize(layers=2, width=16, heads=2, hidden=8)
SHORT = {"batch": 4, "iterations": 7, "warmup": 3, "weight_decay": 1e-2, "held_out": 8}
DECODERS = layernorm_training.DecoderSetting(Data(vocabulary=6, tokens=12, skew=4.0), SIZE, **SHORT)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


def killed_on_the_gpu(train, at):
    """Training, in one go on the CPU, and in two on a GPU."""

    def work(folder, device):
        def whole():
            return train(folder, device)

        return whole() if device == "cpu" else resumed(whole, at)

    return work


@pytest.mark.parametrize("name", STUDIES)
def test_networks_of_emergence(name, tmp_path):
    task, study = STUDIES[name]

    def train(folder, device):
        return emergence_training.train(task, study, 2, (0, 1), SETTING, Place(folder, 3, device))

    expected, found = on_both(killed_on_the_gpu(train, 3), tmp_path)
    order = [found.members.index(member) for member in expected.members]  # a GPU holds all members in one stack
    assert_same(expected.weights, {name: value[order] for name, value in found.weights.items()}, real=OTHER_DRAWS)
    columns = ["mask", "encoding", "seed", "iteration", "omega", "quantity", "answer", "twin"]
    assert_same(*(outcome.curves.sort_values(columns) for outcome in (expected, found)), real=OTHER_DRAWS)


@pytest.mark.parametrize("name", NETWORKS)
def test_decoders_of_layernorm(name, tmp_path, monkeypatch):
    monkeypatch.setattr(layernorm_training, "STACK", DECODERS.kept_bytes())  # a seed in each

    def train(folder, device):
        return layernorm_training.train(name, DECODERS, 1e-2, (0, 4), Place(folder, 3, device))

    assert_same(*on_both(killed_on_the_gpu(train, 3), tmp_path), real=OTHER_DRAWS)


TRIAL = Trial(
    task="set-complement-6",
    scheme="peri",
    size={"layers": 1, "width": 6, "heads": 2, "hidden": 5},
    setting={"length": 3, "batch": 8, "longest": 5, "sequences": 10},
    recipe={"iterations": 7, "learning_rate": 1e-2, "weight_decay": 1e-2, "warmup": 2, "decay": True},
    seeds=[0, 4],
    labels={},
)
LONGER = {"length": 6, "batch": 4, "longest": 8, "sequences": 10}
TRIALS = {
    "peri-init": TRIAL._replace(scheme="peri-init"),
    "numbers": TRIAL._replace(task="maximum-10"),
    "words": TRIAL._replace(task="dyck-2-3", setting=LONGER),
    "depths": TRIAL._replace(task="nested-2-2-6", setting=LONGER),
    "averages": TRIAL._replace(kappa=0.5, etas=(0.2, 0.5)),
}


@pytest.mark.parametrize("name", TRIALS)
def test_trials_of_postnorm(name, tmp_path):
    trial = TRIALS[name]
    tables = [table for table in ("depths", "averages") if table == name] + ["tests", "losses"]

    def train(folder, device):
        return postnorm_training.run([trial], tables, Place(folder, 3, device))

    assert_same(*on_both(killed_on_the_gpu(train, 3), tmp_path), real=1e-3)


KINDS = {
    "emergence": lambda at: emergence_training.train(*STUDIES["emergence"], 2, (0, 1), SETTING, at),
    "postnorm": lambda at: postnorm_training.run([TRIALS["numbers"]], ["tests", "losses"], at),
}


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_updates_are_those_launched_one_by_one(kind, tmp_path, monkeypatch):
    """Both on a GPU, so that both draw the same; a real one runs no Python in an iteration that it repeats."""
    recordings = []

    def train(name, recorded):
        monkeypatch.setattr(repeated, "record", recorded)
        return KINDS[kind](Place(tmp_path / name, 3, "cuda"))

    def counted(compute, example):
        recordings.append(compute)
        return record(compute, example)

    with nullcontext() if REAL_GPUS else gpus():
        record = repeated.record
        one_by_one = train("launched", lambda compute, example: compute)
        assert_same(one_by_one, train("repeated", counted))
    assert recordings


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("family", families.BUILDERS)
def test_language_models(family, bf16, tmp_path):
    tokens = np.array([pow(3, place, 31) for place in range(400)], dtype=np.int32)
    held_out = np.stack([tokens[place : place + 16] for place in (5, 50, 77)]).astype(np.int64)
    recipe = train.TrainingRecipe(6, batch=6, context=16, learning_rate=1e-2, warmup=3, weight_decay=0.1, clip=1.0)
    shape = {"layers": 1, "heads": 2, "hidden": 16, "initializer_range": 0.1}

    def run(folder, device):
        model = families.build(family, shape, 31, 16, seed=0)
        options = {"seed": 0, "snapshots": [0, 4], "bf16": bf16, "held_out": held_out}
        losses = train.train(model, tokens, recipe, Place(folder, 2, device), **options)
        assert {parameter.device.type for parameter in model.parameters()} == {device}
        return losses, asdict(recipe), dict(model.named_parameters())

    expected, found = on_both(killed_on_the_gpu(run, 2), tmp_path)
    if REAL_GPUS:  # weights differ: biases of keys change nothing, and AdamW moves them by rounding errors
        assert_same(expected[0], found[0], real=1e-2)  # under bfloat16, too
        return
    assert_same(expected, found)
    for step in (0, 4, 6):
        kept = (tmp_path / device / f"step{step}/model.safetensors" for device in ("cpu", "cuda"))
        assert next(kept).read_bytes() == next(kept).read_bytes()


@pytest.mark.parametrize(("capability", "native"), [((8, 0), True), ((7, 5), False)])
def test_bfloat16_is_asked_of_the_gpu_that_computes(capability, native):
    with gpus(capability=capability):
        assert devices.native_bf16("cuda") == native


@pytest.mark.skipif(REAL_GPUS, reason="real ones refuse what they refuse")
def test_a_pretended_gpu_refuses_what_a_real_one_does():
    """Tensors of two devices in an operation or in its gradient, and numpy: what else would these tests notice?"""
    with gpus(2):
        x, weights = torch.ones(2, 3, device="cuda"), torch.ones(3, device="cuda:1", requires_grad=True)
        for mixed in (lambda: x @ torch.ones(3, 2), lambda: x + x.to("cuda:1"), lambda: x.cpu().add_(x)):
            with pytest.raises(RuntimeError, match="the tensors are on"):
                mixed()
        with pytest.raises(TypeError, match="can't convert cuda:0"):
            np.asarray(x)
        (x @ weights.to("cuda:0")).sum().backward()
        assert weights.grad.device == torch.device("cuda:1")
    assert not torch.cuda.is_available()
