"""What tests of trainings share."""

import math

import pytest

from position_bias.small_networks import decoder


@pytest.fixture
def spoil(monkeypatch):
    """Make a member of later stacks diverge: `spoil(name, member)` puts a NaN into a parameter of its first weights."""
    original = decoder.initial

    def put(name, member):
        def spoilt(*arguments):
            weights = original(*arguments)
            weights[name][member, 0, 0] = math.nan
            return weights

        monkeypatch.setattr(decoder, "initial", spoilt)

    return put
