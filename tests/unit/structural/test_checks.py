"""The checks of structural on worlds made by hand: one behaves as the paper says, the others contradict it."""

import numpy as np
import pandas as pd
import pytest

from position_bias.rollout.comparison import DISTANCE, SAME_FOR_EVERY_ESTIMATOR, SHAPE
from position_bias.structural import checks, checks_long_training

N, REPLICATES, LEVEL = 64, 60, 0.95
LABELS = {"model": "bloom", "checkpoint": "seed0/step9", "dataset": "text", "n": N, "prompts": 40}
ESTIMATORS = ("frobenius", "token")
OF_LAMBDA = ("b", "c", "measured")  # variants that depend on the estimator
POSITION = np.linspace(0, 1, N)


def normalised(profile):
    return profile / profile.sum(-1, keepdims=True)


def jittered(profile, seed):
    """All prompts first, then every replicate: 1 % of noise at each position."""
    noise = np.random.default_rng(seed).normal(1, 0.01, (1 + REPLICATES, N))
    noise[0] = 1
    return normalised(profile * noise)


def first_raised(profile, share):
    """Move a share of the whole profile to the first token."""
    return (1 - share) * profile + share * np.eye(N)[0]


def papers_world():
    """Measured influence is a U; less and less of a rollout is on the first token from (a) over (b) to (c)."""
    d = jittered(0.1 + (2 * POSITION - 1) ** 2, seed=0)
    alike = jittered(0.1 + (2 * POSITION - 1) ** 2, seed=1)  # a prediction, not the measurement itself
    return {
        "a": first_raised(alike, 0.8),
        "half": first_raised(alike, 0.15),
        "b": first_raised(alike, 0.1),
        "c": first_raised(alike, 0.04),
        "measured": first_raised(alike, 0.02),
        "d": d,
        "uniform": np.full((1, N), 1 / N),
        "last": np.eye(N)[-1:],
    }


def hump(peak, width, seed):
    return jittered(np.exp(-(((POSITION - peak) / width) ** 2)), seed)


def opposite_world():
    """Influence is a late hump, which attention alone predicts; the residual stream and content lead away from it.

    It has a little on its first token where (a) has nothing, and (c) more there than (b).
    """
    return papers_world() | {
        "d": first_raised(hump(0.75, 0.25, seed=2), 0.009),
        "a": hump(0.80, 0.17, seed=3),
        "half": hump(0.70, 0.17, seed=4),
        "b": hump(0.30, 0.17, seed=5),
        "c": first_raised(hump(0.25, 0.17, seed=6), 0.006),
        "measured": hump(0.20, 0.17, seed=7),
    }


def swapped(one, other):
    world = papers_world()
    return world | {one: world[other], other: world[one]}


def replicates(world, trend=-1.0):
    """The tidy table of statistics that `comparison.compare` would make of these profiles."""
    rows = []

    def add(variant, statistic, values):
        for estimator in ESTIMATORS if variant in (*OF_LAMBDA, "lambda") else (SAME_FOR_EVERY_ESTIMATOR,):
            label = {"estimator": estimator, "variant": variant, "statistic": statistic}
            values = np.broadcast_to(values, 1 + REPLICATES)
            rows.append(pd.DataFrame({**label, "replicate": np.arange(-1, REPLICATES), "value": values}))

    for variant, profile in world.items():
        for name, of in SHAPE.items():
            add(variant, name, of(profile))
        for name, between in DISTANCE.items() if variant != "d" else ():
            add(variant, name, between(profile, world["d"]))
    add("lambda", "spearman with depth", np.asarray(trend))
    return pd.concat(rows, ignore_index=True).assign(**LABELS)


def judged(values):
    """Verdicts by quantity, the same under every estimator of lambda."""
    table = checks.checks(values, "test", LEVEL)
    verdicts = table["verdict"].groupby(table["quantity"].str.split(";").str[0]).unique()
    assert verdicts.map(len).max() == 1
    assert set(verdicts.index) == {check.quantity for check in checks.CHECKS}
    return verdicts.str[0]


def test_of_two_estimators_of_lambda_the_papers_speaks_of_claims():
    found = checks.checks(replicates(papers_world()), "test", LEVEL)
    by_token = found["quantity"].str.endswith("lambda by token")
    assert by_token.any()
    assert set(found.loc[by_token, "claim"]) == {""}
    spoken_of = {check.quantity: check.claim for check in checks.CHECKS}
    rest = found[~by_token]
    assert rest["claim"].tolist() == rest["quantity"].str.split(";").str[0].map(spoken_of).tolist()


def test_what_is_seen_during_training_speaks_of_no_claim():
    found = checks.checks(replicates(papers_world()), "test", LEVEL, checks.DURING_TRAINING)
    assert len(found) == 3  # (b) under two estimators, and (d)
    assert set(found["claim"]) == {""}


def kept_steps(worlds):
    """What evidence/ keeps of one model that lives in these worlds, by step."""
    tables = [
        checks.compared(replicates(world).assign(checkpoint=f"seed0/step{step}"), LEVEL)
        for step, world in worlds.items()
    ]
    return pd.concat(tables).assign(scale="longer")


@pytest.mark.parametrize(("last", "verdict"), [(papers_world(), "holds"), (opposite_world(), "fails")])
def test_the_last_step_of_a_long_training_speaks_of_claims_and_earlier_ones_of_none(last, verdict):
    """Before, the model lived in the other world."""
    first = opposite_world() if verdict == "holds" else papers_world()
    evidence = kept_steps({0: first, 90: first, 1000: last})
    found = pd.concat(checks_long_training.checks([evidence]))
    assert set(found["scale"]) == {"longer"}
    ended = found["quantity"].str.contains("step1000")
    spoken_of = found[ended & ~found["quantity"].str.endswith("lambda by token")]
    of_lambda = spoken_of["item"] == "Figure 4"  # whose trend no world changes
    assert set(spoken_of.loc[~of_lambda, "verdict"]) == {verdict}
    assert set(spoken_of["claim"]) == {check.claim for check in checks.CHECKS}
    alone, twice = 2, 4  # rows at each of two steps: of (d) by itself, and of what has two estimators of lambda
    assert len(found[~ended]) == 2 * (alone + 2 * twice)
    assert set(found.loc[~ended, "claim"]) == {""}
    assert verdict not in set(found.loc[~ended, "verdict"])


def test_without_a_long_training_there_are_no_rows_of_one():
    assert list(checks_long_training.checks([])) == []


def test_a_claim_is_named_once_and_by_statistics_that_exist():
    quantities = [check.quantity for check in checks.CHECKS]
    assert len(quantities) == len(set(quantities))
    known = {*SHAPE, *DISTANCE, "spearman with depth"}
    elsewhere = (*checks.ON_EVERY_DATASET, *checks.AT_LONG, *checks.AT_EVERY_LENGTH)
    assert {check.statistic for check in (*checks.CHECKS, *elsewhere)} <= known


ELSEWHERE = (checks.ON_EVERY_DATASET, checks.AT_LONG, checks.AT_EVERY_LENGTH)


@pytest.mark.parametrize("of", ELSEWHERE)
def test_what_is_claimed_of_every_data_set_and_length_holds_in_the_papers_world_and_fails_in_another(of):
    falling = papers_world() | {"d": jittered(1.2 - POSITION, seed=9), "b": hump(0.97, 0.02, seed=5)}
    rising = papers_world() | {"d": jittered(0.2 + POSITION, seed=9), "c": np.eye(N)[:1] + 0 * POSITION}
    worlds = {name: checks.checks(replicates(world), "test", LEVEL, of) for name, world in
              {"paper": papers_world(), "falling": falling, "rising": rising}.items()}  # fmt: skip
    assert set(worlds["paper"]["verdict"]) == {"holds"}
    failed = {name: set(found.loc[found["verdict"] == "fails", "claim"]) - {""} for name, found in worlds.items()}
    assert failed["falling"] | failed["rising"] == {check.claim for check in of}


def at(dataset, world):
    return replicates(world).assign(dataset=dataset)


def test_b_is_closest_on_most_where_it_is_on_more_than_not():
    closer, farther = swapped("b", "c"), papers_world()  # (c) is the closest in the world of the paper
    alike = papers_world() | {"c": papers_world()["b"]}
    for worlds, measured, verdict in (
        ((closer, closer, farther), 1 / 3, "holds"),
        ((closer, farther, farther), -1 / 3, "fails"),
        ((closer, farther), 0, "not separable"),
        ((alike, alike), 0, "not separable"),
        ((closer, alike), 1 / 2, "holds"),
    ):
        values = pd.concat(at(f"text {index}", world) for index, world in enumerate(worlds))
        (found,) = checks.closest(values, "test", LEVEL).to_dict("records")
        assert (found["claim"], found["n"], found["verdict"]) == ("structural-table-4", len(worlds), verdict)
        assert found["measured"] == pytest.approx(measured)


def test_every_claim_holds_in_a_world_that_behaves_as_the_paper_says():
    table = checks.checks(replicates(papers_world()), "test", LEVEL)
    assert len(table) >= len(checks.CHECKS)
    assert table.loc[table["verdict"] != "holds", "quantity"].to_list() == []


def test_every_claim_fails_in_a_world_that_is_the_opposite():
    verdicts = judged(replicates(opposite_world(), trend=1.0))
    assert verdicts[verdicts != "fails"].to_dict() == {}


def concerning(**fields):
    """Quantities of the checks with these fields."""
    return {
        check.quantity
        for check in checks.CHECKS
        if all(getattr(check, name) == value for name, value in fields.items())
    }


def failing(world, trend=-1.0):
    verdicts = judged(replicates(world, trend))
    return set(verdicts[verdicts == "fails"].index)


def contrasts(one, other):
    return concerning(variant=one, minus=other) | concerning(variant=other, minus=one)


@pytest.mark.parametrize(("one", "other"), [("b", "c"), ("half", "b")])
def test_two_neighbours_that_swap_their_roles_fail_just_where_they_are_contrasted(one, other):
    """(b) and (c), or (b) and the null, are alike in shape, so nothing but their contrast may change."""
    expected = contrasts(one, other)
    assert expected
    assert failing(swapped(one, other)) == expected


def test_attention_only_as_the_best_prediction_fails_wherever_another_was_to_be_closer():
    """A rollout without residual connections closer than all others contradicts what is said of (a), and no more."""
    world = papers_world()
    world |= {"a": first_raised(jittered(world["d"][0], seed=8), 0.005)}
    assert failing(world) == concerning(statistic="wasserstein", variant="a")


def test_influence_without_its_end_fails_in_its_last_token_only():
    world = papers_world()
    falling = normalised(world["d"] * (1 - 0.9 * (POSITION > 0.95)))
    assert concerning(statistic="last / middle", variant="d") <= failing(world | {"d": falling})
    assert not concerning(statistic="first / middle", variant="d") & failing(world | {"d": falling})


def test_mixing_that_rises_with_depth_fails_and_leaves_the_rest():
    assert failing(papers_world(), trend=1.0) == concerning(variant="lambda")


def test_mirrored_influence_is_still_a_u_with_its_minimum_where_predicted():
    world = papers_world()
    verdicts = judged(replicates(world | {"d": world["d"][:, ::-1]}))
    assert set(verdicts) == {"holds"}


def test_attention_that_collapses_to_the_last_token_fails_in_what_it_has_on_the_first():
    world = papers_world()
    assert failing(world | {"a": world["a"][:, ::-1]}) == contrasts("a", "d")


def test_what_is_equal_separates_nothing_but_a_negligible_difference():
    world = papers_world()
    verdicts = judged(replicates(world | {"c": world["b"]}))
    assert set(verdicts[sorted(contrasts("b", "c"))]) == {"not separable"}


@pytest.mark.parametrize("variant", ["b", "d", "lambda"])
def test_where_a_statistic_is_undefined_its_claims_are_not_testable_and_the_others_are(variant):
    values = replicates(papers_world())
    values.loc[values["variant"] == variant, "value"] = np.nan
    concerned = concerning(variant=variant) | concerning(minus=variant)
    assert concerned
    verdicts = judged(values)
    assert set(verdicts[sorted(concerned)]) == {"not testable here"}
    assert set(verdicts.drop(sorted(concerned))) == {"holds"}


def test_one_replicate_without_a_value_leaves_no_interval():
    values = replicates(papers_world())
    values.loc[(values["variant"] == "b") & (values["replicate"] == 3), "value"] = np.nan
    verdicts = judged(values)
    assert set(verdicts[sorted(concerning(variant="b") | concerning(minus="b"))]) == {"not testable here"}
