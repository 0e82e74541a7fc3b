"""Whether a verdict stands under figures that show what decides it: what was trained or measured, at which scale."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from position_bias.verdicts.registry import Claim
from position_card.drawing.shown import drawn_in

TABLE = "results/tables/"


def deciding(comparisons: pd.DataFrame) -> dict[str, set[str]]:
    """What the rows are of that decide each claim, as figures call it; rows without a value decide nothing.

    `comparisons` is the table of `scorecard.comparisons`.
    """
    rows = comparisons[comparisons["decides"] & comparisons["measured"].notna()]
    names: dict[str, set[str]] = {}
    for claim, scale, of in rows[["claim", "scale", "of"]].itertuples(index=False, name=None):
        names.setdefault(str(claim), set()).update(f"{scale}: {name}" for name in str(of).split("; "))
    return names


def faults(claims: Iterable[Claim], comparisons: pd.DataFrame, drawn: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield a line for each claim whose figures do not show what decides it.

    Together they have to show all of it, unless the claim also points to a table, and each has to show a part. `drawn`
    has what is drawn by the path of a figure.
    """
    decides = deciding(comparisons)
    for claim in claims:
        needed = decides.get(claim.id, set())
        targets = claim.shown.split(" and ")
        figures = {target: drawn.get(target, set()) for target in targets if not target.startswith(TABLE)}
        if not needed or not figures:
            continue
        missing = needed - set().union(*figures.values())
        if missing and len(figures) == len(targets):
            yield f"{claim.id}: {', '.join(figures)} do not show {', '.join(sorted(missing))}"
        for figure, names in figures.items():
            if not names & needed:
                yield f"{claim.id}: {figure} shows nothing that decides it"


def faults_of_run(root: Path, claims: Iterable[Claim]) -> list[str]:
    """Return the `faults` of a finished run in this folder."""
    drawn = {str(path.relative_to(root).with_suffix(".pdf")): drawn_in(path) for path in root.glob("figures/*/*.png")}
    return [*faults(claims, pd.read_csv(root / "results/tables/comparisons.csv"), drawn)]


def kept(root: Path, claims: Iterable[Claim]) -> list[str]:
    """Return the `faults` of the default run that is kept in docs/ of this folder."""
    return [*faults(claims, pd.read_csv(root / "docs/comparisons.csv"), drawn_as_kept(root))]


def drawn_as_kept(root: Path) -> dict[str, set[str]]:
    """Return what is drawn by the path of each figure that is kept in docs/ of this folder."""
    figures = pd.read_csv(root / "docs/drawn.csv").groupby("figure")["draws"].agg(set)
    return {f"{figure}.pdf": names for figure, names in figures.items()}
