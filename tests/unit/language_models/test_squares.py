"""The rollout in squares, against Jacobians of a small Llama and against products that are worked out by hand."""

import numpy as np
import pytest
import torch
from torch.func import jacrev

from position_bias.language_models import capture, squares
from position_bias.language_models.directions import Directions
from position_bias.language_models.layout import find_layout
from position_bias.language_models.measure import Asked, measure
from position_bias.language_models.squares import profiles, squared_rollouts
from tools import decoders
from tools.decoders import HEADS, LAYERS, SHARED, WIDTH

N = 6
TOKENS = torch.randint(3, 64, (1, N), generator=torch.Generator().manual_seed(1))
ASKED = Directions((), 0, 0, rollouts=WIDTH)


@pytest.fixture(scope="module")
def llama():
    return decoders.small("llama").eval().requires_grad_(False)


@pytest.fixture(scope="module")
def means(llama):
    """What `profiles` is given where the vectors that are sent are those of a basis, one a draw."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(squares, "_unit", lambda shape, draw, drawn: torch.eye(WIDTH)[draw].expand(*shape))
        kept = []
        patched.setattr(squares, "profiles", lambda means, drawn: kept.append(means) or {})
        assert squared_rollouts(llama, find_layout(llama, TOKENS), TOKENS, ASKED) == {}
    return kept[0]


def attended(q, k, v):
    """What each head of a causal layer yields, [H, n, d]."""
    logits = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(torch.ones(N, N).triu(1) > 0, -torch.inf)
    return logits.softmax(-1) @ v


def jacobians(model, place):
    """Squared Frobenius norms over the width of what reaches each token through a part of another, head by head
    [part, n, n], and of the MLP with the stream beside it [n]."""
    layer, seen, given = model.model.layers[place], [], {}
    handle = layer.register_forward_pre_hook(
        lambda _module, args, named: given.update(args=args, named=named), with_kwargs=True
    )
    model(TOKENS, use_cache=False)
    handle.remove()
    stream = given["args"][0]

    def parts(stream):
        with capture.heard(model, {layer.self_attn: seen.append}):
            layer(stream, **given["named"])
        heard = seen.pop()
        shared = (each[0].repeat_interleave(HEADS // each.shape[1], 0) for each in (heard.key, heard.value))
        return heard.query[0], *shared

    of_stream = [jacobian[:, :, :, 0] for jacobian in jacrev(parts)(stream)]  # [H, n, d, n, width]
    of_parts = jacrev(attended, argnums=(0, 1, 2))(*parts(stream))  # [H, n, d, H, n, d]
    out = layer.self_attn.o_proj.weight.view(WIDTH, HEADS, -1)
    found = []
    for of_part, part in zip(of_parts, of_stream, strict=True):
        through = torch.einsum("vhd,hidhje,hjejw->hijvw", out, of_part, part)
        found.append(through.square().sum((0, 3, 4)) / WIDTH)
    after = stream + layer.self_attn(layer.input_layernorm(stream), **given["named"])[0]
    mlp = jacrev(lambda middle: middle + layer.mlp(layer.post_attention_layernorm(middle)))(after[0])
    return torch.stack(found), torch.einsum("iviw->ivw", mlp).square().sum((1, 2)) / WIDTH


@pytest.mark.parametrize("place", range(LAYERS))
def test_what_comes_back_has_the_frobenius_norms_of_jacobians(llama, means, place):
    through, mlp = jacobians(llama, place)
    close = {"rtol": 2e-3, "atol": 1e-7}
    np.testing.assert_allclose(means["squares"][place], through.sum(0), **close)
    np.testing.assert_allclose(means["values alone"][place], through[2], **close)
    np.testing.assert_allclose(means["mlp"][place], mlp, **close)
    assert SHARED < HEADS


def test_what_is_permuted_keeps_all_else(means):
    later = np.triu(np.ones((N, N)), 1) > 0
    for name in ("heads permuted", "keys permuted"):
        assert not np.allclose(means[name], means["squares"], rtol=0.05)
        assert (means[name][:, later] == 0).all()
    np.testing.assert_allclose(means["keys permuted"][:, :, 0], means["squares"][:, :, 0])
    weights = torch.rand(2, N, N).tril()
    others = squares._other_keys(weights, torch.Generator().manual_seed(0))
    torch.testing.assert_close(others.sort(-1).values, weights.sort(-1).values)
    torch.testing.assert_close(others[..., 0], weights[..., 0])


M = np.array([[[1.0, 0, 0], [2, 3, 0], [4, 5, 6]], [[1, 0, 0], [9, 9, 0], [2, 8, 5]]])
ATTENTION = np.array([[[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]], [[1, 0, 0], [0.9, 0.1, 0], [0.6, 0.1, 0.3]]])
STREAM, UPDATE = np.array([[4.0, 2, 8], [9, 1, 4]]), np.array([[4.0, 1, 7], [9, 4, 1]])
MLP = np.array([[2.0, 3, 4], [1, 1, 2]])
GIVEN = {"squares": M, "values alone": M / 2, "heads permuted": 2 * M, "keys permuted": 3 * M}
GIVEN |= {"attention": ATTENTION, "update": UPDATE, "stream": STREAM, "mlp": MLP}


def rolled(matrices=M, mlp=MLP, power=0.5):
    """p (1 + M) diag(mlp), as products of whole matrices."""
    steps = [np.diag(gain) @ (np.eye(3) + matrix) for matrix, gain in zip(matrices, mlp, strict=True)]
    row = (steps[1] @ steps[0])[-1] ** power
    return row / row.sum()


def attention_rollout(attention, tokens):
    added, kept = (np.sqrt(of[:, tokens].sum(1)) for of in (UPDATE, STREAM))
    steps = [(1 - each) * np.eye(3) + each * a for each, a in zip(added / (added + kept), attention, strict=True)]
    return (steps[1] @ steps[0])[-1]


SINKLESS = np.array([[[1.0, 0, 0], [0, 1, 0], [0, 0.375, 0.625]], [[1, 0, 0], [0, 1, 0], [0, 0.25, 0.75]]])
COMMON = np.array([[4.0], [2.0]])  # geometric mean of the squared lengths of all tokens but the first
FIRST_ALONE = np.array([[4.0, 4, 4], [9, 2, 2]])
EXPECTED = {
    "squares": rolled(),
    "without MLP": rolled(mlp=np.ones((2, 3))),
    "values alone": rolled(M / 2, np.ones((2, 3))),
    "sums": rolled(np.sqrt(M), np.sqrt(MLP), 1),
    "without rms": rolled(M * (STREAM / COMMON)[:, None]),
    "rms of the first token alone": rolled(M * (STREAM / FIRST_ALONE)[:, None]),
    "rms permuted": rolled(M * (STREAM / STREAM[:, [0, 2, 1]])[:, None]),
    "heads permuted": rolled(2 * M),
    "keys permuted": rolled(3 * M),
    "attention rollout": attention_rollout(ATTENTION, slice(0, 3)),
    "attention rollout without the sink": attention_rollout(SINKLESS, slice(1, 3)),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_profiles_are_the_last_row_of_their_products(name):
    swapping = next(drawn for drawn in map(np.random.default_rng, range(9)) if _swaps(drawn))
    found = profiles(GIVEN, swapping)
    assert set(found) == set(EXPECTED)
    np.testing.assert_allclose(found[name], EXPECTED[name])


def _swaps(drawn):
    state = drawn.bit_generator.state
    swaps = list(drawn.permutation(2)) == [1, 0]
    drawn.bit_generator.state = state
    return swaps


def test_the_pass_measures_all_else_as_it_does_without():
    model, prompts = decoders.small("llama"), np.stack([TOKENS[0].numpy(), TOKENS[0].flip(0).numpy()])
    alone, beside = (
        measure(model, prompts, N, asked=Asked(directions=asked)) for asked in (None, Directions((), 0, 0, rollouts=2))
    )
    for field in ("influence", "attention", "loss"):
        np.testing.assert_array_equal(getattr(beside, field), getattr(alone, field))
    for name, kernel in alone.kernels.items():
        np.testing.assert_array_equal(beside.kernels[name], kernel)
    assert set(beside.rollouts) == set(EXPECTED)
    assert all(profile.shape == (2, N) for profile in beside.rollouts.values())
    one = measure(model, prompts[1:], N, asked=Asked(directions=Directions((), 0, 0, rollouts=2)))
    np.testing.assert_allclose(one.rollouts["squares"][0], beside.rollouts["squares"][1], rtol=1e-5)


@pytest.mark.parametrize("name", ["bloom", "phi", "gemma3_text"])
def test_there_is_none_where_a_part_cannot_be_seen(name):
    model = decoders.small(name).requires_grad_(False)
    assert squared_rollouts(model, find_layout(model, TOKENS), TOKENS, ASKED) == {}
