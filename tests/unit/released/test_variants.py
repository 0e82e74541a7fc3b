"""Bounds on a measured influence that nobody has: they must never exclude what can be, and must exclude what cannot."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from position_bias.released import variants
from position_bias.released.models import DATASETS, MODELS, VARIANTS, ReleasedVariant
from position_card.rollout import statistics

ROUNDING = 1e-12


@st.composite
def distributions(draw, count, most=12):
    n = draw(st.integers(2, most))
    weights = st.lists(st.floats(0, 1), min_size=n, max_size=n).filter(lambda values: sum(values) > 0.1)
    return [np.array(row) / sum(row) for row in (draw(weights) for _ in range(count))]


@given(rows=distributions(count=4))
def test_no_bound_excludes_distances_that_some_influence_has(rows):
    """Whatever (d) is, its distances, printed to two digits, break nothing, and its mean lies within the bounds."""
    *shown, influence = rows
    profiles = dict(zip("abc", shown, strict=True))
    printed = {name: round(float(statistics.wasserstein(row, influence)), 2) for name, row in profiles.items()}
    found = variants.bounds(profiles, printed)
    assert max(found.by_means, found.by_triangles) <= ROUNDING
    assert found.low - ROUNDING <= statistics.mean_position(influence) <= found.high + ROUNDING


def point(position, n=101):
    row = np.zeros(n)
    row[position] = 1
    return row


def test_a_broken_triangle_is_measured_by_how_much_it_is_broken():
    profiles = {"a": point(0), "b": point(50)}
    found = variants.bounds(profiles, {"a": 0.2, "b": 0.2})  # half the length apart, and .4 to bridge it
    assert found.by_triangles == pytest.approx(0.5 - 0.4 - 0.01)
    assert found.by_means == pytest.approx(0.09)
    assert found.excluded
    assert not variants.bounds(profiles, {"a": 0.25, "b": 0.25}).excluded


def test_two_distances_may_differ_by_no_more_than_lies_between():
    found = variants.bounds({"a": point(40), "b": point(50)}, {"a": 0.4, "b": 0.1})
    assert found.by_triangles == pytest.approx(0.4 - 0.1 - 0.1 - 0.01)
    assert found.by_means < 0  # the means alone see nothing
    assert found.excluded


def test_a_mean_lies_within_the_sequence():
    found = variants.bounds({"a": point(0)}, {"a": 1.2})
    assert (found.low, found.high) == (0, 1)
    assert variants.bounds({"a": point(100)}, {"a": 0.3}).low == pytest.approx(0.695)
    assert variants.bounds({"a": point(100)}, {"a": 0.3}).high == 1


@pytest.fixture
def profiles():
    """Random profiles of two models on two data sets, in every variant."""
    rng = np.random.default_rng(0)
    keys = [(model, dataset) for model in ("mpt-7b", "bloom-7b1") for dataset in ("fineweb-edu", "dclm")]
    return {(*key, variant): rng.dirichlet(np.ones(9)) for key in keys for variant in VARIANTS}


@pytest.fixture
def printed():
    rows = [
        (DATASETS["fineweb-edu"], MODELS["bloom-7b1"].printed_as, x, w)
        for x, w in zip("abc", (0.6, 0.1, 0.2), strict=True)
    ]
    rows += [(DATASETS["dclm"], MODELS["bloom-7b1"].printed_as, x, w) for x, w in zip("bc", (0.3, 0.4), strict=True)]
    rows += [(DATASETS["fineweb-edu"], MODELS["mpt-7b"].printed_as, "a", 0.5)]
    return pd.DataFrame(rows, columns=["dataset", "model", "variant", "value"])


def test_the_table_says_of_each_profile_what_it_is(profiles, printed):
    table = variants.table(profiles, printed)
    assert len(table) == 2 * (4 + 2 * 4)  # (b) elsewhere has its own lambda, and that of the primary data set
    keys = ["model", "dataset", "lambda of (b)", "slopes", "content"]
    assert not table.duplicated(keys).any()
    row = table.set_index(keys).loc["bloom-7b1", "dclm", "fineweb-edu", "faithful", "released"]
    a = profiles["bloom-7b1", "dclm", ReleasedVariant("a", "faithful", "none")]
    b = profiles["bloom-7b1", "fineweb-edu", ReleasedVariant("b", "faithful", "none")]
    c = profiles["bloom-7b1", "dclm", ReleasedVariant("c", "faithful", "released")]
    assert row["n"] == 9
    assert row["mean position a"] == pytest.approx(a @ np.arange(9) / 8)
    assert row["argmin b"] == b.argmin() / 8
    assert (row["first c"], row["last c"]) == (c[0], c[-1])
    assert row["W(b, c)"] == pytest.approx(np.abs(np.cumsum(b - c))[:-1].sum() / 8)
    assert np.isnan(row["printed W(a, d)"])
    assert (row["printed W(b, d)"], row["printed W(c, d)"]) == (0.3, 0.4)
    found = variants.bounds({"b": b, "c": c}, {"b": 0.3, "c": 0.4})
    assert row["excess by triangles"] == found.by_triangles
    assert row["verdict"] == ("excluded" if found.excluded else "not excluded")
    with_own = table.set_index(keys).loc["bloom-7b1", "dclm", "dclm", "faithful", "released"]
    assert (
        with_own["first b"]
        == profiles["bloom-7b1", "dclm", ReleasedVariant("b", "faithful", "none")][0]
        != row["first b"]
    )


def test_doubled_slopes_are_asked_of_falcon(profiles, printed):
    random = {variant: profiles["mpt-7b", "fineweb-edu", variant] for variant in VARIANTS}
    falcon = {("falcon-rw-7b", "fineweb-edu", variant): row for variant, row in random.items()}
    table = variants.table(falcon, printed)
    doubled = table[table["slopes"] == "doubled"].set_index("content")
    assert sorted(doubled.index) == ["faithful", "released"]
    for content, row in doubled.iterrows():
        assert row["last a"] == random[ReleasedVariant("a", "doubled", "none")][-1]
        assert row["last c"] == random[ReleasedVariant("c", "doubled", content)][-1]


def test_the_page_shows_the_primary_data_set(profiles, printed):
    page = variants.readable(variants.table(profiles, printed))
    assert len(page) == 2 * 4
    of_bloom = page[page["model"] == "bloom-7b1"].iloc[0]
    assert of_bloom["printed W to (d)"] == "0.60 0.10 0.20"
    assert page[page["model"] == "mpt-7b"].iloc[0]["printed W to (d)"] == "0.50 - -"
    assert len(of_bloom["W(a, b) W(a, c) W(b, c)"].split()) == 3


def test_what_two_tables_print_is_taken_once_and_at_one_length():
    rows = [("table2", 256, "b", 0.1), ("table3", 256, "b", 0.1), ("table4", 2048, "b", 0.2), ("table2", 256, "a", 0.6)]
    table = pd.DataFrame(rows, columns=["table", "n", "variant", "value"]).assign(dataset="x", model="y")
    assert variants.printed_at(256, table)["value"].tolist() == [0.1, 0.6]
