"""The tables of a card, of measurements that are made up."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from position_card.card import profiles, sentences
from position_card.card.measurements import RecallResult, ReplacementEffects
from position_card.rollout.measurement import ESTIMATORS, Measurement
from position_card.rollout.parts import RecallScores
from tests.measurements import LAYERS, PROMPTS, causal, made

N = 20


@pytest.fixture
def without():
    return made(np.random.default_rng(0), alibi=False)


def test_tables_have_every_profile_layer_and_interval(without):
    found = profiles.influence_part(without, replicates=50, level=0.9, seed=0)
    layers, curves, values = found.tables["layers"], found.tables["profile"], found.values
    assert len(layers) == len(ESTIMATORS) * LAYERS
    for estimator in ESTIMATORS:
        rows = layers[layers["estimator"] == estimator]
        assert rows["layer"].tolist() == [1, 2, 3]
        np.testing.assert_allclose(rows["value"], without.mixing[estimator].mean(0))
        spread = without.mixing[estimator].std(0) / np.sqrt(PROMPTS)
        width = (rows["high"] - rows["low"]).to_numpy()
        assert (width > spread).all()
        assert (width < 5 * spread).all()
    kinds = {"influence", "uniform", "last", "half", "content-free", "logit-by-distance", "mean-query-key"}
    assert set(curves["variant"]) == {*kinds, "mean-attention"}
    of_influence = curves[curves["variant"] == "influence"]
    np.testing.assert_allclose(of_influence["value"], without.influence.sum(0) / without.influence.sum())
    assert (of_influence["low"] < of_influence["value"]).all()
    assert (of_influence["value"] < of_influence["high"]).all()
    assert set(values["replicate"]) == set(range(-1, 50))
    assert set(values.loc[values["variant"] == "lambda", "estimator"]) == set(ESTIMATORS)
    pd.testing.assert_frame_equal(values, profiles.influence_part(without, 50, 0.9, 0).values)


def test_a_rollout_through_the_true_attention_is_the_closest():
    """One layer, all of it attention, whose last row is the influence: W is 0."""
    attention = causal(np.random.default_rng(0).normal(0, 1, (1, N, N)))
    influence = np.tile(attention[0, -1], (2, 1))
    exact = Measurement(
        documents=np.arange(2),
        windows=(None,),
        mixing={"frobenius": np.ones((2, 1))},
        influence=influence,
        loss=np.ones(2),
        by_distance=attention[:, -1],
        attention=attention,
        kernels={},
    )
    values = profiles.influence_part(exact, 5, 0.9, 0).values
    distance = values[(values["statistic"] == "wasserstein") & (values["variant"] == "mean-attention")]["value"]
    np.testing.assert_allclose(distance, 0, atol=1e-15)


def test_the_loss_of_each_position_is_the_mean_over_prompts(without):
    positions = np.arange(3, N, 4)
    losses = np.random.default_rng(0).uniform(2, 5, (PROMPTS, len(positions)))
    assert profiles.LOSS not in profiles.influence_part(without, 5, 0.9, 0).tables
    found = replace(without, losses=losses, loss_positions=positions)
    table = profiles.influence_part(found, 50, 0.9, 0).tables[profiles.LOSS]
    assert table["position"].tolist() == positions.tolist()
    np.testing.assert_allclose(table["value"], losses.mean(0))
    assert (table["low"] < table["value"]).all()


def test_quarters_leave_the_first_and_the_last_token_out(without):
    """Of 20 tokens, the middle half has those from 5 to 14; influence doubles with each, but for the ends."""
    influence = np.tile([1e6, *(2.0 ** np.arange(1, N - 1)), 1e6], (PROMPTS, 1))
    values = profiles.influence_part(replace(without, influence=influence), 5, 0.9, 0).values
    rows = values[values["statistic"].isin(profiles.QUARTERS)]
    assert set(rows["variant"]) == {"influence"}
    expected = {"first quarter / middle": 2**-7, "last quarter / middle": 2**7}
    for name, of in rows.groupby("statistic"):
        assert list(of["replicate"]) == list(range(-1, 5))
        assert of["value"].to_numpy() == pytest.approx(expected[name])


def test_ends_over_the_middle_are_geometric_means_over_documents(without, monkeypatch):
    """Of four prompts, three are of one document, which counts as much as the other; scales of prompts cancel."""
    monkeypatch.setattr(profiles, "LEAST", 2)
    rng = np.random.default_rng(0)
    logs = rng.normal(0, 1.5, (4, N))
    documents = np.array([7, 3, 7, 7])
    four = {name: getattr(without, name)[:4] for name in ("loss",)}
    mixing = {name: values[:4] for name, values in without.mixing.items()}
    of = replace(without, documents=documents, influence=np.exp(logs), mixing=mixing, no_token=None, **four)
    over = logs - logs[:, 5:15].mean(1, keepdims=True)
    expected = np.exp((over[[0, 2, 3]].mean(0) + over[1]) / 2)
    part = profiles.influence_part(of, 20, 0.9, 0)
    assert part.interval("influence", "first / middle").value == pytest.approx(expected[0])
    assert part.interval("influence", "last / middle").value == pytest.approx(expected[-1])
    rollout = part.tables["profile"].query("variant == 'half'")["value"].to_numpy()
    of_middle = np.exp(np.log(rollout[5:15]).mean())
    assert part.interval("half", "first / middle").value == pytest.approx(rollout[0] / of_middle)
    part = profiles.influence_part(replace(of, influence=np.exp(logs) * [[1], [1e3], [1], [9]]), 20, 0.9, 0)
    assert part.interval("influence", "first / middle").value == pytest.approx(expected[0])


def test_a_place_like_the_middle_has_one_however_widely_effects_spread(without):
    """Of 4,000 prompts, whose effects are lognormal with a deviation of 1.5."""
    effects = np.exp(np.random.default_rng(0).normal(0, 1.5, (4000, 10)))
    found = profiles.resampled_logarithms(effects, range(0, 20, 2), 20, np.arange(4000), 5, 0)
    np.testing.assert_allclose(np.exp(found[0]), 1, atol=0.1)


def test_a_token_without_influence_leaves_the_ends_uncompared(without):
    influence = without.influence.copy()
    influence[1, 7] = 0
    part = profiles.influence_part(replace(without, influence=influence), 20, 0.9, 0)
    assert np.isnan(part.interval("influence", "first / middle").value)
    assert "some tokens have no influence at all" in sentences.on_influence(part, "a word")


def test_intervals_are_over_documents_unless_these_are_few(without, monkeypatch):
    """Every prompt comes twice, of the same document: this says no more than once, unless there are few documents."""
    mixing = {name: np.repeat(values, 2, axis=0) for name, values in without.mixing.items()}
    of_prompts = {name: np.repeat(getattr(without, name), 2, axis=0) for name in ("documents", "influence", "loss")}
    twice = replace(without, mixing=mixing, **of_prompts)
    replaced = [
        ReplacementEffects(N, (0, 9, N - 1), np.repeat(np.arange(1.0, 19).reshape(6, 3), k, axis=0)) for k in (1, 2)
    ]

    def same():
        values = [profiles.influence_part(each, 40, 0.9, 0).values["value"] for each in (without, twice)]
        tables = [
            profiles.replacement_part(found, each, 0, 40, 0.9, 0).tables["replacement"]
            for found, each in zip(replaced, (without, twice), strict=True)
        ]
        return np.allclose(*values, equal_nan=True), np.allclose(*tables)

    assert PROMPTS < profiles.LEAST
    assert same() == (False, False)
    monkeypatch.setattr(profiles, "LEAST", PROMPTS)
    assert same() == (True, True)


def test_replacement_and_influence_are_of_the_same_tokens(without):
    """In the first two prompts influence is twice the effect at the first token, and the same elsewhere."""
    positions = (0, 6, 9, 13, N - 1)
    effects = np.random.default_rng(0).uniform(0.1, 1, (2, len(positions)))
    influence = without.influence.copy()
    influence[:2, positions] = effects * [2, 1, 1, 1, 1]
    found = ReplacementEffects(N, positions, effects)
    part = profiles.replacement_part(found, replace(without, influence=influence), 6, 40, 0.9, 0)
    table, values = part.tables["replacement"], part.values
    assert table["position"].tolist() == list(positions)
    np.testing.assert_allclose(table["value"], effects.mean(0))
    assert (table["low"] <= table["high"]).all()
    at = values.set_index(["variant", "statistic", "replicate"])["value"].sort_index()
    first, word, *_, last = np.exp(np.log(effects).mean(0) - np.log(effects[:, 1:4]).mean())
    assert at[profiles.REPLACEMENT, "first / middle", -1] == pytest.approx(first)
    assert at[profiles.REPLACEMENT, "last / middle", -1] == pytest.approx(last)
    np.testing.assert_allclose(at[profiles.QUOTIENT, "first / middle"], 2, rtol=1e-6)
    np.testing.assert_allclose(at[profiles.QUOTIENT, "last / middle"], 1, rtol=1e-6)
    assert at[profiles.REPLACEMENT, profiles.FIRST_WORD, -1] == pytest.approx(word)
    assert len(at) == 6 * 41
    alone = profiles.replacement_part(found, without, 0, 40, 0.9, 0).values
    assert profiles.FIRST_WORD not in set(alone["statistic"])


def recalled(accuracy):
    """Ten contexts of 32 places; above the prior, the first eighth has .4, the last .05 and the others .1."""
    above = np.full(32, 0.1)
    above[:4], above[-4:] = 0.4, 0.05
    prior = np.random.default_rng(0).uniform(0, 0.01, (10, 32))
    correct = np.arange(320).reshape(10, 32) < round(320 * accuracy)
    return RecallResult(35, 3, 100, RecallScores(above + prior, correct.astype(float), prior))


def test_recall_of_both_ends_is_above_the_prior():
    found = recalled(0.5)
    part = profiles.recall_part(found, 40, 0.9, 0)
    table, values = part.tables["recall"], part.values
    assert list(table["place"]) == list(range(32))
    np.testing.assert_allclose(table["probability"], found.scores.probability.mean(0))
    np.testing.assert_allclose(table["accuracy"], found.scores.correct.mean(0))
    np.testing.assert_allclose(table["prior"], found.scores.prior.mean(0))
    assert (table["probability low"] < table["probability"]).all()
    assert (table["probability"] < table["probability high"]).all()
    at = values.set_index(["variant", "statistic", "replicate"])["value"].sort_index()
    np.testing.assert_allclose(at[profiles.RECALL, "first eighth / middle"], 4)
    np.testing.assert_allclose(at[profiles.RECALL, "last eighth / middle"], 0.5)
    accuracy = at[profiles.RECALL, "accuracy"]
    assert accuracy[-1] == pytest.approx(0.5)
    assert accuracy.std() > 0.05  # contexts are resampled: half of them have all right, half none
    assert len(at) == 3 * 41


@pytest.mark.parametrize(("accuracy", "known"), [(0.21, True), (0.19, False)])
def test_places_are_compared_from_an_accuracy_of_a_fifth_on(accuracy, known):
    values = profiles.recall_part(recalled(accuracy), 5, 0.9, 0).values
    ends = values[values["statistic"] != "accuracy"]
    assert ends["value"].notna().all() == ends["value"].notna().any() == known


def test_attention_to_no_token_is_a_column_and_a_sentence(without):
    shares = np.random.default_rng(0).uniform([0.1, 0.4, 0.1], [0.2, 0.5, 0.2], (PROMPTS, LAYERS))
    part = profiles.influence_part(replace(without, no_token=shares), 20, 0.9, 0)
    layers = part.tables["layers"]
    for _, rows in layers.groupby("estimator"):
        np.testing.assert_allclose(rows[profiles.NO_TOKEN], shares.mean(0))
        assert (rows[f"{profiles.NO_TOKEN} low"] < rows[profiles.NO_TOKEN]).all()
    said = sentences.on_no_token(part)
    assert f" {shares.mean():.3g} of the attention" in said
    assert f"layer 2 ({shares.mean(0)[1]:.3f} [" in said
    ordinary = profiles.influence_part(without, 20, 0.9, 0)
    assert sentences.on_no_token(ordinary) == ""
    assert not ordinary.tables["layers"][profiles.NO_TOKEN].any()
