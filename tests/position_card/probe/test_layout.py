"""What the layout of a model is refused for, and that looking for it leaves nothing behind."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from transformers import AutoModelForCausalLM, BertConfig, Lfm2Config, LlamaConfig, MambaConfig
from transformers.modeling_utils import AttentionInterface
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.llama import modeling_llama
from transformers.models.llama4.configuration_llama4 import Llama4TextConfig

from position_card.core.runtime import InputError
from position_card.probe import capture, layout
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


def test_a_model_that_fails_by_itself_says_so_in_one_line():
    """XMOD wants to know the language; Gemma 4 looks up tokens of embeddings, of which some are none of its own."""
    config = {**decoders.COMMON, "is_decoder": True, "languages": ["en"], "pad_token_id": 0}
    refuse(built(CONFIG_MAPPING["xmod"](**config)), "given tokens", "ValueError", "language")
    model = decoders.small("llama")
    model.register_forward_pre_hook(fail_without_tokens, with_kwargs=True)
    refuse(model, "given embeddings", "IndexError")


def fail_without_tokens(_module, args, named):
    if not args:
        raise IndexError("index out of range in self")


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
            with capture.listening({layer.attention: seen.append for layer in layers}):
                assert torch.equal(model(TOKENS, use_cache=False).logits, expected)
        assert len(seen) == len(layers)


def handed_out():
    return vars(AttentionInterface)["get_interface"]


def test_a_heard_model_keeps_the_name_of_its_attention():
    """Sparse indexers ask for it."""
    model, before, named = decoders.small("llama"), handed_out(), []
    attention = model.model.layers[0].self_attn
    with capture.listening({attention: lambda _: named.append(attention.config._attn_implementation)}):
        model(TOKENS)
    assert named == ["eager"]
    assert handed_out() is before


def test_the_interface_is_as_it_was_when_the_last_context_closes():
    model, before = decoders.small("llama"), handed_out()
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    with pytest.raises(KeyboardInterrupt), capture.listening({first: [].append}):
        with capture.listening({second: [].append}):
            pass
        assert handed_out() is not before
        with refused("measured already"), capture.listening({first: [].append}):
            pytest.fail("it was heard twice")
        raise KeyboardInterrupt
    assert handed_out() is before
    assert not capture._listeners


def test_threads_hear_their_own_models():
    """One context closes while the other is open."""
    models = [decoders.small("llama"), decoders.small("mistral")]
    before, opened, closed = handed_out(), Barrier(2), Barrier(2)

    def hear(place):
        heard = []
        with torch.no_grad(), capture.listening({models[place].model.layers[0].self_attn: heard.append}):
            opened.wait()
            models[place](TOKENS)
            if place:
                closed.wait()
        if not place:
            closed.wait()
        return heard

    with ThreadPoolExecutor(2) as pool:
        assert [len(heard) for heard in pool.map(hear, (0, 1))] == [1, 1]
    assert handed_out() is before


def test_a_model_that_watching_changes_is_refused_with_both_values(monkeypatch):
    """Here the function that is heard computes with other queries from the second layer on."""
    model, heard = decoders.small("llama"), capture._with_listener

    def wrong(attention):
        def function(module, query, *args, **named):
            return heard(attention)(module, query * (1 + module.layer_idx), *args, **named)

        return function

    with monkeypatch.context() as patch:
        patch.setattr(capture, "_with_listener", wrong)
        refuse(model, "watched", "from ")
    find_layout(model, TOKENS)


def test_attention_that_changes_where_no_logit_does_is_refused_too(monkeypatch):
    model, received = decoders.small("llama"), layout._received
    found = iter(range(100))

    def other(weights):
        return received(weights) * (1.01 if next(found) == 4 else 1)  # the second layer, watched

    monkeypatch.setattr(layout, "_received", other)
    refuse(model, "layer 2", "watched")


SPARSE = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8}
SPARSE |= {"n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "n_shared_experts": 1, "n_routed_experts": 4}
SPARSE |= {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "index_n_heads": 2, "index_head_dim": 8}


@pytest.mark.parametrize("topk", [5, decoders.TOKENS])
def test_attention_that_an_indexer_chooses_is_measured_only_where_it_is_all(topk):
    from transformers import DeepseekV32Config

    model = built(DeepseekV32Config(**{**decoders.COMMON, "num_key_value_heads": 4}, **SPARSE, index_topk=topk))
    if topk < decoders.TOKENS:
        refuse(model, "length")
    else:
        assert find_layout(model, TOKENS).products


@pytest.mark.parametrize("name", ["afmoe", "doge"])
def test_a_mask_that_is_handed_over_by_name_is_seen(name):
    config = {**decoders.COMMON, **decoders.EXPERTS, "num_local_experts": 4, "sliding_window": 5, "head_dim": 8}
    found = find_layout(built(CONFIG_MAPPING[name](**config)), TOKENS)
    assert found.products


def test_attention_that_runs_twice_in_a_pass_is_refused():
    refuse(built(CONFIG_MAPPING["hrm_text"](**decoders.COMMON)), "HrmTextAttention", "more than once")


def test_the_state_of_linear_attention_is_no_weight():
    """It has the shape of weights where prompts have as many tokens as a head has coordinates."""
    from transformers import MiniMaxConfig

    kinds = ["linear_attention", "full_attention", "linear_attention"]
    config = {**decoders.COMMON, "head_dim": 8, "layer_types": kinds, "block_size": 4, "num_local_experts": 2}
    model = built(MiniMaxConfig(**config))
    for tokens in (TOKENS, TOKENS[:, :8]):
        with refused("layers 0, 2 (MiniMaxDecoderLayer)"):
            find_layout(model, tokens)


def test_weights_of_a_token_that_exceed_1_together_are_refused():
    """As those of sigmoid attention would; each weight is a share by itself."""
    model = decoders.small("llama")
    model.model.layers[1].self_attn.register_forward_hook(lambda _module, _args, out: (out[0], out[1].sqrt()))
    refuse(model, "add up to", "1 at most")


def test_heads_of_different_numbers_are_refused():
    model = built(LlamaConfig(**decoders.COMMON))
    attention = model.model.layers[1].self_attn
    attention.q_proj = torch.nn.Linear(32, 16, bias=False)
    attention.o_proj = torch.nn.Linear(16, 32, bias=False)
    attention.num_key_value_groups = 1
    refuse(model, "(2, 4)")
