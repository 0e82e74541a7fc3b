import math
from typing import get_args

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.small_networks import norms
from position_bias.small_networks.settings import Norm

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=50)
@given(
    norm=st.sampled_from(get_args(Norm)),
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
        theirs = torch.nn.RMSNorm(width, 1e-6) if norm == "rms" else torch.nn.LayerNorm(width, 1e-5, bias=False)
        theirs.weight = torch.nn.Parameter(gain[member].detach().clone())
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
