"""What was found of a file of records: its table, its statistics as JSON, and its page in Markdown.

What every page says alike is in documents.md beside this module.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from position_card.card.decision import (
    ANSWER_RATIO,
    MARGIN,
    SAMPLE_RATIO,
    decide_on_options,
    decide_on_places,
    percent,
    share,
)
from position_card.card.page import PERCENT, code, table
from position_card.card.profiles import Interval
from position_card.card.record_statistics import ENDS, LEVEL, OptionStatistics, PlaceStatistics
from position_card.core import artifacts
from position_card.core.runtime import whole_file
from position_card.core.wording import number_of
from position_card.texts.records import ALONE, CLOSED

TEMPLATE = resources.files(__package__).joinpath("documents.md")
NAME = "documents"  # of the files, before .md, .csv and .json
PROMPT_CHARACTERS = 4000  # characters of the first prompt that a page shows
SPEAK = "; if it answers in sentences, --generate 32 lets it speak"  # which a file of records can be asked with
ON_PLACES = """\
In each record the document that holds the answer was put at {places} places among the others. The table has means over
the records. Place 1 is before all other documents, and place {places} after all.

{by_place}

*Probability* is that of the whole answer: its geometric mean over the records, then its mean. *In the middle* {middle}.

{compared}

The intervals of the first row hold together at {level}, so each is one of {each}; those of the others are of {level}
each. They are over records, and say nothing of other questions. The two ratios of a row can differ, since a geometric
mean gives every record the same weight, and a mean of probabilities those that the model is sure of.

## Place, or question?

Of the variance of the logarithm of the answer's probability, {record} comes from the record, {place} from the place,
and {rest} from both together. Ratios compare places within each record, so they are free of its share. {needed}
"""
ON_OPTIONS = """\
Each record was asked in {places} orders, in which each option stood at each place once. Without a bias, each place
would be chosen in {even} of the orders.

{by_place}

One option is chosen in all orders of {same} of the records.{right}

The intervals of *chosen* hold together at {level}; the others are of {level} each. They are over records, and say
nothing of other questions.
"""


@dataclass(frozen=True)
class Documents:
    """What the place of documents, or of options, does to answers, as `position_card.documents` returns it.

    A notebook shows its page.

    Attributes:
        table: Of documents a row for each `record`, by its line, and `place`: "1" is before all others, "no documents"
            and "gold alone" are asked besides. `before` counts the documents before that which holds the answer,
            `tokens` those of the prompt, `answer_tokens` those of the answer. `log_probability` is that of the whole
            answer in nats, `right` is 1 or 0, and `reply` is what the model said, where it was asked to. Of options a
            row for each `record`, `order` and `option`, from 0 on: its `place`, A or beyond, its `probability` among
            the options, and the number of the right `answer`, -1 where it is not known.
        facts: What the page tells of the model, the records and how they were measured.
    """

    table: pd.DataFrame
    facts: Mapping[str, Any]

    @cached_property
    def comparison(self) -> PlaceStatistics | OptionStatistics:
        """What the statistics are made from."""
        if self.facts["chooses"]:
            return OptionStatistics.of(self.table)
        return PlaceStatistics.of(self.table, self.facts["seed"])

    @property
    def decision(self) -> str:
        """The sentence that says where key documents belong, or why that cannot be told."""
        if isinstance(self.comparison, PlaceStatistics):
            told_by = self.facts.get("told by")
            spoken = told_by or self.facts["generate"]
            return decide_on_places(self.comparison.summary, told_by or "this file", "" if spoken else SPEAK)
        return decide_on_options(self.comparison.summary)

    @property
    def statistics(self) -> dict[str, Any]:
        """Everything that was found, ready for JSON."""
        comparison = self.comparison
        numbers: dict[str, Any] = asdict(comparison.summary)
        if isinstance(comparison, PlaceStatistics):
            numbers |= {
                "ratios by token": {end: asdict(ratio) for end, ratio in comparison.ratios_by_token.items()},
                "ratios of means": {end: asdict(ratio) for end, ratio in comparison.ratios_of_means.items()},
                "changes in right answers": {end: asdict(change) for end, change in comparison.changes.items()},
                "variance": {part: None if math.isnan(of) else of for part, of in comparison.shares.items()},
            }
        return {
            "model": self.facts["name"],
            "records": self.facts["records"],
            "decision": self.decision,
            "statistics": numbers,
            "facts": {name: fact for name, fact in self.facts.items() if name not in ("name", "records")},
        }

    @property
    def by_place(self) -> str:
        """The table by place of the documents, in Markdown. Of options there is none."""
        comparison = self.comparison
        assert isinstance(comparison, PlaceStatistics)
        return _by_place(comparison)

    @property
    def page(self) -> str:
        """The page in Markdown."""
        comparison, facts = self.comparison, self.facts
        omissions = facts["omissions"]
        return TEMPLATE.read_text(encoding="utf-8").format(
            title=f"{facts['records']} in {facts['name']}",
            decision=self.decision,
            omissions="".join(
                f" {number_of(count, 'record')} left out: {reason}." for reason, count in omissions.items()
            ),
            found=_on_places(comparison) if isinstance(comparison, PlaceStatistics) else _on_options(comparison),
            what="options" if facts["chooses"] else "documents",
            prompt=_code_block(facts["first prompt"]),
            of_first="" if facts["chooses"] else ", with the gold document alone",
            answer=code(facts["first answer"]),
            written="\n".join(f"- {line}" for line in self._prompt_lines()),
            rules=_rules(facts["chooses"]),
            made_of=table(("what", "value"), self._made_of()),
        )

    def save(self, directory: str | Path) -> None:
        """Write documents.csv, documents.md and documents.json into a directory, each whole, the last one last.

        Raises:
            InputError: The directory cannot be written.
        """
        directory = Path(directory)
        artifacts.write_table(directory / f"{NAME}.csv", self.table)
        for suffix, text in (("md", self.page), ("json", json.dumps(self.statistics, indent=2) + "\n")):
            with whole_file(directory / f"{NAME}.{suffix}") as partial:
                partial.write_text(text, encoding="utf-8")

    def _repr_markdown_(self) -> str:
        """Return the page, which a notebook shows."""
        return self.page

    def _prompt_lines(self) -> Iterator[str]:
        """Say how prompts were written."""
        facts = self.facts
        if facts["template"]:
            yield (
                f"By the chat template of the tokenizer (sha256 {facts['template'][:12]}), without thoughts where it "
                "knows how, and on 1 January 2025 where it asks for the day."
            )
            if facts["variants"] > 1:
                yield (
                    f"**The template adds {facts['variants']} different texts to messages of the same roles**: it may "
                    "treat records differently. Look at it before you trust this page."
                )
            if facts["system in user"]:
                yield (
                    f"The template refuses or drops a system message, which begins the user's turn in "
                    f"{number_of(facts['system in user'], 'record')}."
                )
        elif facts["has template"]:
            yield "As plain text, since `--plain` leaves the chat template aside."
        else:
            yield "As plain text, since the tokenizer has no chat template."
        begins = " or ".join(code(text) for text in facts["begins"] if text)
        yield f"The answer begins with {begins}." if begins else "Nothing stands before the answer."
        before = " ".join(map(code, facts["before"]))
        yield f"{before} stands once, at the beginning." if before else "The tokenizer puts no token before a prompt."
        if facts["generate"] and not facts["chooses"]:
            yield (
                f"An answer is right where the model says it within {facts['generate']} tokens, always with the most "
                "probable one, up to a special token, and without a chat template up to the end of the line. "
                f"The column `reply` of `{NAME}.csv` has what it says."
            )
        elif not facts["chooses"]:
            yield (
                "An answer is right where each of its tokens is the most probable one after those before it. A model "
                "that answers in sentences may be right and seem wrong: `--generate 32` lets it speak."
            )

    def _made_of(self) -> Iterator[tuple[str, str]]:
        facts = self.facts
        yield "model", facts["sources"]["model"]
        if facts["untrained"] is not None:
            yield "weights", f"random, not trained, drawn by seed {facts['untrained']}"
        elif facts["weights"]:
            yield "weights", f"{facts['weights']} of a GGUF file, unpacked to {facts['precision']}"
        least, greatest = facts["items"]
        of = f"{least}" if least == greatest else f"{least} to {greatest}"
        noun = "options" if facts["chooses"] else "documents"
        yield (
            "records",
            f"{facts['sources']['records']}, {self.table['record'].nunique()} of {of} {noun}, up to "
            f"{facts['longest']:,} tokens a prompt, sha256 {facts['sha256'][:12]}",
        )
        if facts["rotate"]:
            yield "orders", "all rotations"
        anew = "read anew each time, since the model predicts something else after what it keeps of them"
        yield "beginnings that prompts share", "read once" if facts["prefix cache"] else anew
        if facts["tokenizer"]:
            yield "tokenizer", facts["tokenizer"]
        yield "computed", f"in {facts['precision']} on {facts['device']}"
        yield "versions", ", ".join(f"{name} {facts['versions'][name]}" for name in ("python", "torch", "transformers"))


def _by_place(comparison: PlaceStatistics) -> str:
    last = comparison.log_probability.shape[1]
    rows = []
    for name, log_probability, right in (
        *((name, comparison.alone[name], comparison.alone_right[name]) for name in (CLOSED, ALONE)),
        *((str(place + 1), comparison.log_probability[:, place], comparison.right[:, place]) for place in range(last)),
    ):
        numbers = (np.exp(log_probability.mean()), np.exp(log_probability).mean())
        by_token = (log_probability / comparison.tokens).mean()
        rows.append((name, *(f"{number:.3g}" for number in numbers), f"{by_token:.2f}", share(right.mean())))
    return table(("place", "probability, geometric mean", "mean probability", "log-probability a token", "right"), rows)


def _on_places(comparison: PlaceStatistics) -> str:
    ratios = [
        ("probability, geometric mean", *comparison.ratios.values()),
        ("probability of an average token", *comparison.ratios_by_token.values()),
        ("mean probability", *comparison.ratios_of_means.values()),
        ("right answers, difference", *(_points(change) for change in comparison.changes.values())),
    ]
    sample_size, parts = comparison.sample_size(SAMPLE_RATIO), comparison.shares
    return ON_PLACES.format(
        places=comparison.log_probability.shape[1],
        by_place=_by_place(comparison),
        middle=_range(comparison.middle),
        compared=table(("", *(f"{end} / middle" for end in ENDS)), ratios),
        level=share(LEVEL),
        each=f"{PERCENT * (1 - (1 - LEVEL) / len(ENDS)):g} %",
        **{part: "nothing" if math.isnan(of) else share(of) for part, of in parts.items()},
        needed=(
            f"{sample_size:,} records such as these would tell a ratio to within a factor of {SAMPLE_RATIO:g}; these "
            f"are {comparison.records:,}."
        ),
    )


def _on_options(comparison: OptionStatistics) -> str:
    names = comparison.summary.names
    rows = zip(names, map(percent, comparison.choices), map(percent, comparison.mass), strict=True)
    right = ""
    if comparison.right_by_order is not None and comparison.right_together is not None:
        right = (
            f" {share(comparison.right_by_order)} of the choices are right; by the mean log-probability over all "
            f"orders it is {share(comparison.right_together)}."
        )
    return ON_OPTIONS.format(
        places=len(names),
        even=share(1 / len(names)),
        by_place=table(("place", "chosen", "probability among the options"), rows),
        same=percent(comparison.same),
        right=right,
        level=share(LEVEL),
    )


def _rules(chooses: bool) -> str:
    little = share(MARGIN - 1)
    if chooses:
        return (
            f"*Order matters little* where the interval of every place lies within {little} of an even share; else one "
            "order is not to be trusted where the interval of the place that is chosen most lies above it; else it is "
            "undecided."
        )
    return (
        "Nothing is decided where no answer is right, with documents or without, and unless the gold documents alone, "
        f"and at their best place all documents, make the answer separably {ANSWER_RATIO:g} times as probable as "
        "no documents do. Then *order matters little* where both intervals "
        f"lie within {little} of the middle; *put key documents* at the end of the greater ratio where its interval "
        "lies above 1; *don't put* them at the end of the smaller one where its interval lies below 1; else it is "
        "undecided."
    )


def _points(change: Interval) -> str:
    return "{:+.0f} [{:+.0f}, {:+.0f}] points".format(*(PERCENT * of for of in (change.value, change.low, change.high)))


def _range(places: list[int]) -> str:
    return f"are places {places[0] + 1} to {places[-1] + 1}" if places[1:] else f"is place {places[0] + 1}"


def _code_block(text: str) -> str:
    """Return a text in a block of code, whose fence is longer than what stands in it."""
    excerpt = (
        text
        if len(text) <= PROMPT_CHARACTERS
        else f"{text[:PROMPT_CHARACTERS]} ... ({len(text) - PROMPT_CHARACTERS:,} characters more)"
    )
    longest = max((len(run) for run in excerpt.replace("\n", " ").split(" ") if set(run) == {"`"}), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{excerpt}\n{fence}"
