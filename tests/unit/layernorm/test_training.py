import math
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from position_bias.layernorm import training
from position_bias.layernorm.settings import NETWORKS, Data
from position_bias.layernorm.training import COLUMNS, DecoderSetting
from position_bias.small_networks import decoder
from position_bias.small_networks.decoder import Architecture
from position_bias.small_networks.settings import NetworkSize
from position_card.core.checkpoint import Place
from tests.refusals import refused

DATA = Data(vocabulary=6, tokens=12, skew=4.0)
SIZE = NetworkSize(layers=2, width=16, heads=2, hidden=8)
SETTING = DecoderSetting(DATA, SIZE, batch=6, iterations=13, warmup=3, weight_decay=1e-2, held_out=16)
SEEDS = (0, 4)
NAMES = pytest.mark.parametrize("name", NETWORKS)
STRAY = 5  # standard errors that a frequency may be off


pytestmark = pytest.mark.usefixtures("one_thread")


def train(folder, name="pre-layer", rate=1e-2, seeds=SEEDS, **changed):
    return training.train(name, replace(SETTING, **changed), rate, seeds, Place(Path(folder), 4, "cpu"))


def test_sequences_hold_a_token_to_predict_more_than_is_read():
    drawn = training.sequences(DATA, [3, 1, 3], "x", 5, "cpu")
    assert drawn.shape == (3, 5, 13)
    assert drawn.dtype == torch.int64
    assert drawn.min() >= 0
    assert training.sequences(DATA, [3], "x", 500, "cpu").unique().tolist() == list(range(6))


def test_what_a_seed_draws_depends_on_it_and_the_purpose_alone():
    together, alone = training.sequences(DATA, [5, 7], 3, 8, "cpu"), training.sequences(DATA, [7], 3, 8, "cpu")
    assert torch.equal(together[1], alone[0])
    assert not torch.equal(together[0], together[1])
    for other in (4, "3 ", "held out"):
        assert not torch.equal(training.sequences(DATA, [7], other, 8, "cpu"), alone)


def assert_share(hits, chance, count):
    assert hits / count == pytest.approx(chance, abs=STRAY * math.sqrt(chance * (1 - chance) / count))


def test_no_place_is_like_no_other():
    """Of 15,000 sequences: tokens are uniform at every place, and two places agree as often as any two others.

    They agree with the chance of the sum of squared frequencies, whose mean comes from numbers of numpy's own.
    """
    count, drawn = 15_000, training.sequences(Data(5, 9, 3.0), [0], "x", 15_000, "cpu")[0].numpy()
    for place in range(10):
        for token in range(5):
            assert_share((drawn[:, place] == token).sum(), 1 / 5, count)
    frequencies = np.random.default_rng(1).random((400_000, 5)) ** 3
    frequencies /= frequencies.sum(1, keepdims=True)
    agree = (frequencies**2).sum(1).mean()
    assert agree > 0.3  # of uniform tokens it would be 1/5: a sequence says something of its frequencies
    for one, other in combinations(range(10), 2):
        assert_share((drawn[:, one] == drawn[:, other]).sum(), agree, count)


def architecture(name):
    placement, norm, final = {
        "none": ("none", "layer", False),
        "pre-layer": ("pre", "layer", True),
        "pre-rms": ("pre", "rms", True),
        "post-layer": ("post", "layer", False),
    }[name]
    return Architecture(6, 6, 16, placement, 2, 2, 8, norm, final)


def by_definition(name, seed):
    """(layer, head, quantity) -> value for the untrained network of a seed, in float64 and plain Python."""
    of = architecture(name)
    weights = {key: value.double() for key, value in decoder.initial(of, [seed], "cpu").items()}
    tokens = training.sequences(DATA, [seed], "held out", 16, "cpu")
    seen = []
    p = decoder.logits(weights, of, tokens[..., :-1], trace_attention=seen.append)[0].softmax(-1)
    nats = [-math.log(p[s, t, tokens[0, s, t + 1]]) for s in range(16) for t in range(12)]
    found = {(0, 0, "loss"): np.mean(nats)}
    for layer, of_layer in enumerate(seen, start=1):
        inputs = of_layer.inputs[0].numpy()
        found[layer, 0, "gram"] = relative(np.mean([x @ x.T for x in inputs], axis=0))
        for head in (1, 2):
            found[layer, head, "score"] = relative(of_layer.logits[0, :, head - 1].mean(0).numpy())
            found[layer, head, "position"] = position(of_layer.weights[0, :, head - 1].mean(0).numpy())
    return found


def relative(scores):
    """Recency over the mean size below the diagonal, row by row."""
    rows = []
    for i in range(8, len(scores)):
        quarter = max(1, i // 4)
        rows.append(scores[i, i - quarter : i].mean() - scores[i, :quarter].mean())
    return np.mean(rows) / np.mean([abs(scores[i, j]) for i in range(len(scores)) for j in range(i)])


def position(attention):
    return np.mean([attention[i, :i] @ np.arange(i) / (i - 1) / attention[i, :i].sum() for i in range(8, 12)])


@NAMES
def test_untrained_networks_are_measured_as_defined(tmp_path, name):
    table = train(tmp_path, name)
    assert tuple(table.columns) == COLUMNS
    assert (table["norm"] == name).all()
    for seed in SEEDS:
        rows = table[(table["seed"] == seed) & (table["state"] == "untrained")]
        found = rows.set_index(["layer", "head", "quantity"])["value"].to_dict()
        expected = by_definition(name, seed)
        assert len(rows) == len(expected) == 1 + 2 * (1 + 2 * 2)
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-5)


@NAMES
def test_networks_learn_the_frequencies_of_a_sequence(tmp_path, name):
    """Guessing costs log 6 nats; what was read tells more."""
    table = train(tmp_path, name, iterations=100, warmup=10, batch=16, held_out=64)
    loss = table[table["quantity"] == "loss"].pivot(index="seed", columns="state", values="value")
    assert (loss["trained"] < math.log(6) - 0.2).all()
    assert (loss["trained"] < loss["untrained"] - 0.2).all()


@pytest.mark.parametrize("other", [{"name": "pre-rms"}, {"seeds": (0, 5)}, {"data": Data(6, 12, 1.0)}, {"batch": 7}])
def test_a_checkpoint_of_another_training_is_not_used(tmp_path, other):
    train(tmp_path)
    pd.testing.assert_frame_equal(train(tmp_path, **other), train(tmp_path / "fresh", **other), check_exact=True)


def test_members_that_diverge_have_no_rows(tmp_path, spoil):
    expected = train(tmp_path / "whole")
    spoil("in1", 0)
    found = train(tmp_path / "spoilt")
    pd.testing.assert_frame_equal(found, expected[expected["seed"] == 4].reset_index(drop=True), check_exact=True)
    training.require_finite(found, "pre-layer", 1e-2)  # one is left


def test_networks_that_all_diverge_name_the_key(tmp_path):
    found = train(tmp_path, "none", 1e30)
    assert found.empty
    assert tuple(found.columns) == COLUMNS
    with refused("layernorm.trained.learning_rate.none", "1e+30"):
        training.require_finite(found, "none", 1e30)


def test_a_sweep_has_a_row_a_network_rate_and_seed(tmp_path):
    rates = [1e-2, 1e-3, math.inf]
    found = training.sweep(SETTING, rates, SEEDS, Place(tmp_path, 20, "cpu"))
    by_run = found.set_index(["norm", "learning_rate", "seed"])["loss"].sort_index()
    assert set(by_run.index) == set(product(NETWORKS, rates, SEEDS))
    assert len(by_run) == 4 * 3 * 2
    assert by_run.xs(math.inf, level="learning_rate").isna().all()
    for rate in rates[:2]:
        table = train(tmp_path / "own", "post-layer", rate)
        losses = table[(table["state"] == "trained") & (table["quantity"] == "loss")]["value"].tolist()
        assert by_run["post-layer", rate].tolist() == losses
    assert len(list(tmp_path.glob("*_*"))) == 12  # none goes on from the checkpoint of another


def test_seeds_in_several_stacks_become_what_they_become_in_one(tmp_path, monkeypatch):
    seeds = (0, 4, 7)
    names = [*COLUMNS[:-1]]
    together = train(tmp_path / "one", seeds=seeds).set_index(names).sort_index()
    monkeypatch.setattr(training, "STACK", 2 * SETTING.kept_bytes())
    apart = train(tmp_path / "two", seeds=seeds).set_index(names).sort_index()
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["stack0", "stack1"]
    pd.testing.assert_frame_equal(together, apart, rtol=1e-5, atol=1e-7)


def test_sequences_seen_in_parts_have_the_means_of_all(monkeypatch):
    architecture = Architecture(6, 6, SIZE.width, "pre", SIZE.layers, SIZE.heads, SIZE.hidden, "layer", True)
    weights = decoder.initial(architecture, SEEDS, "cpu")
    tests = training.sequences(DATA, SEEDS, "held out", 16, "cpu")
    whole = training._preferences(weights, architecture, tests)
    monkeypatch.setattr(training, "PART", 5 * len(SEEDS) * SIZE.heads * DATA.tokens**2)  # parts of 5, 5, 5 and 1
    assert torch.allclose(training._preferences(weights, architecture, tests), whole, rtol=1e-4, atol=1e-6)


def test_what_a_network_keeps_is_counted_about_right():
    """Of the tensors that autograd saves for the backward pass, each storage counts once; weights do not count."""
    architecture = Architecture(6, 6, 32, "pre", 4, 2, 64, "layer", True)
    setting = replace(
        SETTING, size=NetworkSize(layers=4, width=32, heads=2, hidden=64), data=replace(DATA, tokens=48), batch=8
    )
    weights = {name: value.requires_grad_() for name, value in decoder.initial(architecture, [0], "cpu").items()}
    own, kept = {value.untyped_storage().data_ptr() for value in weights.values()}, {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes(), tensor  # alive, so that no other takes its place
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        training._losses(weights, architecture, training.sequences(setting.data, [0], 1, setting.batch, "cpu"))
    assert 0.9 < sum(size for size, _ in kept.values()) / setting.kept_bytes() < 1.2
