"""What the layout of a model is refused for, and that looking for it leaves nothing behind."""

import pytest
import torch
from transformers import AutoModelForCausalLM, BertConfig, GPT2Config, Lfm2Config, LlamaConfig, MambaConfig
from transformers.models.llama import modeling_llama
from transformers.models.llama4.configuration_llama4 import Llama4TextConfig

from position_card.core.runtime import InputError
from position_card.probe import capture
from position_card.probe.layout import find_layout
from tests.refusals import refused
from tools import decoders

TOKENS = torch.arange(3, 3 + decoders.TOKENS)[None]


def built(config):
    torch.manual_seed(3)
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().requires_grad_(False)


def refuse(model, *named):
    with refused(f"'{model.config.model_type}'", *named):
        find_layout(model, TOKENS)


def test_layers_without_softmax_attention_are_named():
    kinds = ["conv", "full_attention", "conv"]
    model = built(Lfm2Config(**decoders.COMMON, layer_types=kinds))
    refuse(model, "layers 0, 2 (Lfm2DecoderLayer)")


def test_a_state_space_model_has_no_attention():
    model = built(MambaConfig(vocab_size=64, hidden_size=16, num_hidden_layers=2, state_size=4, pad_token_id=None))
    refuse(model, "softmax attention")


def test_a_weight_that_is_not_finite_is_named():
    model = decoders.small("llama")
    model.model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    refuse(model, "model.layers.1.mlp.up_proj.weight")


def test_logits_beyond_a_coarse_precision_say_which_one_to_ask_for():
    model = decoders.small("gpt2")
    model.transformer.ln_f.weight.fill_(3e38)
    refuse(model, "logits")
    refuse(model.bfloat16(), "logits", "precision: float32")


def test_tokens_that_read_later_ones_are_no_decoder():
    config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
    refuse(built(config), "no causal decoder")


def test_attention_in_chunks_is_no_window():
    config = Llama4TextConfig(
        **decoders.COMMON, head_dim=8, intermediate_size_mlp=48, num_local_experts=2, attention_chunk_size=5
    )
    model = built(config)
    refuse(model, "length")
    assert find_layout(model, TOKENS[:, :5]).layers[0].window is None


def test_a_block_that_adds_what_nothing_in_it_yields_is_named():
    model = decoders.small("llama")
    model.model.layers[1].register_forward_hook(lambda _module, _args, out: 1.01 * out)
    refuse(model, "block 1 (LlamaDecoderLayer)")


def test_embeddings_that_are_not_all_that_a_model_makes_of_tokens_are_found():
    model = decoders.small("llama")

    model.model.register_forward_pre_hook(halve_what_is_given, with_kwargs=True)
    refuse(model, "embeddings")


def halve_what_is_given(_module, args, named):
    given = named["inputs_embeds"]
    return args, named | {"inputs_embeds": None if given is None else given / 2}


def test_other_attention_than_a_softmax_of_products_shows_no_kernel():
    """Gemma 2 caps its logits."""
    assert not find_layout(decoders.small("gemma2"), TOKENS).products
    uncapped = built(type(decoders.small("gemma2").config)(**decoders.SMALL["gemma2"], attn_logit_softcapping=None))
    assert find_layout(uncapped, TOKENS).products


def test_a_rotation_that_something_follows_is_not_taken_for_the_last_word():
    """NanoChat norms queries and keys after it turned them."""
    from transformers import NanoChatConfig

    layout = find_layout(built(NanoChatConfig(**decoders.COMMON)), TOKENS)
    assert layout.products
    assert not layout.rotary


def test_only_some_layers_may_turn():
    layout = find_layout(decoders.small("smollm3"), TOKENS)
    assert [layer.rotation is not None for layer in layout.layers] == [True, False, True]


def test_a_window_longer_than_the_prompt_is_none():
    model = decoders.small("mistral")
    assert [layer.window for layer in find_layout(model, TOKENS).layers] == [5, 5, 5]
    assert [layer.window for layer in find_layout(model, TOKENS[:, :5]).layers] == [None] * 3


@pytest.mark.parametrize("name", ["llama", "gemma3_text", "gpt_neox", "bloom", "granite", "qwen3"])
def test_coarse_precision_finds_the_same(name):
    exact, coarse = (find_layout(decoders.small(name).to(dtype), TOKENS) for dtype in (torch.float32, torch.bfloat16))
    assert coarse.products == exact.products
    for one, other in zip(exact.layers, coarse.layers, strict=True):
        assert type(one.update.module) is type(other.update.module)
        assert (one.update.order, one.window) == (other.update.order, other.window)
        assert other.update.scale == pytest.approx(one.update.scale, rel=0.02)
        assert (one.rotation is None) == (other.rotation is None)


@pytest.mark.parametrize("name", ["llama", "bloom"])
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_stays_behind(name, fails, monkeypatch):
    model = decoders.small(name)
    rotate = modeling_llama.apply_rotary_pos_emb
    if fails:
        monkeypatch.setattr("position_card.probe.residual.find_update", lambda *_: None)
        with pytest.raises(InputError):
            find_layout(model, TOKENS)
    else:
        find_layout(model, TOKENS)
    assert model.config._attn_implementation == "eager"
    assert modeling_llama.apply_rotary_pos_emb is rotate
    assert not capture._listeners
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_what_is_watched_is_the_attention_of_the_model_to_the_bit():
    for name in ("gemma2", "gpt2", "mistral"):
        model = decoders.small(name)
        layers = find_layout(model, TOKENS).layers
        seen = []
        with torch.no_grad():
            expected = model(TOKENS, use_cache=False).logits
            with capture.heard(model, {layer.attention: seen.append for layer in layers}):
                assert torch.equal(model(TOKENS, use_cache=False).logits, expected)
        assert len(seen) == len(layers)


def test_a_model_is_left_as_eager_as_it_was():
    model = built(GPT2Config(**decoders.COMMON))
    model.set_attn_implementation("sdpa")
    with capture.heard(model, {}):
        assert model.config._attn_implementation == capture.WATCHED
    assert model.config._attn_implementation == "sdpa"


def test_heads_of_different_numbers_are_refused():
    model = built(LlamaConfig(**decoders.COMMON))
    attention = model.model.layers[1].self_attn
    attention.q_proj = torch.nn.Linear(32, 16, bias=False)
    attention.o_proj = torch.nn.Linear(16, 32, bias=False)
    attention.num_key_value_groups = 1
    refuse(model, "(2, 4)")
