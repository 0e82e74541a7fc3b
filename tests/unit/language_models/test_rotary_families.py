"""Families without ALiBi: the measuring pass against attention computed by hand from weights and hidden states."""

import json
import math

import numpy as np
import pytest
import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from position_bias.language_models import families, opening
from position_bias.language_models.influence import influence_and_loss
from position_bias.language_models.layout import find_layout
from position_bias.language_models.measure import Asked, measure
from position_bias.language_models.sources import WITH_ALIBI
from position_bias.recency import recency
from position_bias.running.runtime import InputError

LAYERS, HEADS, SHARED, HEAD_DIM, N, PROMPTS, VOCABULARY = 3, 4, 2, 8, 12, 5, 64
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": HEADS * HEAD_DIM,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": SHARED,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "attn_implementation": "eager",
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LONG = {  # frequencies that are set anew in every pass, and rotations that are scaled
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 4,
    "long_factor": [2.0] * 4,
    "original_max_position_embeddings": 8,
    "factor": 8.0,
}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**COMMON)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**COMMON, head_dim=12)),  # 48 coordinates of heads in a stream of 32
    "phi": lambda: PhiForCausalLM(PhiConfig(**COMMON)),  # rotates half of a head; runs the MLP beside
    "phi3": lambda: Phi3ForCausalLM(Phi3Config(**COMMON)),  # one fused projection
    "phi3, long": lambda: Phi3ForCausalLM(
        Phi3Config(**COMMON, rope_parameters=LONG, original_max_position_embeddings=8)
    ),
}
BY_HAND = [
    (name, positions) for name in MODELS for positions in ("own", "none") if (name, positions) != ("phi3, long", "own")
]


def small(name):
    torch.manual_seed(3)
    model = MODELS[name]().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for key, parameter in model.named_parameters():  # fresh biases are 0 and norms 1: a wrong layout would go unseen
        if key.endswith("bias"):
            parameter.normal_(0, 0.3, generator=generator)
        elif "norm" in key:
            parameter.uniform_(0.5, 1.5, generator=generator)
    return model


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
    small(name).save_pretrained(tmp_path)
    model = opening.open_decoder(tmp_path, positions=positions)
    measured = measure(model, prompts, 2 * N, asked=Asked(content=True, gram=True))
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


@pytest.mark.parametrize("name", list(MODELS)[:4])
def test_positions_that_are_turned_off_change_what_is_measured(name, prompts, tmp_path):
    small(name).save_pretrained(tmp_path)
    with_them, without = (
        measure(opening.open_decoder(tmp_path, positions=kind), prompts, 64) for kind in ("own", "none")
    )
    assert np.abs(with_them.attention - without.attention).max() > 1e-2


@pytest.mark.parametrize("name", list(MODELS)[:4])
def test_influence_agrees_with_finite_differences(name, prompts):
    model = small(name).double()
    tokens = torch.from_numpy(prompts[:1])
    embeddings = model.get_input_embeddings()(tokens)
    # a softmax inside the model is float32 whatever its weights: smaller steps would drown in its rounding
    step, size = 2e-3, embeddings[0].numel()
    shifts = step * torch.eye(size, dtype=torch.double).unflatten(-1, embeddings.shape[1:])
    with torch.no_grad():
        target = model(inputs_embeds=embeddings).logits[0, -1].argmax()
        up, down = (
            model(inputs_embeds=embeddings + sign * shifts, logits_to_keep=1).logits[:, -1].softmax(-1)[:, target]
            for sign in (1, -1)
        )
    expected = ((up - down) / (2 * step)).view(N, -1).norm(dim=-1)
    np.testing.assert_allclose(
        influence_and_loss(model, tokens, 1)[0][0].numpy(), expected.numpy(), rtol=2e-3, atol=1e-6
    )


@pytest.mark.parametrize("name", MODELS)
def test_alibi_does_not_apply(name):
    config = small(name).config
    assert families.effective_slopes(config) is None
    assert families.sizes(config) == (LAYERS, HEADS, 12 if name == "qwen3" else HEAD_DIM)


@pytest.mark.parametrize("family", WITH_ALIBI)
def test_alibi_cannot_be_turned_off(family, tmp_path):
    architecture = {"layers": 1, "heads": 2, "hidden": 8, "initializer_range": 0.1}
    families.build(family, architecture, VOCABULARY, N, 0).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="has no rotary positions that could be turned off; set positions to own"):
        opening.open_decoder(tmp_path, positions="none")


# Directories as the hub has them

EVERY = [*WITH_ALIBI, *list(MODELS)[:4]]


def of_name(name):
    if name in MODELS:
        return small(name)
    architecture = {"layers": 2, "heads": 4, "hidden": 32, "initializer_range": 0.3}
    return families.build(name, architecture, VOCABULARY, context=N, seed=0).eval().requires_grad_(False)


def written(name, directory, **options):
    of_name(name).save_pretrained(directory, **options)
    return directory


@pytest.mark.parametrize("name", EVERY)
def test_shards_and_a_mapping_to_devices_change_nothing(name, prompts, tmp_path):
    whole = opening.open_decoder(written(name, tmp_path / "whole"))
    shards = written(name, tmp_path / "shards", max_shard_size="10KB")
    assert len(list(shards.glob("*.safetensors"))) > 2
    body = whole.base_model_prefix
    expected = measure(whole, prompts, 2 * N, asked=Asked(gram=True))
    for opened in (opening.open_decoder(shards), opening.open_decoder(shards, {body: "cpu", "lm_head": "cpu"})):
        assert all(torch.equal(value, whole.state_dict()[key]) for key, value in opened.state_dict().items())
        found = measure(opened, prompts, 2 * N, asked=Asked(gram=True))
        for quantity in ("influence", "recency", "attention", "gram"):  # sums depend on where in memory weights lie
            np.testing.assert_allclose(getattr(found, quantity), getattr(expected, quantity), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_hooks_that_move_tensors_between_devices_are_measured_through(name, prompts):
    """What a model over several GPUs has around its blocks; here every device is the CPU."""
    model = of_name(name)
    expected = measure(model, prompts, 2 * N)
    blocks = [layer.block for layer in find_layout(model, torch.from_numpy(prompts[:1])).layers]
    for block in blocks:
        add_hook_to_module(block, AlignDevicesHook("cpu", io_same_device=True))
    hooked = [block.forward for block in blocks]
    for recomputing in (False, True):
        found = measure(model, prompts, 2 * N, activation_checkpointing=recomputing)
        np.testing.assert_allclose(found.influence, expected.influence, rtol=1e-5)
        np.testing.assert_array_equal(found.mixing["token"], expected.mixing["token"])
        assert [block.forward for block in blocks] == hooked


def test_a_model_that_spills_over_its_gpus_is_refused(tmp_path, monkeypatch):
    """What does not fit would be moved to and fro in every pass."""
    real = opening.AutoModelForCausalLM.from_pretrained

    def spilled(**options):
        assert options.pop("device_map") == "balanced"
        model, loading = real(**options)
        model.hf_device_map = {"model.embed_tokens": 0, "model.layers": 1, "lm_head": "cpu"}
        return model, loading

    monkeypatch.setattr(opening.AutoModelForCausalLM, "from_pretrained", spilled)
    with pytest.raises(InputError, match=r"does not fit on its GPUs; give it more of them \(gpus\)$"):
        opening.open_decoder(written("llama", tmp_path), "balanced")


def test_a_missing_shard_is_named(tmp_path):
    shards = written("llama", tmp_path, max_shard_size="10KB")
    gone = sorted(shards.glob("*.safetensors"))[1]
    gone.unlink()
    with pytest.raises(InputError, match=rf"lacks {gone.name}; build or copy the whole directory again"):
        opening.open_decoder(shards)


@pytest.mark.parametrize("name", ["mpt", "llama"])
def test_code_beside_a_model_is_neither_run_nor_asked_about(name, tmp_path, monkeypatch):
    directory = written(name, tmp_path)
    config = json.loads((directory / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "remote.Config", "AutoModelForCausalLM": "remote.Model"}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "remote.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")

    def ask(*_):
        raise AssertionError("a question was asked")

    monkeypatch.setattr("builtins.input", ask)
    assert type(opening.open_decoder(directory)).__module__.startswith(f"transformers.models.{name}.")
    assert not (tmp_path / "executed").exists()


def test_a_type_that_only_its_own_code_knows_is_refused(tmp_path):
    described = {"model_type": "remote", "auto_map": {"AutoConfig": "remote.Config"}}
    (tmp_path / "config.json").write_text(json.dumps(described))
    (tmp_path / "remote.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(InputError, match=r"a 'remote' model, which needs code of its own that is not run; [^\n]*$"):
        opening.open_decoder(tmp_path)
    assert not (tmp_path / "executed").exists()
