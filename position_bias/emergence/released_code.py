"""These checks compare depths and encodings in the settings of the authors' released code.

The networks are those of evidence/emergence/released-code-*, by seed. At equal iterations they have learned different
things, so that depths are compared at equal stages of learning to copy, too: where a share of the answers, on sequences
without copies, first names some label of the context. Predictions and stages stood in docs/replication.md before the
first run (commit 6731c40).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias.emergence.accuracy_gaps import AS_RELEASED, final_gaps
from position_bias.verdicts.judge import Statistic, judge, table
from position_bias.verdicts.registry import Prediction
from position_card.core import artifacts

NETWORKS = {f"gaussian/plain/causal/{encoding}": encoding for encoding in ("none", "rope", "decay")}
DEPTHS = (2, 4, 6)
STAGES = (0.3, 0.7)  # shares of the answers that are a label of the context
PAIR, IN_CONTEXT = "first-last", "in_context"  # quantities of curves.csv
OF_NETWORK = ["encoding", "depth", "seed"]
COLUMNS = ["vocabulary", "study", "bias", "mask", "residual", "omega", *OF_NETWORK, "iteration", "quantity", "value"]


def read_curves(evidence: Iterable[Path]) -> pd.DataFrame:
    """Read the curves of the groups whose tokens are drawn as the released code does, among those of these tables.

    A group is a folder of evidence/emergence/. Columns COLUMNS. Raises InputError where a table cannot be used.
    """
    groups = sorted({path.parent for path in evidence})
    runs = {group: artifacts.read_table(group / "runs.csv", ["coordinates"]) for group in groups}
    as_released = [group for group, of_group in runs.items() if set(of_group["coordinates"]) == {"released"}]
    tables = [artifacts.read_table(group / "curves.csv", COLUMNS)[COLUMNS] for group in as_released]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


def released_code_checks(
    curves: pd.DataFrame, predictions: Mapping[str, list[Prediction]], level: float
) -> pd.DataFrame:
    """Return verdicts in the schema of `judge.COLUMNS`. A network that is not there yet has rows without a value."""
    return table("emergence", "paper", judge(released_code_statistics(curves), predictions, level))


def released_code_statistics(curves: pd.DataFrame) -> Iterator[Statistic]:
    """Yield the gaps by encoding and depth at the end of training, and their change with depth there and at stages."""
    all_networks = curves[OF_NETWORK].drop_duplicates()
    final = final_gaps(curves).query("pair == @PAIR")[[*OF_NETWORK, "gap"]]
    at_end = _by_network(final, all_networks)
    for depth in DEPTHS:
        gaps = {name: at_end[name, depth] for name in NETWORKS}
        yield _statistic("released code: first-last gap", gaps, {"depth": depth}, [depth])
    yield from _depths("released code: first-last gap by depth", at_end, {})
    for stage in STAGES:
        by_network = _by_network(at_stage(curves, stage), all_networks)
        yield from _depths("released code: first-last gap by depth at a stage", by_network, {"stage": stage})


def at_stage(curves: pd.DataFrame, stage: float) -> pd.DataFrame:
    """The gap of each network where it reaches a stage, NaN where it does not: columns OF_NETWORK and gap.

    It is interpolated by the share that is copied, between the first test that has the stage and the test before.
    """
    of_quantities = curves[curves["quantity"].isin([PAIR, IN_CONTEXT])]
    tests = of_quantities.pivot(index=[*OF_NETWORK, "iteration"], columns="quantity", values="value").sort_index()
    rows = []
    for network, course in tests.groupby(OF_NETWORK):
        in_context, gap = course[IN_CONTEXT].to_numpy(float), course[PAIR].to_numpy(float)
        at_or_above = np.flatnonzero(in_context >= stage)
        first = at_or_above[0] if len(at_or_above) else 0
        bracket = slice(first - 1, first + 1)
        value = np.interp(stage, in_context[bracket], gap[bracket]) if first else np.nan
        rows.append((*network, float(value)))
    return pd.DataFrame(rows, columns=[*OF_NETWORK, "gap"])


Gaps = dict[tuple[str, int], pd.Series]  # of a network at a depth, by the seeds that were started


def _by_network(gaps: pd.DataFrame, all_networks: pd.DataFrame) -> Gaps:
    """A seed that diverged has NaN; a network that was not trained has no seed."""
    whole = all_networks.merge(gaps, how="left", on=OF_NETWORK)
    return {
        (name, depth): whole[(whole["encoding"] == encoding) & (whole["depth"] == depth)].set_index("seed")["gap"]
        for name, encoding in NETWORKS.items()
        for depth in DEPTHS
    }


def _depths(name: str, gaps: Gaps, setting: Mapping[str, object]) -> Iterator[Statistic]:
    """A statistic from each depth to the next: what the deeper network has more, at the seeds of both."""
    for shallower, deeper in pairwise(DEPTHS):
        changes = {network: (gaps[network, deeper] - gaps[network, shallower]) for network in NETWORKS}
        seeds = {
            network: gaps[network, deeper].index.intersection(gaps[network, shallower].index) for network in NETWORKS
        }
        common = {network: change.loc[seeds[network]] for network, change in changes.items()}
        yield _statistic(name, common, {"deeper": deeper, "than": shallower, **setting}, [deeper, shallower])


def _statistic(
    name: str, by_network: Mapping[str, pd.Series], setting: Mapping[str, object], depths: Sequence[int]
) -> Statistic:
    marks = {network: pd.Series(False, index=values.index) for network, values in by_network.items()}
    of_columns = {network: [f"{network}/depth{depth}{AS_RELEASED}" for depth in depths] for network in by_network}
    return Statistic(
        name,
        pd.DataFrame(by_network, dtype=float),
        setting,
        wording=NETWORKS,
        seen_units=marks,
        networks_behind=of_columns,
    )
