"""The first token's norm is held at the entry of every block, and nowhere else."""

import numpy as np
import pytest
import torch

from position_card.probe import forward
from position_card.probe.first_norm import holding_first_norm
from tests.small_decoders import VOCABULARY, llama, mistral

TOKENS = torch.from_numpy(np.random.default_rng(0).integers(0, VOCABULARY, (3, 10)))


def by_hand(model, tokens, norms):
    """Logits of a llama whose blocks are called one by one, with the first token scaled to the norms before each."""
    inner = model.model
    stream = inner.embed_tokens(tokens)
    places = torch.arange(tokens.shape[1])[None]
    turned = inner.rotary_emb(stream, places)
    mask = torch.full((tokens.shape[1],) * 2, -torch.inf).triu(1)[None, None]
    for block, norm in zip(inner.layers, norms, strict=True):
        stream = stream.clone()
        stream[:, 0] *= norm / stream[:, 0].norm(dim=-1, keepdim=True)
        out = block(stream, attention_mask=mask, position_ids=places, position_embeddings=turned)
        stream = out[0] if isinstance(out, tuple) else out
    return model.lm_head(inner.norm(stream))


@torch.no_grad()
def test_the_first_token_is_scaled_before_every_block():
    model = llama()
    with holding_first_norm(model, TOKENS[:2]) as norms:
        found = model(TOKENS).logits
        assert len(norms) == len(model.model.layers)
    assert norms[0] == pytest.approx(model.model.embed_tokens(TOKENS[:2, 1:]).norm(dim=-1).mean().item(), rel=1e-6)
    np.testing.assert_allclose(found, by_hand(model, TOKENS, norms), atol=1e-4)
    assert float((found - model(TOKENS).logits).abs().max()) > 1e-2


@torch.no_grad()
def test_others_set_the_norm_of_the_first_token():
    """The entries of blocks in the pass that sets it, seen by hooks of the test."""
    model, entries = llama(), []
    handles = [
        block.register_forward_pre_hook(lambda _, args: entries.append(args[0].norm(dim=-1)))
        for block in model.model.layers
    ]
    with holding_first_norm(model, TOKENS) as norms:
        for handle in handles:
            handle.remove()
    of_pass = entries[-len(model.model.layers) :]  # before it, the layout was found
    for norm, entry in zip(norms, of_pass, strict=True):
        assert norm == pytest.approx(entry[:, 1:].mean().item(), rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("make", [llama, mistral])
def test_a_pass_that_goes_on_from_a_cache_is_that_of_all_tokens(make):
    model = make()
    with holding_first_norm(model, TOKENS):
        _, cache = forward.next_token(model, TOKENS[:, :6], keep=True)
        continued, _ = forward.next_token(model, TOKENS[:, 6:], cache, keep=True)
        whole, _ = forward.next_token(model, TOKENS)
    np.testing.assert_allclose(continued, whole, atol=1e-6)
    assert float((whole - forward.next_token(model, TOKENS)[0]).abs().max()) > 1e-6


def test_gradients_pass_through_the_scaled_token():
    """The norm of the first token's embedding no longer matters, so that its gradient is at right angles to it."""
    model = llama()
    embeddings = forward.embed(model, TOKENS[:1]).detach().requires_grad_()
    with holding_first_norm(model, TOKENS):
        probability = forward.last_logits(model, embeddings, 1).softmax(-1).max()
    (gradient,) = torch.autograd.grad(probability, embeddings)
    along = (gradient * embeddings).sum(-1)[0] / (gradient.norm(dim=-1) * embeddings.norm(dim=-1))[0]
    assert abs(along[0].item()) < 1e-4
    assert along[1:].abs().max() > 1e-2
