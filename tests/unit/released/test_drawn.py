"""Rollouts of bloom-176b against the influence that was drawn."""

import numpy as np
import pandas as pd
import pytest

from position_bias.released import drawn
from position_bias.running import artifacts

N = 64


def test_a_rollout_is_compared_with_the_influence_and_with_its_own_drawing(tmp_path):
    first, last, flat = np.eye(N)[0], np.eye(N)[-1], np.full(N, 1 / N)
    profiles = {
        "b.released.none": flat,
        "b.faithful.none": first,
        "c.released.released": (first + last) / 2,
        "c.released.faithful": last,
    }
    for name, values in profiles.items():
        table = pd.DataFrame({"position": range(N), "value": values}).sample(frac=1, random_state=0)
        artifacts.write_table(tmp_path / f"bloom-176b/dclm/n{N}/{name}.csv", table)
    shares = {"a": first, "b": flat, "c": last, "d": last}
    curves = pd.DataFrame(shares, index=pd.RangeIndex(N, name="token")).melt(
        var_name="variant", value_name="share", ignore_index=False
    )
    found = drawn.of_profiles(sorted(tmp_path.rglob("*.csv")), curves.reset_index())
    found = found.set_index(["variant", "slopes", "content"])
    assert found.loc[("b", "released", "none"), "wasserstein"] == pytest.approx(0.5)
    assert found.loc[("b", "released", "none"), "W to its drawing"] == pytest.approx(0)
    assert found.loc[("b", "faithful", "none"), "wasserstein"] == pytest.approx(1)
    assert found.loc[("c", "released", "released"), "W to its drawing"] == pytest.approx(0.5)
    assert found.loc[("c", "released", "faithful"), "wasserstein"] == pytest.approx(0)
    assert found["W to its drawing"].notna().sum() == 2
    assert found.loc[("d", "none", "none"), ["argmin", "mean position"]].tolist() == [0, 1]
