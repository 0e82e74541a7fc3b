"""The registry of claims: what the papers claim, and what we claim beside them, as published/claims.csv lists it."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from position_bias.running.runtime import InputError
from position_bias.verdicts import published

OURS = "ours"
# Read in the paper's text; known only from what others write of it; added by us
WHOSE = ("paper", "secondary source", OURS)
TRUTH = {"true": True, "false": False}
AND = " and "  # between several values of one cell
NOTHING = "nothing"
NEEDS = (NOTHING, "iterations", "prompts", "pretrained models", "lengths")  # what a claim can speak about
PRETRAINED = "pretrained"  # the scale of real decoders that are smaller than the paper's
SCALES = ("test", "laptop", "longer", PRETRAINED, "paper")  # of rows of checks, the smallest first
SEED, MODEL, ERRATA = "seed", "model", "errata"
FORMS = ("all", "most", "can", "ordering", "equal", "absent", "exact")  # what a claim asks of its rows
UNITS = (SEED, MODEL, "none")  # what it generalises over
KINDS = ("theory", "printed", ERRATA, "network", "pretrained")  # what it speaks of


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, or one that we add. The fields are the columns of the registry, in their order."""

    id: str  # unique; rows of tables of checks that speak of the claim carry it
    paper: str
    item: str  # figure, table, theorem or section
    place: str  # where the claim stands in its source
    title: str  # in at most 45 characters, for who has not read the paper
    statement: str  # in our words
    whose: str  # one of WHOSE
    needs: str  # of NEEDS, joined by AND: what of the paper's scale its statement is about; nothing: any will do
    table: str  # of checks, below results/tables/: structural/checks
    shown: str  # the figures or tables that show it, targets of the workflow, joined by " and "
    form: str  # one of FORMS, as the next two written down before the runs that judge it
    unit: str  # one of UNITS
    kind: str  # one of KINDS
    rows: str  # its comparisons with their margins, in words
    published: str = ""  # id of what the paper prints for it, in published/values.csv
    doubted: bool = False  # the source that it is known from may have doubted it, so that nobody is held to it

    def met_at(self, scale: str) -> bool:
        """Whether rows at this scale are about what the claim is about, and can therefore settle it.

        What we claim of pretrained models is about any; the paper speaks of its own.
        """
        of_any = self.whose == OURS and self.needs == "pretrained models" and scale == PRETRAINED
        return self.needs == NOTHING or scale == SCALES[-1] or of_any


COLUMNS = tuple(field.name for field in fields(Claim))
NEEDED = set(COLUMNS) - {"published"}
KNOWN = {"whose": WHOSE, "needs": NEEDS, "doubted": tuple(TRUTH)}  # values of columns
KNOWN |= {"form": FORMS, "unit": UNITS, "kind": KINDS}


def registry(path: str | Path) -> tuple[Claim, ...]:
    """Every claim, in the order of the file. Raises InputError where the file is no such table."""
    claims: dict[str, Claim] = {}
    for _, row in published.rows(path, "claims", COLUMNS, NEEDED):
        for column, known in KNOWN.items():
            if unknown := [value for value in row[column].split(AND) if value not in known]:
                raise InputError(
                    f"claim {row['id']} in {path} has {column} {unknown[0]}; use one of: {', '.join(known)}"
                )
        if row["id"] in claims:
            raise InputError(f"{path} has claim {row['id']} twice; an id names one claim")
        truth: dict[str, Any] = {"doubted": TRUTH[row["doubted"]]}
        claims[row["id"]] = Claim(**row | truth)
    return tuple(claims.values())


def shows(shown: str, target: str) -> bool:
    """Whether a figure or table is one of those that `Claim.shown` names."""
    return target in shown.split(AND)


def tables(claims: Iterable[Claim]) -> list[str]:
    """The tables of checks whose rows speak of the claims, each once."""
    return list(dict.fromkeys(claim.table for claim in claims))
