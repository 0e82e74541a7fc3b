"""Several models side by side: how much the first and the last token weigh in each, and the quotients of two models.

Models that were measured on the same prompts are compared on the same drawn prompts, replicate by replicate, so that
what a prompt does to both cancels. Others are resampled independently.
"""

import math
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from position_card.card import card, figures, page
from position_card.card.card import Card
from position_card.card.profiles import ENDS, QUARTERS, Interval, bounds, quarters, units
from position_card.card.sentences import listed
from position_card.core.runtime import seed
from position_card.drawing import style
from position_card.rollout import comparison
from position_card.rollout.attention import Array
from position_card.rollout.measurement import Measurement
from position_card.rollout.statistics import resampled_weights

TEMPLATE = resources.files(__package__).joinpath("beside.md")
RATIOS = (*ENDS, *QUARTERS)
LOSSES = ("loss", "by frequency", "uniform")


def save(cards: Sequence[Card], directory: str | Path, folders: Sequence[str]) -> None:
    """Write page, figure and the table `ratios`; `folders` are those of the single cards, seen from the directory."""
    with style.beside_others():
        figure = figures.card({shown.name: shown.tables for shown in cards}, cards[0].text)
    found = ratios(cards)
    card.save(page_of(cards, folders, found), figure, {"ratios": found}, Path(directory))


def ratios(cards: Sequence[Card]) -> pd.DataFrame:
    """Each quantity of each model at each length: value, low, high, and the same of the first model divided by this.

    Columns: model, n, prompts, quantity, value, low, high, quotient, quotient low, quotient high, paired. Quotients of
    the first model by itself are missing, and so are those of losses and of lengths that one of the two lacks. `paired`
    says whether both were measured on the same prompts. Intervals are those of the first card.
    """
    first = cards[0]
    rows = []
    for model in cards:
        for n, found in model.measured.lengths.items():
            values = _quantities(found, first.replicates, first.seed)  # the intervals of its own card
            of_first = first.measured.lengths.get(n)
            alike = of_first is not None and _prompts(model, n) == _prompts(first, n)
            quotients = {}
            if of_first and model is not first:
                above, below = _quantities(of_first, first.replicates, first.seed), values
                if not alike:
                    below = _quantities(found, first.replicates, seed(first.seed, "beside", model.name, n))
                quotients = {ratio: above[ratio] / below[ratio] for ratio in RATIOS}
            for quantity, of in values.items():
                row = {"model": model.name, "n": n, "prompts": found.prompts, "quantity": quantity, "paired": alike}
                row |= bounds(of, first.level)
                if quantity in quotients:
                    row |= {
                        f"quotient {name}": bound for name, bound in bounds(quotients[quantity], first.level).items()
                    }
                rows.append(row)
    columns = ["model", "n", "prompts", "quantity", "value", "low", "high"]
    of_quotients = [f"quotient {bound}" for bound in ("value", "low", "high")]
    return pd.DataFrame(rows).reindex(columns=[*columns, *of_quotients, "paired"])


def page_of(cards: Sequence[Card], folders: Sequence[str], found: pd.DataFrame) -> str:
    """The page of several cards: figure, `ratios`, quotients, and where the card of each is."""
    first, level = cards[0].name, cards[0].level
    header = ("tokens", "model", "prompts", ENDS[0], f"{first} / this", ENDS[1], f"{first} / this", *LOSSES)
    return TEMPLATE.read_text(encoding="utf-8").format(
        every=" beside ".join(shown.name for shown in cards),
        text=cards[0].text,
        caption=page.caption(level),
        first=first,
        percent=page.PERCENT * level,
        ratios=page.table(header, _rows(found, cards)),
        unpaired=_unpaired(found, cards),
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


def _unpaired(found: pd.DataFrame, cards: Sequence[Card]) -> str:
    apart = found[~found["paired"] & found["quotient value"].notna()]
    if apart.empty:
        return ""
    return (
        f"\n{listed([cards[0].name, *apart['model'].unique()])} were not measured on the same prompts, as when their "
        "tokenizers differ; the prompts of their quotients are drawn independently.\n"
    )


def _quantities(found: Measurement, replicates: int, drawn_by: int) -> dict[str, Array]:
    """Every quantity for all prompts, then for each bootstrap replicate, [1 + replicates]."""
    assert found.influence is not None
    weights = resampled_weights(units(found.documents), replicates, drawn_by)
    influence = np.asarray(weights @ found.influence, np.float64)
    ends = {end: comparison.SHAPE[end](influence) for end in ENDS}
    return {"loss": np.asarray(weights @ found.loss, np.float64), **ends, **quarters(influence)}


def _prompts(model: Card, n: int) -> str:
    return str(model.measured.facts["prompts"][str(n)]["sha256"])
