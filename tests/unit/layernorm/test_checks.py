"""What is measured of norms, on tables by hand and on a world by seed whose numbers are known."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from position_bias.layernorm import checks, checks_theory
from position_bias.layernorm.settings import NETWORKS
from position_bias.verdicts.judge import KEYS, PREDICTION
from tests.unit.layernorm.world import (
    HEADS,
    LAYERS,
    LEVEL,
    PAIRS,
    PREDICTIONS,
    SEEDS,
    STATES,
    STUDIES,
    TRAINED,
    UNTRAINED,
    WORLD,
    judged,
    tables,
)


def measured(**changed):
    """Statistic and values of its setting -> its table."""
    return {(found.name, *found.setting.values()): found.table for found in checks.statistics(*tables(**changed))}


@pytest.fixture(scope="module")
def papers():
    return judged()


@pytest.fixture(scope="module")
def everything():
    return measured()


def numbers(found):
    """Network -> the numbers of its units, in their order; NaN where a unit has none."""
    return {network: pytest.approx(values.to_list(), nan_ok=True) for network, values in found.items()}


def test_what_does_not_hold_in_a_world_of_our_predictions_is_what_contradicts_them(papers):
    """The review on residuals."""
    for names in (["quantity"], KEYS):
        assert not papers.duplicated([*names, *PREDICTION]).any()
    others = papers[papers["verdict"] != "holds"]
    assert set(others["claim"]) == {"layernorm-residuals"}
    assert set(others["verdict"]) == {"fails"}


def test_what_favours_the_other_end_turns_every_verdict_but_those_of_no_preference(papers):
    def turned(name, key, value):
        quantity = key[-1] if name in ("random", "trained") else ""
        return {"score": value, "position": 1 - value}.get(quantity, -value)

    found = judged(**{name: {key: turned(name, key, value) for key, value in WORLD[name].items()} for name in WORLD})
    opposite = papers["verdict"].replace({"holds": "fails", "fails": "holds"})
    # the bound of `layernorm-settled` lies beyond the middle, so both worlds keep to it
    without_preference = (papers["relation"] == "=") | (papers["claim"] == "layernorm-settled")
    assert found["verdict"].tolist() == papers["verdict"].where(without_preference, opposite).tolist()


def test_what_is_measured_is_what_something_is_predicted_of(everything):
    sampling = checks_theory.Sampling(12, 64, 1.0, 60, 0, LEVEL)
    theory = {measured.name for part in checks_theory.statements(sampling, 1000) for measured in part}
    assert {name for name, *_ in everything} | theory == set(PREDICTIONS)


def test_one_seed_is_measured_and_settles_nothing(papers):
    places = {"random": 2, "trained": 1, "curves": 2}
    one = {name: {key: of for key, of in WORLD[name].items() if key[place] == 3} for name, place in places.items()}
    one["models"] = {key: of for key, of in WORLD["models"].items() if key[3] == 3}  # one document
    found = judged(**one)
    assert set(found["quantity"]) == set(papers["quantity"])
    assert (set(found["verdict"]), set(found["n"])) == ({"not testable here"}, {1})
    assert found["measured"].notna().all()
    assert found[["low", "high"]].isna().all(axis=None)


def test_grams_are_taken_layer_by_layer_from_the_second_on_and_networks_that_are_missing_have_no_row():
    world = {
        ("rms", 1.0, 0, 1, 0, "gram"): 9.0,
        ("rms", 1.0, 0, 2, 0, "gram"): 0.2,
        ("rms", 1.0, 1, 2, 0, "gram"): 0.4,
        ("none", 1.0, 0, 2, 0, "gram"): -0.1,
        ("none", 1.0, 1, 2, 0, "gram"): 0.1,
        ("rms", 0.5, 0, 3, 0, "gram"): 0.6,
        ("rms", 0.0, 0, 3, 0, "gram"): 0.7,
    }
    found = {key: numbers(values) for key, values in measured(random=world).items() if "random weights" in key[0]}
    assert found["Gram of layer 2, random weights, residuals", 2, "1"] == {"rms": [0.2, 0.4], "none": [-0.1, 0.1]}
    assert found["Gram of deeper layers, random weights, residuals", 3, "0.5"]["rms"] == [0.6]
    assert found["Gram of deeper layers, random weights, no residuals", 3, "0"]["rms"] == [0.7]
    assert len(found) == 3
    assert "layer" not in set(judged(random=world)["network"])


def test_heads_are_taken_together_over_layers_from_the_second_on():
    values = {(1, 1): 9.0, (2, 1): 0.3, (2, 2): -0.2, (2, 3): 0.0, (3, 1): 0.7}
    world = {
        ("layer", 0.0, 4, layer, head, quantity): value + shift
        for (layer, head), value in values.items()
        for quantity, shift in (("score", 0.0), ("position", 0.5))
    }
    found = measured(random=world)
    expected = {"score": 0.2, "share of scores above 0": 0.5, "position": 0.7}
    for name, value in expected.items():
        assert numbers(found[f"{name}, random weights", "0"]) == {"layer": [value]}


def position(norm, layer, state="trained", seeds=SEEDS):
    of = WORLD["trained"]
    return np.array([np.mean([of[norm, seed, state, layer, head, "position"] for head in HEADS]) for seed in seeds])


@pytest.mark.parametrize("norm", NETWORKS)
def test_positions_are_means_over_heads_by_seed(everything, norm):
    untrained = np.mean([position(norm, layer, "untrained") for layer in LAYERS], axis=0)
    expected = {("position before training",): untrained, ("position in layer 1",): position(norm, 1)}
    for layer in (2, 3):
        expected["position", layer] = position(norm, layer)
        expected["position learnt", layer] = position(norm, layer) - position(norm, layer, "untrained")
    for key, values in expected.items():
        assert everything[key].index.to_list() == list(SEEDS)
        np.testing.assert_allclose(everything[key][norm], values, atol=1e-15)


@pytest.mark.parametrize("norm", NETWORKS)
def test_grams_and_losses_are_those_of_the_network(everything, norm):
    for depth, layer in (("layer 2", 2), ("deeper layers", 3)):
        grams = [WORLD["trained"][norm, seed, "trained", layer, 0, "gram"] for seed in SEEDS]
        assert everything[f"Gram of {depth}, trained", layer][norm].to_list() == grams
    assert everything["loss learnt",][norm].to_list() == pytest.approx([1] * 5)


def test_a_network_that_was_not_trained_cannot_be_tested_and_disturbs_no_other(papers):
    found = judged(trained={key: value for key, value in WORLD["trained"].items() if key[0] != "pre-rms"})
    with_it = found[["network", "other"]].eq("pre-rms").any(axis=1)
    assert set(found.loc[with_it, "verdict"]) == {"not testable here"}
    assert set(found.loc[with_it, "n"]) == {0}
    assert found.loc[with_it, ["measured", "low", "high"]].isna().all(axis=None)
    of_trained = papers[papers["item"] == "Trained decoders"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[~with_it], of_trained[~with_it])


def test_a_seed_that_diverged_is_left_out_of_what_it_is_compared_in():
    """One network lacks seed 1, one seed 4 after training."""
    lost = (("pre-rms", 1, "untrained"), ("pre-rms", 1, "trained"), ("none", 4, "trained"))
    kept = {key: value for key, value in WORLD["trained"].items() if key[:3] not in lost}
    found, rows = measured(trained=kept), judged(trained=kept)
    after, learnt = found["position", 2], found["position learnt", 2]
    gain = position("pre-rms", 2, seeds=[0, 2, 3]) - position("none", 2, seeds=[0, 2, 3])
    np.testing.assert_allclose(after["pre-rms"] - after["none"], [gain[0], np.nan, *gain[1:], np.nan])
    assert learnt.isna().sum().to_dict() == {"none": 1, "pre-rms": 1, "pre-layer": 0, "post-layer": 0}
    of_network = rows[(rows["statistic"] == "position") & (rows["network"] == "pre-rms")]
    assert of_network.groupby("other")["left_out"].agg(set).to_dict() == {"": {1}, "none": {2}}


def test_models_are_judged_over_documents_by_their_mean_over_seeds_and_deep_layers():
    values = {(0, 7, 1): 9.0, (0, 7, 2): 0.1, (0, 7, 3): 0.3, (1, 7, 2): 0.5, (1, 7, 3): 0.7, (1, 8, 2): 0.6}
    world = {
        (model, seed, state, document, layer): value + (model == "mpt") - (state == UNTRAINED)
        for (seed, document, layer), value in values.items()
        for model, state in product(("bloom", "mpt"), STATES)
    }
    found = measured(models=world)
    for model, state in product(("bloom", "mpt"), STATES):
        shift = (model == "mpt") - (state == UNTRAINED)
        assert numbers(found["Gram of a model", model, state]) == {"model": [0.4 + shift, 0.6 + shift]}


def test_a_model_whose_start_was_not_kept_cannot_be_tested_there_and_one_of_the_hub_has_none():
    kept = {key: value for key, value in WORLD["models"].items() if key[2] == TRAINED and key[0] == "bloom"}
    hub = {("mpt", seed, "of the hub", *key): value for (_, seed, _, *key), value in kept.items()}
    found = judged(models=kept | hub)
    found = found[found["statistic"] == "Gram of a model"].set_index("setting")[["verdict", "n", "left_out"]]
    assert found.T.to_dict("list") == {
        f"model = bloom; state = {TRAINED}": ["holds", 6, 0],
        f"model = bloom; state = {UNTRAINED}": ["not testable here", 0, 0],
        "model = mpt; state = of the hub": ["holds", 6, 0],
    }
    start = measured(models={key: value for key, value in WORLD["models"].items() if key[2] == UNTRAINED})
    assert ("Gram of a model", "mpt", UNTRAINED) in start
    assert ("Gram of a model", "mpt", TRAINED) not in start


def test_gaps_are_taken_by_seed_after_training_at_the_depth_of_the_norms(everything):
    assert {tuple(setting) for name, *setting in everything if name.endswith("gap")} == {("gaussian", 2)}
    for pair, (study, norm) in product(PAIRS, zip(STUDIES, ("none", "pre", "post"), strict=True)):
        gap = [WORLD["curves"][study, 2, seed, 500, pair] for seed in SEEDS]
        assert everything[f"{pair} gap", "gaussian", 2][norm].to_list() == gap


def test_a_seed_without_a_last_test_has_no_gap_and_networks_without_norms_alone_are_not_compared():
    """A network that diverged has no test after the last iteration."""
    curves = WORLD["curves"]
    found = measured(curves={key: of for key, of in curves.items() if key[:4] != ("pre-norm", 2, 1, 500)})
    gap = found["first-last gap", "gaussian", 2]
    assert gap["pre"].isna().to_list() == [False, True, False, False, False]
    assert gap[["none", "post"]].notna().all(axis=None)
    alone = measured(curves={key: of for key, of in curves.items() if key[0] == "residual"})
    assert not [name for name, *_ in alone if name.endswith("gap")]


# Language models, as a table


NOTHING = np.zeros((1, 1), np.float32), np.zeros(1, np.int64)


def gram(labels, recency, documents):
    """A file of a measured Gram, as far as it is read."""
    kept = {"recency": recency, "documents": documents}
    return SimpleNamespace(labels=labels, read=lambda *names: {name: kept[name] for name in names})


def test_a_table_has_a_row_a_prompt_and_layer():
    recency = np.array([[0.5, -0.25, 1.0], [2.0, 0.0, -3.5]], np.float32)
    labels = {"model": "bloom", "checkpoint": "seed1/step300", "dataset": "any", "n": 64}
    table = checks.recency_of_models([gram(labels, recency, np.array([4, 9]))])
    expected = pd.DataFrame(
        [
            ("bloom", "1", "trained (step 300)", 4, 0, 1, 0.5),
            ("bloom", "1", "trained (step 300)", 4, 0, 2, -0.25),
            ("bloom", "1", "trained (step 300)", 4, 0, 3, 1.0),
            ("bloom", "1", "trained (step 300)", 9, 1, 1, 2.0),
            ("bloom", "1", "trained (step 300)", 9, 1, 2, 0.0),
            ("bloom", "1", "trained (step 300)", 9, 1, 3, -3.5),
        ],
        columns=["model", "seed", "state", "document", "prompt", "layer", "value"],
    )
    pd.testing.assert_frame_equal(table, expected)


@pytest.mark.parametrize(
    ("checkpoint", "seed", "state"),
    [
        ("seed0/step0", "0", "untrained (step 0)"),
        ("seed12/step1000", "12", "trained (step 1000)"),
        ("hub", "hub", "of the hub"),
    ],
)
def test_seed_and_state_are_those_of_the_checkpoint_whatever_digits_a_model_has(checkpoint, seed, state):
    table = checks.recency_of_models([gram({"model": "falcon-7b-v2", "checkpoint": checkpoint}, *NOTHING)])
    assert table[["model", "seed", "state"]].to_numpy().tolist() == [["falcon-7b-v2", seed, state]]
