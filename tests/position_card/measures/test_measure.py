"""The measuring pass against an independent reading of the same models: their weights, hidden states and attentions."""

import logging
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import GptOssConfig, GptOssForCausalLM, ModernBertDecoderConfig, ModernBertDecoderForCausalLM

from position_card.measures import measure, quantities
from position_card.measures.measure import Quantities, measure_decoder
from position_card.measures.quantities import loss
from position_card.measures.recency import recency
from position_card.models import families, opening
from position_card.probe import forward
from tests import small_decoders
from tests.refusals import refused
from tools import decoders

LAYERS, HEADS, HEAD_DIM, N, PROMPTS = 3, 4, 4, 12, 5
FAMILIES = small_decoders.WITH_ALIBI
EVERYTHING = Quantities(content=True, gram=True, apart=True)


def small(family, heads=HEADS):
    size = {"layers": LAYERS, "heads": heads, "hidden": heads * HEAD_DIM}
    model = small_decoders.build(family, 64, **size, seed=3, initializer_range=0.4).requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():  # fresh biases are zero: a wrong layout would go unseen
        if name.endswith("bias"):
            parameter.normal_(0, 0.3, generator=generator)
    return model


@pytest.fixture(scope="module")
def prompts():
    return np.random.default_rng(1).integers(0, 64, (PROMPTS, N))


def norm_and_projection(model, layer):
    """The norm before attention, fused weight and bias as [3, H, d, hidden] and [3, H, d], and the output map."""
    body = model.transformer
    if model.config.model_type == "mpt":
        block = body.blocks[layer]
        weight = block.attn.Wqkv.weight.view(3, -1, HEAD_DIM, model.config.d_model)
        return block.norm_1, weight, torch.zeros(weight.shape[:3]), block.attn.out_proj
    block = body.h[layer]
    fused = block.self_attention.query_key_value
    heads = fused.out_features // (3 * HEAD_DIM)
    weight = fused.weight.view(heads, 3, HEAD_DIM, -1).transpose(0, 1)
    bias = fused.bias.view(heads, 3, HEAD_DIM).transpose(0, 1)
    return block.input_layernorm, weight, bias, block.self_attention.dense


@pytest.fixture(scope="module", params=FAMILIES)
def read(request, prompts):
    """Residual stream, content logits and attention update of every layer, read without a hook."""
    model = small(request.param)
    with torch.no_grad():
        out = model(torch.from_numpy(prompts), output_hidden_states=True, output_attentions=True, use_cache=False)
        streams, logits, updates, cosines = [], [], [], []
        for layer in range(LAYERS):
            norm, weight, bias, output = norm_and_projection(model, layer)
            stream = out.hidden_states[layer]
            query, key, value = torch.einsum("khdm,bim->kbhid", weight, norm(stream)) + bias[:, None, :, None]
            logits.append(query @ key.mT / math.sqrt(HEAD_DIM))
            updates.append(output((out.attentions[layer] @ value).transpose(1, 2).flatten(2)))
            streams.append(stream)
            inputs = norm(stream).double()
            lengths = inputs.norm(dim=-1)
            cosines.append(inputs @ inputs.mT / (lengths[:, :, None] * lengths[:, None]))
    return {
        "model": model,
        "stream": torch.stack(streams, 1).double().numpy(),  # [N, L, n, hidden]
        "update": torch.stack(updates, 1).double().numpy(),
        "logits": torch.stack(logits, 1).double().numpy(),  # [N, L, H, n, n]
        "attention": torch.stack(out.attentions, 1).double().numpy(),
        "cosines": torch.stack(cosines, 1).numpy(),  # [N, L, n, n]
        "measured": measure_decoder(model, prompts, 2 * N, quantities=EVERYTHING),  # batches of 2, 2 and 1
    }


def test_lambda_is_a_share_of_norms_in_every_layer(read):
    for estimator, start in (("frobenius", 0), ("frobenius-apart", 1)):  # without the first token
        x, a = (np.linalg.norm(read[name][:, :, start:], axis=(2, 3)) for name in ("stream", "update"))
        np.testing.assert_allclose(read["measured"].mixing[estimator], a / (x + a), rtol=2e-5)
    x, a = (np.linalg.norm(read[name], axis=3) for name in ("stream", "update"))
    np.testing.assert_allclose(read["measured"].mixing["token"], (a / (x + a)).mean(2), rtol=2e-5)


def test_content_is_the_mean_of_logits_and_of_their_diagonal(read):
    logits, measured = read["logits"], read["measured"]
    below = np.tril(np.ones((N, N), bool), -1)
    np.testing.assert_allclose(measured.content, logits.mean(0), atol=2e-5)
    np.testing.assert_allclose(measured.diagonal, logits.diagonal(axis1=-2, axis2=-1).mean(-1), atol=2e-5)
    np.testing.assert_allclose(measured.below, logits[..., below].mean(-1), atol=2e-5)


def test_the_gram_holds_cosines_of_what_attention_reads(read):
    np.testing.assert_allclose(read["measured"].gram, read["cosines"].mean(0), atol=2e-6)
    np.testing.assert_allclose(read["measured"].recency, recency(read["cosines"]), atol=2e-6)
    assert np.abs(read["measured"].recency[:, 1:]).min() > 1e-5


def test_the_loss_of_a_large_vocabulary_is_right_to_rounding():
    """A sum over classes that are not neighbours in memory would be 4e-4 off here."""
    logits = 3 * torch.randn(1, 5, 262_144, generator=torch.Generator().manual_seed(0))
    tokens = torch.arange(5)[None]

    class Model(torch.nn.Module):
        def forward(self, *_args, **_named):
            return SimpleNamespace(logits=logits)

    right = logits.double().log_softmax(-1)[:, :-1].gather(-1, tokens[:, 1:, None])[..., 0]
    np.testing.assert_allclose(loss(Model(), tokens, 4), -right.mean(1), atol=3e-5, rtol=0)


@pytest.mark.parametrize("first", [1, 3])
def test_losses_of_all_tokens_are_logarithms_of_their_probabilities(read, prompts, first, monkeypatch):
    monkeypatch.setattr(quantities, "POSITIONS", 4)
    found = measure_decoder(read["model"], prompts, 2 * N, quantities=Quantities(influence=False, losses_from=first))
    with torch.no_grad():
        logits = read["model"](torch.from_numpy(prompts)).logits.double()
    right = logits.log_softmax(-1)[:, :-1].gather(-1, torch.from_numpy(prompts)[:, 1:, None])[..., 0]
    np.testing.assert_allclose(found.losses, -right[:, first - 1 :], atol=1e-5)
    np.testing.assert_allclose(found.loss, -right[:, first - 1 :].mean(1), atol=1e-5)
    assert read["measured"].losses is None


@pytest.mark.parametrize("name", ["llama", "gemma2", "cohere2", "opt", "gpt2", "bloom", "qwen3_moe"])
def test_losses_come_from_the_pass_of_influence(name, prompts, monkeypatch):
    """A soft cap and a factor of the logits are the model's own; blocks of positions do not divide the prompt."""
    expected = quantities.losses(decoders.small(name), torch.from_numpy(prompts))
    monkeypatch.setattr(quantities, "POSITIONS", 5)
    monkeypatch.setattr(quantities, "losses", None)  # the pass of its own
    found = measure_decoder(decoders.small(name), prompts, 2 * N, quantities=Quantities(losses_from=1))
    np.testing.assert_allclose(found.losses, expected, atol=1e-5)


@pytest.mark.parametrize(("most", "first"), [(7, 1), (7, 3), (3, 1), (1, 2)])
@pytest.mark.parametrize("name", ["llama", "modernbert-decoder"])
def test_losses_of_evenly_spaced_tokens_are_those_of_all(name, most, first, prompts, monkeypatch):
    """From the pass of influence or not, and with the latest tokens, which are compared, among them or not."""
    monkeypatch.setattr(measure, "MOST_LOSSES", most)
    model = modernbert() if name == "modernbert-decoder" else decoders.small(name)
    found = measure_decoder(model, prompts, 2 * N, quantities=Quantities(losses_from=first))
    apart = math.ceil((N - first) / most)
    assert found.loss_positions.tolist() == sorted(range(N - 1, first - 1, -apart))
    expected = quantities.losses(model, torch.from_numpy(prompts))[:, found.loss_positions - 1]
    np.testing.assert_allclose(found.losses, expected, atol=1e-5)
    np.testing.assert_allclose(found.loss, expected.mean(1), atol=1e-5)


@pytest.mark.parametrize("fault", ["other states", "no states", "an error"])
def test_losses_take_a_pass_where_the_head_gives_others(read, prompts, fault, monkeypatch, caplog):
    asked = Quantities(influence=False, losses_from=2)
    expected = quantities.losses(read["model"], torch.from_numpy(prompts))[:, 1:]

    def spoilt(model, tokens, states, positions):
        if fault == "an error":
            raise IndexError
        return original(model, tokens, (1.01 * states[0],), positions)

    original = forward.logits_of_states
    if fault == "no states":
        monkeypatch.setattr(type(read["model"]), "get_decoder", lambda model: model)
    else:
        monkeypatch.setattr(forward, "logits_of_states", spoilt)
    with caplog.at_level(logging.INFO):
        found = measure_decoder(read["model"], prompts, 2 * N, quantities=asked)
    assert "losses take a pass of their own" in caplog.text
    assert ("no hidden states below its head" in caplog.text) == (fault == "no states")
    np.testing.assert_allclose(found.losses, expected, atol=1e-5)


def modernbert():
    size = small_decoders.SIZE | {"vocab_size": 64, "pad_token_id": 0, "local_attention": 10}
    return ModernBertDecoderForCausalLM(ModernBertDecoderConfig(**size)).eval()


def test_losses_take_a_pass_where_the_decoder_yields_no_output_object(prompts, caplog):
    """The decoder of ModernBERT yields a bare tensor, of which no states are collected."""
    model = modernbert()
    expected = quantities.losses(model, torch.from_numpy(prompts))
    with caplog.at_level(logging.INFO):
        found = measure_decoder(model, prompts, 2 * N, quantities=Quantities(losses_from=1))
    assert "no hidden states below its head" in caplog.text
    np.testing.assert_allclose(found.losses, expected, atol=1e-5)


def test_prompts_keep_their_documents(read, prompts):
    documents = np.array([4, 0, 0, 1, 4])
    assert measure_decoder(read["model"], prompts, N, documents=documents).documents is documents
    assert read["measured"].documents.tolist() == list(range(PROMPTS))


def test_without_the_backward_pass_the_rest_is_measured_alike(read, prompts, monkeypatch):
    def backward(*_):
        raise AssertionError("there was a backward pass")

    monkeypatch.setattr(torch.autograd, "grad", backward)
    found = measure_decoder(read["model"], prompts, 2 * N, quantities=Quantities(influence=False))
    assert found.influence is None
    assert set(found.mixing) == {"frobenius", "token"}
    for name in ("loss", "attention", "by_distance", "diagonal", "below"):
        np.testing.assert_allclose(getattr(found, name), getattr(read["measured"], name), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("heads", [4, 6])
@pytest.mark.parametrize("family", FAMILIES)
def test_content_and_slopes_rebuild_the_attention_of_every_head(family, heads, prompts):
    """The logits of the paper, content - slope * distance, are those that the model's softmax sees."""
    model = small(family, heads)
    content = measure_decoder(model, prompts[:1], N, quantities=EVERYTHING).content.astype(float)  # of one prompt
    distance = np.arange(N)[:, None] - np.arange(N)
    logits = content - families.effective_slopes(model.config)[:, None, None] * distance
    weights = np.where(distance >= 0, np.exp(logits), 0)
    with torch.no_grad():
        out = model(torch.from_numpy(prompts[:1]), output_attentions=True, use_cache=False)
    rebuilt = weights / weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(rebuilt, torch.cat(out.attentions).numpy(), atol=2e-6)


def test_batches_do_not_change_what_is_measured(prompts):
    model = small("bloom")
    one, all_at_once = (measure_decoder(model, prompts, tokens, quantities=EVERYTHING) for tokens in (1, PROMPTS * N))
    for name in ("loss", "diagonal", "below", "influence", "content", "attention", "gram", "recency"):
        np.testing.assert_allclose(getattr(one, name), getattr(all_at_once, name), atol=1e-5)
    np.testing.assert_allclose(one.mixing["frobenius"], all_at_once.mixing["frobenius"], rtol=1e-5)


def test_long_prompts_keep_no_matrices(prompts):
    model = small("mpt")
    short = measure_decoder(model, prompts, N, quantities=replace(EVERYTHING, matrices_up_to=N))
    long = measure_decoder(model, prompts, N, quantities=replace(EVERYTHING, matrices_up_to=N - 1))
    assert short.content is not None
    assert long.content is long.attention is long.gram is None
    np.testing.assert_array_equal(long.below, short.below)
    np.testing.assert_array_equal(long.recency, short.recency)
    np.testing.assert_allclose(long.by_distance, short.by_distance, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_weights_measure_the_same_to_their_precision(family, prompts, tmp_path):
    model = small(family)
    model.save_pretrained(tmp_path)
    exact = measure_decoder(model, prompts, N)
    coarse = measure_decoder(opening.open_decoder(tmp_path, precision="bfloat16"), prompts, N)
    for values in (coarse.influence, coarse.diagonal):
        assert values.dtype == np.float32
        assert (values.view(np.uint32) & 0xFFFF).any()  # bits that bfloat16 does not have
    exact_shares, coarse_shares = (of.influence / of.influence.sum(-1, keepdims=True) for of in (exact, coarse))
    assert 0 < np.abs(coarse_shares - exact_shares).max() < 0.1 / N  # a tenth of what a token has on average
    np.testing.assert_allclose(coarse.mixing["frobenius"], exact.mixing["frobenius"], rtol=0.02)
    np.testing.assert_allclose(coarse.diagonal, exact.diagonal, atol=0.1)
    assert np.abs(coarse.diagonal - exact.diagonal).max() > 0


def test_prompts_that_are_too_long_or_short_are_refused(prompts):
    with refused("lengths.*.tokens = 2049", "'mpt'", 2048):
        measure_decoder(small("mpt"), np.zeros((1, 2049), int), N)
    with refused("lengths.*.tokens = 8"):
        measure_decoder(small("bloom"), prompts[:, :8], N, quantities=EVERYTHING)


def test_no_hook_stays_behind_after_an_error(prompts):
    model = small("bloom")
    late = np.concatenate([prompts, prompts + 1000])  # the layout is found on the first prompt
    with pytest.raises(IndexError):
        measure_decoder(model, late, N)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert model.config._attn_implementation == "eager"


def test_an_infinite_value_names_its_quantity_and_prompt(prompts):
    """Of the last prompt alone: the layout was found on the first."""
    model = small("bloom")
    projection, calls = model.transformer.h[1].self_attention.dense, []

    def spoil(_module, _args, out):
        calls.append(len(out))
        return out + float("inf") if len(calls) > 3 and len(out) == 1 else out

    projection.register_forward_hook(spoil)
    with refused("lambda (frobenius) of prompt 4"):
        measure_decoder(model, prompts, 2 * N)


def test_attention_that_learned_sinks_take_goes_to_no_token(prompts):
    """Of gpt-oss, whose own weights say what is left."""
    settings = small_decoders.SIZE | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5}
    prompts = prompts % small_decoders.VOCABULARY
    torch.manual_seed(0)
    model = GptOssForCausalLM(GptOssConfig(**settings, head_dim=8)).eval()
    for name, weight in model.named_parameters():
        if name.endswith("sinks"):
            weight.data.normal_(1, 1)
    with torch.no_grad():
        weights = model(torch.from_numpy(prompts), output_attentions=True, use_cache=False).attentions
    expected = torch.stack([1 - layer.double().sum(-1).mean((1, 2)) for layer in weights], 1)
    found = measure_decoder(model, prompts, 100, quantities=Quantities(influence=False))
    assert expected.min() > 0.1
    np.testing.assert_allclose(found.no_token, expected.numpy(), atol=1e-6)
    ordinary = measure_decoder(small_decoders.llama(), prompts, 100, quantities=Quantities(influence=False))
    assert ordinary.no_token is None
