"""A model that somebody else goes on using gives the same numbers from wherever it is measured, and is put back."""

import contextlib
import copy

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from torch import nn
from transformers import FalconConfig, FalconForCausalLM, LlamaModel, T5Config, T5ForConditionalGeneration

from position_card.measures.measure import measure_decoder
from position_card.models import families
from position_card.probe.measurable import HOOKS, OVERRIDES, measurable
from tests.position_card.card.conftest import llama
from tests.refusals import refused

PROMPTS = np.random.default_rng(0).integers(0, 300, (3, 12))


def measured(model):
    with measurable(model) as decoder:
        found = measure_decoder(decoder, PROMPTS, 64)
    return found.influence, found.mixing["frobenius"], found.attention


@pytest.fixture(scope="module")
def expected():
    """What is measured of a model that nobody else uses, and needs no lending."""
    found = measured(llama(attn_implementation="eager"))
    plain = measure_decoder(llama(attn_implementation="eager"), PROMPTS, 64)
    for value, right in zip(found, (plain.influence, plain.mixing["frobenius"], plain.attention), strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-4)
    return found


def state(model):
    """All that a caller could notice."""
    modules = dict(model.named_modules())
    return {
        "training": {name: module.training for name, module in modules.items()},
        "gradients": {name: (weight.requires_grad, weight.grad is None) for name, weight in model.named_parameters()},
        "attention": model.config._attn_implementation,
        "hooks": {name: [list(vars(module)[kind]) for kind in HOOKS] for name, module in modules.items()},
        "replaced": {name: [kind in vars(module) for kind in OVERRIDES] for name, module in modules.items()},
        "threads": torch.get_num_threads(),
        "products": torch.backends.mkldnn.matmul.fp32_precision,
        "precision": torch.get_float32_matmul_precision(),
        "random": torch.get_rng_state().sum().item(),
    }


def in_training():
    model = llama(attention_dropout=0.5).train()
    model.model.layers[0].eval()
    model.lm_head.weight.requires_grad_(False)
    model.model.norm.weight.grad = torch.ones(32)
    model.model.layers[1].register_forward_hook(lambda *_: None)
    return model


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_a_model_in_training_is_as_it_was_whatever_happens(error, expected):
    model = in_training()
    before = state(model)

    def stop(*_):
        raise error

    with pytest.raises(error) if error else contextlib.nullcontext(), measurable(model, threads=2) as decoder:
        assert torch.get_num_threads() == 2
        if error:
            decoder.model.layers[2].register_forward_hook(stop)
        found = measure_decoder(decoder, PROMPTS, 64, activation_checkpointing=True)
    assert state(model) == before
    if not error:
        np.testing.assert_allclose(found.influence, expected[0], rtol=1e-5)


def test_a_lowered_precision_of_products_is_left_and_comes_back(expected):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        model = llama()
        found, kept = measured(model), state(model)
        assert kept["precision"] == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, right)


AROUND = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_numbers_are_the_same_wherever_the_call_stands(around, expected):
    model = llama()
    with around():
        found = measured(model)
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, right)


class Adapted(nn.Module):
    """A model in the hands of PEFT, as far as it shows."""

    def __init__(self, model, prompts):
        super().__init__()
        self.base_model = model
        kind = type("Configuration", (), {"is_prompt_learning": prompts, "peft_type": "PREFIX_TUNING"})
        self.peft_config = {"default": kind()}

    def get_base_model(self):
        return self.base_model


@pytest.fixture
def one_process():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize(
    "wrap",
    [
        nn.DataParallel,
        nn.parallel.DistributedDataParallel,
        torch.compile,
        lambda model: Adapted(model, False),
        lambda model: torch.compile(nn.parallel.DistributedDataParallel(model)),
    ],
    ids=["DataParallel", "DDP", "compile", "PEFT", "both"],
)
def test_a_wrapped_model_is_measured_within_its_wrapping(wrap, expected):
    for value, right in zip(measured(wrap(llama())), expected, strict=True):
        np.testing.assert_array_equal(value, right)


def test_the_autocast_of_accelerate_is_left_out_and_stays(expected):
    try:
        model = Accelerator(mixed_precision="bf16", cpu=True).prepare(llama())
        before = model.forward
        for value, right in zip(measured(model), expected, strict=True):
            np.testing.assert_array_equal(value, right)
        assert model.forward == before
    finally:
        AcceleratorState._reset_state()
        PartialState._reset_state()


def test_a_falcon_in_memory_is_that_of_a_file():
    size = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": True}
    config = FalconConfig(**size, **dict.fromkeys(families.FALCON_OFF, False), initializer_range=0.3)
    torch.manual_seed(0)
    model = FalconForCausalLM(config)
    opened = families.without_double_alibi(copy.deepcopy(model))
    opened.config._attn_implementation = "eager"
    assert model.config._attn_implementation == "sdpa"
    before = state(model)
    for value, right in zip(measured(model), measured(opened), strict=True):
        np.testing.assert_array_equal(value, right)
    assert state(model) == before


def on_meta():
    with torch.device("meta"):
        return llama()


def made_in_inference():
    with torch.inference_mode():
        return llama()


def by_flex():
    model = llama()
    model.config._attn_implementation = "flex_attention"
    return model


def t5():
    return T5ForConditionalGeneration(T5Config(vocab_size=32, d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2))


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (on_meta, "meta"),
        (made_in_inference, "torch.inference_mode"),
        (lambda: LlamaModel(llama().config), "LlamaModel"),
        (by_flex, "flex_attention"),
        (t5, "T5ForConditionalGeneration"),
        (lambda: Adapted(llama(), True), "PREFIX_TUNING"),
        (lambda: nn.Linear(2, 2), "Linear"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_its_name(model, named):
    with refused(named), measurable(model()):
        pytest.fail("it was let in")
