"""What is written of the released models, and read again. A profile is in
`{model}/{dataset}/n{n}/{variant}.{slopes}.{content}.csv`: its path says what it is of.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from position_bias.attention import Array
from position_bias.released.models import RULES, Rule, Variant
from position_bias.released.schedules import Schedule
from position_bias.running import artifacts

LABELS = ["model", "dataset", "n", "variant", "slopes", "content"]


def read_profiles(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read the profiles in one table, with columns `LABELS`, position (0 the first token) and value.

    Raises InputError where one cannot be read.
    """
    return pd.concat(
        [artifacts.read_table(path, ["position", "value"]).assign(**labels_of(Path(path))) for path in paths],
        ignore_index=True,
    )[[*LABELS, "position", "value"]]


def labels_of(path: Path) -> dict[str, str | int]:
    """What the path of a profile says of it, by the names in `LABELS`."""
    variant, slopes, content = path.stem.split(".")
    model, dataset, length = path.parts[-4:-1]
    labels = (model, dataset, int(length.removeprefix("n")), variant, slopes, content)
    return dict(zip(LABELS, labels, strict=True))


def by_variant(profiles: pd.DataFrame) -> dict[tuple[str, str, Variant], Array]:
    """Return the profile [n] of every model, data set and variant, from a table with one length."""
    ordered = profiles.sort_values("position", kind="stable")
    of_each: Iterable[tuple[Any, pd.Series]] = ordered.groupby(LABELS, sort=False)["value"]
    return {
        (model, dataset, Variant(*rules)): values.to_numpy(float) for (model, dataset, _, *rules), values in of_each
    }


def read_schedule(mixing: str | Path, content: str | Path) -> Schedule:
    """Read a schedule from its two tables, whose rows are in order. Raises InputError where one cannot be read."""
    layers = artifacts.read_table(mixing, ["layer", "lambda"])["lambda"].to_numpy(float)
    heads = artifacts.read_table(content, ["layer", "head", "base", "diagonal"])
    base, diagonal = (heads[name].to_numpy(float).reshape(len(layers), -1) for name in ("base", "diagonal"))
    return Schedule(layers, base, diagonal)


def read_slopes(path: str | Path) -> dict[Rule, Array]:
    """Read slopes [heads] by rule. Raises InputError where the table cannot be read."""
    table = artifacts.read_table(path, list(RULES))
    return {rule: table[rule].to_numpy(float) for rule in RULES}
