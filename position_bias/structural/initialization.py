"""The U at initialization: influence in decoders with random weights, by the deviation of their weights and by depth.

Chowdhury 2026 (arXiv 2603.10123, of which we have read the abstract) claims that influence is U-shaped before any
training, and has a closed form. Two summaries of the paper give it: a layer is (1 - a) I + a M, where M averages all
tokens up to each (Cesàro), and influence is the last row of its power. That is rollout without content and positional
bias (Herasimchyk et al. 2026, Section 3), with a in the place of lambda. What a is in a network they do not say; here
every layer has its measured lambda, by Frobenius norms (Eq. 1). The form knows no deviation of weights. It adds up
paths through the layers. With random weights different sets of layers turn a vector in directions that have nothing to
do with each other, so that squares add up instead: `independent_paths`, which we add.

Networks are copies of the first blocks of a pretrained decoder, with random weights: a network is a unit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from position_bias.verdicts.judge import Statistic, judge, table
from position_bias.verdicts.registry import PRETRAINED, Prediction
from position_card.core.artifacts import TensorFile
from position_card.rollout.attention import Array
from position_card.rollout.last_row import last_row
from position_card.rollout.parts import by_part, middle_half

INFLUENCE, CLOSED_FORM, INDEPENDENT = "influence", "closed form", "independent paths"
LAMBDA = "lambda"
ENDS = tuple(f"log {part} / middle" for part in ("first word", "last word", "first eighth", "last eighth"))
SETTING = ("model", "dataset", "n", "width")
VALUES = (*SETTING, "deviation", "layers", "seed", "prompts", "statistic", "network", "value", "scale")  # columns
OCCASION = "initialization: "  # how the names of its statistics begin in published/predictions.csv


class RandomNetwork(NamedTuple):
    """A network with random weights."""

    deviation: float  # of its weights
    layers: int
    seed: int

    @property
    def name(self) -> str:
        """What its array is called in a file."""
        return f"deviation {self.deviation:g}, {self.layers} layers, seed {self.seed}"


def networks(deviations: Iterable[float], layers: Iterable[int], seeds: int) -> list[RandomNetwork]:
    """Return every network of a study."""
    return [RandomNetwork(*numbers) for numbers in product(deviations, layers, range(seeds))]


def independent_paths(n: int, mixing: ArrayLike) -> Array:
    """Return the influence of n tokens on the last one, [n], where no two sets of layers write in the same direction.

    A layer adds W M x to x, with a random W of its own and uniform causal attention M; `mixing` [L] says how long W M x
    is, as a share of both lengths. A path that attention takes k times leads from a token by the k-th power of M, for
    any set of k layers, and squares of sets add up. The result is up to a factor.
    """
    squares = np.ones(1)  # of the sets of k layers, by k
    for gain in (np.asarray(mixing, np.float64) / (1 - np.asarray(mixing, np.float64))) ** 2:
        squares = (np.append(squares, 0) + gain * np.append(0, squares)) / (1 + gain)
    row, influence = np.eye(n)[-1], np.zeros(n)
    for square in squares:
        influence += square * row**2
        row = (row / np.arange(1, n + 1))[::-1].cumsum()[::-1]  # the row times M
    return np.sqrt(influence)


def initialization_table(file: TensorFile) -> pd.DataFrame:
    """Return what was measured of the networks of a model, with both predictions beside it: columns VALUES.

    `file` has an array of each network (`untrained.parts`), and labels that say which these are. A value of influence
    is the logarithm of an end of the text, its first or last word or eighth, over the mean of its middle half: the mean
    over prompts. Lambda is a mean over prompts and layers.
    """
    labels, arrays = file.labels, file.read()
    rows = []
    for network in networks(labels["deviations"], labels["layers"], labels["seeds"]):
        influence, mixing = np.split(arrays[network.name], [labels["n"]], axis=1)
        for name, profiles in (
            (INFLUENCE, influence),
            (CLOSED_FORM, last_row(labels["n"], mixing.mean(0), [0.0])[None]),
            (INDEPENDENT, independent_paths(labels["n"], mixing.mean(0))[None]),
        ):
            text = profiles[:, labels["before"] :]
            rows += [(*network, len(influence), end, name, value) for end, value in _ends(text).items()]
        rows.append((*network, len(influence), LAMBDA, "frobenius", float(mixing.mean())))
    values = pd.DataFrame(rows, columns=list(VALUES[len(SETTING) : -1]))
    return values.assign(**{name: labels[name] for name in SETTING}, scale=PRETRAINED)[list(VALUES)].round({"value": 6})


def _ends(profiles: Array) -> dict[str, float]:
    """Logarithms of the ends of profiles [N, n] over the mean of their middle half, by ENDS: means over N."""
    eighths = by_part(profiles)
    ends = (profiles[:, 0], profiles[:, -1], eighths["first"], eighths["last"])
    middle = profiles[:, middle_half(profiles.shape[1])].mean(-1)
    return {name: float(np.log(end / middle).mean()) for name, end in zip(ENDS, ends, strict=True)}


def initialization_checks(
    tables: Sequence[pd.DataFrame], predictions: Mapping[str, list[Prediction]], level: float
) -> pd.DataFrame:
    """Judge tables with the columns VALUES, over networks: verdicts in the schema of `judge.COLUMNS`.

    A statistic compares influence with its predictions at one deviation and depth, or influence at several deviations
    and one depth, or at several depths and one deviation. Without a table, every row says that it cannot be tested.
    """
    statistics = [statistic for values in tables for statistic in _statistics(values) if statistic.name in predictions]
    if not statistics:
        of_occasion = {name: rows for name, rows in predictions.items() if name.startswith(OCCASION)}
        statistics = [_unmeasured(name, rows) for name, rows in of_occasion.items()]
    return table("structural", PRETRAINED, judge(statistics, predictions, level))


def _unmeasured(name: str, rows: Sequence[Prediction]) -> Statistic:
    columns = sorted({network for row in rows for network in (row.network, row.other) if network})
    no_network = dict.fromkeys(("model", "deviation", "layers"), "none")
    return Statistic(name, pd.DataFrame(columns=columns, dtype=float), wording=no_network)


def _statistics(values: pd.DataFrame) -> Iterator[Statistic]:
    influence = values[values["network"] == INFLUENCE]
    for rows, by, alike in (
        (values, "network", ["deviation", "layers"]),
        (influence, "deviation", ["layers"]),
        (influence, "layers", ["deviation"]),
    ):
        setting = ["model", "dataset", "n", *alike]
        for (name, *labels), of_setting in rows.groupby(["statistic", *setting], sort=False):
            across = of_setting.pivot(index="seed", columns=by, values="value")
            if by != "network":
                across, name = across.rename(columns="{:g}".format), f"{name} by {by}"
            yield Statistic(f"{OCCASION}{name}", across, dict(zip(setting, labels, strict=True)))
