import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from position_bias.postnorm import depths, experiments, tasks, training
from position_bias.postnorm.training import Setting
from position_bias.running import configuration
from position_bias.running.checkpoint import Place
from position_bias.running.runtime import InputError
from position_bias.running.section import Bounds, Seeds
from position_bias.small_networks import decoder, ensemble
from position_bias.small_networks.averaging import Averaging
from position_bias.small_networks.ensemble import Recipe
from position_bias.small_networks.size import Size

ROOT = Path(__file__).parents[3]
TASK = tasks.SetComplement(6)
SETTING = Setting(length=3, batch=8, longest=5, sequences=30)
RECIPE = Recipe(15, 1.0, 1e-2, warmup=2, decay=True)
SEEDS = (0, 4)
TESTS = ["seed", "length", "quantity", "value"]
HISTORY = ["seed", "iteration", "loss", "gradient_norm", "highest_loss", "highest_gradient_norm"]
KEY = "postnorm.set_complement.learning_rate"


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "experiments", 100, "cpu")


def directly(folder, scheme, recipe, size=None, averaging=None):
    """The same training without the experiment around it."""
    return training.train(
        TASK, scheme, size or Size(1, 5, 1, 0), SETTING, recipe, SEEDS, Place(folder, 100, "cpu"), averaging
    )  # fmt: skip


def same_rows(found, expected):
    pd.testing.assert_frame_equal(found[expected.columns].reset_index(drop=True), expected.reset_index(drop=True))


# What all have in common


def test_a_schedule_rises_over_a_share_of_the_iterations_and_falls_to_0():
    recipe = experiments.schedule(200, 0.05, 0.3)
    assert recipe == Recipe(200, 1.0, 0.3, warmup=10, decay=True)
    assert recipe.rate(10) == 1
    assert recipe.rate(201) == 0
    assert experiments.schedule(150, 0.0, 0.0).warmup == 0


@pytest.mark.parametrize("v", [2, 16, 32])
def test_the_minimal_transformer_has_one_head_no_mlp_and_a_direction_less_than_tokens(v):
    assert experiments.minimal(v) == Size(layers=1, width=v - 1, heads=1, hidden=0)


def test_seeds_of_sweeps_are_none_that_a_figure_can_have():
    most = configuration.part(Seeds).rules[Bounds].most
    swept = ensemble.seeds_of_sweep(7)
    assert len(set(swept)) == 7
    assert not set(swept) & set(range(most))


# By scheme


def test_schemes_are_each_trained_at_their_own_rate(place, tmp_path):
    rates = {"none": 1e-2, "peri": 3e-2}
    tests, history = experiments.by_scheme(TASK, Size(1, 5, 1, 0), SETTING, RECIPE, rates, SEEDS, place, KEY)
    assert set(tests.columns) == {*TESTS, "scheme", "task"}
    assert set(history.columns) == {*HISTORY, "scheme", "task"}
    for table in (tests, history):
        assert table["task"].unique().tolist() == ["set-complement-6"]
        assert table["scheme"].unique().tolist() == ["none", "peri"]
        assert table.index.tolist() == list(range(len(table)))
    assert len(history) == 2 * 2 * 15  # fewer iterations than points of a curve
    for scheme, rate in rates.items():
        expected = directly(tmp_path / scheme, scheme, replace(RECIPE, learning_rate=rate))
        same_rows(tests[tests["scheme"] == scheme], expected.tests)
        losses = history[history["scheme"] == scheme].pivot(index="iteration", columns="seed", values="loss")
        np.testing.assert_array_equal(losses.to_numpy(), expected.trained.losses)


def test_curves_have_at_most_so_many_points(place, monkeypatch):
    monkeypatch.setattr(experiments, "POINTS", 4)
    _, history = experiments.by_scheme(TASK, Size(1, 5, 1, 0), SETTING, RECIPE, {"pre": 1e-2}, SEEDS, place, KEY)
    assert len(history) == 4 * len(SEEDS)
    assert history["iteration"].max() == 15


@pytest.mark.parametrize("experiment", ["by_scheme", "by_width"])
def test_a_scheme_whose_networks_all_diverge_is_named_with_its_key(place, experiment):
    rates = {"pre": 1e-2, "none": math.inf}
    with pytest.raises(InputError) as error:
        if experiment == "by_scheme":
            experiments.by_scheme(TASK, Size(1, 5, 1, 0), SETTING, RECIPE, rates, SEEDS, place, KEY)
        else:
            experiments.by_width(TASK, [4], SETTING, RECIPE, rates, SEEDS, place, KEY)
    assert str(error.value) == f"every network diverged at {KEY}.none = inf; lower it"


# By width


def test_widths_are_those_of_the_minimal_transformer_below_and_above_v_less_1(place, tmp_path):
    rates = {"none": 1e-2, "peri": 2e-2}
    found = experiments.by_width(TASK, [3, 5, 8], SETTING, RECIPE, rates, SEEDS, place, KEY)
    assert set(found.columns) == {*TESTS, "scheme", "width", "task"}
    assert set(zip(found["scheme"], found["width"], strict=True)) == {(s, d) for s in rates for d in (3, 5, 8)}
    for scheme, width in (("none", 3), ("peri", 8)):
        recipe = replace(RECIPE, learning_rate=rates[scheme])
        expected = directly(tmp_path / scheme, scheme, recipe, Size(1, width, 1, 0))
        same_rows(found[(found["scheme"] == scheme) & (found["width"] == width)], expected.tests)
    assert len(list(place.folder.iterdir())) == 6  # none goes on from the checkpoint of another


# By average


def watched(monkeypatch, folder, recipe, scheme):
    """What training leaves, and the weights before every update, written down as it goes."""
    original, seen = decoder.logits, []

    def spy(weights, *arguments):
        if torch.is_grad_enabled():
            seen.append({name: value.detach().double().clone() for name, value in weights.items()})
        return original(weights, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training.decoder, "logits", spy)
        outcome = directly(folder, scheme, recipe)
    last = {name: value.double() for name, value in outcome.trained.parameters.items()}
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
    etas = (0.2, 0.5)
    found = experiments.by_average(
        TASK, Size(1, 5, 1, 0), scheme, SETTING, RECIPE, 3e-2, Averaging(0.7), etas, SEEDS, place
    )
    assert set(found.columns) == {*TESTS, "scheme", "task", "decay", "weights", "kappa", "eta"}
    assert found["scheme"].unique().tolist() == [scheme]
    assert found["kappa"].unique().tolist() == [0.7]
    assert set(zip(found["weights"], found["eta"], strict=True)) == {
        ("raw", 0), ("ema", 0), ("bema", 0.2), ("bema", 0.5)
    }  # fmt: skip
    distances = set()
    for decay in (False, True):
        recipe = replace(RECIPE, learning_rate=3e-2, decay=decay)
        outcome, walk = watched(monkeypatch, tmp_path / str(decay), recipe, scheme)
        assert len(walk) == 16
        of_rate = found[found["decay"] == decay]
        same_rows(of_rate[of_rate["weights"] == "raw"], outcome.tests)
        for eta in etas:
            ema, bema = by_hand(walk, 0.7, eta)
            for name, of_eta, weights in (("ema", 0, ema), ("bema", eta, bema)):
                weights = {name: value.float() for name, value in weights.items()}
                expected = training.evaluate(weights, outcome.architecture, TASK, SETTING, SEEDS, "cpu")
                rows = of_rate[(of_rate["weights"] == name) & (of_rate["eta"] == of_eta)]
                pd.testing.assert_frame_equal(rows[TESTS].reset_index(drop=True), expected, rtol=1e-4, atol=1e-5)
        tvd = of_rate[of_rate["quantity"] == "tvd"].groupby(["weights", "eta"])["value"].mean()
        distances |= set(tvd.round(6))
    assert len(distances) == 8  # every average of either rate is a network of its own


def test_averages_of_members_that_diverged_are_left_out(place, spoil):
    spoil("q0", 1)
    found = experiments.by_average(
        TASK, Size(1, 5, 1, 0), "peri", SETTING, RECIPE, 1e-2, Averaging(0.7), [0.5], SEEDS, place
    )
    assert found["seed"].unique().tolist() == [0]
    assert np.isfinite(found["value"]).all()
    assert len(found) == 2 * 3 * 5 * len(training.QUANTITIES)


def test_averages_of_networks_that_all_diverged_say_so(place):
    with pytest.raises(InputError, match=r"^every network diverged at postnorm\.averaging\.learning_rate = inf; lower"):
        experiments.by_average(
            TASK, Size(1, 5, 1, 0), "peri", SETTING, RECIPE, math.inf, Averaging(0.7), [0.5], SEEDS, place
        )


# Depth


def test_depth_is_that_of_the_trained_networks_and_leaves_out_what_diverged(place, tmp_path, spoil):
    spoil("q0", 1)
    task, size, setting = tasks.Nested(1, 1, 4), Size(1, 4, 1, 4), replace(SETTING, length=4, longest=4)
    found = experiments.by_depth(task, size, setting, RECIPE, {"pre": 1e-2, "peri": 1e-2}, SEEDS, place)
    assert set(found.columns) == {"seed", "deeper", "quantity", "value", "scheme", "task"}
    assert found["seed"].unique().tolist() == [0]
    assert len(found) == 2 * 2 * 2
    recipe = replace(RECIPE, learning_rate=1e-2)
    again = training.train(task, "peri", size, setting, recipe, SEEDS, Place(tmp_path / "again", 100, "cpu"))
    weights, network = again.trained.parameters, again.architecture
    expected = depths.by_depth(weights, network, task, SEEDS, setting.sequences, "cpu")
    same_rows(found[found["scheme"] == "peri"], expected[expected["seed"] == 0])


# Stability


def test_every_iteration_is_kept_also_of_what_diverges(place, tmp_path):
    sizes, schemes, rates = [Size(1, 5, 1, 0), Size(3, 4, 1, 6)], ["none", "post"], [1e-2, 1e30]
    recipe = Recipe(12, 1.0, 0.0)
    found = experiments.stability(TASK, schemes, sizes, rates, SETTING, recipe, SEEDS, place)
    assert set(found.columns) == {*HISTORY, "scheme", "layers", "learning_rate", "task"}
    keys = ["scheme", "layers", "learning_rate", "seed"]
    assert len(found.groupby(keys)) == 2 * 2 * 2 * 2
    for (scheme, layers, rate, _), rows in found.groupby(keys):
        assert rows["iteration"].tolist() == list(range(1, 13))
        finite = np.isfinite(rows[["loss", "gradient_norm"]]).all(axis=1).to_numpy()
        assert finite[0]  # before the first update
        if rate == 1e-2:
            assert finite.all()
        elif scheme == "none":
            assert not finite[1:].any(), (scheme, layers)
    for size in sizes:
        expected = directly(tmp_path / str(size.layers), "post", replace(recipe, learning_rate=1e-2), size).trained
        rows = found[(found["scheme"] == "post") & (found["layers"] == size.layers) & (found["learning_rate"] == 1e-2)]
        for quantity, values in (("loss", expected.losses), ("gradient_norm", expected.gradient_norms)):
            pivot = rows.pivot(index="iteration", columns="seed", values=quantity)
            np.testing.assert_array_equal(pivot.to_numpy(), values)


def test_iterations_after_the_last_member_diverged_are_kept_whenever_checkpoints_are_written(tmp_path):
    arguments = (TASK, ["none"], [Size(1, 5, 1, 0)], [1e30], SETTING, Recipe(12, 1.0, 0.0), SEEDS)
    seldom, often = (
        experiments.stability(*arguments, Place(tmp_path / str(every), every, "cpu")) for every in (100, 4)
    )
    assert seldom.groupby("seed")["iteration"].max().tolist() == [12, 12]
    assert often.groupby("seed")["iteration"].max().tolist() == [12, 12]


# Sweeps


def test_settled_losses_are_those_of_the_last_iterations_and_missing_where_one_is_not_finite():
    curves = pd.DataFrame(
        {"iteration": [*range(1, 21)] * 2, "seed": [0] * 20 + [1] * 20, "loss": [9.0] * 18 + [1, 2] * 11}
    )
    curves.loc[39, "loss"] = np.inf
    labels = {"task": "set-complement-6", "scheme": "pre", "layers": 1, "learning_rate": 0.1}
    found = experiments.settled_losses(curves.assign(**labels)).set_index("seed")
    assert found.loc[0, list(labels)].to_dict() == labels
    assert found.loc[0, "loss"] == pytest.approx(1.5)
    assert np.isnan(found.loc[1, "loss"])


def test_a_sweep_has_a_row_a_seed_and_none_where_it_diverged(place, tmp_path):
    recipes, rates = [RECIPE, replace(RECIPE, iterations=30)], [1e-2, math.inf]
    found = experiments.sweep(TASK, Size(1, 5, 1, 0), ["none", "peri"], SETTING, recipes, rates, SEEDS, place)
    assert list(found.columns) == ["task", "scheme", "learning_rate", "iterations", "seed", "tvd"]
    settings = ["scheme", "learning_rate", "iterations", "seed"]
    assert not found.duplicated(settings).any()
    assert len(found) == 2 * 2 * 2 * 2
    assert found["tvd"].isna().equals(found["learning_rate"] == math.inf)
    assert len(list(place.folder.iterdir())) == 8  # none goes on from the checkpoint of another
    for recipe in recipes:
        tests = directly(tmp_path / str(recipe.iterations), "peri", replace(recipe, learning_rate=1e-2)).tests
        rows = found[
            (found["scheme"] == "peri") & (found["learning_rate"] == 1e-2) & (found["iterations"] == recipe.iterations)
        ].set_index("seed")["tvd"]
        for seed in SEEDS:
            at = (tests["quantity"] == "tvd") & (tests["seed"] == seed) & (tests["length"].isin([1, 2, 3]))
            assert rows[seed] == pytest.approx(tests[at]["value"].mean(), rel=1e-9)


def test_a_sweep_names_the_members_that_diverged_alone(place, monkeypatch):
    original = decoder.initial

    def spoilt(*arguments):
        weights = original(*arguments)
        weights["v0"][0, 0, 0] = math.nan
        return weights

    monkeypatch.setattr(training.decoder, "initial", spoilt)
    found = experiments.sweep(TASK, Size(1, 5, 1, 0), ["pre"], SETTING, [RECIPE], [1e-2], SEEDS, place)
    assert found["seed"].tolist() == list(SEEDS)
    assert found["tvd"].isna().tolist() == [True, False]


def test_a_killed_experiment_goes_on_with_what_it_had(place, monkeypatch):
    """The second call trains nothing that the first had finished."""
    arguments = (TASK, Size(1, 5, 1, 0), ["none", "pre"], SETTING, [RECIPE], [1e-2], SEEDS, place)
    expected = experiments.sweep(*arguments)
    calls = []
    original = training.Batches.__call__
    monkeypatch.setattr(
        training.Batches, "__call__", lambda self, iteration: calls.append(iteration) or original(self, iteration)
    )
    pd.testing.assert_frame_equal(experiments.sweep(*arguments), expected)
    assert calls == []
