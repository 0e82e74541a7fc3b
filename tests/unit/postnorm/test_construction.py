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
@WIDE
def test_present_tokens_have_one_logit_and_absent_ones_another(v, scheme):
    network, weights = construction.weights(v, scheme, STRENGTH)
    order = np.random.default_rng(v).permutation(v)[: v - 1]
    logits = decoder.logits(weights, network, torch.from_numpy(order)[None, None])[0, 0]
    assert logits.dtype == torch.float64
    for step, z in enumerate(logits.numpy()):
        present, absent = z[order[: step + 1]], z[np.setdiff1d(np.arange(v), order[: step + 1])]
        assert np.ptp(present) < 1e-4
        assert np.ptp(absent) < 1e-4
        assert absent.mean() - present.mean() == pytest.approx(law(scheme, step + 1, v, STRENGTH), abs=1e-4)


@SCHEMES
def test_attention_is_uniform_and_the_width_is_one_less_than_the_tokens(scheme):
    network, weights = construction.weights(8, scheme, STRENGTH)
    assert (network.width, network.layers, network.heads, network.hidden) == (7, 1, 1, 0)
    assert network.placement == scheme
    seen = []
    tokens = torch.arange(7)[None, None]
    decoder.residual_stream(weights, network, decoder.embed(weights, network, tokens), seen.append)
    expected = np.tri(7) / np.arange(1, 8)[:, None]
    np.testing.assert_allclose(seen[0].weights[0, 0, 0], expected, atol=1e-15)


@SCHEMES
def test_a_construction_needs_just_the_parameters_of_its_decoder(scheme):
    network, weights = construction.weights(5, scheme, STRENGTH)
    expected = decoder.initial(network, [0], "cpu")
    assert {name: value.shape for name, value in weights.items()} == {n: value.shape for n, value in expected.items()}


@SCHEMES
def test_normalisation_resharpens_beyond_half_the_tokens_and_dispersion_never_does(scheme):
    found = rows(32)
    gap = law(scheme, found[found["scheme"] == scheme]["length"].to_numpy(), 32, STRENGTH)
    least = gap.argmin() + 1
    assert least == {"none": 31, "peri": 16}[scheme]


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


def test_attention_to_the_last_token_alone_shows(monkeypatch):
    """Queries and keys that see more than nothing break the law."""
    original = construction.weights

    def sharp(v, of, strength):
        network, weights = original(v, of, strength)
        return network, dict(weights) | {"q0": 10 * weights["v0"], "k0": weights["v0"]}

    monkeypatch.setattr(construction, "weights", sharp)
    table = rows(8)
    several = table["length"].between(2, 6)
    assert ((table["measured"] - table["predicted"]).abs()[several] > 1e-2).all()


def test_the_same_seed_gives_the_same_bits():
    assert rows(8, seed=3).equals(rows(8, seed=3))
