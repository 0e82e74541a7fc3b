"""The pass over any decoder: the numbers of the seven families, in less memory, and after an interruption."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from position_bias.language_models import families
from position_bias.language_models import measure_decoder as measuring
from position_bias.language_models.measure import measure
from position_bias.language_models.measure_decoder import measure_decoder
from position_bias.language_models.passes import Resumption
from position_bias.running.runtime import InputError
from tests.unit.conftest import Interruption
from tools import decoders

N, PROMPTS = 12, 7
BATCH = 2 * N  # batches of 2, 2, 2 and 1 prompts
WITH_ALIBI = ["bloom", "mpt", "falcon, ALiBi"]
KINDS = ["llama", "gemma3_text", "opt", "phi", "falcon, ALiBi"]


@pytest.fixture(scope="module")
def prompts():
    return np.random.default_rng(1).integers(3, 64, (PROMPTS, N))


@pytest.mark.parametrize("name", [*WITH_ALIBI, "llama", "qwen3", "phi", "phi3", "phi3, long contexts"])
def test_the_seven_families_have_the_numbers_that_they_have(name, prompts):
    model = decoders.small(name)
    expected, found = measure(model, prompts, BATCH), measure_decoder(model, prompts, BATCH)
    for estimator, values in expected.mixing.items():
        np.testing.assert_array_equal(found.mixing[estimator], values)
    np.testing.assert_allclose(found.influence, expected.influence, rtol=1e-5)  # its logits are of more positions
    np.testing.assert_array_equal(found.attention, expected.attention)
    if name not in WITH_ALIBI:
        assert found.slopes is found.offset is None
        return
    np.testing.assert_array_equal(found.offset, expected.diagonal - expected.below)
    np.testing.assert_array_equal(found.slopes, families.effective_slopes(model.config))


def bits(measurement):
    """Every array of a measurement, by name, as bytes."""
    flat = {}
    for name, value in asdict(measurement).items():
        flat |= {f"{name}/{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
    return {name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in flat.items()}


@pytest.mark.parametrize("name", KINDS)
def test_batches_do_not_change_what_is_measured(name, prompts):
    model = decoders.small(name)
    one, all_at_once = (measure_decoder(model, prompts, tokens) for tokens in (1, PROMPTS * N))
    for quantity in ("influence", "loss", "by_distance", "attention"):
        np.testing.assert_allclose(getattr(one, quantity), getattr(all_at_once, quantity), rtol=1e-4, atol=1e-6)
    for quantity in ("mixing", "kernels"):
        for key, values in getattr(one, quantity).items():
            np.testing.assert_allclose(values, getattr(all_at_once, quantity)[key], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_blocks_that_are_computed_again_are_heard_once(name, prompts):
    model = decoders.small(name)
    expected = measure_decoder(model, prompts, BATCH)
    found = measure_decoder(model, prompts, BATCH, activation_checkpointing=True)
    assert bits(found).keys() == bits(expected).keys()
    for quantity in ("influence", "loss", "by_distance"):
        np.testing.assert_allclose(getattr(found, quantity), getattr(expected, quantity), rtol=1e-5)
    for key, values in expected.mixing.items():
        np.testing.assert_allclose(found.mixing[key], values, rtol=1e-5)
    for key, values in expected.kernels.items():
        np.testing.assert_array_equal(found.kernels[key], values)


@pytest.mark.parametrize("name", KINDS)
def test_an_interrupted_measurement_ends_with_the_same_bits(name, prompts, tmp_path, monkeypatch):
    model, kept = decoders.small(name), Resumption(tmp_path / "n12.safetensors", ["a run"], every=2)
    expected = bits(measure_decoder(model, prompts, BATCH))
    real, passes = measuring.influence_and_loss, []

    def influence_and_loss(model, tokens, latest):
        passes.append(1)
        found = real(model, tokens, latest)
        if len(passes) == 3:
            raise Interruption
        return found

    monkeypatch.setattr(measuring, "influence_and_loss", influence_and_loss)
    with pytest.raises(Interruption):
        measure_decoder(model, prompts, BATCH, resumption=kept)
    assert bits(measure_decoder(decoders.small(name), prompts, BATCH, resumption=kept)) == expected
    assert len(passes) == 5
    assert bits(measure_decoder(decoders.small(name), prompts, BATCH, resumption=kept)) == expected  # all was kept
    assert len(passes) == 5


@pytest.mark.parametrize("name", KINDS)
def test_long_prompts_keep_no_matrices_and_measure_the_rest_alike(name, prompts, monkeypatch):
    model = decoders.small(name)
    short = measure_decoder(model, prompts, BATCH)
    monkeypatch.setattr(measuring, "MATRICES_UP_TO", N - 1)
    long = measure_decoder(model, prompts, BATCH)
    assert long.attention is None
    np.testing.assert_allclose(long.by_distance, short.by_distance, rtol=1e-5)
    others = {"attention": None, "by_distance": None}
    assert bits(long) | others == bits(short) | others


def test_a_value_that_is_not_finite_names_its_quantity_and_prompt(prompts):
    """Of the last prompt alone: the layout was found on the first."""
    model = decoders.small("gpt2")
    model.transformer.h[1].mlp.c_proj.register_forward_hook(
        lambda _module, _args, out: out + float("inf") if out.shape[0] == 1 and calls_of(model) > 1 else out
    )
    with pytest.raises(InputError, match=r"measured lambda \(frobenius\) of prompt 6 is not finite; check the model's"):
        measure_decoder(model, prompts, BATCH)


def calls_of(model):
    model.calls = getattr(model, "calls", -1) + 1
    return model.calls


def test_a_gpu_that_is_too_small_is_one_line(prompts, monkeypatch):
    def exhausted(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(measuring, "influence_and_loss", exhausted)
    with pytest.raises(InputError, match=r"^out of GPU memory on batch 1, 2 x 12 tokens; lower [^\n]*$"):
        measure_decoder(decoders.small("llama"), prompts, BATCH)


def test_no_hook_stays_behind(prompts):
    model = decoders.small("llama")
    measure_decoder(model, prompts, BATCH)
    with pytest.raises(IndexError):
        measure_decoder(model, prompts + 1000, BATCH)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert model.config._attn_implementation == "eager"
