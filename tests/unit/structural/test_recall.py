"""Tables of recall by place: of decoders whose recall is known, with intervals over contexts."""

import numpy as np
import pandas as pd
import pytest

from position_bias.structural import figures_recall, recall
from position_bias.structural.checks import OF_DECODERS, on_decoders
from position_bias.verdicts.judge import ESTIMATE
from position_card.core import artifacts
from position_card.core.artifacts import TensorFile
from position_card.rollout.statistics import resampled_weights, spearman
from tests.drawn import assert_legible
from tests.unit.structural.conftest import PREDICTED

C, P, CHANCE = 12, 32, 1 / 100


def written(path, recalled, accuracy=0.5, n=P + 3):
    """A file of contexts that recall so much above a prior of .01, with noise that is a context's own."""
    count = len(recalled)
    noise = np.exp(np.random.default_rng(0).normal(0, 0.1, (C, 1)))
    correct = np.zeros((C, count))
    correct[:, : round(accuracy * count)] = 1
    tensors = {"probability": recalled * noise + 0.01, "correct": correct, "prior": np.full((C, count), 0.01)}
    labels = {"model": "some", "n": n, "cue": 3, "words": round(1 / CHANCE)}
    artifacts.write_tensors(path, tensors, **labels)
    return TensorFile(str(path))


@pytest.fixture(scope="module")
def influence():
    """Gradients and mean attention rise at every position; replacement, known at three, and the other rollout fall."""
    rows = [("hub", "gradient", position, 1.0 + position) for position in range(64)]
    rows += [("hub", "replacement", position, 10.0 - position / 10) for position in (0, 32, 63)]
    rows += [("hub", "rotary", position, 5.0 - position) for position in range(64)]
    rows += [("hub", "measured", position, 2.0 + position) for position in range(64)]
    rows += [("copy", "gradient", 0, 5.0), ("hub", "usual", 0, 5.0)]
    table = pd.DataFrame(rows, columns=["weights", "measure", "position", "value"])
    return table.assign(model="some", low=np.nan, high=np.nan)


def made(files, influence):
    found = recall.recall_tables(files, [influence], 200, 0.95, 0)
    values = found["values"]
    return values.set_index(["statistic", "network", "unit"])["value"], found


def test_the_ends_are_over_the_middle_less_what_a_word_is_given_anyway(tmp_path, influence):
    recalled = np.full(P, 0.1)
    recalled[:4], recalled[-4:] = 0.4, 0.05
    values, found = made([written(tmp_path / "a.safetensors", recalled)], influence)
    assert list(found["values"]) == list(OF_DECODERS)
    for end, ratio in (("first", 4), ("last", 0.5)):
        units = values[f"log {end} eighth / middle", "recall"]
        assert units[ESTIMATE] == pytest.approx(np.log(ratio))
        assert len(units) == 201
        np.testing.assert_allclose(units, np.log(ratio), atol=1e-6)  # the noise of a context is the same at every place
    assert set(found["values"]["documents"]) == {C}


def test_places_are_ranked_as_influence_ranks_them(tmp_path, influence):
    values, _ = made([written(tmp_path / "a.safetensors", np.linspace(0.1, 0.9, P))], influence)
    ranks = values.loc["rank correlation of places"]
    np.testing.assert_allclose(ranks["gradient"], 1, atol=0.02)  # ties where two positions have the same places near
    np.testing.assert_allclose(ranks["replacement"], -1)
    np.testing.assert_allclose(ranks["rotary"], -1, atol=0.02)
    assert set(ranks.index.get_level_values("network")) == {"gradient", "replacement", "rotary", "measured"}


def test_everything_that_is_predicted_of_recall_is_measured(tmp_path, influence):
    lengths = {35: P, 128: 125, 2048: 80}
    files = [written(tmp_path / f"{n}.safetensors", np.linspace(0.1, 0.9, of), n=n) for n, of in lengths.items()]
    _, found = made(files, influence)
    judged = on_decoders([found["values"]], PREDICTED, 0.95)
    asked = {(name, row.network) for name, rows in PREDICTED.items() for row in rows if row.item == "recall by place"}
    measured = judged[judged["n"] > 0]
    assert set(measured[["statistic", "network"]].itertuples(index=False, name=None)) == asked
    assert set(measured["n"]) == {C}


def test_a_decoder_that_recalls_less_than_a_fifth_says_nothing(tmp_path, influence):
    values, _ = made([written(tmp_path / "a.safetensors", np.full(P, 0.1), accuracy=0.19)], influence)
    assert values.drop("log accuracy").isna().all()
    np.testing.assert_allclose(values["log accuracy"], np.log(6 / 32), atol=1e-6)


def test_an_end_where_nothing_is_recalled_has_no_logarithm(tmp_path, influence):
    file = written(tmp_path / "a.safetensors", np.full(P, 0.1))
    tensors = file.read()
    tensors["correct"] = np.tile(np.arange(P) >= 4, (C, 1)).astype(float)
    artifacts.write_tensors(file.path, tensors, **file.labels)
    values, _ = made([file], influence)
    assert values["log first eighth / middle", "accuracy"].isna().all()
    assert (values["log last eighth / middle", "accuracy"] == 0).all()


def test_long_contexts_say_which_end_wins_and_are_a_text_of_their_own(tmp_path):
    """No profiles are needed. A context of 300 tokens has 80 places, and its eighths have ten each."""
    recalled = np.repeat([0.1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.4], 10)
    found = recall.recall_tables([written(tmp_path / "long.safetensors", recalled, n=300)], [], 30, 0.95, 0)
    values = found["values"].set_index(["dataset", "statistic", "network"])["value"].sort_index()
    ends = values["words in prose", "log first eighth / last eighth, 300 tokens", "recall"]
    np.testing.assert_allclose(ends, np.log(1 / 4), atol=1e-6)
    np.testing.assert_allclose(values["words in prose", "log accuracy", "recall"], np.log(1 / 2), atol=1e-6)
    np.testing.assert_allclose(values["words in prose", "log last eighth / middle", "recall"], np.log(2), atol=1e-6)
    np.testing.assert_allclose(found["profiles"]["value"], recalled[::10] / 0.2)
    places = recall.shares({"n": 300, "cue": 3})
    assert (places[0], places[-1], len(places)) == (0, 1, 80)
    assert np.diff(places).max() > 3 * np.diff(places).min()  # pieces lie apart


def test_what_is_drawn_is_over_its_mean_in_the_middle(tmp_path, influence):
    recalled = np.full(P, 0.1)
    recalled[: P // 8] = 0.3
    recalled[-1] = 0.2
    _, found = made([written(tmp_path / "a.safetensors", recalled)], influence)
    profiles = found["profiles"].set_index("eighth")
    assert tuple(found["profiles"]) == recall.PROFILES
    np.testing.assert_allclose(profiles["value"], [3, 1, 1, 1, 1, 1, 1, (3 + 2) / 4])
    np.testing.assert_allclose(profiles["low"], profiles["high"])  # the noise of a context is the same at every place
    assert set(profiles["contexts"]) == {C}


def test_the_figure_says_which_decoder_recalls_too_little(tmp_path, influence, styled):
    _, found = made([written(tmp_path / "a.safetensors", np.full(P, 0.1), accuracy=0.0)], influence)
    figure = figures_recall.recall(found["profiles"])
    assert figure.get_label() == "some recalls too little"
    assert_legible(figure)


def test_noise_of_few_contexts_does_not_hide_that_places_rank_alike():
    places = np.linspace(0, 1, 100)
    curve = 1 + 3 * np.exp(-12 * places) + places
    near = np.abs(places[:, None] - places) <= recall.NEAR
    rng, ranks, unfreed = np.random.default_rng(0), [], []
    for seed in range(20):
        around = (curve * (1 + 1.5 * rng.normal(size=(24, 100)))) @ (near / near.sum(-1, keepdims=True)).T
        weights = resampled_weights(np.arange(24), 100, seed)
        ranks.append(recall.ranked_alike(around, curve, weights, recall.halves(24, seed)))
        unfreed.append(spearman(weights @ around, curve))
    assert np.mean([of[0] for of in unfreed]) < 0.86
    assert np.mean([of[0] for of in ranks]) > 0.93
    assert np.median([of[1:] for of in unfreed]) < 0.8  # resamples are noisier still
    assert np.median([of[1:] for of in ranks]) > 0.93
    unlike = recall.ranked_alike(around, rng.permutation(curve), weights, recall.halves(24, 0))
    assert abs(unlike[0]) < 0.5
