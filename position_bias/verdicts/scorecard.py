"""The scorecard has one verdict for each claim of the registry, by the rows of tables of checks that carry its id.

A claim that several rows speak of holds where all of them hold, and fails where one of them does. Rows that are tested
together have their intervals widened (Bonferroni, by Student's quantiles), so that among many rows none decides a claim
by chance alone. Rows that state a range over settings keep it, and the verdict that they have.

The same quantity can be measured at several scales: then the row of the largest speaks, and the verdicts at the others
stay visible. A verdict is settled where all rows that speak are of the scale that the claim is about (`Claim.needs`),
or where a row of that scale fails. Any other verdict is only seen at a smaller scale, whether it would hold or fail.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from position_bias.running.runtime import InputError
from position_bias.statistics import t_quantile
from position_bias.verdicts.claim import SCALES, Claim, tables
from position_bias.verdicts.verdict import COLUMNS, KEYS, PREDICTION, Prediction, Verdict

VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "not separable", "not testable here")
UNTESTABLE = VERDICTS[-1]

SCORECARD_COLUMNS = (
    "claim",
    "paper",
    "item",
    "statement",
    "whose",
    "needs",
    "doubted",
    "verdict",
    "settled",
    "by scale",  # the verdict at each scale, the largest first
    *(f"rows: {verdict}" for verdict in VERDICTS),
    "quantity",  # of the row that decides
    *PREDICTION,
    "measured",
    "low",  # of the widened interval
    "high",
    "n",
    "left_out",
    "seen_before",
    "scale",
    "source",
    "published",  # what the paper prints for it, where it does
    "shown",  # what to look at
    "table",  # whose rows these are
)
COMPARISON_COLUMNS = (
    *("claim", "paper", "item", "quantity", *PREDICTION, "measured", "low", "high"),
    *("low, judged", "high, judged"),  # of the widened interval
    *("n", "left_out", "seen_before", "scale"),
    "decides",  # false where the same quantity was measured at a larger scale, too, which overrules this row
    "verdict",  # under the interval it is judged by, or its own where it is overruled
)


def scorecard(
    claims: Iterable[Claim], checks: Mapping[str, pd.DataFrame], published: Mapping[str, str], level: float
) -> pd.DataFrame:
    """A row a claim, columns SCORECARD_COLUMNS.

    `checks` are tables in the schema of `verdict`, by the name that claims give them; `published` what the papers
    print, by the id that claims give it; `level` that of the intervals. Raises InputError where a row carries an id
    that is not registered for its table, a claim has no row, or a row that is tested has no finite interval.
    """
    claims = tuple(claims)
    rows = _by_table(claims, checks)
    if silent := next((claim for claim in claims if claim.id not in rows[claim.table]), None):
        raise InputError(
            f"claim {silent.id} has no row in table {silent.table}; configure what it speaks of, give its id to rows "
            "there, or take it out of published/claims.csv"
        )
    found = [_judged(claim, rows[claim.table][claim.id], published, level) for claim in claims]
    return pd.DataFrame(found, columns=list(SCORECARD_COLUMNS))


def comparisons(claims: Iterable[Claim], checks: Mapping[str, pd.DataFrame], level: float) -> pd.DataFrame:
    """Every row that speaks of a claim, with its own interval and the one it is judged by: columns COMPARISON_COLUMNS.

    Those that a larger scale overrules follow those that decide, and are judged by none.

    Arguments and errors as for `scorecard`.
    """
    claims = tuple(claims)
    rows = _by_table(claims, checks)
    found = [_compared(claim, rows[claim.table][claim.id], level) for claim in claims]
    return pd.concat(found, ignore_index=True)[list(COMPARISON_COLUMNS)]


def _compared(claim: Claim, rows: pd.DataFrame, level: float) -> pd.DataFrame:
    heard = speaking(rows)
    judged = _together_at(claim, heard, level)
    widened = {"low, judged": judged["low"], "high, judged": judged["high"], "verdict": judged["verdict"]}
    overruled = rows[~rows.index.isin(heard.index) & ~rows["identity"].astype(bool) & (rows["verdict"] != UNTESTABLE)]
    unjudged = {"low, judged": np.nan, "high, judged": np.nan, "decides": False}
    both = pd.concat([heard.assign(decides=True, **widened), overruled.assign(**unjudged)])
    return both.assign(claim=claim.id, paper=claim.paper)


def _by_table(claims: tuple[Claim, ...], checks: Mapping[str, pd.DataFrame]) -> dict[str, dict[str, pd.DataFrame]]:
    return {name: _by_claim(name, checks[name], claims) for name in tables(claims)}


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
    tested = table[table["verdict"] != UNTESTABLE]
    unbounded = tested[~np.isfinite(tested[["low", "high"]].to_numpy(float)).all(axis=1)]
    if len(unbounded):
        raise InputError(f"table {name} has a verdict on {unbounded['quantity'].iloc[0]!r} without a finite interval")
    return {str(claim): rows for claim, rows in table.groupby(ids, sort=False) if claim}


def speaking(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the row of the largest scale of each quantity; one that cannot be tested only where no other can.

    An identity is a row whose value networks of any weights have. It supports no claim, and speaks where no other does.
    """
    telling = rows[~rows["identity"].astype(bool)]
    rows = telling if len(telling) else rows.assign(verdict=UNTESTABLE)
    rank = rows["scale"].map(SCALES.index).where(rows["verdict"] != UNTESTABLE, -1)
    largest = rank.groupby(_keys(rows), sort=False).transform("max")
    return rows[rank == largest]


def _keys(rows: pd.DataFrame) -> pd.Series:
    """What tells the quantities of rows apart: a row without a statistic is like no other."""
    keys = rows.reindex(columns=list(KEYS)).astype(object).fillna("")
    named = pd.Series(["\n".join(row) for row in keys.itertuples(index=False, name=None)], index=rows.index)
    return named.where(keys["statistic"] != "", [f"row {number}" for number in range(len(rows))])


def widened(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return the rows with intervals that hold together at `level`, and their verdicts under these.

    An interval of `n` observations is widened about its middle by the quotient of Student's quantiles with n - 1
    degrees of freedom. What has no width, a count or a bound that is computed exactly, stays as it is.
    """
    testable = rows["verdict"] != UNTESTABLE
    tests = int((testable & (rows["high"] > rows["low"])).sum())
    found = rows.copy()
    if tests > 1:
        freedom = np.maximum(rows["n"].to_numpy(float) - 1, 1)
        factor = t_quantile(1 - (1 - level) / (2 * tests), freedom) / t_quantile(1 - (1 - level) / 2, freedom)
        middle, half = (rows["low"] + rows["high"]) / 2, (rows["high"] - rows["low"]) / 2
        found["low"], found["high"] = middle - factor * half, middle + factor * half
    intervals = zip(_predictions(rows), found["low"], found["high"], testable, strict=True)
    found["verdict"] = [p.verdict(low, high) if test else UNTESTABLE for p, low, high, test in intervals]
    return found


def _predictions(rows: pd.DataFrame) -> list[Prediction]:
    return [Prediction(*of) for of in rows[list(PREDICTION)].itertuples(index=False, name=None)]


def together(verdicts: Iterable[str]) -> Verdict:
    """The verdict on a claim, of those on the rows that speak of it."""
    testable = [verdict for verdict in verdicts if verdict != UNTESTABLE]
    if not testable:
        return UNTESTABLE
    if "fails" in testable:
        return "fails"
    return "holds" if set(testable) == {"holds"} else "not separable"


def _judged(claim: Claim, rows: pd.DataFrame, published: Mapping[str, str], level: float) -> dict[str, object]:
    heard = _together_at(claim, speaking(rows), level)
    verdict = together(heard["verdict"])
    met = heard["scale"].map(claim.met_at) & (heard["verdict"] != UNTESTABLE)
    tested = heard["verdict"] != UNTESTABLE
    settled = bool(tested.any() and (met[tested].all() or "fails" in set(heard["verdict"][met])))
    decisive = _decisive(heard[met] if settled else heard, verdict)
    numbers = {f"rows: {kind}": int((heard["verdict"] == kind).sum()) for kind in VERDICTS}
    own = {name: getattr(claim, name) for name in ("paper", "item", "statement", "whose", "needs", "doubted")}
    behind = ("n", "left_out", "seen_before")
    seen = {name: decisive[name] for name in ("quantity", *PREDICTION, "measured", "low", "high", *behind)}
    return {
        "claim": claim.id,
        **own,
        "verdict": verdict,
        "settled": settled,
        "by scale": _by_scale(claim, rows, level),
        **numbers,
        **seen,
        "scale": decisive["scale"],
        "source": decisive["source"],
        "published": published[claim.published] if claim.published else "",
        "shown": claim.shown,
        "table": claim.table,
    }


def _together_at(claim: Claim, rows: pd.DataFrame, level: float) -> pd.DataFrame:
    return rows if claim.ranges else widened(rows, level)


def _by_scale(claim: Claim, rows: pd.DataFrame, level: float) -> str:
    """The verdict of the rows of each scale by themselves, the largest scale first: "paper: holds; laptop: fails"."""
    telling = rows[~rows["identity"].astype(bool)]
    found = []
    for scale in reversed(SCALES):
        verdict = together(_together_at(claim, telling[telling["scale"] == scale], level)["verdict"])
        found += [f"{scale}: {verdict}"] if verdict != UNTESTABLE else []
    return "; ".join(found)


def _decisive(rows: pd.DataFrame, verdict: Verdict) -> pd.Series:
    """The row that decides: of those with the verdict, the one that keeps least to its prediction."""
    of_kind = rows[rows["verdict"] == verdict]
    intervals = zip(_predictions(of_kind), of_kind["low"], of_kind["high"], strict=True)
    slack = [prediction.slack(low, high) for prediction, low, high in intervals]
    return of_kind.iloc[int(np.argmin(np.nan_to_num(slack)))]
