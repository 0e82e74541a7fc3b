"""The checks of structural on worlds made by hand: one behaves as the paper says, the others contradict it."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from position_bias.released.models import DATASETS, MODELS
from position_bias.structural import checks
from position_bias.structural.checks import EARLY_DECODERS, OF_DECODERS, SINK_CLAIMS
from position_bias.verdicts.judge import KEYS, percentiles, student
from position_bias.verdicts.scorecard import by_scale
from tests.graphs import CLAIMS as REGISTERED
from tests.unit.structural.conftest import PREDICTED, ROOT
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
from tests.worlds import row

CLAIMS = {claim.id: claim for claim in REGISTERED}
CURVES = pd.read_csv(ROOT / "published/structural_curves.csv")
RELEASED = pd.read_csv(ROOT / "evidence/structural/released/statistics.csv")
ROWS_OF_RELEASED = {  # of each model
    "structural-figure-1-a": 1,
    "structural-figure-1-b": 2,
    "structural-figure-1-c": 2,
    "structural-figure-1-content": 2,
    "structural-figure-4": 1,
    "structural-shift": 1,
    "structural-released-slopes": 1,
    "structural-released-content": 1,
    "structural-printed-triangle": 1,
}
ON_DECODERS = (
    *("structural-pretrained-", "structural-curve-", "structural-recall-"),
    *("structural-released-lambda", "structural-sink"),
)
OURS = {claim for claim in CLAIMS if claim.startswith(ON_DECODERS)}
FIRST, LAST, BY_NORM = "log first / middle", "log last / middle", ", by the first token's norm"
EFFECTS = {  # statistic -> network -> mean over documents, in a world that is as our claims say
    FIRST: {"gradient": 1.2, "replacement": 0.0, "untrained gradient": 1.0, "untrained gradient at .02": 1.0},
    LAST: {"gradient": 3.0, "replacement": 3.8, "untrained gradient": 2.0, "untrained gradient at .02": 2.0},
    f"{FIRST}, elsewhere": {"gradient": 0.7},
    f"{LAST}, elsewhere": {"gradient": 0.7},
    "spearman of lambda with depth": {"frobenius": -0.6},
    "W to influence": {"rotary": 0.05, "content-free": 0.1, "measured": 0.2, "half": 0.5, "uniform": 0.3},
    "total variation to influence": {"rotary": 0.05, "content-free": 0.1, "measured": 0.2, "uniform": 0.3},
    "W to influence by lambda": {"token": 0.05, "frobenius": 0.05},
    f"{FIRST} of means": {"gradient": 1.3, "replacement": 0.1},
    f"log first word / middle{BY_NORM}": {"gradient, own norm": 1.2, "gradient, held norm": 0.1}
    | {"replacement, own norm": 0.05, "replacement, held norm": 0.1},
    f"attention to the first token{BY_NORM}": {"own norm": 0.6, "held norm": 0.1},
    f"loss{BY_NORM}": {"own norm": 3.0, "held norm": 3.1},
    f"log first eighth / middle{BY_NORM}": {"recall, own norm": 0.6, "recall, held norm": 0.55}
    | {"gradient, held norm": 0.3, "replacement, held norm": 0.25},
    "log first word / middle": {"step of 1 %": 1.2, "step of 100 %": 0.0},
    "log effect / straight line": {"first word": -0.6, "middle words": 0.9},
    "log first eighth / middle": {"recall": 0.6, "step of 1 %": 0.3, "step of 100 %": -0.4},
    "log last eighth / middle": {"recall": 0.3},
    "log first eighth / last eighth, 128 tokens": {"recall": 0.4},
    "log first eighth / last eighth, 2,048 tokens": {"recall": -0.4},
    "rank correlation of places": {"gradient": 0.2, "replacement": 0.1, "rotary": 0.9, "measured": 0.0},
}
DISTANCES = ("W to influence", "total variation to influence", "W to influence by lambda")
OF_MEANS = (*DISTANCES, f"{FIRST} of means", *list(EFFECTS)[-3:])


def judged(values, occasion=checks.STANDARD):
    return checks.on_rollouts(values, PREDICTED, "test", LEVEL, occasion)


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


def test_a_difference_is_taken_replicate_by_replicate():
    """The middle half of three values ends half way between the outer ones and the one between them."""
    found = checks.variant_differences(few_replicates(), 0.5, [("s", "b", "a"), ("s", "a", "none")])
    assert list(found) == checks.DIFFERENCES
    assert (found[[*LABELS]] == pd.Series(LABELS)).all(axis=None)
    measured = found[["variant", "minus", "estimator", "value", "low", "high"]]
    assert list(measured.itertuples(index=False, name=None)) == [
        ("b", "a", "frobenius", -5, -7, -6),  # of -7, -5, -7
        ("b", "a", "token", -8, -11, -8.5),  # of -8, -9, -13
        ("a", "none", "none", 9, 8.5, 11),
    ]
    frobenius, token, none = made = list(checks.rollout_statistics(found, "asked"))
    assert [(statistic.name, statistic.speaks) for statistic in made] == [
        ("asked: s", True),
        ("asked: s", False),
        ("asked: s", True),
    ]
    assert {**token.setting, "prompts": 40, "resampled": 30} == LABELS | {"estimator": "token"}
    assert frobenius.table["b", "a"].to_dict() == {"value": -5, "low": -7, "high": -6}
    assert token.table["b", "a"].to_dict() == {"value": -8, "low": -11, "high": -8.5}
    assert none.table["a", ""].to_dict() == {"value": 9, "low": 8.5, "high": 11}


def test_only_rows_of_the_papers_estimator_speak_of_claims():
    """Models are judged apart."""
    found = judged(pd.concat([replicates(papers_world()), replicates(papers_world()).assign(model="mpt")]))
    assert set(found["n"]) == {LABELS["resampled"]}
    assert not found.duplicated(["setting", "statistic", "network", "other"]).any()
    estimator = found["setting"].str.rpartition(" = ")[2]
    without_lambda = found["network"].isin(["a", "d"]) & (found["other"] == "")
    assert set(estimator[without_lambda]) == {"none"}
    assert set(estimator[~without_lambda]) == set(ESTIMATORS)
    assert set(found.loc[estimator == "token", "claim"]) == {""}
    of_paper = found[(estimator == "frobenius") & (found["claim"] != "")]
    assert of_paper["model"].value_counts().to_dict() == {"bloom": 11, "mpt": 11}  # all but nulls and the minimum


# Worlds


def test_predictions_hold_in_the_papers_world_and_fail_in_the_opposite():
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
def test_what_differs_fails_just_where_it_is_contrasted(world, trend, concerns):
    found = verdicts(replicates(world, trend))
    assert set(found[found == "fails"].index) == set(filter(concerns, found.index))


@pytest.mark.parametrize("variant", ["b", "d", "lambda"])
def test_a_replicate_without_a_value_leaves_its_contrasts_open(variant):
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
def test_what_is_asked_on_other_occasions_holds_and_fails_as_well(occasion, rows):
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
def test_of_a_long_training_the_last_step_speaks_of_claims(last, verdict):
    """Before, the model lived in the other world."""
    first = opposite_world() if verdict == "holds" else papers_world()
    steps = {step: replicates(first).assign(checkpoint=f"seed0/step{step}") for step in (0, 90)}
    steps[1000] = replicates(last).assign(checkpoint="seed0/step1000")
    evidence = pd.concat(
        checks.variant_differences(of_step, LEVEL, checks.contrasts(PREDICTED, checks.STANDARD))
        for of_step in steps.values()
    ).assign(scale="longer")
    found = pd.concat(checks.on_long_trainings([evidence], PREDICTED))
    ended = found["setting"].str.contains("step1000")
    as_fresh = judged(steps[1000]).assign(scale="longer").sort_values([*KEYS], ignore_index=True)
    pd.testing.assert_frame_equal(found[ended].sort_values([*KEYS], ignore_index=True), as_fresh)
    alone, twice = 2, 4  # rows at each of two steps: of (d) by itself, and of what has two estimators of lambda
    assert len(found[~ended]) == 2 * (alone + 2 * twice) + 2  # both ends of (d) before training
    assert set(found.loc[~ended, "claim"]) == {"", "structural-untrained"}
    assert verdict not in set(found.loc[~ended, "verdict"])


def test_models_that_nobody_had_seen_untrained_can_confirm():
    first = replicates(papers_world()).assign(checkpoint="seed40/step0")
    steps = pd.concat([first, first.assign(checkpoint="seed40/step9", value=1 - first["value"])])
    kept = checks.variant_differences(steps, LEVEL, checks.contrasts(PREDICTED, checks.STANDARD)).assign(scale="longer")
    for model, seen in (("bloom", True), ("bloom-1000", False)):
        rows = pd.concat(checks.on_long_trainings([kept.assign(model=model)], PREDICTED))
        untrained = rows[rows["claim"] == "structural-untrained"]
        assert untrained["verdict"].tolist() == ["holds"] * 2
        assert (untrained["seen_before"] > 0).tolist() == [seen] * 2


# Print


@pytest.fixture
def printed():
    return pd.read_csv(ROOT / "published/structural_distances.csv")


def judged_print(printed):
    return checks.on_print(printed, PREDICTED, "test")


def test_the_printed_tables_are_counted_as_by_hand(printed):
    found = judged_print(printed)
    gains = [1.02 / 2 - 1.56 / 3, 1.2 / 2 - 1.44 / 3]  # of (b) and (c) over (a)
    counted = [(10 - 5) / 15, 1 - (4 - 5) / 9, 0.75 / 6 - 1.02 / 9, 0.25 / 6 - 1.22 / 9, *gains, (12 - 1) / 15]
    assert found["measured"].to_list() == pytest.approx(counted)
    assert found["verdict"].to_list() == ["holds", "holds", "undecided", "holds", "undecided", "holds", "holds"]
    of_rounding = [0, 0, 0.01, 0.01, 0.02, 0.02, 0]  # both means may be off by half of the last digit
    for sign, end in ((-1, "low"), (1, "high")):
        assert (found[end] - found["measured"]).to_list() == pytest.approx([sign * width for width in of_rounding])


def test_tables_with_b_and_c_exchanged_fail(printed):
    exchanged = judged_print(printed.replace({"variant": {"b": "c", "c": "b"}}))
    assert exchanged["verdict"].to_list() == ["fails", "fails", "holds", "undecided", "holds", "undecided", "fails"]


def test_larger_models_with_the_distances_of_smaller_ones_fail(printed):
    names = {"mpt-30b": "mpt-7b", "bloom-176b": "bloom-7b", "mpt-7b": "mpt-30b", "bloom-7b": "bloom-176b"}
    found = judged_print(printed.replace({"model": names}))
    assert set(found.loc[found["verdict"] == "fails", "statistic"]) == {
        "printed: closer in larger models",
        "printed: distance in larger models",
        "printed: gain in larger models",
    }


# Drawings of bloom-176b


@pytest.fixture(scope="module")
def drawn():
    return checks.on_drawings(CURVES, PREDICTED)


def judged_table_2(drawn):
    return (drawn["statistic"] == "standard: wasserstein") & (drawn["network"] == "a")


def test_rows_of_table_2_alone_have_a_verdict_and_a_claim(drawn):
    table, others = drawn[judged_table_2(drawn)], drawn[~judged_table_2(drawn)]
    assert set(others["claim"]) == {""}
    assert set(others["verdict"]) == {"not testable here"}
    assert others[["low", "high"]].isna().all(axis=None)
    assert not others["known"].any()
    assert table[["claim", "other", "verdict"]].values.tolist() == [["structural-table-2", of, "holds"] for of in "bc"]
    assert table["known"].all()
    assert set(drawn["scale"]) == {"paper"}
    assert drawn["measured"].notna().all()
    assert not drawn.duplicated(["statistic", "network", "other"]).any()
    asked = {name for name in PREDICTED if name.startswith("standard: ")} - {"standard: spearman with depth"}
    assert set(drawn["statistic"]) == asked  # lambda was not drawn


@pytest.mark.parametrize(
    ("statistic", "network", "other", "value"),
    [
        ("first / middle", "d", "", 3.08),
        ("last / middle", "d", "", 27.7),
        ("influence, first / predicted minimum", "b", "", 3.29),
        ("argmin distance", "b", "", 0.118),
        ("wasserstein", "a", "b", 0.651 - 0.079),
        ("wasserstein", "b", "c", 0.079 - 0.0159),
        ("wasserstein", "last", "b", 0.349 - 0.079),
        ("wasserstein", "uniform", "b", 0.152 - 0.079),
    ],
)
def test_numbers_are_those_of_the_drawings(drawn, statistic, network, other, value):
    found = row(drawn, f"standard: {statistic}", network, other)["measured"]
    assert (np.exp(found) if " / " in statistic else found) == pytest.approx(value, rel=0.01)


def test_another_curve_has_other_numbers(drawn):
    """The influence as flat as can be has no U."""
    flat = checks.on_drawings(CURVES.assign(share=CURVES["share"].where(CURVES["variant"] != "d", 1 / 256)), PREDICTED)
    assert row(flat, "standard: first / middle", "d")["measured"] == pytest.approx(0, abs=1e-6)  # a logarithm
    of_b = (row(table, "standard: last / middle", "b")["measured"] for table in (drawn, flat))
    assert next(of_b) == next(of_b)


def test_rows_of_table_2_turn_as_far_away_as_the_page_says(drawn):
    """A difference of two distances to (d) moves by at most twice the distance that (d) moves."""
    assert drawn[judged_table_2(drawn)]["measured"].min() / 2 > 0.28
    elsewhere = CURVES[CURVES["variant"] == "a"].assign(variant="d")
    turned = checks.on_drawings(pd.concat([CURVES[CURVES["variant"] != "d"], elsewhere]), PREDICTED)
    assert set(turned[judged_table_2(turned)]["verdict"]) == {"fails"}


# Numbers that the authors released


@pytest.fixture(scope="module")
def released():
    return checks.on_released([RELEASED], PREDICTED)


def word(released, claim):
    (judged,) = by_scale(CLAIMS[claim], released[released["claim"] == claim], 0.95)
    return judged.word


def test_every_model_has_its_rows_of_known_numbers(released):
    assert Counter(zip(released["claim"], released["model"], strict=True)) == {
        (claim, model): count for claim, count in ROWS_OF_RELEASED.items() for model in MODELS
    }
    assert released["known"].all()
    assert (released["low"] == released["measured"]).all()
    assert (released["high"] == released["measured"]).all()
    assert set(released["scale"]) == {"paper"}
    assert released["setting"].str.contains("dataset = fineweb-edu; n = 256; checkpoint = as released").all()


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("structural-figure-1-a", "holds"),
        ("structural-figure-1-b", "holds"),
        ("structural-figure-1-c", "fails"),
        ("structural-figure-1-content", "holds"),
        ("structural-figure-4", "holds"),
        ("structural-shift", "fails"),
        ("structural-released-slopes", "erratum"),
        ("structural-released-content", "erratum"),
        ("structural-printed-triangle", "erratum"),
    ],
)
def test_the_released_schedules_decide_a_claim(released, claim, verdict):
    assert word(released, claim) == verdict


def test_one_model_alone_has_no_u_with_content(released):
    of_c = released[released["claim"] == "structural-figure-1-c"]
    against = of_c[of_c["verdict"] != "holds"]
    assert against[["model", "statistic"]].values.tolist() == [["falcon-rw-7b", "standard: first / middle"]]
    others = released[released["model"] != "falcon-rw-7b"]
    assert word(others, "structural-figure-1-c") == "holds"


def test_what_was_seen_before_contradicts_and_never_confirms(released):
    seen = (
        "structural-shift",
        "structural-released-slopes",
        "structural-released-content",
        "structural-printed-triangle",
    )
    assert (released["seen_before"] == released["claim"].isin(seen)).all()
    alike = checks.on_released(
        [RELEASED.assign(value=RELEASED["value"].where(RELEASED["statistic"] != "shift", 1.0))], PREDICTED
    )
    assert set(alike[alike["claim"] == "structural-shift"]["verdict"]) == {"holds"}
    assert word(alike, "structural-shift") == "undecided"


def test_other_data_sets_slopes_and_content_have_no_row(released):
    other = (
        (RELEASED["dataset"] != "fineweb-edu")
        | (RELEASED["slopes"] == "faithful")
        | (RELEASED["content"] == "faithful")
    )
    assert set(RELEASED["dataset"]) == {*DATASETS}
    assert 0.5 < other.mean() < 1
    pd.testing.assert_frame_equal(checks.on_released([RELEASED[~other]], PREDICTED), released)


def test_without_a_table_nothing_is_judged():
    assert checks.on_released([], PREDICTED).empty
    assert list(checks.on_long_trainings([], PREDICTED)) == []


# Pretrained decoders


def decoder(model, effects=EFFECTS, documents=20):
    """A table in which documents, or resamples of them, differ a little."""
    rows = []
    for statistic, networks in effects.items():
        units = range(-1 if statistic in OF_MEANS else 0, documents)
        noise = dict(zip(units, 0.001 * np.random.default_rng(0).normal(size=documents + 1), strict=False))
        for place, (network, mean) in enumerate(networks.items(), 1):
            labels = (model, "text", 256, statistic, network)
            rows += [(*labels, unit, documents, mean + place * noise[unit], "pretrained") for unit in units]
    return pd.DataFrame(rows, columns=list(OF_DECODERS))


def judged_decoders(*tables):
    return checks.on_decoders(tables, PREDICTED, 0.95)


def test_a_decoder_that_is_as_claimed_lets_every_claim_hold():
    found = judged_decoders(decoder("new"))
    spoken = found[found["claim"] != ""]
    assert set(spoken["claim"]) == OURS | {f"structural-figure-{figure}" for figure in ("1-d", "3", "4")}
    assert set(spoken["verdict"]) == {"holds"}
    assert set(found["scale"]) == {"pretrained"}
    assert set(found["seen_before"]) == {0}
    assert set(found["n"]) == {20}


def test_the_table_of_more_documents_is_judged():
    few, many = decoder("new", documents=10), decoder("new", documents=20)
    pd.testing.assert_frame_equal(judged_decoders(few, many), judged_decoders(many))
    pd.testing.assert_frame_equal(
        judged_decoders(many, decoder("new", {FIRST: EFFECTS[FIRST]}, documents=10)), judged_decoders(many)
    )
    other = many.assign(value=many["value"] + 1)
    pd.testing.assert_frame_equal(judged_decoders(many, other), judged_decoders(many))
    assert len(judged_decoders(few, decoder("newer"))) == 2 * len(judged_decoders(many))


@pytest.mark.parametrize(
    ("statistic", "network", "effect", "claims"),
    [
        (FIRST, "replacement", 1.2, {"pretrained-no-primacy"}),
        ("W to influence", "content-free", 0.5, {"pretrained-content-free"}),
        ("W to influence", "rotary", 0.15, {"pretrained-kernel"}),
        ("total variation to influence", "content-free", 0.5, {"pretrained-content-free"}),
        ("total variation to influence", "measured", 0.5, {"pretrained-mean-attention"}),
        ("W to influence by lambda", "token", 0.1, {"released-lambda"}),
        ("log first word / middle", "step of 1 %", 0.05, {"curve-step"}),
        ("log first eighth / middle", "step of 1 %", -0.4, {"curve-step"}),
        ("log first eighth / middle", "step of 100 %", 0.25, {"curve-step", "curve-eighth"}),
        ("log effect / straight line", "first word", -0.2, {"curve-line"}),
        ("log effect / straight line", "middle words", 0.2, {"curve-line"}),
        (f"log first word / middle{BY_NORM}", "gradient, held norm", 0.4, {"sink"}),
        (f"log first eighth / middle{BY_NORM}", "recall, held norm", 0.3, {"sink"}),
        ("log first eighth / last eighth, 2,048 tokens", "recall", 0.1, {"recall-length"}),
        ("rank correlation of places", "replacement", 0.7, {"recall-ranking"}),
    ],
)
def test_a_decoder_that_is_not_contradicts_the_claim(statistic, network, effect, claims):
    other = {**EFFECTS, statistic: {**EFFECTS[statistic], network: effect}}
    found = judged_decoders(decoder("new", other))
    contradicted = found[(found["verdict"] != "holds") & found["claim"].isin(OURS)]
    assert set(contradicted["claim"]) == {f"structural-{claim}" for claim in claims}


def test_documents_are_units_and_resamples_of_means_replicates():
    values = decoder("new")
    units = values.pivot(index=["statistic", "unit"], columns="network", values="value")
    distances = units.loc["W to influence"]
    for asked, of_units, estimate in (
        ((FIRST, "replacement", ""), units.loc[FIRST, "replacement"], student),
        (("W to influence", "half", "rotary"), distances["half"] - distances["rotary"], percentiles(20)),
    ):
        found = row(judged_decoders(values), f"pretrained, ours: {asked[0]}", *asked[1:])
        expected = estimate(of_units, None, 0.95)
        assert (found["measured"], found["low"], found["high"]) == pytest.approx(expected[:3])


@pytest.mark.parametrize("model", ["stories15m", "minimind2-small"])
def test_later_claims_count_every_decoder_as_seen(model):
    """Other decoders would confirm them."""
    found = judged_decoders(decoder(model))
    assert ((found["seen_before"] > 0) == found["statistic"].str.startswith("pretrained, later: ")).all()


def test_a_decoder_seen_before_speaks_of_every_claim():
    """Its rows say that it was seen: the scorecard lets them contradict a claim, and not confirm it."""
    found = judged_decoders(decoder(EARLY_DECODERS[0]))
    assert set(found["claim"]) == set(judged_decoders(decoder("new"))["claim"])
    assert (found["n"] > 0).all()
    new = found["statistic"].str.startswith(SINK_CLAIMS)
    assert (found["seen_before"][~found["statistic"].str.contains("W to|share") & ~new] == 20).all()
    assert ((found["seen_before"] > 0) == ~new).all()


def test_without_a_table_no_claim_of_ours_can_be_tested():
    found = judged_decoders()
    assert set(found["claim"]) == OURS
    assert set(found["verdict"]) == {"not testable here"}
