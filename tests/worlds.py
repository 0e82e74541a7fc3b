"""Worlds made by hand, for the checks of every wing: tables whose numbers are known, what they measure, and verdicts.

A world maps keys to numbers, so that a test changes it as it changes a dictionary. Statistics are compared by unit; how
the judge takes an interval of units is tested with the judge.
"""

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from position_bias.verdicts.judge import Statistic, judge, table
from position_bias.verdicts.registry import predictions

ROOT = Path(__file__).parents[1]
PREDICTED = ROOT / "published/predictions.csv"

World = Mapping[tuple[Any, ...], float]


def frame(world: World | Iterable[tuple[Any, ...]], *names: str) -> pd.DataFrame:
    """The table of a world, whose keys have these names, or of rows; in no particular order, which decides nothing."""
    if isinstance(world, Mapping):
        world, names = [(*key, value) for key, value in world.items()], (*names, "value")
    return pd.DataFrame(world, columns=[*names]).sample(frac=1, random_state=7, ignore_index=True)


def of(world: World, *first: Hashable) -> dict[Any, float]:
    """The numbers whose keys begin with `first`, by the rest of the key, which is one seed or the like."""
    found = {key[len(first) :]: value for key, value in world.items() if key[: len(first)] == first}
    return {(key[0] if len(key) == 1 else key): value for key, value in found.items()}


def statistic(found: Iterable[Statistic], name: str, *networks: Hashable, **setting: object) -> Statistic:
    """The one of this name with these networks and this setting, which may be given in part."""
    (one,) = (
        each
        for each in found
        if each.name == name and {*networks} <= set(each.table) and setting.items() <= dict(each.setting).items()
    )
    return one


def assert_units(table: pd.DataFrame, expected: Mapping[str, Any]) -> None:
    """Networks have these numbers, NaN for none, by the name of the unit or in the order of units; no other has any."""
    assert not set(expected) - set(table), f"there is no {set(expected) - set(table)}"
    for network, values in table.items():
        numbers = expected.get(network, np.nan)
        if isinstance(numbers, Mapping):
            assert not set(numbers) - set(values.index), f"{network} lacks units"
            numbers = pd.Series(numbers, dtype=float).reindex(values.index)
        np.testing.assert_allclose(values, numbers, atol=1e-12, err_msg=str(network))


def judged(paper: str, statistics: Iterable[Statistic], level: float, scale: str = "test") -> pd.DataFrame:
    """The rows of statistics, by what the registry predicts of them."""
    return table(paper, scale, judge(statistics, predictions(PREDICTED, paper), level))


def rows(
    found: pd.DataFrame, statistic: str, network: str = "", other: str | None = "", **setting: Any
) -> pd.DataFrame:
    """The rows of a statistic with these keys; a setting may be in part, "" is any network, and None any other."""
    wanted = (found["statistic"] == statistic) & ((found["other"] == other) | (other is None))
    wanted &= (found["network"] == network) | (network == "")
    for name, value in setting.items():
        wanted &= found["setting"].str.split("; ").map(lambda parts, part=f"{name} = {value}": part in parts)
    return found[wanted]


def row(found: pd.DataFrame, statistic: str, network: str, other: str = "", **setting: Any) -> pd.Series:
    """The one row with these keys."""
    (one,) = rows(found, statistic, network, other, **setting).to_dict("records")
    return pd.Series(one)
