"""What is measured of norms, on tables by hand and on a world by seed whose numbers are known."""

import numpy as np
import pandas as pd
import pytest

from position_bias.layernorm import checks
from position_bias.layernorm.settings import NETWORKS
from tests.measurements import file
from tests.unit.layernorm.world import (
    HEADS,
    LAYERS,
    PAIRS,
    SEEDS,
    STUDIES,
    TRAINED,
    UNTRAINED,
    WORLD,
    judged,
    statistics,
)
from tests.worlds import assert_units, statistic

OF_TRAINED = WORLD["trained"]


@pytest.fixture(scope="module")
def papers():
    return judged()


@pytest.fixture(scope="module")
def everything():
    return list(statistics())


def table(found, name, **setting):
    return statistic(found, name, **setting).table


def test_what_favours_the_other_end_turns_every_verdict(papers):
    def turned(name, key, value):
        quantity = key[-1] if name in ("random", "trained") else ""
        return {"score": value, "position": 1 - value}.get(quantity, -value)

    found = judged(**{name: {key: turned(name, key, value) for key, value in WORLD[name].items()} for name in WORLD})
    opposite = papers["verdict"].replace({"holds": "fails", "fails": "holds"})
    # the bound of `layernorm-settled` lies beyond the middle, so both worlds keep to it
    without_preference = (papers["relation"] == "=") | (papers["claim"] == "layernorm-settled")
    assert found["verdict"].tolist() == papers["verdict"].where(without_preference, opposite).tolist()


def test_grams_are_taken_layer_by_layer_from_the_second_on():
    world = {
        ("rms", 1.0, 0, 1, 0, "gram"): 9.0,
        ("rms", 1.0, 0, 2, 0, "gram"): 0.2,
        ("rms", 1.0, 1, 2, 0, "gram"): 0.4,
        ("none", 1.0, 0, 2, 0, "gram"): -0.1,
        ("none", 1.0, 1, 2, 0, "gram"): 0.1,
        ("rms", 0.5, 0, 3, 0, "gram"): 0.6,
        ("rms", 0.0, 0, 3, 0, "gram"): 0.7,
    }
    found = [one for one in statistics(random=world) if "random weights" in one.name]
    second = table(found, "Gram of layer 2, random weights, residuals", layer=2, residual="1")
    assert_units(second, {"rms": [0.2, 0.4], "none": [-0.1, 0.1]})
    for residual, name, value in (("0.5", "residuals", 0.6), ("0", "no residuals", 0.7)):
        deeper = table(found, f"Gram of deeper layers, random weights, {name}", layer=3, residual=residual)
        assert_units(deeper, {"rms": [value]})
    assert len(found) == 3


def test_heads_are_taken_together_over_layers_from_the_second_on():
    values = {(1, 1): 9.0, (2, 1): 0.3, (2, 2): -0.2, (2, 3): 0.0, (3, 1): 0.7}
    world = {
        ("layer", 0.0, 4, layer, head, quantity): value + shift
        for (layer, head), value in values.items()
        for quantity, shift in (("score", 0.0), ("position", 0.5))
    }
    found = list(statistics(random=world))
    for name, value in {"score": 0.2, "share of scores above 0": 0.5, "position": 0.7}.items():
        assert_units(table(found, f"{name}, random weights", residual="0"), {"layer": {4: value}})


def position(norm, layer, state="trained"):
    """By seed, the mean over heads."""
    heads = [[OF_TRAINED[norm, seed, state, layer, head, "position"] for seed in SEEDS] for head in HEADS]
    return np.mean(heads, axis=0)


def test_positions_grams_and_losses_are_those_by_seed(everything):
    untrained = {norm: np.mean([position(norm, layer, "untrained") for layer in LAYERS], axis=0) for norm in NETWORKS}
    assert_units(table(everything, "position before training"), untrained)
    assert_units(table(everything, "position in layer 1"), {norm: position(norm, 1) for norm in NETWORKS})
    assert_units(table(everything, "loss learnt"), dict.fromkeys(NETWORKS, 1))
    for layer, depth in ((2, "layer 2"), (3, "deeper layers")):
        learnt = {norm: position(norm, layer) - position(norm, layer, "untrained") for norm in NETWORKS}
        grams = {norm: [OF_TRAINED[norm, seed, "trained", layer, 0, "gram"] for seed in SEEDS] for norm in NETWORKS}
        assert_units(table(everything, "position", layer=layer), {norm: position(norm, layer) for norm in NETWORKS})
        assert_units(table(everything, "position learnt", layer=layer), learnt)
        assert_units(table(everything, f"Gram of {depth}, trained", layer=layer), grams)


def test_a_network_that_was_not_trained_disturbs_no_other(papers):
    found = judged(trained={key: value for key, value in OF_TRAINED.items() if key[0] != "pre-rms"})
    with_it = found[["network", "other"]].eq("pre-rms").any(axis=1)
    assert set(found.loc[with_it, "verdict"]) == {"not testable here"}
    assert set(found.loc[with_it, "n"]) == {0}
    of_trained = papers[papers["item"] == "Trained decoders"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[~with_it], of_trained[~with_it])


def test_a_seed_that_diverged_is_left_out():
    """One network lacks seed 1, one seed 4 after training."""
    lost = (("pre-rms", 1, "untrained"), ("pre-rms", 1, "trained"), ("none", 4, "trained"))
    kept = {key: value for key, value in OF_TRAINED.items() if key[:3] not in lost}
    for name in ("position", "position learnt"):
        found = table(statistics(trained=kept), name, layer=2)
        assert found.isna().stack().groupby(level=1).sum().to_dict() == {
            "none": 1, "pre-rms": 1, "pre-layer": 0, "post-layer": 0
        }  # fmt: skip
        assert found.isna().at[1, "pre-rms"]
        assert found.isna().at[4, "none"]
    rows = judged(trained=kept).query("statistic == 'position' and network == 'pre-rms'")
    assert rows.groupby("other")["left_out"].agg(set).to_dict() == {"": {1}, "none": {2}}


def test_models_are_judged_over_documents():
    """By their mean over seeds and deep layers."""
    values = {(0, 7, 1): 9.0, (0, 7, 2): 0.1, (0, 7, 3): 0.3, (1, 7, 2): 0.5, (1, 7, 3): 0.7, (1, 8, 2): 0.6}
    shifts = {("bloom", TRAINED): 0, ("mpt", TRAINED): 1, ("bloom", UNTRAINED): -1, ("mpt", UNTRAINED): -2}
    world = {
        (model, seed, state, document, layer): value + shift
        for (seed, document, layer), value in values.items()
        for (model, state), shift in shifts.items()
    }
    found = list(statistics(models=world))
    for (model, state), shift in shifts.items():
        of_model = table(found, "Gram of a model", model=model, state=state)
        assert_units(of_model, {"model": {7: 0.4 + shift, 8: 0.6 + shift}})


def test_a_start_that_was_not_kept_cannot_be_tested():
    """A model of the hub has none."""
    kept = {key: value for key, value in WORLD["models"].items() if key[2] == TRAINED and key[0] == "bloom"}
    hub = {("mpt", seed, "of the hub", *key): value for (_, seed, _, *key), value in kept.items()}
    found = judged(models=kept | hub)
    found = found[found["statistic"] == "Gram of a model"].set_index("setting")[["verdict", "n", "left_out"]]
    assert found.T.to_dict("list") == {
        f"model = bloom; state = {TRAINED}": ["holds", 6, 0],
        f"model = bloom; state = {UNTRAINED}": ["not testable here", 0, 0],
        "model = mpt; state = of the hub": ["holds", 6, 0],
    }
    starts = {key: value for key, value in WORLD["models"].items() if key[2] == UNTRAINED}
    states = [one.setting["state"] for one in statistics(models=starts) if one.name == "Gram of a model"]
    assert states == [UNTRAINED] * 2


def test_gaps_are_taken_by_seed_after_training(everything):
    found = [one for one in everything if one.name.endswith("gap")]
    for pair, one in zip(PAIRS, sorted(found, key=lambda one: PAIRS.index(one.name.removesuffix(" gap"))), strict=True):
        assert one.setting == {"vocabulary": "gaussian", "depth": 2}
        by_norm = zip(STUDIES, ("none", "pre", "post"), strict=True)
        gaps = {norm: {seed: WORLD["curves"][study, 2, seed, 500, pair] for seed in SEEDS} for study, norm in by_norm}
        assert_units(one.table, gaps)


def test_a_seed_without_a_last_test_has_no_gap():
    """A network that diverged has none. Networks without norms alone are not compared."""
    curves = WORLD["curves"]
    lost = {key: gap for key, gap in curves.items() if key[:4] != ("pre-norm", 2, 1, 500)}
    gap = table(statistics(curves=lost), "first-last gap")
    assert gap["pre"].isna().to_list() == [False, True, False, False, False]
    assert gap[["none", "post"]].notna().all(axis=None)
    alone = statistics(curves={key: of for key, of in curves.items() if key[0] == "residual"})
    assert not [one for one in alone if one.name.endswith("gap")]


# Language models, as a table


@pytest.mark.parametrize(
    ("checkpoint", "seed", "state"),
    [
        ("seed0/step0", "0", "untrained (step 0)"),
        ("seed12/step1000", "12", "trained (step 1000)"),
        ("hub", "hub", "of the hub"),
    ],
)
def test_a_table_has_a_row_a_prompt_and_layer(checkpoint, seed, state):
    """Seed and state are those of the checkpoint, whatever digits a model has."""
    kept = {"recency": np.array([[0.5, -0.25], [2.0, -3.5]], np.float32), "documents": np.array([4, 9])}
    found = checks.recency_of_models([file({"model": "falcon-7b-v2", "checkpoint": checkpoint}, **kept)])
    assert [*found] == ["model", "seed", "state", "document", "prompt", "layer", "value"]
    numbers = [(4, 0, 1, 0.5), (4, 0, 2, -0.25), (9, 1, 1, 2.0), (9, 1, 2, -3.5)]
    assert [*found.itertuples(index=False, name=None)] == [("falcon-7b-v2", seed, state, *row) for row in numbers]
