"""What is measured of norms, on tables by hand and on a world by seed whose numbers are known."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_bias.emergence import gaps
from position_bias.layernorm import checks, checks_theory
from position_bias.layernorm.networks import NETWORKS
from position_bias.verdicts.judge import judge
from position_bias.verdicts.predictions import predictions
from position_bias.verdicts.verdict import KEYS, PREDICTION, table

ROOT = Path(__file__).parents[3]
PREDICTIONS = predictions(ROOT / "published/predictions.csv", "layernorm")
LEVEL = 0.9
SEEDS, HEADS, LAYERS = range(5), (1, 2, 3, 4), (1, 2, 3)
NORMED = ("pre-layer", "pre-rms", "post-layer")
PAIRS = ("first-middle", "first-last", "middle-last")
STUDIES = ("residual", "pre-norm", "post-norm")


# A world made by hand. Seeds share a large part of each number, so that it matters which are compared.


def frame(world, *names):
    """(key, ...) -> value as a table in no particular order."""
    rows = [{**dict(zip(names, key, strict=True)), "value": value} for key, value in world.items()]
    return pd.DataFrame(rows, columns=[*names, "value"]).sample(frac=1, random_state=7, ignore_index=True)


def random_weights(rng):
    """(norm, residual, seed, layer, head, quantity) -> value; half the heads of most seeds score one way."""
    world = {}
    for norm, residual, seed, layer in product(("none", "rms", "layer"), (0.0, 1.0), SEEDS, LAYERS):
        key = (norm, residual, seed, layer)
        gram = 0.0 if layer == 1 else -0.05 * (layer - 2) if norm == "none" else 0.2
        world[*key, 0, "gram"] = gram + 0.001 * rng.normal()
        for head in HEADS:
            odd_one = (layer, seed, head) in ((3, 0, 1), (3, 1, 3))
            sign = (-1) ** ((head > 2) + odd_one)
            world[*key, head, "score"] = 0.15 * sign + 0.01 * rng.normal()
            world[*key, head, "position"] = 0.5 + 0.04 * (-1) ** head + 0.001 * rng.normal()
    return world


def trained(rng):
    """(norm, seed, state, layer, head, quantity) -> value: what was claimed would settle it, settles it."""
    world = {}
    for norm, seed, state in product(("none", *NORMED), SEEDS, ("untrained", "trained")):
        world[norm, seed, state, 0, 0, "loss"] = 3.5 - (state == "trained") - 0.1 * seed
        for layer in LAYERS:
            recent = state == "trained" and layer > 1 and norm != "none"
            key = (norm, seed, state, layer)
            world[*key, 0, "gram"] = 0.2 * recent + 0.02 * seed + 0.001 * rng.normal()
            for head in HEADS:
                shared = 0.002 * (seed - 2)
                world[*key, head, "position"] = (
                    0.5 + 0.08 * recent + shared + 0.03 * (-1) ** head + 0.0005 * rng.normal()
                )
                world[*key, head, "score"] = 9.0
    return world


STATES = TRAINED, UNTRAINED = "trained (step 300)", "untrained (step 0)"


def models(rng):
    """(model, seed, state, document, layer) -> recency of the Gram."""
    return {
        (model, seed, state, document, layer): (0.2 if state == TRAINED else 0.1)
        + 0.01 * document
        + 0.1 * seed
        + 0.01 * rng.normal()
        if layer > 1
        else -5.0
        for model, seed, state, document, layer in product(("bloom", "mpt"), (0, 1), STATES, range(6), LAYERS)
    }


def retrieval(rng):
    """(study, depth, seed, iteration, quantity) -> value; studies of norms have 2 layers alone."""
    centre = {"residual": 0.2, "pre-norm": -0.1, "post-norm": -0.05}
    world = {}
    for study, depth, seed, iteration, pair in product(STUDIES, (2, 4), SEEDS, (0, 500), (*PAIRS, "accuracy")):
        if depth == 2 or study == "residual":
            value = (centre[study] if iteration else 7.0) + 0.01 * seed + 0.001 * rng.normal()
            world[study, depth, seed, iteration, pair] = value
    return world


WORLD = {
    name: make(np.random.default_rng(seed))
    for seed, (name, make) in enumerate(
        {"random": random_weights, "trained": trained, "models": models, "curves": retrieval}.items()
    )
}


def curves_of(world):
    found = frame(world, "study", "depth", "seed", "iteration", "quantity")
    fixed = {"vocabulary": "gaussian", "bias": "none", "mask": "causal", "encoding": "none", "residual": True}
    return found.assign(**fixed, omega="none")[[*gaps.CONFIGURATION, "seed", "iteration", "quantity", "value"]]


def tables(**changed):
    """The four tables of the worlds that are given and of nothing else; of all where none is."""
    of = changed or WORLD
    return (
        frame(of.get("random", {}), "norm", "residual", "seed", "layer", "head", "quantity"),
        frame(of.get("trained", WORLD["trained"]), "norm", "seed", "state", "layer", "head", "quantity"),
        frame(of.get("models", {}), "model", "seed", "state", "document", "layer"),
        curves_of(of.get("curves", {})),
    )


def rows_of(statistics):
    return table("layernorm", "test", judge(statistics, PREDICTIONS, LEVEL))


def judged(**changed):
    return rows_of(checks.statistics(*tables(**changed)))


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
    """The review on residuals, and early tokens where we expect none to be favoured."""
    for names in (["quantity"], KEYS):
        assert not papers.duplicated([*names, *PREDICTION]).any()
    others = papers[papers["verdict"] != "holds"]
    assert set(others["claim"]) == {"layernorm-residuals", "layernorm-trained-primacy"}
    assert set(others.loc[others["claim"] == "layernorm-residuals", "verdict"]) == {"fails"}


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
