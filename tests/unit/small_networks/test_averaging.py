"""EMA and BEMA; that an average is the recursion over a training is tested with the stacks that keep it."""

import pytest
import torch

from position_bias.small_networks.averaging import bema, share, update


def test_shares_are_powers():
    """Base 10 + t: 16, 25, 100 at t = 6, 15, 90."""
    assert [share(t, 0.5) for t in (6, 15, 90)] == pytest.approx([1 / 4, 1 / 5, 1 / 10])
    assert [share(t, 1.5) for t in (6, 15, 90)] == pytest.approx([1 / 64, 1 / 125, 1 / 1000])
    assert share(90, 0.0) == 1


def test_averages_are_their_definitions_written_out():
    drawn = torch.randn(3, 2, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    average, last, first = ({"matrix": tensor.clone(), "number": tensor[:, 0, 0].clone()} for tensor in drawn)
    corrected = bema(average, last, first, 0.25)
    update(average, last, 0.125)
    for name, before in (("matrix", drawn[0]), ("number", drawn[0][:, 0, 0])):
        torch.testing.assert_close(corrected[name], before + 0.25 * (last[name] - first[name]))
        torch.testing.assert_close(average[name], (1 - 0.125) * before + 0.125 * last[name])
