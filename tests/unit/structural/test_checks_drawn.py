"""What the authors' drawings of bloom-176b say, without an interval, and without a say in any claim but Table 2."""

import numpy as np
import pandas as pd
import pytest

from position_bias.structural.checks_drawn import checks
from tests.unit.structural.conftest import PREDICTED, ROOT

CURVES = pd.read_csv(ROOT / "published/structural_curves.csv")


@pytest.fixture(scope="module")
def rows():
    return checks(CURVES, PREDICTED)


def of_table_2(rows):
    return (rows["statistic"] == "standard: wasserstein") & (rows["network"] == "a")


def test_no_row_has_an_interval_a_verdict_or_a_claim_but_those_of_table_2(rows):
    table, others = rows[of_table_2(rows)], rows[~of_table_2(rows)]
    assert set(others["claim"]) == {""}
    assert set(others["verdict"]) == {"not testable here"}
    assert others[["low", "high"]].isna().all(axis=None)
    assert not others["known"].any()
    assert table[["claim", "other", "verdict"]].values.tolist() == [["structural-table-2", of, "holds"] for of in "bc"]
    assert table["known"].all()
    assert set(rows["scale"]) == {"paper"}
    assert rows["measured"].notna().all()
    assert not rows.duplicated(["statistic", "network", "other"]).any()
    asked = {name for name in PREDICTED if name.startswith("standard: ")} - {"standard: spearman with depth"}
    assert set(rows["statistic"]) == asked  # lambda was not drawn


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
def test_numbers_are_those_of_the_drawings(rows, statistic, network, other, value):
    (found,) = rows[
        (rows["statistic"] == f"standard: {statistic}") & (rows["network"] == network) & (rows["other"] == other)
    ]["measured"]
    assert (np.exp(found) if " / " in statistic else found) == pytest.approx(value, rel=0.01)


def test_another_curve_has_other_numbers(rows):
    """The influence as flat as can be has no U."""
    flat = checks(CURVES.assign(share=CURVES["share"].where(CURVES["variant"] != "d", 1 / 256)), PREDICTED)
    keys = ["statistic", "network", "other"]
    both = rows.set_index(keys)["measured"], flat.set_index(keys)["measured"]
    assert both[1].loc[("standard: first / middle", "d", "")] == pytest.approx(0, abs=1e-6)  # a logarithm
    assert both[0].loc[("standard: last / middle", "b", "")] == both[1].loc[("standard: last / middle", "b", "")]


def test_the_rows_of_table_2_turn_with_no_influence_that_is_nearer_than_the_page_says(rows):
    """A difference of two distances to (d) moves by at most twice the distance that (d) moves."""
    assert rows[of_table_2(rows)]["measured"].min() / 2 > 0.28
    elsewhere = CURVES[CURVES["variant"] == "a"].assign(variant="d")
    turned = checks(pd.concat([CURVES[CURVES["variant"] != "d"], elsewhere]), PREDICTED)
    assert set(turned[of_table_2(turned)]["verdict"]) == {"fails"}
