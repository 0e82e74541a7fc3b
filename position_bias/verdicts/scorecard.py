"""The scorecard has one verdict for each claim of the registry, by the rows of tables of checks that carry its id.

A claim that several rows speak of holds where all of them hold, and fails where one of them does. Rows that are tested
together have their intervals widened (Bonferroni, by Student's quantiles), so that among many rows none decides a claim
by chance alone. Rows that state a range over settings keep it, and the verdict that they have.

The same quantity can be measured at several scales: then the row of the largest speaks, and the verdicts at the others
stay visible. A verdict is settled where all rows that speak are of the scale that the claim is about (`Claim.needs`),
or where a row of that scale fails. Any other verdict is only seen at a smaller scale, whether it would hold or fail.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from position_bias.running.runtime import InputError
from position_bias.statistics import t_quantile
from position_bias.verdicts.claim import AND, SCALES, WHOSE, Claim, tables
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
    """Of each quantity the row of the largest scale, untestable ones last; identities only where there is nothing else.

    An identity is a row whose value networks of any weights have. It supports no claim.
    """
    telling = rows[~rows["identity"].astype(bool)]
    rows = telling if len(telling) else rows.assign(verdict=UNTESTABLE)
    rank = rows["scale"].map(SCALES.index).where(rows["verdict"] != UNTESTABLE, -1)
    largest = rank.groupby(_keys(rows), sort=False).transform("max")
    return rows[rank == largest]


def _keys(rows: pd.DataFrame) -> pd.Series:
    """What tells the quantities of rows apart: their keys; a row without a statistic has its sentence."""
    keys = rows.reindex(columns=list(KEYS)).astype(object).fillna("")
    named = pd.Series(["\n".join(row) for row in keys.itertuples(index=False, name=None)], index=rows.index)
    return named.where(keys["statistic"] != "", rows["item"] + rows["quantity"])


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


def as_stated(table: pd.DataFrame) -> pd.Series:
    """What each claim of a scorecard says, with a mark where its source may not say what the paper says."""
    return table["statement"].where(~table["doubted"].astype(bool), table["statement"] + " (does the paper say so?)")


HEADINGS = dict(
    zip(WHOSE, ("claims of the papers", "claims known from secondary sources", "claims that we add"), strict=True)
)
NOT_COUNTED = "claims that are not counted"
INTRODUCTION = """# Scorecard

One line for each claim. *Measured* is the comparison that decides: of those with the verdict of the claim, the one that
agrees least with what is predicted. It has the value, its interval, what is predicted of it, and n, which counts
prompts, seeds or single comparisons. A value decides nothing while its interval reaches into the margin around the
bound. The interval is widened for the number of comparisons that are judged together, so it is wider than in the
replication report, which gives the interval of the single comparison.

A verdict is *settled* unless it says *at a smaller scale*: then the claim is about larger models, more prompts or
longer training than these data have. Where a claim has data at several scales, brackets give the verdict at each:
`laptop` is the default run, `paper` has the paper's number of iterations, `longer` lies between them. The file
`scorecard.csv` beside this page has the same as data, and how many comparisons hold, fail and are not separable."""


def headings(table: pd.DataFrame) -> pd.Series:
    """The heading that each claim of a scorecard stands under."""
    return table["whose"].map(HEADINGS).where(~table["doubted"].astype(bool), NOT_COUNTED)


def counts(table: pd.DataFrame) -> list[str]:
    """A sentence for the claims of the papers, of secondary sources and of ourselves: how many are settled, and how."""
    sentences = []
    for whose, heading in HEADINGS.items():
        of_whose = table[(table["whose"] == whose) & ~table["doubted"].astype(bool)]
        settled = of_whose[of_whose["settled"].astype(bool)]
        smaller = of_whose[_smaller(of_whose)]
        without = len(of_whose) - len(settled) - len(smaller)
        parts = [
            f"{_are(len(settled))} settled{_numbers(settled)}",
            f"{_are(len(smaller))} seen at a smaller scale only{_numbers(smaller)}",
            *([f"{without} {'is' if without == 1 else 'are'} not testable here"] if without else []),
        ]
        if len(of_whose):
            sentences.append(f"Of {len(of_whose)} {heading}, {'; '.join(parts)}.")
    if doubted := _doubted(table):
        sentences.append(f"Not counted: {doubted} whose source may not say what the paper says.")
    return sentences


def tally(table: pd.DataFrame) -> str:
    """The same counts as a table in Markdown, and a sentence for what is not counted."""
    smaller = _smaller(table)
    columns = ["", "claims", "settled: hold", "fail", "not separable", "at a smaller scale: hold", "fail"]
    columns += ["not separable", "not testable here"]
    lines = [columns, ["---"] * len(columns)]
    for heading in HEADINGS.values():
        of_kind = headings(table) == heading
        settled = table["verdict"][of_kind & table["settled"].astype(bool)]
        seen = table["verdict"][of_kind & smaller]
        found = [int((part == verdict).sum()) for part in (settled, seen) for verdict in VERDICTS[:-1]]
        every = int(of_kind.sum())
        lines.append([heading, *map(str, (every, *found, every - sum(found)))])
    written = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{written}\n\nNot counted: {_doubted(table)} whose source may not say what the paper says.\n"


def by_training(table: pd.DataFrame) -> str:
    """The claims that were judged at several scales, in Markdown: the verdict at each, those that differ first."""
    scales = SCALES[1:]
    several = table[[";" in each for each in table["by scale"].fillna("")]]
    found = [dict(part.split(": ") for part in each.split("; ")) for each in several["by scale"]]
    rows = [
        (f"[{row['item']}](#{row['claim']}): {said}", *(at.get(scale, "") for scale in scales), row["verdict"])
        for row, said, at in zip(several.to_dict("records"), as_stated(several), found, strict=True)
    ]
    changed = [len(set(at.values())) > 1 for at in found]
    ordered = [row for wanted in (True, False) for row, differs in zip(rows, changed, strict=True) if differs == wanted]
    header = ("claim", "default run", "longer training", "the paper's training", "verdict")
    lines = (header, ["---"] * len(header), *ordered)
    written = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"Of {len(rows)} claims, {sum(changed)} got different verdicts from different trainings.\n\n{written}\n"


def _doubted(table: pd.DataFrame) -> int:
    return int(table["doubted"].astype(bool).sum())


def _are(number: int) -> str:
    return f"{number} is" if number == 1 else f"{number} are"


def _numbers(claims: pd.DataFrame) -> str:
    """How many hold, fail and are not separable, where any do: `` (7 hold, 2 fail)``."""
    found = claims["verdict"].value_counts()
    words = {
        "holds": ("holds", "hold"),
        "fails": ("fails", "fail"),
        "not separable": ("is not separable", "are not separable"),
    }
    said = [
        f"{found[verdict]} {one if found[verdict] == 1 else more}"
        for verdict, (one, more) in words.items()
        if verdict in found
    ]
    return f" ({', '.join(said)})" if said else ""


def _smaller(table: pd.DataFrame) -> pd.Series:
    """Which claims have a verdict that is seen at a smaller scale only; what has no data has none."""
    return ~table["settled"].astype(bool) & (table["verdict"] != UNTESTABLE)


def short(table: pd.DataFrame) -> str:
    """Write the scorecard for a terminal: how many claims are settled, then a line a claim, in brackets if not."""
    lines = ["Verdicts in brackets are seen at a smaller scale than the claim is about.", "", *counts(table)]
    for (paper, heading), claims in table.groupby(["paper", headings(table)], sort=False):
        marked = claims["verdict"].where(~_smaller(claims), "(" + claims["verdict"] + ")")
        width = max(map(len, marked))
        rows = zip(marked, claims["item"], as_stated(claims), strict=True)
        lines += [
            "",
            f"{paper}: {heading}",
            *(f"  {verdict:{width}}  {item}: {statement}" for verdict, item, statement in rows),
        ]
    return "\n".join(lines) + "\n"


def page(table: pd.DataFrame) -> str:
    """The scorecard for people, in Markdown."""
    return f"{INTRODUCTION}\n\n{readable(table).to_markdown(index=False, floatfmt='.4g')}\n"


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """Write comparisons for people: a line each, in the order of the claims."""
    rows = table.to_dict("records")
    return pd.DataFrame(
        {
            "claim": table["claim"],
            "quantity": table["quantity"],
            "predicted": [_predicted(row) for row in rows],
            "measured": [f"{row['measured']:.3g} {_interval(row['low'], row['high'])}" for row in rows],
            "judged by": [_interval(row["low, judged"], row["high, judged"]) if row["decides"] else "" for row in rows],
            "n": table["n"],
            "scale": table["scale"],
            "verdict": table["verdict"].where(table["decides"], "overruled (" + table["verdict"] + ")"),
        }
    )


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """Write the scorecard for people: claim, verdict, what was measured, who says so, and where the finding is told."""
    marked = table["verdict"].where(~_smaller(table), table["verdict"] + ", at a smaller scale")
    by_scale = [f" ({scales})" if ";" in scales else "" for scales in table["by scale"]]
    return pd.DataFrame(
        {
            "claim": table["item"] + ": " + as_stated(table),
            "verdict": marked + by_scale,
            "measured": [_measured(row) for row in table.to_dict("records")],
            "source": table["paper"] + ", " + table["whose"],
            "finding": [
                ", ".join([f"[{claim}](deviations.md#{claim})", *_figures(shown)])
                for claim, shown in zip(table["claim"], table["shown"], strict=True)
            ],
        }
    )


def _figures(shown: str) -> Iterator[str]:
    """A link into the gallery for each figure among what shows a claim; its heading there is the name of its file."""
    for path in map(Path, shown.split(AND)):
        if path.parts[0] == "figures":
            heading = path.stem.replace("_", "-")
            if heading[:3] == "fig" and heading[3:4].isdigit():
                heading = f"figure-{heading[3:]}"
            yield f"[{path.stem}](gallery/{path.parts[1]}.md#{heading})"


def _measured(row: Mapping[Hashable, Any]) -> str:
    """The value that decides a claim, its interval, what is predicted of it, and what it is."""
    measured = f"{row['measured']:.3g} {_interval(row['low'], row['high'])}"
    return f"{measured} (predicted {_predicted(row)}), n = {row['n']}: {row['quantity']}"


def _interval(low: float, high: float) -> str:
    return f"[{low:.3g}, {high:.3g}]"


def _predicted(row: Mapping[Hashable, Any]) -> str:
    """The relation, bound and margin of a row, and a word where no printed digit tells its value from the bound."""
    margin = f", margin {row['margin']:.3g}" if row["margin"] else ""
    alike = row["relation"] != "=" and f"{row['measured']:.3g}" == f"{row['bound']:.3g}"
    side = "larger" if row["measured"] > row["bound"] else "smaller"
    close = f"; {side} by less than these digits show" if alike and row["measured"] != row["bound"] else ""
    return f"{row['relation']} {row['bound']:.3g}{margin}{close}"


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
