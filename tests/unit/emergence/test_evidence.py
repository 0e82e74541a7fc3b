"""What evidence/ keeps of long trainings, read back for the checks."""

import numpy as np
import pandas as pd
import pytest

from position_bias.emergence import checks
from position_bias.emergence.accuracy_gaps import CONFIGURATION, PAIR_NAMES
from position_bias.verdicts import judge
from position_card.core import artifacts
from position_card.core.runtime import InputError
from tests.worlds import judged, row

CAUSAL = "gaussian/plain/causal/none"

NETWORK = dict(zip(CONFIGURATION, ("gaussian", "plain", "none", "causal", "none", False, 2, "none"), strict=True))


def curves(depth=2, seeds=(0, 1, 2), lost=(), scale="paper"):
    """Two tests of each seed; a seed that is lost has the first alone."""
    return pd.DataFrame(
        [
            {**NETWORK, "depth": depth, "scale": scale, "seed": seed, "iteration": iteration, "quantity": pair} |
            {"value": 0.1 * (1 + place) + 0.01 * seed}
            for seed in seeds
            for iteration in (50, 100)
            for place, pair in enumerate(PAIR_NAMES)
            if iteration == 50 or seed not in lost
        ]
    )  # fmt: skip


def keep(folder, name, coordinates="paper", sinks=True, **how):
    """A group as `snakemake evidence` writes it."""
    table = curves(**how)
    kept = table[table["iteration"] == 100][[*CONFIGURATION, "seed", "scale"]].drop_duplicates()
    group = folder / name
    artifacts.write_table(group / "curves.csv", table)
    artifacts.write_table(group / "accuracy.csv", kept.assign(answer=1, accuracy=0.9))
    artifacts.write_table(group / "runs.csv", pd.DataFrame([{"coordinates": coordinates, "scale": "paper"}]))
    if sinks:
        each = [
            kept.assign(state=state, tau=tau, token=token, value=tau * size / token)
            for tau in (0.2, 0.3)
            for state, size in (("trained", 1), ("untrained", 0.5), ("uniform", 0.1))
            for token in (1, 2)
        ]
        artifacts.write_table(group / "sinks.csv", pd.concat(each))
    return group


def read(*groups):
    return checks.read_long_runs([table for group in groups for table in group.iterdir()], 0.2)


def test_groups_are_joined_at_each_scale(tmp_path):
    groups = [keep(tmp_path, "shallow"), keep(tmp_path, "deep", depth=4), keep(tmp_path, "longer", scale="longer")]
    found = read(*groups)
    assert list(found) == ["paper", "longer"]
    assert sorted(found["paper"].gaps["depth"].unique()) == [2, 4]
    assert set(found["longer"].gaps["depth"]) == {2}
    assert set(found["paper"].sinks["tau"]) == {0.2}
    gap = found["longer"].gaps.query("pair == 'first-last'")["gap"]
    np.testing.assert_allclose(gap, 0.1 * (1 + PAIR_NAMES.index("first-last")) + np.array([0, 0.01, 0.02]))


def test_a_group_may_lack_sinks_and_one_as_released_is_not_judged(tmp_path):
    assert read(keep(tmp_path, "biased", sinks=False))["paper"].sinks.empty
    assert read(keep(tmp_path, "other", coordinates="released")) == read() == {}


def test_accuracies_are_judged_in_fresh_directions_alone(tmp_path):
    group = keep(tmp_path, "fixed")
    for name in ("curves", "accuracy", "sinks"):
        kept = pd.read_csv(group / f"{name}.csv").assign(vocabulary="fixed")
        both = pd.concat([kept.assign(omega="training"), kept.assign(omega="fresh")])
        artifacts.write_table(group / f"{name}.csv", both)
    found = read(group)["paper"]
    for table, direction in ((found.gaps, "training"), (found.accuracy, "fresh"), (found.sinks, "training")):
        assert set(table["omega"]) == {direction}
    assert (found.gaps.groupby("pair")["seed"].count() == 3).all()


def test_a_damaged_table_is_named(tmp_path):
    group = keep(tmp_path, "damaged")
    (group / "accuracy.csv").write_text("seed\n0\n")
    with pytest.raises(InputError, match=r"damaged/accuracy\.csv is not usable"):
        read(group)
    with pytest.raises(InputError, match=r"damaged/curves\.csv is not usable: it lacks column answer, twin"):
        checks.read_run([group / "curves.csv"], [], 0.2)


def test_seeds_that_diverged_are_counted_where_they_are_missing(tmp_path):
    groups = [keep(tmp_path, "shallow", sinks=False, lost=(2,))]
    groups.append(keep(tmp_path, "deep", sinks=False, depth=4, seeds=(0, 1, 2, 3)))
    rows = judge.drop_untestable(judged("emergence", checks.network_statistics(read(*groups)["paper"]), 0.95))
    for depth, counts in ((2, (2, 1)), (4, (4, 0))):
        alone = row(rows, "first-last gap", CAUSAL, depth=depth)
        assert (alone["n"], alone["left_out"]) == counts
    both = row(rows, "first-last gap by depth", CAUSAL)
    assert (both["n"], both["left_out"]) == (2, 1)  # the fourth seed was started with four layers only
