"""Write docs/mutants.md: which of the smallest changes of each theorem its check notices.

    python docs/mutants.py > docs/mutants.md

A mutant is one of the list beside this file. It is noticed where the claim no longer holds in the table of checks, at
sizes that take a fraction of a second. The page is written from the list, and tests run every mutant of it.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from unittest.mock import patch

import pandas as pd
from mutant_list import MUTANTS, Mutant  # beside this file

from position_bias.emergence import checks_theory as emergence_checks
from position_bias.layernorm import checks_theory as layernorm_checks
from position_bias.layernorm import tables as layernorm_tables
from position_bias.layernorm.simulation import simulate
from position_bias.structural import checks_theory as structural_checks
from position_bias.verdicts.claim import registry
from position_bias.verdicts.scorecard import together

ROOT = Path(__file__).parents[1]
REFUSED = ("is no number that can be judged", "the theorem asks for less than 1", "must be at least 1")
NOTICED = ("fails", "not separable", "refused")
INTRODUCTION = """# Mutants

A check that cannot fail says nothing. So each theorem, proposition and law whose check holds was changed in the
smallest ways that we could think of: an exponent by one, epsilon by 5 %, a sign, t + 1 for t, half of R, rows in
reverse order, no binomial. The list was made before any of it was run. A check notices a mutant where the claim does
not hold any more: it fails, it is not separable, or the check refuses to judge, as the theorem's own condition is
broken or a value is not finite. Where it notices nothing, the reason stands beside it; most often the claim is an
inequality with room to spare, and the mutant is true as well. `make docs` writes this page, and tests run every
mutant."""


def emergence() -> pd.DataFrame:
    """Theorems of Wu et al. at the size of tests."""
    return emergence_checks.table(tokens=16, layers=120, draws=4, seed=3, peak_tokens=400, scale="mutants")


def structural() -> pd.DataFrame:
    """Propositions of Herasimchyk et al. on few kernels."""
    small = {"LENGTHS": (2, 7), "CONTENT": (2.0, -2.0), "DEEPEST": 1000}
    with ExitStack() as stack:
        for name, value in small.items():
            stack.enter_context(patch.object(structural_checks, name, value))
        return structural_checks.checks("mutants")


@cache
def _runs() -> layernorm_checks._Runs:
    return layernorm_checks._Runs(layernorm_tables.Sampling(24, 64, 1.0, 600, 0, 0.95))


_simulated_once = cache(simulate)


def layernorm() -> pd.DataFrame:
    """Laws of the decoder of Kim et al. on short sequences, which are simulated once."""
    statements = ("_closed_forms", "_theorem", "_three_tokens", "_depth", "_anisotropy")
    with patch.object(layernorm_tables, "simulate", _simulated_once):
        return pd.DataFrame(chain.from_iterable(getattr(layernorm_checks, name)(_runs()) for name in statements))


CHECKS: dict[str, Callable[[], pd.DataFrame]] = {
    "emergence": emergence,
    "structural": structural,
    "layernorm": layernorm,
}


def verdict(claim: str) -> str:
    """On a claim, at this size; "refused" where the checks raise one of the errors that they are known to raise."""
    try:
        rows = CHECKS[claim.partition("-")[0]]()
    except ValueError as error:
        if any(known in str(error) for known in REFUSED):
            return "refused"
        raise
    return together(rows.loc[rows["claim"] == claim, "verdict"])


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The library with one thing wrong."""
    with patch.object(*mutant.place, mutant.wrong(getattr(*mutant.place))):
        yield


def page() -> str:
    """docs/mutants.md, from the list and the registry of claims."""
    claims = {claim.id: claim for claim in registry(ROOT / "published/claims.csv")}
    noticed = sum(mutant.outcome in NOTICED for mutant in MUTANTS)
    lines = [INTRODUCTION, "", f"Of {len(MUTANTS)} mutants {noticed} are noticed.", ""]
    by_claim = sorted(MUTANTS, key=lambda mutant: list(claims).index(mutant.claim))
    for claim, mutants in groupby(by_claim, key=lambda mutant: claims[mutant.claim]):
        lines += [f"## {claim.id}", "", f"{claim.item} of `{claim.paper}`: {claim.statement}.", ""]
        lines += ["| mutant | noticed | how, or why not |", "|---|---|---|"]
        for mutant in mutants:
            seen = mutant.outcome in NOTICED
            lines.append(f"| {mutant.words} | {'yes' if seen else 'no'} | {mutant.outcome} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
