"""This module reads networks as the checks take them: of this run, and of evidence/, after long training."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from position_bias.emergence import gaps
from position_bias.emergence.checks import VALUES, Measured, checks
from position_bias.emergence.gaps import CONFIGURATION
from position_bias.running import artifacts
from position_bias.verdicts.verdict import tested

OWN = ["scale", "seed", *CONFIGURATION]
COLUMNS = {
    "curves": [*OWN, "iteration", "quantity", "value"],
    "accuracy": [*OWN, "answer", "accuracy"],
    "sinks": [*OWN, "state", "tau", "token", "value"],
}
SEEN = ["vocabulary", "study", "mask", "encoding", "depth", "seed"]  # columns of evidence/emergence/seen.csv
DRAWN_AS_PRINTED = (
    "paper"  # tokens as the text of the paper draws them; other groups are compared with these, not judged
)


def trained(groups: Iterable[str | Path], threshold: float) -> dict[str, Measured]:
    """Return the networks of the groups, folders of evidence/emergence/, at each scale; sinks at one threshold.

    Tests are those that figures show. Groups whose tokens are not drawn as the paper's text says are left out. Raises
    InputError where a table cannot be used.
    """
    folders = [Path(group) for group in groups if _as_printed(Path(group))]
    tables = {name: gaps.of_training_omega(_joined(folders, name)) for name in COLUMNS}
    tables["sinks"] = tables["sinks"][tables["sinks"]["tau"] == threshold]
    return {
        str(scale): Measured.of(*(table[table["scale"] == scale].drop(columns="scale") for table in tables.values()))
        for scale in dict.fromkeys(tables["curves"]["scale"])
    }


def of_run(curves: Sequence[str | Path], sinks: Sequence[str | Path], threshold: float) -> Measured:
    """Return the networks that this run trained, from their tables at these paths; sinks at one threshold.

    Tests are those that figures show. Raises InputError where a table cannot be used.
    """
    tests, found = gaps.of_training_omega(gaps.read(curves)), gaps.of_training_omega(gaps.read_sinks(sinks))
    return Measured.of(gaps.curves(tests), gaps.by_position(tests), found[found["tau"] == threshold])


def judged(trained: Measured, seen: pd.DataFrame, scale: str, level: float) -> pd.DataFrame:
    """The rows that these networks can be judged by, each with how many of its seeds were `seen_before`.

    `seen` has the columns SEEN: networks whose results we knew before the rules of verdicts were fixed.
    """
    keys = ["claim", "quantity", "relation", "bound"]
    rows = tested(checks(trained, scale, level))
    unseen = checks(_without(trained, seen), scale, level)[[*keys, "n"]].rename(columns={"n": "unseen"})
    counted = rows[keys].merge(unseen, "left", on=keys)["unseen"].fillna(0)
    return rows.assign(seen_before=rows["n"].to_numpy() - counted.to_numpy(int))


def _without(trained: Measured, seen: pd.DataFrame) -> Measured:
    """The same networks, where those that were seen have no values, as if they had diverged."""
    networks = pd.MultiIndex.from_frame(seen[SEEN])

    def hidden(table: pd.DataFrame) -> pd.DataFrame:
        values = [name for name in table if name in VALUES]
        was_seen = pd.MultiIndex.from_frame(table[SEEN]).isin(networks)
        return table.assign(**{name: table[name].mask(was_seen) for name in values})

    of_training = trained.sinks["state"] == "trained"  # the others are nulls
    sinks = pd.concat([hidden(trained.sinks[of_training]), trained.sinks[~of_training]])
    return Measured(hidden(trained.gaps), hidden(trained.accuracy), sinks)


def _as_printed(group: Path) -> bool:
    return set(artifacts.read_table(group / "runs.csv", ["coordinates"])["coordinates"]) == {DRAWN_AS_PRINTED}


def _joined(folders: Iterable[Path], name: str) -> pd.DataFrame:
    """The tables of this name in all the folders that have one; no group has networks of another."""
    paths = [folder / f"{name}.csv" for folder in folders if (folder / f"{name}.csv").is_file()]
    empty = pd.DataFrame(columns=COLUMNS[name])
    found = [artifacts.read_table(path, COLUMNS[name]) for path in paths]
    return pd.concat(found, ignore_index=True)[COLUMNS[name]] if found else empty
