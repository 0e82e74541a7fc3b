"""Means over seeds that figures draw, beside scipy and on numbers by hand."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_card.drawing.intervals import by_seed, count_label, from_to, over_seeds


def test_numbers_of_one_seed_are_averaged_before_seeds_are():
    """Two heads of one seed, and one of another, which then weigh the same."""
    rows = [(2, 0, 1.0), (2, 0, 5.0), (1, 1, 2.0), (2, 1, 9.0)]
    table = pd.DataFrame(rows, columns=["layer", "seed", "value"])
    assert [*by_seed(table, "layer").itertuples(index=False, name=None)] == [(1, 1, 2), (2, 0, 3), (2, 1, 9)]
    found = over_seeds(table, "layer", 0.9).set_index("layer")
    interval = scipy.stats.ttest_1samp([3.0, 9.0], 0).confidence_interval(0.9)
    assert found.loc[2].tolist() == pytest.approx([6, *interval, 2])
    assert found.loc[1, ["mean", "n"]].tolist() == [2, 1]
    assert np.isnan(found.loc[1, ["low", "high"]].astype(float)).all()


def test_seeds_are_counted():
    assert count_label(pd.DataFrame({"seed": [4, 2, 4]})) == "2 seeds"
    assert (from_to([1], "seed"), from_to([5, 3, 4], "seed"), from_to([2, 2])) == ("1 seed", "3 to 5 seeds", "2")
