"""The scorecard for people: its page in Markdown, its text for a terminal, and the table of the report."""

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from position_bias.verdicts import scorecard
from position_bias.verdicts.claim import AND, PRETRAINED, WHOSE, registry, tables
from position_bias.verdicts.scorecard import UNTESTABLE, VERDICTS


def made(checks: list[pd.DataFrame], claims: Path, published: Path, level: float) -> dict[str, pd.DataFrame | str]:
    """The scorecard and every comparison behind it: tables (csv, comparisons), pages (md, comparisons_md) and a text.

    `checks` are the tables of checks in the order of the registry at `claims`; `published` is published/values.csv.
    Raises InputError as `scorecard.scorecard` does.
    """
    registered = registry(claims)
    by_name = dict(zip(tables(registered), checks, strict=True))
    values = pd.read_csv(published, dtype=str)  # as printed, zeros at the end included
    printed = dict(zip(values["id"], values["value"], strict=True))
    table = scorecard.scorecard(registered, by_name, printed, level)
    rows = scorecard.comparisons(registered, by_name, level)
    return {
        "csv": table,
        "md": page(table),
        "txt": short(table),
        "comparisons": rows,
        "comparisons_md": compared(rows).to_markdown(index=False) + "\n",
    }


def as_stated(table: pd.DataFrame) -> pd.Series:
    """What each claim of a scorecard says, with a mark where its source may not say what the paper says."""
    return table["statement"].where(~table["doubted"].astype(bool), table["statement"] + " (does the paper say so?)")


HEADINGS = dict(
    zip(WHOSE, ("claims of the papers", "claims known from secondary sources", "claims that we add"), strict=True)
)
COLUMNS_OF_SCALES = {  # how the page of several scales calls them
    "laptop": "default run",
    "longer": "longer training",
    PRETRAINED: "pretrained decoders",
    "paper": "the paper's training",
}
NOT_COUNTED = "claims that are not counted"
INTRODUCTION = """# Scorecard

One line for each claim. *Measured* is the comparison that decides: of those with the verdict of the claim, the one that
agrees least with what is predicted. It has the value, its interval, what is predicted of it, and n, which counts
prompts, seeds or single comparisons. A value decides nothing while its interval reaches into the margin around the
bound. The interval is widened for the number of comparisons that are judged together, so it is wider than in the
replication report, which gives the interval of the single comparison.

A verdict is *settled* unless it says *at a smaller scale*: then the claim is about larger models, more prompts or
longer training than these data have. Where a claim has data at several scales, brackets give the verdict at each:
`laptop` is the default run, `paper` has the paper's number of iterations, `longer` lies between them, and
`pretrained` is of real decoders smaller than the paper's. The file `scorecard.csv` beside this page has the same as
data, and how many comparisons hold, fail and are not separable."""


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
    several = table[[";" in each for each in table["by scale"].fillna("")]]
    found = [dict(part.split(": ") for part in each.split("; ")) for each in several["by scale"]]
    scales = [scale for scale in COLUMNS_OF_SCALES if any(scale in at for at in found)]
    rows = [
        (f"[{row['item']}](#{row['claim']}): {said}", *(at.get(scale, "") for scale in scales), row["verdict"])
        for row, said, at in zip(several.to_dict("records"), as_stated(several), found, strict=True)
    ]
    changed = [len(set(at.values())) > 1 for at in found]
    ordered = [row for wanted in (True, False) for row, differs in zip(rows, changed, strict=True) if differs == wanted]
    header = ("claim", *(COLUMNS_OF_SCALES[scale] for scale in scales), "verdict")
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
