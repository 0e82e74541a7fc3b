"""Several models side by side: how much the first and the last token weigh in each, and the quotients of two models.

Models that were measured on the same prompts are compared on the same drawn prompts, replicate by replicate, so that
what a prompt does to both cancels. Others are resampled independently.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from position_bias import statistics
from position_bias.attention import Array
from position_bias.card import card, figures, page
from position_bias.card.card import Card
from position_bias.card.profiles import ENDS, QUARTERS, Interval, quarters
from position_bias.card.sentences import listed
from position_bias.drawing import style
from position_bias.rollout import comparison
from position_bias.rollout.measurement import Measurement
from position_bias.running.runtime import seed

TEMPLATE = resources.files(__package__).joinpath("beside.md")
RATIOS = (*ENDS, *QUARTERS)
QUANTITIES = ("loss", *RATIOS)
LOSSES = ("loss", "by frequency", "uniform")


@dataclass(frozen=True)
class Beside:
    """Cards side by side; the first model is compared with each other. Intervals are those of its card."""

    cards: Sequence[Card]

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The table `ratios`."""
        first = self.cards[0]
        return {"ratios": ratios(self.cards, first.replicates, first.level, first.seed)}

    def save(self, directory: str | Path, folders: Sequence[str]) -> None:
        """Write page, figure and table; `folders` are those of the single cards, seen from the directory."""
        with style.beside_others():
            figure = figures.card({shown.name: shown.tables for shown in self.cards}, self.cards[0].text)
        text = _page(self.cards, folders, self.tables["ratios"], self.cards[0].level)
        card.save(text, figure, self.tables, Path(directory))


def ratios(cards: Sequence[Card], replicates: int, level: float, chosen_by: int) -> pd.DataFrame:
    """Each quantity of each model at each length: value, low, high, and the same of the first model divided by this.

    Columns: model, n, prompts, quantity, value, low, high, quotient, quotient low, quotient high, paired. Quotients of
    the first model by itself are missing, and so are those of losses and of lengths that one of the two lacks. `paired`
    says whether both were measured on the same prompts.
    """
    first = cards[0]
    of_first = first.measured.lengths
    rows = []
    for model in cards:
        for n, found in model.measured.lengths.items():
            alike = n in of_first and _prompts(model, n) == _prompts(first, n)
            values = _quantities(found, replicates, chosen_by)  # the intervals of its own card
            quotients = {}
            if model is not first and n in of_first:
                above = _quantities(of_first[n], replicates, chosen_by)
                below = values if alike else _quantities(found, replicates, seed(chosen_by, "beside", model.name, n))
                quotients = {ratio: above[ratio] / below[ratio] for ratio in RATIOS}
            for quantity in QUANTITIES:
                row = {"model": model.name, "n": n, "prompts": found.prompts, "quantity": quantity, "paired": alike}
                row |= _bounds(values[quantity], level, "")
                if quantity in quotients:
                    row |= _bounds(quotients[quantity], level, "quotient ")
                rows.append(row)
    columns = ["model", "n", "prompts", "quantity", "value", "low", "high"]
    bounds = [f"quotient {bound}" for bound in ("value", "low", "high")]
    return pd.DataFrame(rows).reindex(columns=[*columns, *bounds, "paired"])


def _page(cards: Sequence[Card], folders: Sequence[str], found: pd.DataFrame, level: float) -> str:
    """The page of several cards: figure, `ratios`, quotients, and where the card of each is."""
    first = cards[0].name
    header = ("tokens", "model", "prompts", ENDS[0], f"{first} / this", ENDS[1], f"{first} / this", *LOSSES)
    return TEMPLATE.read_text(encoding="utf-8").format(
        every=" beside ".join(shown.name for shown in cards),
        text=cards[0].text,
        caption=page.caption(level),
        first=first,
        percent=page.PERCENT * level,
        ratios=page.table(header, _rows(found, cards)),
        unpaired="".join(f"\n{line}\n" for line in _unpaired(found, cards)),
        cards="\n".join(
            f"- [{shown.name}]({folder}/{card.PAGE})" for shown, folder in zip(cards, folders, strict=True)
        ),
    )


def _rows(found: pd.DataFrame, cards: Sequence[Card]) -> Iterator[list[str]]:
    for n in sorted(found["n"].unique()):
        for model in cards:
            rows = found[(found["n"] == n) & (found["model"] == model.name)].set_index("quantity")
            if len(rows):
                loss, begin, end = (rows.loc[quantity] for quantity in ("loss", *ENDS))
                ends = [cell for row in (begin, end) for cell in (_shown(row), _shown(row, "quotient "))]
                facts = model.measured.facts
                scale = (facts["prompts"][str(n)]["entropy"], math.log(facts["model"]["vocabulary"]))
                yield [str(n), model.name, str(loss["prompts"]), *ends, _shown(loss), *(f"{of:.3g}" for of in scale)]


def _shown(row: pd.Series, prefix: str = "") -> str:
    value, low, high = (float(row[f"{prefix}{bound}"]) for bound in ("value", "low", "high"))
    return "" if np.isnan(value) else str(Interval(value, low, high))


def _unpaired(found: pd.DataFrame, cards: Sequence[Card]) -> Iterator[str]:
    apart = found[~found["paired"] & found["quotient value"].notna()]
    if len(apart):
        yield (
            f"{listed([cards[0].name, *apart['model'].unique()])} were not measured on the same prompts, as when their "
            "tokenizers differ; the prompts of their quotients are drawn independently."
        )


def _quantities(found: Measurement, replicates: int, drawn_by: int) -> dict[str, Array]:
    """Every quantity for all prompts, then for each bootstrap replicate, [1 + replicates]."""
    assert found.influence is not None
    weights = np.concatenate(list(comparison.prompt_weights(found.prompts, replicates, drawn_by).values()))
    influence = np.asarray(weights @ found.influence, np.float64)
    ends = {end: comparison.SHAPE[end](influence) for end in ENDS}
    return {"loss": np.asarray(weights @ found.loss, np.float64), **ends, **quarters(influence)}


def _bounds(values: Array, level: float, prefix: str) -> dict[str, float]:
    low, high = statistics.percentile_interval(values[1:], level)
    return {f"{prefix}value": float(values[0]), f"{prefix}low": float(low), f"{prefix}high": float(high)}


def _prompts(model: Card, n: int) -> str:
    return str(model.measured.facts["prompts"][str(n)]["sha256"])
