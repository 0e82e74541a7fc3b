"""What is measured where attention is streamed is what is measured of the model's own attention as a whole."""

import logging
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM

from position_card.measures import kernels, recall, replacement
from position_card.measures.measure import Quantities, measure_decoder
from position_card.models import families, opening
from position_card.probe import forward, long_layout, streaming
from position_card.probe.streaming import Streaming
from position_card.texts import tokens
from tests import needs
from tests.refusals import refused
from tools import decoders, sweep

N, PROMPTS, PROVED, ROWS = 60, 3, 24, 16
SINKS = {**decoders.COMMON, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5}
CHANGING = {**decoders.LONG, "original_max_position_embeddings": 32}  # at a length beyond that of the proof
HALF = {
    **decoders.SMALL["gemma3_text"],
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}
MODELS = {  # model type and values of a configuration, and the ways in which attention may be streamed
    "llama": ("llama", decoders.COMMON, {"causal"}),
    "qwen2": ("qwen2", decoders.COMMON, {"causal"}),
    "gpt2": ("gpt2", decoders.COMMON, {"causal"}),
    "opt": ("opt", decoders.SMALL["opt"], {"causal"}),
    "windows": ("mistral", {**decoders.COMMON, "sliding_window": 5}, {"masked"}),
    "windows beyond the proof": ("mistral", {**decoders.COMMON, "sliding_window": 40}, {"masked"}),
    "windows in half of the layers": ("gemma3_text", HALF, {"masked", "causal"}),
    "soft caps and windows": ("gemma2", {**decoders.SMALL["gemma2"], "attn_logit_softcapping": 2.0}, {"own"}),
    "learned sinks": ("gpt_oss", SINKS, {"own"}),
    "rotations that change with length": (
        "phi3",
        {**decoders.SMALL["phi3, long contexts"], "rope_parameters": CHANGING, "original_max_position_embeddings": 32},
        {"causal"},
    ),
    "parallel blocks": ("cohere2", decoders.SMALL["cohere2"], {"masked"}),
    "experts": ("qwen3_moe", decoders.SMALL["qwen3_moe"], {"causal"}),
    "keys wider than values": ("deepseek_v3", None, {"own"}),
    "ALiBi": ("bloom", decoders.SMALL["bloom"], set()),
    "attention of its own": ("gpt_neo", decoders.SMALL["gpt_neo"], set()),
}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(long_layout, "PROVED", PROVED)
    monkeypatch.setattr(streaming, "ROWS", ROWS)


def built(kind, values):
    torch.manual_seed(3)
    config = AutoConfig.for_model(kind, **values) if values else sweep.small_config(kind)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    for name, weight in model.named_parameters():
        if name.endswith("sinks"):
            weight.data.normal_(1, 1)
    return families.without_double_alibi(model).eval()


def prompts(n=N):
    return np.random.default_rng(1).integers(3, decoders.VOCABULARY, (PROMPTS, n))


@pytest.fixture
def ways(monkeypatch):
    """The ways in which attention is streamed at the length N, as they are found."""
    found, original = [], Streaming._find

    def find(self, call):
        way, out = original(self, call)
        if call.inputs.query.shape[2] == N:
            found.append("causal" if way.causal else "masked" if way.fused else "own")
        return way, out

    monkeypatch.setattr(Streaming, "_find", find)
    return found


def compare(found, expected, **tolerances):
    """Compare all fields of two measurements: arrays up to a tolerance, relative to the largest value."""
    for field in fields(expected):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        pairs = {field.name: (one, other)} if not isinstance(other, dict) else {k: (one[k], other[k]) for k in other}
        for name, (value, right) in pairs.items():
            if not isinstance(right, np.ndarray):
                assert value == right, name
                continue
            tolerance = tolerances.get(name, 1e-5)
            np.testing.assert_allclose(value, right, rtol=0, atol=tolerance * np.abs(right).max(), err_msg=name)


@pytest.mark.parametrize("matrices_up_to", [N, N - 1])
@pytest.mark.parametrize("name", MODELS)
def test_streamed_is_measured_as_whole(name, matrices_up_to, ways):
    kind, values, expected_ways = MODELS[name]
    model, asked = built(kind, values), Quantities(apart=True, losses_from=1, matrices_up_to=matrices_up_to)
    whole = measure_decoder(model, prompts(), 2 * N, quantities=asked)
    streamed = measure_decoder(model, prompts(), 2 * N, quantities=replace(asked, streamed_from=N))
    assert set(ways) == expected_ways
    assert (whole.attention is None) == (matrices_up_to < N)
    compare(streamed, whole, toeplitz=1e-4, rotary=1e-4, **{"toeplitz-apart": 1e-4})


class Kernels(TorchDispatchMode):
    """Counts what the kernels of attention compute while it is open."""

    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += function in streaming.KERNELS
        return function(*args, **(kwargs or {}))


def test_the_backward_pass_computes_layers_again_but_not_their_attention():
    model, counts = built("llama", decoders.SMALL["llama"]), []
    for count in (2, 3):
        with Kernels() as kernels:
            measure_decoder(model, np.tile(prompts(), (2, 1))[:count], N, quantities=Quantities(streamed_from=N))
        counts.append(kernels.calls)
    assert counts[1] - counts[0] == decoders.LAYERS


@pytest.mark.parametrize("name", ["llama", "windows", "soft caps and windows"])
def test_the_pass_that_tries_the_kernel_predicts_as_every_other_one(name):
    kind, values, _ = MODELS[name]
    model, tokens = built(kind, values), torch.from_numpy(prompts())
    whole, _ = forward.next_token(model, tokens)
    with Streaming(model).attending(shortest=1):
        for _ in range(2):
            torch.testing.assert_close(forward.next_token(model, tokens)[0], whole, rtol=0, atol=2e-6)


def test_what_does_not_use_the_interface_is_measured_whole_and_said_to_be(caplog):
    with caplog.at_level(logging.INFO):
        measure_decoder(built("bloom", decoders.SMALL["bloom"]), prompts(), N, quantities=Quantities(streamed_from=N))
    assert "no matrix of attention is spared in 60 tokens: not all of its layers use the attention" in caplog.text


@pytest.mark.parametrize(("name", "spoilt"), [("llama", "causal"), ("windows", "masked")])
def test_a_kernel_that_yields_something_else_is_not_used(name, spoilt, ways, monkeypatch):
    """By a hundredth of a per cent, and for one query of the last block alone."""
    original = streaming.scaled_dot_product_attention

    def wrong(*args, **keywords):
        out = original(*args, **keywords)
        changed = torch.ones(out.shape[2], 1)
        changed[-1] = 1.0001
        return out * changed

    monkeypatch.setattr(streaming, "scaled_dot_product_attention", wrong)
    kind, values, expected_ways = MODELS[name]
    assert spoilt in expected_ways
    model = built(kind, values)
    whole = measure_decoder(model, prompts(), N)
    compare(measure_decoder(model, prompts(), N, quantities=Quantities(streamed_from=N)), whole, toeplitz=1e-4)
    assert set(ways) == {"own"}


@pytest.mark.parametrize("block", range(8))
def test_a_kernel_that_fails_in_any_one_block_is_used_nowhere(block, monkeypatch):
    """Three modules try the first of eight blocks, the last, and two others each."""
    original = streaming.scaled_dot_product_attention
    monkeypatch.setattr(streaming, "ROWS", 8)

    def wrong(*args, **keywords):
        out = original(*args, **keywords)
        changed = torch.ones(out.shape[2], 1)
        if len(changed) == N:
            changed[8 * block] = 1.0001
        return out * changed

    model = built("llama", {**decoders.COMMON, "num_hidden_layers": 3})
    for function, expected in ((original, True), (wrong, False)):
        monkeypatch.setattr(streaming, "scaled_dot_product_attention", function)
        found = Streaming(model)
        assert long_layout.find_long_layout(model, found, torch.from_numpy(prompts()[:1]))
        assert [way.fused for (_, n), way in found.ways.items() if n == N] == [expected] * 3


def test_gradients_that_are_others_are_not_used(monkeypatch, caplog):
    original = streaming.scaled_dot_product_attention

    def wrong(query, *args, **keywords):
        out = original(query, *args, **keywords)
        return out + 0.001 * (query - query.detach())

    monkeypatch.setattr(streaming, "scaled_dot_product_attention", wrong)
    model = built(*MODELS["llama"][:2])
    whole = measure_decoder(model, prompts(), N)
    with caplog.at_level(logging.INFO):
        found = measure_decoder(model, prompts(), N, quantities=Quantities(streamed_from=N))
    assert "the gradient of its prediction is another" in caplog.text
    np.testing.assert_array_equal(found.influence, whole.influence)


def test_no_matrix_of_a_head_lies_in_memory(monkeypatch):
    """Of no tensor that is made are the last two sizes both those of the prompt, but for masks, of one head."""
    monkeypatch.setattr(kernels, "DENSE_UP_TO", PROVED)
    model = built(*MODELS["llama"][:2])
    sizes = set()

    class Sizes(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), keywords=None):
            out = function(*args, **keywords or {})
            if isinstance(out, torch.Tensor):
                sizes.add(tuple(out.shape))
            return out

    with Sizes():
        measure_decoder(model, prompts(), N, quantities=Quantities(streamed_from=N, matrices_up_to=N - 1))
    assert (1, decoders.HEADS, PROVED, PROVED) in sizes
    assert (1, decoders.HEADS, N % ROWS, N) in sizes
    assert {size for size in sizes if size[-2:] == (N, N)} <= {(N, N), (1, N, N), (1, 1, N, N)}


def test_tokens_that_read_others_than_the_latest_at_the_whole_length_are_refused():
    """Each token reads its own chunk of 32, which no proof on 24 tokens shows."""
    values = {**decoders.COMMON, "head_dim": 8, "attention_chunk_size": 32, "intermediate_size_mlp": 48}
    model = built("llama4_text", {**values, "num_local_experts": 2, "interleave_moe_layer_step": 1})
    with refused("read others than the latest"):
        measure_decoder(model, prompts(), N, quantities=Quantities(streamed_from=N))


def test_recall_and_replacement_of_long_prompts_are_those_of_whole_attention(monkeypatch, ways):
    model = built(*MODELS["llama"][:2])
    contexts = recall.random_contexts(np.arange(3, 64), N, 1, 1, 0)[:, : N + 1]
    windows = [slice(place, place + 1) for place in (0, 20, N - 1)]
    others = replacement.donors(prompts(), 1, 0)

    def measured():
        scores = recall.measure_recall(model, contexts, np.arange(3, 64), 1, 2 * N)
        moved = replacement.responses(model, prompts(), windows, others, [1], 2 * N)
        return scores.probability, moved.total_variation

    whole = measured()
    assert not ways
    monkeypatch.setattr(streaming, "LONG", N)
    for found, expected in zip(measured(), whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert set(ways) == {"causal"}


@pytest.fixture(scope="module")
def smollm2():
    file = needs.packaged_smollm2()
    return opening.open_decoder(file), opening.open_tokenizer(file)[0]


@pytest.mark.all("a pretrained model passes 3,072 tokens twice, in two minutes")
@pytest.mark.parametrize("n", [1024, 2048])
def test_a_pretrained_model_is_measured_as_whole(n, smollm2, monkeypatch):
    monkeypatch.setattr(long_layout, "PROVED", 512)
    monkeypatch.setattr(streaming, "ROWS", 128)
    model, tokenizer = smollm2
    text = " ".join(path.read_text(encoding="utf-8") for path in sorted(Path("docs").glob("*.md")))
    row = np.array(tokens.encode(tokenizer, text).ids[:n])[None]
    whole, streamed = (
        measure_decoder(model, row, n, quantities=Quantities(streamed_from=least)) for least in (10**9, 1)
    )
    # Rounding grows through 30 layers of large activations (4e-5 of the largest influence at 1,024 tokens), and at
    # large distances, of which there are few pairs, the fitted kernel makes much of it.
    compare(streamed, whole, influence=1e-4, toeplitz=1e-3)
