import numpy as np
import pytest
import torch

from position_bias.postnorm import construction
from position_bias.small_networks import decoder

STRENGTH = 8.0
WIDE = pytest.mark.parametrize("v", [2, 3, 8, 32])
SCHEMES = pytest.mark.parametrize("scheme", ["none", "peri"])


pytestmark = pytest.mark.usefixtures("one_thread")


def law(scheme, s, v, strength):
    """The logit gap, by hand: the mean of s simplex vectors has the product (1 - (s-1)/(v-1))/s with one of them.

    With an absent one it has -1/(v-1). Its norm is the root of the former.
    """
    present, absent = (1 - (s - 1) / (v - 1)) / s, -1 / (v - 1)
    norm = np.sqrt(present) if scheme == "peri" else 1
    return strength * (present - absent) / norm


def rows(v, strength=STRENGTH, sequences=20, seed=0):
    return construction.distances(v, strength, sequences, seed)


@WIDE
def test_the_construction_meets_its_prediction(v):
    table = rows(v)
    assert list(table.columns) == ["scheme", "v", "length", "predicted", "measured", "low", "high"]
    for scheme in ("none", "peri"):
        assert table[table["scheme"] == scheme]["length"].tolist() == list(range(1, v))
    assert (table["v"] == v).all()
    np.testing.assert_allclose(table["measured"], table["predicted"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(table["low"], table["predicted"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(table["high"], table["predicted"], rtol=0, atol=1e-6)
    assert (table["low"] <= table["measured"] + 1e-12).all()
    assert (table["measured"] <= table["high"] + 1e-12).all()


@WIDE
@pytest.mark.parametrize("strength", [0.5, STRENGTH, 40.0])
def test_the_prediction_is_the_law_by_hand(v, strength):
    for scheme, found in rows(v, strength, 1).groupby("scheme"):
        s = found["length"].to_numpy()
        present = s * np.exp(-law(scheme, s, v, strength))
        np.testing.assert_allclose(found["predicted"], present / (present + v - s), rtol=1e-9)


@SCHEMES
def test_attention_is_uniform_and_the_width_is_one_less_than_the_tokens(scheme):
    network, weights = construction.weights(8, scheme, STRENGTH)
    assert (network.width, network.layers, network.heads, network.hidden) == (7, 1, 1, 0)
    assert network.placement == scheme
    seen = []
    tokens = torch.arange(7)[None, None]
    decoder.logits(weights, network, tokens, trace_attention=seen.append)
    expected = np.tri(7) / np.arange(1, 8)[:, None]
    np.testing.assert_allclose(seen[0].weights[0, 0, 0], expected, atol=1e-15)


@pytest.mark.parametrize("broken", ["o0", "readout", "v0"])
@SCHEMES
def test_a_broken_sign_shows(monkeypatch, broken, scheme):
    original = construction.weights

    def flipped(v, of, strength):
        network, weights = original(v, of, strength)
        return network, dict(weights) | ({broken: -weights[broken]} if of == scheme else {})

    monkeypatch.setattr(construction, "weights", flipped)
    table = rows(8)
    off = (table["measured"] - table["predicted"]).abs()
    assert (off[table["scheme"] == scheme] > 0.1).all()
    assert (off[table["scheme"] != scheme] < 1e-6).all()
