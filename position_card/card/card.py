"""The position card of one model: its tables, its figure, its page, from what was measured."""

import base64
import io
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from position_card.card import figures, page, profiles
from position_card.card.measurements import Measurements
from position_card.card.profiles import CardPart
from position_card.core import artifacts
from position_card.core.runtime import whole_file
from position_card.drawing import style

PAGE, FIGURE = "card.md", "card"  # what is called so in the folder of a card; tables are in the folder `tables`
FORMATS = ("pdf", "svg", "png")


@dataclass(frozen=True)
class Card:
    """The position card of one model. Intervals of this level are of so many resamples, drawn by a seed."""

    measurements: Measurements
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0

    @property
    def name(self) -> str:
        """What the model is called; an untrained copy has its seed behind it."""
        return str(self.measurements.facts["name"])

    @property
    def text(self) -> str:
        """What the text is called."""
        return str(self.measurements.facts["text"])

    @cached_property
    def lengths(self) -> dict[int, CardPart]:
        """Influence, rollouts and residual mixing of every length."""
        return {
            n: profiles.influence_part(measurement, self.replicates, self.level, self.seed)
            for n, measurement in self.measurements.lengths.items()
        }

    @cached_property
    def others(self) -> dict[str, CardPart]:
        """Replacement and recall, where they were measured, by their names in `profiles`."""
        measurements, others = self.measurements, {}
        resampling = (self.replicates, self.level, self.seed)
        if replacement := measurements.replacement:
            before = len(measurements.facts["before"])
            part = profiles.replacement_part(replacement, measurements.lengths[replacement.n], before, *resampling)
            others[profiles.REPLACEMENT] = part
        if measurements.recall:
            others[profiles.RECALL] = profiles.recall_part(measurements.recall, *resampling)
        return others

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name, parts below each other; `docs/card.md` says what they hold."""
        tables = defaultdict(list)
        for part in (*self.lengths.values(), *self.others.values()):
            for name, table in {**part.tables, "statistics": part.statistics}.items():
                tables[name].append(table.assign(n=part.n, prompts=part.prompts))
        return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}

    @cached_property
    def page(self) -> str:
        """The page in Markdown, which shows the figure `card.png` beside it."""
        return page.page(self.measurements, self.lengths, self.others)

    def figure(self) -> Figure:
        """Draw the figure, of the longest prompts."""
        with style.session_style():
            return figures.card({self.name: self.tables}, self.text)

    def save(self, directory: str | Path) -> None:
        """Write page, figure and tables into a directory; what is there of another card goes."""
        save(self.page, self.figure(), self.tables, Path(directory))

    def _repr_markdown_(self) -> str:
        """What a notebook shows: the page with its figure."""
        image = io.BytesIO()
        with style.session_style():
            self.figure().savefig(image, format="png")
        picture = base64.b64encode(image.getvalue()).decode()
        return self.page.replace(f"({FIGURE}.png)", f"(data:image/png;base64,{picture})")


def save(text: str, figure: Figure, tables: Mapping[str, pd.DataFrame], directory: Path) -> None:
    """Write a page, its figure in every format, and its tables as CSV, each file whole."""
    for name, table in tables.items():
        artifacts.write_table(directory / "tables" / f"{name}.csv", table)
    with style.session_style():
        style.save(figure, *(directory / f"{FIGURE}.{suffix}" for suffix in FORMATS))
    with whole_file(directory / PAGE) as partial:
        partial.write_text(text, encoding="utf-8")
