"""What experiments ask of the networks of their trials; how these train and are tested, is tested beside this file."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from position_bias.postnorm import runs, tasks, training
from position_bias.postnorm.runs import Trial
from position_bias.postnorm.training import TrialOutcome
from position_bias.small_networks import decoder
from position_bias.small_networks.ensemble import TrainingResult
from position_card.core.checkpoint import Place
from position_card.core.runtime import InputError

SEEDS = [0, 4]
TESTS = ["seed", "length", "quantity", "value"]
HISTORY = ["seed", "iteration", "loss", "gradient_norm", "highest_loss", "highest_gradient_norm"]
TRIAL = Trial(
    task="set-complement-6",
    scheme="peri",
    size=runs.minimal(6),
    setting={"length": 3, "batch": 8, "longest": 5, "sequences": 30},
    recipe={"iterations": 15, "learning_rate": 1e-2, "weight_decay": 1e-2, "warmup": 2, "decay": True},
    seeds=SEEDS,
    labels={"scheme": "peri", "task": "set-complement-6"},
    rate_key="postnorm.some.rate",
)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "trials", 100, "cpu")


def trial(rate=1e-2, **changed):
    """TRIAL at a learning rate, with other changes."""
    changed = {"labels": {"scheme": changed.get("scheme", "peri"), "rate": rate}} | changed
    return TRIAL._replace(recipe=TRIAL.recipe | {"learning_rate": rate}, **changed)


def directly(folder, asked):
    """The same training without the experiment around it."""
    return training.train(asked, Place(folder, 100, "cpu"))


def same_rows(found, expected):
    pd.testing.assert_frame_equal(found[expected.columns].reset_index(drop=True), expected.reset_index(drop=True))


def test_the_tables_of_trials_have_their_labels_and_are_those_of_each_by_itself(place, tmp_path):
    asked = [trial(scheme="none"), trial(3e-2), trial(3e-2, size={**TRIAL.size, "width": 3}, labels={"width": 3})]
    tables = training.run(asked, ["tests", "history"], place)
    assert list(tables["tests"].columns) == [*TESTS, "scheme", "rate", "width"]
    assert list(tables["history"].columns) == [*HISTORY, "scheme", "rate", "width"]
    assert len(tables["history"]) == 3 * 2 * 15  # fewer iterations than points of a curve
    for index, one in enumerate(asked):
        expected = directly(tmp_path / str(index), one)
        own = {name: table.iloc[index * len(table) // 3 :][: len(table) // 3] for name, table in tables.items()}
        same_rows(own["tests"], expected.tests)
        losses = own["history"].pivot(index="iteration", columns="seed", values="loss")
        np.testing.assert_array_equal(losses.to_numpy(), expected.result.losses)
        assert {name: own["tests"][name].unique().tolist() for name in one.labels} == {
            name: [value] for name, value in one.labels.items()
        }


def test_curves_have_at_most_so_many_points(place, monkeypatch):
    monkeypatch.setattr(training, "POINTS", 4)
    history = training.run([TRIAL], ["history"], place)["history"]
    assert len(history) == 4 * len(SEEDS)
    assert history["iteration"].max() == 15


def test_networks_that_all_diverge_are_named_with_the_key_of_their_rate(place):
    with pytest.raises(InputError, match=r"^every network diverged at postnorm\.some\.rate = inf; lower it$"):
        training.run([trial(math.inf)], ["tests"], place)


def test_a_killed_experiment_goes_on_with_what_it_had(place, monkeypatch):
    """The second call trains nothing that the first had finished."""
    asked = [trial(scheme="none"), trial(scheme="pre")]
    expected = training.run(asked, ["distances"], place)["distances"]
    calls, original = [], training.TaskBatches.__call__
    monkeypatch.setattr(
        training.TaskBatches, "__call__", lambda self, iteration: calls.append(iteration) or original(self, iteration)
    )
    pd.testing.assert_frame_equal(training.run(asked, ["distances"], place)["distances"], expected)
    assert calls == []


# Averages


def watched(monkeypatch, folder, trial):
    """What training leaves, and the weights before every update, written down as it goes."""
    original, seen = decoder.logits, []

    def spy(weights, *arguments):
        if torch.is_grad_enabled():
            seen.append({name: value.detach().double().clone() for name, value in weights.items()})
        return original(weights, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training.decoder, "logits", spy)
        outcome = directly(folder, trial)
    last = {name: value.double() for name, value in outcome.result.parameters.items()}
    return outcome, [*seen, last]


def by_hand(walk, kappa, eta):
    """EMA and BEMA after the last update, from the definitions, in float64."""
    average, t = dict(walk[0]), len(walk) - 1
    for step in range(1, t + 1):
        beta = (10 + step) ** -kappa
        average = {name: (1 - beta) * value + beta * walk[step][name] for name, value in average.items()}
    alpha = (10 + t) ** -eta
    return average, {name: value + alpha * (walk[-1][name] - walk[0][name]) for name, value in average.items()}


@pytest.mark.parametrize("scheme", ["peri", "post"])
def test_averages_are_tested_as_if_made_by_hand_from_all_weights(scheme, place, tmp_path, monkeypatch):
    etas, distances = (0.2, 0.5), set()
    for decay in (False, True):
        recipe = TRIAL.recipe | {"learning_rate": 3e-2, "decay": decay}
        asked = TRIAL._replace(scheme=scheme, recipe=recipe, kappa=0.7, etas=etas)
        found = training.run([asked], ["averages"], place.apart(str(decay)))["averages"]
        assert list(found.columns) == [*TESTS, "decay", "weights", "kappa", "eta", "scheme", "task"]
        assert found[["decay", "kappa"]].drop_duplicates().to_numpy().tolist() == [[decay, 0.7]]
        assert set(zip(found["weights"], found["eta"], strict=True)) == {
            ("raw", 0), ("ema", 0), ("bema", 0.2), ("bema", 0.5)
        }  # fmt: skip
        outcome, walk = watched(monkeypatch, tmp_path / str(decay), asked)
        assert len(walk) == 16
        same_rows(found[found["weights"] == "raw"], outcome.tests)
        for eta in etas:
            ema, bema = by_hand(walk, 0.7, eta)
            for name, of_eta, weights in (("ema", 0, ema), ("bema", eta, bema)):
                weights = {name: value.float() for name, value in weights.items()}
                expected = training.evaluate(weights, outcome.networks)
                rows = found[(found["weights"] == name) & (found["eta"] == of_eta)]
                pd.testing.assert_frame_equal(rows[TESTS].reset_index(drop=True), expected, rtol=1e-4, atol=1e-5)
        tvd = found[found["quantity"] == "tvd"].groupby(["weights", "eta"])["value"].mean()
        distances |= set(tvd.round(6))
    assert len(distances) == 8  # every average of either rate is a network of its own


def test_averages_of_members_that_diverged_are_left_out(place, spoil):
    spoil("q0", 1)
    found = training.run([trial(kappa=0.7, etas=(0.5,))], ["averages"], place)["averages"]
    assert found["seed"].unique().tolist() == [0]
    assert np.isfinite(found["value"]).all()
    assert len(found) == 3 * 5 * len(training.QUANTITIES)


# Depth

NESTED = trial(
    task="nested-2-1-6",
    size={"layers": 1, "width": 8, "heads": 2, "hidden": 8},
    setting={"length": 6, "batch": 8, "longest": 6, "sequences": 30},
)
BRACKETS = tasks.nested(NESTED.task)


def test_networks_that_did_not_diverge_are_judged_at_deeper_positions_and_on_deeper_words_apart(place, tmp_path, spoil):
    spoil("q0", 1)
    found = training.run([NESTED], ["depths"], place)["depths"]
    assert list(found.columns) == ["seed", "deeper", "quantity", "value", "scheme", "rate"]
    assert found["seed"].unique().tolist() == [0]
    found = found.set_index(["deeper", "quantity"])["value"]
    outcome = directly(tmp_path / "again", NESTED)
    weights, network = outcome.result.parameters, outcome.networks.architecture
    prefixes = tasks.formal(BRACKETS.deep_language).sequences(SEEDS, "depths", 30, 6)
    p = decoder.logits(weights, network, prefixes.tokens)[0].softmax(-1)
    target = (prefixes.legal / prefixes.legal.sum(-1, keepdim=True))[0]
    depths = BRACKETS.depths(prefixes.tokens)[0]
    kinds = tasks.words(BRACKETS.deep_language, SEEDS, "depths", training.WORDS * 30, 6)
    scores = [training.least_probability(weights, network, tokens)[0].detach() for tokens in kinds]
    for deeper in (False, True):
        distances = [
            float((p[m, t] - target[m, t]).abs().sum() / 2)
            for m in range(30)
            for t in range(1, 7)
            if (depths[m, t] > 1) == deeper
        ]
        assert found[deeper, "tvd"] == pytest.approx(sum(distances) / len(distances), abs=1e-6)
        of_words = (BRACKETS.depths(kinds[0])[0].amax(-1) > 1) == deeper
        words, misses = (of_kind[of_words] for of_kind in scores)
        expected = scipy.stats.mannwhitneyu(words, misses).statistic / len(words) / len(misses)
        assert found[deeper, "auc"] == pytest.approx(expected)


def test_a_network_that_knows_the_top_of_the_stack_only_at_trained_depth_fails_deeper(tmp_path, monkeypatch):
    outcome = directly(tmp_path, NESTED)

    def knows(weights, network, tokens, values=None):
        guess = (BRACKETS.depths(tokens) > BRACKETS.depth)[..., None]
        return torch.where(BRACKETS.legal(tokens) | guess, 0.0, -30.0)

    def judged(weights, network, seen):
        p = knows(weights, network, seen.tokens).softmax(-1)
        distance = (p - seen.legal / seen.legal.sum(-1, keepdim=True)).abs().sum(-1) / 2
        return distance.expand(len(training.QUANTITIES), *distance.shape)

    monkeypatch.setattr(training, "judge", judged)
    monkeypatch.setattr(decoder, "logits", knows)
    found = training.by_depth(outcome).groupby(["deeper", "quantity"])["value"]
    assert found.max()[False, "tvd"] < 1e-6
    assert found.min()[True, "tvd"] == pytest.approx(0.4)  # 5 outputs, of which 3 are legal
    assert found.min()[False, "auc"] > 0.9
    assert found.max()[True, "auc"] < found.min()[False, "auc"]


# Along training


def outcome_with(losses, norms, seeds=(7, 8, 9)):
    trained = TrainingResult({}, losses, norms, [], np.zeros(0, np.float32), {}, {})
    asked = trial(seeds=seeds)
    return TrialOutcome(asked, training.networks(asked, "cpu"), {}, trained, [*seeds], pd.DataFrame())


@settings(max_examples=40)
@given(iterations=st.integers(1, 60), points=st.integers(1, 80), seed=st.integers(0, 99))
def test_stretches_cover_all_iterations_once_and_are_averaged(iterations, points, seed):
    losses, norms = np.random.default_rng(seed).random((2, iterations, 3)).astype(np.float32)
    table = training.stretches(outcome_with(losses, norms), points)
    assert list(table.columns) == HISTORY
    for member, (name, rows) in enumerate(table.groupby("seed")):
        assert name == 7 + member
        ends = rows["iteration"].tolist()
        assert len(ends) == min(points, iterations)
        assert ends == sorted(set(ends))
        assert ends[-1] == iterations
        sizes = np.diff([0, *ends])
        assert sizes.max() - sizes.min() <= 1
        for (start, end), (_, row) in zip(zip([0, *ends], ends, strict=False), rows.iterrows(), strict=True):
            for quantity, values in (("loss", losses), ("gradient_norm", norms)):
                assert row[quantity] == pytest.approx(values[start:end, member].mean(dtype=float), rel=1e-5)
                assert row[f"highest_{quantity}"] == values[start:end, member].max()


def test_stretches_keep_what_is_not_finite():
    losses, norms = np.ones((6, 2), np.float32), np.ones((6, 2), np.float32)
    losses[3:, 1], norms[2, 1] = np.nan, np.inf
    table = training.stretches(outcome_with(losses, norms, (0, 1)), 3).set_index(["seed", "iteration"])
    assert np.isfinite(table.loc[0]).all(axis=None)
    assert table.loc[1, "loss"].isna().tolist() == [False, True, True]
    assert np.isinf(table.loc[1, "gradient_norm"]).tolist() == [False, True, False]
    assert table.loc[1, "highest_loss"].isna().tolist() == [False, True, True]


# Stability


@pytest.mark.parametrize("every", [4, 100])
def test_every_iteration_is_kept_also_of_what_diverges_whenever_checkpoints_are_written(tmp_path, every):
    asked = [
        trial(rate, scheme=scheme, rate_key="", to_the_end=True) for scheme in ("none", "post") for rate in (1e-2, 1e30)
    ]
    found = training.run(asked, ["losses"], Place(tmp_path / "kept", every, "cpu"))["losses"]
    assert list(found.columns) == [*HISTORY, "scheme", "rate"]
    for (scheme, rate, _), rows in found.groupby(["scheme", "rate", "seed"]):
        assert rows["iteration"].tolist() == list(range(1, 16))
        finite = np.isfinite(rows[["loss", "gradient_norm"]]).all(axis=1).to_numpy()
        assert finite[0]  # before the first update
        assert finite.all() or rate == 1e30
        assert not finite[1:].any() or (scheme, rate) != ("none", 1e30)
    expected = directly(tmp_path / "again", asked[2]).result
    rows = found[(found["scheme"] == "post") & (found["rate"] == 1e-2)]
    for quantity, values in (("loss", expected.losses), ("gradient_norm", expected.gradient_norms)):
        np.testing.assert_array_equal(rows.pivot(index="iteration", columns="seed", values=quantity), values)


# Sweeps


def test_settled_losses_are_those_of_the_last_iterations_and_missing_where_one_is_not_finite(place, tmp_path):
    asked = [trial(rate_key="", to_the_end=True), trial(1e30, scheme="none", rate_key="", to_the_end=True)]
    found = training.run(asked, ["settled"], place)["settled"]
    assert list(found.columns) == ["task", "scheme", "rate", "seed", "loss"]
    expected = directly(tmp_path / "again", asked[0]).result.losses[13:].mean(0)  # 2 of 15
    np.testing.assert_allclose(found["loss"][:2], expected, rtol=1e-6)
    assert found["loss"][2:].isna().all()


def test_a_sweep_has_the_mean_distance_at_trained_lengths_and_none_where_a_member_diverged(place, tmp_path, spoil):
    tests = directly(tmp_path / "again", TRIAL).tests
    near = tests[(tests["quantity"] == "tvd") & tests["length"].isin([1, 2, 3]) & (tests["seed"] == 4)]
    spoil("v0", 0)
    found = training.run([TRIAL], ["distances"], place)["distances"]
    assert list(found.columns) == ["scheme", "task", "seed", "tvd"]
    assert found["seed"].tolist() == SEEDS
    assert np.isnan(found["tvd"][0])
    assert found["tvd"][1] == pytest.approx(near["value"].mean(), rel=1e-9)
