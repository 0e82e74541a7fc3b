"""What the released profiles look like, and whether the distances that the paper prints can belong to them.

Nobody released numbers of the measured influence (d). But a distance obeys the triangle inequality, and moving mass by
a distance W moves its mean by at most W. So each printed distance W(x, d) bounds what any (d) may be, whatever it is.

A profile is in `{model}/{dataset}/n{n}/{variant}.{slopes}.{content}.csv`: its path says what it is of.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from position_bias.released.models import CONTENTS, DATASETS, MODELS, PRIMARY, ReleasedVariant
from position_card.core import artifacts
from position_card.rollout import statistics
from position_card.rollout.attention import Array

LABELS = ["model", "dataset", "n", "variant", "slopes", "content"]
ROUNDING = 0.005  # half of the last digit that the paper prints


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


def by_variant(profiles: pd.DataFrame) -> dict[tuple[str, str, ReleasedVariant], Array]:
    """Return the profile [n] of every model, data set and variant, from a table with one length."""
    in_order = profiles.sort_values("position", kind="stable")
    of_each: Iterable[tuple[Any, pd.Series]] = in_order.groupby(LABELS, sort=False)["value"]
    return {
        (model, dataset, ReleasedVariant(*rules)): shares.to_numpy(float)
        for (model, dataset, _, *rules), shares in of_each
    }


class MeanPositionBounds(NamedTuple):
    """What printed distances allow: a mean position of (d), and by how much they break a bound (below 0: by none)."""

    low: float
    high: float
    by_means: float  # how far the mean positions allowed by single distances lie apart
    by_triangles: float  # how much two printed distances, or their difference, break the triangle inequality

    @property
    def excluded(self) -> bool:
        """Whether no influence at all has the printed distances to these profiles."""
        return max(self.by_means, self.by_triangles) > 0


def bounds(profiles: Mapping[str, Array], printed: Mapping[str, float]) -> MeanPositionBounds:
    """Bound (d) by its printed distance to each of some profiles [n], each printed to within `ROUNDING`.

    Profiles without a printed distance say nothing.
    """
    means = {name: float(statistics.mean_position(profiles[name])) for name in printed}
    low = max([0.0, *(means[name] - printed[name] - ROUNDING for name in printed)])
    high = min([1.0, *(means[name] + printed[name] + ROUNDING for name in printed)])
    excesses = [-np.inf]
    for first, second in combinations(printed, 2):
        distance = float(statistics.wasserstein(profiles[first], profiles[second]))
        total, difference = printed[first] + printed[second], abs(printed[first] - printed[second])
        excesses += [distance - total - 2 * ROUNDING, difference - distance - 2 * ROUNDING]
    return MeanPositionBounds(low, high, low - high, float(max(excesses)))


def tabulate(profiles: list[Path], printed: pd.DataFrame, n: int) -> pd.DataFrame:
    """The `table` of the profiles in these files, beside what the paper prints at n tokens."""
    return table(by_variant(read_profiles(profiles)), printed_at(n, printed))


def table(profiles: Mapping[tuple[str, str, ReleasedVariant], Array], printed: pd.DataFrame) -> pd.DataFrame:
    """Make one row for each model, data set, rule of slopes and scale of content, and lambda of (b).

    `profiles` are those of `by_variant`; `printed` has columns dataset, model, variant and value, named as the
    paper names them, with distances at n tokens. A distance that is not printed is NaN.
    The authors' configurations of (b) have the lambda of `PRIMARY` on every data set, so elsewhere (b) is taken twice.
    """
    rows = []
    for model, dataset in dict.fromkeys((model, dataset) for model, dataset, _ in profiles):
        of_paper = (printed["model"] == MODELS[model].printed_as) & (printed["dataset"] == DATASETS[dataset])
        of_pair = printed[of_paper]
        distances = dict(zip(of_pair["variant"], of_pair["value"], strict=True))
        for lambda_of, slopes, content in product(dict.fromkeys([PRIMARY, dataset]), MODELS[model].rules, CONTENTS):
            columns = {
                "a": profiles[model, dataset, ReleasedVariant("a", slopes, "none")],
                "b": profiles[model, lambda_of, ReleasedVariant("b", slopes, "none")],
                "c": profiles[model, dataset, ReleasedVariant("c", slopes, content)],
            }
            labels = {"model": model, "dataset": dataset, "n": len(columns["a"]), "lambda of (b)": lambda_of}
            rules = {"slopes": slopes, "content": content}
            rows.append({**labels, **rules, **_shape_and_distances(columns), **_allowed(columns, distances)})
    return pd.DataFrame(rows)


def _shape_and_distances(profiles: Mapping[str, Array]) -> dict[str, float]:
    """Return mean position, least position and ends of each profile `[n]`, and the Wasserstein distances between them.

    Positions are from 0, the first token, to 1, the last.
    """
    numbers = {}
    for variant, row in profiles.items():
        numbers[f"mean position {variant}"] = float(statistics.mean_position(row))
        numbers[f"argmin {variant}"] = float(row.argmin() / (len(row) - 1))
        numbers[f"first {variant}"] = float(row[0])
        numbers[f"last {variant}"] = float(row[-1])
    for first, second in combinations(profiles, 2):
        numbers[f"W({first}, {second})"] = float(statistics.wasserstein(profiles[first], profiles[second]))
    return numbers


def _allowed(profiles: Mapping[str, Array], printed: Mapping[str, float]) -> dict[str, object]:
    """The printed distances, what they allow, and whether that is nothing."""
    interval = bounds(profiles, printed)
    return {
        **{f"printed W({variant}, d)": printed.get(variant, np.nan) for variant in profiles},
        "lowest mean of d": interval.low,
        "highest mean of d": interval.high,
        "excess by means": interval.by_means,
        "excess by triangles": interval.by_triangles,
        "verdict": "excluded" if interval.excluded else "not excluded",
    }


def printed_at(n: int, printed: pd.DataFrame) -> pd.DataFrame:
    """Return each printed distance at n tokens once: Table 3 repeats what Table 2 has, without (a)."""
    return printed[printed["n"] == n].drop_duplicates(["dataset", "model", "variant"])


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """What the table says of the primary data set, with one cell for what (a), (b), (c) have each."""
    table = table[table["dataset"] == PRIMARY]
    parts = table[["model", "slopes", "content"]].copy()
    for name in ("mean position", "argmin", "first", "last"):
        parts[f"{name} (a) (b) (c)"] = [_cells(row) for row in table[[f"{name} {x}" for x in "abc"]].to_numpy()]
    pairs = ["W(a, b)", "W(a, c)", "W(b, c)"]
    parts["W(a, b) W(a, c) W(b, c)"] = [_cells(row) for row in table[pairs].to_numpy()]
    columns = [f"printed W({x}, d)" for x in "abc"]
    parts["printed W to (d)"] = [
        " ".join("-" if np.isnan(w) else f"{w:.2f}" for w in row) for row in table[columns].to_numpy()
    ]
    for name in ("excess by means", "excess by triangles"):
        parts[name] = table[name].map("{:+.4f}".format)
    return parts.assign(verdict=table["verdict"])


def _cells(values: Array) -> str:
    return " ".join(f"{value:.3f}" if value == 0 or value >= 5e-4 else f"{value:.0e}" for value in values)
