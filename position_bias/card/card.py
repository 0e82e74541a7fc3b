"""The position card of one model: its tables, its figure, its page, from what was measured."""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from position_bias.card import figures, page, profiles
from position_bias.card.measured import Measured
from position_bias.card.profiles import Compared
from position_bias.drawing import style
from position_bias.rollout.comparison import summary
from position_bias.running import artifacts
from position_bias.running.runtime import whole_file

PAGE, FIGURE = "card.md", "card"  # what is called so in the folder of a card; tables are in the folder `tables`
FORMATS = ("pdf", "svg", "png")


@dataclass(frozen=True)
class Card:
    """The position card of one model. Intervals of this level resample its prompts so many times, drawn by a seed."""

    measured: Measured
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0

    @property
    def name(self) -> str:
        """What the model is called; an untrained copy has its seed behind it."""
        return str(self.measured.facts["name"])

    @property
    def text(self) -> str:
        """What the text is called."""
        return str(self.measured.facts["text"])

    @cached_property
    def compared(self) -> dict[int, Compared]:
        """Influence, rollouts and lambda of every length."""
        return {
            n: profiles.compare(found, self.replicates, self.level, self.seed)
            for n, found in self.measured.lengths.items()
        }

    @cached_property
    def replaced(self) -> tuple[pd.DataFrame, pd.DataFrame] | None:
        """The tables of `profiles.compare_replaced`, where tokens were replaced."""
        if (found := self.measured.replaced) is None:
            return None
        before = len(self.measured.facts["before"])
        measured = self.measured.lengths[found.n]
        return profiles.compare_replaced(found, measured, before, self.replicates, self.level, self.seed)

    @cached_property
    def changed(self) -> pd.DataFrame | None:
        """The table of `profiles.compare_changed`, where directions of gradients were changed."""
        found = self.measured.changed
        return None if found is None else profiles.compare_changed(found, self.replicates, self.seed)

    @cached_property
    def recalled(self) -> tuple[pd.DataFrame, pd.DataFrame] | None:
        """The tables of `profiles.compare_recalled`, where recall was measured."""
        found = self.measured.recalled
        return None if found is None else profiles.compare_recalled(found, self.replicates, self.level, self.seed)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name, lengths below each other; `docs/card.md` says what they hold."""
        measured = self.measured.lengths
        tables = {
            "layers": {n: tables.layers for n, tables in self.compared.items()},
            "profile": {n: tables.profiles for n, tables in self.compared.items()},
            "distances": {n: profiles.attention_table(found) for n, found in measured.items()},
            "statistics": {n: summary(tables.values, self.level) for n, tables in self.compared.items()},
        }
        prompts = {n: found.prompts for n, found in measured.items()}
        joined = {name: _joined(of_lengths, prompts) for name, of_lengths in tables.items()}
        if self.replaced and self.measured.replaced:
            n, prompts = self.measured.replaced.n, {self.measured.replaced.n: len(self.measured.replaced.effects)}
            joined["replacement"] = _joined({n: self.replaced[0]}, prompts)
            ends = _joined({n: summary(self.replaced[1], self.level)}, prompts)
            joined["statistics"] = pd.concat([joined["statistics"], ends], ignore_index=True)
        if self.changed is not None and (found := self.measured.changed):
            moved = _joined({found.n: summary(self.changed, self.level)}, {found.n: found.prompts})
            joined["statistics"] = pd.concat([joined["statistics"], moved], ignore_index=True)
        if self.recalled and (of := self.measured.recalled):
            joined["recall"] = _joined({of.n: self.recalled[0]}, {of.n: of.contexts})
            eighths = _joined({of.n: summary(self.recalled[1], self.level)}, {of.n: of.contexts})
            joined["statistics"] = pd.concat([joined["statistics"], eighths], ignore_index=True)
        return joined

    @cached_property
    def page(self) -> str:
        """The page in Markdown, which shows the figure `card.png` beside it."""
        ends = self.replaced[1] if self.replaced else None
        recalled = self.recalled[1] if self.recalled else None
        return page.page(self.measured, self.compared, ends, self.level, self.changed, recalled)

    def figure(self) -> Figure:
        """Draw the figure, of the longest prompts."""
        with style.beside_others():
            return figures.card({self.name: self.shown}, self.text)

    @property
    def shown(self) -> figures.Tables:
        """What the figure shows."""
        layers, profile, distances = (figures.longest(self.tables[name]) for name in ("layers", "profile", "distances"))
        return figures.Tables(layers, profile, distances, self.tables.get("replacement"), self.tables.get("recall"))

    def save(self, directory: str | Path) -> None:
        """Write page, figure and tables into a directory; what is there of another card goes."""
        save(self.page, self.figure(), self.tables, Path(directory))

    def _repr_markdown_(self) -> str:
        """What a notebook shows: the page with its figure."""
        shown = io.BytesIO()
        with style.beside_others():
            self.figure().savefig(shown, format="png")
        picture = base64.b64encode(shown.getvalue()).decode()
        return self.page.replace(f"({FIGURE}.png)", f"(data:image/png;base64,{picture})")


def save(text: str, figure: Figure, tables: Mapping[str, pd.DataFrame], directory: Path) -> None:
    """Write a page, its figure in every format, and its tables as CSV, each file whole."""
    for name, table in tables.items():
        artifacts.write_table(directory / "tables" / f"{name}.csv", table)
    with style.beside_others():
        style.save(figure, *(directory / f"{FIGURE}.{suffix}" for suffix in FORMATS))
    with whole_file(directory / PAGE) as partial:
        partial.write_text(text, encoding="utf-8")


def _joined(of_lengths: Mapping[int, pd.DataFrame], prompts: Mapping[int, int]) -> pd.DataFrame:
    counted = [table.assign(n=n, prompts=prompts[n]) for n, table in of_lengths.items()]
    return pd.concat(counted, ignore_index=True)
