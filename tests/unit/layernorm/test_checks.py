"""Claims on tables by seed whose numbers are known; what the paper predicts is typed here from its review page."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.emergence import gaps
from position_bias.layernorm import checks
from position_bias.running import imports
from position_bias.verdicts.verdict import COLUMNS, PREDICTION

ROOT = Path(__file__).parents[3]
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
    """(model, seed, state, prompt, layer) -> recency of the Gram."""
    return {
        (model, seed, state, prompt, layer): (0.2 if state == TRAINED else 0.1)
        + 0.01 * prompt
        + 0.1 * seed
        + 0.01 * rng.normal()
        if layer > 1
        else -5.0
        for model, seed, state, prompt, layer in product(("bloom", "mpt"), (0, 1), STATES, range(6), LAYERS)
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
    table = frame(world, "study", "depth", "seed", "iteration", "quantity")
    fixed = {"vocabulary": "gaussian", "bias": "none", "mask": "causal", "encoding": "none", "residual": True}
    return table.assign(**fixed, omega="none")[[*gaps.CONFIGURATION, "seed", "iteration", "quantity", "value"]]


def judged(**changed):
    """Rows on the worlds that are given and on nothing else; on all where none is."""
    of = changed or WORLD
    return checks.checks(
        frame(of.get("random", {}), "norm", "residual", "seed", "layer", "head", "quantity"),
        frame(of.get("trained", WORLD["trained"]), "norm", "seed", "state", "layer", "head", "quantity"),
        frame(of.get("models", {}), "model", "seed", "state", "prompt", "layer"),
        curves_of(of.get("curves", {})),
        "test",
        LEVEL,
    )


@pytest.fixture(scope="module")
def papers():
    return judged()


def find(table, *fragments, relation=""):
    """The one row whose quantity has these fragments and whose prediction has this relation, where one is given."""
    found = table[[all(fragment in quantity for fragment in fragments) for quantity in table["quantity"]]]
    found = found[found["relation"].str.startswith(relation)]
    assert len(found) == 1, f"{fragments}: {found['quantity'].tolist()}"
    return found.iloc[0]


def assert_mean(row, values):
    """The row is scipy's interval of the mean."""
    interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
    expected = (np.mean(values), *interval)
    assert (row["measured"], row["low"], row["high"]) == pytest.approx(expected, abs=1e-12)
    assert row["n"] == len(values)


def position(norm, layer, state="trained", world=WORLD["trained"], seeds=SEEDS):
    return np.array([np.mean([world[norm, seed, state, layer, head, "position"] for head in HEADS]) for seed in seeds])


# The table


def test_what_fails_in_a_world_of_our_predictions_is_what_contradicts_them(papers):
    """The review on residuals, and early tokens where we expect none to be favoured."""
    others = papers[papers["verdict"] != "holds"]
    assert set(others["source"]) == {
        "the paper as its review page reports it: without residuals recency disappears; the margin is our addition",
        "abstract: causal attention alone favours early tokens",
    }
    found = others.groupby(list(PREDICTION))["verdict"].agg(list).to_dict()
    assert {of: len(verdicts) for of, verdicts in found.items()} == {
        ("<", 0.01, 0): 2 * 2,
        ("<", 0.5, 0.005): 2,
    }
    assert set(found["<", 0.01, 0]) == {"fails"}


def test_checks_are_in_the_common_schema_and_predict_a_quantity_once(papers):
    assert list(papers.columns) == list(COLUMNS)
    assert set(papers["paper"]) == {"layernorm"}
    assert set(papers["scale"]) == {"test"}
    assert not papers.duplicated(["quantity", *PREDICTION]).any()


def test_there_is_a_row_for_all_that_was_measured_and_no_other(papers):
    assert papers["item"].value_counts().to_dict() == {
        # Grams of layers 2, 3: none 1 each, norms 1 with and 2 without residual each; scores, shares and positions
        "Random weights": 2 * 2 + 2 * (2 + 4) + 6 * 3,
        "Trained decoders": 4 * 3 + 2 * (2 + 3 * 3 + 1 + 3),
        "Language models": 2 * 2,
        "Retrieval networks": 2 * (3 + 1),
    }


def test_what_is_predicted_and_who_predicts_it(papers):
    """Typed from the review page and, where we add them, from the derivation."""
    expected = {
        ("Gram, layer 2; rms, residual 1",): ((">", 0, 0.01), "theorem"),
        ("Gram, layer 3; layer, residual 1",): ((">", 0, 0.01), "abstract"),
        ("Gram, layer 2; rms, residual 0", ">"): ((">", 0, 0.01), "our addition"),
        ("Gram, layer 2; rms, residual 0", "<"): (("<", 0.01, 0), "review"),
        ("Gram over its mean size, layer 2; none, residual 1",): (("=", 0, 0.02), "our addition"),
        ("Gram over its mean size, layer 3; none, residual 1",): (("<", 0, 0.01), "abstract"),
        ("scores, mean over heads, layers from 2 on; rms, residual 1",): (("=", 0, 0.05), "our addition"),
        ("share of heads whose scores favour recent tokens, layers from 2 on; rms, residual 1",): (
            ("=", 0.5, 0.2),
            "our addition",
        ),
        ("position, mean over heads, layers from 2 on; rms, residual 0",): (("=", 0.5, 0.01), "our addition"),
        ("position, layer 2; pre-layer",): ((">", 0.5, 0.005), "abstract"),
        ("position, layer 3; post-layer",): ((">", 0.5, 0.005), "abstract"),
        ("position, layer 2; none", "="): (("=", 0.5, 0.01), "what would settle it"),
        ("position, layer 2; none", "<"): (("<", 0.5, 0.005), "abstract"),
        ("position, layer 2, pre-rms - none",): ((">", 0, 0.005), "what would settle it"),
        ("position, layer 2, pre-layer - pre-rms",): (("=", 0, 0.01), "our addition"),
        ("position, layer 3, trained - untrained; pre-rms",): ((">", 0, 0.005), "our addition"),
        ("position, mean over layers, untrained; none",): (("=", 0.5, 0.01), "our addition"),
        ("position, layer 1; pre-layer",): (("=", 0.5, 0.01), "our addition"),
        ("relative recency of the Gram, layer 2; post-layer",): ((">", 0, 0.01), "theorem"),
        ("loss, untrained - trained; none",): ((">", 0, 0.05), "our addition"),
        ("bloom, trained (step 300)",): ((">", 0, 0.01), "positions, such as ALiBi, favour recent keys, too"),
        ("bloom, untrained (step 0)",): ((">", 0, 0.01), "positions, such as ALiBi, favour recent keys, too"),
        ("first-middle gap, none - pre; gaussian, 2 layers",): ((">", 0, 0.01), "our addition"),
        ("first-last gap, post; gaussian, 2 layers",): (("<", 0, 0.01), "our addition"),
    }
    for (fragment, *relation), (predicted, source) in expected.items():
        row = find(papers, fragment, relation="".join(relation))
        assert tuple(row[list(PREDICTION)]) == predicted, fragment
        assert source in row["source"], fragment


def test_the_order_of_rows_in_the_tables_decides_nothing(papers):
    turned = judged(**{name: dict(reversed(of.items())) for name, of in WORLD.items()})
    by_quantity = [table.sort_values(["quantity", *PREDICTION], ignore_index=True) for table in (papers, turned)]
    pd.testing.assert_frame_equal(*by_quantity)


def test_claims_need_no_models():
    read = imports.closure(ROOT / "position_bias/layernorm/checks.py", ROOT)
    assert {"simulation.py", "decoder.py", "training.py", "ensemble.py"}.isdisjoint(path.name for path in read)


# Random weights


def test_grams_are_judged_layer_by_layer(papers):
    for norm, layer in product(("rms", "layer"), (2, 3)):
        values = [WORLD["random"][norm, 1.0, seed, layer, 0, "gram"] for seed in SEEDS]
        assert_mean(find(papers, f"recency of the Gram, layer {layer}; {norm}, residual 1"), values)


def test_heads_are_judged_over_deep_layers_by_the_mean_of_a_seed(papers):
    def heads(quantity, seed):
        of = WORLD["random"]
        return np.array([of["rms", 0.0, seed, layer, head, quantity] for layer in (2, 3) for head in HEADS])

    where = "layers from 2 on; rms, residual 0"
    assert_mean(find(papers, "relative recency of scores", where), [heads("score", seed).mean() for seed in SEEDS])
    assert_mean(find(papers, "share of heads", where), [(heads("score", seed) > 0).mean() for seed in SEEDS])
    assert_mean(find(papers, "position", where), [heads("position", seed).mean() for seed in SEEDS])


def changed(name, values):
    """The world with a function of key and value applied to every number."""
    return {name: {key: values(key, value) for key, value in WORLD[name].items()}}


def test_heads_that_all_score_one_way_are_not_of_random_sign():
    found = judged(**changed("random", lambda key, value: abs(value) if key[-1] == "score" else value))
    assert find(found, "relative recency of scores", "; none, residual 1")["verdict"] == "fails"
    row = find(found, "share of heads", "; none, residual 1")
    assert (row["measured"], row["low"], row["high"], row["verdict"]) == (1, 1, 1, "fails")


def test_grams_that_favour_early_tokens_fail_with_a_norm_and_hold_without():
    found = judged(**changed("random", lambda key, value: value - 0.5 if key[-1] == "gram" else value))
    grams = found[found["quantity"].str.startswith("recency of the Gram")]
    verdicts = grams.groupby("relation")["verdict"].agg(set).to_dict()
    assert verdicts == {">": {"fails"}, "<": {"holds"}, "=": {"fails"}}


def test_without_residuals_the_review_and_we_cannot_both_be_right():
    found = judged(**changed("random", lambda key, value: value * (key[:2] != ("layer", 0.0)) + 1e-4 * key[2]))
    for layer in (2, 3):
        fragment = f"recency of the Gram, layer {layer}; layer, residual 0"
        assert find(found, fragment, relation="<")["verdict"] == "holds"
        assert find(found, fragment, relation=">")["verdict"] == "not separable"
        assert find(found, fragment.replace("; layer", "; rms"), relation="<")["verdict"] == "fails"


# Trained decoders


def test_positions_are_means_over_heads_compared_by_seed(papers):
    for layer in (2, 3):
        name = f"position, layer {layer}"
        assert_mean(find(papers, f"{name}; pre-rms"), position("pre-rms", layer))
        assert_mean(find(papers, f"{name}; none", relation="="), position("none", layer))
        assert_mean(find(papers, f"{name}; none", relation="<"), position("none", layer))
        gain = position("post-layer", layer) - position("none", layer)
        assert_mean(find(papers, f"{name}, post-layer - none"), gain)
        change = position("pre-layer", layer) - position("pre-layer", layer, "untrained")
        assert_mean(find(papers, f"{name}, trained - untrained; pre-layer"), change)
        assert_mean(
            find(papers, f"{name}, pre-layer - pre-rms"), position("pre-layer", layer) - position("pre-rms", layer)
        )
    assert_mean(find(papers, "position, layer 1; post-layer"), position("post-layer", 1))
    untrained = np.mean([position("none", layer, "untrained") for layer in LAYERS], axis=0)
    assert_mean(find(papers, "mean over layers, untrained; none"), untrained)


def test_grams_and_losses_are_those_of_the_network(papers):
    grams = [WORLD["trained"]["post-layer", seed, "trained", 3, 0, "gram"] for seed in SEEDS]
    assert_mean(find(papers, "relative recency of the Gram, layer 3; post-layer"), grams)
    row = find(papers, "loss, untrained - trained; pre-rms")
    assert (row["measured"], row["low"], row["high"]) == pytest.approx((1, 1, 1))


def test_a_norm_that_favours_early_tokens_fails_and_one_that_does_nothing_settles_nothing():
    def without_recency(key, value):
        norm, _, state, layer, _, quantity = key
        if quantity != "position" or state == "untrained" or layer == 1:
            return value
        return value - {"pre-rms": 0.16, "post-layer": 0.08}.get(norm, 0)

    found = judged(**changed("trained", without_recency))
    assert find(found, "position, layer 2; pre-layer")["verdict"] == "holds"
    for fragment in ("; pre-rms", ", pre-rms - none", ", trained - untrained; pre-rms", ", pre-layer - pre-rms"):
        assert find(found, f"position, layer 2{fragment}")["verdict"] == "fails"
    for fragment in ("; post-layer", ", post-layer - none", ", trained - untrained; post-layer"):
        assert find(found, f"position, layer 2{fragment}")["verdict"] == "not separable"


@pytest.mark.parametrize(("shift", "same", "early"), [(0.1, "fails", "fails"), (-0.1, "fails", "holds")])
def test_attention_without_norm_may_lie_anywhere(shift, same, early):
    found = judged(**changed("trained", lambda key, value: value + shift if key[0] == "none" else value))
    for layer in (2, 3):
        assert find(found, f"position, layer {layer}; none", relation="=")["verdict"] == same
        assert find(found, f"position, layer {layer}; none", relation="<")["verdict"] == early


def test_a_network_that_learns_nothing_fails_where_it_should_learn():
    found = judged(**changed("trained", lambda key, value: 3.0 + 0.5 * (key[2] == "trained") if key[3] == 0 else value))
    assert set(found.loc[found["quantity"].str.startswith("loss"), "verdict"]) == {"fails"}


def test_a_network_that_was_not_trained_cannot_be_tested_and_disturbs_no_other(papers):
    found = judged(trained={key: value for key, value in WORLD["trained"].items() if key[0] != "pre-rms"})
    with_it = found["quantity"].str.contains("pre-rms")
    assert set(found.loc[with_it, "verdict"]) == {"not testable here"}
    assert set(found.loc[with_it, "n"]) == {0}
    assert found.loc[with_it, ["measured", "low", "high"]].isna().all(axis=None)
    of_trained = papers[papers["item"] == "Trained decoders"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[~with_it], of_trained[~with_it])


def test_a_seed_that_one_network_lacks_is_left_out_of_what_it_is_compared_in():
    lacking = {key: value for key, value in WORLD["trained"].items() if key[:2] not in (("pre-rms", 1), ("none", 4))}
    found, both = judged(trained=lacking), [0, 2, 3]
    gain = position("pre-rms", 2, seeds=both) - position("none", 2, seeds=both)
    assert_mean(find(found, "position, layer 2, pre-rms - none"), gain)
    assert_mean(find(found, "position, layer 2; pre-rms"), position("pre-rms", 2, seeds=[0, 2, 3, 4]))
    assert find(found, "position, layer 2, pre-rms - none")["left_out"] == 2
    assert find(found, "position, layer 2; pre-rms")["left_out"] == 1
    assert find(found, "position, layer 2; pre-layer")["left_out"] == 0


def test_one_seed_is_measured_and_settles_nothing(papers):
    places = {"random": 2, "trained": 1, "curves": 2}
    one = {name: {key: of for key, of in WORLD[name].items() if key[place] == 3} for name, place in places.items()}
    one["models"] = {key: of for key, of in WORLD["models"].items() if key[3] == 3}  # one prompt
    found = judged(**one)
    assert set(found["quantity"]) == set(papers["quantity"])
    assert set(found["verdict"]) == {"not testable here"}
    assert set(found["n"]) == {1}
    assert found["measured"].notna().all()
    assert found[["low", "high"]].isna().all(axis=None)


# Language models


def test_models_are_judged_over_prompts_by_their_mean_over_seeds_and_deep_layers(papers):
    for state in STATES:
        values = [
            np.mean([WORLD["models"]["mpt", seed, state, prompt, layer] for seed in (0, 1) for layer in (2, 3)])
            for prompt in range(6)
        ]
        assert_mean(find(papers, "mean over layers from 2 on; mpt", state), values)


def test_a_model_whose_start_was_not_kept_cannot_be_tested_there():
    kept = {key: value for key, value in WORLD["models"].items() if key[0] == "mpt" or key[2] == TRAINED}
    found = judged(models=kept)
    assert find(found, "bloom, untrained")["verdict"] == "not testable here"
    assert find(found, "bloom, trained")["verdict"] == "holds"
    assert find(found, "mpt, untrained")["verdict"] == "holds"
    start = judged(models={key: value for key, value in WORLD["models"].items() if key[2] != TRAINED})
    assert not start["quantity"].str.contains(", trained (step", regex=False).any()


def test_models_that_favour_early_tokens_fail():
    found = judged(**changed("models", lambda key, value: -value))
    assert set(found.loc[found["item"] == "Language models", "verdict"]) == {"fails"}


# Retrieval networks


def gap(study, pair, seeds=SEEDS):
    return np.array([WORLD["curves"][study, 2, seed, 500, pair] for seed in seeds])


def test_gaps_are_compared_by_seed_after_training_at_the_depth_of_the_norms(papers):
    for (norm, study), pair in product({"pre": "pre-norm", "post": "post-norm"}.items(), PAIRS):
        row = find(papers, f"{pair} gap, none - {norm}; gaussian, 2 layers")
        assert_mean(row, gap("residual", pair) - gap(study, pair))
    assert_mean(find(papers, "first-last gap, post; gaussian, 2 layers"), gap("post-norm", "first-last"))
    assert not papers["quantity"].str.contains("4 layers").any()


def test_norms_that_move_preference_to_early_items_fail_and_none_of_effect_settles_nothing():
    shift = {"pre-norm": 0.6, "post-norm": 0.25}
    found = judged(**changed("curves", lambda key, value: value + shift.get(key[0], 0)))
    assert find(found, "first-last gap, none - pre")["verdict"] == "fails"
    assert find(found, "first-last gap, pre;")["verdict"] == "fails"
    assert find(found, "first-last gap, none - post")["verdict"] == "not separable"


def test_a_study_that_was_not_trained_cannot_be_tested():
    found = judged(curves={key: value for key, value in WORLD["curves"].items() if key[0] != "post-norm"})
    with_it = found["quantity"].str.contains("gap.*post", regex=True)
    assert set(found.loc[with_it, "verdict"]) == {"not testable here"}
    assert with_it.sum() == 4
    assert find(found, "first-last gap, none - pre")["verdict"] == "holds"
