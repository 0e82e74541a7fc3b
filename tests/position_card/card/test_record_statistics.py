"""Statistics over records, against formulas that are written down here and scipy's own intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from position_card.card import record_statistics
from position_card.card.record_statistics import OptionStatistics, PlaceStatistics
from position_card.texts.records import ALONE, CLOSED

RECORDS, PLACES = 12, 5


def place_table(log_probability, right=None, closed=-9.0, alone=-1.0):
    rows = []
    for record, of_record in enumerate(log_probability):
        for place, value in [(CLOSED, closed), (ALONE, alone), *((str(k + 1), of) for k, of in enumerate(of_record))]:
            is_right = 0 if right is None or not place.isdigit() else right[record][int(place) - 1]
            rows.append((10 + record, place, 0, 50, 3, value, is_right, ""))
    columns = ["record", "place", "before", "tokens", "answer_tokens", "log_probability", "right", "reply"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture(scope="module")
def drawn():
    return np.random.default_rng(0).normal(-3, 1, (RECORDS, PLACES)) + np.array([1.5, 0, 0, 0, 0.3])


def student(values, level):
    return stats.t.interval(level, len(values) - 1, np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values)))


def test_ratios_are_paired_over_records(drawn):
    found = PlaceStatistics.of(place_table(drawn), seed=0)
    assert found.middle == [1, 2, 3]
    for end, place in (("first", 0), ("last", 4)):
        against = drawn[:, place] - drawn[:, 1:4].mean(1)
        ratio = found.ratios[end]
        expected = np.exp([against.mean(), *student(against, 0.975)])
        assert [ratio.value, ratio.low, ratio.high] == pytest.approx(expected)
        by_token = found.ratios_by_token[end]
        assert [by_token.value, by_token.low] == pytest.approx(
            np.exp([against.mean() / 3, student(against, 0.95)[0] / 3])
        )
        of_means = found.ratios_of_means[end]
        assert of_means.value == pytest.approx(np.exp(drawn[:, place]).mean() / np.exp(drawn[:, 1:4]).mean())
        assert of_means.low < of_means.value < of_means.high


def test_shares_of_right_answers_differ_by_one_at_most(drawn):
    """Student's interval of eleven right answers of twelve ends beyond that."""
    right = np.zeros((RECORDS, PLACES))
    right[1:, 0] = 1
    change = PlaceStatistics.of(place_table(drawn, right), seed=0).changes["first"]
    low, high = student(right[:, 0], 0.95)
    assert high > 1
    assert [change.value, change.low, change.high] == pytest.approx([11 / 12, low, 1])


@pytest.mark.parametrize(("places", "middle"), [(3, [1]), (4, [1, 2]), (5, [1, 2, 3]), (9, [2, 3, 4, 5, 6])])
def test_the_middle_is_the_middle_half_of_the_places(places, middle):
    assert PlaceStatistics.of(place_table(np.zeros((8, places))), seed=0).middle == middle


def test_a_geometric_mean_and_a_ratio_of_means_can_differ():
    """Half of the records gain e, the others, which are far more probable, nothing."""
    given = np.full((8, 3), -1.0)
    given[:4] = [-9, -10, -10]
    found = PlaceStatistics.of(place_table(given), seed=0)
    assert found.ratios["first"].value == pytest.approx(np.exp(0.5))
    assert found.ratios_of_means["first"].value == pytest.approx(1, abs=1e-3)


def test_right_answers_are_counted_as_differences():
    right = np.zeros((8, 3), int)
    right[:6, 0], right[:2, 1] = 1, 1
    change = PlaceStatistics.of(place_table(np.zeros((8, 3)), right), seed=0).changes["first"]
    assert change.value == pytest.approx(0.5)
    assert change.low == pytest.approx(student([1, 1, 1, 1, 0, 0, 0, 0], 0.95)[0])


def test_variance_is_shared_out_between_record_and_place():
    record, place = np.arange(8)[:, None], np.array([2.0, 0, 1])
    only_place = PlaceStatistics.of(place_table(0 * record + place), seed=0).shares
    assert only_place == pytest.approx({"record": 0, "place": 1, "rest": 0})
    both = PlaceStatistics.of(place_table(record + place), seed=0).shares
    total = np.var(np.arange(8)) + np.var(place)
    assert both == pytest.approx({"record": np.var(np.arange(8)) / total, "place": np.var(place) / total, "rest": 0})
    assert np.isnan(PlaceStatistics.of(place_table(np.zeros((8, 3))), seed=0).shares["place"])


def test_what_is_decided_on_is_compared_with_no_documents(drawn):
    found = PlaceStatistics.of(place_table(drawn, closed=-6.0, alone=-2.0), seed=0).summary
    assert [found.alone.value, found.alone.low] == pytest.approx([np.exp(4)] * 2)
    best = drawn[:, drawn.mean(0).argmax()] + 6
    assert found.best.low == pytest.approx(np.exp(student(best, 0.95)[0]))
    between = drawn[:, 0] - drawn[:, 4]
    assert found.first_over_last.high == pytest.approx(np.exp(student(between, 0.95)[1]))
    assert (found.ever_right, found.right, found.records) == (False, 0, RECORDS)


@pytest.mark.parametrize(("spread", "half", "level"), [(1.0, 0.223, 0.975), (0.01, 0.2, 0.95), (3.0, 0.1, 0.975)])
def test_so_many_records_are_needed_and_one_less_is_too_few(spread, half, level):
    found = record_statistics.sample_size_for(spread, half, level)

    def width(records):
        return stats.t.ppf((1 + level) / 2, records - 1) * spread / np.sqrt(records)

    assert width(found) <= half
    assert found == 2 or width(found - 1) > half


def option_table(picked, answer=0):
    """Rows of records in which a function of order and place has the probability of what stands there."""
    rows = []
    for record in range(8):
        for order in range(3):
            for place in range(3):
                rows.append((record, order, (place - order) % 3, "ABC"[place], picked(order, place), answer))
    return pd.DataFrame(rows, columns=["record", "order", "option", "place", "probability", "answer"])


def test_a_model_that_always_says_b_is_seen():
    found = OptionStatistics.of(option_table(lambda order, place: 0.6 if place == 1 else 0.2))
    assert [chosen.value for chosen in found.choices] == [0, 1, 0]
    assert [mass.value for mass in found.mass] == pytest.approx([0.2, 0.6, 0.2])
    assert found.same.value == 0
    assert found.right_by_order == pytest.approx(1 / 3)


def test_a_model_that_knows_the_option_is_seen():
    found = OptionStatistics.of(option_table(lambda order, place: 0.6 if (place - order) % 3 == 2 else 0.2, answer=2))
    assert [chosen.value for chosen in found.choices] == pytest.approx([1 / 3] * 3)
    assert (found.same.value, found.right_by_order, found.right_together) == (1, 1, 1)
    unknown = OptionStatistics.of(option_table(lambda order, place: 1 / 3, answer=-1))
    assert (unknown.right_by_order, unknown.right_together) == (None, None)


def test_all_orders_together_can_be_right_where_single_ones_are_not():
    """The right option has .4 everywhere; that at place B has .45, whichever it is."""
    found = OptionStatistics.of(
        option_table(lambda order, place: 0.4 if (place - order) % 3 == 0 else 0.45 if place == 1 else 0.15)
    )
    assert found.right_by_order == pytest.approx(1 / 3)
    assert found.right_together == 1
