import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from position_bias.layernorm import simulation, theory
from position_bias.layernorm.simulation import Decoder, Sampling, embeddings, random_weights, simulate
from position_card.core import runtime
from position_card.measures.recency import mean_relative_position, recency, relative_recency

SMALL = Decoder(tokens=10, width=8, layers=3, residual=0.7, strength=1.3, norm="layer")
SAMPLING = Sampling(tokens=24, width=64, strength=1.0, sequences=600, seed=5, level=0.95)


def textbook(decoder, x):
    """One sequence in float64, token by token: scores [L, n, n]."""
    reach = (lambda i: i + 1) if decoder.mask == "causal" else (lambda _: len(x))

    def norm(v):
        if decoder.norm == "none":
            return v
        v = v - v.mean() if decoder.norm == "layer" else v
        return v / np.sqrt((v**2).sum())

    n, scores = len(x), []
    if decoder.placement == "post":
        x = np.array([norm(v) for v in x])
    for _ in range(decoder.layers):
        y = np.array([norm(v) for v in x]) if decoder.placement == "pre" else x
        P = np.zeros((n, n))
        for i in range(n):
            weights = np.exp(decoder.strength * y[: reach(i)] @ y[i])
            P[i, : reach(i)] = weights / weights.sum()
        scores.append(y @ y.T)
        x = decoder.residual * x + P @ y
        if decoder.placement == "post":
            x = np.array([norm(v) for v in x])
    return np.array(scores)


@pytest.mark.parametrize("common", ["sequence", "ones"])
@pytest.mark.parametrize(("norm", "placement"), [("none", "pre"), ("rms", "pre"), ("layer", "pre"), ("layer", "post")])
def test_a_simulation_is_the_mean_of_textbook_decoders(norm, placement, common, monkeypatch):
    monkeypatch.setattr(simulation, "BATCH", 4 * 100)  # batches of 4, 4 and 3 sequences
    decoder, sequences = replace(SMALL, norm=norm, placement=placement), 11
    found = simulate(decoder, 0.3, sequences, seed=9, common=common)
    generator = torch.Generator().manual_seed(9)
    x = torch.cat([embeddings(part, 10, 8, 0.3, generator, common) for part in (4, 4, 3)]).double().numpy()
    scores = np.array([textbook(decoder, one) for one in x])
    assert found.scores == pytest.approx(scores.mean(0), abs=2e-5)
    assert found.errors == pytest.approx(scores.std(0, ddof=1) / np.sqrt(sequences), abs=2e-5)
    assert found.recency == pytest.approx(recency(scores), abs=2e-5)


def test_a_simulation_has_the_mask_and_the_moments_that_are_asked_for():
    decoder = replace(SMALL, norm="rms", mask="full")
    alphas, lengths = (
        simulation.moments(f"{what} falls", 10)[part] for part, what in enumerate(("anisotropy", "length"))
    )
    found = simulate(decoder, alphas, 11, seed=9, lengths=lengths)
    x = embeddings(11, 10, 8, alphas, torch.Generator().manual_seed(9), lengths=lengths).double().numpy()
    assert np.linalg.norm(x, axis=-1) == pytest.approx(np.tile(lengths, (11, 1)), rel=1e-5)
    assert found.scores == pytest.approx(np.mean([textbook(decoder, one) for one in x], axis=0), abs=2e-5)


@pytest.mark.parametrize("common", ["sequence", "ones"])
def test_embeddings_have_the_anisotropy_of_their_position(common):
    alphas = (0.0, 0.2, 0.5, 0.8)
    x = embeddings(3000, 4, 256, alphas, torch.Generator().manual_seed(0), common)
    found = (x @ x.mT).mean(0).numpy()
    expected = theory.gram_of_embeddings(alphas, np.ones(4))
    assert found == pytest.approx(expected, abs=2 / 256 + 4 / math.sqrt(256 * 3000))


@pytest.mark.parametrize(
    ("profile", "first", "last"),
    [
        ("alike", (0.2, 1), (0.2, 1)),
        ("anisotropy rises", (0, 1), (0.8, 1)),
        ("anisotropy falls", (0.8, 1), (0, 1)),
        ("length rises", (0.2, 0.5), (0.2, 2)),
        ("length falls", (0.2, 2), (0.2, 0.5)),
    ],
)
def test_profiles_go_from_one_end_to_the_other(profile, first, last):
    alphas, lengths = (np.broadcast_to(values, 9) for values in simulation.moments(profile, 9))
    assert (alphas[0], lengths[0]) == pytest.approx(first)
    assert (alphas[-1], lengths[-1]) == pytest.approx(last)
    assert np.ptp(np.diff(alphas)) == pytest.approx(0, abs=1e-12)
    assert np.ptp(lengths[1:] / lengths[:-1]) == pytest.approx(0, abs=1e-12)


@pytest.fixture(scope="module")
def random_table():
    return random_weights(16, 32, 3, 4, 0.2, (0.0, 1.0), 40, 2)


@pytest.mark.parametrize("norm", simulation.NORMS)
def test_random_weights_are_a_textbook_multi_head_decoder(norm, random_table):
    """Float64, one sequence and one head at a time."""
    rho, seed, n, d = 1.0, 1, 16, 32
    generator = torch.Generator().manual_seed(runtime.seed(seed, "weights"))
    weights = (torch.randn(3, 4, d, d, generator=generator) / d**0.5).double().numpy()
    common = torch.randn(d, generator=generator)
    generator.manual_seed(runtime.seed(seed, "sequences"))
    sequences = d**0.5 * embeddings(40, n, d, 0.2, generator, common).double().numpy()
    grams, logits, attention = np.zeros((3, n, n)), np.zeros((3, 4, n, n)), np.zeros((3, 4, n, n))
    for x in sequences:
        for layer, (Q, K, V, out) in enumerate(weights):
            y = x - x.mean(-1, keepdims=True) if norm == "layer" else x
            y = x if norm == "none" else y / np.sqrt((y**2).mean(-1, keepdims=True))
            grams[layer] += y @ y.T / (1 if norm == "none" else d) / 40
            heads = []
            for head in range(4):
                part = slice(8 * head, 8 * head + 8)
                L = (y @ Q)[:, part] @ (y @ K)[:, part].T / np.sqrt(8)
                P = np.exp(L) * np.tri(n)
                P /= P.sum(-1, keepdims=True)
                logits[layer, head] += L / 40
                attention[layer, head] += P / 40
                heads.append(P @ (y @ V)[:, part])
            x = rho * x + np.concatenate(heads, -1) @ out
    found = random_table.query("norm == @norm and residual == @rho and seed == @seed").set_index("quantity")["value"]
    expected = relative_recency(grams) if norm == "none" else recency(grams)
    assert found["gram"].to_numpy() == pytest.approx(expected, abs=1e-4)
    assert found["score"].to_numpy() == pytest.approx(relative_recency(logits).ravel(), abs=1e-3)
    assert found["position"].to_numpy() == pytest.approx(mean_relative_position(attention).ravel(), abs=1e-4)


def test_score_maps_are_named_after_norm_and_anisotropy():
    maps = simulation.score_maps(10, 8, 2, 1.0, (0.0, 0.25), 20, 3)
    assert list(maps) == ["none/0", "none/0.25", "rms/0", "rms/0.25", "layer/0", "layer/0.25"]
    expected = simulate(Decoder(10, 8, 2, 1.0, 1.0, "layer"), 0.25, 20, 3).scores
    assert (maps["layer/0.25"] == expected).all()


@pytest.mark.parametrize(
    ("step", "last", "expected"),
    [
        (0.025, 0.925, [count / 40 for count in range(38)]),  # those of the default run
        (0.1, 0.35, [0.0, 0.1, 0.2, 0.3]),
        (0.3, 0.9, [0.0, 0.3, 0.6, 0.9]),
        (0.5, 0, [0.0]),
    ],
)
def test_numbers_stand_evenly_and_are_those_that_their_decimals_name(step, last, expected):
    assert simulation.evenly(step, last) == expected


def test_closed_form_rows_hold_theory_and_measurement_of_the_last_token():
    table = simulation.closed_form_rows(SAMPLING, (0.0, 0.4))
    assert len(table) == 2 * 2 * 2 * 23
    one = table.query("norm == 'rms' and residual == 1 and anisotropy == 0.4")
    assert one["position"].tolist() == list(range(1, 24))
    expected = theory.second_scores(24, 0.4, 1, 1, norm=True, width=64)[-1, :-1]
    assert one["predicted"].to_numpy() == pytest.approx(expected)
    seen = SAMPLING.run("rms", 1.0, 0.4, 2)
    assert one["measured"].to_numpy() == pytest.approx(seen.scores[1, -1, :-1])
    assert (one["high"] - one["low"]).to_numpy() == pytest.approx(2 * 1.959964 * seen.errors[1, -1, :-1])


def test_anisotropy_curves_are_measured_where_they_are_asked_to_be():
    table = simulation.anisotropy_curves(replace(SAMPLING, sequences=200), (0.0, 0.1, 0.2), (0.2, 0.6))
    assert sorted(set(table["residual"])) == [0, 0.5, 1, 2]
    assert table.query("residual == 1")["anisotropy"].tolist() == [0.0, 0.1, 0.2, 0.6]
    measured = table["anisotropy"].isin([0.2, 0.6])
    assert table.loc[measured].notna().all(axis=None)
    assert table.loc[~measured, ["measured", "low", "high"]].isna().all(axis=None)
    assert table["predicted"].notna().all()
    assert (table.loc[measured, "measured"] - table.loc[measured, "predicted"]).abs().max() < 1 / 64
    assert (table.loc[measured, "low"] < table.loc[measured, "measured"]).all()


def test_depth_curves_hold_recursion_and_measurement():
    table = simulation.depth_curves(replace(SAMPLING, sequences=300), 0.2, 4)
    assert len(table) == 3 * 2 * 4
    assert set(table["norm"]) == {"none", "pre", "post"}
    assert (table["measured"] - table["predicted"]).abs().max() < 0.04
    curves = table.set_index(["norm", "residual", "layer"])["predicted"]
    assert curves["pre", 1, 4] == pytest.approx(recency(theory.gram_recursion(24, 0.2, 1, 1, 4, "pre")[3]))
    unscaled = theory.gram_recursion(24, 0.2, 1, 1, 4, "none")[3]
    assert curves["none", 1, 4] == pytest.approx(relative_recency(unscaled))


def test_curves_of_moments_hold_recursion_and_measurement():
    table = simulation.moments_curves(replace(SAMPLING, sequences=300), 3)
    assert len(table) == 2 * 5 * 3
    assert (table["measured"] - table["predicted"]).abs().max() < 0.04
    curves = table.set_index(["mask", "profile", "layer"]).sort_index()
    usual = recency(theory.gram_recursion(24, 0.2, 1, 1, 3, "pre"))
    assert curves.loc[("causal", "alike"), "predicted"].to_numpy() == pytest.approx(usual)
    assert curves.loc[("full", "alike"), "predicted"].to_numpy() == pytest.approx(0, abs=1e-12)
