"""Families without ALiBi: the measuring pass against attention computed by hand from weights and hidden states."""

import math

import numpy as np
import pytest
import torch

from position_card.measures.measure import Quantities, measure_decoder
from position_card.measures.recency import recency
from position_card.models import opening
from tests.refusals import refused
from tools import decoders

LAYERS, HEADS, SHARED, HEAD_DIM = decoders.LAYERS, decoders.HEADS, decoders.SHARED_HEADS, decoders.HEAD_DIM
N, PROMPTS, VOCABULARY = 12, 5, decoders.VOCABULARY
LONG = "phi3, long contexts"
# qwen3 has 48 coordinates of heads in a stream of 32, phi turns half of a head, and phi3 has one fused projection
MODELS = ("llama", "qwen3", "phi", "phi3", LONG)
EVERY = ("bloom", "mpt", "falcon, ALiBi", *MODELS[:4])
BY_HAND = [(name, positions) for name in MODELS for positions in ("own", "none") if (name, positions) != (LONG, "own")]


@pytest.fixture(scope="module")
def prompts():
    return np.random.default_rng(1).integers(3, VOCABULARY, (PROMPTS, N))


def projected(config, attention, inputs):
    """Queries [B, H, n, d], keys and values [B, shared, n, d] before any rotation."""
    width = getattr(config, "head_dim", None) or HEAD_DIM
    if config.model_type == "phi3":
        fused = attention.qkv_proj(inputs)
        parts = fused.split([HEADS * width, SHARED * width, SHARED * width], dim=-1)
    else:
        parts = [getattr(attention, f"{kind}_proj")(inputs) for kind in "qkv"]
    query, key, value = (part.unflatten(-1, (-1, width)).transpose(1, 2) for part in parts)
    if config.model_type == "qwen3":
        query, key = (rms(part, norm) for part, norm in ((query, attention.q_norm), (key, attention.k_norm)))
    return query, key, value


def rms(values, norm):
    return values / (values.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).sqrt() * norm.weight


def rotated(values, share):
    """Pairs (i, i + r/2) of the first r coordinates as complex numbers, turned by position * 10000^(-2i/r)."""
    turned = int(values.shape[-1] * share)
    half = turned // 2
    angles = torch.arange(N)[:, None] * 10000.0 ** (-2 * torch.arange(half) / turned)
    numbers = torch.complex(values[..., :half], values[..., half:turned]) * torch.polar(torch.ones(N, half), angles)
    return torch.cat([numbers.real, numbers.imag, values[..., turned:]], -1)


def by_hand(model, stream, layer, positions):
    """The input of attention, its weights [B, H, n, n] and what it adds to the residual stream."""
    block = model.model.layers[layer]
    inputs = block.input_layernorm(stream)
    query, key, value = projected(model.config, block.self_attn, inputs)
    if positions == "own":
        share = 0.5 if model.config.model_type == "phi" else 1
        query, key = rotated(query, share), rotated(key, share)
    key, value = (part.repeat_interleave(HEADS // SHARED, dim=1) for part in (key, value))
    logits = query @ key.mT / math.sqrt(query.shape[-1])
    weights = logits.masked_fill(torch.ones(N, N).triu(1).bool(), -torch.inf).softmax(-1)
    output = block.self_attn.dense if model.config.model_type == "phi" else block.self_attn.o_proj
    return inputs, weights, output((weights @ value).transpose(1, 2).flatten(2))


@pytest.mark.parametrize(("name", "positions"), BY_HAND)
def test_what_is_measured_is_what_the_weights_say(name, positions, prompts, tmp_path):
    decoders.small(name).save_pretrained(tmp_path)
    model = opening.open_decoder(tmp_path, positions=positions)
    measured = measure_decoder(model, prompts, 2 * N, quantities=Quantities(content=True, gram=True))
    with torch.no_grad():
        streams = model(torch.from_numpy(prompts), output_hidden_states=True, use_cache=False).hidden_states
        for layer in range(LAYERS):
            inputs, weights, update = by_hand(model, streams[layer], layer, positions)
            x, a = (part.double().norm(dim=-1).numpy() for part in (streams[layer], update))
            of_whole = (np.linalg.norm(part, axis=1) for part in (x, a))
            whole_x, whole_a = of_whole
            np.testing.assert_allclose(measured.mixing["frobenius"][:, layer], whole_a / (whole_x + whole_a), rtol=5e-5)
            np.testing.assert_allclose(measured.mixing["token"][:, layer], (a / (x + a)).mean(1), rtol=5e-5)
            np.testing.assert_allclose(measured.attention[layer], weights.mean((0, 1)).numpy(), atol=5e-6)
            unit = torch.nn.functional.normalize(inputs.double(), dim=-1)
            cosines = (unit @ unit.mT).numpy()
            np.testing.assert_allclose(measured.gram[layer], cosines.mean(0), atol=2e-6)
            np.testing.assert_allclose(measured.recency[:, layer], recency(cosines[:, None])[:, 0], atol=2e-6)
    assert measured.content is measured.diagonal is measured.below is None


@pytest.mark.parametrize("family", EVERY[:3])
def test_alibi_cannot_be_turned_off(family, tmp_path):
    decoders.small(family).save_pretrained(tmp_path)
    with refused("positions"):
        opening.open_decoder(tmp_path, positions="none")


# Directories as the hub has them


def written(name, directory, **options):
    decoders.small(name).save_pretrained(directory, **options)
    return directory


@pytest.mark.parametrize("name", EVERY)
def test_shards_and_a_mapping_to_devices_change_nothing(name, prompts, tmp_path):
    whole = opening.open_decoder(written(name, tmp_path / "whole"))
    shards = written(name, tmp_path / "shards", max_shard_size="10KB")
    assert len(list(shards.glob("*.safetensors"))) > 2
    body = whole.base_model_prefix
    expected = measure_decoder(whole, prompts, 2 * N, quantities=Quantities(gram=True))
    for opened in (opening.open_decoder(shards), opening.open_decoder(shards, {body: "cpu", "lm_head": "cpu"})):
        assert all(torch.equal(value, whole.state_dict()[key]) for key, value in opened.state_dict().items())
        found = measure_decoder(opened, prompts, 2 * N, quantities=Quantities(gram=True))
        for quantity in ("influence", "recency", "attention", "gram"):  # sums depend on where in memory weights lie
            np.testing.assert_allclose(getattr(found, quantity), getattr(expected, quantity), rtol=1e-5, atol=1e-6)


def test_a_model_that_spills_over_its_gpus_is_refused(tmp_path, monkeypatch):
    """What does not fit would be moved to and fro in every pass."""
    real = opening.AutoModelForCausalLM.from_pretrained

    def spilled(**options):
        assert options.pop("device_map") == "balanced"
        model, loading = real(**options)
        model.hf_device_map = {"model.embed_tokens": 0, "model.layers": 1, "lm_head": "cpu"}
        return model, loading

    monkeypatch.setattr(opening.AutoModelForCausalLM, "from_pretrained", spilled)
    with refused("(gpus)"):
        opening.open_decoder(written("llama", tmp_path), "balanced")


def test_a_missing_shard_is_named(tmp_path):
    shards = written("llama", tmp_path, max_shard_size="10KB")
    gone = sorted(shards.glob("*.safetensors"))[1]
    gone.unlink()
    with refused(gone.name):
        opening.open_decoder(shards)
