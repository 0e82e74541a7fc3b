from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import pytest

from position_bias.emergence.task import PAIRS, RetrievalTask, for_vocabulary


def arrangements(items, burstiness):
    """Every order of the two classes of a sequence, equally likely."""
    assert items == 2 * burstiness
    return [tuple(int(i in first) for i in range(items)) for first in combinations(range(items), burstiness)]


def labelled(items, burstiness, labels):
    """Every sequence of labels, equally likely: each class bears one of the labels, independently of the others."""
    for order in arrangements(items, burstiness):
        for of_class in product(range(labels), repeat=max(order) + 1):
            yield [of_class[c] for c in order]


def share(happens):
    counted = Counter(happens)
    return float(Fraction(counted[True], counted.total()))


@pytest.mark.parametrize(("items", "middle"), [(8, 4), (4, 2), (9, 4)])
def test_first_middle_and_last_are_items_counted_from_1(items, middle):
    for convention, later in (("paper", 0), ("released", 1)):
        task = RetrievalTask(items=items, burstiness=1, middle=convention)
        assert [task.position(name) for name in ("first", "middle", "last")] == [1, middle + later, items]


@pytest.mark.parametrize(("items", "burstiness", "labels"), [(8, 4, 3), (4, 2, 5), (6, 3, 2)])
def test_chance_levels_are_what_counting_every_sequence_gives(items, burstiness, labels):
    task = RetrievalTask(items=items, burstiness=burstiness, labels=labels, classes=labels + 1)
    sequences = list(labelled(items, burstiness, labels))
    named = (bears == of_query for sequence in sequences for of_query in sequence for bears in sequence)
    assert task.copying_chance == pytest.approx(share(named), rel=1e-14)
    for a, b in PAIRS:
        differ = share(s[task.position(a) - 1] != s[task.position(b) - 1] for s in sequences)
        assert task.largest_gap == pytest.approx(differ, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "vocabulary", "anisotropy"),
    [("gaussian", "gaussian", 0.5), ("fixed", "fixed", 0.5), ("isotropic", "fixed", 0)],
)
def test_a_vocabulary_by_name_keeps_all_other_numbers(name, vocabulary, anisotropy):
    numbers = {"items": 4, "burstiness": 2, "classes": 40, "anisotropy": 0.5, "scale": "released", "middle": "released"}
    expected = RetrievalTask(**{**numbers, "vocabulary": vocabulary, "anisotropy": anisotropy})
    assert for_vocabulary(name, numbers) == expected
    assert numbers["anisotropy"] == 0.5  # which are not changed


# The common direction of the classes in a test


@pytest.mark.parametrize(
    ("name", "anisotropy", "omegas"),
    [
        ("fixed", 0.75, ("training", "fresh")),
        ("fixed", 1e-9, ("training", "fresh")),
        ("fixed", 0.0, ("none",)),
        ("isotropic", 0.75, ("none",)),
        ("gaussian", 0.75, ("none",)),
        ("gaussian", 0.0, ("none",)),
    ],
)
def test_where_classes_share_a_direction_tests_are_made_with_that_of_training_first_and_with_fresh_ones(
    name, anisotropy, omegas
):
    assert for_vocabulary(name, {"anisotropy": anisotropy}).omegas == omegas
