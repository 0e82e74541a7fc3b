"""Several models are compared: how much the first and the last token weigh in each, and the quotients of two models.

Models that were measured on the same prompts are compared on the same drawn prompts, replicate by replicate, so that
what a prompt does to both cancels. Others are resampled independently.
"""

from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from position_card.card import card, figures, page
from position_card.card.card import Card
from position_card.card.profiles import ENDS, QUARTERS, Interval, bounds, influence_over_middle, units
from position_card.core.runtime import seed
from position_card.core.wording import enumeration
from position_card.drawing import style
from position_card.rollout.attention import Array
from position_card.rollout.measurement import Measurement
from position_card.rollout.statistics import resampled_weights

TEMPLATE = resources.files(__package__).joinpath("compare.md")
RATIOS = (*ENDS, *QUARTERS)
LOSSES = ("loss", "by frequency", "uniform")


def save_comparison(cards: Sequence[Card], directory: str | Path, folders: Sequence[str]) -> None:
    """Write page, figure and the table `ratios`; `folders` are those of the single cards, seen from the directory."""
    with style.session_style():
        figure = figures.comparison({model.name: model.tables for model in cards}, cards[0].text)
    table = ratios(cards)
    card.save(comparison_page(cards, folders, table), figure, {"ratios": table}, Path(directory))


def ratios(cards: Sequence[Card]) -> pd.DataFrame:
    """Each quantity of each model at each length: value, low, high, and the same of the first model divided by this.

    Columns: model, n, prompts, quantity, value, low, high, quotient, quotient low, quotient high, paired. Quotients of
    the first model by itself are missing, and so are those of losses and of lengths that one of the two lacks. `paired`
    says whether both were measured on the same prompts. Intervals are those of the first card.
    """
    first = cards[0]
    rows = []
    for model in cards:
        for n, measurement in model.measurements.lengths.items():
            values = _quantities(measurement, first.replicates, first.seed)  # the intervals of its own card
            first_measurement = first.measurements.lengths.get(n)
            paired = first_measurement is not None and _prompts(model, n) == _prompts(first, n)
            quotients = {}
            if first_measurement and model is not first:
                above, below = _quantities(first_measurement, first.replicates, first.seed), values
                if not paired:
                    below = _quantities(measurement, first.replicates, seed(first.seed, "beside", model.name, n))
                quotients = {ratio: above[ratio] / below[ratio] for ratio in RATIOS}
            for quantity, replicates in values.items():
                row = {
                    "model": model.name,
                    "n": n,
                    "prompts": measurement.prompts,
                    "quantity": quantity,
                    "paired": paired,
                }
                row |= bounds(replicates, first.level)
                if quantity in quotients:
                    row |= {
                        f"quotient {name}": bound for name, bound in bounds(quotients[quantity], first.level).items()
                    }
                rows.append(row)
    columns = ["model", "n", "prompts", "quantity", "value", "low", "high"]
    of_quotients = [f"quotient {bound}" for bound in ("value", "low", "high")]
    return pd.DataFrame(rows).reindex(columns=[*columns, *of_quotients, "paired"])


def comparison_page(cards: Sequence[Card], folders: Sequence[str], table: pd.DataFrame) -> str:
    """Return the page of several cards: figure, `ratios`, quotients, and where the card of each is."""
    first, level = cards[0].name, cards[0].level
    header = ("tokens", "model", "prompts", ENDS[0], f"{first} / this", ENDS[1], f"{first} / this", *LOSSES)
    return TEMPLATE.read_text(encoding="utf-8").format(
        every=" beside ".join(model.name for model in cards),
        text=cards[0].text,
        caption=page.comparison_caption(level),
        first=first,
        percent=page.PERCENT * level,
        ratios=page.table(header, _rows(table, cards)),
        unpaired=_unpaired(table, cards),
        cards="\n".join(
            f"- [{model.name}]({folder}/{card.PAGE})" for model, folder in zip(cards, folders, strict=True)
        ),
    )


def _rows(table: pd.DataFrame, cards: Sequence[Card]) -> Iterator[list[str]]:
    for n in sorted(table["n"].unique()):
        for model in cards:
            rows = table[(table["n"] == n) & (table["model"] == model.name)].set_index("quantity")
            if len(rows):
                loss, begin, end = (rows.loc[quantity] for quantity in ("loss", *ENDS))
                ends = [
                    cell for row in (begin, end) for cell in (_interval_text(row), _interval_text(row, "quotient "))
                ]
                uniform, by_frequency = model.measurements.losses_without_context(n)
                yield [
                    str(n),
                    model.name,
                    str(loss["prompts"]),
                    *ends,
                    _interval_text(loss),
                    *(f"{number:.3g}" for number in (by_frequency, uniform)),
                ]


def _interval_text(row: pd.Series, prefix: str = "") -> str:
    """Write the interval in the columns value, low and high of a row, behind a prefix; "" where it has no value."""
    value, low, high = (float(row[f"{prefix}{bound}"]) for bound in ("value", "low", "high"))
    return "" if np.isnan(value) else str(Interval(value, low, high))


def _unpaired(table: pd.DataFrame, cards: Sequence[Card]) -> str:
    unpaired = table[~table["paired"] & table["quotient value"].notna()]
    if unpaired.empty:
        return ""
    return (
        f"\n{enumeration([cards[0].name, *unpaired['model'].unique()])} were not measured on the same prompts, as when "
        "their tokenizers differ; the prompts of their quotients are drawn independently.\n"
    )


def _quantities(measurement: Measurement, replicates: int, sample_seed: int) -> dict[str, Array]:
    """Return every quantity for all prompts, then for each bootstrap replicate, [1 + replicates]."""
    weights = resampled_weights(units(measurement.documents), replicates, sample_seed)
    loss = np.asarray(weights @ measurement.loss, np.float64)
    return {"loss": loss, **influence_over_middle(measurement, replicates, sample_seed)}


def _prompts(model: Card, n: int) -> str:
    return str(model.measurements.facts["prompts"][str(n)]["sha256"])
