"""Coarse weights compute in float32 as their copies in float32 do, and are left as they were."""

import copy

import numpy as np
import pytest
import torch

from position_card.measures import recall
from position_card.measures.replacement import donors, responses
from position_card.probe import precision
from position_card.probe.precision import float32_arithmetic
from tests import small_decoders

N = 24


def coarse(dtype=torch.bfloat16):
    return small_decoders.build("llama", small_decoders.VOCABULARY, layers=3, hidden=32).to(dtype)


def prompts(count=4):
    return np.random.default_rng(0).integers(0, small_decoders.VOCABULARY, (count, N))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_are_the_same_tensors_afterwards_also_after_an_error(dtype):
    model = coarse(dtype)
    before = {name: (weight.data_ptr(), weight.clone()) for name, weight in model.named_parameters()}
    hooks = [dict(module._forward_hooks) for module in model.modules()]
    tokens = torch.from_numpy(prompts())
    with torch.no_grad(), float32_arithmetic(model):
        assert model(tokens).logits.dtype == torch.float32
    with torch.no_grad(), pytest.raises(RuntimeError), float32_arithmetic(model):
        model(inputs_embeds=torch.ones(1, 3, 5))
    assert [dict(module._forward_hooks) for module in model.modules()] == hooks
    for name, weight in model.named_parameters():
        assert weight.data_ptr() == before[name][0]
        assert torch.equal(weight, before[name][1])
    assert model(tokens).logits.dtype == dtype


def test_finer_weights_stay_as_they_are():
    model, tokens = coarse(torch.float64), torch.from_numpy(prompts())
    expected = model(tokens).logits
    with float32_arithmetic(model):
        assert torch.equal(model(tokens).logits, expected)


@pytest.mark.parametrize("rows", [1, 7, 64, 1000])
def test_a_linear_layer_multiplies_by_blocks_of_its_weights_as_by_all(rows, monkeypatch):
    layer = torch.nn.Linear(16, 64).bfloat16()
    inputs = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(precision, "BLOCK", 16 * rows)
    sizes, of_torch = [], torch.nn.functional.linear
    monkeypatch.setattr(precision, "linear", lambda x, weight: sizes.append(len(weight)) or of_torch(x, weight))
    with torch.no_grad(), float32_arithmetic(layer):
        found = layer(inputs)
    torch.testing.assert_close(found, copy.deepcopy(layer).float()(inputs), rtol=1e-6, atol=1e-6)
    assert sum(sizes) == 64
    assert max(sizes) == min(rows, 64)
    assert precision.widened_at_once(layer) == min(16 * rows, 16 * 64 + 64)
    assert layer(inputs.bfloat16()).dtype == torch.bfloat16


def test_a_linear_layer_that_another_library_has_changed_keeps_the_change():
    layer = torch.nn.Linear(4, 3).bfloat16()
    own = layer.forward
    layer.forward = lambda inputs: 2 * own(inputs)
    inputs = torch.ones(1, 4)
    with torch.no_grad(), float32_arithmetic(layer):
        found = layer(inputs)
    torch.testing.assert_close(found, 2 * own(inputs.bfloat16()).float(), rtol=0.02, atol=0.02)
    assert found.dtype == torch.float32
    assert layer.forward is not own


def recalled(model):
    contexts = recall.random_contexts(np.arange(30), 12, 2, 2, 0)
    return recall.measure_recall(model, contexts, np.arange(30), 2, 64).probability


def replaced(model):
    tokens, windows = prompts(), [slice(0, 1), slice(6, 12), slice(N - 1, N)]
    return responses(model, tokens, windows, donors(tokens, 1, 0), [1], 2 * N).total_variation


@pytest.mark.parametrize("measure", [recalled, replaced])
def test_measures_of_changes_have_the_numbers_of_float32(measure):
    model = coarse()
    expected, found = measure(copy.deepcopy(model).float()), measure(model)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
    assert expected.max() > 0.01
