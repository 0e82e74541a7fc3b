"""The built-in questions of a card, which are asked as the records of --documents are: what its page says of them.

They are plain invented facts in English, of our own writing, in `texts/questions.jsonl`.
"""

from importlib import resources

import pandas as pd

from position_card.card.documents_page import Documents
from position_card.card.profiles import QUESTIONS
from position_card.card.record_statistics import PlaceStatistics
from position_card.core.wording import number_of
from position_card.rollout.variants import SAME_FOR_EVERY_ESTIMATOR

FILE = str(resources.files("position_card.texts").joinpath("questions.jsonl"))
NAME, ORIGIN = "built-in facts", "built in: plain invented facts in English"
TOLD_BY = "these questions"  # in the sentence that decides
DECISIONS = ("Put", "Don't put", "Order matters little")  # begin a sentence that says where documents belong
PLACES = 3  # at which the document stands that holds the answer
PAGE = "questions.md"  # beside the page of the card
COMMAND = "`position-card MODEL --documents FILE.jsonl`"
SECTION = """\
## Where the answer stands

{records} about invented facts in English were asked. Each has {documents} facts of a sentence, one of which holds the
answer: before the others (place 1), in the middle (2), or behind them (3).

{table}

[All about these questions]({page}), with the first prompt as the model reads it.

"""


def headline(answers: Documents) -> str:
    """Return the sentence that decides, and what it is of."""
    facts = answers.facts
    records, documents = number_of(answers.table["record"].nunique(), "question"), facts["items"][0]
    return (
        f"**{answers.decision}** This is of {NAME}: {records} in English, each with {documents} invented facts of a "
        f"sentence, in prompts of up to {facts['longest']:,} tokens. Longer prompts and other documents can have "
        f"another order, so ask your own: {COMMAND}."
    )


def title(answers: Documents) -> str:
    """Return what the sentence that decides says first, for a title; nothing where these questions do not decide."""
    decision, colon, _ = answers.decision.partition(":")
    if not colon or not decision.startswith(DECISIONS):
        return ""
    if "does as well" in answers.decision:
        decision = "Put key documents first or last"
    return f"{decision[0].lower()}{decision[1:]} ({number_of(answers.table['record'].nunique(), 'built-in question')})"


def ratios_of_ends(answers: Documents) -> pd.DataFrame:
    """Return the probability of the answer at both ends over that in the middle, as a card has its statistics."""
    comparison = answers.comparison
    assert isinstance(comparison, PlaceStatistics)
    rows = [
        (SAME_FOR_EVERY_ESTIMATOR, QUESTIONS, f"{end} / middle", ratio.value, ratio.low, ratio.high)
        for end, ratio in comparison.ratios.items()
    ]
    return pd.DataFrame(rows, columns=["estimator", "variant", "statistic", "value", "low", "high"])


def headline_without(reason: str) -> str:
    """Return what stands there where the questions were not asked."""
    return (
        f"The built-in questions were not asked: {reason}. Where documents belong in your own prompts says {COMMAND}."
    )


def section(answers: Documents) -> str:
    """Return the table by place, with what was asked."""
    return SECTION.format(
        records=number_of(answers.table["record"].nunique(), "question"),
        documents=answers.facts["items"][0],
        table=answers.by_place,
        page=PAGE,
    )
