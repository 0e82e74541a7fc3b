"""The checkpoints of a training run: what both ends of a prompt have over its middle by each measure, step by step."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from position_card.card import card, figures_run, page
from position_card.card.card import Card
from position_card.card.figures_run import STATISTICS
from position_card.card.profiles import ACCURACY, LOSS, RECALL, REPLACEMENT, Interval
from position_card.card.sentences import recall_material
from position_card.core.wording import enumeration
from position_card.drawing import style
from position_card.rollout.variants import INFLUENCE

TEMPLATE = resources.files(__package__).joinpath("run.md")
COLUMNS = ["step", "model", "n", "prompts", "variant", "statistic", "value", "low", "high"]
EXTRA_STATISTICS = {LOSS: ("mean",), RECALL: (*STATISTICS[RECALL], ACCURACY)}  # what else is told of a measure
WORDS = {
    INFLUENCE: "By gradients, the first token",
    REPLACEMENT: "By replacement, the first token",
    RECALL: "By recall, the first eighth of the places",
}


def save_run(cards: Mapping[int, Card], run: str, directory: Path, folders: Sequence[str]) -> None:
    """Write page, figure and the table `run` of the checkpoints of a run, by their training steps from the first on.

    `folders` are those of the single cards, seen from the directory. Raises InputError as `card.save` does.
    """
    table = by_step(cards)
    with style.session_style():
        figure = figures_run.training_run(longest(table), run, next(iter(cards.values())).text)
    card.save(run_page(cards, table, run, folders), figure, {"run": table}, directory)


def is_one(cards: Sequence[Card]) -> bool:
    """Say whether models have one shape, as checkpoints of one run have."""
    first, *rest = (of.measurements.facts["model"] for of in cards)
    return all(facts == first for facts in rest)


def by_step(cards: Mapping[int, Card]) -> pd.DataFrame:
    """Return loss, accuracy, and what both ends have over the middle, at every length, step by step (COLUMNS).

    Values and bounds are those of the tables `statistics` of the cards.
    """
    keys = {(measure, name) for measure, names in {**STATISTICS, **EXTRA_STATISTICS}.items() for name in names}
    statistics = pd.concat(of.tables["statistics"].assign(step=step, model=of.name) for step, of in cards.items())
    rows = [key in keys for key in zip(statistics["variant"], statistics["statistic"], strict=True)]
    return statistics.loc[rows, COLUMNS].reset_index(drop=True)


def longest(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the longest prompts, or contexts, of each measure."""
    return table[table["n"] == table.groupby("variant")["n"].transform("max")]


def run_page(cards: Mapping[int, Card], table: pd.DataFrame, run: str, folders: Sequence[str]) -> str:
    """Return the page of a run in Markdown: figure, what changed from the first step to the last, and a row a step."""
    longest_rows, last = longest(table), list(cards.values())[-1]
    keys = zip(longest_rows["step"], longest_rows["variant"], longest_rows["statistic"], strict=True)
    intervals = dict(zip(keys, _intervals(longest_rows), strict=True))
    measures = [name for name in STATISTICS if name in set(longest_rows["variant"])]
    columns = {(LOSS, "mean"): "loss"}
    columns |= {(name, end): f"{name}, {end}" for name in measures for end in STATISTICS[name]}
    columns |= {(RECALL, ACCURACY): "accuracy"} if RECALL in measures else {}
    rows = ((step, *(_cell(intervals.get((step, *column))) for column in columns)) for step in cards)
    _, by_frequency = last.measurements.losses_without_context(max(last.lengths))
    return TEMPLATE.read_text(encoding="utf-8").format(
        run=run,
        text=last.text,
        measures=_of_measures(longest_rows, measures),
        percent=page.PERCENT * last.level,
        findings="\n\n".join(_change(longest_rows, name) for name in measures),
        table=page.table(("step", *columns.values()), rows),
        entropy=by_frequency,
        cards="\n".join(
            f"- [step {step}, {of.name}]({folder}/{card.PAGE})"
            for (step, of), folder in zip(cards.items(), folders, strict=True)
        ),
    )


def _of_measures(longest_rows: pd.DataFrame, measures: Sequence[str]) -> str:
    """Say what each measure divides, and in prompts of which length."""
    of = {name: longest_rows[longest_rows["variant"] == name].iloc[0] for name in measures}
    texts = {
        INFLUENCE: "gradients: influence of one token over that of a typical token of the middle half, as a geometric "
        "mean over documents",
        REPLACEMENT: "replacement: the same of what another token changes",
        RECALL: "recall: an eighth of the places over their middle half, by the mean probability of the right word, "
        "where the accuracy is high enough to compare places",
    }
    parts = [
        f"{texts[name]} ({row['prompts']} contexts of {recall_material(row['n'])})"
        if name == RECALL
        else f"{texts[name]} ({row['prompts']} prompts of {row['n']} tokens)"
        for name, row in of.items()
    ]
    return f"Measures are {enumeration(parts)}." if len(parts) > 1 else f"The measure is {parts[0]}."


def _change(longest_rows: pd.DataFrame, measure: str) -> str:
    """Say what the first place has over the middle at the first and at the last step that tell it."""
    rows = longest_rows[
        (longest_rows["variant"] == measure) & (longest_rows["statistic"] == STATISTICS[measure][0])
    ].dropna(subset="value")
    if rows.empty:
        return f"{measure.capitalize()} is too poor at every step to compare places."
    before, after = rows["step"].iloc[[0, -1]]
    first, last = _intervals(rows.iloc[[0, -1]])
    if len(rows) == 1:
        return f"{WORDS[measure]} has {first} times the weight of the middle at step {before}, and no other step tells."
    apart = {1: "it has risen", -1: "it has fallen", 0: "the intervals overlap, so this run does not tell them apart"}
    side = int(last.low > first.high) - int(last.high < first.low)
    return (
        f"{WORDS[measure]} has {first} times the weight of the middle at step {before}, and {last} times at step "
        f"{after}: {apart[side]}."
    )


def _intervals(rows: pd.DataFrame) -> list[Interval]:
    return [Interval(*map(float, row)) for row in rows[["value", "low", "high"]].to_numpy()]


def _cell(interval: Interval | None) -> str:
    return "" if interval is None or np.isnan(interval.value) else str(interval)
