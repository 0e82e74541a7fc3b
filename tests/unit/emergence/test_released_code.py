"""Depths at equal stages of training, in the settings of the released code, on curves made by hand."""

import numpy as np
import pandas as pd
import pytest

from position_bias.emergence import released_code
from position_card.core import artifacts
from position_card.core.runtime import InputError
from tests.unit.emergence.released_world import curves, judged, world


@pytest.mark.parametrize(("stage", "gap"), [(0.2, 0.1), (0.3, 0.1 + 0.2 / 4), (0.6, 0.3), (0.7, 0.3 - 0.1 / 3)])
def test_a_gap_at_a_stage_lies_between_the_two_tests_around_it(stage, gap):
    found = released_code.at_stage(curves(), stage)
    assert found["gap"].tolist() == [pytest.approx(gap)]


def test_the_first_test_that_has_the_stage_counts():
    again = curves(copied=(0.1, 0.5, 0.2, 0.9), gaps=(0, 0.4, 0, 0))
    assert released_code.at_stage(again, 0.3)["gap"].tolist() == [pytest.approx(0.2)]


def test_a_network_that_never_gets_there_has_no_gap():
    assert released_code.at_stage(curves(copied=(0.1, 0.2, 0.25, 0.29)), 0.3)["gap"].isna().all()
    assert released_code.at_stage(curves(copied=(0.5, 0.6, 0.7, 0.8)), 0.3)["gap"].isna().all()  # nor one before it


def test_predictions_hold_where_depth_amplifies():
    found = judged(world())
    assert found.groupby("claim").size().to_dict() == {
        "emergence-released-depth": 6,
        "emergence-released-encodings": 6,
        "emergence-released-depth-stages": 12,
    }
    assert set(found["verdict"]) == {"holds"}
    assert set(found["n"]) == {5}
    assert set(found["scale"]) == {"paper"}
    changes = found[found["claim"] != "emergence-released-encodings"]
    np.testing.assert_allclose(changes["measured"], 0.05)


def test_it_fails_where_depth_reduces_the_gap():
    found = judged(world(amplified=-0.05))
    depth = found["claim"] != "emergence-released-encodings"
    assert set(found[depth]["verdict"]) == {"fails"}
    assert set(found[~depth]["verdict"]) == {"holds"}


def test_a_seed_that_does_not_reach_a_stage_is_left_out_there():
    found = judged(world(lost={("rope", 4, 22)}))
    rope = found[(found["network"] == "gaussian/plain/causal/rope") & (found["other"] == "")]
    lost = rope.set_index(["statistic", "setting"])["left_out"]
    assert lost[lost > 0].index.tolist() == [
        ("released code: first-last gap by depth at a stage", f"deeper = {deeper}; than = {than}; stage = {stage}")
        for stage in (0.3, 0.7)
        for than, deeper in ((2, 4), (4, 6))
    ]


def test_networks_that_are_not_there_have_rows_without_a_value():
    some = world()
    found = judged(some[(some["depth"] == 2) & (some["encoding"] != "rope")])
    assert len(found) == len(judged(world())) == len(judged(released_code.read_curves([])))
    tested = found[found["measured"].notna()]
    assert tested[["network", "other", "setting"]].values.tolist() == [
        ["gaussian/plain/causal/none", "gaussian/plain/causal/decay", "depth = 2"]
    ]
    assert set(found.drop(tested.index)["verdict"]) == {"not testable here"}


def test_groups_of_the_released_code_are_read(tmp_path):
    for group, coordinates in (("one", "released"), ("two", "paper"), ("three", "released")):
        artifacts.write_table(tmp_path / group / "curves.csv", curves(depth=len(group)).assign(scale="paper"))
        artifacts.write_table(tmp_path / group / "runs.csv", pd.DataFrame([{"coordinates": coordinates}]))
    found = released_code.read_curves([*tmp_path.glob("*/*.csv")])
    assert sorted(found["depth"].unique()) == [3, 5]
    assert released_code.read_curves([tmp_path / "two/curves.csv"]).empty
    (tmp_path / "one/curves.csv").write_text("seed\n0\n")
    with pytest.raises(InputError, match=r"one/curves\.csv is not usable"):
        released_code.read_curves([*tmp_path.glob("*/*.csv")])
