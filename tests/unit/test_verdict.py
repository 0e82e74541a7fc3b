import math

import pytest

from position_bias.claims.verdict import COLUMNS, Prediction, row, table


@pytest.mark.parametrize(
    ("relation", "low", "high", "verdict"),
    [
        (">", 0.1, 0.2, "holds"),
        (">", -0.2, -0.1, "fails"),
        (">", -0.1, 0.1, "not separable"),
        (">", 0.0, 0.1, "not separable"),
        ("<", 0.1, 0.2, "fails"),
        ("<", -0.2, -0.1, "holds"),
        ("<", -0.1, 0.0, "not separable"),
    ],
)
def test_an_interval_settles_a_claim_only_if_it_lies_on_one_side(relation, low, high, verdict):
    assert Prediction(relation, 0.0).verdict(low, high) == verdict


def test_what_is_not_an_interval_has_no_verdict():
    with pytest.raises(ValueError, match="is not an interval"):
        Prediction(">", 0.0).verdict(1.0, 0.0)


@pytest.mark.parametrize(("low", "high"), [(math.nan, 1.0), (0.0, math.nan), (math.nan, math.nan)])
def test_what_is_not_defined_at_this_scale_cannot_be_tested(low, high):
    assert Prediction(">", 0.0).verdict(low, high) == "not testable here"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.02, 0.03, "holds"), (0.001, 0.002, "not separable"), (0.001, 0.5, "not separable"), (-0.03, -0.02, "fails")],
)
def test_a_negligible_effect_settles_nothing_however_narrow_its_interval(low, high, verdict):
    assert Prediction(">", 0.0, negligible=0.01).verdict(low, high) == verdict


def test_a_prediction_reads_as_a_relation():
    assert str(Prediction("<", 0.1)) == "< 0.1"
    assert str(Prediction(">", 0, negligible=0.005)) == "> 0 + 0.005"
    assert str(Prediction("<", 1, negligible=0.005)) == "< 1 - 0.005"
    assert str(Prediction("=", 0, negligible=0.05)) == "= 0 +- 0.05"


def test_rows_fit_the_common_schema():
    found = row("Figure 1", "first", Prediction(">", 0), 0.5, (0.4, 0.6), 8, "Section 1")
    made = table("structural", "laptop", [found])
    assert list(made.columns) == list(COLUMNS)
    assert made.loc[0, ["paper", "predicted", "low", "verdict"]].tolist() == ["structural", "> 0", 0.4, "holds"]
    with pytest.raises(ValueError, match="a verdict row has columns"):
        table("structural", "laptop", [found | {"note": 1}])


def test_what_a_claim_is_not_about_cannot_be_tested():
    found = row("Table 5", "similarity", Prediction(">", 0), 0.5, (0.4, 0.6), 8, "Appendix E", testable=False)
    assert found["verdict"] == "not testable here"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.04, 0.05, "holds"), (-0.06, 0.01, "not separable"), (0.06, 0.2, "fails"), (-0.2, -0.06, "fails")],
)
def test_an_equality_holds_within_what_is_negligible(low, high, verdict):
    assert Prediction("=", 0, negligible=0.05).verdict(low, high) == verdict
