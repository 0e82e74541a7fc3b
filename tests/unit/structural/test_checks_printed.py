"""What the paper says of its printed tables, against the tables, and against tables that say otherwise."""

import pandas as pd
import pytest

from position_bias.structural import checks_printed
from tests.unit.structural.conftest import PREDICTED, ROOT


@pytest.fixture
def printed():
    return pd.read_csv(ROOT / "published/structural_distances.csv")


def judged(printed):
    return checks_printed.checks(printed, PREDICTED, "test")


def test_the_printed_tables_are_counted_as_one_counts_them_by_hand(printed):
    found = judged(printed)
    gains = [1.02 / 2 - 1.56 / 3, 1.2 / 2 - 1.44 / 3]  # of (b) and (c) over (a)
    counted = [(10 - 5) / 15, 1 - (4 - 5) / 9, 0.75 / 6 - 1.02 / 9, 0.25 / 6 - 1.22 / 9, *gains, (12 - 1) / 15]
    assert found["measured"].to_list() == pytest.approx(counted)
    assert found["verdict"].to_list() == ["holds", "holds", "no effect", "holds", "undecided", "holds", "holds"]
    of_rounding = [0, 0, 0.01, 0.01, 0.02, 0.02, 0]  # both means may be off by half of the last digit
    for sign, end in ((-1, "low"), (1, "high")):
        assert (found[end] - found["measured"]).to_list() == pytest.approx([sign * width for width in of_rounding])


def test_tables_with_b_and_c_exchanged_fail(printed):
    exchanged = judged(printed.replace({"variant": {"b": "c", "c": "b"}}))
    assert exchanged["verdict"].to_list() == ["fails", "fails", "holds", "no effect", "holds", "undecided", "fails"]


def test_larger_models_with_the_distances_of_smaller_ones_fail(printed):
    names = {"mpt-30b": "mpt-7b", "bloom-176b": "bloom-7b", "mpt-7b": "mpt-30b", "bloom-7b": "bloom-176b"}
    found = judged(printed.replace({"model": names}))
    assert set(found.loc[found["verdict"] == "fails", "statistic"]) == {
        "printed: closer in larger models",
        "printed: distance in larger models",
        "printed: gain in larger models",
    }
