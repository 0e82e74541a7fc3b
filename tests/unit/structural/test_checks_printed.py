"""What the paper says of its printed tables, against the tables, and against tables that say otherwise."""

from pathlib import Path

import pandas as pd
import pytest

from position_bias.structural import checks_printed

ROOT = Path(__file__).parents[3]


@pytest.fixture
def printed():
    return pd.read_csv(ROOT / "published/structural_distances.csv")


def verdicts(printed):
    found = checks_printed.checks(printed, "test")
    return list(found[["claim", "measured", "verdict"]].itertuples(index=False, name=None))


def test_the_printed_tables_are_counted_as_one_counts_them_by_hand(printed):
    content, larger, size_b, size_c, longer = verdicts(printed)
    assert content == ("structural-printed-content", pytest.approx((10 - 5) / 15), "holds")
    assert larger == ("structural-printed-content", pytest.approx(1 - (4 - 5) / 9), "holds")
    assert size_b == ("structural-printed-size", pytest.approx(0.75 / 6 - 1.02 / 9), "not separable")
    assert size_c == ("structural-printed-size", pytest.approx(0.25 / 6 - 1.22 / 9), "holds")
    assert longer == ("structural-printed-long", pytest.approx((12 - 1) / 15), "holds")


def test_tables_with_b_and_c_exchanged_fail(printed):
    exchanged = printed.replace({"variant": {"b": "c", "c": "b"}})
    assert [verdict for _, _, verdict in verdicts(exchanged)] == ["fails", "fails", "holds", "not separable", "fails"]


def test_larger_models_with_the_distances_of_smaller_ones_fail(printed):
    names = {"mpt-30b": "mpt-7b", "bloom-176b": "bloom-7b", "mpt-7b": "mpt-30b", "bloom-7b": "bloom-176b"}
    found = {(claim, verdict) for claim, _, verdict in verdicts(printed.replace({"model": names}))}
    assert ("structural-printed-size", "fails") in found
    assert ("structural-printed-content", "fails") in found
