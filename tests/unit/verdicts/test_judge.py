"""The judge on tables made by hand, estimators beside scipy and their definitions, and files that are no registry."""

import math
import re
from dataclasses import fields, replace
from pathlib import Path
from string import Formatter
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from position_bias.verdicts.judge import (
    COLUMNS,
    ESTIMATE,
    KEYS,
    Statistic,
    by_itself,
    judge,
    percentiles,
    published,
    resampled_interval,
    student,
    table,
    worst,
    worst_among,
)
from position_bias.verdicts.registry import OR, Prediction, Relation, every_prediction, predictions
from position_card.rollout.statistics import percentile_interval
from tests.refusals import refused

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/verdicts.md").read_text()
RELATIONS = get_args(Relation)
REGISTERED = every_prediction(ROOT / "published/predictions.csv")
PREDICTED = [field.name for field in fields(Prediction)]
values = st.lists(st.one_of(st.floats(-100, 100), st.just(math.nan)), max_size=8).map(
    lambda of: pd.Series(of, dtype=float)
)
levels = st.floats(0.5, 0.99)
numbers = st.floats(-100, 100)
TABLE = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1, np.nan], "c": [np.nan] * 3}, index=pd.Index([3, 5, 8], name="seed"))


def predicted(**given):
    """A row of the registry, of which only `given` matters."""
    row = {
        "paper": "ours",
        "statistic": "gap",
        "claim": "c",
        "network": "a",
        "other": "",
        "relation": ">",
        "bound": "0",
    }
    return {**row, "margin": "0.1", "item": "Figure 1", "words": "gap of {network}", "source": "Section 2", **given}


ABOVE = Prediction(**predicted(bound=0, margin=0))


def written(path, *rows):
    pd.DataFrame(rows, columns=PREDICTED).to_csv(path, index=False)
    return path


def judged(path, *statistics, rows, level=0.9):
    return list(judge(statistics, predictions(written(path / "predictions.csv", *rows), "ours"), level))


@given(values=values, level=levels)
def test_student_is_scipys_interval_of_units_with_a_value(values, level):
    found, present = student(values, ABOVE, level), values[values.notna()].to_numpy()
    assert (found.n, found.left_out) == (len(present), len(values) - len(present))
    assert found.measured == pytest.approx(present.mean() if len(present) else math.nan, nan_ok=True)
    ends = (math.nan, math.nan)
    if len(present) > 1:
        half = scipy.stats.sem(present) * scipy.stats.t.ppf(1 - (1 - level) / 2, len(present) - 1)
        ends = (present.mean() - half, present.mean() + half)
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-6, abs=1e-9, nan_ok=True)


def test_percentiles_are_those_of_replicates_beside_the_estimate():
    replicates = pd.Series([50.0, *np.arange(101.0)], index=[ESTIMATE, *range(101)]).sample(frac=1, random_state=1)
    assert percentiles(30)(replicates, ABOVE, 0.8) == pytest.approx((50, 10, 90, 30, 0, False))
    replicates[ESTIMATE] = -7.0  # outside of all replicates
    assert percentiles(30)(replicates, ABOVE, 0.5) == pytest.approx((-7, 25, 75, 30, 0, False))


def test_percentiles_of_few_units_lie_as_far_out_as_student():
    """At 12 units Student's quantile over the spread of resamples is 2.299, beyond which a normal has 1.08 %."""
    low, high = resampled_interval(np.arange(10_001.0), 12, 0.95)
    beyond = scipy.stats.norm.sf(scipy.stats.t.ppf(0.975, 11) * math.sqrt(12 / 11))
    assert (low, high) == pytest.approx((10_000 * beyond, 10_000 * (1 - beyond)))
    assert beyond == pytest.approx(0.0108, abs=5e-5)


def missed(units, level=0.95, worlds=2000, resamples=400):
    """Percent of worlds whose log ratio of two means, of log-normal values correlated by .5, the interval misses."""
    rng = np.random.default_rng(units)
    shared, own = rng.standard_normal((worlds, units, 1)), rng.standard_normal((worlds, units, 2))
    values = np.exp(0.9 * np.sqrt(0.5) * (shared + own))
    weights = rng.multinomial(units, np.full(units, 1 / units), resamples) / units
    ratios = np.log(np.einsum("rn,wnk->rwk", weights, values))
    ends = [
        interval(ratios[..., 0] - ratios[..., 1])
        for interval in (lambda of: percentile_interval(of, level), lambda of: resampled_interval(of, units, level))
    ]
    return [round(100 * float(((low > 0) | (high < 0)).mean()), 1) for low, high in ends]


@pytest.mark.parametrize("units", [11, 16, 22])
def test_the_page_says_how_often_intervals_of_few_units_miss(units):
    (row,) = re.findall(rf"^\| {units} \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    plain, ours = missed(units)
    assert (float(row[0]), float(row[1])) == (plain, ours)
    assert 5 < ours < 0.8 * plain


@given(
    prediction=st.builds(
        replace, st.just(ABOVE), relation=st.sampled_from(RELATIONS[:3]), bound=numbers, margin=st.floats(0, 10)
    ),
    values=st.lists(numbers, min_size=1, max_size=9),
    among=st.none() | st.integers(1, 10**6),
)
def test_the_number_counts_that_keeps_least_to_the_prediction(prediction, values, among):
    estimate = worst if among is None else worst_among(among)
    found = estimate(pd.Series(values), prediction, 0.9)
    order = ["holds", "undecided", "no effect", "fails"]
    worst_word = max((by_itself(prediction, value, value) for value in values), key=order.index)
    assert (by_itself(prediction, found.measured, found.measured), found.measured in values) == (worst_word, True)
    assert found[1:] == (found.measured, found.measured, among or len(values), 0, False)


@pytest.mark.parametrize("relation", RELATIONS[:3])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("others", [[], [0.5, 0.1]])
def test_what_is_worked_out_must_be_finite(tmp_path, relation, value, others):
    statistic = Statistic("gap", pd.DataFrame({"a": [*others, value]}), estimate=worst)
    with refused("gap, a", value, by=ValueError):
        judged(tmp_path, statistic, rows=[predicted(relation=relation)])


def test_a_network_and_a_difference_of_two_are_judged_by_unit(tmp_path):
    rows = (predicted(words="{network}, {v} tokens"), predicted(other="b", claim="", words="{network} - {other}; {v}"))
    alone, less = judged(tmp_path, Statistic("gap", TABLE, {"v": 7}), rows=rows)
    for row, units in ((alone, TABLE["a"]), (less, TABLE["a"] - TABLE["b"])):
        estimate = student(units, ABOVE, 0.9)
        assert [row[name] for name in ("measured", "low", "high", "n", "left_out")] == [*estimate[:5]]
    assert [alone[name] for name in ("claim", "item", "quantity")] == ["c", "Figure 1", "a, 7 tokens"]
    assert (alone["verdict"], less["verdict"]) == ("holds", "undecided")
    assert [alone[name] for name in ("relation", "bound", "margin", "source")] == [">", 0, 0.1, "Section 2"]
    assert [alone[name] for name in KEYS] == ["gap", "a", "", "v = 7", ""]
    assert [less[name] for name in ("claim", "quantity")] == ["", "a - b; 7"]
    assert [less[name] for name in KEYS] == ["gap", "a", "b", "v = 7", ""]
    assert list(table("ours", "test", [alone, less])) == [*COLUMNS, *KEYS]


def test_a_bound_of_the_setting_replaces_the_registered_one(tmp_path):
    statistic = Statistic("gap", TABLE, estimate=worst, numbers={"bound": 2.5, "margin": 0.25})
    (found,) = judged(tmp_path, statistic, rows=[predicted(relation="<")])
    assert [found[name] for name in ("relation", "bound", "margin", "verdict")] == ["<", 2.5, 0.25, "fails"]


def test_what_the_table_lacks_has_no_row(tmp_path):
    rows = (predicted(network="a|c|d"), predicted(network="d|b", other="a|d|c"))
    found = judged(tmp_path, Statistic("gap", TABLE), rows=rows)
    assert [(row["network"], row["other"], row["n"]) for row in found] == [
        ("a", "", 3), ("c", "", 0), ("b", "a", 2), ("b", "c", 0)
    ]  # fmt: skip
    untested = [row for row in found if row["n"] == 0]
    assert {row["verdict"] for row in untested} == {"not testable here"}
    assert all(math.isnan(row["measured"]) and row["left_out"] == 3 for row in untested)


def test_alternatives_are_all_combinations_in_order(tmp_path):
    path = written(tmp_path / "predictions.csv", predicted(network="a|b", other="c|d"), predicted(paper="theirs"))
    found = predictions(path, "ours")
    assert [(row.network, row.other) for row in found["gap"]] == [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
    assert (found["gap"][0].relation, found["gap"][0].bound, found["gap"][0].margin) == (">", 0, 0.1)
    assert [row.network for row in every_prediction(path)] == [OR.join("ab"), "a"]
    (row,) = every_prediction(written(path, predicted(margin="", claim="")))
    assert row == Prediction("ours", "gap", "", "a", "", ">", 0.0, 0.0, "Figure 1", "gap of {network}", "Section 2")
    assert predictions(path, "nobody") == {}


def test_a_statistic_says_what_its_rows_speak_of(tmp_path):
    silent = Statistic("gap", TABLE, speaks=False, item="Figure 9", wording={"wiring": "with residuals"})
    same = Statistic("gap", TABLE, identity=True, testable=False, estimate=worst, wording={"wiring": "without"})
    first, second = judged(tmp_path, silent, same, rows=[predicted(words="{network}, {wiring}")])
    assert [first[name] for name in ("claim", "item", "quantity")] == ["", "Figure 9", "a, with residuals"]
    assert first["setting"] == second["setting"] == ""
    assert [first[name] for name in ("identity", "verdict", "seen_before")] == [False, "holds", 0]
    assert [second[name] for name in ("claim", "item", "identity")] == ["c", "Figure 1", True]
    assert (second["measured"], second["verdict"]) == (1, "not testable here")


def test_seen_units_are_counted_where_they_have_a_value(tmp_path):
    """Seed 8 was seen of both networks, but has no value of b; seed 1 is in no table, and seed 5 is none of a."""
    seen = {"a": pd.Series([True, True, False], [8, 1, 3]), "b": pd.Series([True, True, False], [8, 3, 5])}
    rows = (predicted(), predicted(network="b"), predicted(other="b"), predicted(network="c"))
    found = judged(tmp_path, Statistic("gap", TABLE, seen_units=seen), rows=rows)
    assert [row["seen_before"] for row in found] == [1, 1, 1, 0]
    assert [(row["n"], row["left_out"]) for row in found] == [(2, 0), (2, 1), (1, 1), (0, 3)]


@pytest.mark.parametrize(
    ("last", "expected"),
    [(7, (6, 2, 4.0, 1)), (8, (5, 0, 5.8, 1)), (9, (6, 0, 19 / 3, 1))],  # n, seen before, mean, without a value
)
def test_seen_seeds_are_left_out_where_five_others_have_a_value(last, expected, tmp_path):
    """Seeds 1 and 2 were seen, of one network each; seed 4 has no value."""
    seeds = pd.Index(range(1, last + 1), name="seed")
    table = pd.DataFrame({"a": seeds.where(seeds != 4), "b": 0.0}, index=seeds).astype(float)
    seen = {"a": pd.Series(seeds == 1, seeds), "b": pd.Series(seeds == 2, seeds)}
    (row,) = judged(tmp_path, Statistic("gap", table, seen_units=seen), rows=[predicted(other="b")])
    assert [row[name] for name in ("n", "seen_before", "measured", "left_out")] == pytest.approx(expected)


def test_a_seed_that_was_seen_is_left_out_of_all_its_values(tmp_path):
    """Each seed has two values, of which one had been seen; that leaves five seeds."""
    index = pd.MultiIndex.from_product([("first", "last"), range(7)], names=["pair", "seed"])
    table = pd.DataFrame({"a": np.arange(14.0)}, index=index)
    seen = {"a": pd.Series([seed < 2 and pair == "first" for pair, seed in index], index)}
    (row,) = judged(tmp_path, Statistic("gap", table, seen_units=seen), rows=[predicted()])
    assert (row["n"], row["seen_before"], row["measured"]) == (10, 0, 7.5)


def test_a_statistic_that_nothing_is_predicted_of_is_named(tmp_path):
    with refused("published/predictions.csv", "slope"):
        judged(tmp_path, Statistic("slope", TABLE), rows=[predicted()])


@pytest.mark.parametrize("paper", dict.fromkeys(row.paper for row in REGISTERED))
def test_other_words_change_no_verdict_and_no_key(tmp_path, paper):
    """Of all that the project predicts of one wing, on random tables of the networks that it names."""
    rows = [row for row in REGISTERED if row.paper == paper]
    names = {name.partition(".")[0] for row in rows for _, name, _, _ in Formatter().parse(row.words) if name}
    setting = dict.fromkeys(names - {"network", "other"}, 1)
    networks = sorted({name for row in rows for name in (row.network + OR + row.other).split(OR)} - {""})
    numbers = pd.DataFrame(np.random.default_rng(2).normal(size=(4, len(networks))), columns=networks)
    wording = dict.fromkeys(networks, SimpleNamespace(vocabulary="v", study="s", mask="m", encoding="e"))
    statistics = [
        Statistic(name, numbers, setting, wording=wording) for name in dict.fromkeys(row.statistic for row in rows)
    ]

    def judged_with(words):
        path = written(tmp_path / "predictions.csv", *({**vars(row), **words} for row in rows))
        return pd.DataFrame(judge(statistics, predictions(path, paper), 0.9))

    before, after = judged_with({}), judged_with({"words": "something else of {network}"})
    assert after["quantity"].str.startswith("something else").all()
    assert not before["quantity"].str.startswith("something else").any()
    pd.testing.assert_frame_equal(before.drop(columns="quantity"), after.drop(columns="quantity"))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"relation": ">="}, ">="),
        ({"item": ""}, "item"),
        ({"network": "", "source": ""}, "network, source"),
        ({"bound": "half"}, "half"),
        ({"margin": "1%"}, "1%"),
        ({"words": "gap of {network"}, "'}'"),
    ],
)
def test_a_row_that_predicts_nothing_is_refused(tmp_path, wrong, named):
    path = written(tmp_path / "predictions.csv", predicted(), predicted(**wrong))
    with refused("row 3", path, named):
        predictions(path, "ours")


@pytest.mark.parametrize(
    ("content", "named"),
    [(None, "No such file"), (b"", ""), (b"\xff\xfe", "utf-8"), (b"paper,claim\nours,c\n", ", ".join(PREDICTED))],
)
def test_a_file_that_is_no_registry_is_refused(tmp_path, content, named):
    """The registry of claims is read by the same function."""
    path = tmp_path / "predictions.csv"
    if content is not None:
        path.write_bytes(content)
    with refused(path, named):
        every_prediction(path)


def test_numbers_seen_before_their_prediction_all_count(tmp_path):
    (row,) = judged(tmp_path, Statistic("gap", TABLE, {"model": "bloom"}), rows=[predicted(seen="a first run")])
    assert (row["n"], row["seen_before"], row["model"]) == (3, 3, "bloom")


@pytest.mark.parametrize(("value", "verdict"), [(0.2, "holds"), (0.05, "no effect"), (-0.2, "fails")])
def test_a_published_number_is_judged_by_itself(tmp_path, value, verdict):
    statistic = Statistic("gap", pd.DataFrame({"a": [value]}), estimate=published)
    (row,) = judged(tmp_path, statistic, rows=[predicted()])
    assert (row["measured"], row["low"], row["high"], row["n"]) == (value, value, value, 1)
    assert (row["known"], row["verdict"]) == (True, verdict)


def test_several_published_numbers_are_no_number():
    with pytest.raises(ValueError, match="too many values"):
        published(pd.Series([1.0, 2.0]), ABOVE, 0.9)
