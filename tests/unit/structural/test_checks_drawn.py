"""What the authors' drawings of bloom-176b say, without an interval and without a say in any claim."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from position_bias.structural.checks_drawn import checks
from position_bias.verdicts.predictions import predictions

ROOT = Path(__file__).parents[3]
CURVES = pd.read_csv(ROOT / "published/structural_curves.csv")
PREDICTED = predictions(ROOT / "published/predictions.csv", "structural")


@pytest.fixture(scope="module")
def rows():
    return checks(CURVES, PREDICTED)


def test_no_row_has_an_interval_a_verdict_or_a_claim(rows):
    assert set(rows["claim"]) == {""}
    assert set(rows["verdict"]) == {"not testable here"}
    assert set(rows["scale"]) == {"paper"}
    assert rows[["low", "high"]].isna().all(axis=None)
    assert rows["measured"].notna().all()
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
    found = rows.set_index(["statistic", "network", "other"])["measured"][f"standard: {statistic}", network, other]
    assert (np.exp(found) if " / " in statistic else found) == pytest.approx(value, rel=0.01)
