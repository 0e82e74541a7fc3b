import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.emergence import gaps
from position_bias.running import artifacts
from position_bias.running.runtime import InputError

CONFIGURATION = {
    "vocabulary": "gaussian",
    "study": "plain",
    "bias": "none",
    "mask": "causal",
    "encoding": "none",
    "residual": False,
    "depth": 2,
    "omega": "none",
}
# accuracy on the pair sets by (answer, twin); first, middle and last are items 1, 2 and 4
PAIRS = {(1, 2): 0.9, (2, 1): 0.4, (1, 4): 0.7, (4, 1): 0.8, (2, 4): 0.6, (4, 2): 0.5}
GAPS = {"first-middle": 0.5, "first-last": -0.1, "middle-last": 0.1}
PLAIN = {1: 0.8, 2: 0.6, 3: 0.5, 4: 0.3}


def curves(seed, iteration, shift=0.0, loss=1.5, **changed):
    """What training writes of one member at one test; every gap is that of GAPS plus `shift`."""
    at = {**CONFIGURATION, **changed, "seed": seed, "iteration": iteration}
    rows = [("loss", 0, 0, loss)]
    for (answer, twin), accuracy in PAIRS.items():
        rows.append(("accuracy", answer, twin, accuracy + (shift if answer < twin else 0)))
        rows.append(("in_context", answer, twin, 0.99))
    for answer, accuracy in PLAIN.items():
        rows.append(("accuracy", answer, 0, accuracy + shift))
        rows.append(("in_context", answer, 0, accuracy + 0.1 * answer))
    return [{**at, "quantity": q, "answer": a, "twin": t, "value": v} for q, a, t, v in rows]


def table(*parts):
    return pd.DataFrame([row for part in parts for row in part])


def of(frame, **wanted):
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    return frame


def values(frame, **wanted):
    return of(frame, **wanted)["value"].tolist()


# Tables of training


@pytest.mark.parametrize("column", ["omega", "twin"])
def test_a_table_that_lacks_a_column_is_not_read(tmp_path, column):
    """As one that was written before tests were made with two common directions."""
    artifacts.write_table(tmp_path / "whole.csv", table(curves(0, 10)))
    artifacts.write_table(tmp_path / "old.csv", table(curves(0, 10)).drop(columns=column))
    with pytest.raises(InputError, match=rf"old\.csv is not usable: it lacks column {column}; rebuild it"):
        gaps.read([tmp_path / "whole.csv", tmp_path / "old.csv"])


# Curves by seed


def test_accuracy_and_in_context_are_means_over_answer_positions_without_copies():
    found = gaps.curves(table(curves(0, 100)))
    assert values(found, quantity="accuracy") == pytest.approx([(0.8 + 0.6 + 0.5 + 0.3) / 4])
    assert values(found, quantity="in_context") == pytest.approx([(0.9 + 0.8 + 0.8 + 0.7) / 4])
    assert values(found, quantity="loss") == [1.5]


def test_gaps_are_tidy_and_keep_configurations_seeds_and_iterations_apart():
    parts = [
        curves(seed, iteration, shift=0.01 * seed + 0.001 * iteration + 0.1 * (depth == 4), depth=depth)
        for depth in (2, 4)
        for seed in (0, 3)
        for iteration in (0, 10)
    ]
    found = gaps.curves(table(*parts))
    assert list(found.columns) == [*CONFIGURATION, "seed", "iteration", "quantity", "value"]
    assert len(found) == 8 * (1 + 2 + 3)
    assert not found.duplicated([*CONFIGURATION, "seed", "iteration", "quantity"]).any()
    for depth, seed, iteration in ((2, 0, 0), (4, 0, 10), (4, 3, 10), (2, 3, 0)):
        shift = 0.01 * seed + 0.001 * iteration + 0.1 * (depth == 4)
        row = values(found, depth=depth, seed=seed, iteration=iteration, quantity="first-last")
        assert row == pytest.approx([-0.1 + shift])


@pytest.mark.parametrize("positions", [(1, 3, 4), (1, 5, 8), (1, 10, 11)])
def test_first_middle_and_last_are_the_positions_of_the_pair_sets_in_order(positions):
    rows = table(curves(0, 0))
    renamed = dict(zip((1, 2, 4), positions, strict=True))
    pairs = rows["twin"] > 0
    rows.loc[pairs, ["answer", "twin"]] = rows.loc[pairs, ["answer", "twin"]].replace(renamed)
    found = gaps.curves(rows.sample(frac=1, random_state=0))
    assert {pair: values(found, quantity=pair)[0] for pair in GAPS} == pytest.approx(GAPS)


# Common directions of the classes in a test


@pytest.fixture(scope="module")
def both_omegas():
    """The fixed vocabulary with both, whose loss stands with the first alone, beside the Gaussian with neither."""
    fixed = [
        row
        for seed in (0, 1)
        for omega, shift in (("training", 0.0), ("fresh", 0.04))
        for row in curves(seed, 100, shift + 0.1 * seed, vocabulary="fixed", omega=omega)
        if (row["quantity"], omega) != ("loss", "fresh")
    ]
    return table(fixed, curves(0, 100, 0.3)).sample(frac=1, random_state=3, ignore_index=True)


def test_figures_show_tests_with_the_direction_of_training_or_without_any(both_omegas):
    shown = gaps.of_training_omega(both_omegas)
    assert set(zip(shown["vocabulary"], shown["omega"], strict=True)) == {("fixed", "training"), ("gaussian", "none")}
    pd.testing.assert_frame_equal(shown, both_omegas[both_omegas["omega"].isin(["training", "none"])])
    without = both_omegas[both_omegas["vocabulary"] == "gaussian"]
    pd.testing.assert_frame_equal(gaps.of_training_omega(without), without)


def test_the_trained_networks_have_gaps_and_accuracy_with_either_direction(both_omegas):
    by_iteration = gaps.curves(both_omegas)
    for found in (gaps.final_gaps(by_iteration), gaps.settled(by_iteration, 0.25)):
        assert len(found) == 3 * (2 * 2 + 1)
        for seed, (omega, shift) in itertools.product((0, 1), (("training", 0.0), ("fresh", 0.04))):
            member = of(found, vocabulary="fixed", seed=seed, omega=omega)
            expected = {pair: gap + shift + 0.1 * seed for pair, gap in GAPS.items()}
            assert dict(zip(member["pair"], member["gap"], strict=True)) == pytest.approx(expected)
    accuracy = gaps.by_position(both_omegas)
    assert len(accuracy) == 4 * (2 * 2 + 1)
    for omega, shift in (("training", 0.1), ("fresh", 0.14)):
        member = of(accuracy, vocabulary="fixed", seed=1, omega=omega)
        assert dict(zip(member["answer"], member["accuracy"], strict=True)) == pytest.approx(
            {answer: value + shift for answer, value in PLAIN.items()}
        )


# By seed, after training


@pytest.fixture(scope="module")
def by_seed():
    """Two seeds to the end, one that diverged, and another configuration that ended earlier."""
    return table(
        *(
            curves(seed, iteration, 0.1 * seed + iteration / 1000)
            for seed in (0, 1)
            for iteration in (0, 50, 80, 90, 100)
        ),
        *(curves(2, iteration, 0.2) for iteration in (0, 50, 80)),
        *(curves(0, iteration, 0.3, depth=4) for iteration in (0, 50)),
    )


def test_gaps_and_accuracies_are_those_after_the_last_iteration_without_seeds_that_diverged(by_seed):
    found, accuracies = gaps.final_gaps(gaps.curves(by_seed)), gaps.by_position(by_seed)
    assert list(found.columns) == [*CONFIGURATION, "seed", "pair", "gap"]
    assert list(accuracies.columns) == [*CONFIGURATION, "seed", "answer", "accuracy"]
    assert (len(found), len(accuracies)) == (3 * 3, 4 * 3)
    for depth, seed, shift in ((2, 0, 0.1), (2, 1, 0.2), (4, 0, 0.3)):
        member = of(found, depth=depth, seed=seed)
        expected = {pair: gap + shift for pair, gap in GAPS.items()}
        assert dict(zip(member["pair"], member["gap"], strict=True)) == pytest.approx(expected)
        member = of(accuracies, depth=depth, seed=seed)
        expected = {answer: accuracy + shift for answer, accuracy in PLAIN.items()}
        assert dict(zip(member["answer"], member["accuracy"], strict=True)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("share", "averaged"), [(0.1, [100]), (0.15, [90, 100]), (0.25, [80, 90, 100]), (0.6, [50, 80, 90, 100])]
)
def test_settled_gaps_are_means_over_the_last_share_of_the_iterations(by_seed, share, averaged):
    """A seed that was lost within that share has none."""
    found = gaps.settled(gaps.curves(by_seed), share)
    assert list(found.columns) == [*CONFIGURATION, "seed", "pair", "gap"]
    assert set(found["seed"]) == {0, 1}
    for seed in (0, 1):
        member = of(found, depth=2, seed=seed)
        shift = 0.1 * seed + np.mean(averaged) / 1000
        expected = {pair: gap + shift for pair, gap in GAPS.items()}
        assert dict(zip(member["pair"], member["gap"], strict=True)) == pytest.approx(expected)
    # the share is of the iterations of each study at each depth
    assert of(found, depth=4)["gap"].tolist() == pytest.approx([gap + 0.3 for gap in GAPS.values()])


@pytest.mark.parametrize("lost", [{"mask": "none"}, {"encoding": "rope"}], ids=str)
def test_a_network_all_of_whose_seeds_diverged_has_no_rows(lost):
    """Networks of a study at a depth train equally long, so that what ends before the others was lost."""
    rows = table(
        *(curves(0, iteration) for iteration in (0, 80, 90, 100)),
        *(curves(seed, iteration, **lost) for seed in (0, 1) for iteration in (0, 80, 90)),
    )
    (name,) = lost
    by_iteration = gaps.curves(rows)
    for found in (gaps.final_gaps(by_iteration), gaps.settled(by_iteration, 0.25), gaps.by_position(rows)):
        assert set(found[name]) == {CONFIGURATION[name]}


@pytest.mark.parametrize("other", [{"vocabulary": "fixed"}, {"study": "ends", "bias": "ends"}, {"depth": 4}], ids=str)
def test_another_vocabulary_study_or_depth_may_train_for_fewer_iterations(other):
    rows = table(*(curves(0, iteration) for iteration in (0, 50, 100)), *(curves(0, i, **other) for i in (0, 50)))
    by_iteration = gaps.curves(rows)
    for found in (gaps.final_gaps(by_iteration), gaps.settled(by_iteration, 0.25), gaps.by_position(rows)):
        assert len(of(found, **other)) == len(of(found, **{name: CONFIGURATION[name] for name in other})) > 0


# Over seeds


def test_a_summary_is_the_mean_over_seeds_with_scipys_interval():
    rng = np.random.default_rng(0)
    drawn = {(depth, pair): rng.normal(size=5 + depth) for depth in (4, 2) for pair in ("b", "a")}
    rows = [(d, p, seed, gap) for (d, p), of_seeds in drawn.items() for seed, gap in enumerate(of_seeds)]
    frame = pd.DataFrame(rows, columns=["depth", "pair", "seed", "gap"]).sample(frac=1, random_state=1)
    found = gaps.summary(frame, ["depth", "pair"], "gap", 0.9)
    assert list(found.columns) == ["depth", "pair", "gap", "low", "high", "seeds"]
    assert len(found) == 4
    for row in found.itertuples():
        of_seeds = drawn[row.depth, row.pair]
        interval = scipy.stats.ttest_1samp(of_seeds, 0).confidence_interval(0.9)
        assert (row.gap, row.low, row.high) == pytest.approx((of_seeds.mean(), interval.low, interval.high))
        assert row.seeds == len(of_seeds)
