"""What was found of the spans of one prompt: its table, its numbers as JSON, and its page in Markdown.

Spans are counted from 1. What every page says alike is in spans.md beside this module.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from position_card.card.page import PERCENT, code, counted, table
from position_card.card.sentences import listed
from position_card.core import artifacts
from position_card.core.runtime import whole_file
from position_card.measures import spans
from position_card.measures.spans import AS_GIVEN, MEASURES

TEMPLATE = resources.files(__package__).joinpath("spans.md")
NAME = "spans"  # of the files, before .md, .csv and .json
WORDS = 40  # characters of a span that a page shows
ALIKE = 0.1  # of the variance, up to which place and span matter alike
BY = {"gradient": "By gradients", "replacement": "By replacement"}
AT = {"first": "at the first place", "middle": "in the middle", "last": "at the last place"}


@dataclass(frozen=True)
class Spans:
    """What the spans of one prompt weigh, as `position_card.spans` returns it; a notebook shows its page.

    Attributes:
        texts: The spans, in order.
        table: A row for each span and place: `span` from 1 on, its `tokens`, its `place`, the token that it `begins`
            at, from 0 on, `gradient` (its share in the influence of the prompt, between 0 and 1) and `replacement`
            (total variation, between 0 and 1, where other text stands in its place).
        facts: What the page tells of the model, the prompt and how they were measured.
    """

    texts: Sequence[str]
    table: pd.DataFrame
    facts: Mapping[str, Any]

    @property
    def explained(self) -> dict[str, dict[str, float]]:
        """By measure, how much of the variance of the logarithm comes of place, of span and of the rest."""
        return {measure: spans.explained(self.table, measure) for measure in MEASURES}

    @property
    def by_chance(self) -> dict[str, float]:
        """The same on average, where the same values stand in their table at random."""
        return spans.by_chance(*spans.placed(self.table, MEASURES[0]).shape)

    @property
    def statistics(self) -> dict[str, Any]:
        """Everything that was found, ready for JSON; a number that is none is None."""
        explained = {
            measure: {part: None if math.isnan(share) else share for part, share in shares.items()}
            for measure, shares in self.explained.items()
        }
        return {
            "model": self.facts["name"],
            "prompt": self.facts["prompt"],
            "next": self.facts["next"],
            "explained": explained,
            "by chance": self.by_chance,
            "spans": [self._span(number, text) for number, text in enumerate(self.texts, start=1)],
            "facts": {name: fact for name, fact in self.facts.items() if name not in ("name", "prompt", "next")},
        }

    def _span(self, number: int, text: str) -> dict[str, Any]:
        rows = self.table[self.table["span"] == number].set_index("place")
        values_by_place = {name: rows[name].to_dict() for name in ("begins", *MEASURES)}
        return {"span": number, "text": text, "tokens": int(rows["tokens"].iloc[0]), **values_by_place}

    @property
    def page(self) -> str:
        """The page in Markdown."""
        facts, as_given = self.facts, self.table[self.table["place"] == AS_GIVEN].set_index("span")
        count = len(self.texts)
        places = list(spans.placed(self.table, MEASURES[0]))
        return TEMPLATE.read_text(encoding="utf-8").format(
            title=f"{facts['prompt']} in {facts['name']}",
            prompt=facts["prompt"],
            count=count,
            tokens=facts["tokens"],
            movable=count - 1,
            next=code(facts["next"]["token"].replace("\n", "\\n")),
            probability=facts["next"]["probability"],
            on_gradient=self._on_gradient(as_given),
            on_replacement=self._on_replacement(as_given),
            at=listed([AT[str(place)] for place in places]),
            values=(count - 1) * len(places),
            on_place="\n\n".join(self._on_place(measure) for measure in MEASURES),
            shares=table(("measure", "place", "span", "both together"), self._shares()),
            by_gradient=self._weights("gradient", as_given),
            by_replacement=self._weights("replacement", as_given),
            percent=f"{PERCENT * ALIKE:g}",
            target=facts["target"],
            texts=facts["texts"],
            recut=self._recut(),
            made_of=table(("what", "value"), self._made_of()),
        )

    def save(self, directory: str | Path) -> None:
        """Write spans.csv, spans.md and spans.json into a directory, each whole, the last one last.

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

    def _named(self, number: int) -> str:
        return f"span {number} ({code(self._begins_with(number))})"

    def _begins_with(self, number: int) -> str:
        text = " ".join(self.texts[number - 1].split())
        return text if len(text) <= WORDS else f"{text[:WORDS].rsplit(' ', 1)[0]} ..."

    def _on_gradient(self, as_given: pd.DataFrame) -> str:
        """Say which span has the largest share of the influence, and what the others leave."""
        shares, question = as_given["gradient"], len(self.texts)
        most = int(shares.drop(question).to_numpy().argmax()) + 1
        of_tokens = as_given.loc[most, "tokens"] / self.facts["tokens"]
        before = ""
        if self.facts["before"]:
            added = " ".join(map(code, self.facts["before"]))
            before = f", and {added}, which the tokenizer puts before every prompt, has {_percent(1 - shares.sum())}"
        return (
            f"**By gradients, {self._named(most)} weighs most**: it has {_percent(shares[most])} of the influence of "
            f"the whole prompt, and {_percent(of_tokens)} of its tokens. What the model is asked at the end has "
            f"{_percent(shares[question])} of the influence{before}."
        )

    def _on_replacement(self, as_given: pd.DataFrame) -> str:
        """Replacing which span changes the prediction most, and whether gradients name the same one."""
        changes = as_given["replacement"].drop(len(self.texts))
        most, least = (int(place) + 1 for place in (changes.to_numpy().argmax(), changes.to_numpy().argmin()))
        same = most == as_given["gradient"].drop(len(self.texts)).idxmax()
        return (
            f"**By replacement, {self._named(most)} weighs most**: other text in its place changes the prediction by "
            f"{changes[most]:.2g}, where 0 is no change and 1 the largest possible. Span {least} weighs least "
            f"({changes[least]:.2g}). The two measures name {'the same span' if same else 'different spans'}."
        )

    def _on_place(self, measure: str) -> str:
        """Say whether place or span matters more, where spans weigh most, and whether the heaviest is so everywhere."""
        name, shares, chance = BY[measure], self.explained[measure], self.by_chance
        if math.isnan(shares["place"]):
            return f"{name}, this cannot be said: some span weighs nothing at some place, or nothing varies."
        if shares["place"] <= chance["place"] and shares["span"] <= chance["span"]:
            verdict = "neither explains more than chance would"
        elif abs(shares["place"] - shares["span"]) <= ALIKE:
            verdict = "the two matter about alike"
        elif shares["place"] > shares["span"]:
            verdict = "where a span stands matters more than which span it is"
        else:
            verdict = "which span it is matters more than where it stands"
        values = spans.placed(self.table, measure)
        means = np.exp(np.log(values).mean())
        most, least = means.idxmax(), means.idxmin()
        return (
            f"**{name}, {verdict}.** {_percent(shares['place'])} of the variance comes of the place, and "
            f"{_percent(shares['span'])} of the span. Spans weigh most {AT[most]}: on average "
            f"{means[most] / means[least]:.3g} times what they weigh {AT[least]}, where they weigh least. "
            f"{_heaviest(values)}"
        )

    def _shares(self) -> Iterator[tuple[str, ...]]:
        for name, shares in (
            *((BY[measure].lower(), shares) for measure, shares in self.explained.items()),
            ("by chance", self.by_chance),
        ):
            yield name, *("" if math.isnan(share) else _percent(share) for share in shares.values())

    def _weights(self, measure: str, as_given: pd.DataFrame) -> str:
        """Return a table with a row for each span: its weight as given, and at every place."""
        number_text = _percent if measure == "gradient" else "{:.2g}".format
        by_place = spans.placed(self.table, measure)
        rows = []
        for number in as_given.index:
            cells = by_place.loc[number].map(number_text) if number in by_place.index else [""] * by_place.shape[1]
            words = code(self._begins_with(number))
            rows.append(
                (number, words, as_given.loc[number, "tokens"], number_text(as_given.loc[number, measure]), *cells)
            )
        return table(("span", "begins with", "tokens", AS_GIVEN, *by_place), rows)

    def _recut(self) -> str:
        """Say whether the tokenizer would cut other orders otherwise."""
        recut, others = self.facts["recut"], self.facts["orders"] - 1
        if not recut:
            return "the tokenizer would make the same tokens of every order"
        return (
            f"of {recut} of the {counted(others, 'other order')} the tokenizer would make other tokens where spans "
            "meet; those of the prompt as given were kept, so that all orders have the same tokens"
        )

    def _made_of(self) -> Iterator[tuple[str, str]]:
        facts = self.facts
        yield "model", facts["sources"]["model"]
        if facts["untrained"] is not None:
            yield "weights", f"random, not trained, drawn by seed {facts['untrained']}"
        elif facts["weights"]:
            yield "weights", f"{facts['weights']} of a GGUF file, unpacked to {facts['precision']}"
        yield "prompt", f"{facts['sources']['prompt']}, sha256 {facts['sha256'][:12]}"
        yield "spans", facts["parted"]
        yield "tokens", self._recut()
        before = " ".join(map(code, facts["before"]))
        start = f"the tokenizer puts {before} before every prompt" if before else "none before a prompt"
        start += "; that at the beginning of the prompt is left out" if facts.get("start left out") else ""
        held = " ".join(map(code, facts.get("special", [])))
        yield "special tokens", f"{start}; the prompt holds {held}" if held else start
        read = facts["read"]
        documents = counted(read["documents"], "document")
        yield (
            "other text",
            f"{facts['sources']['text']}, {documents}, sha256 {read['sha256'][:12]}, drawn by seed {facts['seed']}",
        )
        yield "computed", f"in {facts['precision']} on {facts['device']}"
        yield "versions", ", ".join(f"{name} {facts['versions'][name]}" for name in ("python", "torch", "transformers"))


def _heaviest(values: pd.DataFrame) -> str:
    """Say whether the same span weighs most at every place."""
    most = values.idxmax()
    if most.nunique() == 1:
        return f"Span {most.iloc[0]} weighs most at every place."
    everywhere = listed([f"span {span} {AT[str(place)]}" for place, span in most.items()])
    return f"The heaviest span is not the same everywhere: {everywhere}."


def _percent(share: float) -> str:
    return f"{PERCENT * share:.2g} %" if share < 0.995 else f"{PERCENT * share:.0f} %"
