"""Write docs/papers/ and two pages of no paper from their texts and what a run has judged and measured.

    PYTHONPATH=. python tools/papers.py            (make docs)
    PYTHONPATH=. python tools/papers.py RESULTS    (make keep) first keeps verdicts, tables and images of a run

A text is a Jinja template of tools/papers/; README.md has front.md. It says by hand what a paper claims and
prints and why our numbers differ; verdicts, scales and our numbers come from docs/scorecard.csv, docs/additions.csv and
docs/comparisons.csv, and numbers of tables from files of published/, evidence/ and docs/tables/. Counts are those of
docs/scorecard.csv, which has no additions. Claims of a paper that its text does not name follow at its end, in the
scorecard's words.
"""

import math
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from PIL import Image

from position_bias.verdicts import pages, rule
from position_bias.verdicts.registry import NOTHING, OURS, SCALES
from position_bias.verdicts.scorecard import effect
from position_card.core.runtime import InputError, whole_file
from position_card.drawing.shown import drawn_in
from tools import workflow

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "tools/papers"
PAGES = ROOT / "docs/papers"
IMAGES = ROOT / "docs/images"
# folder in that of a paper's images -> their largest width and height in pixels
SIZES = {"": (1600, 4000), "half": (460, 2000), "small": (160, 100)}
TABLES = ("table1", "table2", "table3", "table4", "table5", "curve")  # of `structural`, which pages have numbers of
OF_PAPER = re.compile(r"figures/\w+/\w+\.png")
FIRST = ("figures/structural/big_models.png",)  # on the first screen of a page, beside text
ADDITIONS = "additions"  # the page of claims that no paper makes, and their verdicts
TEMPLATES = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
ELSEWHERE = {  # texts of no paper
    "front": ROOT / "README.md",
    "pretrained": ROOT / "docs/pretrained.md",
    "three-measures": ROOT / "docs/three-measures.md",
}
VERDICT_TABLES = ("scorecard", ADDITIONS, "comparisons")
SECTION = re.compile(r'(?<!</a>)\n(?=(?:(?:<a id="[\w.-]+"></a>)+\n)?## )')  # before its anchors and its heading
CLAIM = re.compile(r'^\| <a id="([\w-]+)"></a>', re.MULTILINE)
QUESTIONS = "| question | what we claimed | here | verdict | what would decide |\n|---|---|---|---|---|"
HEAD = "| what is claimed | the paper | here | verdict | why they differ |\n|---|---|---|---|---|"
OTHER_SCALE = re.compile(r"; (\w+)( \(.*?\))?: ([^;]+)")  # in what the scorecard says by scale: all but the first
FORMS: Mapping[str, Callable[[float], float]] = {
    "": lambda value: value,
    "exp": math.exp,  # of a logarithm
    "minus": lambda value: -value,
}
REPRODUCED, IN_PART, NOT, LEFT_OPEN, UNTESTED, ERRATA = (
    "Reproduced",
    "Reproduced in part, or at a smaller scale than the paper's",
    "Not reproduced",
    "Open",
    "Not tested",
    "Errata found",
)
GROUPS: dict[str, str] = {rule.HOLDS: REPRODUCED, rule.FAILS: NOT, rule.NO_EFFECT: NOT, rule.UNDECIDED: LEFT_OPEN}
TOLD_WITH_EXCEPTIONS = (rule.MOSTLY, rule.MIXED)  # words of which only the exceptions say how far they reach
GROUPS |= {rule.UNTESTABLE: UNTESTED, rule.ERRATUM: ERRATA}


class Page:
    """What the text of one paper's page can ask for; `paper` is its key in the registry."""

    def __init__(self, paper: str, scores: pd.DataFrame, comparisons: pd.DataFrame) -> None:
        """`scores` and `comparisons` are the scorecard and its comparisons, of all papers and of our additions."""
        self.paper, self.every = paper, scores.set_index("claim", drop=False)
        of_page = scores[scores["paper"].mask(scores["whose"] == OURS, ADDITIONS) == paper]
        self.scores, self.comparisons = of_page.set_index("claim", drop=False), comparisons
        self.told: list[str] = []
        self.head = HEAD

    def claim(self, claim: str, paper: str = "", here: str = "", why: str = "") -> str:
        """A line of a table for one claim: its statement, what the paper has, what is here, the verdict, and why.

        `here` has the numbers of comparisons in braces, as `number` reads them; without it the scorecard's words stand.
        """
        row = self.scores.loc[claim].to_dict()
        self.told.append(claim)
        (statement,) = pages.as_stated(self.scores.loc[[claim]])
        numbers = self.with_numbers(claim, here) or plain(row)
        return f'| <a id="{claim}"></a>{statement} | {paper or "-"} | {numbers} | {verdict_cell(row)} | {why or "-"} |'

    def with_numbers(self, claim: str, text: str) -> str:
        """A text with the numbers of a claim's comparisons in the place of braces, as `number` reads them."""
        return re.sub(r"\{(.*?)\}", lambda match: self.number(claim, match[1]), text)

    def number(self, claim: str, request: str = "") -> str:
        """The number of a comparison of a claim, with its interval; `request` is {[HOW ::] PART & PART}.

        All parts are in what the comparison compares; without any it is the one that the scorecard shows. HOW has
        one of FORMS, `span` for the least and the largest of several, `bare` for no interval, and a scale other than
        that of the verdict. Raises InputError where no comparison fits, or several do without `span`.
        """
        options, _, wording = request.rpartition("::")
        words = options.split()
        form = FORMS[next((word for word in words if word in FORMS), "")]
        scale = next((word for word in words if word in SCALES), None)
        if not wording.strip():
            rows = [self.every.loc[claim].to_dict()]
        else:
            parts = [part.strip() for part in wording.split("&")]
            of_claim = self.comparisons[self.comparisons["claim"] == claim]
            at = of_claim["decides"].astype(bool) if scale is None else of_claim["scale"] == scale
            fit = of_claim["quantity"].map(lambda quantity: all(part in quantity for part in parts))
            rows = of_claim[at & fit].to_dict("records")
        if not rows or (len(rows) > 1 and "span" not in words):
            raise InputError(f"{len(rows)} comparisons of {claim} fit {{{request}}}")
        if "span" in words:
            return span(form(row["measured"]) for row in rows)
        (row,) = rows
        low, high = sorted((form(row["low"]), form(row["high"])))
        without_interval = low == high or "bare" in words
        return short(form(row["measured"])) + ("" if without_interval else f" [{short(low)}, {short(high)}]")

    def verdict(self, claim: str) -> str:
        """The word of the scorecard for a claim, and its scale where this is smaller than the claim's."""
        row = self.every.loc[claim].to_dict()
        return f"**{row['verdict']}**" + ("" if own_scale(row) else f" ({pages.told_scale(row)})")

    def item(self, name: str, anchor: str, images: str, shown: str) -> str:
        """A line of the table of a paper's figures and tables: its name, ours in small, what it shows, and verdicts."""
        small = " ".join(f"[![{name}]({image_path(image, 'small')})](#{anchor})" for image in images.split())
        return f"| [{name}](#{anchor}) | {small or '-'} | {shown} | @{anchor}@ |"

    def figure(self, image: str, title: str) -> str:
        """An image of ours, as wide as a page, and the target that builds it."""
        return f"![{title}]({image_path(image)})\n\n*{title}: `figures/{image}.pdf`*"

    def signed(self, untested: str = "", errata: str = "") -> str:
        """What came of the claims: a line for each heading of GROUPS, with the titles of its claims as links.

        `untested` and `errata` are what else belongs to these two.
        """
        groups: dict[str, list[str]] = {group: [] for group in (REPRODUCED, IN_PART, NOT, LEFT_OPEN, UNTESTED, ERRATA)}
        for row in self.scores.to_dict("records"):
            groups[outcome(row)].append(f"[{row['title']}](#{row['claim']})" + ("\\*" if row["doubted"] else ""))
        groups[UNTESTED] += [untested] if untested else []
        groups[ERRATA] += [errata] if errata else []
        return "\n".join(f"- **{group}**: {'; '.join(titles) or 'none'}." for group, titles in groups.items())

    def outcomes(self, said: Mapping[str, str], folder: str) -> str:
        """A table with a line for each paper: what it says, by hand, and what came of how many of its claims.

        Claims that the paper may not make are left out. `folder` is where the pages of the papers are.
        """
        counted = self.every[(self.every["whose"] != OURS) & ~self.every["doubted"].astype(bool)]
        columns = {REPRODUCED: "reproduced", IN_PART: "in part", NOT: "not", ERRATA: "errata", LEFT_OPEN: "open"}
        columns |= {UNTESTED: "not tested"}
        lines = [["paper", "says", "claims", *columns.values()], ["---"] * (len(columns) + 3)]
        for paper, sentence in said.items():
            of_paper = [outcome(row) for row in counted[counted["paper"] == paper].to_dict("records")]
            counts = [str(of_paper.count(group)) for group in columns]
            lines.append([f"[`{paper}`]({folder}{paper}.md)", sentence, str(len(of_paper)), *counts])
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def answers(self, here: Mapping[str, str]) -> str:
        """A table of our additions: the question, what we claimed, what is here, the verdict, and what would decide.

        `here` has the same of a claim as for `claim`, by its id.
        """
        lines = [QUESTIONS]
        for row in self.scores.to_dict("records"):
            self.told.append(claim := row["claim"])
            open_still = row["would decide"] if row["verdict"] in pages.OPEN else "-"
            numbers = self.with_numbers(claim, here.get(claim, "")) or plain(row)
            line = f'| <a id="{claim}"></a>{row["question"]} | {row["statement"]} | {numbers} '
            lines.append(f"{line}| {verdict_cell(row)} | {open_still} |")
        return "\n".join(lines)

    def further(self) -> str:
        """A section of the claims that the text has not named, or nothing."""
        untold = [claim for claim in self.scores.index if claim not in self.told]
        return "\n".join(["## Further claims", "", HEAD, *[self.claim(claim) for claim in untold]]) if untold else ""

    def render(self, text: str) -> str:
        """The page of a text. Raises InputError where it asks for what is not there."""
        methods = ("claim", "number", "verdict", "item", "figure", "head", "signed", "answers", "further", "outcomes")
        names = {name: getattr(self, name) for name in methods}
        rendered = TEMPLATES.from_string(text).render(
            **names, linked=image_path, cell=cell, span=column_span, rows=rows_of
        )
        return re.sub(r"@([\w.-]+)@", lambda match: self.counts(rendered, match[1]), rendered)

    def counts(self, rendered: str, anchor: str) -> str:
        """How many claims of the section with this anchor have which verdict."""
        for section in SECTION.split(rendered):
            anchors, _, text = section.partition("## ")
            if f'"{anchor}"' in anchors:
                words = Counter(self.scores.loc[claim, "verdict"] for claim in CLAIM.findall(text))
                return ", ".join(f"{word} {number}" for word, number in words.most_common()) or "no claim"
        raise InputError(f"the page of {self.paper} has no section {anchor}")


def image_path(image: str, size: str = "") -> str:
    """The address of an image PAPER/NAME from a page. Raises InputError where it is not kept."""
    path = Path(Path(image).parent, size, f"{Path(image).name}.png")
    if not (IMAGES / path).is_file():
        raise InputError(f"{IMAGES / path} is not there; a finished run has it: make keep")
    return f"../images/{path.as_posix()}"


def own_scale(row: Mapping[Any, Any]) -> bool:
    """Whether the verdict on a claim comes from the scale that the claim is about; what has none is at no other."""
    return bool(row["own scale"]) or row["verdict"] == rule.UNTESTABLE


def outcome(row: Mapping[Any, Any]) -> str:
    """What came of a claim, one of GROUPS; what holds at a smaller scale than the claim's is reproduced in part."""
    group = GROUPS.get(row["verdict"], IN_PART)
    return IN_PART if group == REPRODUCED and not own_scale(row) else group


def verdict_cell(row: Mapping[Any, Any]) -> str:
    """The verdict, its scale, how many comparisons support it, and the verdicts of other scales."""
    parts = [f"**{row['verdict']}**"]
    if row["needs"] != NOTHING and row["verdict"] != rule.UNTESTABLE:
        parts.append(pages.told_scale(row))
    parts += degree(row)
    for scale, models, word in OTHER_SCALE.findall(str(row["by scale"])):
        parts += [f"{pages.told_scale(row, scale)}{models}: {word}"] if word != row["verdict"] else []
    return "<br>".join(parts)


def degree(row: Mapping[Any, Any]) -> Iterator[str]:
    """How many models or comparisons support a claim, which do not, and how many seeds or documents they have."""
    if row["decides"].startswith("no counterexample"):
        yield row["decides"]
    elif isinstance(holds_in := row["holds in"], str):
        number = row["rows: fails"] + row["rows: no effect"] if row["verdict"] in TOLD_WITH_EXCEPTIONS else 0
        yield holds_in + (f"; {number} exception{'s' if number > 1 else ''}" if number else "")
    if row["unit"] == "seed" and row["n"] > 0:
        yield f"n = {row['n']} seeds"
    elif row["unit"] == "model" and row["low"] < row["high"]:
        yield f"n = {row['n']} {'layers' if 'range over layers' in row['quantity'] else 'documents'}"


def plain(row: Mapping[Any, Any]) -> str:
    """The comparison that the scorecard shows, in its own words."""
    return f"{row['quantity']}: {effect(row)}" if pd.notna(row["measured"]) else "no value"


def short(value: float) -> str:
    """A number of at most three digits, without the zero before its point: .0726, 13.6."""
    figures = 3 if abs(value) >= 0.001 else 2 if abs(value) >= 1e-5 else 1
    return without_zero(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{figures}g}")


def without_zero(number: str) -> str:
    """A written number without the zero before its point."""
    return re.sub(r"^(-?)0\.", r"\1.", number)


def span(values: Iterable[float]) -> str:
    """The least and the largest of some numbers."""
    in_order = sorted(values)
    return f"{short(in_order[0])} to {short(in_order[-1])}"


@cache
def table(path: str) -> pd.DataFrame:
    """A table of this repository, its cells as they are written."""
    return pd.read_csv(ROOT / path, dtype=str, keep_default_na=False)


def rows_of(path: str, **values: object) -> list[dict[Any, Any]]:
    """The rows of a table of this repository that have these values."""
    rows = table(path)
    for column, value in values.items():
        rows = rows[rows[column] == str(value)]
    return rows.to_dict("records")


def cell(path: str, column: str = "value", digits: int = 0, **values: object) -> str:
    """One cell of a table; `digits` are those after the point, and none says as it is written.

    Raises InputError where not just one row fits.
    """
    if len(rows := rows_of(path, **values)) != 1:
        raise InputError(f"{len(rows)} rows of {path} have {values}")
    text = rows[0][column]
    return without_zero(f"{float(text):.{digits}f}" if digits and text else text)


def column_span(path: str, column: str = "value", **values: object) -> str:
    """The least and the largest number of a column, over the rows that have these values."""
    return span(float(row[column]) for row in rows_of(path, **values))


def page(path: Path, claims: pd.DataFrame, additions: pd.DataFrame, comparisons: pd.DataFrame) -> str:
    """A page in Markdown, from its text."""
    if path.stem == "README":
        text = TEMPLATES.from_string(path.read_text()).render(tally(claims))
    else:
        text = Page(path.stem, pd.concat([claims, additions]), comparisons).render(path.read_text())
    return f"<!-- make docs writes this page from tools/papers/{path.name} -->\n{text.rstrip()}\n"


def tally(claims: pd.DataFrame) -> dict[str, object]:
    """How many claims there are and what came of them, for the page of counts."""
    doubted = claims["doubted"].astype(bool)
    words = [word for word in pages.VERDICT_HEADINGS if word in set(claims["verdict"])]
    meaning = "; ".join(f"*{word.capitalize()}*: {rule.MEANING[word]}" for word in words) + "."
    counts = {
        "claims": (~doubted).sum(),
        "doubted": doubted.sum(),
        "by_paper": by_paper(claims),
        "by_kind": pages.tally(claims),
    }
    return counts | {"meaning": meaning}


def by_paper(claims: pd.DataFrame) -> str:
    """How many claims of each paper have which verdict, in Markdown, but for claims that the paper may not make."""
    of_papers = claims[~claims["doubted"].astype(bool)]
    words = [word for word in pages.VERDICT_HEADINGS if word in set(of_papers["verdict"])]
    lines = [["paper", "claims", *words], ["---"] * (len(words) + 2)]
    for paper, of_paper in of_papers.groupby("paper", sort=False):
        counts = of_paper["verdict"].value_counts()
        paper_cells = [f"[`{paper}`]({paper}.md)", len(of_paper), *(counts.get(word, "") for word in words)]
        lines.append([str(cell) for cell in paper_cells])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def keep(results: Path, docs: Path = ROOT / "docs") -> None:
    """Copy what the pages need from a finished run. Raises InputError where a file of it is not there."""
    images = [Path(path) for job in workflow.jobs("all") for path in job.output if OF_PAPER.fullmatch(path)]
    verdicts = [results / f"results/tables/{name}.csv" for name in VERDICT_TABLES]
    tables = [results / f"results/tables/structural/{name}.csv" for name in TABLES]
    files = [*verdicts, *tables, *(results / image for image in images)]
    if absent := [path for path in files if not path.is_file()]:
        raise InputError(f"{absent[0]} is not there; build it first: snakemake all")
    (docs / "tables").mkdir(exist_ok=True)
    for paths, folder in ((verdicts, docs), (tables, docs / "tables")):
        for path in paths:
            shutil.copy(path, folder)
    rows = [(path.with_suffix("").as_posix(), name) for path in images for name in sorted(drawn_in(results / path))]
    pd.DataFrame(rows, columns=["figure", "draws"]).to_csv(docs / "drawn.csv", index=False)
    for paper in {image.parent.name for image in images}:
        shutil.rmtree(docs / "images" / paper, ignore_errors=True)
    for image in images:
        copy = docs / "images" / image.relative_to("figures")
        for size, largest in SIZES.items():
            if size != "half" or image.as_posix() in FIRST:
                shrink(results / image, copy.parent / size / copy.name, largest)


def shrink(image: Path, small: Path, largest: tuple[int, int]) -> None:
    """Write `image` again, in 256 colours, rare ones among them, without its texts.

    It gets as large as a width and a height in pixels allow.
    """
    with Image.open(image) as original:
        scale = min(largest[0] / original.width, largest[1] / original.height)
        size = round(original.width * scale), round(original.height * scale)
        small_image = original.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(small) as partial:
        palette = small_image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        palette.save(partial, optimize=True)


def main() -> None:
    """Write every page that has a text."""
    claims, additions, comparisons = (pd.read_csv(ROOT / f"docs/{name}.csv") for name in VERDICT_TABLES)
    PAGES.mkdir(exist_ok=True)
    for path in sorted(TEXTS.glob("*.md")):
        ELSEWHERE.get(path.stem, PAGES / path.name).write_text(page(path, claims, additions, comparisons))


if __name__ == "__main__":
    try:
        for results in sys.argv[1:]:
            keep(Path(results).resolve())
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
