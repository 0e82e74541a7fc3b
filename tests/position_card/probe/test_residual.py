"""Which output of a block's modules is the update of attention: known by construction, and found."""

import pytest
import torch
from torch import nn

from position_card.probe.residual import Call, find_update

N, WIDTH, TOLERANCE = 6, 8, 1e-5


def drawn(seed, size=1.0):
    return size * torch.randn(N, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.output = nn.Identity(), nn.Identity()


@pytest.fixture
def parts():
    """Modules, and what they yield: attention, a norm after it, an MLP."""
    attention = Attention()
    return {"attention": attention, "after": nn.Identity(), "mlp": nn.Identity(), "norm": nn.Identity()}


X, U, V, READ = drawn(0, 3.0), drawn(1), drawn(2), drawn(3)


def test_a_sequential_block_adds_what_attention_yields(parts):
    calls = [
        Call(parts["norm"], X, READ),
        Call(parts["attention"].project, READ, drawn(5)),
        Call(parts["attention"], READ, U),
        Call(parts["mlp"], X + U, V),
    ]
    found = find_update(X, X + U + V, calls, parts["attention"], TOLERANCE)
    assert (found.module, found.scale, found.order) == (parts["attention"], 1.0, "sequential")


def test_a_parallel_block_never_reads_their_sum(parts):
    calls = [Call(parts["norm"], X, READ), Call(parts["attention"], READ, U), Call(parts["mlp"], READ, V)]
    assert find_update(X, X + U + V, calls, parts["attention"], TOLERANCE).order == "parallel"


def test_what_makes_the_update_may_be_a_norm_after_attention_or_the_last_projection_within_it(parts):
    normed = [
        Call(parts["attention"], READ, drawn(4)),
        Call(parts["after"], drawn(4), U),
        Call(parts["norm"], X + U, drawn(6)),
        Call(parts["mlp"], drawn(6), V),
    ]
    added = [  # attention adds the stream itself
        Call(parts["attention"].project, READ, drawn(5)),
        Call(parts["attention"].output, drawn(7), U),
        Call(parts["attention"], READ, X + U),
        Call(parts["mlp"], X + U, V),
    ]
    for calls, module in ((normed, parts["after"]), (added, parts["attention"].output)):
        found = find_update(X, X + U + V, calls, parts["attention"], TOLERANCE)
        assert (found.module, found.order) == (module, "sequential")


@pytest.mark.parametrize("factors", [(0.4, 0.4), (0.22, 1.0), (3.0, 0.1)])
def test_factors_are_found(factors, parts):
    a, b = factors
    calls = [Call(parts["attention"], READ, U), Call(parts["mlp"], X + a * U, V)]
    found = find_update(X, X + a * U + b * V, calls, parts["attention"], TOLERANCE)
    assert found.scale == pytest.approx(a, rel=1e-9)
    assert found.order == "sequential"


def test_norms_after_the_sums(parts):
    last, middle, made = nn.Identity(), drawn(8), drawn(9)
    calls = [
        Call(parts["attention"], READ, U),
        Call(parts["norm"], X + U, middle),
        Call(parts["mlp"], middle, V),
        Call(last, middle + V, made),
    ]
    found = find_update(X, made, calls, parts["attention"], TOLERANCE)
    assert (found.module, found.order) == (parts["attention"], "norm after the sum")


@pytest.mark.parametrize(
    "made",
    [
        2 * X + U + V,  # the stream is scaled
        X + U * torch.arange(1.0, N + 1)[:, None] + V,  # by the token
        X - U + V,
        X + U + V + 0.01 * drawn(11),  # something else is added
        X + U + V + 1e-3 * torch.eye(N, 1, dtype=torch.float64),  # one token disagrees
        X + V,  # attention plays no part
    ],
)
def test_a_block_that_nothing_reproduces_has_no_update(made, parts):
    calls = [Call(parts["norm"], X, READ), Call(parts["attention"], READ, U), Call(parts["mlp"], READ, V)]
    assert find_update(X, made, calls, parts["attention"], TOLERANCE) is None
    without = [calls[0], calls[2], Call(nn.Identity(), V, U)]  # the MLP is never taken for attention
    assert find_update(X, X + U + V, without, parts["attention"], TOLERANCE) is None


def test_a_large_stream_hides_no_wrong_update(parts):
    """In coarse precision the differences fit within rounding, whatever the update."""
    stream = 1e4 * X
    calls = [Call(parts["attention"], READ, drawn(4)), Call(parts["mlp"], READ, V)]
    assert find_update(stream, stream + U + V, calls, parts["attention"], 1e-2) is None
    calls = [Call(parts["attention"], READ, U), Call(parts["mlp"], READ, V)]
    assert find_update(stream, stream + U + V, calls, parts["attention"], 1e-2).module is parts["attention"]
