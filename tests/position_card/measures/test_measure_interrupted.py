"""Measuring in less memory, and going on after an interruption: with the same bits as a pass in one go."""

from dataclasses import asdict
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from position_card.measures import measure, quantities
from position_card.measures.measure import Quantities, measure_decoder
from position_card.measures.passes import Resumption, in_parts
from position_card.probe.layout import find_layout
from tests import small_decoders
from tests.interruption import Interruption
from tests.refusals import refused
from tools import decoders

N, PROMPTS, VOCABULARY = 12, 7, 64
BATCH = 2 * N  # batches of 2, 2, 2 and 1 prompts
KINDS = ["bloom", "mpt", "falcon, ALiBi", "llama", "gemma3_text", "opt", "phi"]


def small(family, layers=3):
    return small_decoders.build(family, VOCABULARY, layers=layers, seed=3, initializer_range=0.4)


@pytest.fixture(scope="module")
def prompts():
    return np.random.default_rng(1).integers(3, VOCABULARY, (PROMPTS, N))


def bits(measurement):
    """Every array of a measurement, by name, as bytes."""
    flat = {}
    for name, value in asdict(measurement).items():
        flat |= {f"{name}/{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
    return {
        name: (value.shape, str(value.dtype), value.tobytes()) if isinstance(value, np.ndarray) else value
        for name, value in flat.items()
    }


@pytest.fixture
def passes(monkeypatch):
    """Counts the passes, and interrupts the one that is set."""
    real, seen = quantities.influence_and_loss, {"passes": 0, "interrupt": None, "with": Interruption()}

    def influence_and_loss(model, tokens, latest, target):
        seen["passes"] += 1
        found = real(model, tokens, latest, target)  # the layers of this batch were heard, and must be forgotten
        if seen["passes"] == seen["interrupt"]:
            raise seen["with"]
        return found

    monkeypatch.setattr(quantities, "influence_and_loss", influence_and_loss)
    return seen


def interrupted(passes, at, *args, **options):
    passes |= {"passes": 0, "interrupt": at}
    with pytest.raises(Interruption):
        measure_decoder(*args, **options)
    passes |= {"passes": 0, "interrupt": None}


@pytest.mark.parametrize("matrices", [True, False])
@pytest.mark.parametrize("name", ["bloom", "llama", "gemma3_text"])
def test_an_interrupted_measurement_ends_with_the_same_bits(name, matrices, prompts, passes, tmp_path):
    asked = Quantities(content=True, gram=True, groups=3, matrices_up_to=N if matrices else N - 1)
    options = {"quantities": asked}
    model, kept = decoders.small(name), Resumption(tmp_path / "folder/n12.safetensors", ["a run"], interval=2)
    expected = bits(measure_decoder(model, prompts, BATCH, **options))
    assert (expected["gram"] is not None) == matrices
    assert (expected["diagonal"] is not None) == (name == "bloom")
    options["resumption"] = kept
    for at in (3, 2):  # of four batches, the first two are kept, and then the third
        interrupted(passes, at, model, prompts, BATCH, **options)
    for _ in range(2):  # the second time it is finished
        assert bits(measure_decoder(decoders.small(name), prompts, BATCH, **options)) == expected
        assert passes["passes"] == 1


@pytest.mark.parametrize(("every", "again"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 1), (7, 4), (100, 4)])
def test_what_is_kept_is_as_often_as_asked_for(every, again, prompts, passes, tmp_path):
    """Interrupted in the last of four batches, at the sixth prompt."""
    model, kept = small("mpt"), Resumption(tmp_path / "n12.safetensors", [], every)
    interrupted(passes, 4, model, prompts, BATCH, resumption=kept)
    assert bits(measure_decoder(model, prompts, BATCH, resumption=kept)) == bits(measure_decoder(model, prompts, BATCH))
    assert passes["passes"] - 4 == again


@pytest.mark.parametrize(("order", "run"), [(-1, "a run"), (1, "another run")], ids=["other prompts", "other settings"])
def test_what_another_run_kept_is_not_gone_on_from(order, run, prompts, passes, tmp_path, caplog):
    """Neither is a damaged file, which tests of `checkpoint` are about."""
    model, path = small("bloom"), tmp_path / "n12.safetensors"
    interrupted(passes, 3, model, prompts, BATCH, resumption=Resumption(path, ["a run"], interval=1))
    prompts = prompts[::order].copy()
    found = measure_decoder(model, prompts, BATCH, resumption=Resumption(path, [run], interval=1))
    assert passes["passes"] == 4
    assert "starts over, since" in caplog.text
    assert bits(found) == bits(measure_decoder(model, prompts, BATCH))


def test_parts_that_were_kept_before_a_kill_are_not_made_again(tmp_path):
    made, prompts = [], np.arange(12).reshape(3, 4)
    whole = {"first": np.arange(3) / 7, "second": np.arange(6.0).reshape(3, 2)}

    def making(name, killed=False):
        if killed:
            raise Interruption
        made.append(name)
        return whole[name]

    resumption = Resumption(tmp_path / "parts.safetensors", ["a run"], interval=1)
    killed = {"first": partial(making, "first"), "second": partial(making, "second", killed=True)}
    with pytest.raises(Interruption):
        in_parts(killed, prompts, resumption)
    parts = {name: partial(making, name) for name in whole}
    found = in_parts(parts, prompts, resumption)
    assert made == ["first", "second"]
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == np.float64
    in_parts(parts, prompts + 1, resumption)  # other prompts
    assert made == ["first", "second"] * 2


# Memory


@pytest.mark.parametrize("name", KINDS)
def test_layers_that_are_computed_twice_are_heard_once(name, prompts):
    model = decoders.small(name)
    blocks = [layer.block for layer in find_layout(model, torch.from_numpy(prompts[:1])).layers]
    forwards = [block.forward for block in blocks]
    plain, recomputed = (measure_decoder(model, prompts, BATCH, activation_checkpointing=on) for on in (False, True))
    backward = ("influence", "mixing/backward")  # whose sums may be taken in another order
    for field in ("influence", "mixing"):
        np.testing.assert_allclose(*(flat(found, field) for found in (recomputed, plain)), rtol=1e-5)
    same, expected = bits(recomputed), bits(plain)
    assert {key: value for key, value in same.items() if key not in backward} == {
        key: value for key, value in expected.items() if key not in backward
    }
    assert [block.forward for block in blocks] == forwards


def flat(measurement, field):
    value = getattr(measurement, field)
    return np.concatenate([part.ravel() for part in (value.values() if isinstance(value, dict) else [value])])


def kept_for_the_backward_pass(layers, prompts, activation_checkpointing):
    """Bytes that autograd saves outside of layers that are computed again."""
    saved = []

    def pack(tensor):
        saved.append(tensor.nbytes)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        measure_decoder(small("mpt", layers), prompts, PROMPTS * N, activation_checkpointing=activation_checkpointing)
    return sum(saved)


def test_of_a_layer_that_is_computed_twice_its_input_is_kept(prompts):
    plain = [kept_for_the_backward_pass(layers, prompts, False) for layers in (2, 4)]
    recomputed = [kept_for_the_backward_pass(layers, prompts, True) for layers in (2, 4)]
    assert plain[1] > 1.5 * plain[0]
    residual_stream = PROMPTS * N * 16 * 4
    assert recomputed[1] - recomputed[0] == 2 * residual_stream < (plain[1] - plain[0]) / 10


def test_an_error_leaves_no_layer_recomputing(prompts, passes):
    model = small("bloom")
    block = model.transformer.h[0]
    forward = block.forward
    interrupted(passes, 1, model, prompts, BATCH, activation_checkpointing=True)
    assert block.forward == forward


@pytest.mark.parametrize(
    ("tokens_per_batch", "options", "named"),
    [
        (BATCH, {}, ("2 x 12 tokens", "measure.tokens_per_batch", "measure.activation_checkpointing")),
        (BATCH, {"activation_checkpointing": True}, ("2 x 12 tokens", "measure.tokens_per_batch", "(gpus)")),
        (BATCH, {"section": "other"}, (" other.tokens_per_batch",)),
        (BATCH, {"section": None}, (" tokens_per_batch",)),
        (N, {}, ("1 x 12 tokens", "measure.activation_checkpointing")),
        (N, {"activation_checkpointing": True}, ("1 x 12 tokens", "(gpus)")),
    ],
)
def test_too_little_memory_names_the_batch_and_the_remedies(prompts, passes, tokens_per_batch, options, named):
    passes |= {"interrupt": 2, "with": torch.OutOfMemoryError("CUDA out of memory")}
    with refused("batch 2", *named):
        measure_decoder(small("bloom"), prompts, tokens_per_batch, **options)


def test_too_little_memory_for_the_layout_is_one_line(prompts, monkeypatch):
    monkeypatch.setattr(measure, "find_layout", Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory")))
    with refused("layout", "1 x 12 tokens"):
        measure_decoder(small("bloom"), prompts, BATCH)
