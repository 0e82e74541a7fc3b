"""The five big models: numbers that the paper's authors released, which need no interval."""

from collections import Counter

import pandas as pd
import pytest

from position_bias.released.models import DATASETS, MODELS
from position_bias.structural.big_models import checks
from position_bias.verdicts.registry import every_claim
from position_bias.verdicts.scorecard import by_scale
from tests.unit.structural.conftest import PREDICTED, ROOT

KEPT = pd.read_csv(ROOT / "evidence/structural/released/statistics.csv")
CLAIMS = {claim.id: claim for claim in every_claim(ROOT / "published/claims.csv")}
OF_CLAIM = {  # rows a model
    "structural-figure-1-a": 1,
    "structural-figure-1-b": 2,
    "structural-figure-1-c": 2,
    "structural-figure-1-content": 2,
    "structural-figure-4": 1,
    "structural-shift": 1,
}


@pytest.fixture(scope="module")
def rows():
    return checks([KEPT], PREDICTED)


def word(rows, claim):
    (judged,) = by_scale(CLAIMS[claim], rows[rows["claim"] == claim], 0.95)
    return judged.word


def test_every_model_has_its_rows_at_the_papers_scale_and_each_is_a_known_number(rows):
    assert Counter(zip(rows["claim"], rows["model"], strict=True)) == {
        (claim, model): count for claim, count in OF_CLAIM.items() for model in MODELS
    }
    assert rows["known"].all()
    assert (rows["low"] == rows["measured"]).all()
    assert (rows["high"] == rows["measured"]).all()
    assert set(rows["scale"]) == {"paper"}
    assert rows["setting"].str.contains("dataset = fineweb-edu; n = 256; checkpoint = as released").all()


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("structural-figure-1-a", "holds"),
        ("structural-figure-1-b", "holds"),
        ("structural-figure-1-c", "fails"),
        ("structural-figure-1-content", "holds"),
        ("structural-figure-4", "holds"),
        ("structural-shift", "fails"),
    ],
)
def test_the_released_schedules_decide_a_claim(rows, claim, verdict):
    assert word(rows, claim) == verdict


def test_one_model_alone_has_no_u_with_content(rows):
    of_c = rows[rows["claim"] == "structural-figure-1-c"]
    against = of_c[of_c["verdict"] != "holds"]
    assert against[["model", "statistic"]].values.tolist() == [["falcon-rw-7b", "standard: first / middle"]]
    others = rows[rows["model"] != "falcon-rw-7b"]
    assert word(others, "structural-figure-1-c") == "holds"


def test_what_was_seen_before_its_prediction_contradicts_and_never_confirms(rows):
    assert (rows["seen_before"] == (rows["claim"] == "structural-shift")).all()
    alike = checks([KEPT.assign(value=KEPT["value"].where(KEPT["statistic"] != "shift", 1.0))], PREDICTED)
    assert set(alike[alike["claim"] == "structural-shift"]["verdict"]) == {"holds"}
    assert word(alike, "structural-shift") == "undecided"


def test_other_data_sets_and_the_models_own_slopes_and_content_have_no_row(rows):
    other = (KEPT["dataset"] != "fineweb-edu") | (KEPT["slopes"] == "faithful") | (KEPT["content"] == "faithful")
    assert set(KEPT["dataset"]) == {*DATASETS}
    assert 0.5 < other.mean() < 1
    pd.testing.assert_frame_equal(checks([KEPT[~other]], PREDICTED), rows)


def test_without_a_table_nothing_is_judged():
    assert checks([], PREDICTED).empty
