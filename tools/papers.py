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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from PIL import Image

from position_bias.verdicts import pages, rule
from position_bias.verdicts.registry import MODEL, NOTHING, OURS, SCALES, SEED
from position_bias.verdicts.scorecard import effect
from position_card.core.runtime import InputError, whole_file
from position_card.drawing.intervals import from_to
from position_card.drawing.shown import drawn_in
from tools import workflow

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "tools/papers"
PAGES = ROOT / "docs/papers"
IMAGES = ROOT / "docs/images"
# folder in that of a paper's images -> their largest width and height in pixels
SIZES = {"": (1600, 4000), "half": (460, 2000), "small": (160, 100)}
OF_STRUCTURAL = ("table1", "table2", "table3", "table4", "table5", "curve")
TABLES = (*(f"structural/{name}" for name in OF_STRUCTURAL), "emergence/gaps")  # that pages have numbers of
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
HEAD = "| what is claimed | the paper | here | verdict | remarks |\n|---|---|---|---|---|"
OTHER_SCALE = re.compile(r"; (\w+)( \(.*?\))?: ([^;]+)")  # in what the scorecard says by scale: all but the first
FORMS: Mapping[str, Callable[[float], float]] = {
    "": lambda value: value,
    "exp": math.exp,  # of a logarithm
    "minus": lambda value: -value,
}
REPRODUCED, IN_PART, NOT, LEFT_OPEN, UNTESTED, ERRATA, NOT_COUNTED = (
    "Reproduced",
    "Reproduced in part: most comparisons are as claimed, or the scale is smaller than the paper's",
    "Not reproduced",
    "Open",
    "No test yet",
    "Errata found",
    "Not counted, because the paper may not say so",
)
PROVED = "No counterexample to what the paper proves"  # these two are reproduced as well
OF_ITS_OWN = "Consistent with the paper's own numbers"
NOT_RUN = "Not run at the paper's scale"
WITHOUT_CLAIM = "What the paper says and no claim here tests"
GROUPS: dict[str, str] = {rule.HOLDS: REPRODUCED, rule.FAILS: NOT, rule.NO_EFFECT: NOT, rule.UNDECIDED: LEFT_OPEN}
RELEASED = re.compile(", released (code|numbers)$")  # items that compare what the authors released with their text
PUBLISHED_ONLY = re.compile(", (printed|drawn)$")  # items whose numbers are all the authors' own
GROUPS |= {rule.UNTESTABLE: UNTESTED, rule.ERRATUM: ERRATA}
OF_ONE_ITEM = re.compile(r"(Figure|Table) \d+|Appendix \w")  # lines of the first table with counts of their own


class Page:
    """What the text of one paper's page can ask for; `paper` is its key in the registry."""

    def __init__(self, paper: str, scores: pd.DataFrame, comparisons: pd.DataFrame) -> None:
        """`scores` and `comparisons` are the scorecard and its comparisons, of all papers and of our additions."""
        self.paper, self.every = paper, scores.set_index("claim", drop=False)
        of_page = scores[scores["paper"].mask(scores["whose"] == OURS, ADDITIONS) == paper]
        self.scores, self.comparisons = of_page.set_index("claim", drop=False), comparisons
        self.by_claim: dict[str, list[dict[Any, Any]]] = {}  # comparisons of the claims that were asked for
        self.told: list[str] = []
        self.head = HEAD

    def claim(self, claim: str, paper: str = "", here: str = "", why: str = "") -> str:
        """A line of a table for one claim: its statement, what the paper has, what is here, the verdict, and why.

        `here` has the numbers of comparisons in braces, as `number` reads them; without it the scorecard's words stand.
        """
        row = self.scores.loc[claim].to_dict()
        self.told.append(claim)
        numbers, asked = self.with_numbers(claim, here)
        cells = [paper or "-", numbers or plain(row), self.verdict_cell(row, asked if here else [row]), why or "-"]
        return f'| <a id="{claim}"></a>{row["statement"]} | {" | ".join(cells)} |'

    def with_numbers(self, claim: str, text: str) -> tuple[str, list[dict[Any, Any]]]:
        """A text with the numbers of a claim's comparisons in the place of braces, as `number` reads them.

        With it are the comparisons whose numbers these are.
        """
        requests = re.findall(r"\{(.*?)\}", text)
        asked = [row for request in requests for row in self.fitting(claim, request)]
        return re.sub(r"\{(.*?)\}", lambda match: self.number(claim, match[1]), text), asked

    def fitting(self, claim: str, request: str) -> list[dict[Any, Any]]:
        """The comparisons of a claim that a request asks for, as `number` reads it, and with the same errors."""
        options, _, wording = request.rpartition("::")
        words = options.split()
        if not wording.strip():
            return [self.every.loc[claim].to_dict()]
        scale = next((word for word in words if word in SCALES), None)
        parts = [part.strip() for part in wording.split("&")]
        if claim not in self.by_claim:
            self.by_claim[claim] = self.comparisons[self.comparisons["claim"] == claim].to_dict("records")
        rows = [
            row
            for row in self.by_claim[claim]
            if (row["decides"] if scale is None else row["scale"] == scale)
            and all(part in row["quantity"] for part in parts)
        ]
        if not rows or (len(rows) > 1 and "span" not in words):
            raise InputError(f"{len(rows)} comparisons of {claim} fit {{{request}}}")
        return rows

    def number(self, claim: str, request: str = "") -> str:
        """The number of a comparison of a claim, with its interval; `request` is {[HOW ::] PART & PART}.

        All parts are in what the comparison compares; without any it is the one that the scorecard shows. HOW has
        one of FORMS, `span` for the least and the largest of several, `bare` for no interval, and a scale other than
        that of the verdict. Raises InputError where no comparison fits, or several do without `span`.
        """
        words = request.rpartition("::")[0].split()
        form = FORMS[next((word for word in words if word in FORMS), "")]
        rows = self.fitting(claim, request)
        if "span" in words:
            return span(form(row["measured"]) for row in rows)
        (row,) = rows
        low, high = sorted((form(row["low"]), form(row["high"])))
        without_interval = low == high or "bare" in words
        return short(form(row["measured"])) + ("" if without_interval else f" [{short(low)}, {short(high)}]")

    def verdict_cell(self, row: Mapping[Any, Any], shown: Sequence[Mapping[Any, Any]]) -> str:
        """The verdict, its scale, how many comparisons support it, and the verdicts of other scales.

        `shown` are the comparisons whose numbers stand beside it; without any, it is told of all that decide.
        """
        rows = self.comparisons[(self.comparisons["claim"] == row["claim"]) & self.comparisons["decides"].astype(bool)]
        deciding = rows.to_dict("records")
        parts = [f"**{row['verdict']}**" + (" (not counted)" if row["doubted"] else "")]
        if row["needs"] != NOTHING and row["verdict"] != rule.UNTESTABLE:
            parts.append(pages.scale_in_words(row).removeprefix("the "))
        parts += degree(row, deciding)
        parts += sample(row, [each for each in shown if each["scale"] == row["scale"]] or deciding)
        for scale, models, word in OTHER_SCALE.findall(str(row["by scale"])):
            told = pages.scale_in_words(row, scale).removeprefix("the ")
            parts += [f"{told}{models}: {word}"] if word != row["verdict"] else []
        return "<br>".join(parts)

    def verdict(self, claim: str) -> str:
        """The word of the scorecard for a claim, and its scale where this is smaller than the claim's."""
        row = self.every.loc[claim].to_dict()
        return f"**{row['verdict']}**" + ("" if own_scale(row) else f" ({pages.scale_in_words(row)})")

    def item(self, name: str, anchor: str, images: str, shown: str, verdicts: str = "") -> str:
        """A line of the table of a paper's figures and tables: its name, ours in small, what it shows, and verdicts.

        `verdicts` stands in place of how many claims of the section have which verdict.
        """
        small = " ".join(f"[![{name}]({image_path(image, 'small')})](#{anchor})" for image in images.split())
        of_item = name if OF_ONE_ITEM.fullmatch(name) else ""
        return f"| [{name}](#{anchor}) | {small or '-'} | {shown} | {verdicts or f'@{anchor}:{of_item}@'} |"

    def figure(self, image: str, title: str) -> str:
        """An image of ours, as wide as a page, and the target that builds it."""
        return f"![{title}]({image_path(image)})\n\n*{title}: `figures/{image}.pdf`*"

    def signed(self, not_run: str, errata: str = "", without_claim: str = "") -> str:
        """What came of the claims: a line for each group that has any, with the titles of its claims as links.

        `not_run` is what the paper ran and we did not, `errata` what else belongs to these, and `without_claim` what
        the paper says that the registry does not have, and why.
        """
        order = (REPRODUCED, PROVED, OF_ITS_OWN, IN_PART, NOT, LEFT_OPEN, UNTESTED, ERRATA, NOT_COUNTED)
        groups: dict[str, list[str]] = {group: [] for group in order}
        for row in self.scores.to_dict("records"):
            group = signed_group(row)
            if group == LEFT_OPEN and row["kind"] == "network":
                groups.setdefault(group := f"{group} {why_open(row)}", [])
            groups[group].append(f"[{row['title']}](#{row['claim']})" + (how_far(row) if group == IN_PART else ""))
        groups[ERRATA] += [errata] if errata else []
        groups[NOT_RUN] = [not_run]
        groups[WITHOUT_CLAIM] = [without_claim] if without_claim else []
        return "\n".join(f"- **{group}**: {'; '.join(titles)}." for group, titles in groups.items() if titles)

    def outcomes(self, said: Mapping[str, str], folder: str) -> str:
        """A table with a line for each paper: what it says, by hand, and what came of how many of its claims.

        Claims that the paper may not make are left out. `folder` is where the pages of the papers are.
        """
        counted = self.every[(self.every["whose"] != OURS) & ~self.every["doubted"].astype(bool)]
        columns = {REPRODUCED: "reproduced", IN_PART: "in part", NOT: "not", ERRATA: "errata", LEFT_OPEN: "open"}
        columns |= {UNTESTED: "no test yet"}
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
            numbers, asked = self.with_numbers(claim, here.get(claim, ""))
            line = f'| <a id="{claim}"></a>{row["question"]} | {row["statement"]} | {numbers or plain(row)} '
            lines.append(f"{line}| {self.verdict_cell(row, asked if claim in here else [row])} | {open_still} |")
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
            **names, linked=image_path, cell=cell, span=column_span, column_mean=column_mean, rows=rows_of
        )
        return re.sub(r"@([\w.-]+):([\w ]*)@", lambda match: self.counts(rendered, match[1], match[2]), rendered)

    def counts(self, rendered: str, anchor: str, of_item: str = "") -> str:
        """How many claims of the section with this anchor have which verdict.

        Those on another figure or table than `of_item` are left out where some are on this one.
        """
        for section in SECTION.split(rendered):
            anchors, _, text = section.partition("## ")
            if f'"{anchor}"' in anchors:
                claims = self.scores.loc[CLAIM.findall(text)]
                if of_item and (on_it := claims["item"].map(lambda item: is_on(item, of_item))).any():
                    claims = claims[on_it]
                not_counted = claims["doubted"].map({True: " (not counted)", False: ""})
                words = Counter(zip(claims["verdict"], not_counted, strict=True))
                return ", ".join(f"{word} {number}{mark}" for (word, mark), number in words.most_common()) or "no claim"
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


def is_on(item: str, named: str) -> bool:
    """Whether an item of the registry, such as Figures 2, 4 or Table 3, printed, has the figure or table `named`."""
    kind, number = named.split()
    return item == named or (item.startswith(kind) and number in re.findall(r"\d+", item))


def outcome(row: Mapping[Any, Any]) -> str:
    """What came of a claim, one of GROUPS.

    What holds at a smaller scale than the claim's is reproduced in part, and so is a claim on all models or comparisons
    that fails, but holds in more than half of them. What fails of released code or numbers is an erratum.
    """
    group = GROUPS.get(row["verdict"], IN_PART)
    if group == REPRODUCED and not own_scale(row):
        return IN_PART
    if row["verdict"] == rule.FAILS and RELEASED.search(row["item"]):
        return ERRATA
    if row["verdict"] == rule.FAILS and isinstance(row["holds in"], str):
        held, of_all = map(int, re.findall(r"\d+", row["holds in"]))
        return IN_PART if 2 * held > of_all else group
    return group


def signed_group(row: Mapping[Any, Any]) -> str:
    """The group of a claim in the list of verdicts: `outcome`, with what is reproduced told apart by what shows it."""
    if row["doubted"]:
        return NOT_COUNTED
    if (group := outcome(row)) == REPRODUCED and row["kind"] == "theory":
        return PROVED
    return OF_ITS_OWN if group == REPRODUCED and PUBLISHED_ONLY.search(row["item"]) else group


def how_far(row: Mapping[Any, Any]) -> str:
    """How far a claim reaches that is reproduced in part: at which scale, or in how many models or comparisons."""
    if row["verdict"] == rule.HOLDS:
        return f" ({pages.scale_in_words(row)})"
    if row["verdict"] == rule.FAILS:
        return f" ({row['holds in']})"
    return f" ({row['rows: holds']} of {sum(row[f'rows: {word}'] for word in rule.OF_ROW)} comparisons)"


def why_open(row: Mapping[Any, Any]) -> str:
    """What a claim on networks lacks that is undecided."""
    if row["rows: not testable here"]:
        return "since networks are missing"
    return "since seeds differ" if own_scale(row) else "after short training"


def degree(row: Mapping[Any, Any], deciding: Sequence[Mapping[Any, Any]]) -> Iterator[str]:
    """In how many models or comparisons a claim holds, and what is said by the others, of those that decide.

    What was known before it was predicted confirms nothing, and is told apart from what is open.
    """
    if row["decides"].startswith("no counterexample"):
        yield row["decides"]
    elif isinstance(holds_in := row["holds in"], str):
        open_rows = [each for each in deciding if each["verdict"] == rule.UNDECIDED]
        seen = sum(each["seen_before"] > 0 and alone(each) == rule.HOLDS for each in open_rows)
        counts = {
            "as claimed": row["rows: holds"],
            "seen before": seen,
            "contrary": row["rows: fails"],
            "within the margin": row["rows: no effect"],
            "open": len(open_rows) - seen,
            "missing": row["rows: not testable here"],
        }
        told = [f"{number} {word}" for word, number in counts.items() if number]
        if len(told) == 1 and row["rows: holds"]:
            yield holds_in
        else:
            enough = "; one is enough" if row["form"] == "can" else ""
            yield (f"{holds_in}: " if row["unit"] == MODEL else "") + ", ".join(told) + enough


def alone(row: Mapping[Any, Any]) -> str:
    """What the interval of a comparison says by itself, whoever knew it before."""
    numbers = [row[name] for name in ("bound", "margin", "low", "high")]
    return rule.word_of_interval(row["relation"], *numbers)


def sample(row: Mapping[Any, Any], shown: Sequence[Mapping[Any, Any]]) -> Iterator[str]:
    """How many seeds or documents are behind the comparisons of a claim that are `shown`, or layers in their ranges."""
    if row["verdict"] == rule.UNTESTABLE:
        return
    with_interval = [each for each in shown if each["low"] < each["high"]]
    layers = [int(each["n"]) for each in with_interval if "range over layers" in each["quantity"]]
    others = [int(each["n"]) for each in with_interval if "range over layers" not in each["quantity"]]
    if layers and row["unit"] == MODEL:
        yield f"ranges over {from_to(layers, 'layer')}"
    if others and row["unit"] in (SEED, MODEL):
        unit = "context" if row["item"] == "recall" else "document"
        yield from_to(others, "seed" if row["unit"] == SEED else unit)


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
def table(path: str) -> list[dict[Any, Any]]:
    """The rows of a table of this repository, their cells as they are written."""
    return pd.read_csv(ROOT / path, dtype=str, keep_default_na=False).to_dict("records")


def rows_of(path: str, **values: object) -> list[dict[Any, Any]]:
    """The rows of a table of this repository that have these values. Raises KeyError for an unknown column."""
    wanted = [(column, str(value)) for column, value in values.items()]
    return [row for row in table(path) if all(row[column] == value for column, value in wanted)]


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


def column_mean(path: str, column: str = "value", **values: object) -> str:
    """The mean of a column over the rows that have these values. Raises InputError where none has them."""
    if not (rows := rows_of(path, **values)):
        raise InputError(f"no row of {path} has {values}")
    return short(sum(float(row[column]) for row in rows) / len(rows))


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
    meaning = "; ".join(f"*{word.capitalize()}*: {rule.MEANING[word]}" for word in pages.VERDICT_HEADINGS) + "."
    counts = {
        "claims": (~doubted).sum(),
        "doubted": doubted.sum(),
        "by_paper": by_paper(claims),
        "by_kind": pages.tally(claims),
        "by_table_alone": by_table_alone(claims),
    }
    return counts | {"meaning": meaning}


def by_table_alone(claims: pd.DataFrame) -> str:
    """A sentence with the claims that no figure shows, only a table, as links."""
    alone = claims[~claims["shown"].str.contains("figures/")]
    links = [f"[{title}]({paper}.md#{claim})" for paper, claim, title in alone[["paper", "claim", "title"]].to_numpy()]
    return f"{len(links)} claims are shown by no figure, since single numbers decide them: {'; '.join(links)}."


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
    tables = [results / f"results/tables/{name}.csv" for name in TABLES]
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
        palette = small_image.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
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
