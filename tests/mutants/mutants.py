"""Write docs/dev/mutants.md: which of the smallest changes of each theorem its check notices.

    PYTHONPATH=. python tests/mutants/mutants.py > docs/dev/mutants.md

A mutant is one of `mutant_list.py`, beside this file. It is noticed where the claim no longer holds by the rows of its
table of checks, at sizes that take a fraction of a second. The page is written from the list; tests run every mutant.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from position_bias.emergence import checks_theory as emergence_checks_theory
from position_bias.layernorm import checks_theory as layernorm_checks_theory
from position_bias.layernorm import simulation
from position_bias.structural import checks_theory as structural_checks_theory
from position_bias.verdicts.judge import Statistic, judge
from position_bias.verdicts.registry import Prediction, every_addition, every_claim, predictions
from position_bias.verdicts.rule import FAILS, HOLDS, NO_EFFECT, UNDECIDED, UNTESTABLE
from tests.mutants.mutant_list import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
# an untestable row would not be missed among others
WORST_FIRST: tuple[str, ...] = (UNTESTABLE, FAILS, NO_EFFECT, UNDECIDED, HOLDS)
REFUSED = ("is no number that can be judged", "the theorem asks for less than 1", "must be at least 1")
LEVEL = 0.95
STATEMENTS: dict[str, Callable[[], tuple[Iterator[Statistic], ...]]] = {
    "emergence": lambda: emergence_checks_theory.theorem_statements(
        tokens=16, layers=120, draws=4, seed=3, peak_tokens=400
    ),
    "structural": structural_checks_theory.proposition_statements,
    "layernorm": lambda: layernorm_checks_theory.theorem_statements(
        simulation.Sampling(tokens=24, width=64, strength=1.0, sequences=600, seed=0, level=LEVEL), 1000
    ),
}
SMALL: tuple[tuple[Any, str, Any], ...] = (  # in place of the sizes of the default run
    (structural_checks_theory, "LENGTHS", (2, 7)),
    (structural_checks_theory, "CONTENT", (2.0, -8.0)),
    (structural_checks_theory, "DEEPEST", 1000),
    (
        simulation,
        "simulate",
        cache(simulation.simulate),
    ),  # mutants do not change what is simulated, so once is enough
)
INTRODUCTION = """# Mutants

A check that cannot fail says nothing. So each theorem, proposition and law whose check holds was changed in the
smallest ways that we could think of: an exponent by one, epsilon by 5 %, a sign, t + 1 for t, half of R, rows in
reverse order, no binomial. A check notices a mutant where the claim does not hold any more: it fails, it has no
effect, it is undecided, or the check refuses to judge, as the theorem's own condition is broken or a value is not
finite. Where it notices nothing, the reason stands beside it; most often the claim is an inequality with room to spare,
and the mutant is true as well. `make docs` writes this page, and tests run every mutant.

The list was made before any of it was run. After the first run we put three mutants right. One had changed nothing: a
bias that favours the middle. Two could not be judged: a third of R in a count of layers, and slopes of ALiBi so flat
that peaks ran into the first token. We also added kernels with strong negative content to those of `structural`, and
made the check of the peak in Theorem 4.5 sharper, so that it notices distances that are counted from 1."""


def verdict(claim: str) -> str:
    """On a claim, at small size; "refused" where one of its rows raises an error that the checks are known to raise."""
    found: list[str] = []
    with _small(), np.errstate(all="ignore"):
        try:
            for rows, spoken in zip(_rows(_wing(claim)), _claims(_wing(claim)), strict=True):
                upto = len(spoken) - spoken[::-1].index(claim) if claim in spoken else 0
                own = [row for row in islice(rows, upto) if row["claim"] == claim]
                found += [UNTESTABLE if row["identity"] else str(row["verdict"]) for row in own]
        except ValueError as error:
            if any(known in str(error) for known in REFUSED):
                return "refused"
            raise
    return min(found, key=WORST_FIRST.index)


def noticed(mutant: Mutant) -> bool:
    """Whether the mutant's claim does not hold any more with one thing wrong in the library."""
    _claims(_wing(mutant.claim))  # before anything is wrong
    with patch.object(*mutant.place, mutant.wrong(getattr(*mutant.place))):
        return verdict(mutant.claim) in (FAILS, NO_EFFECT, UNDECIDED, "refused")


def claims_that_hold() -> set[str]:
    """Those of all tables of theory, at small size."""
    every = {claim for wing in STATEMENTS for spoken in _claims(wing) for claim in spoken if claim}
    return {claim for claim in every if verdict(claim) == "holds"}


def page() -> str:
    """docs/dev/mutants.md, from the list and the registry of claims."""
    registered = every_claim(ROOT / "published/claims.csv") + every_addition(ROOT / "published/additions.csv")
    claims = {claim.id: claim for claim in registered}
    count = sum(not mutant.unnoticed for mutant in MUTANTS)
    lines = [INTRODUCTION, "", f"Of {len(MUTANTS)} mutants {count} are noticed.", ""]
    by_claim = sorted(MUTANTS, key=lambda mutant: list(claims).index(mutant.claim))
    for claim, mutants in groupby(by_claim, key=lambda mutant: claims[mutant.claim]):
        lines += [f"## {claim.id}", "", f"{claim.item} of `{claim.paper}`: {claim.statement}.", ""]
        lines += ["| mutant | noticed |", "|---|---|"]
        lines += [f"| {of.words} | {f'no: {of.unnoticed}' if of.unnoticed else 'yes'} |" for of in mutants]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _wing(claim: str) -> str:
    return claim.partition("-")[0]


@cache
def _claims(wing: str) -> tuple[tuple[str, ...], ...]:
    """The claim of every row of every statement."""
    with _small():
        return tuple(tuple(str(row["claim"]) for row in rows) for rows in _rows(wing))


def _rows(wing: str) -> list[Iterator[dict[str, object]]]:
    """The rows of every statement, worked out as they are read."""
    predicted = _predictions(wing)
    return [judge(statistics, predicted, LEVEL) for statistics in STATEMENTS[wing]()]


@cache
def _predictions(wing: str) -> dict[str, list[Prediction]]:
    return predictions(ROOT / "published/predictions.csv", wing)


@contextmanager
def _small() -> Iterator[None]:
    with ExitStack() as stack:
        for size in SMALL:
            stack.enter_context(patch.object(*size))
        yield


if __name__ == "__main__":
    print(page(), end="")
