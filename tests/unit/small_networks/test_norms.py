import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.small_networks import norms
from position_bias.small_networks.placements import NORMS, PLACEMENTS

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
WIDTH = 6


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def module(norm, gain):
    """Torch's norm, with one member's gain `[d]`."""
    d = len(gain)
    theirs = torch.nn.RMSNorm(d, eps=1e-6) if norm == "rms" else torch.nn.LayerNorm(d, eps=1e-5, bias=False)
    theirs.weight = torch.nn.Parameter(gain)
    return theirs


# The norms


@settings(max_examples=50, deadline=None)
@given(
    norm=st.sampled_from(NORMS),
    members=st.integers(1, 3),
    between=st.lists(st.integers(1, 3), max_size=3),
    width=st.integers(2, 7),  # of a single number, LayerNorm leaves nothing but rounding
    scale=st.sampled_from([1e-4, 1e-3, 1.0, 1e3]),  # the smallest are of the size of epsilon's root
    seed=st.integers(0, 2**31),
)
def test_each_member_is_normalised_as_by_torchs_module_and_so_are_gradients(norm, members, between, width, scale, seed):
    x = (scale * drawn(members, *between, width, seed=seed)).requires_grad_()
    gain = drawn(members, width, seed=seed + 1).requires_grad_()
    found = norms.normalise(x, gain, norm)
    upstream = drawn(*x.shape, seed=seed + 2)
    of_x, of_gain = torch.autograd.grad(found, (x, gain), upstream)
    for member in range(members):
        theirs = module(norm, gain[member].detach().clone())
        row = x[member].detach().clone().requires_grad_()
        expected = theirs(row)
        expected.backward(upstream[member])
        torch.testing.assert_close(found[member], expected, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(of_x[member], row.grad, rtol=1e-8, atol=1e-8 / scale)
        torch.testing.assert_close(of_gain[member], theirs.weight.grad, rtol=1e-9, atol=1e-9)


def test_a_token_of_the_size_of_epsilons_root_comes_out_at_the_root_of_a_half():
    """Closed forms: RMSNorm's epsilon is 1e-6, LayerNorm's is 1e-5, both added to the mean square."""
    signs = torch.tensor([[1.0, -1.0, 1.0, -1.0]], dtype=torch.float64)
    gain = torch.ones(1, 4, dtype=torch.float64)
    for norm, epsilon in (("rms", 1e-6), ("layer", 1e-5)):
        found = norms.normalise(math.sqrt(epsilon) * signs, gain, norm)
        torch.testing.assert_close(found, signs / math.sqrt(2), **CLOSE)


@pytest.mark.parametrize("norm", NORMS)
def test_lengths_are_lost_and_a_zero_stays_zero(norm):
    x, gain = drawn(2, 5, WIDTH), torch.ones(2, WIDTH, dtype=torch.float64)
    found = norms.normalise(x, gain, norm)
    torch.testing.assert_close(found.square().mean(-1), torch.ones(2, 5, dtype=torch.float64), rtol=1e-3, atol=0)
    torch.testing.assert_close(norms.normalise(7e3 * x, gain, norm), found, rtol=1e-3, atol=1e-3)
    assert torch.equal(norms.normalise(torch.zeros_like(x), gain, norm), torch.zeros_like(x))


def test_only_layer_norm_loses_the_mean():
    x, gain = drawn(2, 5, WIDTH), torch.ones(2, WIDTH, dtype=torch.float64)
    centred = norms.normalise(x, gain, "layer")
    torch.testing.assert_close(centred.mean(-1), torch.zeros(2, 5, dtype=torch.float64), **CLOSE)
    torch.testing.assert_close(norms.normalise(x + 3, gain, "layer"), centred, **CLOSE)
    assert not torch.allclose(norms.normalise(x + 3, gain, "rms"), norms.normalise(x, gain, "rms"), atol=0.1)


@pytest.mark.parametrize("norm", NORMS)
def test_the_precision_stays_that_of_the_input(norm):
    x, gain = drawn(2, 3, WIDTH), drawn(2, WIDTH, seed=1)
    found = norms.normalise(x.float(), gain.float(), norm)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), norms.normalise(x, gain, norm), rtol=1e-5, atol=1e-5)


# The placements, each from its formula

FORMULAS = {
    "none": lambda x, B, N: x + B(x),
    "pre": lambda x, B, N: x + B(N["input"](x)),
    "post": lambda x, B, N: N["sum"](x + B(x)),
    "peri": lambda x, B, N: x + N["output"](B(N["input"](x))),
    "peri-init": lambda x, B, N: x + N["output"](B(N["input"](x))),  # the embedding's norm is no affair of a block
}
PLACES = ("input", "output", "sum")


def stacked_block(weights):
    return lambda x: torch.tanh(x @ weights)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_block_is_added_as_the_formula_says_in_modules_of_each_member(placement, norm):
    members = 3
    x, weights = drawn(members, 4, WIDTH), drawn(members, WIDTH, WIDTH, seed=1)
    gains = {place: 2 + drawn(members, WIDTH, seed=seed) for seed, place in enumerate(PLACES, 2)}  # a norm a place

    def norm_of(place):
        return lambda y: norms.normalise(y, gains[place], norm)

    found = norms.add_block(x, stacked_block(weights), placement, norm_of)
    for member in range(members):
        linear = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        linear.weight = torch.nn.Parameter(weights[member].T.clone())
        block = torch.nn.Sequential(linear, torch.nn.Tanh())
        modules = {place: module(norm, gain[member].clone()) for place, gain in gains.items()}
        expected = FORMULAS[placement](x[member], block, modules)
        torch.testing.assert_close(found[member], expected.detach(), **CLOSE)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_block_asks_for_the_norms_of_its_placement_each_once(placement):
    asked = []

    def norm_of(place):
        asked.append(place)
        return lambda y: y

    x = drawn(1, 2, WIDTH)
    found = norms.add_block(x, torch.sin, placement, norm_of)
    assert sorted(asked) == sorted(norms.normalised(placement))
    torch.testing.assert_close(found, x + x.sin(), **CLOSE)


@pytest.mark.parametrize("spoilt", [5.0, math.inf, math.nan])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_members_do_not_mix(placement, norm, spoilt):
    x, gain, weights = drawn(3, 4, WIDTH), drawn(3, WIDTH, seed=1), drawn(3, WIDTH, WIDTH, seed=2)

    def after():
        return norms.add_block(
            x, stacked_block(weights), placement, lambda place: lambda y: norms.normalise(y, gain, norm)
        )

    before = after()
    for tensor in (x, gain, weights):
        tensor[1, ..., 0] = spoilt
    found = after()
    assert torch.equal(found[[0, 2]], before[[0, 2]])
    assert not torch.equal(found[1], before[1])


# Names


@pytest.mark.parametrize("placement", ["sandwich", "", "Pre", None])
def test_an_unknown_placement_is_named_in_one_line(placement):
    message = f"^placement = {placement!r} is not known; use one of none, pre, post, peri, peri-init$"
    with pytest.raises(ValueError, match=message):
        norms.normalised(placement)
    with pytest.raises(ValueError, match=message):
        norms.add_block(drawn(1, 2, WIDTH), torch.sin, placement, lambda place: torch.cos)
