"""Every mutant of a theorem is noticed by its check, or the reason is told."""

import pytest

from tests.mutants import mutants
from tests.mutants.mutant_list import MUTANTS, UNNOTICED

pytestmark = pytest.mark.all("two hundred mutants of theorems take half a minute")


def test_every_claim_of_theory_that_holds_has_mutants():
    assert mutants.claims_that_hold() == {mutant.claim for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.claim}: {mutant.words}")
def test_a_mutant_is_noticed_or_the_reason_is_told(mutant):
    assert mutants.noticed(mutant) == (not mutant.unnoticed)


def test_a_mutant_is_listed_once_and_every_reason_is_of_one():
    listed = [(mutant.claim, mutant.words) for mutant in MUTANTS]
    assert len(set(listed)) == len(listed)
    assert {(claim, words) for claim, found in UNNOTICED.items() for words in found} <= set(listed)
