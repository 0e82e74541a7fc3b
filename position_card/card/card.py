"""The position card of one model: its tables, its figure, its page, from what was measured."""

import base64
import io
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from position_card.card import figures, page, profiles, questions, sentences
from position_card.card.documents_page import Documents
from position_card.card.measurements import Measurements, read
from position_card.card.profiles import CardPart
from position_card.core import artifacts
from position_card.core.runtime import InputError, whole_file
from position_card.drawing import style

PAGE, FIGURE = "card.md", "card"  # what is called so in the folder of a card; tables are in the folder `tables`
MEASUREMENTS = "measured"  # the folder of what was measured, there
INTERVALS = "intervals"  # among the facts of what was measured: how the intervals of its card were made
FORMATS = ("pdf", "svg", "png")


@dataclass(frozen=True)
class Card:
    """The position card of one model: what was measured of it as tables, a page and a figure.

    `position_card.measure` and `position_card.load` return one, and a notebook shows its page with the figure.

    Attributes:
        measurements: What was measured, prompt by prompt, and the facts that the page tells.
        replicates: How often documents are resampled for the intervals; prompts, where these are of fewer than 8.
        level: Level of the intervals, whose bounds are percentiles over the replicates.
        seed: It draws the replicates.
    """

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
    def parts_by_measure(self) -> dict[str, CardPart]:
        """Replacement and recall, where they were measured, by their names in `profiles`."""
        measurements, parts = self.measurements, {}
        resampling = (self.replicates, self.level, self.seed)
        if replacement := measurements.replacement:
            before = len(measurements.facts["before"])
            part = profiles.replacement_part(replacement, measurements.lengths[replacement.n], before, *resampling)
            parts[profiles.REPLACEMENT] = part
        if measurements.recall:
            parts[profiles.RECALL] = profiles.recall_part(measurements.recall, *resampling)
        return parts

    @cached_property
    def questions(self) -> Documents | None:
        """What the model makes of the built-in questions, where they were asked."""
        answers = self.measurements.questions
        return Documents(answers.table, answers.facts) if answers else None

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name; a row has its length `n` in tokens and the number of `prompts` behind it.

        - `profile`: share of each `position`, from 0 on, in the influence, in a rollout or in a baseline (`variant`);
          the shares of a variant sum to 1.
        - `layers`: residual mixing lambda of each `layer`, from 1 on, between 0 and 1, by `estimator`, and the share of
          its attention that goes `to no token`.
        - `distances`: mean attention weight by `layer` and `distance` in tokens.
        - `loss`: mean cross entropy, in nats, of the token at a `position`, from 1 on.
        - `replacement`: mean total variation, between 0 and 1, where the token at a `position` is replaced.
        - `recall`: probability and accuracy of the right word by the `place` of the passage, `n` in words.
        - `questions`: `log_probability` of the answer to a built-in question (`record`) by the `place` of the document
          that holds it, and whether it is `right`, as in `Documents.table`.
        - `statistics`: ratios, distances and rank correlations by `variant`; the loss in nats a token; of `questions`
          the probability of the answer with its document first, or last, over that in the middle.

        `value` stands between `low` and `high`, the bounds of its interval. `docs/card.md` has every column.
        """
        tables = defaultdict(list)
        for part in (*self.lengths.values(), *self.parts_by_measure.values()):
            for name, table in {**part.tables, "statistics": part.statistics}.items():
                tables[name].append(table.assign(n=part.n, prompts=part.prompts))
        if answers := self.questions:
            size = {"n": answers.facts["longest"], "prompts": answers.table["record"].nunique()}
            tables[profiles.QUESTIONS].append(answers.table.assign(**size))
            tables["statistics"].append(questions.ratios_of_ends(answers).assign(**size))
        return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}

    @property
    def verdict(self) -> str:
        """What was found, in the words of the title of the figure."""
        longest = self.lengths[max(self.lengths)]
        if sentences.on_chance(longest, *self.measurements.losses_without_context(longest.n)):
            return f"{self.name} cannot predict {self.text}"
        if self.questions and (sentence := questions.title(self.questions)):
            return f"{self.name}: {sentence}"
        return sentences.verdict(self.name, longest, self.parts_by_measure)

    @cached_property
    def page(self) -> str:
        """The page in Markdown, which shows the figure `card.png` beside it."""
        answers = self.questions
        if answers:
            question, section = questions.headline(answers), questions.section(answers)
        else:
            question = questions.headline_without(self.measurements.facts["left out"][profiles.QUESTIONS])
            section = ""
        return page.page(self.measurements, self.lengths, self.parts_by_measure, question, section)

    def figure(self) -> Figure:
        """Draw the figure, of the longest prompts."""
        with style.session_style():
            return figures.card(self.tables, self.verdict, self.text)

    def save(self, directory: str | Path) -> None:
        """Write what was measured, page, figure and tables into a directory; what is there of another card goes.

        The files are `measured/`, `card.md`, `card.pdf`, `card.svg`, `card.png` and `tables/*.csv`, and
        `position_card.load` opens the card again.

        Raises:
            InputError: The directory cannot be written.
        """
        self.save_measurements(directory)
        self.save_page(directory)

    def save_measurements(self, directory: str | Path) -> None:
        """Write what was measured, and how intervals are made of it. Raises InputError as `save` does."""
        intervals = {"replicates": self.replicates, "level": self.level, "seed": self.seed}
        facts = {**self.measurements.facts, INTERVALS: intervals}
        replace(self.measurements, facts=facts).write(Path(directory) / MEASUREMENTS)

    def save_page(self, directory: str | Path) -> None:
        """Write page, figure and tables, and the page of the questions. Raises InputError as `save` does."""
        if self.questions:
            with whole_file(Path(directory) / questions.PAGE) as partial:
                partial.write_text(self.questions.page, encoding="utf-8")
        save(self.page, self.figure(), self.tables, Path(directory))

    def _repr_markdown_(self) -> str:
        """Return the page with its figure, which a notebook shows."""
        image = io.BytesIO()
        with style.session_style():
            self.figure().savefig(image, format="png")
        picture = base64.b64encode(image.getvalue()).decode()
        return self.page.replace(f"({FIGURE}.png)", f"(data:image/png;base64,{picture})")


def load(directory: str | Path) -> Card:
    """Open the card in a directory that the command position-card or `Card.save` has written.

    Nothing is measured and no model is opened; torch is not imported. The card has the tables, the page and the figure
    that the directory has, made anew from what was measured.

    Args:
        directory: The folder of one model, such as `position-card/my-model`.

    Returns:
        The card, with the replicates, the level and the seed with which it was saved.

    Raises:
        InputError: The directory is not that of a card, what was measured is damaged, or another version of
            position-card wrote it.
    """
    folder = Path(directory)
    if not (folder / MEASUREMENTS).is_dir():
        raise InputError(
            f"{folder} is not the folder of a model's card, since it has no folder {MEASUREMENTS}; give one"
        )
    measurements = read(folder / MEASUREMENTS)
    return Card(measurements, **measurements.facts.get(INTERVALS, {}))


def save(text: str, figure: Figure, tables: Mapping[str, pd.DataFrame], directory: Path) -> None:
    """Write a page, its figure in every format, and its tables as CSV, each file whole."""
    for name, table in tables.items():
        artifacts.write_table(directory / "tables" / f"{name}.csv", table)
    with style.session_style():
        style.save(figure, *(directory / f"{FIGURE}.{suffix}" for suffix in FORMATS))
    with whole_file(directory / PAGE) as partial:
        partial.write_text(text, encoding="utf-8")
