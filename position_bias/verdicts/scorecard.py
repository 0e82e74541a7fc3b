"""The scorecard: one verdict for each claim of the registry, from the rows of the tables of checks that carry its id.

A claim that several rows speak of holds where all of them hold, and fails where one of them does. Rows that are tested
together have their intervals widened (Bonferroni, by Student's quantiles), so that among many rows none settles a claim
by chance alone. Rows that state a range over settings keep it, and the verdict that they have.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from position_bias.running.runtime import InputError
from position_bias.statistics import t_quantile
from position_bias.verdicts.claim import OURS, Claim, tables
from position_bias.verdicts.verdict import COLUMNS, PREDICTION, Prediction, Verdict

VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "not separable", "not testable here")

SCORECARD_COLUMNS = (
    "claim",
    "paper",
    "item",
    "statement",
    "whose",
    "verdict",
    *(f"rows: {verdict}" for verdict in VERDICTS),
    "quantity",  # of the row that decides
    *PREDICTION,
    "measured",
    "low",  # of the widened interval
    "high",
    "n",
    "scale",
    "published",  # what the paper prints for it, where it does
    "shown",  # what to look at
    "table",  # whose rows these are
)


def scorecard(
    claims: Iterable[Claim], checks: Mapping[str, pd.DataFrame], published: Mapping[str, str], level: float
) -> pd.DataFrame:
    """A row a claim, columns SCORECARD_COLUMNS.

    `checks` are tables in the schema of `verdict`, by the name that claims give them; `published` what the papers
    print, by the id that claims give it; `level` that of the intervals. Raises InputError where a row carries an id
    that is not registered for its table, or a claim has no row.
    """
    claims = tuple(claims)
    rows = {name: _by_claim(name, checks[name], claims) for name in tables(claims)}
    if silent := next((claim for claim in claims if claim.id not in rows[claim.table]), None):
        raise InputError(
            f"claim {silent.id} has no row in table {silent.table}; configure what it speaks of, give its id to rows "
            "there, or take it out of published/claims.csv"
        )
    found = [_judged(claim, rows[claim.table][claim.id], published, level) for claim in claims]
    return pd.DataFrame(found, columns=list(SCORECARD_COLUMNS))


def _by_claim(name: str, table: pd.DataFrame, claims: Iterable[Claim]) -> dict[str, pd.DataFrame]:
    """The rows of a table of checks that speak of claims, by the id of the claim."""
    if missing := [column for column in COLUMNS if column not in table]:
        raise InputError(f"table {name} lacks column {', '.join(missing)}; rebuild it")
    ids = table["claim"].fillna("")
    registered = {claim.id for claim in claims if claim.table == name}
    if unknown := sorted({*ids} - {""} - registered):
        raise InputError(
            f"table {name} has rows of claim {unknown[0]}, which published/claims.csv does not register for this "
            "table; register it, or correct the id"
        )
    return {str(claim): rows for claim, rows in table.groupby(ids, sort=False) if claim}


def widened(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """The rows with intervals that hold together at `level`, and their verdicts under these.

    An interval of `n` observations is widened about its middle by the quotient of Student's quantiles with n - 1
    degrees of freedom. What has no width, a count or a bound that is computed exactly, stays as it is.
    """
    testable = rows["verdict"] != "not testable here"
    tests = int((testable & (rows["high"] > rows["low"])).sum())
    found = rows.copy()
    if tests > 1:
        freedom = np.maximum(rows["n"].to_numpy(float) - 1, 1)
        factor = t_quantile(1 - (1 - level) / (2 * tests), freedom) / t_quantile(1 - (1 - level) / 2, freedom)
        middle, half = (rows["low"] + rows["high"]) / 2, (rows["high"] - rows["low"]) / 2
        found["low"], found["high"] = middle - factor * half, middle + factor * half
    intervals = zip(_predictions(rows), found["low"], found["high"], testable, strict=True)
    found["verdict"] = [p.verdict(low, high) if test else "not testable here" for p, low, high, test in intervals]
    return found


def _predictions(rows: pd.DataFrame) -> list[Prediction]:
    return [Prediction(*of) for of in rows[list(PREDICTION)].itertuples(index=False, name=None)]


def together(verdicts: Iterable[str]) -> Verdict:
    """The verdict on a claim, of those on the rows that speak of it."""
    testable = [verdict for verdict in verdicts if verdict != "not testable here"]
    if not testable:
        return "not testable here"
    if "fails" in testable:
        return "fails"
    return "holds" if set(testable) == {"holds"} else "not separable"


def as_stated(table: pd.DataFrame) -> pd.Series:
    """What each claim of a scorecard says, with the mark of those that are ours."""
    return table["statement"].where(table["whose"] != OURS, "ours: " + table["statement"])


def short(table: pd.DataFrame) -> str:
    """The scorecard in a terminal: how many claims of each paper hold, then a line a claim."""
    counts = pd.crosstab(table["paper"], table["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)
    lines = [counts.to_string(index_names=False)]
    for paper, of_paper in table.groupby("paper", sort=False):
        width = max(map(len, of_paper["verdict"]))
        claims = zip(of_paper["verdict"], of_paper["item"], as_stated(of_paper), strict=True)
        lines += ["", f"{paper}", *(f"  {verdict:{width}}  {item}: {statement}" for verdict, item, statement in claims)]
    return "\n".join(lines) + "\n"


def _judged(claim: Claim, rows: pd.DataFrame, published: Mapping[str, str], level: float) -> dict[str, object]:
    rows = rows if claim.ranges else widened(rows, level)
    verdict = together(rows["verdict"])
    decisive = _decisive(rows, verdict)
    counts = {f"rows: {kind}": int((rows["verdict"] == kind).sum()) for kind in VERDICTS}
    own = {"claim": claim.id} | {name: getattr(claim, name) for name in ("paper", "item", "statement", "whose")}
    seen = {name: decisive[name] for name in ("quantity", *PREDICTION, "measured", "low", "high", "n", "scale")}
    printed = {"published": published[claim.published] if claim.published else ""}
    return {**own, "verdict": verdict, **counts, **seen, **printed, "shown": claim.shown, "table": claim.table}


def _decisive(rows: pd.DataFrame, verdict: Verdict) -> pd.Series:
    """The row that decides: of those with the verdict, the one that keeps least to its prediction."""
    of_kind = rows[rows["verdict"] == verdict]
    intervals = zip(_predictions(of_kind), of_kind["low"], of_kind["high"], strict=True)
    slack = [prediction.slack(low, high) for prediction, low, high in intervals]
    return of_kind.iloc[int(np.argmin(np.nan_to_num(slack)))]
