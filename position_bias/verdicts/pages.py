"""The scorecard for people: its page in Markdown, its text for a terminal, and what a report opens with."""

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from position_bias.verdicts import registry, rule, scorecard
from position_bias.verdicts.registry import AND, DEFAULT, KINDS, OURS, SCALES, WHOSE
from position_bias.verdicts.rule import MEANING, UNTESTABLE
from position_bias.verdicts.scorecard import effect

HEADINGS = dict(zip(WHOSE, ("claims of the papers", "claims known from secondary sources"), strict=True))
NOT_COUNTED = "claims that are not counted"
KIND_NAMES = dict(
    zip(KINDS, ("theory", "printed numbers", "proofs and released numbers", "networks", "language models"), strict=True)
)
SCALE_NAMES = dict(
    zip(SCALES, ("toy run", "default run", "longer training", "pretrained models", "the paper's scale"), strict=True)
)
VERDICT_HEADINGS = {  # verdict -> the heading of the column that counts it
    rule.HOLDS: "hold",
    rule.MOSTLY: "mostly hold",
    rule.FAILS: "fail",
    rule.MIXED: "mixed",
    rule.ERRATUM: "errata",
    rule.NO_EFFECT: "no effect",
} | {word: word for word in (rule.UNDECIDED, UNTESTABLE)}
OPEN = (rule.UNDECIDED, UNTESTABLE)  # verdicts that something else would decide
INTRODUCTION = f"""# Scorecard

Each entry has the title of a claim of the papers, its verdict, and the scale of the rows that give it. Below stand what
is claimed, in how many comparisons or models it holds and what the exceptions are, the effect on which the verdict
depends, with its interval and its prediction, what decides, and what would. [Our additions](additions.md) have a page
of their own, and no count mixes the two. [The page on verdicts](../../docs/verdicts.md) has the rule. Its words are:
{"; ".join(f"*{word}*, {meaning}" for word, meaning in MEANING.items())}.

Scales are never mixed. Behind a verdict stands the scale of the rows that give it, and whether it is the one that the
claim is about. The file `scorecard.csv` beside this page has the same as data."""
ADDITIONS = """# Our additions

The papers do not claim what stands here. Each entry is a question that somebody asked, and what we claimed in answer
before it was judged. Its verdict follows from [the same rule](../../docs/verdicts.md) as those on the papers' claims,
which have [a page of their own](scorecard.md). No count of claims has these among them. The file `additions.csv` beside
this page has the same as data."""
FINDINGS = {  # question -> figure and claims
    "Do gradients, replacement and recall agree on the beginning?": "structural/three_measures "
    "structural-curve-step structural-curve-eighth",
    "Does attention rollout predict influence?": "structural/distances "
    "structural-table-2 structural-pretrained-content-free",
    "Does a causal mask make the first token a sink?": "emergence/fig8a emergence-figure-8a",
    "Do printed constants and steps of proofs hold?": "emergence/theorems "
    "emergence-appendix-a-e emergence-appendix-f-i",
}


def scorecard_outputs(
    checks: list[pd.DataFrame],
    claims: Path,
    additions: Path,
    published: Path,
    level: float,
    trained: Mapping[str, str],
) -> dict[str, pd.DataFrame | str]:
    """Return the scorecard, that of our additions, and every comparison behind both, by the names of the outputs.

    `checks` are the tables of checks, in the order in which the registries name them first. `claims`, `additions` and
    `published` are the files of that name in published/, the last values.csv; `level` is that of the intervals;
    `trained` tells by paper for how long the default run trains. Tables are csv, additions and comparisons; pages in
    Markdown are md, additions_md and comparisons_md; txt is a text for a terminal. Raises InputError as
    `scorecard.judge_claims` and the readers of the registries do.
    """
    claims_and_additions = (*registry.every_claim(claims), *registry.every_addition(additions))
    by_name = dict(zip(registry.claim_tables(claims_and_additions), checks, strict=True))
    values = pd.read_csv(published, dtype=str)  # as printed, zeros at the end included
    printed_values = dict(zip(values["id"], values["value"], strict=True))
    judgements = scorecard.judge_claims(claims_and_additions, by_name, level)
    cards = scorecard.scorecard(judgements, printed_values, level)
    of_models = cards["kind"].map(KIND_NAMES) == "language models"  # trained as those of structural, whatever the paper
    trains = cards["paper"].mask(of_models, "structural")
    cards.insert(list(cards).index("scale") + 1, "default run", trains.map(dict(trained)).fillna(""))
    of_papers, of_additions = (cards[(cards["whose"] == OURS) == addition] for addition in (False, True))
    of_papers = of_papers.drop(columns="question")
    rows = scorecard.comparisons(judgements)
    return {
        "csv": of_papers,
        "md": page(of_papers),
        "txt": short(of_papers),
        "additions": of_additions,
        "additions_md": page_of_additions(of_additions),
        "comparisons": rows,
        "comparisons_md": readable_comparisons(rows).to_markdown(index=False) + "\n",
    }


def scale_in_words(row: Mapping[Hashable, Any], scale: str = "") -> str:
    """Return the scale of the verdict in a row of a scorecard, or another `scale` of the same claim, in words.

    Of the default run these are how long it trains, where the row says so (column `default run`).
    """
    scale = scale or row["scale"]
    length = row.get("default run")
    return length if scale == DEFAULT and isinstance(length, str) and length else SCALE_NAMES[scale]


def as_stated(table: pd.DataFrame) -> pd.Series:
    """Return the statement of each claim of a scorecard, with a mark where the paper may not make it."""
    return table["statement"].where(~table["doubted"].astype(bool), table["statement"] + " (does the paper say so?)")


def headings(table: pd.DataFrame) -> pd.Series:
    """Return the heading that each claim of a scorecard stands under, as a categorical in the order of the headings."""
    names = table["whose"].map(HEADINGS).where(~table["doubted"].astype(bool), NOT_COUNTED)
    return names.astype(pd.CategoricalDtype([*HEADINGS.values(), NOT_COUNTED]))


def scales(table: pd.DataFrame) -> pd.Series:
    """Return the scale of each verdict of a scorecard in words, in brackets where it is smaller than that of the claim.

    It is "" for a claim that no scale limits, and for one that is not testable.
    """
    names = table["scale"].map(SCALE_NAMES)
    in_brackets = names.where(table["own scale"].astype(bool), "(" + names + ")")
    return in_brackets.mask((table["needs"] == "nothing") | (table["verdict"] == UNTESTABLE), "")


def verdict_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Return how many claims have each verdict, a column each, by heading, kind of claim and scale, a row each."""
    kinds = table["kind"].map(KIND_NAMES).astype(pd.CategoricalDtype([*KIND_NAMES.values()]))
    count = pd.crosstab([headings(table).rename(""), kinds, scales(table)], table["verdict"])
    return count.reindex(columns=list(VERDICT_HEADINGS), fill_value=0).rename(columns=VERDICT_HEADINGS)


def tally(table: pd.DataFrame) -> str:
    """Return `verdict_counts` of a scorecard in Markdown; a scale in brackets is smaller than that of the claims."""
    count = verdict_counts(table).replace(0, "").reset_index()
    count[""] = count[""].astype(str).mask(count[""].duplicated(), "")
    return count.to_markdown(index=False) + "\n"


def short(table: pd.DataFrame) -> str:
    """Return ten lines for a terminal: how many claims of each kind hold, fail and so on."""
    groups = {heading: (headings(table) == heading) for heading in HEADINGS.values()}
    of_papers = groups.pop(HEADINGS[WHOSE[0]])
    kinds = {f"papers: {KIND_NAMES[kind]}": of_papers & (table["kind"] == kind) for kind in KINDS}
    width = max(map(len, (*kinds, *groups)))
    lines = [f"{'':{width}}  " + "  ".join(VERDICT_HEADINGS.values())]
    for name, of_group in (kinds | groups).items():
        count = table["verdict"][of_group].value_counts()
        cells = (f"{count.get(word, 0) or '':>{len(words)}}" for word, words in VERDICT_HEADINGS.items())
        lines.append(f"{name:{width}}  {'  '.join(cells)}".rstrip())
    lines.append("Each claim: results/tables/scorecard.md; these numbers by paper: figures/scorecard.png")
    return "\n".join(lines) + "\n"


def page(table: pd.DataFrame) -> str:
    """Return the scorecard in Markdown: a heading for each paper, and an entry with its parts for each claim."""
    lines, of_paper = [INTRODUCTION], ""
    for row, statement, scale in zip(table.to_dict("records"), as_stated(table), scales(table), strict=True):
        if row["paper"] != of_paper:
            of_paper = row["paper"]
            lines.append(f"\n## `{of_paper}`\n")
        lines.append(f'- <a id="{row["claim"]}"></a>{row["title"]}: **{row["verdict"]}**{_at(row, scale)}')
        lines += [f"  - {part}" for part in (f"{row['item']}, {row['whose']}: {statement}", *_parts(row, row["paper"]))]
    return "\n".join(lines) + "\n"


def page_of_additions(table: pd.DataFrame) -> str:
    """Return our additions in Markdown: a heading for each question, and an entry that answers it."""
    lines = [ADDITIONS]
    for row, scale in zip(table.to_dict("records"), scales(table), strict=True):
        lines.append(f'\n<a id="{row["claim"]}"></a>\n\n## {row["question"]}\n')
        lines.append(f"`{row['paper']}`, {row['item']}. {row['statement']}: **{row['verdict']}**{_at(row, scale)}.\n")
        lines += [f"- {part}" for part in _parts(row, "additions")]
    return "\n".join(lines) + "\n"


def _at(row: Mapping[Hashable, Any], scale: str) -> str:
    """Where a claim has its verdict: its scale in words, and whether the claim is about it."""
    size = "the scale of the claim" if row["own scale"] else "a smaller scale"
    return f" at {size} ({scale_in_words(row)})" if scale else ""


def _parts(row: Mapping[Hashable, Any], finding: str) -> Iterator[str]:
    """What stands below the verdict on a claim; `finding` is the page in docs/papers/ that tells more."""
    if row["holds in"]:
        yield f"Holds in: {row['holds in']}" + (f"; exceptions: {row['exceptions']}" if row["exceptions"] else "")
    yield f"Effect: {effect(row)}, predicted {prediction(row)}, n = {row['n']}: {row['quantity']}"
    yield f"What decides: {row['decides']}"
    if ";" in row["by scale"]:
        yield f"By scale: {row['by scale']}"
    if row["verdict"] in OPEN:
        yield f"What would decide: {row['would decide']}"
    of_paper_page = f"[{row['claim']}](../../docs/papers/{finding}.md#{row['claim']})"
    yield "Finding: " + ", ".join([of_paper_page, *_figures(row["shown"])])


def readable_comparisons(table: pd.DataFrame) -> pd.DataFrame:
    """Return comparisons as people read them, a row each, in the order of the claims.

    `table` is that of `scorecard.comparisons`. A word in brackets is of a scale that does not decide.
    """
    rows = table.to_dict("records")
    return pd.DataFrame(
        {
            "claim": table["claim"],
            "quantity": table["quantity"],
            "predicted": [prediction(row) for row in rows],
            "measured": [effect(row) for row in rows],
            "n": table["n"],
            "scale": table["scale"],
            "verdict": table["verdict"].where(table["decides"].astype(bool), "(" + table["verdict"] + ")"),
        }
    )


def _figures(targets: str) -> Iterator[str]:
    """A link for each figure among what shows a claim, from a page in results/tables/."""
    for path in map(Path, targets.split(AND)):
        if path.parts[0] == "figures":
            yield f"[{path.stem}](../../{path.with_suffix('.png').as_posix()})"


def prediction(row: Mapping[Hashable, Any]) -> str:
    """Return the relation, bound and margin of a row of checks as a text.

    Where no printed digit tells the value from the bound, the text says which of them is larger.
    """
    margin = f", margin {row['margin']:.3g}" if row["margin"] else ""
    alike = row["relation"] != "=" and f"{row['measured']:.3g}" == f"{row['bound']:.3g}"
    side = "larger" if row["measured"] > row["bound"] else "smaller"
    close = f"; {side} by less than these digits show" if alike and row["measured"] != row["bound"] else ""
    return f"{row['relation']} {row['bound']:.3g}{margin}{close}"


def findings(table: pd.DataFrame, additions: pd.DataFrame) -> str:
    """Return what the report of a run opens with, in reStructuredText, for a file in a folder beside figures/.

    `table` is the scorecard, `additions` that of our additions. Raises KeyError where one of FINDINGS is not among
    them.
    """
    claims_and_additions = pd.concat([table, additions])
    by_claim = claims_and_additions.assign(trained=scales(claims_and_additions)).set_index("claim")
    lines = []
    for question, names in FINDINGS.items():
        figure, *claims = names.split()
        lines += [question, "-" * len(question), ""]
        for row in by_claim.loc[claims].to_dict("records"):
            number = f"{effect(row)}, predicted {prediction(row)}: {row['quantity']} {row['trained']}".rstrip()
            lines += [f"* **{row['verdict']}**: {_plain(row['statement'])} ({_plain(number)}).", ""]
        lines += [".. raw:: html", f"   :file: ../figures/{figure}.svg", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A text whose signs are no markup."""
    return "".join(f"\\{letter}" if letter in "*`|_\\" else letter for letter in text)
