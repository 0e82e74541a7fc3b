"""The checks of structural on worlds made by hand: one behaves as the paper says, the others contradict it."""

import numpy as np
import pandas as pd
import pytest

from position_bias.structural import checks, checks_long_training
from position_bias.verdicts.judge import KEYS
from tests.unit.structural.conftest import PREDICTED
from tests.unit.structural.world import (
    ESTIMATORS,
    LABELS,
    LEVEL,
    POSITION,
    first_raised,
    hump,
    jittered,
    opposite_world,
    papers_world,
    replicates,
    swapped,
)


def judged(values, occasion=checks.STANDARD):
    return checks.checks(values, PREDICTED, "test", LEVEL, occasion)


def verdicts(values, occasion=checks.STANDARD):
    """The verdict on each contrast, the same under every estimator of lambda: index (statistic, network, other)."""
    found = judged(values, occasion)
    statistic = found["statistic"].str.removeprefix(f"{occasion}: ")
    by_contrast = found["verdict"].groupby([statistic, found["network"], found["other"]])
    assert (by_contrast.nunique() == 1).all()
    return by_contrast.first()


def just(one, other):
    return lambda contrast: set(contrast[1:]) == {one, other}


# Measuring


def few_replicates():
    """(a) does not depend on lambda; (b) does: all prompts, then three replicates, in any order."""
    values = {("none", "a"): (9, 8, 9, 13), ("frobenius", "b"): (4, 1, 4, 6), ("token", "b"): (1, 0, 0, 0)}
    rows = [(*names, "s", at, value) for names, of_names in values.items() for at, value in enumerate(of_names, -1)]
    table = pd.DataFrame(rows, columns=["estimator", "variant", "statistic", "replicate", "value"])
    return table.assign(**LABELS).sample(frac=1, random_state=0)


def test_a_difference_is_taken_replicate_by_replicate_under_each_estimator():
    """The middle half of three values ends half way between the outer ones and the one between them."""
    found = checks.compared(few_replicates(), 0.5, [("s", "b", "a"), ("s", "a", "none")])
    assert list(found) == checks.COMPARED
    assert (found[[*LABELS]] == pd.Series(LABELS)).all(axis=None)
    measured = found[["variant", "minus", "estimator", "value", "low", "high"]]
    assert list(measured.itertuples(index=False, name=None)) == [
        ("b", "a", "frobenius", -5, -7, -6),  # of -7, -5, -7
        ("b", "a", "token", -8, -11, -8.5),  # of -8, -9, -13
        ("a", "none", "none", 9, 8.5, 11),
    ]
    frobenius, token, none = made = list(checks.statistics(found, "asked"))
    assert [(statistic.name, statistic.speaks) for statistic in made] == [
        ("asked: s", True),
        ("asked: s", False),
        ("asked: s", True),
    ]
    assert {**token.setting, "prompts": 40, "resampled": 30} == LABELS | {"estimator": "token"}
    assert frobenius.table["b", "a"].to_dict() == {"value": -5, "low": -7, "high": -6}
    assert token.table["b", "a"].to_dict() == {"value": -8, "low": -11, "high": -8.5}
    assert none.table["a", ""].to_dict() == {"value": 9, "low": 8.5, "high": 11}


def test_only_rows_of_the_papers_estimator_speak_of_claims_and_models_are_judged_apart():
    found = judged(pd.concat([replicates(papers_world()), replicates(papers_world()).assign(model="mpt")]))
    assert found["quantity"].str.contains("; mpt seed0/step9, text, 64 tokens").sum() == len(found) / 2
    assert set(found["n"]) == {LABELS["resampled"]}
    assert not found.duplicated(["setting", "statistic", "network", "other"]).any()
    estimator = found["setting"].str.rpartition(" = ")[2]
    without_lambda = found["network"].isin(["a", "d"]) & (found["other"] == "")
    assert set(estimator[without_lambda]) == {"none"}
    assert set(estimator[~without_lambda]) == set(ESTIMATORS)
    assert set(found.loc[estimator == "token", "claim"]) == {""}
    of_paper = found.loc[estimator == "frobenius", "claim"] != ""
    assert of_paper.sum() == 2 * 12  # all but those on null profiles and on the minimum


# Worlds


def test_every_prediction_holds_in_a_world_that_behaves_as_the_paper_says_and_fails_in_the_opposite():
    holding, failing = verdicts(replicates(papers_world())), verdicts(replicates(opposite_world(), trend=1.0))
    assert holding[holding != "holds"].to_dict() == {}
    assert failing[failing != "fails"].to_dict() == {}


@pytest.mark.parametrize(
    ("world", "trend", "concerns"),
    [
        (swapped("b", "c"), -1.0, just("b", "c")),  # alike in shape, so nothing but their contrast may change
        (swapped("half", "b"), -1.0, just("half", "b")),
        # The rollout without residual connections closer than all others
        (
            papers_world() | {"a": first_raised(jittered(papers_world()["d"][0], seed=8), 0.005)},
            -1.0,
            lambda contrast: contrast[1] == "a",
        ),
        (papers_world() | {"a": papers_world()["a"][:, ::-1]}, -1.0, just("a", "")),  # collapses to the last token
        (papers_world() | {"d": papers_world()["d"][:, ::-1]}, -1.0, lambda contrast: False),  # still a U
        (papers_world(), 1.0, just("lambda", "")),
    ],
)
def test_what_differs_from_the_papers_world_fails_just_where_it_is_contrasted(world, trend, concerns):
    found = verdicts(replicates(world, trend))
    assert set(found[found == "fails"].index) == set(filter(concerns, found.index))


@pytest.mark.parametrize("variant", ["b", "d", "lambda"])
def test_where_a_replicate_has_no_value_its_contrasts_cannot_be_tested_and_the_others_can(variant):
    values = replicates(papers_world())
    values.loc[(values["variant"] == variant) & (values["replicate"] == 3), "value"] = np.nan
    found = verdicts(values)
    concerned = np.array([variant in contrast[1:] for contrast in found.index])
    assert set(found[concerned]) == {"not testable here"}
    assert set(found[~concerned]) == {"holds"}


@pytest.mark.parametrize(
    ("occasion", "rows"),
    [(checks.EVERY_DATASET, 8), (checks.LONG, 2 + 4), (checks.EVERY_LENGTH, 2), (checks.DURING_TRAINING, 3)],
)
def test_what_is_asked_on_other_occasions_holds_in_the_papers_world_and_fails_in_another(occasion, rows):
    falling = papers_world() | {"d": jittered(1.2 - POSITION, seed=9), "b": hump(0.97, 0.04, seed=5)}
    rising = papers_world() | {"d": jittered(0.2 + POSITION, seed=9), "c": first_raised(papers_world()["c"], 0.999)}
    found = judged(replicates(swapped("b", "c") if occasion == checks.LONG else papers_world()), occasion)
    assert found["verdict"].to_list() == ["holds"] * rows  # of what has two estimators of lambda, twice
    assert (set(found["claim"]) == {""}) == (occasion == checks.DURING_TRAINING)
    nearest = papers_world() | {name: papers_world()["d"] for name in ("uniform", "last", "a")}
    others = pd.DataFrame([verdicts(replicates(world), occasion) for world in (falling, rising, nearest)])
    assert others.isin(["fails", "no effect"]).any().all()


# Long trainings


@pytest.mark.parametrize(("last", "verdict"), [(papers_world(), "holds"), (opposite_world(), "fails")])
def test_of_a_long_training_the_last_step_is_judged_as_replicates_are_and_others_speak_of_no_claim(last, verdict):
    """Before, the model lived in the other world."""
    first = opposite_world() if verdict == "holds" else papers_world()
    steps = {step: replicates(first).assign(checkpoint=f"seed0/step{step}") for step in (0, 90)}
    steps[1000] = replicates(last).assign(checkpoint="seed0/step1000")
    evidence = pd.concat(
        checks.compared(of_step, LEVEL, checks.contrasts(PREDICTED, checks.STANDARD)) for of_step in steps.values()
    ).assign(scale="longer")
    found = pd.concat(checks_long_training.checks([evidence], PREDICTED))
    ended = found["setting"].str.contains("step1000")
    as_fresh = judged(steps[1000]).assign(scale="longer").sort_values([*KEYS], ignore_index=True)
    pd.testing.assert_frame_equal(found[ended].sort_values([*KEYS], ignore_index=True), as_fresh)
    alone, twice = 2, 4  # rows at each of two steps: of (d) by itself, and of what has two estimators of lambda
    assert len(found[~ended]) == 2 * (alone + 2 * twice) + 2  # both ends of (d) before training
    assert set(found.loc[~ended, "claim"]) == {"", "structural-untrained"}
    assert verdict not in set(found.loc[~ended, "verdict"])


def test_without_a_long_training_there_are_no_rows_of_one():
    assert list(checks_long_training.checks([], PREDICTED)) == []
