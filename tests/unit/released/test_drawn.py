"""Rollouts of bloom-176b against the influence that was drawn."""

import numpy as np
import pandas as pd
import pytest

from position_bias.released import drawn
from position_bias.released.models import OF_DRAWN

N = 64


def profile(variant, slopes, content, values):
    labels = {"variant": variant, "slopes": slopes, "content": content}
    return pd.DataFrame({**labels, "position": range(len(values)), "value": values})


def test_a_rollout_is_compared_with_the_influence_and_with_its_own_drawing():
    first, last, flat = np.eye(N)[0], np.eye(N)[-1], np.full(N, 1 / N)
    curves = {"a": first, "b": flat, "c": last, "d": last}
    profiles = [
        profile("b", "released", "none", flat),
        profile("b", "faithful", "none", first),
        profile("c", "released", "released", (first + last) / 2),
        profile("c", "released", "faithful", last),
    ]
    found = drawn.table(pd.concat(profiles).sample(frac=1, random_state=0), curves)
    found = found.set_index(["variant", "slopes", "content"])
    assert found.loc[("b", "released", "none"), "wasserstein"] == pytest.approx(0.5)
    assert found.loc[("b", "released", "none"), "W to its drawing"] == pytest.approx(0)
    assert found.loc[("b", "faithful", "none"), "wasserstein"] == pytest.approx(1)
    assert found.loc[("c", "released", "released"), "W to its drawing"] == pytest.approx(0.5)
    assert found.loc[("c", "released", "faithful"), "wasserstein"] == pytest.approx(0)
    assert found["W to its drawing"].notna().sum() == 2
    assert found.loc[("d", "none", "none"), ["argmin", "mean position"]].tolist() == [0, 1]


def test_the_slopes_of_falcon_are_not_among_those_shown():
    assert {variant.slopes for variant in OF_DRAWN} == {"released", "faithful"}
    assert len(OF_DRAWN) == 2 * (1 + 1 + 2)
