"""This module takes accuracy gaps between positions from the curves of training: by seed, and over seeds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from position_bias.emergence.task import PAIRS, POSITIONS
from position_card.rollout.statistics import group_means

FEWEST = 3  # seeds that have an interval of use: of two, Student's is 13 times their standard error
CONFIGURATION = ["vocabulary", "study", "bias", "mask", "encoding", "residual", "depth", "omega"]
COLUMNS = [*CONFIGURATION, "seed", "iteration", "quantity", "answer", "twin", "value"]  # of a table of training
SINKS = [*CONFIGURATION, "seed", "state", "tau", "token", "value"]  # of a table of attention sinks
LATER = ", later queries"  # after a state there: of the queries alone that read five tokens or more
TRAINING_KEYS = ["vocabulary", "study", "depth"]  # networks that are trained equally long
AS_RELEASED = " as released"  # after the name of a network in the settings of the authors' code
PAIR_NAMES = tuple(f"{a}-{b}" for a, b in PAIRS)


def with_training_omega(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of tests whose classes share the common direction of training, or have none: those that figures show."""
    return table[table["omega"] != "fresh"]


def with_fresh_omega(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of tests with common directions that training has not seen, as in the authors' code, or with none."""
    return table[table["omega"] != "training"]


def curves(table: pd.DataFrame) -> pd.DataFrame:
    """What is drawn against iterations, by seed: loss, accuracy, in_context and the gap of every pair.

    `table` joins the tables of training. The gap of a pair a, b is the accuracy on [a, b] minus that on [b, a]: above 0
    where the earlier of two equal items is preferred. Accuracy and in_context are means over answer positions, on
    sequences without copies. Columns: those of a configuration, seed, iteration, quantity, value.
    """
    keys = [*CONFIGURATION, "seed", "iteration"]
    losses = table[table["quantity"] == "loss"]
    plain = table[(table["twin"] == 0) & table["quantity"].isin(["accuracy", "in_context"])]
    means = plain.groupby([*keys, "quantity"], sort=False)["value"].mean().reset_index()
    return pd.concat([losses[[*keys, "quantity", "value"]], means, _gaps(table)], ignore_index=True)


def by_position(table: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of the trained networks by seed and position of the answer, on sequences without copies.

    Columns: those of a configuration, seed, answer (counted from 1) and accuracy.
    """
    plain = _last(table[(table["twin"] == 0) & (table["quantity"] == "accuracy")])
    return plain.rename(columns={"value": "accuracy"})[[*CONFIGURATION, "seed", "answer", "accuracy"]]


def final_gaps(by_seed: pd.DataFrame) -> pd.DataFrame:
    """Return the gaps of `curves` after the last iteration: those of a configuration, seed, pair and gap."""
    return _gap_rows(_last(by_seed))


def late_gaps(by_seed: pd.DataFrame, share: float) -> pd.DataFrame:
    """Return the gaps as `final_gaps` does, but averaged over the tests in the last `share` of the iterations."""
    keys = [*CONFIGURATION, "seed", "quantity"]
    of_survivors = by_seed.merge(_last(by_seed)[keys])
    longest = of_survivors.groupby(TRAINING_KEYS)["iteration"].transform("max")
    late = of_survivors[of_survivors["iteration"] > (1 - share) * longest]
    return _gap_rows(late.groupby(keys, sort=False)["value"].mean().reset_index())


def summary(by_seed: pd.DataFrame, keys: Sequence[str], value: str, level: float) -> pd.DataFrame:
    """Return the mean over seeds of groups of `keys`, with Student's interval: columns `value`, low, high, seeds."""
    return group_means(by_seed, keys, value, level).rename(columns={"mean": value, "n": "seeds"})


# What figures show: tests with the direction of training, or without any


class Trainings(NamedTuple):
    """Tables of networks after the longest training that is known, and after that of this run where it is shorter."""

    longest: pd.DataFrame
    shorter: pd.DataFrame

    @classmethod
    def from_tables(cls, own_table: pd.DataFrame, evidence: Sequence[pd.DataFrame]) -> "Trainings":
        """Take a table of this run, and those that evidence/ keeps of longer training of the same studies.

        Where evidence/ keeps none of them, this run is the longest.
        """
        own_table = with_training_omega(own_table).assign(scale="")
        studies = own_table[["vocabulary", "study"]].drop_duplicates()
        long = [with_training_omega(table).merge(studies) for table in evidence]
        if not any(map(len, long)):
            return cls(own_table, own_table[:0])
        return cls(pd.concat(long, ignore_index=True), own_table)


def network_names(table: pd.DataFrame) -> list[str]:
    """Return what figures and checks call the networks of a table, each once: gaussian/plain/causal/none/depth2."""
    rows = table[["vocabulary", "study", "mask", "encoding", "depth"]].drop_duplicates()
    return ["/".join([*row[:-1], f"depth{row[-1]}"]) for row in rows.itertuples(index=False, name=None)]


def at_end(by_seed: pd.DataFrame, level: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the gaps of trained networks from a table of `curves`: their `summary` by pair, and the gaps by seed."""
    final = final_gaps(by_seed)
    return summary(final, [*CONFIGURATION, "pair"], "gap", level), final


def accuracies(by_answer: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return the mean accuracy over seeds at each position of the answer, the first one first (`summary`).

    `by_answer` is the table of `by_position`. Intervals end at 0 and at 1.
    """
    in_order = by_answer.sort_values("answer", kind="stable")
    means = summary(in_order, [*CONFIGURATION, "answer"], "accuracy", level)
    return means.assign(low=means["low"].clip(lower=0), high=means["high"].clip(upper=1))


def learning(tests: pd.DataFrame, pair: str, level: float) -> pd.DataFrame:
    """Return the mean over seeds of the gap of a pair at every test (`summary`), in the column gap.

    `tests` joins the tables of training.
    """
    by_seed = curves(with_training_omega(tests)).rename(columns={"value": "gap"})
    return summary(by_seed[by_seed["quantity"] == pair], [*CONFIGURATION, "iteration"], "gap", level)


def gaps_over_last_tests(gaps: pd.DataFrame, last: int, level: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the mean gap over the `last` tests by depth: its `summary`, and by seed.

    `gaps` has a row for each depth, seed and iteration of one pair. Fewer than FEWEST seeds have no interval.
    """
    late = gaps[gaps["iteration"].isin(np.unique(gaps["iteration"])[-last:])]
    by_seed = late.groupby(["depth", "seed"])["gap"].mean().reset_index()
    ends = summary(by_seed, ["depth"], "gap", level)
    ends.loc[ends["seeds"] < FEWEST, ["low", "high"]] = np.nan
    return ends, by_seed


def _gaps(table: pd.DataFrame) -> pd.DataFrame:
    keys = [*CONFIGURATION, "seed", "iteration"]
    pairs = table[(table["quantity"] == "accuracy") & (table["twin"] > 0)]
    position = dict(zip(POSITIONS, sorted(pairs["answer"].unique()), strict=True))
    right = pairs.set_index([*keys, "answer", "twin"])["value"]
    parts = []
    for (a, b), name in zip(PAIRS, PAIR_NAMES, strict=True):
        answer, twin = position[a], position[b]
        gap = right.xs((answer, twin), level=("answer", "twin")) - right.xs((twin, answer), level=("answer", "twin"))
        parts.append(gap.rename("value").reset_index().assign(quantity=name))
    return pd.concat(parts, ignore_index=True)[[*keys, "quantity", "value"]]


def _last(table: pd.DataFrame) -> pd.DataFrame:
    """Rows after the last iteration of each study; a network that diverged in training has none."""
    return table[table["iteration"] == table.groupby(TRAINING_KEYS)["iteration"].transform("max")]


def _gap_rows(by_seed: pd.DataFrame) -> pd.DataFrame:
    """Return the gaps of a table of `curves`: those of a configuration, seed, pair and gap."""
    gaps = by_seed[by_seed["quantity"].isin(PAIR_NAMES)].rename(columns={"quantity": "pair", "value": "gap"})
    return gaps[[*CONFIGURATION, "seed", "pair", "gap"]]


def evidence(tests: pd.DataFrame, runs: pd.DataFrame, scale: str) -> dict[str, pd.DataFrame]:
    """Return what evidence/ keeps of long trainings: `curves`, accuracies by position, and what made them.

    `tests` joins their tables, `runs` their run.csv; each table gets the column scale.
    """
    tables = {"curves": curves(tests), "accuracy": by_position(tests), "runs": runs}
    return {name: table.round({"value": 5, "accuracy": 5}).assign(scale=scale) for name, table in tables.items()}


def evidence_of_sinks(sinks: pd.DataFrame, scale: str) -> dict[str, pd.DataFrame]:
    """Return what evidence/ keeps of the attention sinks of long trainings: columns SINKS and scale."""
    return {"sinks": sinks[SINKS].round({"value": 5}).assign(scale=scale)}
