import numpy as np
import pandas as pd
import pytest
import scipy.stats

from position_bias.emergence import accuracy_gaps

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


# Curves by seed


def test_accuracy_and_in_context_are_means_without_copies():
    found = accuracy_gaps.curves(table(curves(0, 100)))
    assert values(found, quantity="accuracy") == pytest.approx([(0.8 + 0.6 + 0.5 + 0.3) / 4])
    assert values(found, quantity="in_context") == pytest.approx([(0.9 + 0.8 + 0.8 + 0.7) / 4])
    assert values(found, quantity="loss") == [1.5]


@pytest.mark.parametrize("positions", [(1, 3, 4), (1, 5, 8), (1, 10, 11)])
def test_first_middle_and_last_are_positions_of_the_pair_sets(positions):
    rows = table(curves(0, 0))
    renamed = dict(zip((1, 2, 4), positions, strict=True))
    pairs = rows["twin"] > 0
    rows.loc[pairs, ["answer", "twin"]] = rows.loc[pairs, ["answer", "twin"]].replace(renamed)
    found = accuracy_gaps.curves(rows.sample(frac=1, random_state=0))
    assert {pair: values(found, quantity=pair)[0] for pair in GAPS} == pytest.approx(GAPS)


# By seed, after training

SHORTER = (  # what other networks are, whose trainings end earlier, and the shift of their gaps
    ({"depth": 4}, 0.3),
    ({"study": "ends", "bias": "ends"}, 0.4),
    ({"vocabulary": "fixed", "omega": "training"}, 0.5),
    ({"vocabulary": "fixed", "omega": "fresh"}, 0.54),
)
LOST = (
    (2, {}),
    (0, {"mask": "none"}),
    (1, {"mask": "none"}),
    (0, {"encoding": "rope"}),
)  # one seed, or all of a network


@pytest.fixture(scope="module")
def by_seed():
    """Two seeds to the end, others that diverged, and networks that are not trained together with them."""
    return table(
        *(curves(seed, at, 0.1 * seed + at / 1000) for seed in (0, 1) for at in (0, 50, 80, 90, 100)),
        *(curves(seed, at, 0.2, **other) for seed, other in LOST for at in (0, 50, 80, 90)),
        *(curves(0, at, shift, **other) for other, shift in SHORTER for at in (0, 50)),
    ).sample(frac=1, random_state=3, ignore_index=True)


def assert_numbers(found, name, value, expected, at_end):
    """Every network that did not diverge has the `expected` numbers, by what is in column `name`, and its shift."""
    assert list(found.columns) == [*CONFIGURATION, "seed", name, value]
    members = [(CONFIGURATION | {"seed": seed}, 0.1 * seed + at_end) for seed in (0, 1)]
    members += [(CONFIGURATION | other | {"seed": 0}, shift) for other, shift in SHORTER]
    assert len(found) == len(members) * len(expected)
    for member, shift in members:
        rows = of(found, **member)
        assert dict(zip(rows[name], rows[value], strict=True)) == pytest.approx(
            {place: number + shift for place, number in expected.items()}
        )


def test_gaps_and_accuracies_are_those_after_the_last_iteration(by_seed):
    """Networks of a vocabulary and study train equally long at a depth: what ends before the others was lost."""
    assert_numbers(accuracy_gaps.final_gaps(accuracy_gaps.curves(by_seed)), "pair", "gap", GAPS, at_end=0.1)
    assert_numbers(accuracy_gaps.by_position(by_seed), "answer", "accuracy", PLAIN, at_end=0.1)


@pytest.mark.parametrize(
    ("share", "averaged"), [(0.1, [100]), (0.15, [90, 100]), (0.25, [80, 90, 100]), (0.6, [50, 80, 90, 100])]
)
def test_settled_gaps_are_means_over_the_last_iterations(by_seed, share, averaged):
    found = accuracy_gaps.late_gaps(accuracy_gaps.curves(by_seed), share)
    assert_numbers(found, "pair", "gap", GAPS, at_end=np.mean(averaged) / 1000)
    assert found["pair"].unique().tolist() == list(GAPS)  # in the order of figures


def test_figures_show_tests_with_the_direction_of_training(by_seed):
    shown = accuracy_gaps.with_training_omega(by_seed)
    pd.testing.assert_frame_equal(shown, by_seed[by_seed["omega"].isin(["training", "none"])])


# Over seeds, as figures show them


def test_figures_are_given_means_over_seeds_with_intervals(by_seed):
    """Of the two seeds to the end, whose gaps and accuracies differ by .1."""
    level, tests = 0.99, accuracy_gaps.with_training_omega(by_seed)
    means, of_seeds = accuracy_gaps.at_end(accuracy_gaps.curves(tests), level)
    accuracy = accuracy_gaps.accuracies(accuracy_gaps.by_position(tests), level)
    learning = pd.concat(accuracy_gaps.learning(by_seed, pair, level).assign(pair=pair) for pair in GAPS)
    half = 0.05 * scipy.stats.t.ppf(0.995, 1)
    for found, name, value, expected in (
        (means, "pair", "gap", {pair: gap + 0.15 for pair, gap in GAPS.items()}),
        (accuracy, "answer", "accuracy", {answer: right + 0.15 for answer, right in PLAIN.items()}),
        (of(learning, iteration=100), "pair", "gap", {pair: gap + 0.15 for pair, gap in GAPS.items()}),
    ):
        rows = of(found, **CONFIGURATION).set_index(name).loc[[*expected]]
        np.testing.assert_allclose(rows[value], [*expected.values()])
        ends = (0, 1) if name == "answer" else (-np.inf, np.inf)  # of accuracies
        np.testing.assert_allclose(rows["high"], np.minimum(rows[value] + half, ends[1]))
        np.testing.assert_allclose(rows["low"], np.maximum(rows[value] - half, ends[0]))
        assert set(rows["seeds"]) == {2}
    assert "fresh" not in {*of_seeds["omega"], *learning["omega"]}
    assert of(accuracy, **CONFIGURATION)["answer"].tolist() == sorted(PLAIN)


def test_longer_training_stands_in_front_of_the_same_studies():
    """Tests in fresh directions, and studies that this run does not train, are not shown."""
    keys = ["vocabulary", "study", "mask", "encoding", "depth", "omega"]
    own = pd.DataFrame(
        [("fixed", "plain", "causal", "none", 2, omega) for omega in ("training", "fresh")], columns=keys
    )
    others = [("fixed", "plain", "causal", "rope", 4, "training"), ("fixed", "ends", "causal", "none", 2, "training")]
    kept = pd.concat([own, pd.DataFrame(others, columns=keys)]).assign(scale="paper")
    longest, shorter = accuracy_gaps.Trainings.from_tables(own, [kept])
    assert accuracy_gaps.network_names(longest) == ["fixed/plain/causal/none/depth2", "fixed/plain/causal/rope/depth4"]
    assert accuracy_gaps.network_names(shorter) == ["fixed/plain/causal/none/depth2"]
    assert ({*longest["scale"]}, {*shorter["scale"]}) == ({"paper"}, {""})
    alone, nothing = accuracy_gaps.Trainings.from_tables(own, [kept[kept["study"] == "ends"]])
    assert accuracy_gaps.network_names(alone) == ["fixed/plain/causal/none/depth2"]
    assert nothing.empty
    assert {*alone["omega"]} == {"training"}


def test_lasting_gaps_are_means_over_the_last_tests_by_depth():
    rows = [
        (depth, seed, at, depth + 0.1 * seed + (at if at < 30 else 0.5 * (at == 40)))
        for depth, seeds in ((2, 3), (4, 2))
        for seed in range(seeds)
        for at in (0, 10, 30, 40)
    ]
    table = pd.DataFrame(rows, columns=["depth", "seed", "iteration", "gap"]).sample(frac=1, random_state=0)
    ends, of_seeds = accuracy_gaps.gaps_over_last_tests(table, 2, 0.95)
    expected = {(depth, seed): depth + 0.1 * seed + 0.25 for depth, seeds in ((2, 3), (4, 2)) for seed in range(seeds)}
    assert of_seeds.set_index(["depth", "seed"])["gap"].to_dict() == pytest.approx(expected)
    ends = ends.set_index("depth")
    assert ends["gap"].to_dict() == pytest.approx({2: 2.35, 4: 4.3})
    assert ends.loc[2, "high"] == pytest.approx(2.35 + 0.1 * scipy.stats.t.ppf(0.975, 2) / np.sqrt(3))
    assert ends.loc[4, ["low", "high"]].isna().all()  # of two seeds there is no interval of use
