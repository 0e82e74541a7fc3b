"""This module reads networks as the checks take them: of this run, and of evidence/, after long training."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from position_bias.emergence import gaps
from position_bias.emergence.checks import NetworkTables, checks
from position_bias.emergence.gaps import CONFIGURATION
from position_bias.running import artifacts
from position_bias.verdicts.predictions import predictions
from position_bias.verdicts.verdict import tested

OWN = ["scale", "seed", *CONFIGURATION]
COLUMNS = {
    "curves": [*OWN, "iteration", "quantity", "value"],
    "accuracy": [*OWN, "answer", "accuracy"],
    "sinks": [*OWN, "state", "tau", "token", "value"],
}
DRAWN_AS_PRINTED = {"paper"}  # tokens as the text of the paper draws them; other groups are compared, not judged


def verdicts(
    curves: list[Path],
    sinks: list[Path],
    evidence: list[Path],
    seen: pd.DataFrame,
    predicted: Path,
    threshold: float,
    scale: str,
    level: float,
) -> pd.DataFrame:
    """The `checks` of the networks of this run, and those of the long runs whose tables in evidence/ are named."""
    registered = predictions(predicted, "emergence")
    of_this_run = checks(of_run(curves, sinks, threshold), registered, scale, level)
    long_runs = read_long_runs(evidence, threshold)
    others = (tested(checks(networks, registered, name, level, seen)) for name, networks in long_runs.items())
    return pd.concat([of_this_run, *others], ignore_index=True)


def read_long_runs(evidence: Iterable[Path], threshold: float) -> dict[str, NetworkTables]:
    """Return the networks of the groups that these tables belong to, at each scale; sinks at one threshold.

    A group is a folder of evidence/emergence/; those whose tokens are not drawn as the paper's text says are left out.
    Raises InputError where a table cannot be used.
    """
    drawn = {group: artifacts.read_table(group / "runs.csv", ["coordinates"]) for group in {t.parent for t in evidence}}
    folders = sorted(group for group, runs in drawn.items() if set(runs["coordinates"]) == DRAWN_AS_PRINTED)
    tables = {name: _joined(folders, name) for name in COLUMNS}
    tables["sinks"] = tables["sinks"][tables["sinks"]["tau"] == threshold]
    found = {}
    for scale in dict.fromkeys(tables["curves"]["scale"]):
        of_scale = (table[table["scale"] == scale].drop(columns="scale") for table in tables.values())
        found[str(scale)] = NetworkTables.of(*of_scale)
    return found


def of_run(curves: Sequence[str | Path], sinks: Sequence[str | Path], threshold: float) -> NetworkTables:
    """Return the networks that this run trained, from their tables at these paths; sinks at one threshold.

    Raises InputError where a table cannot be used.
    """
    tests, found = artifacts.read_tables(curves, gaps.COLUMNS), artifacts.read_tables(sinks, gaps.SINKS)
    return NetworkTables.of(gaps.curves(tests), gaps.by_position(tests), found[found["tau"] == threshold])


def _joined(folders: Iterable[Path], name: str) -> pd.DataFrame:
    """The tables of this name in all the folders that have one; no group has networks of another."""
    paths = [folder / f"{name}.csv" for folder in folders if (folder / f"{name}.csv").is_file()]
    empty = pd.DataFrame(columns=COLUMNS[name])
    found = [artifacts.read_table(path, COLUMNS[name]) for path in paths]
    return pd.concat(found, ignore_index=True)[COLUMNS[name]] if found else empty
