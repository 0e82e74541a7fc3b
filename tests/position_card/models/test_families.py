import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, BloomConfig, FalconConfig, LlamaConfig, LlamaForCausalLM, MptConfig

from position_card.models import families, opening
from position_card.rollout import statistics
from tests import small_decoders


def small(family, **changes):
    return small_decoders.build(family, 64, **changes)


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 8, 12, 112])
@pytest.mark.parametrize("family", small_decoders.WITH_ALIBI)
def test_slopes_are_those_of_the_library(family, heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor as bloom
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor as falcon
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor as mpt

    mask = torch.ones(1, 2, dtype=torch.long)
    bias = {
        "bloom": lambda: bloom(mask, heads, torch.float32)[:, 0],
        "mpt": lambda: mpt(heads, 2)[:, 0],
        "falcon": lambda: falcon(mask, heads, torch.float32)[:, 0] / np.sqrt(8),
    }[family]()
    ours = families.FAMILIES[family].slopes(heads, 8)
    np.testing.assert_allclose(
        ours, (bias[:, 1] - bias[:, 0]).double().numpy(), rtol=2e-6
    )  # it raises float32 to powers


def test_falcon_rounds_its_alibi_to_bfloat16_and_little_mass_moves():
    """At 64 heads and 512 tokens: slopes are rounded here too, positions and products in transformers only."""
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor

    heads, head_dim, n = 64, 64, 512
    rounded = build_alibi_tensor(torch.ones(1, n, dtype=torch.long), heads, torch.float32)[:, 0].double().numpy() / 8
    exact = families.FAMILIES["falcon"].slopes(heads, head_dim)[:, None] * np.arange(n)
    error = np.abs(rounded - exact)
    assert 0.2 < error.max() < 0.25
    assert (error <= 2**-7 * exact).all()  # two roundings to 8 bits
    of_library, here = (softmax(logits, axis=1).mean(axis=0) for logits in (rounded, exact))  # of the last token
    assert 0.05 < np.abs(of_library / here - 1).max() < 0.07
    assert statistics.wasserstein(of_library, here) < 4e-5


def test_eager_falcon_adds_alibi_once_and_the_library_still_needs_it_said(tmp_path):
    """Once the second half fails, transformers has mended eager Falcon: drop `without_double_alibi`."""
    small("falcon").save_pretrained(tmp_path)
    tokens = torch.arange(24)[None] % 64
    sdpa = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="sdpa").eval()
    bare = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    ours = opening.open_decoder(tmp_path)
    with torch.no_grad():
        expected, twice, once = (model(tokens).logits for model in (sdpa, bare, ours))
    torch.testing.assert_close(once, expected, atol=1e-5, rtol=0)
    assert (twice - expected).abs().max() > 1e-3


@pytest.mark.parametrize(
    "config",
    [
        FalconConfig(alibi=False),
        FalconConfig(alibi=True, multi_query=True),
        FalconConfig(alibi=True, multi_query=False, parallel_attn=True),
        BloomConfig(apply_residual_connection_post_layernorm=True),
        MptConfig(attn_config={"alibi": False}),
        MptConfig(attn_config={"softmax_scale": 0.5}),
    ],
)
def test_a_configuration_of_another_layout_is_of_no_family(config):
    assert families.family_of(config) is None
    assert families.effective_slopes(config) is None


def test_the_weights_of_the_head_are_copied_for_no_prompt():
    """As torch does it by itself where no gradient is needed, which is why rows are put together."""
    config = LlamaConfig(
        vocab_size=500, hidden_size=16, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    tokens = torch.zeros(3, 4, dtype=torch.int64)

    def largest(model):
        with Sizes() as sizes, torch.no_grad():
            model.eval().requires_grad_(False)(tokens, logits_to_keep=1, use_cache=False)
        return max(sizes.seen)

    assert largest(LlamaForCausalLM(config)) == 3 * 500 * 16
    assert largest(families.prepare_for_measuring(LlamaForCausalLM(config))) <= 500 * 16


@pytest.mark.parametrize("prompts", [1, 3])
def test_what_the_head_reads_has_the_strides_of_a_new_tensor(prompts):
    """Of one prompt, others count as contiguous, but make torch copy the weights of the head."""
    seen = {}
    for name, prepare in {"as it is": lambda model: model, "prepared": families.prepare_for_measuring}.items():
        model = prepare(small("llama", layers=1)).eval().requires_grad_(False)
        model.get_output_embeddings().register_forward_pre_hook(
            lambda _, inputs, name=name: seen.update({name: inputs[0]})
        )
        model(torch.zeros(prompts, 4, dtype=torch.int64), logits_to_keep=1, use_cache=False)
    assert torch.equal(seen["prepared"], seen["as it is"])
    assert seen["prepared"].stride() == torch.empty(seen["prepared"].shape).stride() != seen["as it is"].stride()


class Sizes(TorchDispatchMode):
    """Collects the numbers of elements of all tensors that are made."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.seen.append(out.numel())
        return out
